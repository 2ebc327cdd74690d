//! The requests that operations cost, exactly.

use std::sync::Arc;
use std::time::Duration;

use afflux_object::{Clock, Durability, ObjectTree, ObjectTreeOptions, Objects, RecordChange, RecordDatabase};
use afflux_object_store::{SentRequests, Store};
use afflux_scratch::{eventually, within};
use afflux_volume::{AttributeChange, Directory, New};
use bytes::Bytes;

use crate::bill::Lab;
use crate::volume::volume;
use crate::{open, scratch, url, wait};

/// The most PUTs of the database's own tasks. Their first polls run beside an opening and the calls after it.
const OWN_PUTS_MAX: u64 = 9;

/// Asserts that the calls took so many PUTs, and the database's own tasks no more than they may.
fn assert_puts(spent: SentRequests, wanted: u64) {
    assert!((wanted..=wanted + OWN_PUTS_MAX).contains(&spent.puts), "{spent:?} for {wanted} PUTs");
}

/// The requests of a part of a test.
fn costs<T>(store: &Store, part: impl FnOnce() -> T) -> (T, SentRequests) {
    let before = store.requests();
    let result = part();
    let after = store.requests();
    let spent = SentRequests {
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
    // The first one also reads the file's records.
    commits(1, 4_096, 1);
    assert_puts(commits(1, 4_096, 100), 100);
    commits(2, 100_000, 1);
    assert_puts(commits(2, 100_000, 50), 100);
}

// rule: A change of attributes takes few bytes of its file along, so a COMMIT that follows waits for nothing.
#[test]
fn bytes_and_attributes_of_a_file_share_a_put() {
    let mut lab = Lab::new(open("memory:").unwrap());
    let (_, node) = lab.make(New::Regular);
    let ino = wait(lab.tree.stat(&node)).unwrap().fileid;
    let round = |mode| {
        lab.core.write(ino, 0, Bytes::from(vec![1; 4_096])).unwrap();
        let mut joint = lab.tree.join(&node).unwrap();
        let core = Arc::clone(&lab.core);
        let sync = std::thread::spawn(move || wait(core.commit(ino)));
        wait(&mut joint);
        let change = AttributeChange { mode: Some(mode), ..AttributeChange::default() };
        wait(lab.tree.set(&node, change, true)).unwrap();
        lab.sync();
        drop(joint);
        sync.join().unwrap().unwrap();
    };
    round(0o600);
    let (_, spent) = costs(&lab.store, || (0..50).for_each(|at| round(0o601 + at % 2)));
    assert_puts(spent, 50);
}

// rule: A batch that no caller waits for goes to the log with the next one, or soon.
#[test]
fn a_batch_that_nobody_waits_for_takes_no_put_of_its_own() {
    let store = open("memory:").unwrap();
    let records = wait(store.records()).unwrap();
    let change = |at: u64| vec![RecordChange::Put(at.to_be_bytes().to_vec(), Vec::new())];
    let (_, spent) = costs(&store, || {
        for at in 0..50 {
            records.apply(change(2 * at)).unwrap();
            // The log's task has time for a PUT, which it must not take.
            for _ in 0..50 {
                wait(records.scan(vec![0], vec![0, 0], Durability::Applied)).unwrap();
            }
            let sequence = records.apply(change(2 * at + 1)).unwrap();
            wait(records.durable(sequence)).unwrap();
        }
    });
    assert_puts(spent, 50);
    let last = records.apply(change(100)).unwrap();
    eventually("a batch becomes durable by itself", || records.durable_through() >= last);
}

// rule: COMMITs at one time share a PUT.
#[test]
fn commits_at_one_time_share_a_put() {
    let store = open("memory:").unwrap();
    let records = wait(store.records()).unwrap();
    const COMMITS: u64 = 1_000;
    let (_, spent) = costs(&store, || {
        let batch = |at: u64| vec![RecordChange::Put(at.to_be_bytes().to_vec(), vec![0; 1_000])];
        let given: Vec<_> = (0..COMMITS).map(|at| records.apply(batch(at)).unwrap()).collect();
        wait(records.durable(given[given.len() - 1])).unwrap();
    });
    assert!(spent.puts * 4 <= COMMITS, "{spent:?}");
    println!("{COMMITS} batches at once: {} PUTs", spent.puts);
}

/// A store with so many batches, each in a log object of its own.
fn with_logs(logs: u64) -> Store {
    let store = open("memory:").unwrap();
    let records = wait(store.records()).unwrap();
    for at in 0..logs {
        let sequence = records.apply(vec![RecordChange::Put(at.to_be_bytes().to_vec(), vec![0; 100])]).unwrap();
        wait(records.durable(sequence)).unwrap();
    }
    store
}

// rule: An opening reads a bounded log.
#[test]
fn an_opening_reads_a_bounded_log() {
    let store = open("memory:").unwrap();
    let mut at = 0_u64;
    // The flush that ends a long log runs beside the commits.
    eventually("an opening after a thousand commits reads less than half of their log", || {
        let records = wait(store.records()).unwrap();
        for _ in 0..1_000 {
            at += 1;
            let sequence = records.apply(vec![RecordChange::Put(at.to_be_bytes().to_vec(), Vec::new())]).unwrap();
            wait(records.durable(sequence)).unwrap();
        }
        drop(records);
        let (_, spent) = costs(&store, || wait(store.records()).unwrap());
        println!("opening after 1,000 commits: {spent:?}");
        spent.gets < 1_000
    });
}

// rule: An opening reads a bounded log.
#[test]
fn an_opening_reads_a_bounded_log_after_many_writers_that_died_young() {
    let store = open("memory:").unwrap();
    let mut at = 0_u64;
    eventually("an opening after a thousand commits of short writers reads less than half of their log", || {
        for _ in 0..20 {
            let records = wait(store.records()).unwrap();
            for _ in 0..50 {
                at += 1;
                let sequence = records.apply(vec![RecordChange::Put(at.to_be_bytes().to_vec(), Vec::new())]).unwrap();
                wait(records.durable(sequence)).unwrap();
            }
        }
        let (_, spent) = costs(&store, || wait(store.records()).unwrap());
        println!("opening after 20 writers of 50 commits: {spent:?}");
        spent.gets < 1_000
    });
}

// rule: No opening waits for the compactor, which starts with the first memtable flush.
#[test]
fn the_compactor_starts_with_the_first_flush() {
    let store = open("memory:").unwrap();
    let records = wait(store.records()).unwrap();
    let compactions = || wait(store.objects().list("records/compactions/")).unwrap().len();
    assert_eq!(compactions(), 0);
    for at in 0..300_u64 {
        let sequence = records.apply(vec![RecordChange::Put(at.to_be_bytes().to_vec(), Vec::new())]).unwrap();
        wait(records.durable(sequence)).unwrap();
    }
    eventually("the compactor keeps a state", || compactions() > 0);
    wait(records.close()).unwrap();
}

// rule: Writers that live shortly leave no work that a later one waits for in vain.
#[test]
fn many_short_writers_end_cleanly() {
    let store = open("memory:").unwrap();
    for at in 0..40_u64 {
        let records = wait(store.records()).unwrap();
        records.apply(vec![RecordChange::Put(at.to_be_bytes().to_vec(), Vec::new())]).unwrap();
        wait(records.close()).unwrap();
    }
    let records = wait(store.records()).unwrap();
    assert_eq!(wait(records.scan(vec![0], vec![1], Durability::Remote)).unwrap().len(), 40);
}

#[test]
#[ignore = "waits for a minute"]
fn an_idle_minute_costs_few_requests() {
    let store = open("memory:").unwrap();
    let volume = volume(&store, 1);
    volume.write(1, 0, Bytes::from_static(b"x")).unwrap();
    wait(volume.commit(1)).unwrap();
    // The first flush of the memtable comes after a minute, and is not idle.
    let minute = || assert!(!within(Duration::from_secs(65), || false));
    minute();
    let (_, spent) = costs(&store, minute);
    println!("65 seconds of an idle volume: {spent:?}");
    assert!(spent.puts + spent.deletes <= 6 && spent.gets + spent.lists <= 80, "{spent:?}");
}

#[test]
fn an_opening_reads_each_log_object_a_few_times() {
    let opening = |logs: u64| {
        let store = with_logs(logs);
        let (second, spent) = costs(&store, || wait(store.records()).unwrap());
        let found = wait(second.scan(vec![0], vec![1], Durability::Remote)).unwrap();
        assert_eq!(found.len() as u64, logs);
        println!("opening over {logs} log objects: {spent:?}");
        spent
    };
    let (few, many) = (opening(10), opening(110));
    let per_log = (many.gets - few.gets) / 100;
    assert!(per_log <= 3, "{per_log} GETs a log object: {few:?}, {many:?}");
    // It fences and tells the manifest, however long the log is.
    assert_puts(few, 2);
    assert_puts(many, 2);
}

// rule: A successor counts its wait from its fence, not from the end of its opening.
#[test]
fn an_opening_knows_when_it_fenced() {
    let store = with_logs(50);
    let began_ns = store.clock().now_ns();
    let records = wait(store.records()).unwrap();
    let fenced_at_ns = records.fenced_at_ns().expect("the opening made a fence");
    assert!(began_ns < fenced_at_ns && fenced_at_ns < store.clock().now_ns());
    // Whatever is logged later, the fence stays where it was.
    wait(records.durable(records.apply(vec![RecordChange::Put(vec![1], Vec::new())]).unwrap())).unwrap();
    assert_eq!(records.fenced_at_ns(), Some(fenced_at_ns));
    let next = wait(store.records()).unwrap();
    assert!(next.fenced_at_ns() > Some(fenced_at_ns));
}

// rule: Cold names and attributes of a thousand small files come in a few requests.
#[test]
fn a_cold_look_at_a_thousand_files_is_a_few_requests() {
    const FILES: usize = 1_000;
    let scratch = scratch();
    let address = url(&scratch);
    let name = |at: usize| Bytes::from(format!("small-{at:05}"));
    let tree = |core| wait(ObjectTree::open(core, ObjectTreeOptions::default())).unwrap();
    {
        let store = open(&address).unwrap();
        let core = Arc::new(volume(&store, 1));
        let tree = tree(Arc::clone(&core));
        let root = tree.exports()[0].root.node.clone();
        for at in 0..FILES {
            let made = wait(tree.create(&root, name(at), New::Regular, AttributeChange::default(), false)).unwrap();
            let ino = made.found.stat.fileid;
            core.write(ino, 0, Bytes::from(vec![1; 8 << 10])).unwrap();
        }
        wait(core.close()).unwrap();
        wait(core.records().close()).unwrap();
    }
    let store = open(&address).unwrap();
    let core = Arc::new(volume(&store, 2));
    let tree = tree(core);
    let root = tree.exports()[0].root.node.clone();
    let (_, spent) = costs(&store, || {
        for at in 0..FILES {
            assert_eq!(wait(tree.lookup(&root, name(at))).unwrap().stat.size, 8 << 10);
        }
    });
    // The database polls its state by time, also just after the opening.
    println!("{FILES} cold names: {spent:?}");
    assert!(spent.gets <= 25, "{spent:?}");
}
