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

// rule: where the sticky bit keeps names, the host decides about the object that has the name now, not about the one that the kernel knows
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

// rule: a name is removed, moved and given with the requester's further groups, and with capabilities over a directory without the sticky bit
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
