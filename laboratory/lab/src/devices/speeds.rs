//! The speed of a device by itself, measured on its model: in sequence and at random.
//!
//! Owns: the requests of a trial, and its length.
//! Does not own: models, disks, virtual time (the simulator).
//! Invariants: only the model decides the figures, so that they are the same everywhere. A trial ends after a number of
//! requests or after a second of virtual time; the time counts only after the first [`REQUESTS_MIN`] requests.

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use afflux_engine::{Device as _, Nanos, Operation, Platform as _, Request};
use afflux_frames::Frames;
use afflux_simulator::catalogue::{self, Model};
use afflux_simulator::{Disk, DiskFileId, Random, World, WorldOptions};

use afflux_report::failure::{Failure, Outcome};

/// Requests of a trial, at least and at most.
const REQUESTS_MIN: u64 = 64;
const REQUESTS_MAX: u64 = 2_000;

/// At random: bytes of a request, requests in flight, the part of the disk that they go to.
const RANDOM_BYTES: u32 = 4096;
const RANDOM_DEPTH: u32 = 32;
const RANDOM_SPAN_BYTES: u64 = 8 << 30;

/// Most memory for the requests in flight.
const MEMORY_BYTES: u64 = 64 << 20;

/// Figures of one device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Speeds {
    /// In sequence, bytes a second: read, written.
    pub(super) bytes: (u64, u64),
    /// Requests of 4 KiB at random a second: reads, writes until they are durable.
    pub(super) random: (u64, u64),
}

/// Direction and order of requests.
#[derive(Clone, Copy)]
struct Trial {
    writes: bool,
    random: bool,
}

impl Speeds {
    /// Runs all trials of a device.
    pub(super) fn of(model: &Model) -> Outcome<Self> {
        let tried = |writes, random| BareDisk::new(model)?.run(Trial { writes, random });
        let (read, written) = (tried(false, false)?, tried(true, false)?);
        let (reads, writes) = (tried(false, true)?, tried(true, true)?);
        Ok(Self { bytes: (read.bytes_per_s(), written.bytes_per_s()), random: (reads.per_s(), writes.per_s()) })
    }
}

/// Totals of a trial.
struct Tried {
    requests: u64,
    bytes: u64,
    ns: u64,
}

impl Tried {
    fn per_s(&self) -> u64 {
        (u128::from(self.requests) * u128::from(Nanos::SECOND) / u128::from(self.ns.max(1))) as u64
    }

    fn bytes_per_s(&self) -> u64 {
        (u128::from(self.bytes) * u128::from(Nanos::SECOND) / u128::from(self.ns.max(1))) as u64
    }
}

/// Requests in flight, and the task that waits until there are fewer.
type Open = Arc<Mutex<(u32, Option<Waker>)>>;

/// A disk without anything above it.
struct BareDisk {
    world: World,
    disk: Arc<Disk>,
    file: DiskFileId,
    frames: Arc<Frames>,
    open: Open,
}

impl BareDisk {
    fn new(model: &Model) -> Outcome<Self> {
        let world = World::new(WorldOptions { step_ns: 0, ..WorldOptions::seed(1) });
        let disk = catalogue::make(&world, 0, model);
        disk.keep_stamps();
        let file = disk.create_file();
        let span = RANDOM_SPAN_BYTES.min(model.capacity_bytes() / 2);
        disk.make_sparse(file, span);
        disk.lay_out(file, span);
        let frames = Frames::new_stamped(2 * MEMORY_BYTES).map_err(|error| Failure::failed(error.to_string()))?;
        Ok(Self { world, disk, file, frames: Arc::new(frames), open: Open::default() })
    }

    fn run(&self, trial: Trial) -> Outcome<Tried> {
        let limits = self.disk.limits();
        let (len, depth) = match trial.random {
            true => (RANDOM_BYTES, limits.depth.min(RANDOM_DEPTH)),
            false => (limits.request_bytes_preferred.unwrap_or(limits.request_bytes_max), limits.depth),
        };
        let depth = u64::from(depth).min(MEMORY_BYTES / u64::from(len)).max(1) as u32;
        let places = RANDOM_SPAN_BYTES.min(self.disk.size(self.file)) / u64::from(len);
        let (zeros, mut random, mut sent) = (vec![0; len as usize], Random::new(1), 0);
        while sent < REQUESTS_MIN.max(u64::from(depth)) || (sent < REQUESTS_MAX && self.now_ns() < Nanos::SECOND) {
            self.wait(depth)?;
            let place = if trial.random { random.below(places) } else { sent % places };
            let offset = place * u64::from(len);
            match trial.writes {
                true => self.send(Operation::Write { offset, len }, &zeros),
                false => self.send(Operation::Read { offset, len }, &[]),
            }
            sent += 1;
        }
        self.wait(1)?;
        if trial.writes {
            self.send(Operation::Sync, &[]);
            self.wait(1)?;
        }
        Ok(Tried { requests: sent, bytes: sent * u64::from(len), ns: self.now_ns() })
    }

    fn now_ns(&self) -> u64 {
        self.world.platform().now().0
    }

    fn send(&self, operation: Operation, bytes: &[u8]) {
        let open = Arc::clone(&self.open);
        open.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
        let done = move |_, _| {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            open.0 -= 1;
            let waker = open.1.take();
            drop(open);
            waker.into_iter().for_each(Waker::wake);
        };
        self.disk.submit(Request::probe(&self.frames, self.disk.backing(self.file), operation, bytes, done));
    }

    /// Waits until fewer than `below` requests are in flight.
    fn wait(&self, below: u32) -> Outcome {
        let few = poll_fn(|context| {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.1 = Some(context.waker().clone());
            if open.0 < below { Poll::Ready(()) } else { Poll::Pending }
        });
        self.world.run(few).map_err(|error| Failure::failed(error.to_string()))
    }
}
