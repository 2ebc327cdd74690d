//! Writes, the batches that name them, and COMMIT.
//!
//! Owns: the order of PUT, batch and answer; the part of a file's writes that one batch names.
//! Does not own: the writes of a segment (`packing`), the wait of a batch inside the records (`seams`).
//! Invariants: the batches of a file name its writes in the order of their calls, and each has the body that belongs to
//! them. So a crash between two batches leaves a prefix of the writes. Only a write over more extents than one batch
//! can change is named in parts, from its start. A cut in parts has its record `t` from the first to the last. The
//! batches of a COMMIT hold all writes of the file that began before it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::stream::FuturesUnordered;

use crate::control::CheckedRule;
use crate::error::ObjectVolumeError;
use crate::extents::{MapChanges, Reach};
use crate::file::{BodyInMemory, Cut, END, ObjectFile, UnnamedContent};
use crate::format::extent::SegmentId;
use crate::format::records::{Body, COMPRESSED_RUNS, file_key};
use crate::open::ObjectVolume;
use crate::seams::{Clock, Objects, RecordChange, RecordDatabase, RecordsError, Sequence};
use crate::state::{VolumeLimits, VolumeState};

/// Batches of one operation that are not durable yet.
const BATCHES_ON_WAY: usize = 4;

impl<O: Objects, R: RecordDatabase, C: Clock> ObjectVolume<O, R, C> {
    /// Takes bytes of a file, and lets it grow to hold them. Reads see them at once; a later COMMIT makes them durable.
    ///
    /// # Errors
    /// If there are no bytes, more than a segment holds, or a range beyond 2^63.
    pub fn write(&self, ino: u64, start: u64, bytes: Bytes) -> Result<(), ObjectVolumeError> {
        let length = bytes.len() as u64;
        range("the length of a write", length, 1, self.limits.segment_bytes)?;
        range("the start of a write", start, 0, END - length)?;
        self.take(ino, start, start + length, UnnamedContent::Buffered(bytes))
    }

    /// Makes a hole in a file. Its size stays.
    ///
    /// # Errors
    /// If the range is empty or ends beyond 2^63.
    pub fn punch(&self, ino: u64, start: u64, length: u64) -> Result<(), ObjectVolumeError> {
        range("the length of a hole", length, 1, END)?;
        range("the start of a hole", start, 0, END - length)?;
        self.take(ino, start, start + length, UnnamedContent::Hole)
    }

    /// Cuts a file, or lets it grow by a hole, with the next COMMIT.
    ///
    /// # Errors
    /// If the size is beyond 2^63.
    pub fn set_size(&self, ino: u64, size: u64) -> Result<(), ObjectVolumeError> {
        range("the size of a file", size, 0, END)?;
        self.take(ino, size, END, UnnamedContent::Cut(Cut { size, is_begun: false }))
    }

    fn take(&self, ino: u64, start: u64, end: u64, content: UnnamedContent) -> Result<(), ObjectVolumeError> {
        let at_ns = self.clock.wall_ns();
        self.begin()?.take(ino, start, end, at_ns, content);
        Ok(())
    }

    /// The newest size, used bytes and time of change. The used bytes may be too many until a COMMIT.
    ///
    /// # Errors
    /// If a later writer took over, or the record is damaged.
    pub async fn body(&self, ino: u64) -> Result<Body, ObjectVolumeError> {
        loop {
            let newest = self.begin()?.file(ino).newest_body();
            match newest {
                Some(body) => return self.wait_to_answer().await.map(|()| body),
                None => self.load_body(ino).await?,
            }
        }
    }

    /// The body of a file as far as memory has it.
    pub(crate) fn body_in_memory(&self, ino: u64) -> BodyInMemory {
        let state = self.state();
        let Some(file) = state.files.get(&ino) else { return BodyInMemory::AsStored };
        match file.newest_body() {
            Some(body) => BodyInMemory::Newest(body),
            None if file.writes.is_empty() => BodyInMemory::AsStored,
            None => BodyInMemory::Unread,
        }
    }

    /// PUTs all bytes that are in memory only.
    ///
    /// # Errors
    /// If the store refuses.
    pub async fn flush(&self) -> Result<(), ObjectVolumeError> {
        let (cut, epoch) = (self.begin()?.last_write, self.records.epoch());
        let (mut puts, mut begun) = (FuturesUnordered::new(), BTreeSet::new());
        loop {
            let unsent = self.state().unsent_of_all(cut, epoch, &self.limits)?;
            if unsent.is_empty() {
                return Ok(());
            }
            puts.extend(
                unsent.into_iter().filter(|segment| begun.insert(*segment)).map(|segment| self.upload(segment)),
            );
            puts.try_next().await?;
        }
    }

    /// Makes all earlier writes of a file durable.
    ///
    /// # Errors
    /// If a later writer took over, the store refuses, or the file's records are damaged.
    pub async fn commit(&self, ino: u64) -> Result<(), ObjectVolumeError> {
        drop(self.begin()?);
        self.make_durable(ino).await?;
        self.wait_to_answer().await
    }

    /// Removes the bytes, the body, the inode and the record `o` of a file that has no name and no user. A crash leaves
    /// `o`, and then it is to be called again.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub async fn reap(&self, ino: u64) -> Result<(), ObjectVolumeError> {
        let cut = self.begin()?.drop_file(ino);
        let sequence = self.name_all(ino, cut).await?;
        self.records.durable(sequence).await?;
        self.state().forget(ino);
        Ok(())
    }

    pub(crate) async fn make_durable(&self, ino: u64) -> Result<(), ObjectVolumeError> {
        let cut = self.state().last_write;
        let sequence = self.name_all(ino, cut).await?;
        let check_inline_full = self.state().check_inline_full(&self.limits);
        if check_inline_full {
            self.pack().await?;
        }
        self.joints.meet(ino).await;
        if !self.broken.is(CheckedRule::AnswerAfterDurable) {
            self.records.durable(sequence).await?;
        }
        let durable = self.records.durable_through();
        let mut state = self.state();
        state.naming.retain(|(sequence, _)| *sequence > durable);
        state.trim(&self.limits, durable);
        Ok(())
    }

    /// Gives all writes of a file up to `cut` to the records. Returns the last batch with records of the file.
    pub(crate) async fn name_all(&self, ino: u64, cut: u64) -> Result<Sequence, ObjectVolumeError> {
        let (mut puts, mut begun) = (FuturesUnordered::new(), BTreeSet::new());
        let mut batches = VecDeque::new();
        loop {
            match self.step(ino, cut)? {
                Step::Put(segments) => {
                    let new = segments.into_iter().filter(|segment| begun.insert(*segment));
                    puts.extend(new.map(|segment| self.upload(segment)));
                    puts.try_next().await?;
                }
                Step::Load(start, end) => self.load(ino, start, end).await?,
                Step::LoadBody => self.load_body(ino).await?,
                Step::Applied(sequence) => {
                    batches.push_back(sequence);
                    if batches.len() > BATCHES_ON_WAY
                        && let Some(oldest) = batches.pop_front()
                    {
                        self.records.durable(oldest).await?;
                    }
                }
                Step::Named(sequence) => return Ok(sequence),
            }
        }
    }

    fn step(&self, ino: u64, cut: u64) -> Result<Step, ObjectVolumeError> {
        let mut state = self.state();
        let unsent = state.unsent(ino, cut, self.records.epoch(), &self.limits)?;
        if !unsent.is_empty() && !self.broken.is(CheckedRule::NameAfterPut) {
            return Ok(Step::Put(unsent));
        }
        Ok(state.name(ino, cut, &self.limits, &self.records)?)
    }

    pub(crate) async fn upload(&self, segment: SegmentId) -> Result<(), ObjectVolumeError> {
        let upload = self.state().uploads.get(&segment).map(|on_way| Arc::clone(&on_way.upload));
        if let Some(upload) = upload {
            let places = upload.finish(&self.objects, &self.clock, self.limits.compression).await?;
            if places.iter().any(|place| place.stored.is_some()) {
                self.begin_feature(COMPRESSED_RUNS)?;
            }
            self.state().uploaded(segment, &places);
        }
        Ok(())
    }
}

pub(crate) fn range(field: &'static str, value: u64, least: u64, most: u64) -> Result<(), ObjectVolumeError> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(ObjectVolumeError::Invalid { field, value, least, most }) }
}

/// Changes of a batch besides those of old extents: a body, a cut, two rests of cut extents, a new extent and its
/// segment. The last batch of a removal has four records instead.
const OTHER_CHANGES: usize = 8;

/// The next thing to do for a COMMIT.
#[derive(Debug)]
pub(crate) enum Step {
    /// The PUT of these segments must be answered.
    Put(BTreeSet<SegmentId>),
    /// The map must be read from here to before there.
    Load(u64, u64),
    LoadBody,
    /// A batch was given to the records.
    Applied(Sequence),
    /// All writes were given to the records.
    Named(Sequence),
}

impl VolumeState {
    /// Moves some of a file's writes up to `cut` into its map, and gives them to the records. Their segments were PUT.
    pub(crate) fn name(
        &mut self,
        ino: u64,
        cut: u64,
        limits: &VolumeLimits,
        records: &impl RecordDatabase,
    ) -> Result<Step, RecordsError> {
        let announced = self.unannounced.len().min(limits.batch_changes / 4);
        let most = limits.batch_changes - announced;
        let Some(file) = self.files.get_mut(&ino) else { return Ok(Step::Named(Sequence::default())) };
        if file.upto(cut).next().is_none() {
            return Ok(Step::Named(file.last_batch));
        }
        if file.body.is_none() {
            return Ok(Step::LoadBody);
        }
        let (mut changes, mut segments, mut is_first) = (MapChanges::default(), BTreeSet::new(), true);
        let mut named_bytes = 0;
        while let Some(write) = file.writes.front().filter(|write| write.id <= cut) {
            let (start, end, id) = (write.start, write.end, write.id);
            // A batch removes an old extent and counts its segment.
            let room = most.saturating_sub(changes.len() + OTHER_CHANGES) / 2;
            let to = match file.map.reach(start, end, room) {
                Reach::Whole if is_first || room > 0 => end,
                Reach::Part(to) if is_first => to,
                Reach::Unknown(gap) if is_first => return Ok(Step::Load(start, gap + 1)),
                _ => break,
            };
            is_first = false;
            let (content, bytes) = (write.content.clone(), write.data_bytes().min(to - start));
            named_bytes += bytes;
            file.name(ino, to, &mut changes);
            match content {
                UnnamedContent::Cut(cut) if !file.is_reaped && !self.broken.is(CheckedRule::CutRecord) => {
                    cut_record(ino, cut, to == end, &mut changes)
                }
                UnnamedContent::Segment(place, _) => {
                    segments.insert(place.segment);
                }
                UnnamedContent::Buffered(_) => {
                    self.inline_files.insert(ino);
                    self.inline_bytes += bytes;
                    if to == end {
                        self.buffered.remove(&id);
                    }
                }
                _ => (),
            }
        }
        if self.broken.is(CheckedRule::RemoveLast) && file.is_reaped {
            changes.push(RecordChange::Remove(file_key(b'o', ino)));
        }
        let is_last = file.upto(cut).next().is_none();
        if is_last || !self.broken.is(CheckedRule::BodyInEachBatch) {
            body_record(ino, file, &mut changes);
        }
        for (segment, bytes) in self.unannounced.drain(..announced) {
            changes.announce(segment, bytes);
        }
        // The writes left the list. If the records refuse them, no COMMIT may be answered for them.
        let sequence = records.apply(changes.into_batch()).inspect_err(|_| self.is_closed = true)?;
        self.naming.push_back((sequence, segments));
        self.file(ino).gave(sequence, named_bytes, records.durable_through());
        Ok(Step::Applied(sequence))
    }
}

fn body_record(ino: u64, file: &ObjectFile, changes: &mut MapChanges) {
    if file.is_reaped && file.writes.is_empty() {
        let keys = [file_key(b'i', ino), Body::key(ino), file_key(b'o', ino), file_key(b't', ino)];
        keys.into_iter().for_each(|key| changes.push(RecordChange::Remove(key)));
    } else if let Some(body) = file.body {
        changes.push(RecordChange::Put(Body::key(ino), body.encode()));
    }
}

fn cut_record(ino: u64, cut: Cut, is_last: bool, changes: &mut MapChanges) {
    let key = file_key(b't', ino);
    match (cut.is_begun, is_last) {
        (false, false) => changes.push(RecordChange::Put(key, cut.size.to_be_bytes().to_vec())),
        (true, true) => changes.push(RecordChange::Remove(key)),
        _ => (),
    }
}
