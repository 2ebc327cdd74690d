//! Names under a writer that is taken over, in a store with faults.
//!
//! Owns: two writers that make names, the order of their answers.
//! Does not own: the tree's calls, which have tests in virtual time.
//! Invariants: a name counts as answered after a sync.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use afflux_volume::{AttributeChange, Directory, New, VolumeError, XattrChange};
use bytes::Bytes;

use super::log::Log;
use super::store::{MS, Store};
use crate::format::records::WITH_ACLS;
use crate::open::get;
use crate::{
    Durability, Fresh, ObjectTree, ObjectTreeOptions, ObjectVolume, ObjectVolumeError, RecordDatabase, VolumeHeader,
    VolumeLimits,
};

const SEEDS: u64 = 100;
const NAMES: u64 = 30;

type Volume = ObjectVolume<Store, Arc<Log>, Store>;
type Tree = ObjectTree<Volume>;
type Task = Pin<Box<dyn Future<Output = ()>>>;

/// The epoch and the name of each answer, in their order.
type Answers = Arc<Mutex<Vec<(u32, String)>>>;

async fn open(store: &Store) -> Result<(u32, Arc<Tree>), ObjectVolumeError> {
    open_both(store).await.map(|(epoch, _, tree)| (epoch, tree))
}

async fn open_both(store: &Store) -> Result<(u32, Arc<Volume>, Arc<Tree>), ObjectVolumeError> {
    let log = Log::open(store.clone()).await?;
    let epoch = log.epoch();
    let header = VolumeHeader { id: [1; 16], handle_key: [2; 16] };
    let fresh = Fresh { header, verifier: store.world().random.next(), is_alone: false };
    let volume = ObjectVolume::open(store.clone(), log, store.clone(), VolumeLimits::default(), fresh).await?;
    let volume = Arc::new(volume);
    let tree = ObjectTree::open(Arc::clone(&volume), ObjectTreeOptions::default()).await?;
    Ok((epoch, volume, tree))
}

async fn make(tree: &Tree, name: &str) -> Result<(), VolumeError> {
    let root = &tree.exports()[0].root.node;
    let name = Bytes::copy_from_slice(name.as_bytes());
    let made = tree.create(root, name, New::Regular, AttributeChange::default(), true).await?;
    tree.sync(&made.found.node).await
}

/// Makes names until the volume is lost, or all are there.
async fn writer(store: Store, answers: Answers, starts_after_ns: u64) {
    store.sleep_ns(starts_after_ns).await;
    let Ok((epoch, tree)) = open(&store).await else { return };
    let before = answers.lock().unwrap().clone();
    let found = tree.identities(&tree.exports()[0].root.node).await;
    let Ok(found) = found else { return };
    for (_, name) in before.iter().filter(|(of, _)| *of < epoch) {
        assert!(found.iter().any(|entry| entry.name == name.as_bytes()), "{name} was answered and is lost");
    }
    for count in 0..NAMES {
        let name = format!("{epoch}-{count}");
        if make(&tree, &name).await.is_err() {
            return;
        }
        answers.lock().unwrap().push((epoch, name));
        let pause_ns = store.world().random.below(1_000 * MS);
        store.sleep_ns(pause_ns).await;
    }
}

/// Runs both writers. The first one sleeps now and then, as a suspended machine does.
fn run(seed: u64) -> Vec<(u32, String)> {
    let store = Store::new(seed);
    let answers = Answers::default();
    let second_ns = store.world().random.below(20_000 * MS);
    let start = |after_ns| Box::pin(writer(store.clone(), Arc::clone(&answers), after_ns)) as Task;
    let mut writers = [Some(start(0)), Some(start(second_ns))];
    let mut frozen_until_ns = 0;
    while writers.iter().any(Option::is_some) {
        let now_ns = store.world().now_ns;
        if store.world().random.one_in(60) {
            frozen_until_ns = now_ns + store.world().random.below(30_000 * MS);
            // Something happens at the end of the sleep.
            let wakes = store.clone();
            let mut sleep = Box::pin(async move { wakes.sleep_ns(frozen_until_ns - now_ns).await });
            let _ = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        for (at, writer) in writers.iter_mut().enumerate() {
            let is_frozen = at == 0 && now_ns < frozen_until_ns;
            let mut context = Context::from_waker(Waker::noop());
            if !is_frozen && writer.as_mut().is_some_and(|task| task.as_mut().poll(&mut context).is_ready()) {
                *writer = None;
            }
        }
        store.world().advance();
    }
    let violations = std::mem::take(&mut store.world().checker.violations);
    assert!(violations.is_empty(), "seed {seed}: {violations:?}");
    let answers = answers.lock().unwrap();
    answers.clone()
}

#[test]
fn a_successor_has_all_answered_names_and_the_old_writer_answers_nothing_after_it() {
    let (mut first, mut second) = (0, 0);
    for seed in 0..SEEDS {
        let answers = run(seed);
        assert!(answers.is_sorted_by_key(|(epoch, _)| *epoch), "seed {seed}: {answers:?}");
        let is_first = |(epoch, _): &&(u32, String)| *epoch == answers[0].0;
        first += answers.iter().take_while(is_first).count() as u64;
        second += answers.iter().skip_while(is_first).count() as u64;
    }
    assert!(first > 2 * SEEDS && second > 10 * SEEDS, "too little happened: {first}, {second}");
}

/// Runs a task alone to its end.
fn alone<T>(store: &Store, task: impl Future<Output = T>) -> T {
    let mut task = Box::pin(task);
    loop {
        if let Poll::Ready(done) = task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return done;
        }
        store.world().advance();
    }
}

#[test]
fn a_written_file_has_its_size_before_a_commit_and_after_an_opening_and_a_removed_one_leaves_nothing() {
    let store = Store::new(1);
    store.world().is_calm = true;
    let of_test = store.clone();
    alone(&store, async move {
        let (_, volume, tree) = open_both(&of_test).await.unwrap();
        let root = tree.exports()[0].root.node.clone();
        let name = Bytes::from_static(b"file");
        let made = tree.create(&root, name.clone(), New::Regular, AttributeChange::default(), true).await.unwrap();
        let ino = made.found.stat.fileid;
        volume.write(ino, 0, Bytes::from(vec![1; 100])).unwrap();
        let written = tree.stat(&made.found.node).await.unwrap();
        assert_eq!((written.size, written.used), (100, 100));
        volume.commit(ino).await.unwrap();
        volume.close().await.unwrap();
        let (_, volume, tree) = open_both(&of_test).await.unwrap();
        let root = tree.exports()[0].root.node.clone();
        let found = tree.lookup(&root, name.clone()).await.unwrap();
        assert_eq!(found.stat, written);
        volume.write(ino, 0, Bytes::from(vec![2; 200])).unwrap();
        assert_eq!(tree.stat(&found.node).await.unwrap().size, 200, "the record was not read before");
        drop(found);
        tree.remove(&root, name, false, true).await.unwrap();
        let mut reaper = Box::pin(tree.reaper());
        let of_file = |kind: u8| [&[kind][..], &ino.to_be_bytes()].concat();
        loop {
            let polled = reaper.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
            let left = volume.records.scan(of_file(b'i'), of_file(b'j'), Durability::Applied).await.unwrap();
            let extents = volume.records.scan(of_file(b'x'), of_file(b'y'), Durability::Applied).await.unwrap();
            if left.is_empty() && extents.is_empty() {
                return;
            }
            of_test.sleep_ns(10 * MS).await;
        }
    });
}

/// The features that a volume's header names.
async fn features(volume: &Volume) -> u64 {
    let header = get(volume.records(), VolumeHeader::KEY).await.unwrap().unwrap();
    VolumeHeader::decode(&header).unwrap().1
}

// rule: a program that knows no access control lists refuses a volume that has one
// kept in: `product/object/src/open.rs`
#[test]
fn a_volume_gets_the_feature_of_lists_with_its_first_list() {
    let store = Store::new(1);
    store.world().is_calm = true;
    let of_test = store.clone();
    let entry = |tag: u16| [&tag.to_le_bytes()[..], &[6, 0, 255, 255, 255, 255]].concat();
    let list = |tags: &[u16]| Bytes::from([vec![2, 0, 0, 0], tags.iter().copied().flat_map(entry).collect()].concat());
    let (minimal, masked) = (list(&[1, 4, 0x20]), list(&[1, 4, 0x10, 0x20]));
    alone(&store, async move {
        let (_, volume, tree) = open_both(&of_test).await.unwrap();
        let root = tree.exports()[0].root.node.clone();
        make(&tree, "file").await.unwrap();
        let file = tree.lookup(&root, Bytes::from_static(b"file")).await.unwrap().node;
        let set = |value: &Bytes| {
            let name = Bytes::from_static(afflux_volume::ACCESS_ACL);
            tree.change_xattr(&file, name, XattrChange::Set(value.clone()), true)
        };
        let changed = set(&minimal).await.unwrap().stat;
        assert_eq!(changed.mode & 0o777, 0o666, "such a list is the mode");
        assert_eq!(features(&volume).await, 0, "programs that know no lists read the volume");
        set(&masked).await.unwrap();
        assert_eq!(features(&volume).await, WITH_ACLS);
        volume.close().await.unwrap();
        let (_, volume, tree) = open_both(&of_test).await.unwrap();
        assert_eq!(features(&volume).await, WITH_ACLS);
        let root = tree.exports()[0].root.node.clone();
        let file = tree.lookup(&root, Bytes::from_static(b"file")).await.unwrap().node;
        assert_eq!(tree.xattr(&file, Bytes::from_static(afflux_volume::ACCESS_ACL)).await.unwrap(), masked);
    });
}
