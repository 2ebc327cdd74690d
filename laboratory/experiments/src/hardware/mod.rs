//! Slow hardware made from the parts of a Linux machine: a disk with a rate, a network with a rate. The kernel limits
//! the rate if it may be asked to, and this process otherwise.
//!
//! Owns: setting it up, taking it down again.
//! Does not own: the programs that use it.
//! Invariants: setups in the kernel need root, check before they change anything, and report what is missing. A drop
//! takes down every part in the reverse order, as far as the host allows it.

mod command;
mod dirty_limits;
mod error;
mod kernel_debug;
mod limited_device;
mod limited_relay;
mod loop_device;
mod memory_disk;
mod rated_file;
mod slow_disk;
mod slow_network;

pub use dirty_limits::DirtyLimits;
pub use error::HardwareError;
pub use kernel_debug::KernelDebug;
pub use limited_device::LimitedDevice;
pub use limited_relay::LimitedRelay;
pub use memory_disk::MemoryDisk;
pub use rated_file::DiskRates;
pub use slow_disk::{SlowDisk, free_bytes};
pub use slow_network::SlowNetwork;

#[cfg(test)]
mod tests;
