//! What the kernel has under writeback of a device, and whether that ever ran dry between two looks.
//!
//! A limit above the disk, as a cgroup's `io.max` or the throttle of a cloud's volume, holds writes back before the block
//! layer counts them: the disk looks idle and fast. But the pages of these writes are under writeback. If at a look more
//! bytes were under writeback than completed until the next, some of them were there all the time. Then whatever holds
//! them back is the bottleneck, and the completed bytes by the clock are its speed.
//!
//! Owns: that proof. Does not own: where the figures stand (`host`), what follows for the speed (`speed`).
//! Invariants: a flow that may have run dry proves nothing. Each cgroup is a flow of its own, since its limit is, too.

/// Of what was written, the part that flows which ran dry may have written.
const DRY_PART: u64 = 8;

/// What the kernel writes back to a device for one cgroup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Which cgroup, by its inode.
    pub cgroup: u64,
    /// Bytes under writeback now.
    pub writeback_bytes: u64,
    /// Bytes that were written back since the device was there.
    pub written_bytes: u64,
}

/// All flows to a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backlog(Vec<Flow>);

/// What a backlog says of the time since another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// Bytes were under writeback all the time: more than were written.
    NeverDry,
    /// It began with fewer, and is now behind by more than was written meanwhile: what is in its way is not known.
    FallsBehind,
    /// It may have run dry.
    MayBeDry,
}

impl Backlog {
    /// Of these flows.
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
