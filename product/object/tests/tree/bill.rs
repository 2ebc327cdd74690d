//! The calls of the records that each call of the tree costs.
//!
//! Owns: the table.
//! Does not own: the time of a call of the records.
//! Invariants: a call that changes something is one batch.

use std::pin::Pin;

use afflux_engine::{Nanos, Platform};
use afflux_object::ObjectTreeOptions;
use afflux_volume::{AttributeChange, Directory, Identity, New, Node};

use crate::clients::serve;
use crate::lab::{Lab, Tree, bytes, make};
use crate::records::Calls;

const FILES: usize = 300;

/// The objects of the table.
struct Nodes {
    root: Node,
    directory: Node,
    other: Node,
    deep: Node,
    link: Node,
    files: Vec<Node>,
    /// An object that the table removes, and two that are gone.
    empty: Node,
    gone: [Identity; 2],
}

type Call = for<'a> fn(&'a Tree, &'a Nodes) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

macro_rules! call {
    ($tree:ident, $nodes:ident, $call:expr) => {{
        fn call<'a>($tree: &'a Tree, $nodes: &'a Nodes) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
            Box::pin(async move { assert!($call.await.is_ok()) })
        }
        call as Call
    }};
}

fn file_name(number: usize) -> String {
    format!("file {number}")
}

fn fill(lab: &Lab) -> Nodes {
    let root = lab.root();
    let directory = lab.make(&root, "directory", New::Directory).node;
    let other = lab.make(&root, "other", New::Directory).node;
    let deep = lab.make(&other, "deep", New::Directory).node;
    let link = lab.make(&root, "link", New::Symlink { target: bytes("target") }).node;
    let empty = lab.make(&root, "empty", New::Directory).node;
    let gone = ["gone", "away"].map(|name| {
        let identity = lab.make(&root, name, New::Regular).identity;
        lab.remove(&root, name).unwrap();
        identity
    });
    let files = (0..FILES).map(|number| lab.make(&directory, &file_name(number), New::Regular).node).collect();
    Nodes { root, directory, other, deep, link, files, empty, gone }
}

/// Each call; scans with no inode in memory, scans with all of them, batches.
fn table() -> Vec<(&'static str, Call, u64, u64, u64)> {
    vec![
        ("open_identity", call!(tree, _nodes, tree.open_identity(tree.exports()[0].root.identity)), 1, 0, 0),
        ("stat", call!(tree, nodes, tree.stat(&nodes.files[0])), 1, 0, 0),
        ("stat_all", call!(tree, nodes, tree.stat_all(nodes.files.clone())), 1, 0, 0),
        ("access", call!(tree, nodes, tree.access(&nodes.files[0])), 1, 0, 0),
        ("read_link", call!(tree, nodes, tree.read_link(&nodes.link)), 1, 0, 0),
        ("lookup", call!(tree, nodes, tree.lookup(&nodes.directory, bytes("file 1"))), 3, 1, 0),
        ("name_all", call!(tree, nodes, name_all(tree, nodes)), 3, 1, 0),
        ("parent", call!(tree, nodes, tree.parent(&nodes.deep)), 2, 0, 0),
        ("identities", call!(tree, nodes, tree.identities(&nodes.directory)), 2, 1, 0),
        ("open_data", call!(tree, nodes, tree.open_data(&nodes.files[0], true)), 1, 0, 0),
        ("set", call!(tree, nodes, tree.set(&nodes.files[0], mode(0o600), true)), 1, 0, 1),
        ("create", call!(tree, nodes, make(tree, &nodes.directory, "new", New::Regular)), 2, 1, 1),
        ("link", call!(tree, nodes, tree.link(&nodes.files[0], &nodes.other, bytes("more"), true)), 3, 1, 1),
        ("remove", call!(tree, nodes, tree.remove(&nodes.directory, bytes("file 2"), false, true)), 3, 1, 1),
        ("remove a directory", call!(tree, nodes, tree.remove(&nodes.root, bytes("empty"), true, true)), 3, 1, 1),
        ("rename", call!(tree, nodes, rename(tree, (&nodes.directory, "file 3"), (&nodes.directory, "four"))), 4, 2, 1),
        ("replace", call!(tree, nodes, rename(tree, (&nodes.directory, "file 4"), (&nodes.other, "more"))), 6, 2, 1),
        ("move", call!(tree, nodes, rename(tree, (&nodes.root, "directory"), (&nodes.deep, "moved"))), 6, 2, 1),
        ("sync", call!(tree, nodes, tree.sync(&nodes.root)), 0, 0, 0),
        ("sync_everything", call!(tree, _nodes, tree.sync_everything()), 0, 0, 0),
        ("space", call!(tree, nodes, tree.space(&nodes.root)), 1, 1, 0),
        ("path_limits", call!(tree, nodes, tree.path_limits(&nodes.root)), 0, 0, 0),
    ]
}

fn mode(mode: u32) -> AttributeChange {
    AttributeChange { mode: Some(mode), ..AttributeChange::default() }
}

async fn name_all(tree: &Tree, nodes: &Nodes) -> Result<(), afflux_volume::VolumeError> {
    let named = tree.name_all(&nodes.directory, (0..FILES).map(|number| bytes(&file_name(number))).collect()).await?;
    assert!(named.iter().all(Option::is_some));
    Ok(())
}

fn rename<'a>(
    tree: &'a Tree,
    from: (&Node, &str),
    to: (&Node, &str),
) -> afflux_volume::TreeResult<'a, afflux_volume::Renamed> {
    tree.rename((from.0, bytes(from.1)), (to.0, bytes(to.1)), afflux_volume::RenameHow::Replace, true)
}

/// Runs the table; each call once.
fn bill(inodes_max: usize) -> Vec<(&'static str, Calls)> {
    let lab = Lab::new(1, &ObjectTreeOptions { inodes_max, ..ObjectTreeOptions::default() });
    let nodes = fill(&lab);
    let mut bill = Vec::new();
    for (name, call, ..) in table() {
        for _ in 0..2 {
            // Those take the slots in memory, if there are none for others.
            for gone in nodes.gone {
                assert!(lab.run(lab.tree.open_identity(gone)).is_err());
            }
        }
        lab.core.records.take_calls();
        lab.run(call(&lab.tree, &nodes));
        bill.push((name, lab.core.records.take_calls()));
    }
    drop(nodes.empty);
    bill
}

#[test]
fn each_call_costs_what_the_table_says() {
    let table = table();
    let expected = |scans: fn(&(&'static str, Call, u64, u64, u64)) -> u64| -> Vec<(&'static str, Calls)> {
        table.iter().map(|row| (row.0, Calls { scans: scans(row), batches: row.4 })).collect()
    };
    assert_eq!(bill(0), expected(|row| row.2), "no inode in memory");
    assert_eq!(bill(65_536), expected(|row| row.3), "all inodes in memory");
}

#[test]
fn bodies_that_are_not_in_memory_are_read_with_their_inodes() {
    let mut lab = Lab::new(1, &ObjectTreeOptions::default());
    let nodes = fill(&lab);
    // This core has no file on its disk, so it has no body in memory.
    lab.crash(lab.core.records.batches(), &ObjectTreeOptions::default());
    *lab.core.files() = Default::default();
    // The reaper reads marks first.
    lab.run(lab.platform().sleep_until(lab.platform().now().after(Nanos::SECOND)));
    let calls = |future: Pin<Box<dyn Future<Output = ()> + '_>>| {
        lab.core.records.take_calls();
        lab.run(future);
        lab.core.records.take_calls().scans
    };
    for _ in 0..2 {
        let all = Box::pin(async { drop(lab.tree.stat_all(nodes.files.clone()).await.unwrap()) });
        assert_eq!(calls(all), 1, "one run");
        let one = Box::pin(async { assert!(lab.tree.stat(&nodes.files[0]).await.is_ok()) });
        assert_eq!(calls(one), 1);
    }
}

#[test]
fn a_listing_is_a_range_and_its_objects_are_another() {
    let lab = Lab::new(1, &ObjectTreeOptions::default());
    fill(&lab);
    let volume = serve(&lab);
    let directory = lab.run(volume.mount(b"/directory")).unwrap();
    lab.core.records.take_calls();
    let listing = lab.run(volume.list(&directory, 0, 10_000, false)).unwrap();
    assert_eq!((listing.entries.len(), listing.end), (FILES + 2, true));
    assert_eq!(lab.core.records.take_calls(), Calls { scans: 1, batches: 0 });
    let listing = lab.run(volume.list(&directory, 2, 10_000, true)).unwrap();
    assert_eq!(listing.entries.iter().filter(|entry| entry.object.is_some()).count(), FILES);
    assert_eq!(lab.core.records.take_calls(), Calls { scans: 3, batches: 0 }, "the range, and one for up to 256 names");
}
