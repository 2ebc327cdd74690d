//! A device's own throughput: requests of its preferred size, as many as it takes, no cache above it.
//!
//! Owns: the streams and the random writes that laws are measured against.
//! Does not own: the devices.
//! Invariants: the result depends on the device, its script, the order and the time alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_engine::{Device as _, Nanos, Operation, Platform, Request};
use afflux_frames::Frames;
use afflux_simulator::{Disk, DiskFileId, SimPlatform};

use super::devices::Device;
use super::rig::{disk, world};
use crate::experiment::LabError;
use crate::machine::PAGE_BYTES;

/// Most requests in flight, if the device takes more.
const DEPTH_MAX: u32 = 128;
/// Pages of random writes, 2 GiB in all; each is written once before any is written twice.
pub(super) const RANDOM_PAGES: u64 = 1 << 19;

/// The order of the writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum RawOrder {
    Stream,
    Random,
}

/// A chain of requests: each follows the one before.
struct Raw {
    disk: Arc<Disk>,
    platform: Arc<SimPlatform>,
    frames: Arc<Frames>,
    file: DiskFileId,
    order: RawOrder,
    bytes: u32,
    zeros: Vec<u8>,
    next: AtomicU64,
    until_ns: u64,
}

/// A number below [`RANDOM_PAGES`] for each number below it; no two are equal.
fn scattered(number: u64) -> u64 {
    let low = |bits: u64| bits & (RANDOM_PAGES - 1);
    let mixed = low(number.wrapping_mul(0x9e37_79b1));
    let mixed = low((mixed ^ (mixed >> 10)).wrapping_mul(0x85eb_ca6b));
    mixed ^ (mixed >> 9)
}

impl Raw {
    fn submit(self: &Arc<Self>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let offset = match self.order {
            RawOrder::Stream => number * u64::from(self.bytes),
            RawOrder::Random => scattered(number) * PAGE_BYTES,
        };
        let own = Arc::clone(self);
        let operation = Operation::Write { offset, len: self.bytes };
        let request =
            Request::probe(&self.frames, self.disk.backing(self.file), operation, &self.zeros, move |result, _| {
                if result.is_ok() && own.platform.now().0 < own.until_ns {
                    own.submit();
                }
            });
        self.disk.submit(request);
    }
}

/// Bytes a second that the device writes in `seconds`.
pub(super) fn bytes_per_s(device: &Device, order: RawOrder, seconds: u64) -> Result<f64, LabError> {
    let world = world(1);
    let disk = disk(&world, 0, device)?;
    disk.keep_stamps();
    let limits = disk.limits().clone();
    let bytes = match order {
        RawOrder::Stream => limits.request_bytes_preferred.unwrap_or(limits.request_bytes_max),
        RawOrder::Random => PAGE_BYTES as u32,
    };
    let depth = limits.depth.min(DEPTH_MAX);
    let memory_bytes = 2 * u64::from(depth) * u64::from(bytes) + (16 << 20);
    let file = disk.create_file();
    if order == RawOrder::Random {
        disk.make_sparse(file, RANDOM_PAGES * PAGE_BYTES);
        disk.lay_out(file, RANDOM_PAGES * PAGE_BYTES);
    }
    let raw = Arc::new(Raw {
        platform: Arc::clone(world.platform()),
        frames: Arc::new(Frames::new_stamped(memory_bytes).map_err(LabError::failed)?),
        zeros: vec![0; bytes as usize],
        until_ns: seconds * Nanos::SECOND,
        next: AtomicU64::new(0),
        disk,
        file,
        order,
        bytes,
    });
    world
        .run(async {
            for _ in 0..depth {
                raw.submit();
            }
            raw.platform.sleep_until(Nanos(raw.until_ns)).await;
        })
        .map_err(LabError::failed)?;
    Ok(raw.disk.figures().bytes.1 as f64 / seconds as f64)
}

#[cfg(test)]
mod tests;
