//! The bytes of a log entry.
//!
//! Owns: both directions.
//! Does not own: the numbers of entries (`records`).
//! Invariants: bytes that are no entry are an error, not a panic.

use afflux_object::{Batch, RecordChange};
use bytes::Bytes;

/// An object of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) epoch: u32,
    /// Tells two writers with the same epoch apart.
    pub(super) writer: u64,
    /// The last batch in it; absent in a fence.
    pub(super) last: Option<u64>,
    pub(super) batches: Vec<Batch>,
}

const PUT: u8 = 0;
const REMOVE: u8 = 1;
const ADD: u8 = 2;

fn push(into: &mut Vec<u8>, bytes: &[u8]) {
    into.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    into.extend_from_slice(bytes);
}

impl Entry {
    pub(super) fn encode(&self) -> Bytes {
        let mut into = self.epoch.to_be_bytes().to_vec();
        into.extend_from_slice(&self.writer.to_be_bytes());
        into.extend_from_slice(&self.last.map_or(0, |last| last + 1).to_be_bytes());
        for batch in &self.batches {
            into.extend_from_slice(&(batch.len() as u32).to_be_bytes());
            for change in batch {
                let (kind, key, value) = match change {
                    RecordChange::Put(key, value) => (PUT, key, value.clone()),
                    RecordChange::Remove(key) => (REMOVE, key, Vec::new()),
                    RecordChange::Add(key, by) => (ADD, key, by.to_be_bytes().to_vec()),
                };
                into.push(kind);
                push(&mut into, key);
                push(&mut into, &value);
            }
        }
        Bytes::from(into)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let epoch = u32::from_be_bytes(take(&mut rest)?);
        let writer = u64::from_be_bytes(take(&mut rest)?);
        let last = u64::from_be_bytes(take(&mut rest)?).checked_sub(1);
        let mut batches = Vec::new();
        while !rest.is_empty() {
            let changes = u32::from_be_bytes(take(&mut rest)?);
            batches.push((0..changes).map(|_| change(&mut rest)).collect::<Option<Batch>>()?);
        }
        Some(Self { epoch, writer, last, batches })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*first)
}

fn slice(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let length = u32::from_be_bytes(take(rest)?) as usize;
    let (first, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(first.to_vec())
}

fn change(rest: &mut &[u8]) -> Option<RecordChange> {
    let [kind] = take(rest)?;
    let (key, value) = (slice(rest)?, slice(rest)?);
    match kind {
        PUT => Some(RecordChange::Put(key, value)),
        REMOVE => Some(RecordChange::Remove(key)),
        ADD => Some(RecordChange::Add(key, i64::from_be_bytes(value.as_slice().try_into().ok()?))),
        _ => None,
    }
}
