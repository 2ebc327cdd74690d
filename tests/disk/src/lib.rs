//! A disk for tests: a loop device over the one file of a small FUSE server.
//!
//! It needs root, FUSE and loop devices, and no module of the kernel beyond these. Above it run real file systems. It
//! has a rate, a latency, a number of requests that it works on at once, a volatile cache, bad sectors, and a power
//! switch.
//!
//! Owns: the bytes and their survival of a power cut (`medium`), the time of requests (`timing`), the FUSE server
//! (`server`), its mounted file (`file`), the loop device and the ext4 on it (`device`).
//! Does not own: the programs that use the disk.
//! Invariants: bytes that a flush covered survive every power cut. Bytes written after it survive or are lost sector by
//! sector, by the seed of the cut. While the power is off every request fails.
#![forbid(unsafe_code)]

mod device;
mod file;
mod medium;
mod server;
mod timing;

pub use device::{Disk, Ext4};
pub use file::DiskFile;
pub use timing::Rates;

/// Bytes of a sector; a power cut keeps or loses whole sectors.
pub const SECTOR_BYTES: u64 = 512;

/// The properties of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskOptions {
    /// Its size, a multiple of 4,096.
    pub bytes: u64,
    /// The time that requests take.
    pub rates: Rates,
    /// Bytes of its volatile cache. The disk writes out a full cache. 0: each write is durable when it is answered.
    pub cache_bytes: u64,
    /// Whether a flush reaches the medium. A disk that ignores flushes answers them and keeps its cache.
    pub flushes: bool,
}

impl DiskOptions {
    /// A disk without faults that is as fast as the host, with a cache of 16 MiB.
    pub fn new(bytes: u64) -> Self {
        Self { bytes, rates: Rates::default(), cache_bytes: 16 << 20, flushes: true }
    }
}
