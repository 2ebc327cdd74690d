//! The volume in virtual time: clients name, write, rename and remove at the same time. Each checks the volume against
//! its own knowledge. Then a new server starts on the same tree.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use afflux_engine::{Nanos, Platform};
use afflux_simulator::{
    Disk, DiskOptions, Memory, MemoryTree, Random, Setup, SimMachine, TreeOptions, World, WorldOptions,
};
use afflux_volume::VolumeKnob;
use afflux_volume::{AttributeChange, Caller, CreateHow, Directory, SetTime, VolumeError};
use bytes::Bytes;

use crate::client::{Client, Files, OPERATIONS, Object, bytes_of, disturb, moves_forward};

/// Seeds of a plain run. `AFFLUX_SEEDS=5000` sets the number, `AFFLUX_FIRST_SEED` the first, and `AFFLUX_KEEP_GOING=1`
/// continues after a failure.
const SEEDS: u64 = 150;
const CLIENTS: u64 = 3;

pub(crate) fn number_from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

pub(crate) struct VolumeFixture {
    pub(crate) world: World,
    pub(crate) disk: Arc<Disk>,
    pub(crate) tree: Arc<MemoryTree>,
    pub(crate) volume: Arc<Files>,
}

pub(crate) fn serve(world: &World, tree: &Arc<MemoryTree>) -> Arc<Files> {
    let setup = Setup::default().with_knobs(&["dirty_expire_centisecs=50"]).unwrap();
    let mut machine = SimMachine::new(world, Memory::Whole(256 * 4096), setup).unwrap();
    machine.add_tree("disk", tree).unwrap()
}

impl VolumeFixture {
    pub(crate) fn new(seed: u64, options: TreeOptions) -> Self {
        let world = World::new(WorldOptions::seed(seed));
        let disk = Disk::new(&world, 0, DiskOptions::default());
        let tree = MemoryTree::new(&world, &disk, options);
        let volume = serve(&world, &tree);
        Self { world, disk, tree, volume }
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.world.run(future).unwrap_or_else(|error| panic!("{error}"))
    }
}

fn one_seed(seed: u64) -> u64 {
    let by_identity = seed.is_multiple_of(2);
    // As few descriptors as possible: inodes come and go all the time.
    let options = TreeOptions { by_identity, descriptors_max: 0, ..TreeOptions::default() };
    let lab = VolumeFixture::new(seed, options.clone());
    let random = Random::new(seed).fork(77);
    let ended = Arc::new(Mutex::new(Vec::new()));
    let root = lab.run(lab.volume.mount(b"")).unwrap();
    for number in 0..CLIENTS {
        let volume = Arc::clone(&lab.volume);
        let made =
            lab.run(volume.make_directory(&root, format!("home{number}").as_bytes(), AttributeChange::default()));
        let home = volume.handle(&made.result.unwrap().0).as_bytes().to_vec();
        let mut client = Client::new(volume, home, random.fork(number));
        let ended = Arc::clone(&ended);
        lab.world.spawn("client", async move {
            for _ in 0..OPERATIONS {
                client.step().await;
            }
            ended.lock().unwrap().push(client);
        });
    }
    drop(root);
    lab.world.spawn("disturb", disturb(Arc::clone(&lab.volume), random.fork(100)));
    lab.run(async {
        let platform = lab.world.platform();
        while ended.lock().unwrap().len() < CLIENTS as usize {
            platform.sleep_until(platform.now().after(100 * Nanos::MILLISECOND)).await;
            lab.volume.upkeep().await;
        }
    });
    let mut clients = std::mem::take(&mut *ended.lock().unwrap());
    lab.run(async {
        for client in &clients {
            for (name, known) in &client.files {
                client.check(name, known).await;
            }
        }
        let device = lab.volume.engine().status().devices[0].id;
        assert!(lab.volume.engine().drain(device).await.is_empty());
        assert_eq!(lab.volume.settle_all().await, 0);
    });
    // A new server: every handle is good, every byte and time is there.
    let tree = lab.tree.reopened(options);
    let volume = serve(&lab.world, &tree);
    lab.run(async {
        for client in &mut clients {
            client.volume = Arc::clone(&volume);
            for (name, known) in &client.files {
                client.check(name, known).await;
            }
            client.list().await;
            for handle in &client.gone {
                assert_eq!(volume.resolve(handle).await.err(), Some(VolumeError::Stale));
            }
        }
    });
    for (client, home) in clients.iter().map(|client| (client, lab.run(client.home()))) {
        let number = (0..CLIENTS).find(|number| {
            let found = lab.run(volume.mount(format!("home{number}").as_bytes())).unwrap();
            Arc::ptr_eq(&found, &home)
        });
        for (name, known) in &client.files {
            let file = lab.tree.file_at(&[&format!("home{}", number.unwrap()), name]).unwrap();
            assert!(lab.disk.durable(file) == known.bytes, "{name} is durable after a drain");
        }
    }
    lab.world.trace_hash()
}

#[test]
fn clients_find_what_they_did_whatever_happens_beside() {
    let first = number_from_env("AFFLUX_FIRST_SEED", 0);
    let count = number_from_env("AFFLUX_SEEDS", SEEDS);
    let keep_going = std::env::var_os("AFFLUX_KEEP_GOING").is_some();
    let mut failed = Vec::new();
    for seed in first..first.saturating_add(count) {
        if std::panic::catch_unwind(|| one_seed(seed)).is_err() {
            failed.push(seed);
            if !keep_going {
                break;
            }
        }
    }
    assert!(failed.is_empty(), "seeds {failed:?} fail");
}

#[test]
fn the_same_seed_is_the_same_run() {
    assert_eq!(one_seed(5), one_seed(5));
    assert_ne!(one_seed(5), one_seed(6));
}

#[test]
fn removed_files_leave_nothing_behind() {
    let lab = VolumeFixture::new(1, TreeOptions::default());
    lab.run(async {
        let root = lab.volume.mount(b"/").await.unwrap();
        let how = CreateHow::Guarded(AttributeChange::default());
        for round in 0..50u8 {
            let (file, _) = lab.volume.create(&root, b"file", how).await.result.unwrap();
            lab.volume.write(&file, 0, Bytes::from(vec![round; 5_000])).await.result.unwrap();
            if round % 2 == 0 {
                lab.volume.sync(&file, 0, 0).await.result.unwrap();
            }
            lab.volume.remove(&root, b"file").await.result.unwrap();
        }
    });
    let platform = lab.world.platform();
    lab.run(platform.sleep_until(platform.now().after(60 * Nanos::SECOND)));
    assert_eq!(lab.tree.objects(), 1, "the root alone");
    let status = lab.volume.engine().status();
    assert_eq!((status.dirty_bytes, status.files), (0, 0));
}

#[test]
fn what_a_sync_promises_holds_for_files_that_were_dropped_from_memory() {
    let lab = VolumeFixture::new(3, TreeOptions { descriptors_max: 0, ..TreeOptions::default() });
    let platform = lab.world.platform();
    let root = lab.run(lab.volume.mount(b"/")).unwrap();
    let how = CreateHow::Guarded(AttributeChange::default());
    let (file, _) = lab.run(lab.volume.create(&root, b"file", how)).result.unwrap();
    let handle = lab.volume.handle(&file).as_bytes().to_vec();
    lab.run(lab.volume.write(&file, 0, Bytes::from_static(b"not yet synced"))).result.unwrap();
    drop(file);
    // Written back by age: the page is clean, but no sync has asked the disk to keep it.
    lab.run(platform.sleep_until(platform.now().after(8 * Nanos::SECOND)));
    let on_disk = lab.tree.file_at(&["file"]).unwrap();
    assert_eq!((lab.disk.contents(on_disk), lab.disk.durable(on_disk)), (b"not yet synced".to_vec(), Vec::new()));
    for number in 0..200 {
        let (other, _) = lab.run(lab.volume.create(&root, format!("{number}").as_bytes(), how)).result.unwrap();
        lab.run(lab.volume.write(&other, 0, Bytes::from_static(b"dirty"))).result.unwrap();
    }
    assert!(lab.volume.try_resolve(&handle).is_none(), "dropped");
    let file = lab.run(lab.volume.resolve(&handle)).unwrap();
    lab.run(lab.volume.sync(&file, 0, 0)).result.unwrap();
    assert_eq!(lab.disk.durable(on_disk), b"not yet synced");
}

#[test]
fn an_object_that_somebody_uses_stays_the_one_that_others_find() {
    let lab = VolumeFixture::new(3, TreeOptions { descriptors_max: 0, ..TreeOptions::default() });
    let platform = lab.world.platform();
    let root = lab.run(lab.volume.mount(b"/")).unwrap();
    let how = CreateHow::Guarded(AttributeChange::default());
    let (used, _) = lab.run(lab.volume.create(&root, b"used", how)).result.unwrap();
    let (unused, _) = lab.run(lab.volume.create(&root, b"unused", how)).result.unwrap();
    let unused_handle = lab.volume.handle(&unused).as_bytes().to_vec();
    drop(unused);
    // By then all data of both is on the host: only a user keeps the one in memory.
    lab.run(platform.sleep_until(platform.now().after(60 * Nanos::SECOND)));
    for number in 0..400 {
        lab.run(lab.volume.create(&root, format!("{number}").as_bytes(), how)).result.unwrap();
    }
    assert!(lab.volume.try_resolve(&unused_handle).is_none(), "others were dropped");
    let found = lab.run(lab.volume.resolve(lab.volume.handle(&used).as_bytes())).unwrap();
    assert!(Arc::ptr_eq(&found, &used), "or each would have bytes of its own");
}

#[test]
fn changes_by_others_are_seen_and_ours_are_not_taken_for_theirs() {
    let lab = VolumeFixture::new(2, TreeOptions::default());
    let platform = lab.world.platform();
    let later = || lab.run(platform.sleep_until(platform.now().after(8 * Nanos::SECOND)));
    let root = lab.run(lab.volume.mount(b"/")).unwrap();
    let how = CreateHow::Guarded(AttributeChange::default());
    let (file, _) = lab.run(lab.volume.create(&root, b"file", how)).result.unwrap();
    let written = lab.run(lab.volume.write(&file, 0, Bytes::from_static(b"ours"))).consistency.after.unwrap();
    // The file is written back and settled without a call.
    later();
    let seen = lab.run(lab.volume.attributes(&file)).unwrap();
    assert_eq!((seen.size, seen.mtime, seen.ctime), (4, written.mtime, written.ctime));
    assert!(lab.volume.try_read(&file, 0, 4).is_some(), "still cached");
    let on_disk = lab.tree.file_at(&["file"]).unwrap();
    assert_eq!(lab.disk.contents(on_disk), b"ours");
    lab.disk.change_behind(on_disk, 6, 0, b"theirs");
    later();
    let (_, seen) = lab.run(lab.volume.lookup(&root, b"file")).unwrap();
    assert_eq!(seen.size, 6);
    assert!(seen.mtime > written.mtime && seen.ctime > written.ctime);
    assert_eq!(bytes_of(&lab.run(lab.volume.read(&file, 0, 100)).unwrap().bytes), b"theirs");
}

/// The host's attributes of "file", as a new server finds them.
fn on_host(lab: &VolumeFixture) -> afflux_volume::Attributes {
    let volume = serve(&lab.world, &lab.tree.reopened(TreeOptions::default()));
    lab.run(async {
        let root = volume.mount(b"/").await.unwrap();
        volume.lookup(&root, b"file").await.unwrap().1
    })
}

#[test]
fn a_host_with_a_coarse_clock_holds_the_times_that_clients_were_told() {
    let lab = VolumeFixture::new(6, TreeOptions { clock_tick_ns: 4 * Nanos::MILLISECOND, ..TreeOptions::default() });
    let platform = lab.world.platform();
    let root = lab.run(lab.volume.mount(b"/")).unwrap();
    let how = CreateHow::Guarded(AttributeChange::default());
    let (file, _) = lab.run(lab.volume.create(&root, b"file", how)).result.unwrap();
    for round in 0..20u8 {
        for part in 0..3 {
            lab.run(lab.volume.write(&file, part * 4096, Bytes::from(vec![round; 4096]))).result.unwrap();
        }
        let told = lab.run(lab.volume.sync(&file, 0, 0)).consistency.after.unwrap();
        assert_eq!(on_host(&lab).mtime, told.mtime, "round {round}");
        // Only the host sets the change time: it passes the reported one when the clock does.
        lab.run(platform.sleep_until(platform.now().after(1_500 * Nanos::MILLISECOND)));
        assert!(on_host(&lab).ctime >= told.ctime, "round {round}");
        let now = lab.run(lab.volume.attributes(&file)).unwrap();
        assert_eq!((now.mtime, now.ctime), (told.mtime, told.ctime), "round {round}");
    }
}

// rule: a time is reported as the file system stores it, so that it is the same after a restart, and never lies in the
// future
#[test]
fn times_are_told_in_the_unit_in_which_the_host_keeps_them() {
    for (unit_ns, tells_time_unit) in
        [100, 10_000_000, 1_000_000_000, 2_000_000_000].map(|unit| [(unit, true), (unit, false)]).concat()
    {
        let options = TreeOptions { time_unit_ns: unit_ns, tells_time_unit, ..TreeOptions::default() };
        let lab = VolumeFixture::new(10, options);
        let platform = lab.world.platform();
        let wall = || afflux_volume::Timestamp::from_wall(platform.wall_clock());
        let root = lab.run(lab.volume.mount(b"/")).unwrap();
        let how = CreateHow::Guarded(AttributeChange::default());
        let (file, _) = lab.run(lab.volume.create(&root, b"file", how)).result.unwrap();
        for round in 0..10u8 {
            let written = lab.run(lab.volume.write(&file, 0, Bytes::from(vec![round; 5000]))).consistency;
            let told = lab.run(lab.volume.sync(&file, 0, 0)).consistency.after.unwrap();
            let is_known = tells_time_unit || round > 0;
            for time in [written.before.unwrap().mtime, told.atime, told.mtime, told.ctime] {
                assert!(time <= wall(), "{time:?} is to come, with {unit_ns}");
                assert!(!is_known || time.as_nanos() % i128::from(unit_ns) == 0, "{time:?} with {unit_ns}");
            }
            assert!(written.before.unwrap().ctime <= told.ctime);
            lab.run(platform.sleep_until(platform.now().after(3_217 * Nanos::MILLISECOND + 1)));
            let (now, kept) = (lab.run(lab.volume.attributes(&file)).unwrap(), on_host(&lab));
            assert_eq!((now.atime, now.mtime), (kept.atime, kept.mtime), "round {round} with {unit_ns}");
            assert!(kept.mtime <= wall() && kept.ctime <= wall());
            assert!(!is_known || now.mtime == told.mtime, "round {round} with {unit_ns}");
        }
        // A time that a client sets is told as it is kept.
        let given = afflux_volume::Timestamp { seconds: 1_000_000_001, nanos: 123_456_789 };
        let change =
            AttributeChange { mtime: SetTime::To(given), atime: SetTime::To(given), ..AttributeChange::default() };
        let set = lab.run(lab.volume.set_attributes(&file, change, None)).consistency.after.unwrap();
        let kept = on_host(&lab);
        assert_eq!((set.atime, set.mtime), (kept.atime, kept.mtime));
    }
}

#[test]
fn the_mode_that_is_told_is_the_one_that_the_host_has_after_writing_back() {
    let lab = VolumeFixture::new(7, TreeOptions::default());
    let platform = lab.world.platform();
    let root = lab.run(lab.volume.mount(b"/")).unwrap();
    let how = CreateHow::Guarded(AttributeChange::default());
    let (file, _) = lab.run(lab.volume.create(&root, b"file", how)).result.unwrap();
    let mode = |mode| AttributeChange { mode: Some(mode), ..AttributeChange::default() };
    lab.run(lab.volume.write(&file, 0, Bytes::from_static(b"a program"))).result.unwrap();
    lab.run(lab.volume.set_attributes(&file, mode(0o6755), None)).result.unwrap();
    // The page is written back by age, if it was not before.
    lab.run(platform.sleep_until(platform.now().after(8 * Nanos::SECOND)));
    assert_eq!((on_host(&lab).mode, lab.run(lab.volume.attributes(&file)).unwrap().mode), (0o6755, 0o6755));
    let told = lab.run(lab.volume.write(&file, 0, Bytes::from_static(b"another"))).consistency;
    moves_forward(&told);
    assert_eq!((told.after.unwrap().mode, on_host(&lab).mode), (0o755, 0o755));
}

#[test]
fn a_file_that_gives_rights_away_is_not_overwritten_without_taking_them() {
    let lab = VolumeFixture::new(7, TreeOptions::default());
    let volume = &lab.volume;
    let root = lab.run(volume.mount(b"/")).unwrap();
    let how = CreateHow::Guarded(AttributeChange::default());
    let (file, _) = lab.run(volume.create(&root, b"file", how)).result.unwrap();
    let page = |value| Bytes::from(vec![value; 4096]);
    let root_user = volume.caller(0, 0, &[]);
    volume.engine().set_knob(VolumeKnob::AttributesIdleCentisecs, 0).unwrap();
    for bits in [0o4000, 0o2000] {
        lab.run(volume.write(&file, 0, page(1))).result.unwrap();
        // A local program sets the bits while the page is dirty.
        let mode = AttributeChange { mode: Some(bits | 0o777), ..AttributeChange::default() };
        let top = &lab.tree.exports()[0].root.node;
        let found = lab.run(lab.tree.lookup(top, Bytes::from_static(b"file"))).unwrap();
        lab.run(lab.tree.set(&found.node, mode, false)).unwrap();
        assert_eq!(lab.run(volume.attributes(&file)).unwrap().mode, bits | 0o777);
        assert!(volume.try_write(&Caller::SERVER, &file, 0, &page(2)).is_none(), "{bits:o}");
        // Writes of root clear them, too.
        lab.run(volume.write_by(&root_user, None, &file, 0, &page(3))).result.unwrap();
        assert_eq!(lab.run(volume.attributes(&file)).unwrap().mode, 0o777);
        assert!(volume.try_write(&Caller::SERVER, &file, 0, &page(4)).is_some(), "nothing is to be waited for");
    }
}

/// Polls once and drops the future.
fn begin_and_drop<T>(work: impl Future<Output = T>) -> bool {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    std::pin::pin!(work).poll(&mut cx).is_pending()
}

#[test]
fn bytes_that_changed_are_told_by_the_times_also_if_the_write_was_dropped() {
    let lab = VolumeFixture::new(8, TreeOptions::default());
    let volume = &lab.volume;
    let how = CreateHow::Guarded(AttributeChange::default());
    lab.run(async {
        let root = volume.mount(b"/").await.unwrap();
        let (file, _) = volume.create(&root, b"file", how).await.result.unwrap();
        let (other, _) = volume.create(&root, b"other", how).await.result.unwrap();
        volume.write(&file, 0, Bytes::from(vec![1; 4096])).await.result.unwrap();
        let told = volume.try_attributes(&file).unwrap();
        let first = || bytes_of(&volume.try_read(&file, 0, 1).unwrap().bytes)[0];
        // The first page is dirty. The second is absent and cannot be had without waiting.
        assert!(volume.try_write(&Caller::SERVER, &file, 0, &[2; 8192]).is_none());
        let tried = volume.try_attributes(&file).unwrap();
        assert_eq!(first() != 1, tried.mtime != told.mtime, "changed and told, or neither");
        // The dirty limit is reached: a writer that does not overwrite has to wait.
        let mut page = 0;
        while !begin_and_drop(volume.write(&other, page * 4096, Bytes::from(vec![7; 4096]))) {
            page += 1;
        }
        assert!(begin_and_drop(volume.write(&file, 0, Bytes::from(vec![3; 8192]))));
        assert_eq!(first(), 3, "a beginning was written");
        let dropped = volume.try_attributes(&file).unwrap();
        assert!(dropped.mtime > tried.mtime && dropped.ctime > tried.ctime);
    });
}

/// Makes a file, drops it from memory, renames it, and starts a walk of the exports for another one.
fn renamed_while_dropped(lab: &VolumeFixture) -> (Vec<u8>, Vec<u8>) {
    let root = lab.run(lab.volume.mount(b"/")).unwrap();
    let how = CreateHow::Guarded(AttributeChange::default());
    let (gone, _) = lab.run(lab.volume.create(&root, b"gone", how)).result.unwrap();
    let gone = lab.volume.handle(&gone).as_bytes().to_vec();
    lab.run(lab.volume.remove(&root, b"gone")).result.unwrap();
    assert_eq!(lab.run(lab.volume.resolve(&gone)).err(), Some(VolumeError::Stale));
    let (file, _) = lab.run(lab.volume.create(&root, b"file", how)).result.unwrap();
    let handle = lab.volume.handle(&file).as_bytes().to_vec();
    drop(file);
    for number in 0..300 {
        lab.run(lab.volume.create(&root, format!("{number}").as_bytes(), how)).result.unwrap();
    }
    assert!(lab.volume.try_resolve(&handle).is_none(), "dropped");
    (handle, gone)
}

#[test]
fn an_object_renamed_while_it_was_not_in_memory_is_found_by_its_handle() {
    let lab = VolumeFixture::new(4, TreeOptions { by_identity: false, descriptors_max: 0, ..TreeOptions::default() });
    let (handle, gone) = renamed_while_dropped(&lab);
    let root = lab.run(lab.volume.mount(b"/")).unwrap();
    lab.run(lab.volume.rename(&root, b"file", &root, b"other")).0.result.unwrap();
    let began = lab.world.platform().now();
    assert!(lab.run(lab.volume.resolve(&handle)).is_ok());
    assert!(lab.world.platform().now().since(began) < Nanos::SECOND, "its new place is known");
    assert_eq!(lab.run(lab.volume.resolve(&gone)).err(), Some(VolumeError::Stale));
}

#[test]
fn what_others_renamed_is_looked_for_before_its_handle_is_called_stale() {
    let lab = VolumeFixture::new(4, TreeOptions { by_identity: false, descriptors_max: 0, ..TreeOptions::default() });
    let (handle, gone) = renamed_while_dropped(&lab);
    // Another server on the same tree stands for a program on the host.
    let other = serve(&lab.world, &lab.tree.reopened(TreeOptions::default()));
    let root = lab.run(other.mount(b"/")).unwrap();
    lab.run(other.rename(&root, b"file", &root, b"other")).0.result.unwrap();
    assert!(lab.run(lab.volume.resolve(&handle)).is_ok());
    assert_eq!(lab.run(lab.volume.resolve(&gone)).err(), Some(VolumeError::Stale));
}

#[test]
fn a_directory_moved_behind_a_walk_takes_nothing_out_of_sight() {
    for seed in 0..100 {
        let lab =
            VolumeFixture::new(seed, TreeOptions { by_identity: false, descriptors_max: 0, ..TreeOptions::default() });
        let root = lab.run(lab.volume.mount(b"/")).unwrap();
        let make = |at: &Object, name: &str| {
            lab.run(lab.volume.make_directory(at, name.as_bytes(), AttributeChange::default())).result.unwrap().0
        };
        // Walks visit the last of them first.
        let (early, late) = (make(&root, "z"), make(&root, "a"));
        let moved = make(&late, "moved");
        let how = CreateHow::Guarded(AttributeChange::default());
        let (file, _) = lab.run(lab.volume.create(&moved, b"file", how)).result.unwrap();
        let handle = lab.volume.handle(&file).as_bytes().to_vec();
        for number in 0..20 {
            make(&early, &number.to_string());
        }
        // A new server knows no locations.
        let volume = serve(
            &lab.world,
            &lab.tree.reopened(TreeOptions { by_identity: false, descriptors_max: 0, ..TreeOptions::default() }),
        );
        let mover = Arc::clone(&volume);
        lab.world.spawn("mover", async move {
            let (from, to) = (mover.mount(b"/a").await.unwrap(), mover.mount(b"/z").await.unwrap());
            let platform = mover.engine().platform();
            for _ in 0..4 {
                for round in 0..40 {
                    let (from, to) = if round % 2 == 0 { (&from, &to) } else { (&to, &from) };
                    mover.rename(from, b"moved", to, b"moved").await.0.result.unwrap();
                }
                // Waits until the next walk.
                platform.sleep_until(platform.now().after(5 * Nanos::SECOND)).await;
            }
        });
        assert!(lab.run(volume.resolve(&handle)).is_ok(), "seed {seed}");
    }
}

/// Every name of a directory but "." and "..", in pieces of `piece`.
async fn names_of(volume: &Files, directory: &Object, piece: usize) -> BTreeSet<String> {
    let (mut cookie, mut names) = (0, BTreeSet::new());
    loop {
        let listing = volume.list(directory, cookie, piece, false).await.unwrap();
        for entry in listing.entries {
            cookie = entry.cookie;
            names.insert(String::from_utf8(entry.name.to_vec()).unwrap());
        }
        if listing.end {
            return names;
        }
        for _ in 0..4 {
            volume.engine().platform().preemption_point().await;
        }
    }
}

#[test]
fn a_listing_shows_what_was_done_before_it_whoever_else_lists() {
    for seed in 0..100 {
        let lab = VolumeFixture::new(seed, TreeOptions::default());
        // Fewer steps, so that two tasks meet more often.
        lab.volume.set_names_durable(false);
        let root = lab.run(lab.volume.mount(b"/")).unwrap();
        let how = CreateHow::Guarded(AttributeChange::default());
        for number in 0..20 {
            lab.run(lab.volume.create(&root, format!("{number}").as_bytes(), how)).result.unwrap();
        }
        let (volume, directory) = (Arc::clone(&lab.volume), Arc::clone(&root));
        lab.world.spawn("lister", async move {
            for _ in 0..1_000 {
                // The start of a listing reads the directory; entries not yet returned are kept.
                volume.list(&directory, 0, 3, false).await.unwrap();
            }
        });
        lab.run(async {
            for number in 0..20 {
                lab.volume.create(&root, format!("new {number}").as_bytes(), how).await.result.unwrap();
                lab.volume.remove(&root, format!("{number}").as_bytes()).await.result.unwrap();
                let names = names_of(&lab.volume, &root, 4).await;
                assert!(names.contains(&format!("new {number}")), "seed {seed}");
                assert!(!names.contains(&number.to_string()), "seed {seed}");
            }
        });
    }
}

#[test]
fn names_are_remembered_for_a_second_and_not_past_any_change_of_the_directory() {
    let lab = VolumeFixture::new(1, TreeOptions::default());
    let volume = &lab.volume;
    let platform = lab.world.platform();
    let wait = |ns| lab.run(platform.sleep_until(platform.now().after(ns)));
    let root = lab.run(volume.mount(b"/")).unwrap();
    let how = CreateHow::Guarded(AttributeChange::default());
    for name in [b"one", b"two"] {
        lab.run(volume.create(&root, name, how)).result.unwrap();
    }
    let knows = |name: &[u8]| volume.try_lookup(&root, name).is_some();
    let look = |name: &[u8]| drop(lab.run(volume.lookup(&root, name)));
    let forgotten_by = |change: &dyn Fn()| {
        look(b"one");
        assert!(knows(b"one"));
        assert!(!knows(b"on") && !knows(b"onee") && !knows(b"none") && !knows(b".") && !knows(b".."));
        change();
        assert!(!knows(b"one"));
    };
    forgotten_by(&|| drop(lab.run(volume.create(&root, b"three", how)).result.unwrap()));
    forgotten_by(&|| lab.run(volume.remove(&root, b"three")).result.unwrap());
    forgotten_by(&|| lab.run(volume.rename(&root, b"two", &root, b"one")).0.result.unwrap());
    forgotten_by(&|| lab.run(volume.rename(&root, b"one", &root, b"two")).0.result.unwrap());
    assert_eq!(lab.run(volume.lookup(&root, b"one")).err(), Some(VolumeError::NotFound));
    assert!(!knows(b"one"), "what is not there is not kept");
    lab.run(volume.create(&root, b"one", how)).result.unwrap();
    forgotten_by(&|| wait(Nanos::SECOND));
    // Another server changes the name: a change that the volume saw is enough, and an unseen one is noticed in time.
    let other = serve(&lab.world, &lab.tree.reopened(TreeOptions::default()));
    let there = lab.run(other.mount(b"/")).unwrap();
    forgotten_by(&|| {
        wait(Nanos::SECOND / 2);
        look(b"one");
        wait(Nanos::SECOND * 3 / 4);
        lab.run(other.remove(&there, b"two")).result.unwrap();
        assert!(knows(b"one"));
        lab.run(volume.attributes(&root)).unwrap();
    });
    look(b"one");
    lab.run(other.remove(&there, b"one")).result.unwrap();
    wait(Nanos::SECOND);
    assert!(!knows(b"one"));
    volume.engine().set_knob(VolumeKnob::AttributesIdleCentisecs, 0).unwrap();
    lab.run(volume.create(&root, b"four", how)).result.unwrap();
    look(b"four");
    assert!(!knows(b"four"), "turned off");
}

#[test]
fn nobody_finds_an_object_under_its_old_name_after_it_was_found_under_the_new() {
    for seed in 0..2000 {
        let lab = VolumeFixture::new(seed, TreeOptions::default());
        let root = lab.run(lab.volume.mount(b"/")).unwrap();
        let how = CreateHow::Guarded(AttributeChange::default());
        lab.run(lab.volume.create(&root, b"old", how)).result.unwrap();
        lab.run(lab.volume.lookup(&root, b"old")).unwrap();
        let (volume, directory) = (Arc::clone(&lab.volume), Arc::clone(&root));
        lab.world.spawn("mover", async move {
            volume.rename(&directory, b"old", &directory, b"new").await.0.result.unwrap();
        });
        let (volume, directory) = (Arc::clone(&lab.volume), Arc::clone(&root));
        lab.world.spawn("looker", async move {
            // Keeps the entry of the old name alive for as long as the name exists.
            while volume.lookup(&directory, b"old").await.is_ok() {}
        });
        lab.run(async {
            while lab.volume.lookup(&root, b"new").await.is_err() {}
            assert!(lab.volume.try_lookup(&root, b"old").is_none(), "seed {seed}");
            assert!(lab.volume.lookup(&root, b"old").await.is_err(), "seed {seed}");
        });
    }
}
