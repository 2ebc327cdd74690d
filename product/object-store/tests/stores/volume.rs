//! The contract of a whole volume over the adapters.

use afflux_object::{Clock, Fresh, ObjectVolume, ObjectVolumeError, RecordsError, VolumeHeader, VolumeLimits};
use afflux_object_store::{Store, StoreClock, StoreObjects, StoreRecords};
use afflux_scratch::eventually;
use bytes::Bytes;

use crate::{open, scratch, url, wait};

pub(crate) type Volume<C> = ObjectVolume<StoreObjects, StoreRecords, C>;

/// A clock whose waits end at once: a test has no older writer that may still answer.
#[derive(Clone)]
pub(crate) struct Impatient(pub(crate) StoreClock);

impl Clock for Impatient {
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }

    fn wall_ns(&self) -> u64 {
        self.0.wall_ns()
    }

    async fn sleep_until_ns(&self, _: u64) {}
}

#[test]
fn memory_keeps_the_contract_of_a_volume() {
    contract(&open("memory:").unwrap());
}

#[test]
fn a_directory_keeps_the_contract_of_a_volume() {
    let scratch = scratch();
    contract(&open(&url(&scratch)).unwrap());
}

pub(crate) fn volume(store: &Store, verifier: u64) -> Volume<Impatient> {
    volume_with(store, verifier, VolumeLimits::default())
}

pub(crate) fn volume_with(store: &Store, verifier: u64, limits: VolumeLimits) -> Volume<Impatient> {
    let fresh = Fresh { header: VolumeHeader { id: [1; 16], handle_key: [2; 16] }, verifier, is_alone: false };
    let records = wait(store.records()).unwrap();
    let clock = Impatient(store.clock());
    let volume = wait(ObjectVolume::open(store.objects(), records, clock, limits, fresh)).unwrap();
    store.serve();
    volume
}

pub(crate) fn contract(store: &Store) {
    let small = Bytes::from(vec![1; 5_000]);
    let large: Bytes = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
    let first = volume(store, 11);
    first.write(1, 0, small.clone()).unwrap();
    first.write(2, 10, large.clone()).unwrap();
    wait(first.commit(1)).unwrap();
    wait(first.commit(2)).unwrap();
    // Written and not committed.
    first.write(1, 0, Bytes::from_static(b"lost")).unwrap();
    let second = volume(store, 12);
    assert_eq!(second.verifier(), 12, "the first writer did not end");
    assert_eq!(wait(second.read(1, 0, 5_000)).unwrap(), small);
    assert_eq!(wait(second.read(2, 10, 3_000_000)).unwrap(), large);
    assert_eq!(wait(second.read(2, 0, 10)).unwrap(), [0; 10]);
    fenced(&first, &second, &small);
    garbage(store, &second);
    wait(second.close()).unwrap();
    drop(second);
    let third = volume(store, 13);
    assert_eq!(third.verifier(), 12, "the second writer ended cleanly");
    assert_eq!(wait(third.read(1, 0, 5_000)).unwrap(), small);
}

/// The first of two writers gives no answer any more.
fn fenced(old: &Volume<Impatient>, new: &Volume<Impatient>, kept: &Bytes) {
    let is_fenced = |result: Result<(), ObjectVolumeError>| {
        let ended = matches!(result, Err(ObjectVolumeError::Records(RecordsError::Fenced) | ObjectVolumeError::Closed));
        assert!(ended, "{result:?}");
    };
    is_fenced(wait(old.commit(1)));
    is_fenced(wait(old.close()));
    assert_eq!(wait(new.read(1, 0, 5_000)).unwrap(), kept.as_ref());
}

/// Replaced segments go, named ones stay.
fn garbage(store: &Store, volume: &Volume<Impatient>) {
    let segments = || wait(afflux_object::Objects::list(&store.objects(), "data/")).unwrap().len();
    let before = segments();
    assert!(before >= 1);
    volume.write(2, 0, Bytes::from(vec![3; 3_000_010])).unwrap();
    wait(volume.commit(2)).unwrap();
    assert_eq!(wait(volume.mark_dead()).unwrap(), before);
    // They are retained for readers; only the unnamed ones of the first writer would go at once.
    assert_eq!(wait(volume.delete_dead()).unwrap(), 0);
    assert_eq!(wait(volume.sweep_orphans()).unwrap(), 0);
    assert_eq!(segments(), before + 1);
    let probed = || wait(afflux_object::Objects::list(&store.objects(), "probe/")).unwrap();
    eventually("the objects of the probe are removed", || probed().is_empty());
}
