use std::sync::Mutex;
use std::task::{Poll, Waker};

use afflux_engine::{Device, Operation, Platform, Request};
use afflux_frames::Frames;

use super::*;
use crate::{DiskFileId, Random, WorldOptions};

const SMALL: &str = "about = \"x\"\nkind = \"throttled\"\ncapacity_bytes = \"1 GiB\"\nblock_bytes = 512\n\
    request_bytes_max = 65536\nnr_requests = 8\ndevice_depth = 8\nread_bytes_per_second = 1000\n\
    write_bytes_per_second = 1000\nlatency_ns = 0\n";

fn wrong(text: &str) -> String {
    Model::parse("x", "x.toml", text).unwrap_err().to_string()
}

#[test]
fn every_builtin_device_is_whole_and_every_number_names_its_source() {
    let models = builtin().unwrap();
    assert_eq!(models.len(), FILES.len());
    for model in &models {
        assert!(!model.about.is_empty());
        for parameter in &model.parameters {
            assert!(!parameter.source.is_empty(), "{}: {} has no source", model.file, parameter.key.name);
        }
        assert_eq!(model.zones.is_empty(), model.kind != Kind::Rotating);
        assert!(model.zones.is_empty() || !model.zones_source.is_empty(), "{}", model.file);
        let world = World::new(WorldOptions::seed(1));
        let disk = make(&world, 0, model);
        assert_eq!(u64::from(disk.limits().depth), model.get("nr_requests"));
        assert_eq!(u64::from(disk.limits().request_bytes_max), model.get("request_bytes_max"));
    }
}

#[test]
fn the_built_in_numbers_are_those_of_the_experiments() {
    let model = |text: &str| DeviceChoice::parse(text).unwrap().model(None).unwrap();
    let five = model("lvm-5-disks,nr_requests=2048");
    assert_eq!((five.get("disks"), five.zones[0].1, five.options().depth), (5, 82_000_000, 2048));
    assert_eq!(five.capacity_bytes(), 5 * 500_000_000_000);
    // 120 KiB at 26 MB/s and the overhead: S4's 25 MB/s.
    let usb = model("usb2-disk");
    let command_ns = usb.get("command_ns") + 122_880 * 1_000_000_000 / usb.get("interface_bytes_per_second");
    assert_eq!(122_880 * 1000 / (command_ns / 1_000_000 + 1), 24_576_000);
    assert!((24_900_000..25_100_000).contains(&(122_880 * 1_000_000_000 / command_ns)));
}

#[test]
fn overrides_change_a_number_and_say_what_is_allowed() {
    let choice = DeviceChoice::parse("throttled,rate=5MiB,latency_ns=1ms").unwrap();
    let model = choice.model(None).unwrap();
    assert_eq!(model.get("write_bytes_per_second"), 5 << 20);
    assert_eq!(model.get("read_bytes_per_second"), 5 << 20);
    assert_eq!(model.get("latency_ns"), 1_000_000);
    let wrong = |text: &str| match DeviceChoice::parse(text).and_then(|choice| choice.model(None)) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{text} is right"),
    };
    assert!(wrong("floppy").contains("floppy: no such device; there are disk, disk-82, "));
    assert!(wrong("throttled,rate").contains("an override is KEY=VALUE"));
    assert!(wrong("throttled,heads=3").starts_with("device throttled: heads: no such key; there are rate, "));
    assert!(wrong("throttled,rate=0").contains("rate: 0 is not within 1 kB/s to 1 TB/s"));
    assert!(wrong("throttled,nr_requests=many").contains("nr_requests: many is not a whole number (1 to 65536)"));
    assert!(wrong("throttled,block_bytes=1024").contains("block_bytes: 1024 is not 512 or 4096"));
    assert!(wrong("disk,allocation=random").contains("is not one of delayed, at-submission"));
    assert!(DeviceChoice::parse("disk,allocation=at-submission").unwrap().model(None).unwrap().allocate_at_submission);
}

#[test]
fn a_users_file_is_read_and_its_mistakes_are_named_with_their_place() {
    let choice = DeviceChoice::parse("lib/mine.toml,rate=7000").unwrap();
    let model = choice.model(Some(SMALL)).unwrap();
    assert_eq!((model.name.as_str(), model.get("write_bytes_per_second")), ("mine", 7000));
    assert!(!choice.is_builtin());
    let with = |from: &str, to: &str| wrong(&SMALL.replace(from, to));
    assert!(with("nr_requests = 8", "nr_requests = 0").contains("x.toml:6: nr_requests: 0 is not within 1 to 65536"));
    assert!(with("nr_requests = 8\n", "").contains("x.toml:1: nr_requests: is missing: requests in flight"));
    assert!(
        with("nr_requests", "nr_request")
            .contains("x.toml:6: nr_request: no such key (did you mean 'nr_requests'?); there are about, kind")
    );
    assert!(with("\"1 GiB\"", "\"1 GiBb\"").contains("x.toml:3: capacity_bytes: \"1 GiBb\" is not a number of bytes"));
    assert!(with("65536", "5000").contains("x.toml:5: request_bytes_max: 5000 is not a multiple of 4096"));
    assert!(with("throttled", "magic").contains("x.toml:2: kind: \"magic\" is not one of rotating, card, flash"));
    assert!(with("kind", "kind =").contains("x.toml:2: not TOML: "));
    assert!(with("latency_ns = 0", "latency_ns = 0\nlatency_ns = 1").contains("x.toml:11: "));
    assert!(with("= 512", "= 512.5").contains("x.toml:4: block_bytes: 512.5 is not a number of bytes"));
    let disk = include_str!("../../../../devices/disk-82.toml");
    for zones in ["[[500, 1_000_000]]", "7", "[[1000]]", "[[1000, 5]]", "[]", "[[500, \"1 MB\"], [\"x\", 1]]"] {
        let text = disk.replace("[[1000, \"82 MB\"]]", zones);
        let message = wrong(&text);
        assert!(message.starts_with("x.toml:18: zones: ") || message.starts_with("x.toml:17: zones: "), "{message}");
    }
}

/// A disk, frames for its requests, and the number of open requests with the task that waits for some to end.
struct LoadedDisk {
    world: World,
    disk: Arc<Disk>,
    frames: Arc<Frames>,
    open: Arc<Mutex<(u32, Option<Waker>)>>,
}

impl LoadedDisk {
    fn new(model: &Model, options: WorldOptions) -> Self {
        let world = World::new(options);
        let disk = make(&world, 3, model);
        Self { world, disk, frames: Arc::new(Frames::new(128 << 20).unwrap()), open: Arc::default() }
    }

    fn send(&self, file: DiskFileId, operation: Operation, bytes: &[u8]) {
        let open = Arc::clone(&self.open);
        open.lock().unwrap().0 += 1;
        let done = move |result: Result<(), _>, _| {
            result.unwrap();
            let mut open = open.lock().unwrap();
            open.0 -= 1;
            let waker = open.1.take();
            drop(open);
            waker.into_iter().for_each(Waker::wake);
        };
        self.disk.submit(Request::probe(&self.frames, self.disk.backing(file), operation, bytes, done));
    }

    /// Waits until fewer than `below` requests are open.
    fn until(&self, below: u32) {
        let few = std::future::poll_fn(|context| {
            let mut open = self.open.lock().unwrap();
            open.1 = Some(context.waker().clone());
            if open.0 < below { Poll::Ready(()) } else { Poll::Pending }
        });
        self.world.run(few).unwrap();
    }

    fn now_ns(&self) -> u64 {
        self.world.platform().now().0
    }
}

/// Runs writes and reads at random positions with syncs between them; returns the trace's hash.
fn run(model: &Model, seed: u64) -> u64 {
    let bench = LoadedDisk::new(model, WorldOptions::seed(seed));
    let files = [bench.disk.create_file(), bench.disk.create_file()];
    bench.disk.lay_out(files[1], 64 << 20);
    let mut random = Random::new(5);
    let data = vec![1; 65_536];
    for round in 0..30 {
        let slot = |random: &mut Random| random.below(1000) * 65_536;
        bench.send(files[0], Operation::Write { offset: slot(&mut random), len: 65_536 }, &data);
        bench.send(files[0], Operation::Write { offset: (2000 + round) * 65_536, len: 65_536 }, &data);
        bench.send(files[1], Operation::Read { offset: slot(&mut random), len: 4096 }, &[]);
        if round % 10 == 9 {
            bench.send(files[0], Operation::Sync, &[]);
        }
        bench.until(1);
    }
    let figures = bench.disk.figures();
    assert_eq!((figures.requests, figures.syncs, figures.depth), ((30, 60), 3, 0));
    assert_eq!(figures.bytes, (30 * 4096, 60 * 65_536));
    assert_eq!(figures.command_bytes, 30 * 4096 + 60 * 65_536);
    assert!(figures.busy_ns > 0 && figures.busy_ns <= bench.now_ns());
    assert_eq!(bench.disk.offsets().len(), 90);
    assert!(bench.disk.offsets().iter().all(|sample| sample.offset < model.capacity_bytes()));
    bench.world.trace_hash()
}

#[test]
fn the_same_seed_gives_the_same_run_on_every_device() {
    for model in builtin().unwrap() {
        assert_eq!(run(&model, 1), run(&model, 1), "{}", model.name);
        assert_ne!(run(&model, 1), run(&model, 2), "{}", model.name);
    }
}

/// Bytes per second of a stream of writes to one file with many requests outstanding, or of random 4 KiB writes with
/// one outstanding. Both end with a sync.
fn written_per_second(name: &str, requests: u64, random: bool) -> u64 {
    let model = DeviceChoice::parse(name).unwrap().model(None).unwrap();
    let bench = LoadedDisk::new(&model, WorldOptions { step_ns: 0, ..WorldOptions::seed(1) });
    let file = bench.disk.create_file();
    bench.disk.lay_out(file, 8 << 30);
    let len = if random { 4096 } else { model.get("request_bytes_max") };
    let depth = if random { 1 } else { bench.disk.limits().depth.min(((64 << 20) / len) as u32) };
    let data = vec![1; len as usize];
    let mut places = Random::new(3);
    for at in 0..requests {
        bench.until(depth);
        let offset = if random { places.below(2 << 20) * 4096 } else { at * len };
        bench.send(file, Operation::Write { offset, len: len as u32 }, &data);
    }
    bench.until(1);
    bench.send(file, Operation::Sync, &[]);
    bench.until(1);
    (u128::from(requests * len) * 1_000_000_000 / u128::from(bench.now_ns())) as u64
}

#[test]
fn streams_run_at_the_rates_that_the_files_name() {
    for (name, requests, low, high) in [
        ("disk-82", 100, 80_000_000, 82_000_000),
        ("lvm-5-disks", 300, 395_000_000, 410_000_000),
        ("usb2-disk", 200, 24_600_000, 25_100_000),
        ("throttled", 30, 24_500_000, 26_000_000),
        ("throttled,rate=5MiB", 30, (5 << 20) * 98 / 100, (5 << 20) * 104 / 100),
        ("sd-card", 50, 10_500_000, 11_200_000),
        ("sata-ssd", 100, 500_000_000, 550_000_000),
        ("nvme-ssd", 400, 2_300_000_000, 3_500_000_000),
        ("object-store", 16, 200_000_000, 270_000_000),
    ] {
        let rate = written_per_second(name, requests, false);
        assert!((low..=high).contains(&rate), "{name}: {rate} B/s");
    }
    // Each random write costs a card a flash block and a disk a seek; it costs flash little.
    for (name, low, high) in
        [("sd-card", 5_000, 20_000), ("disk-82", 300_000, 1_500_000), ("sata-ssd", 50_000_000, u64::MAX)]
    {
        let rate = written_per_second(name, 100, true);
        assert!((low..=high).contains(&rate), "{name}: {rate} B/s at random");
    }
}
