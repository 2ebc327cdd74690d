//! The requests of each call, and the document of all costs: `docs/reference/stores-costs.md`.
//!
//! Owns: the counts of calls, the document.
//! Does not own: the calls of records that each call of the tree makes (`afflux-object`), the growth (`growth`).
//! Invariants: a figure is counted.

use std::fmt::Write as _;
use std::sync::Arc;

use afflux_object::{ObjectTree, ObjectTreeOptions, ObjectVolume};
use afflux_object_store::{SentRequests, Store, StoreObjects, StoreRecords};
use afflux_volume::{AttributeChange, Directory, New, Node, RenameHow};
use bytes::Bytes;

use crate::volume::{Impatient, volume};
use crate::{growth, open, wait};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/stores-costs.md");
/// Rounds of a call; the fewest requests of a round count. A round may include a poll of the manifest, which depends on
/// time.
const ROUNDS: usize = 5;

type Core = ObjectVolume<StoreObjects, StoreRecords, Impatient>;

pub(crate) struct Lab {
    pub(crate) store: Store,
    pub(crate) core: Arc<Core>,
    pub(crate) tree: Arc<ObjectTree<Core>>,
    made: usize,
}

fn name(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

impl Lab {
    pub(crate) fn new(store: Store) -> Self {
        let core = Arc::new(volume(&store, 1));
        let tree = wait(ObjectTree::open(Arc::clone(&core), ObjectTreeOptions::default())).unwrap();
        Self { store, core, tree, made: 0 }
    }

    pub(crate) fn root(&self) -> Node {
        self.tree.exports()[0].root.node.clone()
    }

    fn next_name(&mut self) -> Bytes {
        self.made += 1;
        name(&format!("file {:010}", self.made))
    }

    /// Waits until all changes are durable, as the answer to a call does.
    pub(crate) fn sync(&self) {
        wait(self.tree.sync(&self.root())).unwrap();
    }

    pub(crate) fn begin(&mut self, new: New) -> (Bytes, Node) {
        let called = self.next_name();
        let made = self.tree.create(&self.root(), called.clone(), new, AttributeChange::default(), true);
        (called, wait(made).unwrap().found.node)
    }

    pub(crate) fn make(&mut self, new: New) -> (Bytes, Node) {
        let made = self.begin(new);
        self.sync();
        made
    }

    /// The fewest requests of some rounds of a call; each round has a fresh file.
    fn counted(&mut self, call: impl Fn(&mut Self, (Bytes, Node))) -> SentRequests {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let file = self.make(New::Regular);
            let before = self.store.requests();
            call(self, file);
            rounds.push(since(&self.store, before));
        }
        let fewest = |of: fn(&SentRequests) -> u64| rounds.iter().map(of).min().unwrap();
        SentRequests {
            puts: fewest(|it| it.puts),
            gets: fewest(|it| it.gets),
            lists: fewest(|it| it.lists),
            deletes: fewest(|it| it.deletes),
        }
    }
}

fn since(store: &Store, before: SentRequests) -> SentRequests {
    let after = store.requests();
    SentRequests {
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
    let mut row = |title: &str, spent: SentRequests| {
        let SentRequests { puts, gets, lists, deletes } = spent;
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
    assert!(document.contains(&table), "docs/reference/stores-costs.md should have this table:\n{table}");
}

fn document() -> Option<String> {
    let (calls, growth) = (calls(), growth::sections()?);
    Some(format!(
        "# What a store is asked for\n\nGenerated by a test, which counts; do not edit:\n\n    cargo test -p afflux-object-store --features stores -- --ignored bill::\n\n## Requests of each call\n\nCounted over \
         a store in memory, with the call's objects in memory. A usual test compares this table. Calls of many clients \
         at a time share their PUTs.\n\n{calls}\n{growth}"
    ))
}

#[test]
#[ignore = "writes docs/reference/stores-costs.md; takes some minutes"]
fn the_document_is_written() {
    let Some(document) = document() else { return };
    std::fs::write(DOCUMENT, document).unwrap();
}
