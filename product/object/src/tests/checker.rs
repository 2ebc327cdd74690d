//! The checks after each step, and the reference model of the bytes.
//!
//! Owns: the states of each file as each writer made them, the durable records, the views of readers.
//! Does not own: the steps.
//! Invariants: it reads the log and the objects only, never the volume's memory.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::log::{Entry, Map, apply};
use crate::SegmentId;
use crate::format::extent::{Extent, Source};
use crate::format::records::SegmentBytes;
use crate::format::segment;

pub(super) const FILES: u64 = 3;
pub(super) const FILE_BYTES: u64 = 256;

/// The states of a file under one writer. The writer found the first of them.
#[derive(Clone, Default)]
pub(super) struct History {
    pub(super) states: Vec<Vec<u8>>,
    /// The state that a COMMIT was answered for.
    committed: usize,
}

#[derive(Default)]
pub(super) struct Checker {
    pub(super) violations: Vec<String>,
    pub(super) durable: Map,
    pub(super) histories: BTreeMap<u32, BTreeMap<u64, History>>,
    /// All segments that a reader with this checkpoint may look at.
    pub(super) views: BTreeMap<u64, BTreeSet<SegmentId>>,
    fence: u32,
    last_answer: u32,
    last_verifier: Option<(u32, u64)>,
    pub(super) commits: u64,
}

impl Checker {
    fn fails(&mut self, text: String) {
        self.violations.push(text);
    }

    fn extents(&self) -> impl Iterator<Item = (u64, Extent)> {
        let keys = self.durable.range(vec![b'x']..vec![b'x' + 1]);
        keys.map(|(key, value)| Extent::decode(key, value).unwrap())
    }

    pub(super) fn named(&self) -> BTreeSet<SegmentId> {
        let places = self.extents().filter_map(|(_, extent)| match extent.source {
            Source::Segment(place) => Some(place.segment),
            Source::Inline(_) => None,
        });
        places.collect()
    }

    /// The durable bytes of a file.
    fn bytes(&self, ino: u64, objects: &BTreeMap<String, Bytes>) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; FILE_BYTES as usize];
        for (_, extent) in self.extents().filter(|(of, _)| *of == ino) {
            let into = &mut bytes[extent.start as usize..extent.end as usize];
            match &extent.source {
                Source::Inline(inline) => into.copy_from_slice(inline),
                Source::Segment(place) => {
                    let name = place.segment.name();
                    let object = objects.get(&name).ok_or(format!("a record names the missing {name}"))?;
                    let lines = segment::lines(place, into.len() as u32);
                    let lines = &object[lines.start as usize..lines.end as usize];
                    let read = segment::check_lines(place, into.len() as u32, lines);
                    into.copy_from_slice(&read.map_err(|error| error.to_string())?);
                }
            }
        }
        Ok(bytes)
    }

    fn live_bytes_fit(&mut self) {
        let mut expected: BTreeMap<SegmentId, u64> = BTreeMap::new();
        for (_, extent) in self.extents() {
            if let Source::Segment(place) = &extent.source {
                *expected.entry(place.segment).or_default() += extent.bytes();
            }
        }
        let kind = crate::format::records::SegmentRecord::Live;
        let (from, to) = kind.keys();
        let counted = self.durable.range(from..to).map(|(key, value)| kind.decode(key, value).unwrap());
        let counted: BTreeMap<SegmentId, u64> =
            counted.map(|(segment, sum)| (segment, SegmentBytes::of(sum).live)).filter(|(_, live)| *live > 0).collect();
        if counted != expected {
            self.fails(format!("live bytes are {counted:?} instead of {expected:?}"));
        }
    }

    pub(super) fn appended(&mut self, entry: &Entry, objects: &BTreeMap<String, Bytes>) {
        if entry.epoch < self.fence {
            self.fails(format!("a batch of the fenced epoch {} entered the log", entry.epoch));
        }
        entry.batches.iter().for_each(|batch| apply(&mut self.durable, batch));
        self.live_bytes_fit();
        let named = self.named();
        self.views.values_mut().for_each(|view| view.extend(&named));
        for ino in 1..=FILES {
            let bytes = match self.bytes(ino, objects) {
                Ok(bytes) => bytes,
                Err(error) => return self.fails(error),
            };
            if entry.last.is_none() {
                self.fence = entry.epoch;
                let history = History { states: vec![bytes], committed: 0 };
                self.histories.entry(entry.epoch).or_default().insert(ino, history);
            } else if !self.history(entry.epoch, ino).states_after_commit().any(|state| *state == bytes) {
                self.fails(format!("file {ino} is no state that epoch {} made", entry.epoch));
            }
        }
    }

    fn history(&mut self, epoch: u32, ino: u64) -> &mut History {
        self.histories.get_mut(&epoch).unwrap().get_mut(&ino).unwrap()
    }

    pub(super) fn deleted(&mut self, name: &str) {
        let segment = SegmentId::parse(name).unwrap();
        if self.named().contains(&segment) {
            self.fails(format!("{name} was deleted and is named"));
        }
        if self.views.values().any(|view| view.contains(&segment)) {
            self.fails(format!("{name} was deleted and a checkpoint shows it"));
        }
    }

    /// A writer changed a file. `None` makes a hole.
    pub(super) fn wrote(&mut self, epoch: u32, ino: u64, start: u64, bytes: &[u8]) {
        let states = &mut self.history(epoch, ino).states;
        let mut state = states.last().unwrap().clone();
        state[start as usize..start as usize + bytes.len()].copy_from_slice(bytes);
        states.push(state);
    }

    pub(super) fn state_now(&mut self, epoch: u32, ino: u64) -> usize {
        self.history(epoch, ino).states.len() - 1
    }

    fn answered(&mut self, epoch: u32) {
        if epoch < self.last_answer {
            self.fails(format!("epoch {epoch} answered after epoch {}", self.last_answer));
        }
        self.last_answer = self.last_answer.max(epoch);
    }

    /// A COMMIT that began at this state of the file was answered.
    pub(super) fn committed(&mut self, epoch: u32, ino: u64, state: usize, objects: &BTreeMap<String, Bytes>) {
        self.answered(epoch);
        self.commits += 1;
        match self.bytes(ino, objects) {
            Err(error) => self.fails(error),
            Ok(bytes) if self.history(epoch, ino).states[state..].contains(&bytes) => {
                let history = self.history(epoch, ino);
                history.committed = history.committed.max(state);
            }
            Ok(_) => self.fails(format!("a COMMIT of file {ino} was answered before it was durable")),
        }
    }

    pub(super) fn read(&mut self, epoch: u32, ino: u64, state: usize, bytes: &[u8]) {
        self.answered(epoch);
        if !self.history(epoch, ino).states[state..].iter().any(|state| state == bytes) {
            self.fails(format!("a read of file {ino} in epoch {epoch} returned wrong bytes"));
        }
    }

    /// A writer opened. An unchanged verifier promises that no write was lost.
    pub(super) fn opened(&mut self, epoch: u32, verifier: u64) {
        if let Some((before, _)) = self.last_verifier.filter(|(_, last)| *last == verifier) {
            for ino in 1..=FILES {
                let last = self.history(before, ino).states.last().cloned();
                if last.as_ref() != self.history(epoch, ino).states.first() {
                    self.fails(format!("file {ino} lost a write, and the verifier is the same"));
                }
            }
        }
        self.last_verifier = Some((epoch, verifier));
    }
}

impl History {
    fn states_after_commit(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.states[self.committed..].iter()
    }
}
