//! Slow hardware made from the parts of a Linux machine: a disk with a rate, a network with a rate.
//!
//! Owns: setting it up, taking it down again.
//! Does not own: the programs that use it.
//! Invariants: setups in the kernel need root, check before they change anything, and report what is missing. A drop
//! takes down every part in the reverse order, as far as the host allows it.

mod command;
mod kernel_debug;
mod loop_device;
mod memory_disk;
mod slow_disk;
mod slow_network;

pub use command::HardwareError;
pub use kernel_debug::KernelDebug;
pub use memory_disk::MemoryDisk;
pub use slow_disk::{DiskRates, SlowDisk, free_bytes};
pub use slow_network::SlowNetwork;

#[cfg(test)]
mod tests;
