//! The checks after each step, and the reference model of the bytes.
//!
//! Owns: the states of each file as each writer made them, the durable records, the views of readers.
//! Does not own: the steps.
//! Invariants: it reads the log and the objects only, never the volume's memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bytes::Bytes;

use super::log::{Entry, Map};
use super::store::MS;
use crate::format::extent::{ExtentSource, StoredExtent};
use crate::format::records::{SegmentBytes, file_key};
use crate::format::segment;
use crate::{Batch, Body, RecordChange, SegmentId};

pub(super) const FILES: u64 = 3;
pub(super) const FILE_BYTES: u64 = 256;
pub(super) const BATCH_CHANGES: usize = 24;
pub(super) const DEAD_NS: u64 = 2_000 * MS;

/// A change of a file.
#[allow(clippy::large_enum_variant, reason = "a run has a few thousand")]
#[derive(Clone, Copy, Debug)]
pub(super) enum Edit {
    /// Bytes of this value, or zeros that do not let the file grow.
    Write {
        start: usize,
        end: usize,
        byte: Option<u8>,
    },
    Size(usize),
    /// The bytes of another range. The file has at least this size then.
    Share {
        start: usize,
        end: usize,
        bytes: [u8; FILE_BYTES as usize],
    },
}

impl Edit {
    fn apply(self, state: &[u8]) -> Vec<u8> {
        let mut state = state.to_vec();
        match self {
            Self::Write { start, end, byte } => {
                let end = if byte.is_some() { end } else { end.min(state.len()) };
                state.resize(state.len().max(end), 0);
                state[start.min(end)..end].fill(byte.unwrap_or(0));
            }
            Self::Size(size) => state.resize(size, 0),
            Self::Share { start, end, bytes } => {
                state.resize(state.len().max(end), 0);
                state[start..end].copy_from_slice(&bytes[..end - start]);
            }
        }
        state
    }

    /// Whether a part of the edit, from its start, makes these bytes of a state. A shared range is a hole first, and
    /// then a write for each extent; the size comes with the bytes, and after them.
    fn has_part(self, state: &[u8], found: &[u8]) -> bool {
        match self {
            Self::Write { start, end, byte } => {
                (start + 1..end).any(|end| Self::Write { start, end, byte }.apply(state) == found)
            }
            Self::Size(_) => false,
            Self::Share { start, end, bytes } => {
                let hole = |end| Self::Write { start, end, byte: None };
                let of_hole = (start + 1..=end).any(|end| hole(end).apply(state) == found);
                let empty = hole(end).apply(state);
                of_hole || (start + 1..=end).any(|end| Self::Share { start, end, bytes }.apply(&empty) == found)
            }
        }
    }
}

/// The states of a file under one writer. The writer found the first of them.
#[derive(Clone, Default)]
pub(super) struct History {
    pub(super) states: Vec<Vec<u8>>,
    edits: Vec<Edit>,
    /// The state that a COMMIT was answered for.
    committed: usize,
}

impl History {
    /// The file is in a state from this one on, or in one with a part of the next write.
    fn has(&self, from: usize, bytes: &[u8]) -> bool {
        self.states[from..].iter().any(|state| state == bytes)
            || (from..self.edits.len()).any(|at| self.edits[at].has_part(&self.states[at], bytes))
    }
}

#[derive(Default)]
pub(super) struct Checker {
    pub(super) violations: Vec<String>,
    pub(super) durable: Map,
    pub(super) histories: BTreeMap<u32, BTreeMap<u64, History>>,
    /// All segments that a reader with this checkpoint may read.
    pub(super) views: BTreeMap<u64, BTreeSet<SegmentId>>,
    /// The time at which a durable batch took a segment's last name.
    unnamed_at_ns: BTreeMap<SegmentId, u64>,
    fence: u32,
    last_answer: u32,
    last_verifier: Option<(u32, u64)>,
    pub(super) commits: u64,
}

impl Checker {
    fn fails(&mut self, text: String) {
        self.violations.push(text);
    }

    fn extents(&self) -> impl Iterator<Item = (u64, StoredExtent)> {
        let keys = self.durable.range(vec![b'x']..vec![b'x' + 1]);
        keys.map(|(key, value)| StoredExtent::decode(key, value).unwrap())
    }

    pub(super) fn named(&self) -> BTreeSet<SegmentId> {
        let places = self.extents().filter_map(|(_, extent)| match extent.source {
            ExtentSource::Segment(place) => Some(place.segment),
            ExtentSource::Inline(_) => None,
        });
        places.collect()
    }

    fn body(&self, ino: u64) -> Body {
        self.durable.get(&Body::key(ino)).map_or(Body::default(), |value| Body::decode(value).unwrap())
    }

    /// The durable bytes of a file.
    fn bytes(&self, ino: u64, objects: &BTreeMap<String, Bytes>) -> Result<Vec<u8>, String> {
        let (body, is_cut) = (self.body(ino), self.durable.contains_key(&file_key(b't', ino)));
        let (mut bytes, mut used) = (vec![0; FILE_BYTES as usize], 0);
        for (_, extent) in self.extents().filter(|(of, _)| *of == ino) {
            used += extent.bytes();
            if extent.end > body.size && !is_cut {
                return Err(format!("file {ino} has bytes up to {} beyond its size {}", extent.end, body.size));
            }
            let into = &mut bytes[extent.start as usize..extent.end as usize];
            match &extent.source {
                ExtentSource::Inline(inline) => into.copy_from_slice(inline),
                ExtentSource::Segment(place) => {
                    let name = place.segment.name();
                    let object = objects.get(&name).ok_or(format!("a record names the missing {name}"))?;
                    let lines = segment::lines(place, into.len() as u32);
                    let lines = segment::part(object, &lines);
                    let read = segment::check_lines(place, into.len() as u32, &lines);
                    into.copy_from_slice(&read.map_err(|error| error.to_string())?);
                }
            }
        }
        if used != body.used {
            return Err(format!("file {ino} uses {used} bytes instead of {}", body.used));
        }
        bytes.truncate(body.size as usize);
        Ok(bytes)
    }

    /// A removed file goes whole, and its record `o` at last.
    fn removals_fit(&mut self, batch: &Batch) {
        for change in batch {
            let RecordChange::Remove(key) = change else { continue };
            if key[0] != b'o' {
                continue;
            }
            let ino = u64::from_be_bytes(key[1..].try_into().unwrap());
            let left = self.extents().any(|(of, _)| of == ino) || self.durable.contains_key(&Body::key(ino));
            if left || self.durable.contains_key(&file_key(b't', ino)) {
                self.fails(format!("the removal of file {ino} ended before its records"));
            }
        }
    }

    fn live_bytes_fit(&mut self) {
        let mut expected: BTreeMap<SegmentId, u64> = BTreeMap::new();
        for (_, extent) in self.extents() {
            if let ExtentSource::Segment(place) = &extent.source {
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

    pub(super) fn appended(&mut self, entry: &Entry, objects: &BTreeMap<String, Bytes>, now_ns: u64) {
        if entry.epoch < self.fence {
            self.fails(format!("a batch of the fenced epoch {} entered the log", entry.epoch));
        }
        let before = self.named();
        for batch in &entry.batches {
            if batch.len() > BATCH_CHANGES {
                self.fails(format!("a batch has {} changes", batch.len()));
            }
            batch.iter().for_each(|change| change.apply_to(&mut self.durable));
            self.removals_fit(batch);
        }
        self.live_bytes_fit();
        let named = self.named();
        self.unnamed_at_ns.extend(before.difference(&named).map(|segment| (*segment, now_ns)));
        self.views.values_mut().for_each(|view| view.extend(&named));
        for ino in 1..=FILES {
            let bytes = match self.bytes(ino, objects) {
                Ok(bytes) => bytes,
                Err(error) => return self.fails(error),
            };
            if entry.last.is_none() {
                self.fence = entry.epoch;
                let history = History { states: vec![bytes], ..History::default() };
                self.histories.entry(entry.epoch).or_default().insert(ino, history);
            } else if !self.is_reachable(entry.epoch, ino, &bytes) {
                self.fails(format!("file {ino} is no state that epoch {} made", entry.epoch));
            }
        }
    }

    fn is_reachable(&mut self, epoch: u32, ino: u64, bytes: &[u8]) -> bool {
        let history = self.history(epoch, ino);
        history.has(history.committed, bytes)
    }

    fn history(&mut self, epoch: u32, ino: u64) -> &mut History {
        self.histories.get_mut(&epoch).unwrap().get_mut(&ino).unwrap()
    }

    pub(super) fn deleted(&mut self, name: &str, now_ns: u64) {
        let Ok(segment) = SegmentId::parse(name) else { return };
        if self.named().contains(&segment) {
            self.fails(format!("{name} was deleted and is named"));
        }
        let pause_ns = self.unnamed_at_ns.get(&segment).map(|at_ns| now_ns - at_ns);
        if let Some(pause_ns) = pause_ns.filter(|pause_ns| *pause_ns < DEAD_NS) {
            self.fails(format!("{name} was deleted {pause_ns} ns after its last name"));
        }
        if self.views.values().any(|view| view.contains(&segment)) {
            self.fails(format!("{name} was deleted and a checkpoint shows it"));
        }
    }

    /// A writer changed a file.
    pub(super) fn edited(&mut self, epoch: u32, ino: u64, edit: Edit) {
        let history = self.history(epoch, ino);
        history.states.push(edit.apply(history.states.last().unwrap()));
        history.edits.push(edit);
    }

    /// A writer shared a range of one file with another.
    pub(super) fn shared(&mut self, epoch: u32, (source, range): (u64, Range<usize>), (target, to): (u64, usize)) {
        let mut bytes = [0; FILE_BYTES as usize];
        let found = self.history(epoch, source).states.last().unwrap();
        let found = found.get(range.start..range.end.min(found.len())).unwrap_or_default();
        bytes[..found.len()].copy_from_slice(found);
        self.edited(epoch, target, Edit::Share { start: to, end: to + range.len(), bytes });
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
            Ok(bytes) if self.history(epoch, ino).has(state, &bytes) => {
                let history = self.history(epoch, ino);
                history.committed = history.committed.max(state);
            }
            Ok(_) => self.fails(format!("a COMMIT of file {ino} was answered before it was durable")),
        }
    }

    pub(super) fn read(&mut self, epoch: u32, ino: u64, state: usize, bytes: &[u8]) {
        self.answered(epoch);
        let padded = |state: &Vec<u8>| bytes.starts_with(state) && bytes[state.len()..].iter().all(|byte| *byte == 0);
        if !self.history(epoch, ino).states[state..].iter().any(padded) {
            self.fails(format!("a read of file {ino} in epoch {epoch} returned wrong bytes"));
        }
    }

    pub(super) fn body_read(&mut self, epoch: u32, ino: u64, state: usize, body: Body) {
        self.answered(epoch);
        let is_size = |state: &Vec<u8>| state.len() as u64 == body.size && body.used <= body.size;
        if !self.history(epoch, ino).states[state..].iter().any(is_size) {
            self.fails(format!("file {ino} in epoch {epoch} has the wrong body {body:?}"));
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
