//! Requests in flight, and what their ends do to the files.
//!
//! Owns: the disk's state under its lock; the fate that a request was dealt, the effect it has.
//! Does not own: when things happen and who is told (`mod`); which requests fail (`fault`).
//! Invariants: nothing here waits, answers a request, or lets the lock go.

use std::collections::BTreeMap;

use engine::{DeviceError, FILE_BYTES_MAX, Operation, Request};

use super::fault::{FaultWhat, Faults};
use super::file::{Change, DiskFile};
use super::image::IMAGE_BLOCK_BYTES;
use super::service::Service;
use super::{DiskFileId, DiskOptions};
use crate::random::Random;

/// What a read's memory holds before its bytes arrive.
const RUBBISH: u8 = 0xdb;
/// Pieces in which request memory is fetched.
const PIECE_BYTES: usize = 512;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// It is not handed to the timing before this instant.
    Waiting { ready_ns: u64 },
    /// The timing has it.
    Queued,
    /// Its bytes pass.
    Transfer,
    /// Not before a release.
    Held,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Done,
    Error(DeviceError),
    /// A sync takes with it what it should have made durable.
    Losing(DeviceError),
    Lost,
}

pub(super) struct Pending {
    pub(super) request: Request,
    pub(super) file: DiskFileId,
    pub(super) operation: Operation,
    pub(super) phase: Phase,
    pub(super) outcome: Outcome,
    /// The end of the file's log when the request was submitted: what a sync covers.
    pub(super) log_end: u64,
    /// Of a write: its bytes when it was submitted, to compare with.
    pub(super) submitted: Vec<u8>,
    /// Of a write: the bytes fetched so far, and which pieces those are.
    pub(super) fetched: Vec<u8>,
    pub(super) fetched_pieces: Vec<bool>,
}

/// A request whose effect has happened and which is to be answered.
pub(super) struct Ended {
    pub(super) pending: Pending,
    pub(super) outcome: Outcome,
    /// Of a read: what to put into its memory.
    pub(super) read: Vec<u8>,
    /// Of a write: where its memory is not what was submitted.
    pub(super) changed: Option<usize>,
}

pub(super) struct State {
    pub(super) files: BTreeMap<u64, DiskFile>,
    pub(super) files_made: u64,
    pub(super) pending: BTreeMap<u64, Pending>,
    pub(super) requests: u64,
    pub(super) service: Service,
    pub(super) faults: Faults,
    pub(super) capacity_bytes: u64,
    /// Requests that did not succeed.
    pub(super) failures: u64,
    pub(super) random: Random,
    /// Data requests in flight now, and the most there ever were.
    pub(super) data_in_flight: u32,
    pub(super) data_in_flight_max: u32,
}

pub(super) fn is_data(operation: Operation) -> bool {
    matches!(operation, Operation::Read { .. } | Operation::Write { .. })
}

/// Whether the order of two requests of one file, which is open while both are in flight, matters to
/// what the file will hold.
pub(super) fn conflict(first: Operation, second: Operation, block: u64) -> bool {
    let touched = |operation| match operation {
        Operation::Write { offset, len } => Some((offset, (offset + u64::from(len)).next_multiple_of(block))),
        Operation::SetSize { size } => Some((size, u64::MAX)),
        Operation::Punch { offset, len } => Some((offset, offset + len)),
        _ => None,
    };
    let (Some(first), Some(second)) = (touched(first), touched(second)) else { return false };
    first.0 < second.1 && second.0 < first.1
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
            Operation::Read { len, .. } => self.request.copy_in(0, &vec![RUBBISH; len as usize]),
            _ => {}
        }
    }

    fn fetch(&mut self, piece: usize) {
        if !std::mem::replace(&mut self.fetched_pieces[piece], true) {
            let start = piece * PIECE_BYTES;
            let end = (start + PIECE_BYTES).min(self.fetched.len());
            self.request.copy_out(start..end, &mut self.fetched[start..end]);
        }
    }

    fn fetch_rest(&mut self, random: &mut Random) {
        let mut pieces: Vec<usize> = (0..self.fetched_pieces.len()).collect();
        random.shuffle(&mut pieces);
        pieces.into_iter().for_each(|piece| self.fetch(piece));
    }
}

impl State {
    /// Data requests may be submitted again; the effect happens.
    pub(super) fn end(&mut self, mut pending: Pending, options: &DiskOptions) -> Ended {
        if is_data(pending.operation) {
            self.data_in_flight = self.data_in_flight.saturating_sub(1);
        }
        pending.fetch_rest(&mut self.random);
        let changed = (0..pending.fetched.len()).find(|at| pending.fetched[*at] != pending.submitted[*at]);
        let outcome = self.apply(&pending, options, true);
        let mut read = Vec::new();
        if let (Operation::Read { offset, len }, Outcome::Done) = (pending.operation, outcome) {
            read = vec![0; len as usize];
            if let Some(file) = self.files.get(&pending.file.0) {
                file.live.read(offset, &mut read);
            }
        }
        if outcome != Outcome::Done {
            self.failures += 1;
            if let Some(file) = self.files.get_mut(&pending.file.0) {
                file.failures += 1;
            }
        }
        Ended { pending, outcome, read, changed }
    }

    pub(super) fn blocks_free(&self) -> u64 {
        let used: u64 = self.files.values().map(|file| file.live.blocks()).sum();
        (self.capacity_bytes / IMAGE_BLOCK_BYTES).saturating_sub(used)
    }

    /// Carries a request out, or as much of it as a failing one does. `whole` is false at a power loss.
    pub(super) fn apply(&mut self, pending: &Pending, options: &DiskOptions, whole: bool) -> Outcome {
        let free = self.blocks_free();
        let Some(file) = self.files.get_mut(&pending.file.0) else {
            return Outcome::Error(DeviceError::Stale);
        };
        let done = whole && pending.outcome == Outcome::Done;
        let volatile = options.volatile_cache;
        match pending.operation {
            Operation::Write { offset, .. } => {
                let bytes = if whole { &pending.fetched } else { &pending.submitted };
                if file.live.blocks_missing(offset, bytes.len() as u64) > free {
                    return Outcome::Error(DeviceError::NoSpace);
                }
                if done {
                    file.change(Change::Write { offset, bytes: bytes.clone() }, volatile);
                } else {
                    for (at, sector) in bytes.chunks(options.block_bytes as usize).enumerate() {
                        if self.random.chance(500) {
                            let offset = offset + at as u64 * u64::from(options.block_bytes);
                            file.change(Change::Write { offset, bytes: sector.to_vec() }, volatile);
                        }
                    }
                }
            }
            Operation::Sync if done => file.make_durable(pending.log_end),
            Operation::Sync if whole && matches!(pending.outcome, Outcome::Losing(_)) => {
                // The log is numbered anew: a later sync in flight covers what is left of it.
                file.lose_writes(options.block_bytes as usize, &mut self.random);
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

impl State {
    /// Draws a request's fate and notes what it is to be compared with.
    pub(super) fn accept(&mut self, request: Request, file: DiskFileId, now_ns: u64) -> Pending {
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
        let mut submitted = Vec::new();
        if let Operation::Write { len, .. } = operation {
            submitted = vec![0; len as usize];
            request.copy_out(0..len as usize, &mut submitted);
        }
        let pieces = submitted.len().div_ceil(PIECE_BYTES);
        Pending {
            operation,
            file,
            phase,
            outcome,
            log_end: self.files.get(&file.0).map_or(0, DiskFile::log_end),
            fetched: vec![0; submitted.len()],
            fetched_pieces: vec![false; pieces],
            submitted,
            request,
        }
    }
}
