//! The requests that operations cost, exactly.

use afflux_object::{Change, Durability, Records};
use afflux_object_store::{Requests, Store};
use bytes::Bytes;

use crate::volume::volume;
use crate::{open, wait};

/// The requests of a part of a test.
fn costs<T>(store: &Store, part: impl FnOnce() -> T) -> (T, Requests) {
    let before = store.requests();
    let result = part();
    let after = store.requests();
    let spent = Requests {
        puts: after.puts - before.puts,
        gets: after.gets - before.gets,
        lists: after.lists - before.lists,
        deletes: after.deletes - before.deletes,
    };
    (result, spent)
}

// rule: A small COMMIT is one PUT.
#[test]
fn a_small_commit_is_one_put_and_a_large_one_two() {
    let store = open("memory:").unwrap();
    let volume = volume(&store, 1);
    let commits = |ino, bytes: usize, count| {
        let bytes = Bytes::from(vec![1; bytes]);
        costs(&store, || {
            for _ in 0..count {
                volume.write(ino, 0, bytes.clone()).unwrap();
                wait(volume.commit(ino)).unwrap();
            }
        })
        .1
    };
    // The first one also looks for the file's records.
    commits(1, 4_096, 1);
    assert_eq!(commits(1, 4_096, 100).puts, 100);
    commits(2, 100_000, 1);
    assert_eq!(commits(2, 100_000, 10).puts, 20);
}

// rule: COMMITs at one time share a PUT.
#[test]
fn commits_at_one_time_share_a_put() {
    let store = open("memory:").unwrap();
    let records = wait(store.records()).unwrap();
    const COMMITS: u64 = 1_000;
    let (_, spent) = costs(&store, || {
        let batch = |at: u64| vec![Change::Put(at.to_be_bytes().to_vec(), vec![0; 1_000])];
        let given: Vec<_> = (0..COMMITS).map(|at| records.apply(batch(at)).unwrap()).collect();
        wait(records.durable(given[given.len() - 1])).unwrap();
    });
    assert!(spent.puts * 4 <= COMMITS, "{spent:?}");
    println!("{COMMITS} batches at once: {} PUTs", spent.puts);
}

#[test]
fn an_opening_reads_each_log_object_a_few_times() {
    let opening = |logs: u64| {
        let store = open("memory:").unwrap();
        let first = wait(store.records()).unwrap();
        for at in 0..logs {
            let sequence = first.apply(vec![Change::Put(at.to_be_bytes().to_vec(), vec![0; 100])]).unwrap();
            wait(first.durable(sequence)).unwrap();
        }
        drop(first);
        let (second, spent) = costs(&store, || wait(store.records()).unwrap());
        let found = wait(second.scan(vec![0], vec![1], Durability::Remote)).unwrap();
        assert_eq!(found.len() as u64, logs);
        println!("opening over {logs} log objects: {spent:?}");
        spent
    };
    let (few, many) = (opening(10), opening(110));
    let per_log = (many.gets - few.gets) / 100;
    assert!(per_log <= 3, "{per_log} GETs a log object: {few:?}, {many:?}");
    assert!(many.puts <= few.puts + 1, "{few:?}, {many:?}");
}
