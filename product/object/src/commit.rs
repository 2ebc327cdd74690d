//! Writes, and COMMIT.
//!
//! Owns: the order of PUT, batch and answer.
//! Does not own: which bytes a segment holds (`state`).
//! Invariants: the batch of a COMMIT holds all writes of the file that began before it, in their order.

use std::collections::BTreeSet;

use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::control::Rule;
use crate::error::ObjectVolumeError;
use crate::extents::ExtentMap;
use crate::format::extent::Extent;
use crate::open::ObjectVolume;
use crate::seams::{Clock, Durability, Objects, Records, Sequence};
use crate::state::{Unnamed, Write};

impl<O: Objects, R: Records, C: Clock> ObjectVolume<O, R, C> {
    /// Takes bytes of a file. Reads see them at once; a later COMMIT makes them durable.
    ///
    /// # Errors
    /// If there are no bytes, more than a segment holds, or a range beyond 2^63.
    pub fn write(&self, ino: u64, start: u64, bytes: Bytes) -> Result<(), ObjectVolumeError> {
        self.take_write(ino, start, bytes).map(drop)
    }

    /// As [`Self::write`]; returns the number of the write.
    pub(crate) fn take_write(&self, ino: u64, start: u64, bytes: Bytes) -> Result<u64, ObjectVolumeError> {
        let length = bytes.len() as u64;
        range("the length of a write", length, 1, self.limits.segment_bytes)?;
        self.take(ino, start, length, Unnamed::Buffered(bytes))
    }

    /// Makes a hole in a file.
    ///
    /// # Errors
    /// If the range is empty or ends beyond 2^63.
    pub fn punch(&self, ino: u64, start: u64, length: u64) -> Result<(), ObjectVolumeError> {
        range("the length of a hole", length, 1, i64::MAX as u64)?;
        self.take(ino, start, length, Unnamed::Hole).map(drop)
    }

    fn take(&self, ino: u64, start: u64, length: u64, source: Unnamed) -> Result<u64, ObjectVolumeError> {
        range("the start of a write", start, 0, i64::MAX as u64 - length)?;
        let mut state = self.begin()?;
        state.last_write += 1;
        let number = state.last_write;
        let file = state.files.entry(ino).or_default();
        file.writes.push_back(Write { number, start, end: start + length, source });
        Ok(number)
    }

    /// PUTs all bytes that are in memory only.
    ///
    /// # Errors
    /// If the store refuses.
    pub async fn flush(&self) -> Result<(), ObjectVolumeError> {
        self.begin()?.seal(self.records.epoch(), &self.limits, |_| true)?;
        let segments: Vec<_> = self.state().uploads.keys().copied().collect();
        try_join_all(segments.into_iter().map(|segment| self.upload(segment))).await?;
        Ok(())
    }

    /// PUTs the bytes of these writes, as one segment if it has room for them.
    pub(crate) async fn put(&self, numbers: &BTreeSet<u64>) -> Result<(), ObjectVolumeError> {
        let segments = {
            let mut state = self.begin()?;
            state.seal(self.records.epoch(), &self.limits, |number| numbers.contains(&number))?;
            state.segments_of(numbers)
        };
        try_join_all(segments.into_iter().map(|segment| self.upload(segment))).await?;
        Ok(())
    }

    /// Stand-in until the sizes of files have their records.
    pub(crate) fn set_size(&self, ino: u64, size: u64) -> Result<(), ObjectVolumeError> {
        self.punch(ino, size, i64::MAX as u64 - size - 1)
    }

    /// Makes all earlier writes of a file durable.
    ///
    /// # Errors
    /// If a later writer took over, the store refuses, or the file's records are damaged.
    pub async fn commit(&self, ino: u64) -> Result<(), ObjectVolumeError> {
        drop(self.begin()?);
        self.make_durable(ino).await?;
        self.may_answer().await
    }

    pub(crate) async fn make_durable(&self, ino: u64) -> Result<(), ObjectVolumeError> {
        let cut = self.state().last_write;
        self.load(ino).await?;
        let sequence = loop {
            if let Some(sequence) = self.name_if_uploaded(ino, cut)? {
                break sequence;
            }
            let segments = self.state().files.entry(ino).or_default().on_their_way(cut);
            try_join_all(segments.into_iter().map(|segment| self.upload(segment))).await?;
        };
        if self.broken.is(Rule::AnswerAfterDurable) {
            return Ok(());
        }
        self.records.durable(sequence).await?;
        let durable = self.records.durable_through();
        self.state().naming.retain(|(sequence, _)| *sequence > durable);
        Ok(())
    }

    /// Gives the batch with the file's writes to the records, or nothing while one of their segments is on its way.
    fn name_if_uploaded(&self, ino: u64, cut: u64) -> Result<Option<Sequence>, ObjectVolumeError> {
        let mut state = self.state();
        let buffered = state.files.entry(ino).or_default().buffered_bytes(cut);
        if buffered > self.limits.inline_bytes {
            state.seal(self.records.epoch(), &self.limits, |_| true)?;
        }
        let is_on_way = !state.files.entry(ino).or_default().on_their_way(cut).is_empty();
        if is_on_way && !self.broken.is(Rule::NameAfterPut) {
            return Ok(None);
        }
        let (changes, segments) = state.name(ino, cut);
        let batch = changes.into_batch();
        if !batch.is_empty() {
            // The writes left the list. If the records refuse them, no other COMMIT may be answered for them.
            let sequence = self.records.apply(batch).inspect_err(|_| state.is_closed = true)?;
            state.naming.push_back((sequence, segments));
            state.files.entry(ino).or_default().last_batch = sequence;
        }
        Ok(Some(state.files.entry(ino).or_default().last_batch))
    }

    async fn upload(&self, segment: crate::SegmentId) -> Result<(), ObjectVolumeError> {
        let upload = self.state().uploads.get(&segment).cloned();
        if let Some(upload) = upload {
            upload.finish(&self.objects, &self.clock).await?;
            self.state().uploaded(upload.segment);
        }
        Ok(())
    }

    /// Reads the map of a file from the records, unless it is in memory.
    pub(crate) async fn load(&self, ino: u64) -> Result<(), ObjectVolumeError> {
        if self.state().files.get(&ino).is_some_and(|file| file.named.is_some()) {
            return Ok(());
        }
        let (from, mut to) = (Extent::key(ino, 0), Extent::key(ino, u64::MAX));
        to.push(0);
        let mut named = ExtentMap::default();
        for (key, value) in self.records.scan(from, to, Durability::Applied).await? {
            named.insert(Extent::decode(&key, &value)?.1);
        }
        // Only a file with a map has batches, so this scan saw all of them, or another load was quicker.
        self.state().files.entry(ino).or_default().named.get_or_insert(named);
        Ok(())
    }
}

pub(crate) fn range(field: &'static str, value: u64, least: u64, most: u64) -> Result<(), ObjectVolumeError> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(ObjectVolumeError::Invalid { field, value, least, most }) }
}
