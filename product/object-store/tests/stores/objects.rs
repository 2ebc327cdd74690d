//! The contract of `Objects`.

use afflux_object::{ByteParts, ObjectError, Objects, PutOutcome};
use afflux_object_store::Store;
use bytes::Bytes;

use crate::{open, scratch, url, wait};

#[test]
fn memory_keeps_the_contract_of_objects() {
    contract(&open("memory:").unwrap());
}

#[test]
fn a_directory_keeps_the_contract_of_objects() {
    let scratch = scratch();
    contract(&open(&url(&scratch)).unwrap());
}

pub(crate) fn contract(store: &Store) {
    contract_without_races(store);
    races(store);
}

pub(crate) fn contract_without_races(store: &Store) {
    creation(store);
    ranges(store);
    names(store);
    removal(store);
}

fn creation(store: &Store) {
    let objects = store.objects();
    let create = |bytes: &'static [u8]| wait(objects.create("data/01/first", Bytes::from_static(bytes)));
    assert_eq!(create(b"one"), Ok(PutOutcome::New));
    assert_eq!(create(b"two"), Ok(PutOutcome::Present));
    assert_eq!(wait(objects.get("data/01/first", 0..3)).map(ByteParts::joined), Ok(Bytes::from_static(b"one")));
    assert_eq!(wait(objects.get("data/01/absent", 0..3)), Err(ObjectError::Missing));
}

fn ranges(store: &Store) {
    let objects = store.objects();
    let bytes: Bytes = (0..1_000_000_u32).map(|at| (at % 251) as u8).collect();
    assert_eq!(wait(objects.create("data/02/large", bytes.clone())), Ok(PutOutcome::New));
    for range in [0..1, 0..1_000_000, 65_540..131_080, 999_999..1_000_000, 500..500] {
        let expected = bytes.slice(range.start as usize..range.end as usize);
        assert_eq!(wait(objects.get("data/02/large", range.clone())).map(ByteParts::joined), Ok(expected), "{range:?}");
    }
}

fn names(store: &Store) {
    let objects = store.objects();
    for name in ["list/0a/1", "list/0a/2", "list/0b/1", "list2/1"] {
        assert_eq!(wait(objects.create(name, Bytes::from_static(b"x"))), Ok(PutOutcome::New));
    }
    let list = |prefix: &str| {
        let mut names = wait(objects.list(prefix)).unwrap();
        names.sort();
        names
    };
    assert_eq!(list("list/"), ["list/0a/1", "list/0a/2", "list/0b/1"]);
    assert_eq!(list("list/0a/"), ["list/0a/1", "list/0a/2"]);
    assert_eq!(list("list/0"), ["list/0a/1", "list/0a/2", "list/0b/1"]);
    assert_eq!(list("list"), ["list/0a/1", "list/0a/2", "list/0b/1", "list2/1"]);
    assert_eq!(list("nothing/"), [""; 0]);
}

fn removal(store: &Store) {
    let objects = store.objects();
    assert_eq!(wait(objects.create("data/03/gone", Bytes::from_static(b"x"))), Ok(PutOutcome::New));
    assert_eq!(wait(objects.delete("data/03/gone")), Ok(()));
    assert_eq!(wait(objects.get("data/03/gone", 0..1)), Err(ObjectError::Missing));
    assert_eq!(wait(objects.delete("data/03/gone")), Ok(()));
    assert_eq!(wait(objects.create("data/03/gone", Bytes::from_static(b"y"))), Ok(PutOutcome::New));
}

/// Of many creations of one name at once, exactly one wins, and its bytes stay.
fn races(store: &Store) {
    for round in 0..8 {
        let name = format!("race/{round}");
        let racers = |racer: u8| {
            let (objects, name) = (store.objects(), name.clone());
            std::thread::spawn(move || (racer, wait(objects.create(&name, Bytes::from(vec![racer; 100])))))
        };
        let racers: Vec<_> = (0..6).map(racers).collect();
        let results: Vec<_> = racers.into_iter().map(|racer| racer.join().unwrap()).collect();
        let winners: Vec<u8> =
            results.iter().filter(|(_, result)| *result == Ok(PutOutcome::New)).map(|(racer, _)| *racer).collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        let kept = wait(store.objects().get(&name, 0..100)).unwrap().joined();
        assert_eq!(kept, vec![winners[0]; 100]);
    }
}
