//! Slow hardware made from what a Linux machine has: a disk with a rate, a network with a rate. By the
//! kernel where that may be asked, and inside this process where it may not.
//!
//! Owns: setting it up, taking it down again.
//! Does not own: what runs on it.
//! Invariants: what the kernel does needs root, asks before it changes anything, and says what is missing;
//! what was set up is taken down when the value is dropped, in the reverse order, as far as the host lets
//! it.

mod command;
mod dirty_limits;
mod error;
mod kernel_debug;
mod limited_device;
mod limited_relay;
mod memory_disk;
mod slow_disk;
mod slow_network;

pub use dirty_limits::DirtyLimits;
pub use error::HardwareError;
pub use kernel_debug::KernelDebug;
pub use limited_device::LimitedDevice;
pub use limited_relay::LimitedRelay;
pub use memory_disk::MemoryDisk;
pub use slow_disk::{DiskRates, SlowDisk, free_bytes};
pub use slow_network::SlowNetwork;

#[cfg(test)]
mod tests;
