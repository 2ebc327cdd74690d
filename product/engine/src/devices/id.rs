//! The number of a device.
//!
//! Owns: the type. Does not own: the list of devices.
//! Invariants: a number is never reused.

/// A device of an engine, by number from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub struct DeviceId(pub u32);
