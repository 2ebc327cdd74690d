//! Random calls by seed against a model, with crashes.
//!
//! Owns: the model: objects and names as plain maps.
//! Does not own: rights, which have tables of their own.
//! Invariants: each successful change is one batch, and a crash preserves a prefix of the batches.

use std::collections::BTreeMap;

use afflux_object::ObjectTreeOptions;
use afflux_simulator::Random;
use afflux_volume::{AttributeChange, Directory, Found, Identity, Kind, New, Node, RenameHow, Stat, VolumeError};

use crate::check;
use crate::lab::{Lab, Tree, bytes, kinds, make};

const SEEDS: u64 = 150;
const CALLS: u64 = 80;
const CRASHES: u64 = 4;

#[derive(Clone, Debug, PartialEq)]
struct Object {
    kind: Kind,
    links: u32,
    mode: u32,
    entries: BTreeMap<String, usize>,
    parent: usize,
}

/// Objects by the order of their making; the root is the first.
#[derive(Clone, Debug, PartialEq)]
struct Model(Vec<Object>);

fn empty(kind: Kind, mode: u32, parent: usize) -> Object {
    Object { kind, links: 1, mode, entries: BTreeMap::new(), parent }
}

impl Model {
    fn new() -> Self {
        Self(vec![empty(Kind::Directory, 0o755, 0)])
    }

    fn find(&self, directory: usize, name: &str) -> Result<usize, VolumeError> {
        self.0[directory].entries.get(name).copied().ok_or(VolumeError::NotFound)
    }

    fn create(&mut self, directory: usize, name: &str, kind: Kind) -> Result<(), VolumeError> {
        if self.find(directory, name).is_ok() {
            return Err(VolumeError::Exists);
        }
        let mode = match kind {
            // The setgid bit is inherited.
            Kind::Directory => 0o755 | self.0[directory].mode & 0o2000,
            Kind::Symlink => 0o777,
            _ => 0o644,
        };
        self.0.push(empty(kind, mode, directory));
        let new = self.0.len() - 1;
        self.0[directory].entries.insert(name.to_owned(), new);
        Ok(())
    }

    fn may_replace(&self, object: usize, by_directory: bool) -> Result<(), VolumeError> {
        match (self.0[object].kind == Kind::Directory, by_directory) {
            (true, false) => Err(VolumeError::IsDirectory),
            (false, true) => Err(VolumeError::NotDirectory),
            (true, true) if !self.0[object].entries.is_empty() => Err(VolumeError::NotEmpty),
            _ => Ok(()),
        }
    }

    fn unlink(&mut self, object: usize) {
        self.0[object].links -= 1;
    }

    fn remove(&mut self, directory: usize, name: &str, directory_wanted: bool) -> Result<(), VolumeError> {
        let object = self.find(directory, name)?;
        self.may_replace(object, directory_wanted)?;
        self.0[directory].entries.remove(name);
        self.unlink(object);
        Ok(())
    }

    fn link(&mut self, object: usize, directory: usize, name: &str) -> Result<(), VolumeError> {
        if self.find(directory, name).is_ok() {
            return Err(VolumeError::Exists);
        }
        if self.0[object].kind == Kind::Directory {
            return Err(VolumeError::NotPermitted);
        }
        self.0[directory].entries.insert(name.to_owned(), object);
        self.0[object].links += 1;
        Ok(())
    }

    fn is_above(&self, object: usize, mut below: usize) -> bool {
        while below != object && below != 0 {
            below = self.0[below].parent;
        }
        below == object
    }

    /// Returns whether anything changed.
    fn rename(&mut self, from: (usize, &str), to: (usize, &str), how: RenameHow) -> Result<bool, VolumeError> {
        let moved = self.find(from.0, from.1)?;
        let is_directory = self.0[moved].kind == Kind::Directory;
        let replaced = self.find(to.0, to.1).ok();
        match how {
            RenameHow::NoReplace | RenameHow::Whiteout { may_replace: false } if replaced.is_some() => {
                return Err(VolumeError::Exists);
            }
            RenameHow::Exchange if replaced.is_none() => return Err(VolumeError::NotFound),
            _ => {}
        }
        let other = replaced.filter(|_| how == RenameHow::Exchange);
        for (object, into) in [(moved, to.0)].into_iter().chain(other.map(|other| (other, from.0))) {
            if self.0[object].kind == Kind::Directory && from.0 != to.0 && self.is_above(object, into) {
                return Err(VolumeError::Invalid { what: "a directory cannot be moved into itself" });
            }
        }
        // As on Linux, which checks that before the kinds.
        let is_on_the_way = |at: usize| other.is_none() && from.0 != to.0 && self.is_above(at, from.0);
        if replaced.is_some_and(|at| self.0[at].kind == Kind::Directory && is_on_the_way(at)) {
            return Err(VolumeError::NotEmpty);
        }
        if replaced == Some(moved) {
            return Ok(false);
        }
        if let Some(other) = other {
            self.0[from.0].entries.insert(from.1.to_owned(), other);
            self.0[to.0].entries.insert(to.1.to_owned(), moved);
            (self.0[other].parent, self.0[moved].parent) = (from.0, to.0);
            return Ok(true);
        }
        if let Some(replaced) = replaced {
            self.may_replace(replaced, is_directory)?;
            self.unlink(replaced);
        }
        self.0[from.0].entries.remove(from.1);
        self.0[to.0].entries.insert(to.1.to_owned(), moved);
        self.0[moved].parent = to.0;
        if matches!(how, RenameHow::Whiteout { .. }) {
            let whiteout = self.0.len();
            self.0.push(empty(Kind::CharDevice, 0, from.0));
            self.0[from.0].entries.insert(from.1.to_owned(), whiteout);
        }
        Ok(true)
    }

    fn directories(&self) -> Vec<usize> {
        let living = |object: &Object| object.kind == Kind::Directory && object.links > 0;
        (0..self.0.len()).filter(|at| living(&self.0[*at])).collect()
    }
}

/// A tree under test.
struct Run {
    lab: Lab,
    model: Model,
    random: Random,
    /// The identity of each object of the model.
    identities: Vec<Identity>,
    /// The model after so many calls that changed something.
    history: BTreeMap<usize, (Model, usize)>,
}

impl Run {
    fn new(seed: u64, options: &ObjectTreeOptions) -> Self {
        let lab = Lab::new(seed, options);
        let (model, random) = (Model::new(), Random::new(seed));
        let identities = vec![lab.tree.exports()[0].root.identity];
        let mut run = Self { lab, model, random, identities, history: BTreeMap::new() };
        run.note();
        run
    }

    fn note(&mut self) {
        let records = &self.lab.core.records;
        let calls = records.calls_within(records.batches());
        self.history.insert(calls, (self.model.clone(), self.identities.len()));
    }

    fn open(&self, object: usize) -> Found {
        self.lab.run(self.lab.tree.open_identity(self.identities[object])).unwrap()
    }

    fn name(&mut self) -> String {
        format!("n{}", self.random.below(6))
    }

    fn directory(&mut self) -> (usize, Node) {
        let at = self.random.pick(&self.model.directories());
        (at, self.open(at).node)
    }

    fn call(&mut self) {
        let ((at, node), name, (to, to_node), to_name) = (self.directory(), self.name(), self.directory(), self.name());
        let (tree, random) = (std::sync::Arc::clone(&self.lab.tree), self.random.below(16));
        match random {
            0..4 => self.create(at, &node, &name),
            4 | 5 => {
                let wanted = self.random.chance(400);
                let removed =
                    self.lab.run(tree.remove(&node, bytes(&name), wanted, true)).map(|removed| removed.stat.links);
                let expected = self.model.remove(at, &name, wanted);
                assert_eq!(removed.as_ref().err(), expected.as_ref().err());
            }
            6..9 => {
                let whiteouts = [true, false].map(|may_replace| RenameHow::Whiteout { may_replace });
                let ways = [RenameHow::Replace, RenameHow::Replace, RenameHow::NoReplace, RenameHow::Exchange];
                let how = self.random.pick(&[&ways[..], &whiteouts].concat());
                let renamed = tree.rename((&node, bytes(&name)), (&to_node, bytes(&to_name)), how, true);
                let renamed = self.lab.run(renamed);
                let expected = self.model.rename((at, &name), (to, &to_name), how);
                assert_eq!(renamed.map(drop), expected.map(drop), "{name} {to_name} {how:?}");
                if self.identities.len() < self.model.0.len() {
                    let whiteout = self.lab.lookup(&node, &name).unwrap();
                    assert_eq!((whiteout.stat.device_major, whiteout.stat.device_minor), (0, 0));
                    self.identities.push(whiteout.identity);
                }
            }
            9 | 10 => {
                let Ok(object) = self.model.find(to, &to_name) else { return };
                let held = self.open(object).node;
                let linked = self.lab.run(tree.link(&held, &node, bytes(&name), true));
                assert_eq!(linked.map(drop), self.model.link(object, at, &name));
            }
            11 => {
                let mode = self.random.below(0o10000) as u32;
                let change = AttributeChange { mode: Some(mode), ..AttributeChange::default() };
                self.lab.run(tree.set(&node, change, true)).unwrap();
                self.model.0[at].mode = mode;
            }
            12 => self.lab.run(tree.sync(&node)).unwrap(),
            _ => {
                let found = self.lab.run(tree.lookup(&node, bytes(&name)));
                let expected = self.model.find(at, &name).map(|object| self.identities[object]);
                assert_eq!(found.map(|found| found.identity), expected);
            }
        }
        self.note();
    }

    fn create(&mut self, at: usize, node: &Node, name: &str) {
        let kinds: Vec<New> = kinds().into_iter().chain([New::Directory, New::Directory]).collect();
        let new = kinds[self.random.below(kinds.len() as u64) as usize].clone();
        let created = self.lab.run(make(&*self.lab.tree, node, name, new));
        let kind = created.as_ref().map_or(Kind::Regular, |created| created.found.stat.kind);
        let expected = self.model.create(at, name, kind);
        assert_eq!(created.as_ref().err(), expected.as_ref().err());
        self.identities.extend(created.ok().map(|created| created.found.identity));
    }

    /// Loses the last batches, and goes back to the model that the rest shows.
    fn crash(&mut self, options: &ObjectTreeOptions) {
        let (durable, all) = (self.lab.core.records.durable_batches(), self.lab.core.records.batches());
        let kept = self.random.between(durable as u64, all as u64) as usize;
        let (model, objects) = &self.history[&self.lab.core.records.calls_within(kept)];
        (self.model, self.identities) = (model.clone(), self.identities[..*objects].to_vec());
        self.lab.crash(kept, options);
        self.history.clear();
        self.note();
    }

    fn compare(&self) {
        let mut waiting = vec![(0, self.lab.root())];
        while let Some((at, node)) = waiting.pop() {
            let expected = &self.model.0[at];
            assert_eq!(shown(&self.lab.stat(&node).unwrap()), (expected.kind, expected.links, expected.mode));
            let found = self.lab.run(entries(&self.lab.tree, &node));
            let names: Vec<_> =
                expected.entries.iter().map(|(name, object)| (name.clone(), self.identities[*object])).collect();
            assert_eq!(found, names);
            for (name, object) in &expected.entries {
                let found = self.lab.lookup(&node, name).unwrap();
                let of_model = &self.model.0[*object];
                assert_eq!(shown(&found.stat), (of_model.kind, of_model.links, of_model.mode));
                if found.stat.kind == Kind::Directory {
                    assert_eq!(self.lab.run(self.lab.tree.parent(&found.node)).unwrap().identity, self.identities[at]);
                    waiting.push((*object, found.node));
                }
            }
        }
    }
}

fn shown(stat: &Stat) -> (Kind, u32, u32) {
    (stat.kind, stat.links, stat.mode)
}

async fn entries(tree: &Tree, node: &Node) -> Vec<(String, Identity)> {
    let entries = tree.identities(node).await.unwrap();
    let mut named: Vec<_> =
        entries.into_iter().map(|entry| (String::from_utf8(entry.name.to_vec()).unwrap(), entry.identity)).collect();
    named.sort();
    named
}

fn one_seed(seed: u64) {
    // Few inodes in memory, or all.
    let inodes_max = if seed.is_multiple_of(2) { 4 } else { 65_536 };
    let options = ObjectTreeOptions { inodes_max, async_metadata: true, ..ObjectTreeOptions::default() };
    let mut run = Run::new(seed, &options);
    for _ in 0..CRASHES {
        for _ in 0..CALLS / CRASHES {
            run.call();
        }
        run.compare();
        check::unnamed(&run.lab.core.records.map());
        run.crash(&options);
        run.compare();
    }
    let platform = run.lab.platform();
    run.lab.run(afflux_engine::Platform::sleep_until(
        &**platform,
        afflux_engine::Platform::now(&**platform).after(1_000_000_000),
    ));
    assert_eq!(check::unnamed(&run.lab.core.records.map()), 0, "all is reaped");
}

// rule: in an object store a call on names is one batch, and a crash undoes whole calls, the last ones first
// kept in: `product/object/src/tree/edit.rs`
#[test]
fn a_tree_is_its_model_and_a_crash_keeps_a_prefix() {
    for seed in 0..SEEDS {
        assert!(std::panic::catch_unwind(|| one_seed(seed)).is_ok(), "seed {seed} fails");
    }
}
