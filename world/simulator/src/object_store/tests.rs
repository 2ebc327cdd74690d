//! Tests of the store and its records: times, fates, effects that outlive a world, fences.

use std::sync::Arc;

use afflux_engine::{Nanos, Platform};
use afflux_object::{Durability, ObjectError, Objects, PutOutcome, RecordChange, RecordDatabase, RecordsError};
use bytes::Bytes;
use futures_util::future::join_all;

use super::{ObjectContents, ObjectRecords, ObjectStore, StoreFaults, StoreOptions};
use crate::world::{World, WorldOptions};

const MS: u64 = Nanos::MILLISECOND;

fn world(seed: u64) -> World {
    World::new(WorldOptions { step_ns: 0, ..WorldOptions::seed(seed) })
}

fn faulty(faults: StoreFaults) -> StoreOptions {
    StoreOptions { faults, ..StoreOptions::default() }
}

#[test]
fn a_call_takes_a_round_trip_and_its_bytes_and_calls_share_the_bandwidth() {
    let world = world(1);
    let options = StoreOptions { bytes_per_second: 200_000_000, ..StoreOptions::default() };
    let store = ObjectStore::new(&world, &ObjectContents::default(), options);
    let platform = Arc::clone(world.platform());
    let put = |name: &'static str| store.create(name, Bytes::from(vec![0; 10_000_000]));
    world
        .run(async {
            let began = platform.now().0;
            assert_eq!(put("data/a").await, Ok(PutOutcome::New));
            assert_eq!((platform.now().0 - began) / MS, 30 + 100, "one call has 100 MB/s");
            let began = platform.now().0;
            let four = join_all(["data/b", "data/c", "data/d", "data/a"].map(put)).await;
            assert_eq!(four[3], Ok(PutOutcome::Present));
            assert_eq!((platform.now().0 - began) / MS, 30 + 200, "four have 200 MB/s together");
            assert_eq!(store.get("data/b", 9_999_999..20_000_000).await, Ok(Bytes::from_static(&[0]).into()));
            assert_eq!(store.get("data/x", 0..1).await, Err(ObjectError::Missing));
        })
        .unwrap();
    assert_eq!((store.figures().puts, store.figures().gets, store.figures().requests_max), (5, 2, 4));
}

#[test]
fn each_fate_has_its_effect() {
    let fates = [
        (StoreFaults { busy: 1000, ..StoreFaults::default() }, ObjectError::Busy, 0),
        (StoreFaults { lost: 1000, ..StoreFaults::default() }, ObjectError::Unknown, 0),
        (StoreFaults { unanswered: 1000, ..StoreFaults::default() }, ObjectError::Unknown, 1),
    ];
    for (faults, error, objects) in fates {
        let (world, contents) = (world(1), ObjectContents::default());
        let store = ObjectStore::new(&world, &contents, faulty(faults));
        assert_eq!(world.run(store.create("data/a", Bytes::new())).unwrap(), Err(error));
        assert_eq!(contents.names("").len(), objects, "{faults:?}");
    }
}

#[test]
fn a_late_put_may_take_effect_after_its_world() {
    let mut after = [0; 2];
    for seed in 0..60 {
        let (first, contents) = (world(seed), ObjectContents::default());
        let store = ObjectStore::new(&first, &contents, faulty(StoreFaults { late: 1000, ..StoreFaults::default() }));
        assert!(first.run(store.create("data/a", Bytes::new())).unwrap().is_err());
        drop(first);
        let before = contents.names("").len();
        let second = world(seed);
        let _store = ObjectStore::new(&second, &contents, StoreOptions::default());
        second.run(second.platform().sleep_until(Nanos(60 * Nanos::SECOND))).unwrap();
        if before == 0 {
            after[contents.names("").len()] += 1;
        }
    }
    assert!(after[0] > 5 && after[1] > 5, "{after:?}");
}

#[test]
fn a_store_that_is_away_answers_nothing_and_loses_nothing() {
    let (world, contents) = (world(1), ObjectContents::default());
    let store = ObjectStore::new(&world, &contents, StoreOptions::default());
    world.run(store.create("data/a", Bytes::new())).unwrap().unwrap();
    store.be_away(60 * Nanos::SECOND);
    assert_eq!(world.run(store.get("data/a", 0..1)).unwrap(), Err(ObjectError::Unknown));
    world.run(world.platform().sleep_until(Nanos(61 * Nanos::SECOND))).unwrap();
    assert_eq!(world.run(store.get("data/a", 0..1)).unwrap(), Ok(Bytes::new().into()));
}

#[test]
fn batches_share_entries_and_a_fenced_writer_makes_none() {
    let (world, contents) = (world(1), ObjectContents::default());
    let store = ObjectStore::new(&world, &contents, StoreOptions::default());
    let put = |key: u8| vec![RecordChange::Put(vec![key], vec![key]), RecordChange::Add(vec![0], 1)];
    world
        .run(async {
            let first = ObjectRecords::open(world.platform(), &store).await.unwrap();
            let sequences: Vec<_> = (1..=8).map(|key| first.apply(put(key)).unwrap()).collect();
            first.durable(sequences[7]).await.unwrap();
            assert_eq!(contents.names("log/").len(), 2, "a fence and one entry");
            let second = ObjectRecords::open(world.platform(), &store).await.unwrap();
            assert_eq!((first.epoch(), second.epoch()), (1, 2));
            let sum = second.scan(vec![0], vec![1], Durability::Remote).await.unwrap();
            assert_eq!(sum, [(vec![0], 8_u64.to_be_bytes().to_vec())]);
            let late = first.apply(put(9)).unwrap();
            assert_eq!(first.durable(late).await, Err(RecordsError::Fenced));
            assert_eq!(first.apply(put(10)), Err(RecordsError::Fenced));
            assert_eq!(second.scan(vec![9], vec![11], Durability::Applied).await, Ok(Vec::new()));
            assert_eq!(second.prove().await, Ok(()));
        })
        .unwrap();
}
