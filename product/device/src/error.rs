//! Errors, as values.
//!
//! Owns: the error of a device request and the error of an operation on a file.
//! Does not own: protocol codes (front ends), or wording for a terminal (the command).
//! Invariants: an error never means that data was dropped; dirty data stays dirty.

/// How a device failed a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The device could not read or write the bytes. Carries the host's errno if there is one.
    #[error("input/output error (errno {errno})")]
    Io {
        /// The host's error number, 0 if it gave none.
        errno: i32,
    },
    /// The device is full.
    #[error("no space left on the device")]
    NoSpace,
    /// The owner's quota is used up.
    #[error("disk quota exceeded")]
    Quota,
    /// The file would be larger than the device can store.
    #[error("file too large for the device")]
    TooLarge,
    /// The device takes no writes.
    #[error("read-only file system")]
    ReadOnly,
    /// The host refused access to the file.
    #[error("permission denied")]
    Denied,
    /// The file is gone from the host.
    #[error("the file is gone from the host")]
    Stale,
    /// The device cannot do this operation at all (punching holes, reserving space).
    #[error("not supported by the device")]
    Unsupported,
    /// The device has completed nothing for longer than its policy lets writers and syncs wait. Written data stays in
    /// memory, and goes to the device once it recovers.
    #[error("the device hangs: it has completed nothing for longer than writers are to wait (hang_error_ms)")]
    Hung,
    /// The request was dropped without an answer: its outcome is unknown.
    #[error("the request was lost")]
    Lost,
}

impl DeviceError {
    /// Whether the error concerns one file or its owner, and says nothing about writes of other files.
    pub fn is_of_one_file(self) -> bool {
        matches!(self, Self::Quota | Self::TooLarge | Self::Denied | Self::Stale)
    }
}

/// Why an operation on a file failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device failed the request.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The range ends above the largest offset a file can have.
    #[error("offset {offset} + {len} bytes is above the largest file size, {max}")]
    OutOfRange {
        /// The first requested byte.
        offset: u64,
        /// The number of bytes.
        len: u64,
        /// The largest size a file can have.
        max: u64,
    },
    /// The file was discarded (its last name was removed) while the operation ran.
    #[error("the file was removed")]
    Discarded,
    /// A holder withholds bytes of the range from the device, so they cannot become durable.
    #[error("bytes of the range are withheld from the device: let go of them first")]
    Withheld,
    /// Withheld bytes have as much of the device's dirty limit as they may.
    #[error("withheld bytes have all their room ({max_bytes} bytes): let go of some first")]
    TooMuchWithheld {
        /// The most bytes that may be withheld on the device.
        max_bytes: u64,
    },
    /// The file has as many withheld ranges as it may.
    #[error("{max} ranges of the file are withheld, and there may be no more: let go of some first")]
    TooManyWithheld {
        /// The most withheld ranges of a file.
        max: usize,
    },
    /// The range would wait for itself.
    #[error("the bytes that have to be durable first wait for the range itself")]
    OrderCycle,
}

/// Whether a range ends within a file of at most `max` bytes.
#[inline]
pub fn check_range(offset: u64, len: usize, max: u64) -> Result<(), Error> {
    match offset.checked_add(len as u64) {
        Some(end) if end <= max => Ok(()),
        _ => Err(Error::OutOfRange { offset, len: len as u64, max }),
    }
}
