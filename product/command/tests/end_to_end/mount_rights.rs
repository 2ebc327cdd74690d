//! Rights of several users on names of a mount, while the kernel's knowledge of these names is old.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use crate::mounted::{Mounted, apart, can_mount};
use crate::scratch::{Scratch, can_be_several_users};
use crate::server::text;

const VICTIM: u32 = 4001;
const OTHER: u32 = 4002;
const TEAM: u32 = 5555;

/// The kernel takes names and attributes for right for that long.
const OLD: [&str; 2] = ["--set", "attributes_idle_centisecs=360000"];

/// What a script says that runs as a user, in a directory.
fn by(user: u32, more: &[&str], at: &Path, script: &str) -> String {
    let (uid, gid) = (format!("--reuid={user}"), format!("--regid={user}"));
    let groups = if more.iter().any(|flag| flag.starts_with("--groups")) { None } else { Some("--clear-groups") };
    let mut command = Command::new("setpriv");
    command.args([&uid, &gid]).args(groups).args(more).args(["sh", "-c", script]).current_dir(at);
    text(&command.output().unwrap())
}

/// A mount apart from its directory, with a directory in it where each user may make names.
fn shared(flags: &[&str]) -> Option<(Scratch, std::path::PathBuf, Mounted)> {
    if !can_mount() || !can_be_several_users() {
        return None;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    fs::create_dir(data.join("open")).unwrap();
    fs::set_permissions(data.join("open"), Permissions::from_mode(0o1777)).unwrap();
    let mounted = Mounted::start_with(scratch.path(), &data, &point, flags);
    Some((scratch, data, mounted))
}

const EXCHANGE: &str = "exchange() { python3 -c \"import ctypes, sys; libc = ctypes.CDLL(None, use_errno=True); \
    failed = libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2); \
    sys.exit(ctypes.get_errno() if failed else 0)\" \"$1\" \"$2\" || echo not permitted; }";

// rule: where the sticky bit keeps names, the host decides about the object that has the name now, not about the one
// that the kernel knows
#[test]
fn a_user_who_swaps_names_on_the_host_removes_and_moves_nothing_of_others() {
    let Some((_scratch, data, mounted)) = shared(&OLD) else { return };
    let attacks = [
        ("file", "rm -f name"),
        ("file", "mv -f name elsewhere"),
        ("file", "mv -f own name"),
        ("file", "exchange own name"),
        ("file", "exchange name own"),
        ("directory", "rmdir name"),
        ("directory", "mv -T name elsewhere"),
        ("directory", "mv -fT owned name"),
    ];
    for (at, (kind, attack)) in attacks.into_iter().enumerate() {
        let directory = format!("open/{at}");
        let (here, there) = (mounted.path(&directory), data.join(&directory));
        fs::create_dir(&there).unwrap();
        fs::set_permissions(&there, Permissions::from_mode(0o1777)).unwrap();
        let make = if kind == "file" { "echo bytes > name" } else { "mkdir name" };
        // The kernel learns that the name is the attacker's.
        assert_eq!(by(OTHER, &[], &there, &format!("{make}; echo own > own; mkdir owned")), "");
        assert_eq!(by(OTHER, &[], &here, "stat -c %u name own owned"), "4002\n4002\n4002\n");
        assert_eq!(by(OTHER, &[], &there, "mv name swapped"), "");
        assert_eq!(by(VICTIM, &[], &there, make), "");
        let victim = fs::metadata(there.join("name")).unwrap();
        let said = by(OTHER, &[], &here, &format!("{EXCHANGE}\n{attack}"));
        assert!(said.contains("not permitted") || said.contains("Stale"), "{attack}: {said:?}");
        let found = fs::metadata(there.join("name")).unwrap();
        assert_eq!((found.ino(), found.uid()), (victim.ino(), VICTIM), "{attack}");
        assert!(!there.join("elsewhere").exists() && there.join("own").exists(), "{attack}");
    }
    mounted.stop();
}

// rule: a new name is given as the requesting user, so the host refuses a link to a file that was closed to that user
#[test]
fn a_user_gets_no_link_to_a_file_that_was_closed_on_the_host() {
    let Some((_scratch, data, mounted)) = shared(&OLD) else { return };
    let (here, there) = (mounted.path("open"), data.join("open"));
    assert_eq!(by(VICTIM, &[], &there, "echo secret > file; chmod 666 file"), "");
    assert_eq!(by(OTHER, &[], &here, "stat -c %a file"), "666\n");
    assert_eq!(by(VICTIM, &[], &there, "chmod 600 file"), "");
    if !by(OTHER, &[], &there, "ln file link").contains("not permitted") {
        afflux_scratch::skipped!("the host has fs.protected_hardlinks=0");
        return;
    }
    assert!(by(OTHER, &[], &here, "ln file link").contains("not permitted"));
    assert_eq!(fs::metadata(there.join("file")).unwrap().nlink(), 1);
    mounted.stop();
}

// rule: a name is removed, moved and given with the requester's further groups, and with capabilities over a directory
// without the sticky bit
#[test]
fn further_groups_and_capabilities_count_for_changes_of_names() {
    let Some((_scratch, data, mounted)) = shared(&[]) else { return };
    for (name, mode, group) in [("team", 0o770, TEAM), ("roots", 0o755, 0), ("sticky", 0o1755, 0)] {
        let directory = data.join(name);
        fs::create_dir(&directory).unwrap();
        chown(&directory, Some(0), Some(group)).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
        for file in ["one", "two", "three"] {
            fs::write(directory.join(file), "bytes").unwrap();
            fs::set_permissions(directory.join(file), Permissions::from_mode(0o666)).unwrap();
        }
        fs::create_dir(directory.join("sub")).unwrap();
    }
    let change = "rm -f one && mv -f two moved && mv -f moved three && ln three link && rmdir sub && ls";
    let changed = "link\nthree\n";
    let team = &["--groups=7,5555,8"];
    let capable = &["--inh-caps=+dac_override,+dac_read_search", "--ambient-caps=+dac_override,+dac_read_search"];
    assert!(by(OTHER, &[], &mounted.path("roots"), "rm -f one").contains("denied"));
    assert!(by(OTHER, team, &mounted.path("roots"), "rm -f one").contains("denied"));
    assert!(by(OTHER, &["--groups=7"], &mounted.point, "rm -f team/one").contains("denied"));
    assert_eq!(by(OTHER, team, &mounted.path("team"), change), changed);
    assert_eq!(by(OTHER, capable, &mounted.path("roots"), change), changed);
    assert!(by(OTHER, capable, &mounted.path("sticky"), "rm -f one").contains("not permitted"));
    let all = &["--inh-caps=+dac_override,+fowner", "--ambient-caps=+dac_override,+fowner"];
    assert!(!by(OTHER, all, &mounted.path("sticky"), "rm -f one").is_empty(), "no capability passes the sticky bit");
    assert_eq!(by(0, &[], &mounted.path("sticky"), change), changed);
    for directory in ["team", "roots", "sticky"] {
        assert_eq!(fs::read_dir(data.join(directory)).unwrap().count(), 2, "{directory}");
    }
    mounted.stop();
}

/// A file of a user in the open directory, with these bits and these bytes.
fn file_of(user: u32, at: &Path, mode: u32) {
    fs::write(at, "bytes").unwrap();
    chown(at, Some(user), Some(user)).unwrap();
    fs::set_permissions(at, Permissions::from_mode(mode)).unwrap();
}

fn bits(at: &Path) -> u32 {
    fs::metadata(at).unwrap().mode() & 0o7777
}

/// Leaves the owner and the group as they are: chown(-1, -1).
const KEEP_OWNER: &str = "chown ''";

// rule: chown(-1, -1) takes the setuid and setgid bits from a file for its owner, and is refused to all others
#[test]
fn an_unchanged_owner_costs_a_file_its_bits_for_its_owner_alone() {
    let Some((_scratch, data, mounted)) = shared(&[]) else { return };
    for name in ["host", "mount"] {
        file_of(VICTIM, &data.join("open").join(name), 0o6775);
    }
    for (name, directory) in [("host", data.join("open")), ("mount", mounted.path("open"))] {
        let at = data.join("open").join(name);
        let change = format!("{KEEP_OWNER} {name}");
        assert!(by(OTHER, &[], &directory, &change).contains("not permitted"), "{name}");
        assert_eq!(bits(&at), 0o6775, "{name}");
        assert_eq!(by(VICTIM, &[], &directory, &change), "", "{name}");
        assert_eq!(bits(&at), 0o775, "{name}");
        assert_eq!(by(OTHER, &[], &directory, &change), "", "{name}: nothing is to be taken");
    }
    assert_eq!(fs::metadata(mounted.path("open/mount")).unwrap().mode() & 0o7777, 0o775);
    mounted.stop();
}

// rule: who has a file open for writing may reserve space, and that takes the setuid and setgid bits
#[test]
fn space_reserved_by_another_user_costs_a_file_its_bits() {
    let Some((_scratch, data, mounted)) = shared(&[]) else { return };
    let at = data.join("open/file");
    file_of(VICTIM, &at, 0o6777);
    assert_eq!(by(OTHER, &[], &mounted.path("open"), "fallocate -l 8192 file && stat -c %s file"), "8192\n");
    assert_eq!(bits(&at), 0o777);
    mounted.stop();
}

/// Calls that an owner may make.
const OF_OWNERS: [&str; 9] = [
    "chmod 777 name",
    "chgrp 4002 name",
    "touch -d 2001-01-01 name",
    "touch name",
    "truncate -s 1 name",
    "setfattr -n user.key -v value name",
    "setfattr -x user.old name",
    "setfacl -m u:4002:rwx name",
    "sh -c 'echo more >> name'",
];

// rule: an owner of a second ago changes and opens nothing: the host decides about the owner and the mode of now
#[test]
fn a_user_who_owned_a_file_a_moment_ago_changes_and_reads_nothing() {
    let Some((_scratch, data, mounted)) = shared(&OLD) else { return };
    let (here, there) = (mounted.path("open"), data.join("open"));
    for attack in OF_OWNERS.into_iter().chain(["cat name", ": > name"]) {
        let at = there.join("name");
        let _ = fs::remove_file(&at);
        file_of(OTHER, &at, 0o600);
        assert_eq!(by(OTHER, &[], &there, "setfattr -n user.old -v value name"), "");
        // The kernel learns that the file is the attacker's.
        assert_eq!(by(OTHER, &[], &here, "stat -c %u:%a name && cat name"), "4002:600\nbytes");
        chown(&at, Some(VICTIM), Some(VICTIM)).unwrap();
        let before = fs::metadata(&at).unwrap();
        let said = by(OTHER, &[], &here, attack);
        assert!(said.contains("not permitted") || said.contains("denied"), "{attack}: {said:?}");
        let after = fs::metadata(&at).unwrap();
        assert_eq!((after.ctime(), after.ctime_nsec()), (before.ctime(), before.ctime_nsec()), "{attack}");
        assert_eq!(fs::read(&at).unwrap(), b"bytes", "{attack}");
        fs::remove_file(mounted.path("open/name")).unwrap();
    }
    let closed = there.join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("secret"), "").unwrap();
    assert_eq!(by(OTHER, &[], &here, "ls closed"), "secret\n");
    fs::set_permissions(&closed, Permissions::from_mode(0o711)).unwrap();
    assert!(by(OTHER, &[], &here, "ls closed").contains("denied"));
    mounted.stop();
}

// rule: the requester's further groups and capabilities count for changes of an object and for opens, and capabilities
// of a user namespace for its own users alone
#[test]
fn further_groups_and_capabilities_count_for_objects() {
    let Some((_scratch, data, mounted)) = shared(&OLD) else { return };
    let (here, there) = (mounted.path("open"), data.join("open"));
    let at = there.join("file");
    let team: &[&str] = &["--groups=7,5555"];
    file_of(OTHER, &at, 0o600);
    assert_eq!(by(OTHER, team, &here, "chgrp 5555 file && chmod 2770 file && setfacl -m g:7:rwx file"), "");
    assert_eq!((bits(&at), fs::metadata(&at).unwrap().gid()), (0o2770, TEAM));
    assert_eq!(
        by(VICTIM, team, &here, "cat file; echo >> file; truncate -s 3 file; setfattr -n user.a -v b file"),
        "bytes"
    );
    assert_eq!(fs::read(&at).unwrap(), b"byt");
    assert!(by(VICTIM, team, &here, "chmod 777 file").contains("not permitted"));
    assert!(by(VICTIM, &["--groups=8"], &here, "cat file").contains("denied"));
    for (capability, change) in
        [("fowner", "chmod 640 file"), ("chown", "chown 4001 file"), ("dac_override", "cat file; echo more > file")]
    {
        file_of(OTHER, &at, 0o600);
        let (inherited, ambient) = (format!("--inh-caps=+{capability}"), format!("--ambient-caps=+{capability}"));
        let said = by(VICTIM, &[&inherited, &ambient], &here, change);
        assert!(said.is_empty() || said == "bytes", "{capability}: {said}");
        file_of(OTHER, &at, 0o600);
        assert_ne!(by(VICTIM, &[], &here, change), said, "{capability}");
    }
    // The kernel takes the file for the attacker's, whose namespace has a capability over it.
    file_of(VICTIM, &at, 0o600);
    by(0, &[], &here, "stat file; chown 4001:4001 file; stat file");
    chown(&at, Some(OTHER), Some(OTHER)).unwrap();
    let sub = there.join("sub");
    fs::create_dir(&sub).unwrap();
    fs::write(sub.join("kept"), "bytes").unwrap();
    by(0, &[], &here, "chown 4001 sub; stat sub sub/kept");
    chown(&sub, Some(OTHER), Some(OTHER)).unwrap();
    if by(VICTIM, &[], &here, "unshare -r true").is_empty() {
        assert!(by(VICTIM, &[], &here, "unshare -r rm -f sub/kept").contains("denied"));
        assert!(by(VICTIM, &[], &here, "unshare -r setfattr -n user.a -v b file").contains("denied"));
        let said = by(VICTIM, &[], &here, "unshare -r chmod 777 file; unshare -r cat file");
        assert!(said.contains("not permitted") && said.contains("denied"), "{said}");
    }
    assert_eq!(bits(&at), 0o600);
    mounted.stop();
}

// rule: a program is run by a user who may not read it, and by nobody who may not run it any more
#[test]
fn who_may_run_a_program_of_a_mount_need_not_read_it() {
    let Some((_scratch, data, mounted)) = shared(&OLD) else { return };
    let at = data.join("open/program");
    fs::copy("/bin/echo", &at).unwrap();
    fs::set_permissions(&at, Permissions::from_mode(0o711)).unwrap();
    let here = mounted.path("open");
    assert_eq!(by(OTHER, &[], &here, "./program runs"), "runs\n");
    assert!(by(OTHER, &[], &here, "cat program").contains("denied"));
    fs::set_permissions(&at, Permissions::from_mode(0o700)).unwrap();
    assert!(by(OTHER, &[], &here, "./program runs").contains("denied"));
    mounted.stop();
}
