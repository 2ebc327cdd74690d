//! Why a writer waits.
//!
//! Owns: the causes, and their words. Does not own: the waits (`throttle`), their ledger (`waits`).
//! Invariants: plain values.

/// Why a writer waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum PauseCause {
    /// The device's equal part of the dirty limit is used up.
    DevicePart,
    /// All devices together have more than the limit allows.
    GlobalLimit,
    /// The device is held to its own share.
    StrictLimit,
    /// The writer dirties faster than its part of the device's bandwidth.
    Rate,
    /// Dirty pages would leave too few frames to readers, by the memory guard.
    MemoryGuard,
    /// The device would need longer than it may to write its dirty data.
    DeviceTime,
    /// The device has completed nothing for too long.
    Hung,
}

impl PauseCause {
    /// All causes, by number.
    pub const ALL: [Self; 7] = [
        Self::DevicePart,
        Self::GlobalLimit,
        Self::StrictLimit,
        Self::Rate,
        Self::MemoryGuard,
        Self::DeviceTime,
        Self::Hung,
    ];

    /// The cause in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::DevicePart => "device's part of the dirty limit",
            Self::GlobalLimit => "dirty limit",
            Self::StrictLimit => "strict limit of the device",
            Self::Rate => "dirty rate",
            Self::MemoryGuard => "memory guard",
            Self::DeviceTime => "device time",
            Self::Hung => "device that hangs",
        }
    }
}
