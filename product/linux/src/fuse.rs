//! Mounts of this host's kernel by FUSE.
//!
//! Owns: mounting and unmounting, the device, the threads that move its messages.
//! Does not own: the protocol (front ends, behind [`afflux_frontend::MessageMachine`]), files.
//! Invariants: a message is answered on its own descriptor, where the kernel looks for it. A thread that reads messages
//! waits for nothing else.

mod buffers;
mod device;
mod mounting;
mod session;

pub use mounting::{FuseMount, MountError, MountPoint, OwnMounts, unmount};
pub use session::FuseSession;

/// The process of a thread; none if it is gone, or in no process namespace of ours.
pub fn process_of(thread: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}
