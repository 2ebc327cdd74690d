//! The contract of `Records`.

use afflux_object::{Batch, Clock, Durability, Record, RecordChange, RecordDatabase, RecordsError, Sequence};
use afflux_object_store::{Store, StoreRecords};

use crate::{open, scratch, url, wait};

#[test]
fn memory_keeps_the_contract_of_records() {
    contract(&open("memory:").unwrap());
}

#[test]
fn a_directory_keeps_the_contract_of_records() {
    let scratch = scratch();
    contract(&open(&url(&scratch)).unwrap());
}

pub(crate) fn contract(store: &Store) {
    changes(store);
    reads_of_one_key(store);
    durability(store);
    sums(store);
    reopening(store);
    fencing(store);
    unfenced(store);
}

fn records(store: &Store) -> StoreRecords {
    wait(store.records()).unwrap()
}

fn put(key: &str, value: &str) -> RecordChange {
    RecordChange::Put(key.into(), value.into())
}

fn add(key: &str, by: i64) -> RecordChange {
    RecordChange::Add(key.into(), by)
}

fn commit(records: &StoreRecords, batch: Batch) -> Sequence {
    let sequence = records.apply(batch).unwrap();
    wait(records.durable(sequence)).unwrap();
    assert!(records.durable_through() >= sequence);
    sequence
}

fn scan(records: &StoreRecords, from: &str, to: &str, durability: Durability) -> Vec<(String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let found: Vec<Record> = wait(records.scan(from.into(), to.into(), durability)).unwrap();
    found.into_iter().map(|(key, value)| (text(key), text(value))).collect()
}

fn pairs<const N: usize>(expected: [(&str, &str); N]) -> Vec<(String, String)> {
    expected.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
}

/// Scans see batches at once, in order of keys, without the end of the range.
fn changes(store: &Store) {
    let records = records(store);
    let first = records.apply(vec![put("a1", "x"), put("a2", "y"), put("b", "z")]).unwrap();
    assert_eq!(scan(&records, "a", "b", Durability::Applied), pairs([("a1", "x"), ("a2", "y")]));
    let second = records.apply(vec![RecordChange::Remove("a1".into()), put("a2", "new"), put("a3", "")]).unwrap();
    assert!(second > first);
    assert_eq!(scan(&records, "a", "c", Durability::Applied), pairs([("a2", "new"), ("a3", ""), ("b", "z")]));
    assert_eq!(scan(&records, "a2", "a2\0", Durability::Applied), pairs([("a2", "new")]));
    assert_eq!(scan(&records, "a1", "a1\0", Durability::Applied), []);
    assert_eq!(scan(&records, "b", "a", Durability::Applied), []);
    // Later changes of a batch win over its earlier ones.
    let third =
        records.apply(vec![put("c", "1"), RecordChange::Remove("c".into()), put("d", "1"), put("d", "2")]).unwrap();
    assert_eq!(scan(&records, "c", "e", Durability::Applied), pairs([("d", "2")]));
    assert_eq!(records.apply(Vec::new()), Ok(third));
    wait(records.durable(third)).unwrap();
}

/// A read of one key sees the batches given before, whether or not the database has taken them.
fn reads_of_one_key(store: &Store) {
    let records = records(store);
    for at in 0..200 {
        let value = at.to_string();
        records.apply(vec![put("k", &value)]).unwrap();
        assert_eq!(scan(&records, "k", "k\0", Durability::Applied), pairs([("k", value.as_str())]));
        assert_eq!(scan(&records, "other", "other\0", Durability::Applied), []);
        records.apply(vec![RecordChange::Remove("k".into())]).unwrap();
        assert_eq!(scan(&records, "k", "k\0", Durability::Applied), []);
    }
}

/// The durable scan sees no batch before it is durable, and then sees all of it.
fn durability(store: &Store) {
    let records = records(store);
    commit(&records, vec![put("e1", "old")]);
    let sequences: Vec<Sequence> = (0..100)
        .map(|at| records.apply(vec![put("e1", &format!("{at:03}")), put("e2", &format!("{at:03}"))]).unwrap())
        .collect();
    assert!(sequences.windows(2).all(|pair| pair[0] < pair[1]));
    let seen = scan(&records, "e1", "e3", Durability::Remote);
    assert!(seen.len() == 1 || seen[0].1 == seen[1].1, "a part of a batch: {seen:?}");
    wait(records.durable(sequences[99])).unwrap();
    assert_eq!(scan(&records, "e1", "e3", Durability::Remote), pairs([("e1", "099"), ("e2", "099")]));
}

fn sums(store: &Store) {
    let value = |records: &StoreRecords, key: &str, durability| {
        let found = wait(records.scan(key.into(), format!("{key}\0").into(), durability)).unwrap();
        found.first().map(|(_, value)| i64::from_be_bytes(value.as_slice().try_into().unwrap()))
    };
    let records = records(store);
    assert_eq!(value(&records, "s", Durability::Applied), None);
    records.apply(vec![add("s", 5), add("s", -7), add("t", 1)]).unwrap();
    assert_eq!(value(&records, "s", Durability::Applied), Some(-2));
    commit(&records, vec![add("s", 12)]);
    assert_eq!(value(&records, "s", Durability::Remote), Some(10));
    records.apply(vec![RecordChange::Put("s".into(), 100_i64.to_be_bytes().into()), add("s", 1)]).unwrap();
    assert_eq!(value(&records, "s", Durability::Applied), Some(101));
    commit(&records, vec![RecordChange::Remove("s".into()), add("s", 3)]);
    assert_eq!(value(&records, "s", Durability::Remote), Some(3));
    commit(&records, vec![add("s", -3)]);
    // A sum of 0 is a record.
    assert_eq!(value(&records, "s", Durability::Remote), Some(0));
    assert_eq!(wait(records.scan("s".into(), "u".into(), Durability::Remote)).unwrap().len(), 2);
}

/// An opening finds what was durable, also what a clean end flushed. Its epoch is larger.
fn reopening(store: &Store) {
    let first = records(store);
    commit(&first, vec![put("r1", "kept"), add("r2", 7)]);
    drop(first);
    let second = records(store);
    let epoch = second.epoch();
    assert_eq!(scan(&second, "r1", "r2", Durability::Remote), pairs([("r1", "kept")]));
    second.apply(vec![put("r1", "again"), add("r2", 1)]).unwrap();
    wait(second.close()).unwrap();
    assert!(matches!(second.apply(vec![put("r1", "late")]), Err(RecordsError::Closed(_))));
    let third = records(store);
    assert!(third.epoch() > epoch, "{} after {epoch}", third.epoch());
    assert_eq!(scan(&third, "r1", "r2", Durability::Remote), pairs([("r1", "again")]));
    let sum = wait(third.scan("r2".into(), "r3".into(), Durability::Remote)).unwrap();
    assert_eq!(sum[0].1, 8_i64.to_be_bytes());
}

/// After a second opening, nothing of the first writer becomes durable, and it learns why.
fn fencing(store: &Store) {
    let old = records(store);
    commit(&old, vec![put("f", "old")]);
    let new = records(store);
    commit(&new, vec![put("f", "new")]);
    let ends = match old.apply(vec![put("f", "zombie")]) {
        Ok(sequence) => wait(old.durable(sequence)),
        Err(error) => Err(error),
    };
    assert_eq!(ends, Err(RecordsError::Fenced));
    assert_eq!(wait(old.prove()), Err(RecordsError::Fenced));
    assert_eq!(old.apply(vec![put("f", "zombie")]), Err(RecordsError::Fenced));
    commit(&new, vec![put("g", "")]);
    assert_eq!(scan(&new, "f", "g", Durability::Remote), pairs([("f", "new")]));
    // A writer that only reads learns it, too.
    let newest = records(store);
    assert_eq!(wait(new.prove()), Err(RecordsError::Fenced));
    drop(newest);
}

/// The time at which a writer was surely not fenced lies before the proof, and moves with it.
fn unfenced(store: &Store) {
    let (clock, records) = (store.clock(), records(store));
    let opened_ns = records.unfenced_at_ns();
    assert!(opened_ns <= clock.now_ns());
    let before_ns = clock.now_ns();
    wait(records.prove()).unwrap();
    let proved_ns = records.unfenced_at_ns();
    assert!(before_ns <= proved_ns && proved_ns <= clock.now_ns());
    let before_ns = clock.now_ns();
    commit(&records, vec![put("u", "")]);
    assert!(before_ns <= records.unfenced_at_ns() && records.unfenced_at_ns() <= clock.now_ns());
    let manifest = wait(records.manifest()).unwrap();
    assert!(manifest.id > 0 && manifest.checkpoints.iter().all(|checkpoint| checkpoint.manifest <= manifest.id));
}
