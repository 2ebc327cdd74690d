//! Bytes in and out.

use afflux_volume::Caller;

use super::*;

#[test]
fn what_is_written_is_read_and_after_sync_on_the_host() {
    let world = World::new();
    let file = world.create(&world.root(), "file");
    let data: Vec<u8> = (0..1_000_003u32).map(|at| (at * 7) as u8).collect();
    for (at, chunk) in data.chunks(65_536).enumerate() {
        let outcome = world.write(&file, at as u64 * 65_536, chunk);
        outcome.result.unwrap();
    }
    assert_eq!(world.read(&file, 1000, 5000).0, data[1000..6000]);
    let (tail, end) = world.read(&file, 1_000_000, 4096);
    assert_eq!((tail.as_slice(), end), (&data[1_000_000..], true));
    assert_eq!(world.read(&file, 1_000_003, 10), (Vec::new(), true));
    assert_eq!(world.read(&file, u64::MAX - 3, u32::MAX), (Vec::new(), true));
    world.sync(&file);
    assert_eq!(std::fs::read(world.host("file")).unwrap(), data);
    let world = world.restarted();
    let file = world.lookup(&world.root(), "file").unwrap().0;
    assert!(world.volume.try_read(&file, 0, 10).is_none(), "not open yet");
    let mut read = Vec::new();
    while read.len() < data.len() {
        read.extend(world.read(&file, read.len() as u64, 100_000).0);
    }
    assert!(read == data);
    assert!(world.volume.try_write(&Caller::SERVER, &file, 0, b"x").is_none(), "not known to be writable yet");
    world.write(&file, 3, b"in the middle").result.unwrap();
    assert!(world.volume.try_write(&Caller::SERVER, &file, 3, b"IN").is_some());
    assert_eq!(world.read(&file, 2, 15).0, [&data[2..3], b"IN the middle", &data[16..17]].concat());
}

#[test]
fn ranges_past_the_largest_offset_are_refused() {
    let world = World::new();
    let file = world.create(&world.root(), "file");
    for offset in [i64::MAX as u64, u64::MAX, u64::MAX - 1] {
        assert_eq!(world.write(&file, offset, b"ab").result, Err(VolumeError::TooLarge), "{offset}");
        assert!(world.volume.try_write(&Caller::SERVER, &file, offset, b"ab").is_none());
        assert!(world.volume.try_read(&file, offset, u32::MAX).unwrap().end_of_file);
    }
    world.write(&file, 0, b"").result.unwrap();
    assert_eq!(world.attributes(&file).size, 0);
    assert_eq!(world.run(world.volume.sync(&file, u64::MAX, u64::MAX)).result, Ok(()));
    assert_eq!(world.write(&world.root(), 0, b"x").result, Err(VolumeError::IsDirectory));
}

/// Ranges beyond the file system's largest file are refused when they are written, and refused writes take no capacity
/// from others.
#[test]
fn ranges_past_the_file_systems_largest_file_are_refused() {
    let kinds = [("ext4", 64 << 20), ("xfs", 512 << 20), ("btrfs", 256 << 20), ("tmpfs", 64 << 20)];
    let made = kinds.into_iter().filter_map(|(kind, bytes)| Some((kind, Scratch::mounted(kind, bytes, "")?)));
    for (kind, scratch) in made.chain([("the usual place", Scratch::new())]) {
        let world = World::on(Arc::new(scratch), HostOptions::default());
        let max = world.run(world.volume.file_bytes_max(&world.root()));
        println!("{kind}: {max}");
        let host = std::fs::File::create(world.host("probe")).unwrap();
        host.set_len(max).unwrap();
        assert!(max > i64::MAX as u64 - 4096 || host.set_len(max + 4096).is_err(), "{kind}: more than {max}");
        if kind == "ext4" {
            // Blocks of 1 KiB on so small a device: 2^32 of them, but the last.
            assert!((1 << 41..1 << 44).contains(&max), "{max}");
        }
        let (file, other) = (world.create(&world.root(), "file"), world.create(&world.root(), "other"));
        for offset in [max, max - 1, (1 << 62).max(max)] {
            for _ in 0..512 {
                assert_eq!(world.write(&file, offset, &[7; 65_536]).result, Err(VolumeError::TooLarge), "{kind}");
            }
        }
        let change = AttributeChange { size: Some(max + 1), ..AttributeChange::default() };
        let outcome = world.run(world.volume.set_attributes(&file, change, None));
        assert_eq!(outcome.result, Err(VolumeError::TooLarge), "{kind}");
        assert_eq!(world.attributes(&file).size, 0, "{kind}");
        world.write(&other, 0, &[8; 65_536]).result.unwrap();
        world.sync(&other);
        // The last block can be written.
        world.write(&file, max - 4096, &[9; 4096]).result.unwrap();
        world.sync(&file);
        assert_eq!(world.attributes(&file).size, max, "{kind}");
        let device = world.volume.engine().status().devices[0].id;
        assert!(world.run(world.volume.engine().drain(device)).is_empty(), "{kind}");
    }
}

#[test]
fn the_verifier_stays_while_nothing_is_lost_and_changes_with_a_restart() {
    let world = World::new();
    let first = world.volume.write_verifier();
    let file = world.create(&world.root(), "file");
    world.write(&file, 0, b"x").result.unwrap();
    world.sync(&file);
    assert_eq!(world.volume.write_verifier(), first);
    drop(file);
    assert_ne!(world.restarted().volume.write_verifier(), first);
}

#[test]
fn a_program_that_is_only_read_can_be_run() {
    let world = World::new();
    std::fs::copy("/bin/true", world.host("program")).unwrap();
    let file = world.lookup(&world.root(), "program").unwrap().0;
    assert!(!world.read(&file, 0, 4096).0.is_empty());
    assert!(runs(&world.host("program")));
}

#[test]
fn a_dropped_call_is_carried_through() {
    let world = World::new();
    let root = world.root();
    let volume = &world.volume;
    world.run(async {
        // Polled once, then dropped.
        let how = CreateHow::Guarded(AttributeChange::default());
        let mut create = Box::pin(volume.create(&root, b"begun", how));
        let _ = futures_util::poll!(&mut create);
    });
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while world.lookup(&root, "begun").is_err() {
        assert!(std::time::Instant::now() < deadline, "it was not carried through");
        std::thread::yield_now();
    }
    world.run(volume.remove(&root, b"begun")).result.unwrap();
}

#[test]
#[ignore = "prints what calls take"]
fn measure() {
    let world = World::new();
    let root = world.root();
    let time = |what: &str, count: u32, work: &mut dyn FnMut(u32)| {
        let start = std::time::Instant::now();
        (0..count).for_each(work);
        println!("{what}: {:?}", start.elapsed() / count);
    };
    for durable in [true, false] {
        world.volume.set_names_durable(durable);
        let mut files = Vec::new();
        time(&format!("create, durable {durable}"), 1000, &mut |at| {
            files.push(world.create(&root, &format!("{durable}{at}")))
        });
        time("write", 1000, &mut |at| world.write(&files[at as usize], 0, &[7; 4096]).result.unwrap());
        time("sync", 1000, &mut |at| world.sync(&files[at as usize]));
        time("lookup", 1000, &mut |at| drop(world.lookup(&root, &format!("{durable}{at}")).unwrap()));
        time("remove", 1000, &mut |at| {
            world.run(world.volume.remove(&root, format!("{durable}{at}").as_bytes())).result.unwrap()
        });
    }
    let file = world.create(&root, "hot");
    world.write(&file, 0, &[7; 4096]).result.unwrap();
    let handle = world.handle(&file);
    time("try_resolve", 1_000_000, &mut |_| drop(world.volume.try_resolve(&handle).unwrap()));
    time("try_attributes", 1_000_000, &mut |_| {
        world.volume.try_attributes(&file);
    });
    world.lookup(&root, "hot").unwrap();
    time("try_lookup", 100_000, &mut |_| {
        world.volume.try_lookup(&root, b"hot");
    });
    time("try_read 4 KiB", 1_000_000, &mut |_| drop(world.volume.try_read(&file, 0, 4096).unwrap()));
    time("try_write 4 KiB", 1_000_000, &mut |_| {
        world.volume.try_write(&Caller::SERVER, &file, 0, &[8; 4096]).unwrap();
    });
}
