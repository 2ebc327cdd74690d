//! The requests of each call, and how they grow: `docs/stores-costs.md`.
//!
//! Owns: the counts, the document.
//! Does not own: the calls of records that each call of the tree makes (`afflux-object`).
//! Invariants: a figure is counted here, or computed from counts by a rule that stands beside it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use afflux_object::{Durability, ObjectTree, ObjectTreeOptions, ObjectVolume, Records};
use afflux_object_store::{Options, Requests, Store, StoreObjects, StoreRecords, View};
use afflux_scratch::within;
use afflux_volume::{AttributeChange, Directory, New, Node, RenameHow};
use bytes::Bytes;

use crate::volume::{Impatient, volume};
use crate::{open, scratch, url, wait};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/stores-costs.md");
/// A minute of an idle volume or follower, without the seconds after its opening.
const MINUTE: Duration = Duration::from_secs(60);
/// Rounds of a call; the fewest requests of a round count. A round may meet a look at the manifest, which comes by time.
const ROUNDS: usize = 5;

type Core = ObjectVolume<StoreObjects, StoreRecords, Impatient>;

struct Lab {
    store: Store,
    core: Arc<Core>,
    tree: Arc<ObjectTree<Core>>,
    made: usize,
}

fn name(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

impl Lab {
    fn new(store: Store) -> Self {
        let core = Arc::new(volume(&store, 1));
        let tree = wait(ObjectTree::open(Arc::clone(&core), ObjectTreeOptions::default())).unwrap();
        Self { store, core, tree, made: 0 }
    }

    fn root(&self) -> Node {
        self.tree.exports()[0].root.node.clone()
    }

    fn next_name(&mut self) -> Bytes {
        self.made += 1;
        name(&format!("file {:010}", self.made))
    }

    /// Waits until all changes are durable, as the answer to a call does.
    fn sync(&self) {
        wait(self.tree.sync(&self.root())).unwrap();
    }

    fn begin(&mut self, new: New) -> (Bytes, Node) {
        let called = self.next_name();
        let made = self.tree.create(&self.root(), called.clone(), new, AttributeChange::default(), true);
        (called, wait(made).unwrap().found.node)
    }

    fn make(&mut self, new: New) -> (Bytes, Node) {
        let made = self.begin(new);
        self.sync();
        made
    }

    /// The fewest requests of some rounds of a call; each round has a fresh file.
    fn counted(&mut self, call: impl Fn(&mut Self, (Bytes, Node))) -> Requests {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let file = self.make(New::Regular);
            let before = self.store.requests();
            call(self, file);
            rounds.push(since(&self.store, before));
        }
        let fewest = |of: fn(&Requests) -> u64| rounds.iter().map(of).min().unwrap();
        Requests {
            puts: fewest(|it| it.puts),
            gets: fewest(|it| it.gets),
            lists: fewest(|it| it.lists),
            deletes: fewest(|it| it.deletes),
        }
    }
}

fn since(store: &Store, before: Requests) -> Requests {
    let after = store.requests();
    Requests {
        puts: after.puts - before.puts,
        gets: after.gets - before.gets,
        lists: after.lists - before.lists,
        deletes: after.deletes - before.deletes,
    }
}

/// Each call, once, with its objects in memory.
fn calls() -> String {
    let mut lab = Lab::new(open("memory:").unwrap());
    let mut table = "| call | PUT | GET | LIST | DELETE |\n|-|-|-|-|-|\n".to_owned();
    let mut row = |title: &str, spent: Requests| {
        let Requests { puts, gets, lists, deletes } = spent;
        writeln!(table, "| {title} | {puts} | {gets} | {lists} | {deletes} |").unwrap();
    };
    row(
        "look up, attributes, rights",
        lab.counted(|lab, (called, node)| {
            wait(lab.tree.lookup(&lab.root(), called)).unwrap();
            wait(lab.tree.stat(&node)).unwrap();
            wait(lab.tree.access(&node)).unwrap();
        }),
    );
    row(
        "set attributes",
        lab.counted(|lab, (_, node)| {
            let change = AttributeChange { mode: Some(0o600), ..AttributeChange::default() };
            wait(lab.tree.set(&node, change, true)).unwrap();
            lab.sync();
        }),
    );
    row("create a file", lab.counted(|lab, _| drop(lab.make(New::Regular))));
    row("make a directory", lab.counted(|lab, _| drop(lab.make(New::Directory))));
    row(
        "make a link",
        lab.counted(|lab, (_, node)| {
            let more = lab.next_name();
            wait(lab.tree.link(&node, &lab.root(), more, true)).unwrap();
            lab.sync();
        }),
    );
    row(
        "rename",
        lab.counted(|lab, (called, _)| {
            let (root, more) = (lab.root(), lab.next_name());
            wait(lab.tree.rename((&root, called), (&root, more), RenameHow::Replace, true)).unwrap();
            lab.sync();
        }),
    );
    row(
        "remove",
        lab.counted(|lab, (called, _)| {
            wait(lab.tree.remove(&lab.root(), called, false, true)).unwrap();
            lab.sync();
        }),
    );
    for (title, bytes) in [("COMMIT of 4 KiB", 4 << 10), ("COMMIT of 64 KiB", 64 << 10), ("COMMIT of 8 MiB", 8 << 20)] {
        row(
            title,
            lab.counted(|lab, (_, node)| {
                let ino = wait(lab.tree.stat(&node)).unwrap().fileid;
                lab.core.write(ino, 0, Bytes::from(vec![1; bytes])).unwrap();
                wait(lab.core.commit(ino)).unwrap();
            }),
        );
    }
    row(
        "read of 1 MiB that was written before",
        lab.counted(|lab, (_, node)| {
            let ino = wait(lab.tree.stat(&node)).unwrap().fileid;
            lab.core.write(ino, 0, Bytes::from(vec![1; 1 << 20])).unwrap();
            wait(lab.core.commit(ino)).unwrap();
            wait(lab.core.read(ino, 0, 1 << 20)).unwrap();
        }),
    );
    table
}

#[test]
fn each_call_costs_what_the_document_says() {
    let (table, document) = (calls(), std::fs::read_to_string(DOCUMENT).unwrap());
    assert!(document.contains(&table), "docs/stores-costs.md should have this table:\n{table}");
}

/// What a volume of so many files costs.
struct Grown {
    record_bytes: u64,
    stored_bytes: u64,
    opening: Requests,
}

fn grown(files: u64) -> Grown {
    let scratch = scratch();
    let mut lab = Lab::new(open(&url(&scratch)).unwrap());
    for _ in 0..files {
        let (_, node) = lab.begin(New::Regular);
        let ino = wait(lab.tree.stat(&node)).unwrap().fileid;
        lab.core.write(ino, 0, Bytes::from_static(&[1; 100])).unwrap();
    }
    wait(lab.core.close()).unwrap();
    let records = lab.core.records();
    let all = wait(records.scan(vec![0], vec![255], Durability::Remote)).unwrap();
    let record_bytes = all.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
    wait(records.close()).unwrap();
    drop(lab);
    let stored_bytes = bytes_below(&scratch.path().join("records/compacted"));
    let store = open(&url(&scratch)).unwrap();
    let before = store.requests();
    drop(wait(store.records()).unwrap());
    Grown { record_bytes, stored_bytes, opening: since(&store, before) }
}

fn bytes_below(directory: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().map(Result::unwrap);
    entries.map(|entry| entry.metadata().unwrap().len()).sum()
}

/// The requests of a minute in which nobody asks for anything.
fn idle_minute(store: &Store) -> Requests {
    let wait_for = |time| assert!(!within(time, || false));
    // The first flush of the memtable comes after a minute, and is not idle.
    wait_for(MINUTE + Duration::from_secs(5));
    let before = store.requests();
    wait_for(MINUTE);
    since(store, before)
}

/// List prices of Amazon S3, storage class Standard, in us-east-1, in dollars.
const PUT_PRICE: f64 = 5e-6;
const GET_PRICE: f64 = 0.4e-6;
const GB_MONTH_PRICE: f64 = 0.023;
const MINUTES_A_MONTH: f64 = 30.0 * 24.0 * 60.0;
/// Amazon documents these requests a second for each prefix, at least.
const PREFIX_GETS: u64 = 5_500;

fn dollars(requests: Requests, count: u64) -> f64 {
    let Requests { puts, gets, lists, deletes: _ } = requests;
    let minute = (puts + lists) as f64 * PUT_PRICE + gets as f64 * GET_PRICE;
    minute * MINUTES_A_MONTH * count as f64
}

fn document() -> String {
    let calls = calls();
    let [small, large] = [1_000, 10_000].map(grown);
    let scratch = scratch();
    let address = url(&scratch);
    let store = open(&address).unwrap();
    let writer = volume(&store, 1);
    writer.write(1, 0, Bytes::from_static(b"x")).unwrap();
    wait(writer.commit(1)).unwrap();
    let following = wait(Store::open_to_read(&address, &Options::default())).unwrap();
    let view = wait(following.view(&View::Following)).unwrap();
    let (idle, follower) = std::thread::scope(|threads| {
        let idle = threads.spawn(|| idle_minute(&store));
        let follower = threads.spawn(|| idle_minute(&following));
        (idle.join().unwrap(), follower.join().unwrap())
    });
    drop(view);
    let mut text = format!(
        "# What a store is asked for\n\nGenerated by a test, which counts; do not edit:\n\n    cargo test --profile \
         stores -p afflux-object-store --features stores -- --ignored bill::\n\n## Requests of each call\n\nCounted over \
         a store in memory, with the call's objects in memory. A usual test compares this table. Calls of many clients \
         at a time share their PUTs.\n\n{calls}\n## Files in a volume\n\nFiles of 100 bytes. The two first rows are \
         measured, the others computed from the second one. The last column is the price of their records for a month, \
         without their data and without requests (Amazon S3, us-east-1).\n\n| files | how | bytes of records | bytes in \
         the store | PUTs and GETs of an opening | dollars a month |\n|-|-|-|-|-|-|\n"
    );
    let mut row = |files: u64, how: &str, grown: &Grown, scale: u64| {
        let Grown { record_bytes, stored_bytes, opening } = grown;
        let (records, stored) = (record_bytes * scale, stored_bytes * scale);
        let price = stored as f64 / 1e9 * GB_MONTH_PRICE;
        let requests = format!("{} and {}", opening.puts, opening.gets + opening.lists);
        writeln!(text, "| {files} | {how} | {records} | {stored} | {requests} | {price:.4} |").unwrap();
    };
    row(1_000, "measured", &small, 1);
    row(10_000, "measured", &large, 1);
    for exponent in 5..=9 {
        row(10_u64.pow(exponent), "computed", &large, 10_u64.pow(exponent - 4));
    }
    let per_minute = |it: Requests| (it.puts, it.gets + it.lists);
    let ((idle_puts, idle_gets), (follower_puts, follower_gets)) = (per_minute(idle), per_minute(follower));
    write!(
        text,
        "\nAn opening reads the log and the newest manifest; their length does not depend on the number of files. The \
         server keeps at most 65,536 unused inodes in memory and a block cache of 128 MiB. The first limit is the number \
         of files that an opening can make, 2^40.\n\n## Idle volumes in a bucket\n\nOne volume is measured for a minute: \
         {idle_puts} PUTs and {idle_gets} GETs and LISTs. The rest is computed.\n\n| volumes | how | requests a second | \
         dollars a month |\n|-|-|-|-|\n"
    )
    .unwrap();
    for count in [1, 10, 100, 1_000] {
        let how = if count == 1 { "measured" } else { "computed" };
        let rate = (idle_puts + idle_gets) as f64 * count as f64 / 60.0;
        writeln!(text, "| {count} | {how} | {rate:.1} | {:.2} |", dollars(idle, count)).unwrap();
    }
    write!(
        text,
        "\nEach volume has its own prefix and its own server, so the store spreads them.\n\n## Followers of a \
         volume\n\nOne idle follower is measured for a minute: {follower_puts} PUTs and {follower_gets} GETs and LISTs. \
         The rest is computed. A follower asks the writer for nothing.\n\n| followers | how | requests a second | dollars \
         a month |\n|-|-|-|-|\n"
    )
    .unwrap();
    for count in [1, 10, 100] {
        let how = if count == 1 { "measured" } else { "computed" };
        let rate = (follower_puts + follower_gets) as f64 * count as f64 / 60.0;
        writeln!(text, "| {count} | {how} | {rate:.1} | {:.2} |", dollars(follower, count)).unwrap();
    }
    let most = PREFIX_GETS * 60 / (follower_puts + follower_gets).max(1);
    writeln!(
        text,
        "\nThe first limit is the store's for one prefix: {PREFIX_GETS} GETs a second, which {most} idle followers reach."
    )
    .unwrap();
    text
}

#[test]
#[ignore = "writes docs/stores-costs.md; takes some minutes"]
fn the_document_is_written() {
    std::fs::write(DOCUMENT, document()).unwrap();
}
