//! The two protocols beside version 3: MOUNT (RFC 1813, appendix I), and the lock service (NLM 4), which has no locks.
//!
//! Owns: MOUNT's procedures and versions, their arguments, the clients' reported mounts, which are only for people; the
//! reply to each call of the lock service: a client's program gets ENOLCK at once, and waits for nobody.
//! Does not own: the answers of MOUNT (`mount`), the port at which clients find the lock service (the command tells an
//! rpcbind), locks of version 4 (`v4`).
//! Invariants: a path is read up to a bound. The list of mounts has at most [`MOUNTS_MAX`] lines, and no code relies on
//! it: a handle is valid whether or not its mount is in the list. No procedure of the lock service changes anything.
//! Its replies that would come as calls to the client are not offered.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use crate::wire::xdr::{Reader, Writer, XdrError};

/// The names of the procedures by number, as counters.
pub(crate) const MOUNT_PROCEDURES: [&str; 6] =
    ["mount_null", "mount_mnt", "mount_dump", "mount_umnt", "mount_umntall", "mount_export"];

/// Versions that are answered. The first two have handles of 32 bytes for NFSv2, which this server lacks; they are for
/// tools that list mounts and exports.
pub(crate) const MOUNT_VERSIONS: std::ops::RangeInclusive<u32> = 1..=3;
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
        (procedure as usize) < MOUNT_PROCEDURES.len() && (procedure != MNT || version == VERSION_WITH_HANDLES)
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

/// Most lines that the list of mounts has; the oldest go first.
pub const MOUNTS_MAX: usize = 256;

#[derive(Clone, PartialEq, Eq)]
pub(super) struct MountedLine {
    pub(super) client: IpAddr,
    pub(super) path: Vec<u8>,
}

/// The clients' mounts, as far as the clients reported them.
#[derive(Default)]
pub(crate) struct Mounts {
    lines: Mutex<VecDeque<MountedLine>>,
}

impl Mounts {
    pub(super) fn change(&self, change: impl FnOnce(&mut VecDeque<MountedLine>)) {
        change(&mut self.lines.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn add(&self, client: IpAddr, path: Vec<u8>) {
        let line = MountedLine { client, path };
        self.change(|lines| {
            lines.retain(|known| *known != line);
            if lines.len() == MOUNTS_MAX {
                lines.pop_front();
            }
            lines.push_back(line);
        });
    }
}

/// The lock service (NLM).
pub(crate) const LOCK_PROGRAM: u32 = 100_021;
/// Its version for version 3 of NFS.
pub(crate) const LOCK_VERSION: u32 = 4;

// Procedures of the lock service, and their answers.
const TEST: u32 = 1;
const LOCK: u32 = 2;
const UNLOCK: u32 = 4;
const SHARE: u32 = 20;
const UNSHARE: u32 = 21;
const LOCK_UNMONITORED: u32 = 22;
const FREE_ALL: u32 = 23;

const GRANTED: u32 = 0;
const DENIED_NOLOCKS: u32 = 2;

/// Most bytes by which a client knows a call.
const COOKIE_BYTES_MAX: usize = 1024;

/// Whether a procedure is answered.
pub(crate) fn is_lock_procedure(procedure: u32) -> bool {
    matches!(procedure, 0 | TEST..=UNLOCK | SHARE..=FREE_ALL)
}

/// Writes the result of a procedure.
pub(crate) fn answer_lock_call(procedure: u32, arguments: &[u8], writer: &mut Writer) -> Result<(), XdrError> {
    if matches!(procedure, 0 | FREE_ALL) {
        return Ok(());
    }
    let cookie = Reader::new(arguments).opaque(COOKIE_BYTES_MAX)?;
    writer.opaque(cookie);
    writer.u32(match procedure {
        TEST | LOCK | SHARE | LOCK_UNMONITORED => DENIED_NOLOCKS,
        // There is nothing to give back.
        _ => GRANTED,
    });
    if matches!(procedure, SHARE | UNSHARE) {
        const SEQUENCE: u32 = 0;
        writer.u32(SEQUENCE);
    }
    Ok(())
}
