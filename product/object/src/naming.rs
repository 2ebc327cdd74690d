//! From writes to batches.
//!
//! Owns: the share of a file's writes that one batch names.
//! Does not own: the wait until a batch is durable (`commit`).
//! Invariants: the batches of a file name its writes in the order of their calls, and each has the body that belongs to
//! them. So a crash between two batches leaves a prefix of the writes. Only a write over more extents than one batch
//! can change is named in parts, from its start. A cut in parts has its record `t` from the first to the last.

use std::collections::BTreeSet;

use crate::control::CheckedRule;
use crate::extents::{MapChanges, Reach};
use crate::file::{Cut, ObjectFile, UnnamedContent};
use crate::format::records::{Body, file_key};
use crate::format::segment_id::SegmentId;
use crate::seams::{RecordChange, RecordDatabase, RecordsError, Sequence};
use crate::state::{VolumeLimits, VolumeState};

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
        while let Some(write) = file.writes.front().filter(|write| write.number <= cut) {
            let (start, end, number) = (write.start, write.end, write.number);
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
                        self.buffered.remove(&number);
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
