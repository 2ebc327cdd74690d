//! `afflux mount`: a directory through the kernel's FUSE, used by ordinary programs.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::mounted::{Mounted, NOT_CONNECTED, apart, can_mount, is_mounted, shell};
use crate::scratch::{Bytes, Mount, Scratch};
use crate::server::{LAZY, Server, afflux_at, run, text};

#[test]
fn files_are_written_read_renamed_truncated_and_listed() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    fs::write(data.join("before"), "was there").unwrap();
    let mounted = Mounted::start(scratch.path(), &data, &point);
    assert_eq!(fs::read_to_string(mounted.path("before")).unwrap(), "was there");
    let bytes = Bytes::new(1).vec(3_000_017);
    fs::create_dir_all(mounted.path("a/b")).unwrap();
    fs::write(mounted.path("a/file"), &bytes).unwrap();
    fs::rename(mounted.path("a/file"), mounted.path("a/b/moved")).unwrap();
    assert!(fs::read(mounted.path("a/b/moved")).unwrap() == bytes);
    let mut file = OpenOptions::new().read(true).write(true).open(mounted.path("a/b/moved")).unwrap();
    file.set_len(1_000_000).unwrap();
    file.write_all_at(b"patch", 4094).unwrap();
    file.seek(SeekFrom::Start(4090)).unwrap();
    let mut around = [0; 12];
    file.read_exact(&mut around).unwrap();
    assert_eq!(around[..], [&bytes[4090..4094], b"patch", &bytes[4099..4102]].concat());
    assert_eq!(file.metadata().unwrap().len(), 1_000_000);
    fs::set_permissions(mounted.path("a/b/moved"), Permissions::from_mode(0o640)).unwrap();
    fs::hard_link(mounted.path("a/b/moved"), mounted.path("second")).unwrap();
    symlink("a/b/moved", mounted.path("link")).unwrap();
    assert_eq!(fs::metadata(mounted.path("link")).unwrap().nlink(), 2);
    assert_eq!(fs::metadata(mounted.path("second")).unwrap().mode() & 0o7777, 0o640);
    for at in 0..500 {
        fs::write(mounted.path(&format!("a/{at}")), at.to_string()).unwrap();
    }
    assert_eq!(fs::read_dir(mounted.path("a")).unwrap().count(), 501);
    fs::remove_file(mounted.path("a/17")).unwrap();
    assert_eq!(fs::remove_dir(mounted.path("a")).unwrap_err().raw_os_error(), Some(39), "not empty");
    drop(file);
    mounted.stop();
    let host = fs::read(data.join("a/b/moved")).unwrap();
    assert!(host[..4094] == bytes[..4094] && host[4099..] == bytes[4099..1_000_000] && &host[4094..4099] == b"patch");
    assert_eq!(fs::read_to_string(data.join("a/499")).unwrap(), "499");
    assert!(!data.join("a/17").exists() && data.join("second").exists());
}

#[test]
fn a_directory_is_mounted_over_itself_and_programs_run_from_it() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    fs::write(data.join("below"), "below").unwrap();
    let mounted = Mounted::start(scratch.path(), &data, &data);
    assert!(is_mounted(&data));
    let output = shell("cat below; cp /bin/sh program; chmod 755 program; ./program -c 'echo ran' | tee out", &data);
    assert_eq!(text(&output), "belowran\n");
    // ".." of a directory below must not lead into the mount.
    let output = shell("mkdir -p a/b; echo deep > a/b/c; mv a/b moved; cat moved/c; ls a moved", &data);
    assert_eq!(text(&output), "deep\na:\n\nmoved:\nc\n");
    mounted.stop();
    assert_eq!(fs::read_to_string(data.join("moved/c")).unwrap(), "deep\n");
    assert_eq!(fs::read_to_string(data.join("out")).unwrap(), "ran\n");
}

#[test]
fn two_processes_see_each_others_writes_at_once_and_append_in_turn() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mounted = Mounted::start(scratch.path(), &data, &point);
    let append = |word: &str| {
        let script = format!("for i in $(seq 300); do echo {word} >> shared; done");
        Command::new("sh").args(["-ec", &script]).current_dir(&point).spawn().unwrap()
    };
    let children = [append("one"), append("other")];
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let lines = fs::read_to_string(mounted.path("shared")).unwrap();
    assert_eq!((lines.matches("one\n").count(), lines.matches("other\n").count()), (300, 300));
    let file = File::create(mounted.path("seen")).unwrap();
    for round in 0..20_u64 {
        file.write_all_at(format!("{round:08}").as_bytes(), round * 8).unwrap();
        let output = shell("tail -c 8 seen", &point);
        assert_eq!(text(&output), format!("{round:08}"));
    }
    drop(file);
    mounted.stop();
}

#[test]
fn a_killed_server_is_not_connected_and_synced_bytes_are_on_the_host() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mut mounted = Mounted::start(scratch.path(), &data, &point);
    let bytes = Bytes::new(2).vec(2_000_003);
    let mut file = File::create(mounted.path("synced")).unwrap();
    file.write_all(&bytes).unwrap();
    file.sync_all().unwrap();
    fs::write(mounted.path("not synced"), "who knows").unwrap();
    mounted.server.take().unwrap().kill();
    assert_eq!(file.write_all(b"late").unwrap_err().raw_os_error(), NOT_CONNECTED);
    // A name that the kernel does not remember.
    assert_eq!(fs::metadata(mounted.path("unknown")).unwrap_err().raw_os_error(), NOT_CONNECTED);
    assert!(is_mounted(&point), "programs must not write below a mount that died");
    assert!(fs::read(data.join("synced")).unwrap() == bytes);
}

#[test]
fn umount_writes_everything_and_ends_the_server() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mut mounted = Mounted::start(scratch.path(), &data, &point);
    let bytes = Bytes::new(3).vec(5_000_000);
    fs::write(mounted.path("file"), &bytes).unwrap();
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
    let ended = mounted.server.take().unwrap().wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(fs::read(data.join("file")).unwrap() == bytes);
}

#[test]
fn a_mount_in_use_ends_at_a_signal_and_its_users_get_errors() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mut mounted = Mounted::start(scratch.path(), &data, &point);
    let mut file = File::create(mounted.path("open")).unwrap();
    file.write_all(b"before the end").unwrap();
    let ended = mounted.server.take().unwrap().stop();
    assert!(ended.stderr.contains("is in use"), "{ended:?}");
    assert!(!is_mounted(&point));
    assert_eq!(file.write_all(b"late").unwrap_err().raw_os_error(), NOT_CONNECTED);
    assert_eq!(fs::read(data.join("open")).unwrap(), b"before the end");
}

/// How often the server's threads whose names begin so have given up their processor by themselves.
fn switches(server: &Server, threads: &str) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.process())).unwrap();
    let status = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
    let of = status.filter(|status| status.starts_with(&format!("Name:\t{threads}")));
    let counts = of.filter_map(|status| {
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        count.trim().parse::<u64>().ok()
    });
    counts.sum()
}

// rule: a mount makes and removes names on the thread that took the request
#[test]
fn names_are_made_and_removed_without_a_hand_over() {
    const FILES: u64 = 400;
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mounted = Mounted::start(scratch.path(), &data, &point);
    let path = |at| mounted.path(&format!("n{at}"));
    let others = |mounted: &Mounted| switches(mounted.server(), "afflux-");
    let before = (others(&mounted), switches(mounted.server(), "fuse-"));
    for at in 0..FILES {
        File::create_new(path(at)).unwrap();
    }
    for at in 0..FILES {
        fs::remove_file(path(at)).unwrap();
    }
    let after = (others(&mounted), switches(mounted.server(), "fuse-"));
    assert!(after.1 > before.1, "these threads have the work");
    // Timers and the writeback of times wake the others now and then. Hand-overs between threads were ten a file.
    let of_others = after.0 - before.0;
    assert!(of_others < FILES, "{of_others} switches of threads that have no part in {FILES} files");
    mounted.stop();
}

// rule: one thread of a mount answers a lone caller, with at most one switch a call, while the others rest
#[test]
fn one_thread_answers_a_lone_caller() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mounted = Mounted::start(scratch.path(), &data, &point);
    let file = File::create(mounted.path("file")).unwrap();
    let by_thread = || ["fuse-0", "fuse-1", "fuse-2", "fuse-3"].map(|thread| switches(mounted.server(), thread));
    for (bytes, writes) in [(4096, 2000), (512 << 10, 400)] {
        let block = vec![1; bytes];
        let round = |_| {
            let before = by_thread();
            (0..writes).for_each(|_| file.write_all_at(&block, 0).unwrap());
            let after = by_thread();
            [0, 1, 2, 3].map(|at| after[at] - before[at])
        };
        // A call of the host needs a second thread, which stays for some more messages.
        let is_one = |counts: &[u64; 4]| {
            let (all, most) = (counts.iter().sum::<u64>(), *counts.iter().max().unwrap());
            // A thread that finds the next call waiting need not switch.
            (all - most) * 8 <= all && all <= writes + writes / 10
        };
        let rounds: Vec<_> = (0..10).map(round).collect();
        assert!(rounds.iter().any(is_one), "switches by thread for {writes} writes of {bytes} bytes: {rounds:?}");
    }
    mounted.stop();
}

// rule: a mount's call that hangs in the host can be interrupted, and calls that need no host go on
#[test]
fn calls_that_hang_in_the_host_are_interrupted_and_others_go_on() {
    /// More than the threads of a mount.
    const CALLS: usize = 6;
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let Some(_disk) = crate::scratch::Mount::ext4(&scratch.path().join("image"), &data, 64 << 20) else { return };
    let mounted = Mounted::start_with(
        scratch.path(),
        &data,
        &point,
        &["--set", "attributes_idle_centisecs=100000", "--metrics", "127.0.0.1:0"],
    );
    let address = mounted.server().ready["metrics"].as_str().unwrap().to_owned();
    let figure = |name: &str| {
        let answer = crate::live::get(&address, "/metrics");
        let row = answer.lines().find(|line| line.starts_with(name)).and_then(|line| line.rsplit_once(' '));
        row.map(|(_, value)| value.parse::<f64>().unwrap() as u64).unwrap_or_else(|| panic!("no {name}: {answer}"))
    };
    let bytes = Bytes::new(5).vec(100_000);
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(mounted.path("there"));
    let file = file.unwrap();
    file.write_all_at(&bytes, 0).unwrap();
    file.sync_all().unwrap();
    // The kernel makes one name of a directory at a time.
    let late = |at: usize| format!("d{at}/late");
    (0..CALLS).for_each(|at| fs::create_dir(mounted.path(&format!("d{at}"))).unwrap());
    let Some(frozen) = crate::hanging::Frozen::freeze(&data) else { return };
    let touch = |at| Command::new("touch").arg(mounted.path(&late(at))).spawn().unwrap();
    let mut hung: Vec<_> = (0..CALLS).map(touch).collect();
    let in_progress = || figure("afflux_fuse_calls_waiting") == CALLS as u64;
    afflux_scratch::eventually("all calls are in the host", in_progress);
    let mut read = vec![0; bytes.len()];
    file.read_exact_at(&mut read, 0).unwrap();
    assert!(read == bytes, "cached bytes are served meanwhile");
    assert_eq!(file.metadata().unwrap().len(), 100_000);
    for child in &mut hung {
        child.kill().unwrap();
        afflux_scratch::eventually("it ends while the host hangs", || matches!(child.try_wait(), Ok(Some(_))));
    }
    drop(frozen);
    // The creations happen all the same, and nobody holds the files.
    let made = || (0..CALLS).all(|at| data.join(late(at)).exists());
    afflux_scratch::eventually("the changes run to their end", made);
    drop(file);
    afflux_scratch::eventually("no file stays open", || figure("afflux_fuse_open_files") == 0);
    for at in 0..CALLS {
        fs::remove_file(mounted.path(&late(at))).unwrap();
    }
    mounted.stop();
}

#[test]
fn other_users_have_their_own_rights_and_own_what_they_make() {
    if !can_mount() || !crate::scratch::can_be_several_users() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mounted = Mounted::start(scratch.path(), &data, &point);
    fs::write(mounted.path("secret"), "root's").unwrap();
    fs::set_permissions(mounted.path("secret"), Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(mounted.path("open")).unwrap();
    fs::set_permissions(mounted.path("open"), Permissions::from_mode(0o1777)).unwrap();
    fs::create_dir(mounted.path("team")).unwrap();
    std::os::unix::fs::chown(mounted.path("team"), Some(0), Some(5555)).unwrap();
    fs::set_permissions(mounted.path("team"), Permissions::from_mode(0o770)).unwrap();
    let user = |groups: &str, script: &str| {
        let groups = if groups.is_empty() { "--clear-groups".to_owned() } else { format!("--groups={groups}") };
        let arguments = ["--reuid=4444", "--regid=4444", &groups, "sh", "-c", script];
        text(&Command::new("setpriv").args(arguments).current_dir(&point).output().unwrap())
    };
    assert!(user("", "cat secret").contains("Permission denied"));
    assert!(user("", "echo x > mine").contains("Permission denied"), "the root of the mount is root's");
    assert_eq!(user("", "umask 022; echo mine > open/mine; mkdir open/sub; ln -s x open/link"), "");
    for name in ["open/mine", "open/sub", "open/link"] {
        let found = fs::symlink_metadata(mounted.path(name)).unwrap();
        assert_eq!((found.uid(), found.gid()), (4444, 4444), "{name}");
    }
    assert_eq!(fs::metadata(mounted.path("open/mine")).unwrap().mode() & 0o777, 0o644);
    assert!(user("", "echo x > team/file").contains("Permission denied"));
    assert_eq!(user("5555", "echo x > team/file && cat team/file"), "x\n", "by a further group");
    assert!(user("", "chmod 777 secret").contains("not permitted"));
    fs::write(mounted.path("open/of root"), "").unwrap();
    assert!(user("", "rm -f 'open/of root'").contains("not permitted"), "the sticky bit");
    assert_eq!(user("", "chmod 600 open/mine && mv open/mine open/moved && rm open/moved"), "");
    mounted.stop();
    assert_eq!(fs::metadata(data.join("team/file")).unwrap().uid(), 4444);
}

#[test]
fn a_removed_open_file_a_file_without_a_name_and_an_exchange_work() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mounted = Mounted::start(scratch.path(), &data, &point);
    let bytes = Bytes::new(5).vec(300_000);
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(mounted.path("gone")).unwrap();
    file.write_all(&bytes).unwrap();
    fs::remove_file(mounted.path("gone")).unwrap();
    file.write_all_at(b"after", 299_998).unwrap();
    file.sync_all().unwrap();
    file.set_len(300_001).unwrap();
    let found = file.metadata().unwrap();
    assert_eq!((found.len(), found.nlink()), (300_001, 0));
    let mut back = vec![0; 300_001];
    file.read_exact_at(&mut back, 0).unwrap();
    assert!(back[..299_998] == bytes[..299_998] && &back[299_998..] == b"aft");
    drop(file);
    let tmpfile = OFlags::TMPFILE | OFlags::RDWR;
    let unnamed = File::from(rustix::fs::open(&point, tmpfile, Mode::from_raw_mode(0o640)).unwrap());
    unnamed.write_all_at(b"named later", 0).unwrap();
    let link = format!("/proc/self/fd/{}", unnamed.as_raw_fd());
    rustix::fs::linkat(CWD, &link, CWD, mounted.path("named"), AtFlags::SYMLINK_FOLLOW).unwrap();
    assert_eq!(fs::read_to_string(mounted.path("named")).unwrap(), "named later");
    fs::write(mounted.path("other"), "other").unwrap();
    let rename = |flags| rustix::fs::renameat_with(CWD, mounted.path("named"), CWD, mounted.path("other"), flags);
    assert_eq!(rename(RenameFlags::NOREPLACE), Err(Errno::EXIST));
    assert_eq!(rename(RenameFlags::WHITEOUT | RenameFlags::NOREPLACE), Err(Errno::EXIST));
    rename(RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read_to_string(mounted.path("named")).unwrap(), "other");
    let sparse = File::create(mounted.path("sparse")).unwrap();
    sparse.write_all_at(&[1; 4096], 1 << 20).unwrap();
    assert_eq!(rustix::fs::seek(&sparse, rustix::fs::SeekFrom::Data(0)), Ok(1 << 20));
    assert_eq!(rustix::fs::seek(&sparse, rustix::fs::SeekFrom::Hole(1 << 20)), Ok((1 << 20) + 4096));
    let punch = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&sparse, punch, 1 << 20, 2000).unwrap();
    let around = fs::read(mounted.path("sparse")).unwrap();
    assert!(around[1 << 20..][..2000] == [0; 2000] && around[(1 << 20) + 2000..] == [1; 2096]);
    drop((unnamed, sparse));
    mounted.stop();
    assert_eq!(fs::read_to_string(data.join("other")).unwrap(), "named later");
    assert!(!data.join("gone").exists());
}

// rule: a second mount over the same directory is refused, a server above a mount says so, and a mount in use names its
// users
#[test]
fn what_lies_above_a_mount_is_refused_or_told() {
    if !can_mount() {
        return;
    }
    let (scratch, other) = (Scratch::new(), Scratch::new());
    let point = scratch.directory("data");
    let mounted = Mounted::start(scratch.path(), &point, &point);
    let shown = point.to_str().unwrap();
    let again = run(other.path(), &["mount", shown, shown]);
    assert_eq!(again.status.code(), Some(1), "{}", text(&again));
    assert!(text(&again).contains("is mounted by Afflux already"), "{}", text(&again));
    let above = Server::start(other.path(), &[point.as_path()], &[]);
    assert!(above.ready["notes"].to_string().contains("two caches lie above each other"), "{}", above.ready);
    above.stop();
    let open = File::create(mounted.path("file")).unwrap();
    let busy = run(scratch.path(), &["umount", shown]);
    let user = format!("(process {})", std::process::id());
    assert!(busy.status.code() == Some(1) && text(&busy).contains(&user), "{}", text(&busy));
    drop(open);
    mounted.stop();
}

/// Changes files of a lower layer through an overlayfs. `$PWD` is the mount.
const OVERLAY: &str = "set -e
mkdir up work ../low ../low/dir ../over
echo one > ../low/file; echo two > ../low/other; echo in > ../low/dir/inner
mount -t overlay overlay -o userxattr,lowerdir=$PWD/../low,upperdir=$PWD/up,workdir=$PWD/work ../over
trap 'umount -l ../over' EXIT
(cd ../over; mv file moved; rm other; rm -r dir; echo new > made; ls; cat moved made)
stat -c '%n %F %t,%T' up/file up/other up/dir
";

// rule: a mount is the upper layer of an overlayfs, whose renames and removals leave whiteouts
#[test]
fn a_mount_is_the_upper_layer_of_an_overlayfs() {
    if !can_mount() {
        return;
    }
    let has_overlay = fs::read_to_string("/proc/filesystems").unwrap().contains("\toverlay");
    if !has_overlay {
        afflux_scratch::skipped!("this kernel has no overlayfs");
        return;
    }
    for is_store in [false, true] {
        let scratch = Scratch::new();
        let (data, point) = (scratch.directory("data"), scratch.directory("point"));
        let place = if is_store { PathBuf::from(format!("file://{}", data.display())) } else { data };
        let mounted = Mounted::start(scratch.path(), &place, &point);
        let device = |name: &str| format!("up/{name} character special file 0,0\n");
        let expected = format!("made\nmoved\none\nnew\n{}{}{}", device("file"), device("other"), device("dir"));
        assert_eq!(text(&shell(OVERLAY, &point)), expected, "a store: {is_store}");
        mounted.stop();
    }
}

/// Reads a mapped byte of the file, until it is the second one given.
const MAPPED: &str = "import mmap, os, sys, time
with open('file', 'rb') as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    print(chr(mapped[0]), flush=True)
    sys.stdin.readline()
    end = time.monotonic() + 30
    while mapped[0] != ord('B') and time.monotonic() < end:
        os.stat('file')
        time.sleep(0.01)
    print(chr(mapped[0]))
";

#[test]
fn a_mapping_shows_what_a_program_of_the_host_wrote() {
    shows_foreign_bytes(&[]);
}

#[test]
fn bytes_that_the_kernel_keeps_go_when_a_program_of_the_host_writes() {
    shows_foreign_bytes(&["--kernel-cache"]);
}

fn shows_foreign_bytes(flags: &[&str]) {
    if !can_mount() {
        return;
    }
    if Command::new("python3").arg("--version").output().is_err() {
        afflux_scratch::skipped!("python3 is not installed");
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    fs::write(data.join("file"), [b'A'; 8192]).unwrap();
    let mounted = Mounted::start_with(scratch.path(), &data, &point, flags);
    let calls = |name: &str| mounted.server().stat()["nfs"]["calls"][name].as_u64().unwrap();
    let mut reader = Command::new("python3")
        .args(["-c", MAPPED])
        .current_dir(&point)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = BufReader::new(reader.stdout.take().unwrap()).lines();
    assert_eq!(shown.next().unwrap().unwrap(), "A");
    // The second reader finds the first one's pages only if the kernel caches them.
    assert_eq!(fs::read(mounted.path("file")).unwrap(), [b'A'; 8192]);
    let reads = calls("fuse_read");
    assert_eq!(fs::read(mounted.path("file")).unwrap(), [b'A'; 8192]);
    assert_eq!(calls("fuse_read") == reads, flags.contains(&"--kernel-cache"));
    // The size stays: the kernel itself notices another size.
    fs::write(data.join("file"), [b'B'; 8192]).unwrap();
    writeln!(reader.stdin.take().unwrap()).unwrap();
    assert_eq!(shown.next().unwrap().unwrap(), "B");
    assert!(reader.wait().unwrap().success());
    mounted.stop();
}

/// Whether a test can set lists here, and act as their users.
pub(crate) fn can_set_lists() -> bool {
    let missing = ["setfacl", "setfattr"].into_iter().find(|it| Command::new(it).arg("--version").output().is_err());
    if let Some(program) = missing {
        afflux_scratch::skipped!("{program} is not installed");
    }
    missing.is_none() && can_mount() && crate::scratch::can_be_several_users()
}

/// What a shell below the mount says to user 4444.
pub(crate) fn says_to_user(script: &str, point: &Path) -> String {
    let arguments = ["--reuid=4444", "--regid=4444", "--clear-groups", "sh", "-c", script];
    text(&Command::new("setpriv").args(arguments).current_dir(point).output().unwrap())
}

/// Lists on a mount of any source count, come back, and bound new modes.
pub(crate) fn check_lists(mounted: &Mounted, point: &Path) {
    fs::set_permissions(point, Permissions::from_mode(0o755)).unwrap();
    fs::write(mounted.path("file"), "text").unwrap();
    fs::set_permissions(mounted.path("file"), Permissions::from_mode(0o600)).unwrap();
    let user = |script: &str| says_to_user(script, point);
    assert!(user("cat file").contains("Permission denied"));
    assert!(user("setfacl -m u:4444:r file").contains("not permitted"), "only the owner changes the list");
    assert_eq!(text(&shell("setfacl -m u:4444:r file", point)), "");
    assert_eq!(user("cat file"), "text");
    assert!(user("echo x >> file").contains("Permission denied"));
    let listed = user("getfacl -n --omit-header file");
    assert!(listed.contains("user:4444:r--") && listed.contains("mask::r--"), "{listed}");
    assert_eq!(fs::metadata(mounted.path("file")).unwrap().mode() & 0o777, 0o640, "the mask is the group's bits");
    assert_eq!(text(&shell("setfacl -b file; chmod 600 file", point)), "");
    assert!(user("cat file").contains("Permission denied"));
    assert_eq!(text(&shell("setfattr -n user.a -v value file; getfattr -n user.a --only-values file", point)), "value");
    // The umask bounds a new mode, or the directory's list does.
    let made = "umask 027; mkdir plain listed; echo > plain/a; setfacl -d -m u:4444:rw,g::rw,m::rw,o::- listed; \
                echo > listed/a; setfacl -b -k listed; echo > listed/b; stat -c %a plain/a listed/a listed/b";
    assert_eq!(text(&shell(made, point)), "640\n660\n640\n");
}

#[test]
fn a_changed_access_control_list_counts_for_another_user() {
    if !can_set_lists() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mounted = Mounted::start(scratch.path(), &data, &point);
    check_lists(&mounted, &point);
    mounted.stop();
    assert!(text(&shell("getfattr -d file", &data)).contains("user.a=\"value\""));
}

#[test]
fn a_setuid_bit_goes_with_a_write_and_has_no_effect_below_the_mount() {
    if !can_mount() || !crate::scratch::can_be_several_users() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mounted = Mounted::start(scratch.path(), &data, &point);
    fs::copy("/usr/bin/id", mounted.path("id")).unwrap();
    fs::set_permissions(mounted.path("id"), Permissions::from_mode(0o4755)).unwrap();
    let output = Command::new("./id").arg("-u").current_dir(&point).uid(4444).gid(4444).output().unwrap();
    assert_eq!(text(&output), "4444\n");
    fs::write(mounted.path("program"), "x").unwrap();
    fs::set_permissions(mounted.path("program"), Permissions::from_mode(0o6777)).unwrap();
    let write = ["--reuid=4444", "--regid=4444", "--clear-groups", "sh", "-c", "echo y >> program"];
    assert!(Command::new("setpriv").args(write).current_dir(&point).status().unwrap().success());
    assert_eq!(fs::metadata(mounted.path("program")).unwrap().mode() & 0o7777, 0o777);
    mounted.stop();
    assert_eq!(fs::metadata(data.join("program")).unwrap().mode() & 0o7777, 0o777);
}

#[test]
fn stat_and_drain_work_on_a_mount_as_on_a_server() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mounted = Mounted::start(scratch.path(), &data, &point);
    let bytes = Bytes::new(4).vec(1_000_000);
    fs::write(mounted.path("file"), &bytes).unwrap();
    let stat = mounted.server().stat();
    assert_eq!(stat["listen"], point.to_str().unwrap());
    assert_eq!(stat["nfs"]["calls"]["fuse_create"], 1, "{stat}");
    assert!(stat["nfs"]["calls"]["fuse_write"].as_u64().unwrap() >= 1);
    let output = mounted.server().ask(&["drain"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(fs::read(data.join("file")).unwrap() == bytes);
    assert!(mounted.server().ask(&["top", "--once"]).status.success());
    mounted.stop();
}

#[test]
fn wrong_uses_are_named() {
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let (data, point) = (data.to_str().unwrap(), point.to_str().unwrap());
    let refused = |arguments: &[&str], code: i32, part: &str| {
        let output = run(scratch.path(), &[&["mount"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains(part), "{arguments:?}: {}", text(&output));
    };
    refused(&[data], 2, "MOUNTPOINT");
    refused(&[data, point, "--listen", "127.0.0.1:0"], 2, "--listen is a setting of `afflux serve` alone");
    refused(&[data, "/no/such/point"], 1, "/no/such/point does not exist; make it");
    refused(&[data, point, "--mount", point], 2, "--mount is a setting of `afflux serve` alone");
    refused(&["/no/such/directory", point], 1, "/no/such/directory does not exist");
    let state = format!("{point}/state");
    refused(&[data, point, "--state", &state], 2, "the server would wait for itself");
    assert!(!is_mounted(Path::new(point)));
}

#[test]
fn another_user_cannot_mount_over_the_directory_itself() {
    if !can_mount() || !crate::scratch::can_be_several_users() {
        return;
    }
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    fs::create_dir(data.join("below")).unwrap();
    for point in [data.clone(), data.join("below")] {
        let mut command = afflux_at(&scratch.program_for_others(), scratch.path());
        let output = command.arg("mount").arg(&data).arg(&point).uid(4444).gid(4444).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains("only root can mount over the directory itself"), "{}", text(&output));
    }
}

#[test]
fn a_mount_and_a_server_share_one_engine() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mut mounted = Mounted { server: None, point: point.clone() };
    let arguments = ["--mount", point.to_str().unwrap(), "--sole"];
    mounted.server = Some(Server::start(scratch.path(), &[&data], &arguments));
    assert!(is_mounted(&point));
    let bytes = Bytes::new(6).vec(700_000);
    fs::write(mounted.path("by mount"), &bytes).unwrap();
    let mut client = crate::client::Client::mount(mounted.server());
    let root = client.root();
    assert!(client.read_file(&root, "by mount") == bytes, "not written yet, and there");
    assert!(fs::metadata(mounted.path("by nfs")).is_err());
    client.write_file(&root, "by nfs", b"first");
    // The kernel took the name for absent, and is notified.
    afflux_scratch::eventually("the name is there", || fs::read(mounted.path("by nfs")).is_ok_and(|it| it == b"first"));
    let file = client.lookup(&root, "by nfs");
    client.write_at(&file, 0, b"other text");
    afflux_scratch::eventually("the size is new", || fs::metadata(mounted.path("by nfs")).unwrap().len() == 10);
    let stat = mounted.server().stat();
    let calls = &stat["nfs"]["calls"];
    assert!(calls["fuse_write"].as_u64() > Some(0) && calls["nfs_write"].as_u64() > Some(0), "{calls}");
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
    assert!(client.read_file(&root, "by mount") == bytes, "the server goes on");
    mounted.stop();
    assert!(fs::read(data.join("by mount")).unwrap() == bytes);
}

#[test]
fn the_settings_of_a_mount_need_a_mount() {
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let (data, point) = (data.to_str().unwrap(), point.to_str().unwrap());
    for flag in ["--kernel-cache", "--sole", "--sync", "--dirsync"] {
        let output = run(scratch.path(), &["serve", data, "--listen", "127.0.0.1:0", flag]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains("are settings of a mount"), "{}", text(&output));
    }
    let output = run(scratch.path(), &["serve", data, point, "--mount", point]);
    assert!(output.status.code() == Some(2) && text(&output).contains("one directory"), "{}", text(&output));
}

/// The error of changes below a mount for reading alone.
const READ_ONLY: Option<i32> = Some(30);

/// The helper of mount(8).
const HELPER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/mount.fuse.afflux");

#[test]
fn the_helper_of_mount_comes_back_once_the_mount_is_there() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    fs::write(data.join("file"), "text").unwrap();
    let mounted = Mounted { server: None, point: point.clone() };
    let control = scratch.path().join("control.sock");
    let own = Path::new(env!("CARGO_BIN_EXE_afflux")).parent().unwrap();
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap());
    let help = |options: &str| {
        let mut command = Command::new("sh");
        command.arg(HELPER).arg(&data).arg(&point).args(["-o", options]).env("PATH", &path);
        command.env("HOME", scratch.path()).env("XDG_STATE_HOME", scratch.path()).output().unwrap()
    };
    let output = help("rw,nofail,cache=64MiB,no-such-flag");
    assert_eq!(output.status.code(), Some(32), "{}", text(&output));
    // Without logger(1) the command's own words are on the terminal.
    assert!(text(&output).contains("no-such-flag"), "{}", text(&output));
    assert!(!is_mounted(&point));
    let output = help(&format!("rw,lazytime,errors=remount-ro,_netdev,cache=64MiB,sole,control={}", control.display()));
    assert!(output.status.success(), "{}", text(&output));
    assert!(is_mounted(&point));
    assert_eq!(fs::read_to_string(point.join("file")).unwrap(), "text");
    // umount(8) asks no helper without this.
    let named = format!("TARGET={} OPTS=uhelper=fuse.afflux", point.display());
    let table = fs::read_to_string("/run/mount/utab").unwrap();
    assert!(table.contains(&named), "{table}");
    let output = help("remount,ro,cache=64MiB");
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(fs::write(point.join("other"), "").unwrap_err().raw_os_error(), READ_ONLY);
    assert!(help("remount,rw").status.success());
    fs::write(point.join("other"), "").unwrap();
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
    // The server removes its socket at its end.
    afflux_scratch::eventually("the server ends", || !control.exists());
    let output = help(&format!("ro,sync,dirsync,cache=64MiB,control={}", control.display()));
    assert!(output.status.success(), "{}", text(&output));
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let row = table.lines().find(|row| row.contains(point.to_str().unwrap())).unwrap();
    assert!(row.contains("sync,dirsync"), "{row}");
    assert_eq!(fs::write(point.join("third"), "").unwrap_err().raw_os_error(), READ_ONLY);
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
    afflux_scratch::eventually("the server ends", || !control.exists());
    drop(mounted);
}

#[test]
fn an_option_of_the_helper_stays_as_it_is_where_files_match_it() {
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    fs::write(scratch.path().join("config=evil.toml"), "").unwrap();
    let programs = scratch.directory("programs");
    // Instead of the command: it shows its words.
    let shows = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > '{}'\n", scratch.path().join("words").display());
    fs::write(programs.join("afflux"), shows).unwrap();
    fs::set_permissions(programs.join("afflux"), Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.arg(HELPER).arg(&data).arg(&point).args(["-o", "rw,c*,config=[e]*,cache=1 GiB"]).env("PATH", path);
    let output = command.current_dir(scratch.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(32), "{}", text(&output));
    let words = || fs::read_to_string(scratch.path().join("words")).unwrap_or_default();
    afflux_scratch::eventually("the command has run", || words().ends_with("--json\n"));
    let expected =
        format!("mount\n{}\n{}\n--c*\n--config=[e]*\n--cache=1 GiB\n--json\n", data.display(), point.display());
    assert_eq!(words(), expected);
}

// rule: the process that waits to unmount has no privilege of root's but to unmount and to reach the point
#[test]
fn the_process_that_unmounts_has_few_privileges_and_unmounts_below_a_private_directory() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, home) = (scratch.directory("data"), scratch.directory("home"));
    let point = scratch.directory("home/point");
    std::os::unix::fs::chown(&home, Some(4444), Some(4444)).unwrap();
    fs::set_permissions(&home, Permissions::from_mode(0o700)).unwrap();
    let mounted = Mounted::start(scratch.path(), &data, &point);
    let server = mounted.server().process().to_string();
    let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", children.trim())).unwrap();
    let row = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    // CAP_DAC_READ_SEARCH and CAP_SYS_ADMIN.
    for set in ["CapEff:", "CapPrm:"] {
        assert_eq!(u64::from_str_radix(&row(set), 16).unwrap() & !(1 << 2 | 1 << 21), 0, "{set}");
    }
    assert_eq!(row("NoNewPrivs:"), "1");
    mounted.stop();
}

/// The helper of umount(8).
const UNMOUNT_HELPER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/umount.fuse.afflux");

// rule: the helper of umount(8) shows how much is left to write, and comes back once the server has ended
#[test]
fn the_helper_of_umount_shows_what_is_left_and_waits_for_the_end() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let Some(_disk) = crate::mount_shares::slow_disk(&scratch, &data, 8_000_000) else { return };
    let home = scratch.directory("home");
    let mut mounted = Mounted::start_with(&home, &data, &point, &LAZY);
    let bytes = Bytes::new(8).vec(12 << 20);
    let mut file = File::create(mounted.path("file")).unwrap();
    file.write_all(&bytes).unwrap();
    let own = Path::new(env!("CARGO_BIN_EXE_afflux")).parent().unwrap();
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap());
    let help =
        || Command::new("sh").arg(UNMOUNT_HELPER).arg(&point).args(["-t", "fuse.afflux"]).env("PATH", &path).output();
    let output = help().unwrap();
    assert!(!output.status.success() && text(&output).contains("busy"), "{}", text(&output));
    assert!(text(&output).contains("to write"), "{}", text(&output));
    assert!(is_mounted(&point), "a mount in use stays");
    file.write_all(&bytes).unwrap();
    drop(file);
    let output = help().unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", mounted.server().process())).unwrap();
    assert!(stat.contains(") Z "), "the server has not ended: {stat}");
    assert!(output.status.success() && text(&output).contains("to write"), "{}", text(&output));
    assert!(!is_mounted(&point));
    assert!(fs::read(data.join("file")).unwrap() == [bytes.clone(), bytes].concat());
    assert_eq!(mounted.server.take().unwrap().wait().code, Some(0));
    let output = run(scratch.path(), &["umount", point.to_str().unwrap()]);
    assert!(text(&output).contains("is no mount of `afflux mount`"), "{}", text(&output));
}

#[test]
fn a_directory_that_is_served_already_is_refused_and_nothing_is_mounted() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let first = Mounted::start(scratch.path(), &data, &point);
    let second = scratch.directory("second");
    let other = scratch.path().join("other.sock");
    let arguments = ["mount", data.to_str().unwrap(), second.to_str().unwrap(), "--control", other.to_str().unwrap()];
    let output = run(scratch.path(), &arguments);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(!is_mounted(&second));
    first.stop();
}

/// Whether a thread of the process sees a mount at `point`.
fn sees(process: u32, point: &Path) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let mut views = threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("mountinfo")));
    let at = format!(" {} ", point.display());
    views.any(|view| view.is_ok_and(|view| view.contains(&at)))
}

#[test]
fn the_server_follows_others_unmounting_and_does_not_see_its_own_mount() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let outer = scratch.directory("outer");
    let Some(_tree) = Mount::tmpfs(&outer, 16 << 20) else { return };
    // As the mounts of a host with systemd are.
    assert!(Command::new("mount").arg("--make-shared").arg(&outer).status().unwrap().success());
    let (data, disk) = (outer.join("data"), outer.join("disk"));
    fs::create_dir(&data).unwrap();
    fs::create_dir(&disk).unwrap();
    let before = outer.join("before");
    fs::create_dir(&before).unwrap();
    let Some(_before) = Mount::tmpfs(&before, 1 << 20) else { return };

    let mounted = Mounted::start(scratch.path(), &data, &data);
    let process = mounted.server().process();
    assert!(!sees(process, &before), "a mount from before the start");
    let Some(other) = Mount::tmpfs(&disk, 1 << 20) else { return };
    assert!(sees(process, &disk), "a later mount");
    assert!(!sees(process, &data), "its own mount");
    fs::write(mounted.path("file"), "bytes").unwrap();
    assert_eq!(fs::read(mounted.path("file")).unwrap(), b"bytes");
    drop(other);
    assert!(!sees(process, &disk), "the server still holds a disk that the host has unmounted");
    mounted.stop();
    assert_eq!(fs::read(data.join("file")).unwrap(), b"bytes");
}
