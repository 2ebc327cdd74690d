//! A volume over the tree: the clients of the volume's own tests, and the durability of answers.
//!
//! Owns: these runs.
//! Does not own: the clients.
//! Invariants: one seed is one run.

use std::sync::{Arc, Mutex};

use afflux_engine::settings::Settings;
use afflux_engine::{Engine, Nanos, Platform};
use afflux_frames::Frames;
use afflux_object::ObjectTreeOptions;
use afflux_simulator::Random;
use afflux_volume::{AttributeChange, CreateHow, Directory, HandleKey, NewDevice, SetTime, Volume, VolumeError};

use crate::check;
use crate::client::{Client, Files, OPERATIONS, bytes_of, disturb};
use crate::lab::Lab;

const SEEDS: u64 = 60;
const CLIENTS: u64 = 3;

pub(crate) fn serve(lab: &Lab) -> Arc<Files> {
    let mut settings = Settings::with([&afflux_volume::KNOBS]);
    settings.set_text("dirty_expire_centisecs=50").unwrap();
    let engine = Engine::new(Arc::clone(lab.platform()), settings, Frames::new(256 * 4096).unwrap());
    let disk = Arc::clone(&lab.disk);
    let factory = Box::new(move |_, _: &_| Ok(NewDevice::unknown("disk".to_owned(), Arc::clone(&disk) as _)));
    Volume::new(engine, Arc::clone(&lab.tree) as _, HandleKey::new([7; 16]), factory).unwrap()
}

fn one_seed(seed: u64) -> u64 {
    // As few descriptors and inodes as possible: both come and go all the time.
    let options = ObjectTreeOptions { descriptors_max: 0, inodes_max: 8, ..ObjectTreeOptions::default() };
    let mut lab = Lab::new(seed, &options);
    let volume = serve(&lab);
    let random = Random::new(seed).fork(77);
    let ended = Arc::new(Mutex::new(Vec::new()));
    let root = lab.run(volume.mount(b"")).unwrap();
    for number in 0..CLIENTS {
        let name = format!("home{number}");
        let made = lab.run(volume.make_directory(&root, name.as_bytes(), AttributeChange::default()));
        let home = volume.handle(&made.result.unwrap().0).as_bytes().to_vec();
        let mut client = Client::new(Arc::clone(&volume), home, random.fork(number));
        let ended = Arc::clone(&ended);
        lab.world.spawn("client", async move {
            for _ in 0..OPERATIONS {
                client.step().await;
            }
            ended.lock().unwrap().push(client);
        });
    }
    drop(root);
    lab.world.spawn("disturb", disturb(Arc::clone(&volume), random.fork(100)));
    lab.run(async {
        let platform = lab.platform();
        while ended.lock().unwrap().len() < CLIENTS as usize {
            platform.sleep_until(platform.now().after(100 * Nanos::MILLISECOND)).await;
            volume.upkeep().await;
        }
    });
    let mut clients = std::mem::take(&mut *ended.lock().unwrap());
    lab.run(async {
        check_all(&clients).await;
        let device = volume.engine().status().devices[0].id;
        assert!(volume.engine().drain(device).await.is_empty());
        assert_eq!(volume.settle_all().await, 0);
        lab.tree.sync_everything().await.unwrap();
    });
    check::unnamed(&lab.core.records.map());
    // A new server after a crash: every handle is good, every byte and time is there.
    let durable = lab.core.records.durable_batches();
    lab.crash(durable, &options);
    let volume = serve(&lab);
    lab.run(async {
        clients.iter_mut().for_each(|client| client.volume = Arc::clone(&volume));
        check_all(&clients).await;
        for client in &mut clients {
            client.list().await;
            for handle in &client.gone {
                assert_eq!(volume.resolve(handle).await.err(), Some(VolumeError::Stale));
            }
        }
        let platform = lab.platform();
        platform.sleep_until(platform.now().after(10 * Nanos::SECOND)).await;
    });
    assert_eq!(check::unnamed(&lab.core.records.map()), 0, "the opening reaps what the crash left");
    let files: usize = clients.iter().map(|client| client.files.len()).sum();
    assert!(lab.core.files_on_disk() >= files);
    lab.world.trace_hash()
}

async fn check_all(clients: &[Client]) {
    for client in clients {
        for (name, known) in &client.files {
            client.check(name, known).await;
        }
    }
}

#[test]
fn clients_find_what_they_did_also_after_a_crash() {
    for seed in 0..SEEDS {
        assert!(std::panic::catch_unwind(|| one_seed(seed)).is_ok(), "seed {seed} fails");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    assert_eq!(one_seed(5), one_seed(5));
    assert_ne!(one_seed(5), one_seed(6));
}

/// Makes names one after the other through a volume. Returns the names that were answered and not durable then.
fn answered_early(lab: &Lab, names: usize) -> usize {
    let volume = serve(lab);
    let root = lab.run(volume.mount(b"/")).unwrap();
    let mut early = 0;
    for number in 0..names {
        let how = CreateHow::Guarded(AttributeChange::default());
        lab.run(volume.create(&root, format!("{number}").as_bytes(), how)).result.unwrap();
        early += usize::from(lab.core.records.durable_batches() < lab.core.records.batches());
    }
    early
}

#[test]
fn a_change_is_answered_after_it_is_durable() {
    let lab = Lab::new(3, &ObjectTreeOptions::default());
    assert_eq!(answered_early(&lab, 20), 0);
}

// rule: Setting attributes to what they are takes no round trip, unless they are not durable yet.
#[test]
fn attributes_that_stay_the_same_wait_for_earlier_batches_only() {
    let lab = Lab::new(3, &ObjectTreeOptions::default());
    let volume = serve(&lab);
    let root = lab.run(volume.mount(b"/")).unwrap();
    let how = CreateHow::Guarded(AttributeChange::default());
    let (file, _) = lab.run(volume.create(&root, b"file", how)).result.unwrap();
    let mode = |mode| AttributeChange { mode: Some(mode), ..AttributeChange::default() };
    let set = |change| {
        let given = lab.core.records.batches();
        lab.run(volume.set_attributes(&file, change, None)).result.unwrap();
        (given, lab.core.records.durable_batches())
    };
    let (given, durable) = set(mode(0o640));
    assert!(durable > given, "a change is durable");
    let (given, durable) = set(mode(0o640));
    assert!(durable == given && lab.core.records.batches() == given + 1, "only the change time is on its way");
    let (given, again) = set(mode(0o640));
    assert!(again == durable && given > again, "an earlier change time is not waited for either");
    // A change that nobody waited for is not durable yet.
    let node = lab.lookup(&lab.root(), "file").unwrap().node;
    lab.run(lab.tree.set(&node, mode(0o600), false)).unwrap();
    let (given, durable) = set(mode(0o600));
    assert!(durable >= given, "the mode was not durable");
}

#[test]
fn the_last_change_is_one_that_a_client_wanted_and_not_the_time_that_the_server_settles() {
    let lab = Lab::new(3, &ObjectTreeOptions::default());
    let volume = serve(&lab);
    let root = lab.run(volume.mount(b"/")).unwrap();
    let how = CreateHow::Guarded(AttributeChange::default());
    let (file, _) = lab.run(volume.create(&root, b"file", how)).result.unwrap();
    lab.run(volume.write(&file, 0, vec![5; 5_000].into())).result.unwrap();
    let (given, last) = (lab.core.records.batches(), lab.tree.last_change());
    lab.run(volume.sync(&file, 0, 0)).result.unwrap();
    assert!(lab.core.records.batches() > given, "the server settles the time");
    assert_eq!(lab.tree.last_change(), last);
    // A client that wants the same time waits until it is durable.
    let mtime = SetTime::To(lab.run(volume.attributes(&file)).unwrap().mtime);
    let settled = lab.core.records.batches();
    lab.run(volume.set_attributes(&file, AttributeChange { mtime, ..AttributeChange::default() }, None))
        .result
        .unwrap();
    assert!(lab.core.records.durable_batches() >= settled);
    let change = AttributeChange { mode: Some(0o600), ..AttributeChange::default() };
    lab.run(volume.set_attributes(&file, change, None)).result.unwrap();
    assert!(lab.tree.last_change() > last);
}

#[test]
fn with_async_metadata_a_crash_undoes_the_last_changes_in_order() {
    let options = ObjectTreeOptions { async_metadata: true, ..ObjectTreeOptions::default() };
    for kept in [1, 5, 20] {
        let mut lab = Lab::new(3, &options);
        let before = lab.core.records.batches();
        assert!(answered_early(&lab, 20) > 0, "no answer waits");
        let all = lab.core.records.batches();
        assert_eq!(all, before + 20);
        lab.crash((before + kept).max(lab.core.records.durable_batches()), &options);
        let left = lab.core.records.batches() - before;
        let root = lab.root();
        for number in 0..20 {
            let found = lab.lookup(&root, &format!("{number}"));
            assert_eq!(found.is_ok(), number < left, "{number} of {left}");
        }
        // A sync waits for all.
        answered_early_names(&lab);
        lab.run(lab.tree.sync(&root)).unwrap();
        assert_eq!(lab.core.records.durable_batches(), lab.core.records.batches());
    }
}

fn answered_early_names(lab: &Lab) {
    let root = lab.root();
    for name in ["a", "b"] {
        lab.make(&root, name, afflux_volume::New::Directory);
    }
    assert!(lab.core.records.durable_batches() < lab.core.records.batches());
}

#[test]
fn a_removed_file_is_read_by_its_holders_and_then_leaves_nothing() {
    let lab = Lab::new(4, &ObjectTreeOptions::default());
    let volume = serve(&lab);
    lab.run(async {
        let root = volume.mount(b"/").await.unwrap();
        let how = CreateHow::Guarded(AttributeChange::default());
        let (file, _) = volume.create(&root, b"file", how).await.result.unwrap();
        volume.write(&file, 0, vec![5; 5_000].into()).await.result.unwrap();
        volume.sync(&file, 0, 0).await.result.unwrap();
        volume.remove(&root, b"file").await.result.unwrap();
        let platform = lab.platform();
        platform.sleep_until(platform.now().after(5 * Nanos::SECOND)).await;
        assert_eq!(check::unnamed(&lab.core.records.map()), 1, "it is held");
        let read = volume.read(&file, 0, 5_000).await.unwrap();
        assert!(bytes_of(&read.bytes) == vec![5; 5_000]);
        drop((read, file));
        platform.sleep_until(platform.now().after(5 * Nanos::SECOND)).await;
    });
    assert_eq!(check::unnamed(&lab.core.records.map()), 0);
    assert_eq!(lab.core.files_on_disk(), 0);
}
