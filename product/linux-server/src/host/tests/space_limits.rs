//! Free space that a user must not take: blocks reserved for root, and bytes above a quota.

use std::path::Path;
use std::process::Command;

use afflux_volume::{Caller, NewDevice, Reserve};
use rustix::fs::{Uid, chown, statvfs};

use super::super::host_device;
use super::*;

const USER: u32 = 4321;
const MIB: u64 = 1 << 20;

/// Runs on a thread with a server's privileges: all of root's would pass each limit.
fn with_servers_privileges(scratch: Scratch, work: impl FnOnce(Arc<Scratch>) + Send + 'static) {
    // The last of the two ends here: only a thread with all privileges may unmount it.
    let stored = Arc::new(scratch);
    let scratch = Arc::clone(&stored);
    let thread = std::thread::spawn(|| {
        crate::give_up_privileges().unwrap();
        work(scratch);
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn runs(program: &str, arguments: &[&str], place: &Path) -> bool {
    let output = Command::new(program).args(arguments).arg(place).output();
    output.is_ok_and(|output| output.status.success())
}

/// A directory that everybody may write in, on a file system of its own.
fn open_to_all(scratch: &Scratch) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let export = scratch.path().join("export");
    std::fs::create_dir_all(&export).unwrap();
    std::fs::set_permissions(&export, std::fs::Permissions::from_mode(0o777)).unwrap();
    export
}

/// Makes a user's file and writes to it until a write is refused, at most so much. Returns the accepted bytes.
fn fill(world: &World, caller: &Caller, name: &str, bytes_max: u64) -> (Object, u64, Option<VolumeError>) {
    let how = CreateHow::Guarded(AttributeChange::default());
    let file = world.run(world.volume.create_by(caller, &world.root(), name.as_bytes(), how)).result.unwrap().0;
    let piece = vec![7; 256 << 10];
    let mut at = 0;
    while at < bytes_max {
        if let Err(error) = world.run(world.volume.write_by(caller, None, &file, at, &piece)).result {
            return (file, at, Some(error));
        }
        at += piece.len() as u64;
    }
    (file, at, None)
}

/// Blocks that are reserved for root, and those that are free.
fn reserved_and_free(place: &Path) -> (u64, u64) {
    let found = statvfs(place).unwrap();
    ((found.f_bfree - found.f_bavail) * found.f_frsize, found.f_bfree * found.f_frsize)
}

#[test]
fn users_take_no_blocks_that_are_kept_for_root() {
    for (io, caching) in
        [(IoChoice::Auto, Caching::Auto), (IoChoice::Syscalls, Caching::Auto), (IoChoice::Auto, Caching::Buffered)]
    {
        let Some(scratch) = Scratch::mounted("ext4", 96 * MIB, "") else { return };
        let export = open_to_all(&scratch);
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let line = mounts.lines().find(|line| line.split(' ').nth(1) == scratch.path().to_str()).unwrap();
        assert!(runs("tune2fs", &["-m", "20"], Path::new(line.split(' ').next().unwrap())));
        let (stored, _) = reserved_and_free(&export);
        assert!(stored > 10 * MIB, "{stored}");
        with_servers_privileges(scratch, move |scratch| {
            let world = World::doing(scratch, HostOptions::default(), io, caching);
            let user = world.volume.caller(USER, USER, &[]);
            let (file, accepted, error) = fill(&world, &user, "written", 96 * MIB);
            assert_eq!(error, Some(VolumeError::NoSpace));
            assert!(accepted > 40 * MIB, "{accepted}");
            // All accepted bytes have blocks.
            world.sync(&file);
            let (_, free) = reserved_and_free(&export);
            assert!(free + MIB >= stored, "{free} of {stored} are free");
            let range = 0..accepted + 8 * MIB;
            let how = Reserve { zeros: false, grows: false };
            let reserved = world.run(world.volume.reserve_by(&user, &file, range, how)).result;
            assert_eq!(reserved.map(drop), Err(VolumeError::NoSpace));
            assert!(reserved_and_free(&export).1 + MIB >= stored);
            // Root has its blocks.
            let (file, _, error) = fill(&world, &world.volume.caller(0, 0, &[]), "roots", 4 * MIB);
            assert_eq!(error, None);
            world.sync(&file);
            assert_eq!(std::fs::metadata(export.join("roots")).unwrap().len(), 4 * MIB);
        });
    }
}

#[test]
fn a_reservation_that_is_refused_takes_no_space() {
    let Some(scratch) = Scratch::mounted("ext4", 96 * MIB, "") else { return };
    let export = open_to_all(&scratch);
    with_servers_privileges(scratch, move |scratch| {
        let world = World::on(scratch, HostOptions::default());
        let user = world.volume.caller(USER, USER, &[]);
        let (file, accepted, _) = fill(&world, &user, "file", MIB);
        world.sync(&file);
        let reserve = |range| {
            let how = Reserve { zeros: false, grows: true };
            world.run(world.volume.reserve_by(&user, &file, range, how)).result
        };
        let free = || reserved_and_free(&export).1;
        let before = free();
        assert_eq!(reserve(0..1 << 40), Err(VolumeError::NoSpace));
        assert!(free() + MIB > before, "{} of {before} are left", free());
        assert_eq!(world.attributes(&file).size, accepted);
        // More than is free, and the file has it already.
        reserve(0..before * 3 / 4).unwrap();
        assert!(free() < before / 2);
        reserve(accepted..before * 3 / 4 + MIB).unwrap();
    });
}

/// A file system with a limit of 8 MiB for what the user writes in `export`.
fn limited(kind: &str) -> Option<Scratch> {
    let user = USER.to_string();
    let (scratch, is_set) = match kind {
        "xfs" => {
            let scratch = Scratch::mounted("xfs", 400 * MIB, "uquota")?;
            let is_set = runs("xfs_quota", &["-x", "-c", &format!("limit bhard=8m {user}")], scratch.path());
            (scratch, is_set)
        }
        "a project of xfs" => {
            let scratch = Scratch::mounted("xfs", 400 * MIB, "pquota")?;
            let project = format!("project -s -p {} 42", open_to_all(&scratch).display());
            let is_set = runs("xfs_quota", &["-x", "-c", &project], scratch.path())
                && runs("xfs_quota", &["-x", "-c", "limit -p bhard=8m 42"], scratch.path());
            (scratch, is_set)
        }
        "ext4" => {
            let scratch = Scratch::mounted("ext4", 96 * MIB, "usrquota")?;
            let is_set = runs("quotacheck", &["-cum"], scratch.path())
                && runs("quotaon", &["-u"], scratch.path())
                && runs("setquota", &["-u", &user, "0", "8192", "0", "0"], scratch.path());
            (scratch, is_set)
        }
        kind => {
            let scratch = Scratch::mounted(kind, 400 * MIB, "")?;
            let export = scratch.path().join("export");
            let is_set = runs("btrfs", &["quota", "enable"], scratch.path())
                && runs("btrfs", &["subvolume", "create"], &export)
                && runs("btrfs", &["qgroup", "limit", "8M"], &export);
            (scratch, is_set)
        }
    };
    if !is_set {
        afflux_scratch::skipped!("no limit can be set on {kind}: a package or a part of this kernel is missing");
        return None;
    }
    open_to_all(&scratch);
    Some(scratch)
}

#[test]
fn what_a_quota_refuses_is_not_accepted() {
    for kind in ["xfs", "a project of xfs", "ext4", "btrfs"] {
        let Some(scratch) = limited(kind) else { continue };
        with_servers_privileges(scratch, move |scratch| {
            let world = World::over(scratch, HostOptions::default(), IoChoice::Auto, move |platform| {
                let platform = platform.clone();
                Box::new(move |_, node| {
                    let device = host_device(&platform, node, Caching::Auto)?;
                    if kind == "btrfs" {
                        // A kernel without quotas has this limit, which a reservation meets as well.
                        device.assume_quotas();
                    }
                    Ok(NewDevice::unknown(kind.to_owned(), device))
                })
            });
            let user = world.volume.caller(USER, USER, &[]);
            let (file, accepted, error) = fill(&world, &user, "file", 40 * MIB);
            assert!(matches!(error, Some(VolumeError::Quota | VolumeError::NoSpace)), "{kind}: {error:?}");
            assert!((6 * MIB..=8 * MIB).contains(&accepted), "{kind}: {accepted}");
            // On ext4 a list of extents may need a block that no reservation holds.
            assert_eq!(world.volume.may_be_refused(&file), kind == "ext4", "{kind}: whether a close has to wait");
            world.sync(&file);
            assert_eq!(world.volume.pending_error(&file), None, "{kind}");
            let found = std::fs::read(world.host("file")).unwrap();
            assert!(
                found.len() as u64 >= accepted && found[..accepted as usize].iter().all(|byte| *byte == 7),
                "{kind}"
            );
        });
    }
}

#[test]
fn where_only_the_writing_tells_of_a_limit_a_close_has_to_wait_for_it() {
    let Some(scratch) = limited("btrfs") else { return };
    with_servers_privileges(scratch, move |scratch| {
        let world = World::on(scratch, HostOptions::default());
        let user = world.volume.caller(USER, USER, &[]);
        let (small, _, error) = fill(&world, &user, "small", MIB);
        assert_eq!(error, None);
        assert!(world.volume.may_be_refused(&small));
        world.sync(&small);
        assert!(!world.volume.may_be_refused(&small), "all of it is written");
        let (large, ..) = fill(&world, &user, "large", 40 * MIB);
        assert!(world.volume.may_be_refused(&large));
        let synced = world.run(world.volume.sync(&large, 0, 0)).result;
        assert_eq!(synced.map(drop), Err(VolumeError::Quota));
        assert_eq!(world.volume.pending_error(&large), Some(VolumeError::Quota));
    });
}

/// A full disk without blocks for longer lists of extents, as a limit of a user leaves none. Two files are reserved in
/// pieces that lie between those of the other file, so that each list of extents is full.
#[test]
fn what_is_reserved_is_not_freed_where_a_list_of_extents_cannot_grow() {
    const PIECE: u64 = 256 << 10;
    const IN_A_ROW: u64 = 3;
    const BYTES: u64 = 4 * IN_A_ROW * PIECE;
    let Some(scratch) = Scratch::mounted("ext4", 96 * MIB, "") else { return };
    let export = open_to_all(&scratch);
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let line = mounts.lines().find(|line| line.split(' ').nth(1) == scratch.path().to_str()).unwrap();
    let disk = line.split(' ').next().unwrap().trim_start_matches("/dev/");
    assert!(runs("tune2fs", &["-m", "0"], &Path::new("/dev").join(disk)));
    std::fs::write(format!("/sys/fs/ext4/{disk}/reserved_clusters"), "0").unwrap();
    with_servers_privileges(scratch, move |scratch| {
        let place = Arc::clone(&scratch);
        let world = World::over(scratch, HostOptions::default(), IoChoice::Auto, |platform| {
            let platform = platform.clone();
            Box::new(move |_, node| {
                let device = host_device(&platform, node, Caching::Auto)?;
                device.assume_quotas();
                Ok(NewDevice::unknown("ext4".to_owned(), device))
            })
        });
        // No flusher writes before the sync.
        let engine = world.volume.engine();
        engine.set_knobs(None, &[(engine.settings().named("dirty_background_bytes").unwrap(), 24 * MIB)]).unwrap();
        let user = world.volume.caller(USER, USER, &[]);
        let files = [1, 2].map(|name| (fill(&world, &user, &format!("{name}"), 0).0, vec![name; PIECE as usize]));
        for extent in 0..4 {
            for (file, piece) in &files {
                for at in (0..IN_A_ROW).map(|number| (extent * IN_A_ROW + number) * PIECE) {
                    // The last bytes fill no page.
                    let len = if at + PIECE == BYTES { piece.len() - 100 } else { piece.len() };
                    world.run(world.volume.write_by(&user, None, file, at, &piece[..len])).result.unwrap();
                }
            }
        }
        fill_but(&place, 0);
        for (file, piece) in &files {
            let synced = world.run(world.volume.sync(file, 0, 0)).result;
            assert_eq!(synced.map(drop), Ok(()));
            let found = std::fs::read(export.join(format!("{}", piece[0]))).unwrap();
            assert_eq!(found.len() as u64, BYTES - 100);
            assert!(found.iter().all(|byte| *byte == piece[0]));
        }
    });
}

/// Fills the file system except for this much free space.
fn fill_but(scratch: &Scratch, room: u64) {
    let path = scratch.path().join("filling");
    let (mut filling, piece) = (std::fs::File::create(&path).unwrap(), vec![0; 64 << 10]);
    for len in [piece.len(), 1024] {
        while std::io::Write::write_all(&mut filling, &piece[..len]).is_ok() {}
        filling.sync_all().unwrap();
    }
    let full = filling.metadata().unwrap().len();
    filling.set_len(full.saturating_sub(room)).unwrap();
    assert!(runs("sync", &["-f"], scratch.path()));
}

/// Writes over the user's file until a write is refused. Returns the accepted bytes.
fn write_over(world: &World, caller: &Caller, file: &Object, bytes: u64) -> (u64, Option<VolumeError>) {
    let piece = vec![8; 256 << 10];
    for at in (0..bytes).step_by(piece.len()) {
        if let Err(error) = world.run(world.volume.write_by(caller, None, file, at, &piece)).result {
            return (at, Some(error));
        }
    }
    (bytes, None)
}

#[test]
fn writes_to_shared_blocks_find_room_for_blocks_of_their_own() {
    const SHARED: u64 = 60 * MIB;
    let Some(scratch) = Scratch::mounted("xfs", 400 * MIB, "") else { return };
    let export = open_to_all(&scratch);
    std::fs::write(export.join("first"), vec![7; SHARED as usize]).unwrap();
    if !runs("cp", &["--reflink=always", export.join("first").to_str().unwrap()], &export.join("second")) {
        return afflux_scratch::skipped!("this XFS shares no blocks");
    }
    chown(export.join("second"), Some(Uid::from_raw(USER)), None).unwrap();
    fill_but(&scratch, 20 * MIB);
    with_servers_privileges(scratch, move |scratch| {
        let world = World::on(scratch, HostOptions::default());
        let user = world.volume.caller(USER, USER, &[]);
        let file = world.lookup(&world.root(), "second").unwrap().0;
        let (accepted, error) = write_over(&world, &user, &file, SHARED);
        assert_eq!(error, Some(VolumeError::NoSpace));
        assert!(accepted > 10 * MIB, "{accepted}");
        // All accepted bytes have blocks.
        world.sync(&file);
        assert_eq!(world.volume.pending_error(&file), None);
        let found = std::fs::read(world.host("second")).unwrap();
        assert!(found[..accepted as usize].iter().all(|byte| *byte == 8));
    });
}

/// XFS refuses to reserve bytes of a full disk, or of a user at a limit, also where they have blocks already.
#[test]
fn bytes_with_blocks_are_written_over_on_a_full_disk() {
    const BYTES: u64 = 8 * MIB;
    for kind in ["xfs", "ext4"] {
        let Some(scratch) = Scratch::mounted(kind, 400 * MIB, "") else { continue };
        let file = open_to_all(&scratch).join("file");
        std::fs::write(&file, vec![7; BYTES as usize]).unwrap();
        chown(&file, Some(Uid::from_raw(USER)), None).unwrap();
        fill_but(&scratch, 0);
        with_servers_privileges(scratch, move |scratch| {
            let world = World::on(scratch, HostOptions::default());
            let user = world.volume.caller(USER, USER, &[]);
            let file = world.lookup(&world.root(), "file").unwrap().0;
            assert_eq!(write_over(&world, &user, &file, BYTES), (BYTES, None), "{kind}");
            // Beyond its blocks there is no free space.
            let beyond = world.run(world.volume.write_by(&user, None, &file, BYTES - MIB, &[9; 2 << 20])).result;
            assert_eq!(beyond.map(drop), Err(VolumeError::NoSpace), "{kind}");
            world.sync(&file);
            let found = std::fs::read(world.host("file")).unwrap();
            assert!(found[..(BYTES - MIB) as usize].iter().all(|byte| *byte == 8), "{kind}");
        });
    }
}

/// A nearly full disk that cannot reserve what a write needs.
fn nearly_full(kind: &str) -> Option<Scratch> {
    let scratch = Scratch::mounted(kind, 400 * MIB, "")?;
    let file = open_to_all(&scratch).join("file");
    std::fs::write(&file, vec![7; 20 * MIB as usize]).unwrap();
    chown(&file, Some(Uid::from_raw(USER)), None).unwrap();
    fill_but(&scratch, 5 * MIB);
    Some(scratch)
}

#[test]
fn a_close_on_a_nearly_full_disk_that_cannot_reserve_waits_for_the_bytes() {
    for kind in ["ext3", "btrfs"] {
        let Some(scratch) = nearly_full(kind) else { continue };
        with_servers_privileges(scratch, move |scratch| {
            let world = World::on(scratch, HostOptions::default());
            let user = world.volume.caller(USER, USER, &[]);
            let (small, _, error) = fill(&world, &user, "small", 256 << 10);
            assert_eq!(error, None, "{kind}");
            // The disk was asked to reserve space, and its free bytes are known.
            afflux_scratch::eventually("a close has to wait", || {
                let written = world.run(world.volume.write_by(&user, None, &small, 0, &[9; 4096])).result;
                written.is_ok() && world.volume.may_be_refused(&small)
            });
            let file = world.lookup(&world.root(), "file").unwrap().0;
            write_over(&world, &user, &file, 20 * MIB);
            assert!(world.volume.may_be_refused(&file), "{kind}");
        });
    }
}
