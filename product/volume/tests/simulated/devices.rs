//! Files of two devices. The host keeps calls about one device waiting. The volume makes this device
//! once, which the tests count. Calls about the other device end.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use afflux_engine::settings::Settings;
use afflux_engine::{Engine, Nanos, Platform};
use afflux_frames::Frames;
use afflux_simulator::{Disk, DiskOptions, MemoryTree, SimPlatform, TreeOptions, World, WorldOptions};
use afflux_volume::{AttributeChange, CreateHow, DeviceFactory, HandleKey, Inode, NewDevice, Volume, VolumeError};
use bytes::Bytes;

use crate::stale_handles::{BELOW, Counting, DEVICE_BELOW, Lists, serve};

/// A volume with a file on a second device.
struct Fixture {
    world: World,
    volume: Arc<Volume<SimPlatform>>,
    host: Arc<Lists>,
    file: Arc<Inode<SimPlatform>>,
    /// How often the world was asked for the second device.
    asked: Arc<AtomicU64>,
    /// The world refuses it.
    refuses: Arc<AtomicBool>,
}

impl Fixture {
    fn new() -> Self {
        Self::on(TreeOptions::default())
    }

    fn on(options: TreeOptions) -> Self {
        let world = World::new(WorldOptions::seed(1));
        let disk = Disk::new(&world, 0, DiskOptions::default());
        let tree = MemoryTree::new(&world, &disk, options.clone());
        let earlier = serve(&world, Arc::clone(&tree) as _, &tree);
        let create = async {
            let root = earlier.mount(b"/").await.unwrap();
            earlier.create(&root, BELOW, CreateHow::Guarded(AttributeChange::default())).await.result.unwrap();
        };
        world.run(create).unwrap();
        let tree = tree.reopened(options);
        let (asked, refuses) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (count, refused) = (Arc::clone(&asked), Arc::clone(&refuses));
        let factory: DeviceFactory = Box::new(move |key, _| {
            if key == DEVICE_BELOW {
                count.fetch_add(1, Ordering::Relaxed);
                if refused.load(Ordering::Relaxed) {
                    return Err(VolumeError::NoMemory);
                }
            }
            Ok(NewDevice::unknown(format!("disk{}", key.0), Arc::clone(&disk) as _))
        });
        let host = Arc::new(Lists::default());
        let counting = Counting { tree, entries: Arc::default(), lists: Arc::clone(&host) };
        let frames = Frames::new(256 * 4096).unwrap();
        let engine = Engine::new(Arc::clone(world.platform()), Settings::with([&afflux_volume::KNOBS]), frames);
        let volume = Volume::new(engine, Arc::new(counting), HandleKey::new([7; 16]), factory).unwrap();
        let root = world.run(volume.mount(b"/")).unwrap().unwrap();
        let file = world.run(volume.lookup(&root, BELOW)).unwrap().unwrap().0;
        Self { world, volume, host, file, asked, refuses }
    }

    /// A file on the first device.
    fn other(&self) -> Arc<Inode<SimPlatform>> {
        self.world
            .run(async {
                let root = self.volume.mount(b"/").await.unwrap();
                let how = CreateHow::Guarded(AttributeChange::default());
                self.volume.create(&root, b"other", how).await.result.unwrap().0
            })
            .unwrap()
    }

    /// How often the world was asked for the second device, and how many devices the engine has.
    fn counts(&self) -> (u64, usize) {
        (self.asked.load(Ordering::Relaxed), self.volume.engine().status().devices.len())
    }

    /// Lets all tasks go on until nothing happens.
    fn pass(&self) {
        let platform = Arc::clone(self.world.platform());
        self.world.run(platform.sleep_until(platform.now().after(1_000_000))).unwrap();
    }

    /// Begins a call, which waits.
    fn begin<T>(&self, mut call: Pin<&mut (impl Future<Output = T> + ?Sized)>) {
        let waits = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending()));
        assert!(self.world.run(waits).unwrap());
        self.pass();
    }

    /// Begins to read the file; adds the outcome when there is one.
    fn read(&self, outcomes: &Outcomes) {
        let (volume, file, outcomes) = (Arc::clone(&self.volume), Arc::clone(&self.file), Arc::clone(outcomes));
        self.world.spawn("reader", async move {
            let outcome = volume.read(&file, 0, 1).await.map(drop);
            outcomes.lock().unwrap().push(outcome);
        });
    }
}

/// The outcomes of calls, in the order of their ends.
type Outcomes = Arc<Mutex<Vec<Result<(), VolumeError>>>>;

#[test]
fn two_files_that_are_opened_at_one_time_on_a_new_device_make_it_once() {
    let lab = Fixture::new();
    let outcomes = Outcomes::default();
    lab.host.hold(true);
    lab.read(&outcomes);
    let limit = lab.volume.file_bytes_max(&lab.file);
    let mut limit = std::pin::pin!(limit);
    lab.begin(limit.as_mut());
    lab.pass();
    assert!(outcomes.lock().unwrap().is_empty());
    assert_eq!(lab.counts(), (0, 1), "the host keeps the making waiting");
    lab.host.hold(false);
    lab.world.run(limit).unwrap();
    lab.pass();
    assert_eq!(*outcomes.lock().unwrap(), [Ok(())]);
    assert_eq!(lab.counts(), (1, 2));
}

#[test]
fn a_caller_that_goes_away_leaves_a_whole_device() {
    let lab = Fixture::new();
    lab.host.hold(true);
    let mut first = Box::pin(lab.volume.file_bytes_max(&lab.file));
    lab.begin(first.as_mut());
    drop(first);
    lab.host.hold(false);
    lab.pass();
    assert_eq!(lab.counts(), (1, 2), "it is made without the caller");
    lab.world.run(lab.volume.read(&lab.file, 0, 1)).unwrap().unwrap();
    assert_eq!(lab.counts(), (1, 2));
}

#[test]
fn callers_that_go_away_while_a_device_is_made_leave_one_making() {
    let lab = Fixture::new();
    lab.host.hold(true);
    for _ in 0..10 {
        let mut gone = Box::pin(lab.volume.file_bytes_max(&lab.file));
        lab.begin(gone.as_mut());
    }
    lab.pass();
    assert_eq!(lab.host.waiting(), 1, "makings");
    lab.host.hold(false);
    lab.pass();
    assert_eq!(lab.counts(), (1, 2));
}

#[test]
fn a_device_that_could_not_be_made_is_tried_again() {
    let lab = Fixture::new();
    lab.refuses.store(true, Ordering::Relaxed);
    let refused = lab.world.run(lab.volume.read(&lab.file, 0, 1)).unwrap();
    assert_eq!(refused.err(), Some(VolumeError::NoMemory));
    assert_eq!(lab.counts(), (1, 1));
    lab.refuses.store(false, Ordering::Relaxed);
    lab.world.run(lab.volume.read(&lab.file, 0, 1)).unwrap().unwrap();
    assert_eq!(lab.counts(), (2, 2));
}

// rule: 6: a device that hangs keeps no file of another from the times that clients got
// kept in: `product/volume/src/objects/devices.rs`
#[test]
fn a_device_that_hangs_keeps_no_file_of_another_from_its_times() {
    let lab = Fixture::new();
    let other = lab.other();
    for file in [&lab.file, &other] {
        lab.world.run(lab.volume.write(file, 0, Bytes::from_static(b"bytes"))).unwrap().result.unwrap();
    }
    lab.host.hold(true);
    let platform = Arc::clone(lab.world.platform());
    lab.world.run(platform.sleep_until(platform.now().after(120 * Nanos::SECOND))).unwrap();
    assert_eq!(lab.host.waiting(), 1, "the host sets the time of one file");
    assert_eq!(lab.host.sets.load(Ordering::Relaxed), 2, "and has set that of the other");
    lab.host.hold(false);
    lab.pass();
}

// rule: 6: a device that hangs keeps no object of another from its upkeep
// kept in: `product/volume/src/coherence.rs`
#[test]
fn a_device_that_hangs_keeps_no_unused_object_of_another_from_being_looked_after() {
    const ROUNDS: u64 = 5;
    let lab = Fixture::new();
    drop(lab.other());
    let Fixture { world, volume, host, file, .. } = lab;
    drop(file);
    host.hold(true);
    volume.upkeep_every(Nanos::SECOND);
    let platform = Arc::clone(world.platform());
    let wait = |ns| world.run(platform.sleep_until(platform.now().after(ns))).unwrap();
    let looks_in_rounds = || {
        let before = host.looks.load(Ordering::Relaxed);
        wait(ROUNDS * Nanos::SECOND);
        host.looks.load(Ordering::Relaxed) - before
    };
    // A first round finds the objects used. From here on the end of a wait lies between two rounds.
    wait(Nanos::SECOND * 5 / 2);
    assert_eq!(host.waiting(), 1, "a look at the first device waits");
    assert_eq!(looks_in_rounds(), ROUNDS, "each round looks at the device below");
    // The device that hangs has one more unused object.
    let make = async {
        let root = volume.mount(b"/").await.unwrap();
        let how = CreateHow::Guarded(AttributeChange::default());
        drop(volume.create(&root, b"one more", how).await.result.unwrap());
    };
    world.run(make).unwrap();
    assert_eq!(looks_in_rounds(), ROUNDS, "one round at a time looks at the device that hangs");
    host.hold(false);
    wait(Nanos::SECOND);
    assert_eq!(looks_in_rounds(), 2 * ROUNDS, "both devices are looked at again");
}

// rule: 6: devices that hang keep no object from being opened, however many objects wait to be made clean
// kept in: `product/volume/src/handles/mod.rs`
#[test]
fn devices_that_hang_keep_no_object_from_being_opened() {
    const FILES: u64 = 200;
    // As few descriptors as there can be.
    let lab = Fixture::on(TreeOptions { descriptors_max: 0, ..TreeOptions::default() });
    let Fixture { world, volume, host, file, .. } = lab;
    let bytes = || Bytes::from_static(b"bytes");
    world.run(volume.write(&file, 0, bytes())).unwrap().result.unwrap();
    drop(file);
    host.holds_all_sets.store(true, Ordering::Relaxed);
    host.hold(true);
    let platform = Arc::clone(world.platform());
    let began = platform.now();
    let opened = async {
        let root = volume.mount(b"/").await.unwrap();
        for number in 0..FILES {
            let how = CreateHow::Guarded(AttributeChange::default());
            let created = volume.create(&root, format!("f{number}").as_bytes(), how).await;
            let (file, _) = created.result.unwrap();
            volume.write(&file, 0, bytes()).await.result.unwrap();
        }
    };
    world.run(opened).unwrap();
    assert!(platform.now().since(began) < 3 * Nanos::SECOND, "one caller waits for each device");
    // Of each of two devices: one task makes objects clean, one sets the times of clean ones.
    assert!((1..=4).contains(&host.waiting()), "{}", host.waiting());
    host.hold(false);
    world.run(platform.sleep_until(platform.now().after(Nanos::SECOND))).unwrap();
    assert_eq!(host.waiting(), 0);
}
