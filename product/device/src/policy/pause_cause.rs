//! Why a writer waits.
//!
//! Owns: the causes, and their words. Does not own: the waits, their ledger (the engine).
//! Invariants: plain values.

use afflux_pages::named;

named! {
    /// Why a writer waits.
    PauseCause:

    /// The device's equal part of the dirty limit is used up.
    DevicePart "device's part of the dirty limit";
    /// All devices together have more than the limit allows.
    GlobalLimit "dirty limit";
    /// The device is held to its own share.
    StrictLimit "strict limit of the device";
    /// The writer dirties faster than its part of the device's bandwidth.
    Rate "dirty rate";
    /// Dirty pages would leave too few frames to readers, by the memory guard.
    MemoryGuard "memory guard";
    /// The device would need longer than it may to write its dirty data.
    DeviceTime "device time";
    /// The file cannot be written: its writes fail, or one of them does not end.
    File "file that cannot be written";
    /// The device has completed nothing for too long.
    Hung "device that hangs";
}
