//! Requests in flight, and the effects of their ends on the files.
//!
//! Owns: the disk's state under its lock; the fate and the effect of each request.
//! Does not own: time and answers (`mod`); the choice of requests that fail (`fault`).
//! Invariants: nothing here waits, answers a request, or releases the lock.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use afflux_engine::{DeviceError, FILE_BYTES_MAX, Operation, Request};

use super::changing::Changing;
use super::fault::{FaultWhat, Faults};
use super::file::{Change, DiskFile, torn};
use super::foreign::Foreign;
use super::gate::Gates;
use super::image::{IMAGE_BLOCK_BYTES, STAMPS, WHOLE_PAGES, backed_before, backed_len};
use super::service::Service;
use super::timeline::Timeline;
use super::{Disk, DiskFileId, DiskOptions};
use crate::random::Random;

/// The longest time in which a disk had requests and ended none.
#[derive(Clone, Copy, Default)]
pub(super) struct StallClock {
    since_ns: u64,
    pub(super) longest_ns: u64,
}

impl StallClock {
    /// The disk has requests from now on.
    pub(super) fn begins(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
    }

    /// A request has ended.
    pub(super) fn ended(&mut self, now_ns: u64) {
        self.longest_ns = self.longest_at(now_ns);
        self.since_ns = now_ns;
    }

    /// The longest time until now; the disk must have requests.
    pub(super) fn longest_at(&self, now_ns: u64) -> u64 {
        self.longest_ns.max(now_ns.saturating_sub(self.since_ns))
    }
}

/// The contents of a read's memory before its bytes arrive.
const RUBBISH: u8 = 0xdb;
/// Pieces in which request memory is fetched if pages are whole; stamps are fetched one by one.
const PIECE_BYTES: u64 = 512;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// The timing does not get it before this instant.
    Waiting { ready_ns: u64 },
    /// The timing has it.
    Queued,
    /// Its bytes pass.
    Transfer,
    /// Held until a release.
    Held,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Done,
    Error(DeviceError),
    /// The sync fails and loses writes that it should have made durable.
    Losing(DeviceError),
    Lost,
}

pub(super) struct Pending {
    pub(super) request: Request,
    pub(super) file: DiskFileId,
    pub(super) operation: Operation,
    /// Submitted by a program past the cache, not by the engine.
    pub(super) direct: bool,
    pub(super) phase: Phase,
    pub(super) outcome: Outcome,
    pub(super) submitted_ns: u64,
    /// The instant at which the timing started it.
    pub(super) started_ns: Option<u64>,
    /// The end of the file's log at submission, up to which a sync covers changes.
    pub(super) log_end: u64,
    /// How many bytes of each page the disk stores.
    pub(super) backed_bytes: u64,
    /// For a write: its backed bytes at submission, for comparison.
    pub(super) submitted: Vec<u8>,
    /// For a write: the backed bytes fetched so far, and the pieces that they fill.
    pub(super) fetched: Vec<u8>,
    pub(super) fetched_pieces: Vec<bool>,
    /// Its first position on the medium, if it has one.
    pub(super) position: Option<u64>,
}

/// A request that has taken effect and waits for its answer.
pub(super) struct Ended {
    pub(super) pending: Box<Pending>,
    pub(super) outcome: Outcome,
    /// For a read: the backed bytes for its memory.
    pub(super) read: Vec<u8>,
    /// For a write: the first byte at which its memory differs from the submitted bytes.
    pub(super) changed: Option<usize>,
}

pub(super) struct DiskState {
    /// Backed bytes of each page.
    pub(super) backed_bytes: u64,
    /// Pages that take up space, in all files.
    pub(super) blocks: u64,
    pub(super) files: BTreeMap<u64, DiskFile>,
    pub(super) files_made: u64,
    /// Writes in the volatile cache, oldest first: file, position in its log, bytes. Used only if the cache has a size.
    /// A sync leaves its writes in this queue; such writes are already durable when the cache drops them.
    pub(super) cached: VecDeque<(u64, u64, u64)>,
    pub(super) cached_bytes: u64,
    pub(super) pending: BTreeMap<u64, Box<Pending>>,
    /// Requests that end in a run of the timing. Empty otherwise; retained for its memory.
    pub(super) ended: Vec<(u64, Ended)>,
    /// The bytes that the requests in `pending` change.
    pub(super) changing: Changing,
    pub(super) requests: u64,
    pub(super) gates: Gates,
    pub(super) service: Service,
    pub(super) foreign: Foreign,
    pub(super) faults: Faults,
    pub(super) capacity_bytes: u64,
    /// Failed requests.
    pub(super) failures: u64,
    /// Writes and syncs.
    pub(super) write_failures: WriteFailures,
    pub(super) random: Random,
    /// Data requests in flight now, and the most that ever were.
    pub(super) data_in_flight: u32,
    pub(super) data_in_flight_max: u32,
    pub(super) stall: StallClock,
    pub(super) timeline: Timeline,
}

/// The unit in which request memory is fetched.
fn piece_bytes(backed_bytes: u64) -> u64 {
    if backed_bytes == WHOLE_PAGES { PIECE_BYTES } else { IMAGE_BLOCK_BYTES }
}

pub(super) fn is_data(operation: Operation) -> bool {
    matches!(operation, Operation::Read { .. } | Operation::Write { .. })
}

impl Pending {
    pub(super) fn fetch_some(&mut self, random: &mut Random) {
        match self.operation {
            Operation::Write { .. } => {
                for piece in 0..self.fetched_pieces.len() {
                    if random.chance(500) {
                        self.fetch(piece);
                    }
                }
            }
            Operation::Read { offset, len } => {
                let rubbish = vec![RUBBISH; backed_len(offset, len.into(), self.backed_bytes)];
                self.request.copy_backed_in(0..len as usize, &rubbish);
            }
            _ => {}
        }
    }

    fn fetch(&mut self, piece: usize) {
        let Operation::Write { offset, len } = self.operation else { return };
        if !std::mem::replace(&mut self.fetched_pieces[piece], true) {
            let unit = piece_bytes(self.backed_bytes);
            let first = offset / unit + piece as u64;
            let (start, end) = ((first * unit).max(offset), ((first + 1) * unit).min(offset + u64::from(len)));
            let at = backed_before(start, self.backed_bytes) - backed_before(offset, self.backed_bytes);
            let range = (start - offset) as usize..(end - offset) as usize;
            self.request.copy_backed_out(range, &mut self.fetched[at as usize..]);
        }
    }

    /// The first byte, counted from the request's start, at which fetched and submitted bytes differ.
    fn changed(&self) -> Option<usize> {
        let Operation::Write { offset, .. } = self.operation else { return None };
        if self.fetched == self.submitted {
            return None;
        }
        let at = (0..self.fetched.len()).find(|at| self.fetched[*at] != self.submitted[*at])?;
        let backed = backed_before(offset, self.backed_bytes) + at as u64;
        Some((backed / self.backed_bytes * IMAGE_BLOCK_BYTES + backed % self.backed_bytes - offset) as usize)
    }

    fn fetch_rest(&mut self, random: &mut Random) {
        let mut pieces: Vec<usize> = (0..self.fetched_pieces.len()).collect();
        random.shuffle(&mut pieces);
        pieces.into_iter().for_each(|piece| self.fetch(piece));
    }
}

/// Failed writes and syncs of a disk.
#[derive(Clone, Copy, Default, Debug)]
pub struct WriteFailures {
    /// Since the beginning.
    pub all: u64,
    /// Since the last success.
    pub in_row: u64,
    /// The time of the last failure.
    pub last_ns: Option<u64>,
}

impl WriteFailures {
    pub(super) fn note(&mut self, done: bool, now_ns: u64) {
        if done {
            self.in_row = 0;
        } else {
            *self = Self { all: self.all + 1, in_row: self.in_row + 1, last_ns: Some(now_ns) };
        }
    }
}

impl DiskState {
    /// Applies the effect of a request that ends, and frees its slot for data requests.
    pub(super) fn end(&mut self, mut pending: Box<Pending>, options: &DiskOptions) -> Ended {
        if is_data(pending.operation) && !pending.direct {
            self.data_in_flight = self.data_in_flight.saturating_sub(1);
        }
        pending.fetch_rest(&mut self.random);
        let changed = pending.changed();
        let outcome = self.apply(&mut pending, options, true);
        let mut read = Vec::new();
        if let (Operation::Read { offset, len }, Outcome::Done) = (pending.operation, outcome)
            && let Some(file) = self.files.get(&pending.file.0)
        {
            read = file.live.read_backed(offset, len.into());
        }
        if outcome != Outcome::Done {
            self.failures += 1;
            if let Some(file) = self.files.get_mut(&pending.file.0) {
                file.failures += 1;
                file.sync_failures += u64::from(pending.operation == Operation::Sync);
            }
        }
        Ended { pending, outcome, read, changed }
    }

    /// Gives a file the space of a range, if there is as much.
    pub(super) fn reserve(&mut self, file: DiskFileId, offset: u64, len: u64, volatile: bool) -> bool {
        let free = self.blocks_free();
        let Some(file) = self.files.get_mut(&file.0) else { return false };
        let fits = file.live.blocks_missing(offset, len) <= free;
        if fits {
            file.change(Change::Reserve { offset, len }, volatile);
            self.count_blocks();
        }
        fits
    }

    /// Copies a range, if there is as much space.
    pub(super) fn copy(
        &mut self,
        source: DiskFileId,
        from: u64,
        target: DiskFileId,
        to: Range<u64>,
        volatile: bool,
    ) -> bool {
        let (free, len) = (self.blocks_free(), to.end - to.start);
        let Some(backed) = self.files.get(&source.0).map(|source| source.live.read_backed(from, len)) else {
            return false;
        };
        let Some(file) = self.files.get_mut(&target.0) else { return false };
        let fits = file.live.blocks_missing(to.start, len) <= free;
        if fits {
            file.change(Change::Write { offset: to.start, len, backed }, volatile);
            self.count_blocks();
        }
        fits
    }

    pub(super) fn blocks_free(&self) -> u64 {
        (self.capacity_bytes / IMAGE_BLOCK_BYTES).saturating_sub(self.blocks)
    }

    /// Recounts the space in use, after changes outside of requests.
    pub(super) fn count_blocks(&mut self) {
        self.blocks = self.files.values().map(|file| file.live.blocks()).sum();
    }

    /// Carries a request out, or a part of it if it fails. `whole` is false at a power loss.
    pub(super) fn apply(&mut self, pending: &mut Pending, options: &DiskOptions, whole: bool) -> Outcome {
        let blocks = |state: &Self| state.files.get(&pending.file.0).map_or(0, |file| file.live.blocks());
        let before = blocks(self);
        let outcome = self.carry_out(pending, options, whole);
        let blocks = |state: &Self| state.files.get(&pending.file.0).map_or(0, |file| file.live.blocks());
        self.blocks = self.blocks + blocks(self) - before;
        outcome
    }

    /// Puts a write into the volatile cache. The oldest writes that no longer fit become durable.
    fn cache(&mut self, file: u64, log_end: u64, len: u64, options: &DiskOptions) {
        if !options.volatile_cache || options.volatile_bytes_max == u64::MAX {
            return;
        }
        self.cached.push_back((file, log_end, len));
        self.cached_bytes += len;
        while self.cached_bytes > options.volatile_bytes_max {
            let Some((file, log_end, len)) = self.cached.pop_front() else { return };
            self.cached_bytes -= len;
            if let Some(file) = self.files.get_mut(&file) {
                file.make_durable(log_end);
            }
        }
    }

    fn carry_out(&mut self, pending: &mut Pending, options: &DiskOptions, whole: bool) -> Outcome {
        let free = self.blocks_free();
        let Some(file) = self.files.get_mut(&pending.file.0) else {
            return Outcome::Error(DeviceError::Stale);
        };
        let done = whole && pending.outcome == Outcome::Done;
        let volatile = options.volatile_cache;
        match pending.operation {
            Operation::Write { offset, len } => {
                let len = u64::from(len);
                let backed = std::mem::take(if whole { &mut pending.fetched } else { &mut pending.submitted });
                if file.live.blocks_missing(offset, len) > free {
                    return Outcome::Error(DeviceError::NoSpace);
                }
                if done {
                    file.change(Change::Write { offset, len, backed }, volatile);
                    let end = file.log_end();
                    self.cache(pending.file.0, end, len, options);
                } else {
                    for (offset, len, backed) in
                        torn(offset, len, &backed, pending.backed_bytes, options.block_bytes.into())
                    {
                        if self.random.chance(500) {
                            file.change(Change::Write { offset, len, backed: backed.to_vec() }, volatile);
                        }
                    }
                }
            }
            Operation::Sync if done => file.make_durable(pending.log_end),
            Operation::Sync if whole && matches!(pending.outcome, Outcome::Losing(_)) => {
                // This rewrites the log, so the end noted by a later sync in flight falls elsewhere in it.
                file.lose_writes(options.block_bytes.into(), &mut self.random);
            }
            Operation::SetSize { size } if done => file.change(Change::SetSize { size }, volatile),
            Operation::Punch { offset, len } if done => file.change(Change::Punch { offset, len }, volatile),
            Operation::Reserve { offset, len } if done => {
                if file.live.blocks_missing(offset, len) > free {
                    return Outcome::Error(DeviceError::NoSpace);
                }
                file.change(Change::Reserve { offset, len }, volatile);
            }
            _ => {}
        }
        pending.outcome
    }
}

impl DiskState {
    /// Draws a request's fate and notes its bytes for comparison.
    pub(super) fn accept(&mut self, request: Request, file: DiskFileId, now_ns: u64, direct: bool) -> Box<Pending> {
        let operation = request.operation();
        let mut phase = Phase::Waiting { ready_ns: now_ns };
        let mut outcome = Outcome::Done;
        if !self.files.contains_key(&file.0) {
            outcome = Outcome::Error(DeviceError::Stale);
        }
        match self.faults.strike(now_ns, file, operation, self.service.spans(), &mut self.random) {
            None => {}
            Some(FaultWhat::Error(error)) => outcome = Outcome::Error(error),
            Some(FaultWhat::ErrorLosing(error)) => outcome = Outcome::Losing(error),
            Some(FaultWhat::Lost) => outcome = Outcome::Lost,
            Some(FaultWhat::Delay { ns }) => {
                phase = Phase::Waiting { ready_ns: now_ns.saturating_add(ns) };
            }
            Some(FaultWhat::Hang) => phase = Phase::Held,
        }
        let end = match operation {
            Operation::Write { offset, len } => offset.saturating_add(len.into()),
            Operation::SetSize { size } => size,
            _ => 0,
        };
        if end > FILE_BYTES_MAX {
            outcome = Outcome::Error(DeviceError::TooLarge);
        }
        let (mut submitted, mut pieces) = (Vec::new(), 0);
        if let Operation::Write { offset, len } = operation {
            submitted = vec![0; backed_len(offset, len.into(), self.backed_bytes)];
            request.copy_backed_out(0..len as usize, &mut submitted);
            let unit = piece_bytes(self.backed_bytes);
            pieces = ((offset + u64::from(len)).div_ceil(unit) - offset / unit) as usize;
        }
        Box::new(Pending {
            operation,
            direct,
            file,
            phase,
            outcome,
            submitted_ns: now_ns,
            started_ns: None,
            backed_bytes: self.backed_bytes,
            log_end: self.files.get(&file.0).map_or(0, DiskFile::log_end),
            fetched: vec![0; submitted.len()],
            fetched_pieces: vec![false; pieces],
            submitted,
            request,
            position: self.service.spans().first().map(|span| span.position),
        })
    }
}

impl Disk {
    /// From now on files store 16 bytes of each page, for caches with stamped frames
    /// ([`afflux_frames::Frames::new_stamped`]). Torn writes and power losses then spare or take whole pages.
    ///
    /// # Panics
    /// When the disk has files already.
    pub fn keep_stamps(&self) {
        let mut state = self.lock();
        assert!(state.files.is_empty(), "before the first file is made");
        state.backed_bytes = STAMPS;
    }

    /// The number of changes to the file's bytes or size.
    pub fn change_count(&self, file: DiskFileId) -> u64 {
        self.lock().files.get(&file.0).map_or(0, |file| file.changes)
    }

    /// The backed bytes of a range of the file, as a read would find them: all bytes, or the first 16 of each page
    /// after [`Disk::keep_stamps`].
    pub fn backed_bytes(&self, file: DiskFileId, offset: u64, len: u64) -> Vec<u8> {
        self.lock().files.get(&file.0).map_or_else(Vec::new, |file| file.live.read_backed(offset, len))
    }
}
