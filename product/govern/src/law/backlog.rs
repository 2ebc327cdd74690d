//! The bytes that the kernel has under writeback to a device, and whether they ever ran out between two looks.
//!
//! A limit above the disk, such as a cgroup's `io.max` or the throttle of a cloud's volume, delays writes before the
//! block layer counts them: the disk looks idle and fast. But the pages of these writes are under writeback. If at one
//! look more bytes were under writeback than completed until the next, some bytes were under writeback all the time.
//! Then the limit above is the bottleneck, and the completed bytes by the clock are its speed.
//!
//! Owns: that proof.
//! Does not own: the source of the figures (`host`), the consequences for the speed (`speed`).
//! Invariants: a flow that may have run dry proves nothing. Each cgroup is a flow of its own, since its limit is, too.

/// Flows that ran dry may have at most this part of the written bytes.
const DRY_PART: u64 = 8;

/// The kernel's writeback to a device for one cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The cgroup's inode.
    pub cgroup: u64,
    /// Bytes under writeback now.
    pub writeback_bytes: u64,
    /// Bytes written back since the device appeared.
    pub written_bytes: u64,
}

/// All flows to a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog(Vec<Flow>);

/// The conclusion from two backlogs about the time between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// The flows with nearly all written bytes never ran dry: each had more under writeback at the start than was
    /// written.
    NeverDry,
    /// It began with fewer bytes, and now has more under writeback than were written meanwhile: the cause is not known.
    FallsBehind,
    /// It may have run dry.
    MayBeDry,
}

impl Backlog {
    /// The backlog of these flows.
    pub fn new(flows: Vec<Flow>) -> Self {
        Self(flows)
    }

    /// Bytes under writeback now.
    pub fn writeback_bytes(&self) -> u64 {
        self.0.iter().map(|flow| flow.writeback_bytes).sum()
    }

    pub(super) fn since(&self, before: &Self) -> Since {
        let (mut written, mut proven) = (0_u64, 0_u64);
        for now in &self.0 {
            let then = before.0.iter().find(|flow| flow.cgroup == now.cgroup).copied().unwrap_or_default();
            let bytes = now.written_bytes.saturating_sub(then.written_bytes);
            written += bytes;
            proven += if bytes <= then.writeback_bytes { bytes } else { 0 };
        }
        match self.writeback_bytes() {
            _ if written > 0 && written - proven <= written / DRY_PART => Since::NeverDry,
            left if left > 0 && left >= written => Since::FallsBehind,
            _ => Since::MayBeDry,
        }
    }
}

#[cfg(test)]
mod tests;
