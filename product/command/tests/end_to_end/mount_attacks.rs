//! Attacks on a mount: a full disk, a kill under load, a host that swaps names, many processes.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::client::Client;
use crate::mounted::{Mounted, NOT_CONNECTED, apart, can_mount, is_mounted, shell};
use crate::scratch::{Bytes, Mount, Scratch};
use crate::server::{Server, text};

const FULL: Option<i32> = Some(28);
const ABORTED: Option<i32> = Some(103);

// rule: on a full disk a mount's writes fail, what was written stays, and space that goes free is used
#[test]
fn a_full_disk_refuses_writes_and_reservations_and_takes_them_again_later() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let Some(_disk) = Mount::ext4(&scratch.path().join("image"), &data, 32 << 20) else { return };
    let mounted = Mounted::start(scratch.path(), &data, &point);
    let bytes = Bytes::new(1).vec(1 << 20);
    let kept = File::create(mounted.path("kept")).unwrap();
    kept.write_all_at(&bytes, 0).unwrap();
    kept.sync_all().unwrap();
    let large = OpenOptions::new().write(true).create_new(true).open(mounted.path("large")).unwrap();
    for mode in [FallocateFlags::empty(), FallocateFlags::KEEP_SIZE, FallocateFlags::ZERO_RANGE] {
        assert_eq!(fallocate(&large, mode, 0, 64 << 20), Err(Errno::NOSPC), "{mode:?}");
    }
    assert_eq!(large.metadata().unwrap().len(), 0);
    let collapses = FallocateFlags::COLLAPSE_RANGE;
    assert_eq!(fallocate(&large, collapses, 0, 4096), Err(Errno::OPNOTSUPP));
    let filled = (0..64).try_for_each(|at| large.write_all_at(&bytes, at << 20)).and_then(|()| large.sync_all());
    assert_eq!(filled.unwrap_err().raw_os_error(), FULL);
    assert!(fs::read(mounted.path("kept")).unwrap() == bytes);
    kept.write_all_at(b"over", 0).unwrap();
    kept.sync_all().unwrap();
    drop(large);
    fs::remove_file(mounted.path("large")).unwrap();
    let again =
        || fs::write(mounted.path("small"), &bytes).and_then(|()| File::open(mounted.path("small"))?.sync_all());
    afflux_scratch::eventually("there is room again", || again().is_ok());
    mounted.stop();
    assert!(fs::read(data.join("small")).unwrap() == bytes);
    assert!(fs::read(data.join("kept")).unwrap()[4..] == bytes[4..]);
}

// rule: after a kill under load each call on the mount fails, and all bytes that an fsync covered are on the disk
#[test]
fn a_kill_under_load_loses_nothing_that_was_synced() {
    const WRITERS: u64 = 6;
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mut mounted = Mounted::start(scratch.path(), &data, &point);
    let synced: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let block = |writer: u64, at: u64| Bytes::new(writer * 1_000_000 + at).vec(10_000);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (synced, path) = (&synced[writer as usize], mounted.path(&format!("file-{writer}")));
            scope.spawn(move || {
                let mut file = File::create(path).unwrap();
                for at in 0.. {
                    match file.write_all(&block(writer, at)).and_then(|()| file.sync_data()) {
                        Ok(()) => synced.store(at + 1, Ordering::Release),
                        // A call in progress is aborted.
                        Err(error) => {
                            return assert!([ABORTED, NOT_CONNECTED].contains(&error.raw_os_error()), "{error}");
                        }
                    }
                }
            });
        }
        let all_sync = || synced.iter().all(|count| count.load(Ordering::Acquire) > 20);
        afflux_scratch::eventually("all files have synced bytes", all_sync);
        mounted.server.take().unwrap().kill();
    });
    assert!(is_mounted(&point));
    assert_eq!(fs::read_dir(&point).unwrap_err().raw_os_error(), NOT_CONNECTED);
    for (writer, count) in (0..).zip(&synced) {
        let found = fs::read(data.join(format!("file-{writer}"))).unwrap();
        for (at, part) in (0..count.load(Ordering::Acquire)).zip(found.chunks(10_000)) {
            assert!(part == block(writer, at), "block {at} of file {writer}");
        }
        assert!(found.len() as u64 >= count.load(Ordering::Acquire) * 10_000);
    }
}

// rule: a host that swaps a directory and a symbolic link leads no call of a mount out of the directory
#[test]
fn names_that_the_host_swaps_during_calls_lead_nowhere_outside() {
    const ROUNDS: u32 = 400;
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let outside = scratch.directory("outside");
    fs::write(outside.join("file"), "outside").unwrap();
    fs::create_dir(data.join("real")).unwrap();
    fs::write(data.join("real/file"), "inside").unwrap();
    // The server would follow it; a program follows it in its own view, where it leads nowhere.
    symlink("../outside", data.join("link")).unwrap();
    let knob = ["--set", "attributes_idle_centisecs=1"];
    let mounted = Mounted::start_with(scratch.path(), &data, &point, &knob);
    let ends = AtomicBool::new(false);
    let nofollow = |name: &str| {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::RDONLY;
        let directory = rustix::fs::open(mounted.path(name), flags, rustix::fs::Mode::empty())?;
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CREATE;
        let file = File::from(rustix::fs::openat(&directory, "file", flags, mode)?);
        let mut read = [0; 6];
        file.read_exact_at(&mut read, 0).map_err(|_| Errno::IO)?;
        assert_eq!(&read, b"inside");
        file.write_all_at(b"inside", 0).map_err(|_| Errno::IO)
    };
    let mut reached = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Acquire) {
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                let (one, other) = (data.join("real"), data.join("link"));
                rustix::fs::renameat_with(rustix::fs::CWD, &one, rustix::fs::CWD, &other, exchange).unwrap();
            }
        });
        // On, if the other thread was too quick for all of them.
        for round in 0..100 * ROUNDS {
            reached += u32::from(nofollow("real").is_ok());
            if round >= ROUNDS && reached > 0 {
                break;
            }
        }
        ends.store(true, Ordering::Release);
    });
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "outside");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert!(reached > 0, "no call reached the directory");
    mounted.stop();
}

#[test]
fn hundreds_of_processes_at_once_end_and_leave_nothing_open() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mounted = Mounted::start(scratch.path(), &data, &point);
    let script =
        "for i in $(seq 300); do (echo $i > f$i; cat f$i >> all; mv f$i g$i; rm g$i) & done; wait; wc -l < all; ls";
    let output = shell(script, &point);
    assert_eq!(text(&output), "300\nall\n");
    // Programs that end without their calls' answers.
    let mut killed: Vec<_> = (0..20)
        .map(|at| {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("while :; do echo x >> k{at}; cat k{at} > l{at}; done")]).current_dir(&point);
            command.stdin(Stdio::null()).spawn().unwrap()
        })
        .collect();
    afflux_scratch::eventually("all of them write", || (0..20).all(|at| point.join(format!("l{at}")).exists()));
    for child in &mut killed {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    mounted.stop();
    assert_eq!(fs::read_to_string(data.join("all")).unwrap().lines().count(), 300);
}

/// The largest offset that a seek in this file reaches.
fn largest_offset(file: &File) -> u64 {
    let (mut reached, mut refused) = (0, 1 << 63);
    while refused - reached > 1 {
        let middle = reached + (refused - reached) / 2;
        match rustix::fs::seek(file, rustix::fs::SeekFrom::Start(middle)) {
            Ok(_) => reached = middle,
            Err(_) => refused = middle,
        }
    }
    reached
}

// rule: writes, copies and holes at the largest offset of the host's files end as on the host itself
#[test]
fn the_largest_offset_of_the_host_bounds_a_mount_as_the_host() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    // Large enough for blocks of a page: the last block that is smaller is never used.
    let Some(_disk) = Mount::ext4(&scratch.path().join("image"), &data, 640 << 20) else { return };
    let mounted = Mounted::start(scratch.path(), &data, &point);
    let new = |path| OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
    let files = [new(mounted.path("file")), new(data.join("beside"))];
    let max = largest_offset(&files[1]);
    let bytes = Bytes::new(7).vec(9000);
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    type Call<'a> = &'a dyn Fn(&File) -> Result<usize, Errno>;
    let calls: [(&str, Call<'_>); 7] = [
        ("a write across", &|file| rustix::io::pwrite(file, &bytes, max - 3)),
        ("a write up to it", &|file| rustix::io::pwrite(file, &bytes, max - 9000)),
        ("a write at it", &|file| rustix::io::pwrite(file, &bytes, max)),
        ("a write past it", &|file| rustix::io::pwrite(file, &bytes, max + 5000)),
        ("a copy across", &|file| {
            rustix::fs::copy_file_range(file, Some(&mut (max - 9000)), file, Some(&mut (max - 1000)), 2000)
        }),
        ("a hole across", &|file| fallocate(file, punch, max - 8000, 16_384).map(|()| 0)),
        ("a hole up to it", &|file| fallocate(file, punch, max - 8192, 8192).map(|()| 0)),
    ];
    for (what, call) in calls {
        let [here, beside] = [0, 1].map(|at| call(&files[at]));
        assert_eq!(here, beside, "{what}");
        let [here, beside] = [0, 1].map(|at| {
            let mut read = vec![0; 10_000];
            let length = files[at].read_at(&mut read, max - 9500).unwrap();
            (files[at].metadata().unwrap().len(), length, read)
        });
        assert!(here == beside, "the file after {what}");
    }
    drop(files);
    mounted.stop();
}

// rule: a kernel that keeps modes for an hour shows none of the setuid bits that a write has taken
#[test]
fn a_setuid_bit_that_a_write_took_is_shown_no_more() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let mounted = Mounted::start_with(scratch.path(), &data, &point, &["--sole"]);
    let path = mounted.path("program");
    let file = File::create(&path).unwrap();
    let mode = || {
        // A question for the mode alone, as of `stat -c %a`: the kernel need not ask for it.
        let asked = rustix::fs::StatxFlags::MODE;
        rustix::fs::statx(rustix::fs::CWD, &path, rustix::fs::AtFlags::empty(), asked).unwrap().stx_mode & 0o7777
    };
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let changes: [(&str, &dyn Fn()); 3] = [
        ("a write", &|| file.write_all_at(b"bytes", 0).unwrap()),
        ("space", &|| fallocate(&file, FallocateFlags::empty(), 0, 10_000).unwrap()),
        ("a hole", &|| fallocate(&file, punch, 0, 4096).unwrap()),
    ];
    for (what, change) in changes {
        fs::set_permissions(&path, Permissions::from_mode(0o6755)).unwrap();
        assert_eq!(mode(), 0o6755, "before {what}");
        change();
        afflux_scratch::eventually(&format!("the bits go with {what}"), || mode() == 0o755);
    }
    drop(file);
    mounted.stop();
}

// rule: some seconds after its last use a written file is open for writing no more, neither by a mount nor by NFS
#[test]
fn the_host_runs_written_programs_and_makes_their_disk_read_only() {
    if !can_mount() {
        return;
    }
    let scratch = Scratch::new();
    let (data, point) = apart(&scratch);
    let Some(disk) = Mount::ext4(&scratch.path().join("image"), &data, 32 << 20) else { return };
    let mut mounted = Mounted { server: None, point: point.clone() };
    let arguments = ["--mount", point.to_str().unwrap()];
    mounted.server = Some(Server::start(scratch.path(), &[&data], &arguments));
    let mut client = Client::mount(mounted.server());
    let program = fs::read("/bin/true").unwrap();
    fs::write(mounted.path("by mount"), &program).unwrap();
    fs::set_permissions(mounted.path("by mount"), Permissions::from_mode(0o755)).unwrap();
    fs::write(mounted.path("no program"), &program).unwrap();
    let root = client.root();
    client.write_file(&root, "by nfs", &program);
    fs::set_permissions(mounted.path("by nfs"), Permissions::from_mode(0o755)).unwrap();
    let open = File::options().append(true).open(mounted.path("no program")).unwrap();
    // The server checks for unused files every ten seconds, and a use counts until the next check. So this takes some
    // time.
    let in_time = |what: &str, done: &dyn Fn() -> bool| {
        assert!(afflux_scratch::within(std::time::Duration::from_secs(60), done), "{what}");
    };
    for name in ["by mount", "by nfs"] {
        in_time(name, &|| Command::new(data.join(name)).status().is_ok_and(|status| status.success()));
    }
    let remounted = || {
        let flags = ["-o", "remount,ro", data.to_str().unwrap()];
        Command::new("mount").args(flags).output().unwrap().status.success()
    };
    assert!(!remounted(), "a program has a file open for writing");
    drop(open);
    in_time("the disk becomes read-only", &remounted);
    assert!(fs::read(mounted.path("by mount")).unwrap() == program && client.read_file(&root, "by nfs") == program);
    let refused =
        File::options().append(true).open(mounted.path("by mount")).and_then(|mut file| file.write_all(b"more"));
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(30), "a read-only file system");
    let writable = ["-o", "remount,rw", data.to_str().unwrap()];
    assert!(Command::new("mount").args(writable).status().unwrap().success());
    File::options().append(true).open(mounted.path("by mount")).unwrap().write_all(b"more").unwrap();
    mounted.stop();
    assert!(fs::read(data.join("by mount")).unwrap() == [&program[..], b"more"].concat());
    drop(disk);
}
