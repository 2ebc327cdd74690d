//! A tree in a world.
//!
//! Owns: its parts, its openings.
//! Does not own: the tests.
//! Invariants: the reaper runs.

use std::sync::Arc;

use afflux_object::{ObjectTree, ObjectTreeOptions};
use afflux_simulator::{Disk, DiskOptions, SimPlatform, World, WorldOptions};
use afflux_volume::{
    AttributeChange, Created, Directory, Found, New, Node, Removed, SpecialKind, Stat, TreeResult, VolumeError,
};
use bytes::Bytes;

use crate::disk_core::DiskCore;
use crate::records::MapRecords;

pub(crate) type Tree = ObjectTree<DiskCore>;

pub(crate) struct Lab {
    pub(crate) world: World,
    pub(crate) disk: Arc<Disk>,
    pub(crate) core: Arc<DiskCore>,
    pub(crate) tree: Arc<Tree>,
}

impl Lab {
    pub(crate) fn new(seed: u64, options: &ObjectTreeOptions) -> Self {
        let world = World::new(WorldOptions::seed(seed));
        let disk = Disk::new(&world, 0, DiskOptions::default());
        let records = MapRecords::new(world.platform());
        let core = Arc::new(DiskCore::new(world.platform(), &disk, records));
        let tree = open(&world, &core, options);
        Self { world, disk, core, tree }
    }

    /// Opens the tree again, after a crash that preserved so many batches.
    pub(crate) fn crash(&mut self, kept: usize, options: &ObjectTreeOptions) {
        self.core = Arc::new(self.core.reopened(self.core.records.after_crash(kept)));
        self.tree = open(&self.world, &self.core, options);
    }

    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.world.run(future).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn platform(&self) -> &Arc<SimPlatform> {
        self.world.platform()
    }

    pub(crate) fn root(&self) -> Node {
        self.tree.exports()[0].root.node.clone()
    }

    pub(crate) fn make(&self, directory: &Node, name: &str, new: New) -> Found {
        self.run(make(&*self.tree, directory, name, new)).unwrap().found
    }

    pub(crate) fn lookup(&self, directory: &Node, name: &str) -> Result<Found, VolumeError> {
        self.run(self.tree.lookup(directory, bytes(name)))
    }

    pub(crate) fn remove(&self, directory: &Node, name: &str) -> Result<Removed, VolumeError> {
        self.run(self.tree.remove(directory, bytes(name), false, true))
    }

    pub(crate) fn stat(&self, node: &Node) -> Result<Stat, VolumeError> {
        self.run(self.tree.stat(node))
    }
}

fn open(world: &World, core: &Arc<DiskCore>, options: &ObjectTreeOptions) -> Arc<Tree> {
    let tree = world.run(ObjectTree::open(Arc::clone(core), options.clone())).unwrap().unwrap();
    world.spawn("reap", tree.reaper());
    tree
}

pub(crate) fn bytes(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

pub(crate) fn make<'a>(tree: &'a dyn Directory, directory: &Node, name: &str, new: New) -> TreeResult<'a, Created> {
    tree.create(directory, bytes(name), new, AttributeChange::default(), true)
}

/// One of each kind of object but a directory.
pub(crate) fn kinds() -> Vec<New> {
    let special = [
        SpecialKind::Fifo,
        SpecialKind::Socket,
        SpecialKind::CharDevice { major: 1, minor: 3 },
        SpecialKind::BlockDevice { major: 8, minor: 1 },
    ];
    let special = special.into_iter().map(New::Special);
    [New::Regular, New::Symlink { target: Bytes::from_static(b"../target") }].into_iter().chain(special).collect()
}
