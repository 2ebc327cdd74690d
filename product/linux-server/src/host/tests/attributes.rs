//! Attributes agree with unwritten data, and with other programs' changes.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use afflux_engine::settings::Knob;
use afflux_volume::{SetTime, Timestamp, VolumeKnob};

use super::*;

#[test]
fn sizes_and_times_of_unwritten_data_are_seen_at_once() {
    let world = World::new();
    let root = world.root();
    let file = world.create(&root, "file");
    let mut last = world.attributes(&file);
    for round in 0..20u64 {
        let outcome = world.write(&file, round * 1000, &[7; 1000]);
        outcome.result.unwrap();
        let (before, after) = (outcome.consistency.before.unwrap(), outcome.consistency.after.unwrap());
        assert_eq!(
            (before.size, before.mtime, before.ctime),
            (last.size, last.mtime, last.ctime),
            "a chain without a gap"
        );
        assert_eq!(after.size, (round + 1) * 1000);
        assert!(after.mtime > last.mtime && after.ctime > last.ctime);
        assert!(after.used >= 1, "{}", after.used);
        assert_eq!(world.volume.try_attributes(&file), Some(after));
        last = after;
    }
}

#[test]
fn the_host_gets_the_times_that_clients_were_told() {
    let world = World::new();
    let root = world.root();
    let file = world.create(&root, "file");
    let told = world.write(&file, 0, &[1; 100_000]).consistency.after.unwrap();
    world.sync(&file);
    assert_eq!(world.run(world.volume.settle_all()), 0);
    let metadata = std::fs::metadata(world.host("file")).unwrap();
    assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (told.mtime.seconds, i64::from(told.mtime.nanos)));
    let attributes = world.attributes(&file);
    assert_eq!((attributes.mtime, attributes.ctime), (told.mtime, told.ctime));
    // A time set while data is unwritten survives the writeback.
    world.write(&file, 0, &[2; 5000]).result.unwrap();
    let time = Timestamp { seconds: 1_000_000_000, nanos: 5 };
    let change = AttributeChange { mtime: SetTime::To(time), ..AttributeChange::default() };
    let set = world.set(&file, change);
    set.result.unwrap();
    assert_eq!(set.consistency.after.unwrap().mtime, time);
    let world = world.restarted();
    assert_eq!(std::fs::metadata(world.host("file")).unwrap().mtime(), 1_000_000_000);
    assert_eq!(world.lookup(&world.root(), "file").unwrap().1.mtime, time);
}

fn used_on_host(world: &World, name: &str) -> u64 {
    std::fs::metadata(world.host(name)).unwrap().blocks() * 512
}

#[test]
fn the_storage_told_is_never_less_than_the_data_needs() {
    const MIB: u64 = 1 << 20;
    let world = World::new();
    let root = world.root();
    let file = world.create(&root, "file");
    for piece in 0..10 {
        let outcome = world.write(&file, piece * MIB, &[7; MIB as usize]);
        assert!(outcome.consistency.after.unwrap().used >= (piece + 1) * MIB);
        assert!(world.attributes(&file).used >= (piece + 1) * MIB);
    }
    let synced = world.run(world.volume.sync(&file, 0, 0));
    synced.result.unwrap();
    assert_eq!(synced.consistency.after.unwrap().used, used_on_host(&world, "file"));
    assert!(world.attributes(&file).used >= 10 * MIB);
    // A truncation shows at once, for blocks on the host and for bytes not yet written.
    let size = |size| AttributeChange { size: Some(size), ..AttributeChange::default() };
    let cut = world.set(&file, size(1000)).consistency.after.unwrap();
    assert_eq!((cut.size, cut.used), (1000, used_on_host(&world, "file")));
    world.write(&file, 0, &[8; 4 << 20]).result.unwrap();
    let cut = world.set(&file, size(5000)).consistency.after.unwrap();
    assert!(cut.used <= 8192 && cut.used >= 5000, "{}", cut.used);
    // After writeback without a sync, the host's answer counts.
    let other = world.create(&root, "other");
    world.write(&other, 0, &[9; 3 * MIB as usize]).result.unwrap();
    let device = world.volume.engine().status().devices[0].id;
    assert!(world.run(world.volume.engine().drain(device)).is_empty());
    assert!(world.lookup(&root, "other").unwrap().1.used >= 3 * MIB);
    assert_eq!(world.attributes(&other).used, used_on_host(&world, "other"));
    // Holes do not count as data.
    world.write(&other, 100 * MIB, &[1]).result.unwrap();
    let told = world.attributes(&other).used;
    assert!(told > 3 * MIB && told < 4 * MIB, "{told}");
}

#[test]
fn what_was_synced_keeps_its_times_when_the_server_ends_at_once() {
    let world = World::new();
    let root = world.root();
    let file = world.create(&root, "file");
    for round in 0..60u8 {
        // Several writes within one tick of the host's clock.
        for part in 0..=u64::from(round % 3) {
            world.write(&file, part * 5000, &[round; 5000]).result.unwrap();
        }
        let told = world.run(world.volume.sync(&file, 0, 0)).consistency.after.unwrap();
        let host = std::fs::metadata(world.host("file")).unwrap();
        let mtime = (told.mtime.seconds, i64::from(told.mtime.nanos));
        let ctime = (told.ctime.seconds, i64::from(told.ctime.nanos));
        assert_eq!((host.mtime(), host.mtime_nsec()), mtime, "round {round}");
        if has_fine_times() {
            assert!((host.ctime(), host.ctime_nsec()) >= ctime, "round {round}");
        }
    }
}

/// Whether the host gives finer times to files that were looked at: Linux does from 6.13 on.
fn has_fine_times() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(13))
}

#[test]
fn bytes_that_change_take_away_the_right_to_act_as_the_owner() {
    let world = World::new();
    let root = world.root();
    let file = world.create(&root, "file");
    let mode = |mode| AttributeChange { mode: Some(mode), ..AttributeChange::default() };
    let modes = |told: &Attributes| {
        let host = std::fs::metadata(world.host("file")).unwrap().permissions().mode() & 0o7777;
        (told.mode, host)
    };
    for (set, left) in [(0o6755, 0o755), (0o4755, 0o755), (0o2755, 0o755), (0o6745, 0o745)] {
        let before = world.set(&file, mode(set)).consistency.after.unwrap();
        assert_eq!(modes(&before), (set, set));
        let written = world.write(&file, 0, b"new");
        written.result.unwrap();
        let (said, after) = (written.consistency.before.unwrap(), written.consistency.after.unwrap());
        assert_eq!((said.mtime, said.ctime), (before.mtime, before.ctime), "a chain without a gap");
        assert_eq!(modes(&after), (left, left), "{set:o} after a write");
        assert_eq!(modes(&world.attributes(&file)), (left, left));
        world.set(&file, mode(set)).result.unwrap();
        let size = AttributeChange { size: Some(1), ..AttributeChange::default() };
        let cut = world.set(&file, size).consistency.after.unwrap();
        assert_eq!(modes(&cut), (left, left), "{set:o} after a truncation");
        world.set(&file, mode(set)).result.unwrap();
        let how = CreateHow::Unchecked(AttributeChange { size: Some(0), ..AttributeChange::default() });
        let taken = world.run(world.volume.create(&root, b"file", how)).result.unwrap().1;
        assert_eq!(modes(&taken), (left, left), "{set:o} after a creation that found it");
    }
    // Writes before the bits were set do not clear them.
    world.write(&file, 0, b"a program").result.unwrap();
    world.set(&file, mode(0o4755)).result.unwrap();
    world.sync(&file);
    assert_eq!(modes(&world.attributes(&file)), (0o4755, 0o4755));
}

#[test]
fn a_directory_keeps_the_setgid_bit_that_it_inherits_from_a_group_of_others() {
    const GROUP: u32 = 4200;
    if !rustix::process::geteuid().is_root() {
        afflux_scratch::skipped!("only root can act as others");
        return;
    }
    let world = World::new();
    let root = world.root();
    let shared = world.make_directory(&root, "shared");
    world.set(&shared, AttributeChange { gid: Some(GROUP), ..AttributeChange::default() }).result.unwrap();
    world.set(&shared, AttributeChange { mode: Some(0o2777), ..AttributeChange::default() }).result.unwrap();
    let user = world.volume.caller(4321, 4321, &[]);
    // A mask takes rights of the first, and no call that makes a directory gives the second its first bit.
    for mode in [0o777, 0o4755] {
        let (name, wanted) = (format!("{mode:o}"), AttributeChange { mode: Some(mode), ..AttributeChange::default() });
        let made = world.run(world.volume.make_directory_by(&user, &shared, name.as_bytes(), wanted));
        let (_, told) = made.result.unwrap();
        assert_eq!((told.mode, told.uid, told.gid), (mode | 0o2000, 4321, GROUP));
        let host = std::fs::metadata(world.host("shared").join(name)).unwrap();
        assert_eq!(host.mode() & 0o7777, mode | 0o2000);
    }
}

#[test]
fn changes_by_others_are_seen() {
    let world = World::new();
    world.volume.engine().set_knob(VolumeKnob::AttributesIdleCentisecs, 0).unwrap();
    let root = world.root();
    std::fs::write(world.host("file"), b"first").unwrap();
    let file = world.lookup(&root, "file").unwrap().0;
    assert_eq!(world.read(&file, 0, 100).0, b"first");
    std::fs::write(world.host("file"), b"second, longer").unwrap();
    let attributes = world.attributes(&file);
    assert_eq!(attributes.size, 14);
    assert_eq!(world.read(&file, 0, 100).0, b"second, longer");
    // The same size and a time set back: the change time shows the difference.
    let times = std::fs::metadata(world.host("file")).unwrap();
    std::fs::write(world.host("file"), b"third,, longer").unwrap();
    let opened = std::fs::File::options().write(true).open(world.host("file")).unwrap();
    opened.set_modified(times.modified().unwrap()).unwrap();
    world.lookup(&root, "file").unwrap();
    assert_eq!(world.read(&file, 0, 100).0, b"third,, longer");
    std::fs::set_permissions(world.host("file"), std::fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(world.attributes(&file).mode, 0o640);
    std::fs::write(world.host("made by others"), b"").unwrap();
    assert!(world.names(&root, 10).contains(&"made by others".to_owned()));
    std::fs::remove_file(world.host("file")).unwrap();
    assert_eq!(world.run(world.volume.attributes(&file)).err(), Some(VolumeError::Stale));
    assert_eq!(world.resolve(&world.handle(&file)).err(), Some(VolumeError::Stale));
}

#[test]
fn our_own_writing_back_is_no_change_by_others() {
    let world = World::new();
    world.volume.engine().set_knob(VolumeKnob::AttributesIdleCentisecs, 0).unwrap();
    let root = world.root();
    let file = world.create(&root, "file");
    let data: Vec<u8> = (0..300_000u32).map(|at| at as u8).collect();
    let told = world.write(&file, 0, &data).consistency.after.unwrap();
    world.sync(&file);
    for _ in 0..3 {
        let (_, attributes) = world.lookup(&root, "file").unwrap();
        assert_eq!((attributes.size, attributes.mtime, attributes.ctime), (told.size, told.mtime, told.ctime));
        world.run(world.volume.settle_all());
    }
    assert!(world.volume.try_read(&file, 0, 4096).is_some(), "still cached");
}

#[test]
fn a_guard_holds_a_stale_change_back() {
    let world = World::new();
    let file = world.create(&world.root(), "file");
    let seen = world.attributes(&file);
    world.write(&file, 0, b"changed").result.unwrap();
    let change = AttributeChange { size: Some(0), ..AttributeChange::default() };
    let refused = world.run(world.volume.set_attributes(&file, change, Some(seen.ctime)));
    assert_eq!(refused.result, Err(VolumeError::NotSynchronised));
    assert_eq!(world.read(&file, 0, 10).0, b"changed");
    let now = world.attributes(&file).ctime;
    let taken = world.run(world.volume.set_attributes(&file, change, Some(now)));
    taken.result.unwrap();
    assert_eq!(taken.consistency.before.unwrap().size, 7);
    assert_eq!(taken.consistency.after.unwrap().size, 0);
}

#[test]
fn sizes_can_be_set_both_ways_while_dirty() {
    let world = World::new();
    let file = world.create(&world.root(), "file");
    let size = |size| AttributeChange { size: Some(size), ..AttributeChange::default() };
    world.write(&file, 0, &[9; 10_000]).result.unwrap();
    world.set(&file, size(5000)).result.unwrap();
    world.set(&file, size(6000)).result.unwrap();
    let (bytes, end) = world.read(&file, 0, 20_000);
    assert!(end);
    assert_eq!(bytes[..5000], [9; 5000]);
    assert_eq!(bytes[5000..], [0; 1000]);
    world.sync(&file);
    assert_eq!(std::fs::read(world.host("file")).unwrap(), bytes);
    assert_eq!(world.set(&file, size(u64::MAX)).result, Err(VolumeError::TooLarge));
    assert_eq!(world.set(&world.root(), size(0)).result, Err(VolumeError::IsDirectory));
    let mode = AttributeChange { mode: Some(0o10000), ..AttributeChange::default() };
    assert!(matches!(world.set(&file, mode).result, Err(VolumeError::Invalid { .. })));
    // chown(2) takes -1 for "no change", and calls it success.
    for nobody in [
        AttributeChange { uid: Some(u32::MAX), ..AttributeChange::default() },
        AttributeChange { gid: Some(u32::MAX), ..AttributeChange::default() },
    ] {
        assert!(matches!(world.set(&file, nobody).result, Err(VolumeError::Invalid { .. })));
        let root = world.root();
        let made = world.run(world.volume.create(&root, b"nobody's", CreateHow::Guarded(nobody)));
        assert!(matches!(made.result, Err(VolumeError::Invalid { .. })));
        assert!(!world.host("nobody's").exists());
    }
}

#[test]
fn rights_are_those_of_the_serving_user() {
    let world = World::new();
    let file = world.create(&world.root(), "file");
    let mode = |mode| AttributeChange { mode: Some(mode), ..AttributeChange::default() };
    world.set(&file, mode(0o700)).result.unwrap();
    assert_eq!(world.run(world.volume.access(&file)).unwrap().0, 7);
    world.set(&file, mode(0o400)).result.unwrap();
    let rights = world.run(world.volume.access(&file)).unwrap().0;
    assert_eq!(rights, if is_root() { 3 } else { 1 });
}

#[test]
fn tending_lets_removed_files_and_programs_go() {
    let world = World::new();
    let root = world.root();
    let file = world.create(&root, "file");
    world.write(&file, 0, b"x").result.unwrap();
    world.sync(&file);
    world.run(world.volume.settle_all());
    let program = world.create(&root, "program");
    let bytes = std::fs::read("/bin/true").unwrap();
    world.write(&program, 0, &bytes).result.unwrap();
    let mode = AttributeChange { mode: Some(0o755), ..AttributeChange::default() };
    world.set(&program, mode).result.unwrap();
    world.sync(&program);
    world.run(world.volume.settle_all());
    let handle = world.handle(&program);
    drop((file, program));
    std::fs::remove_file(world.host("file")).unwrap();
    let held = || {
        let names = std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
        let inside = world.host("");
        names.filter(|name| name.starts_with(&inside) && name.as_os_str().as_bytes().ends_with(b" (deleted)")).count()
    };
    assert!(held() > 0 && is_busy(&world.host("program")));
    // The engine remembers a file that was dirty until its data would have expired.
    world.volume.engine().set_knob(Knob::ExpireCentisecs, 1).unwrap();
    // The first call finds it used lately, the second finds it idle.
    world.run(world.volume.upkeep());
    world.run(world.volume.upkeep());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while held() > 0 {
        assert!(std::time::Instant::now() < deadline, "{} descriptors are still held", held());
        std::thread::yield_now();
    }
    assert!(runs(&world.host("program")));
    let program = world.resolve(&handle).unwrap();
    assert_eq!(world.read(&program, 0, 4).0, bytes[..4]);
    world.write(&program, 0, b"more").result.unwrap();
    assert!(is_busy(&world.host("program")), "it is open for writing again");
}

#[test]
fn writes_take_the_rights_to_act_as_others_whoever_calls() {
    const OWNER: u32 = 4001;
    const GROUP: u32 = 4200;
    if !rustix::process::geteuid().is_root() {
        afflux_scratch::skipped!("only root can be several users");
        return;
    }
    let world = World::new();
    let root = world.root();
    // Each row: the writer's user and group, the file's mode, and the mode that the write leaves.
    for (number, (uid, gid, mode, left)) in [
        (0, 0, 0o6777, 0o777),
        (OWNER, 5, 0o6777, 0o777),
        (7, GROUP, 0o6777, 0o777),
        (7, GROUP, 0o2766, 0o766),
        (OWNER, 5, 0o2746, 0o746),
        (7, 7, 0o2746, 0o746),
    ]
    .into_iter()
    .enumerate()
    {
        for size in [None, Some(2)] {
            let name = format!("{number} {}", size.is_some());
            let file = world.create(&root, &name);
            let set = AttributeChange { mode: Some(mode), uid: Some(OWNER), gid: Some(GROUP), ..Default::default() };
            world.set(&file, set).result.unwrap();
            let caller = world.volume.caller(uid, gid, &[]);
            let done = match size {
                Some(_) => {
                    let change = AttributeChange { size, ..Default::default() };
                    world.run(world.volume.set_attributes_by(&caller, &file, change, None)).result
                }
                None => {
                    let data = Bytes::from_static(b"bytes");
                    world.run(world.volume.write_by(&caller, None, &file, 0, &data)).result
                }
            };
            assert_eq!(done, Ok(()), "{uid} {mode:o}");
            world.sync(&file);
            let host = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(world.host(&name)).unwrap()) & 0o7777;
            assert_eq!((world.attributes(&file).mode, host), (left, left), "{uid} {mode:o} {size:?}");
        }
    }
}
