//! Calls of the MOUNT program (RFC 1813, appendix I).
//!
//! Owns: its procedures and versions, their arguments.
//! Does not own: the answers (`mount`).
//! Invariants: a path is read up to a bound.

use crate::wire::xdr::{Reader, XdrError};

/// The names of the procedures by number, as counters.
pub(crate) const PROCEDURES: [&str; 6] =
    ["mount_null", "mount_mnt", "mount_dump", "mount_umnt", "mount_umntall", "mount_export"];

/// Versions that are answered. The first two have handles of 32 bytes for NFSv2, which this server lacks; they are for
/// tools that list mounts and exports.
pub(crate) const VERSIONS: std::ops::RangeInclusive<u32> = 1..=3;
const VERSION_WITH_HANDLES: u32 = 3;

const MNT: u32 = 1;
pub(crate) const DUMP: u32 = 2;
const UMNT: u32 = 3;
/// Most bytes of a path that are read at all; the volume refuses a shorter one that is too long for it.
const PATH_BYTES_READ_MAX: usize = 4096;

/// A call of MOUNT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MountArguments {
    Null,
    Mount { path: Vec<u8> },
    Dump,
    Unmount { path: Vec<u8> },
    UnmountAll,
    Export,
}

impl MountArguments {
    /// Whether `version` has `procedure`.
    pub(crate) fn has_procedure(version: u32, procedure: u32) -> bool {
        (procedure as usize) < PROCEDURES.len() && (procedure != MNT || version == VERSION_WITH_HANDLES)
    }

    /// Reads the arguments of a procedure that is known.
    pub(crate) fn decode(procedure: u32, bytes: &[u8]) -> Result<Self, XdrError> {
        let mut reader = Reader::new(bytes);
        Ok(match procedure {
            0 => Self::Null,
            MNT => Self::Mount { path: reader.opaque(PATH_BYTES_READ_MAX)?.to_vec() },
            DUMP => Self::Dump,
            UMNT => Self::Unmount { path: reader.opaque(PATH_BYTES_READ_MAX)?.to_vec() },
            4 => Self::UnmountAll,
            _ => Self::Export,
        })
    }
}
