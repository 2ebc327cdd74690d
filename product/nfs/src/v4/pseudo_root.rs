//! The root of the pseudo file system (RFC 8881, section 7): the directory of all exports, where there are several.
//!
//! Owns: its names, handle and attributes.
//! Does not own: the exports (the volume). A single export is the root itself, and this directory is then nowhere.
//! Invariants: its names are those of the exports, and no others. A server with other exports reports another change
//! attribute, so clients look up names again. Its handle is no secret: every admitted caller may look up names here.

use afflux_volume::{Attributes, Kind, Timestamp};

/// The handle. The volume's have another version in the first byte.
pub(super) const HANDLE: &[u8] = b"\0afx\0\0\0\0";
/// Its number as a file system.
const FILE_SYSTEM: u64 = 0x0061_6678;
const FILEID: u64 = 1;

pub(super) struct PseudoRoot {
    exports: Vec<String>,
    /// The time of its last change.
    made: Timestamp,
}

impl PseudoRoot {
    /// Made at this time, of the exports' paths.
    pub(super) fn new(exports: Vec<String>, made: Timestamp) -> Self {
        Self { exports, made }
    }

    /// The exports' paths, in the order of the listing.
    pub(super) fn exports(&self) -> &[String] {
        &self.exports
    }

    /// The path of the export with a name.
    pub(super) fn find(&self, name: &[u8]) -> Option<&str> {
        self.exports.iter().find(|path| name_of(path) == name).map(String::as_str)
    }

    pub(super) fn attributes(&self) -> Attributes {
        let made = self.made;
        Attributes {
            kind: Kind::Directory,
            mode: 0o555,
            links: 2,
            uid: 0,
            gid: 0,
            size: 4096,
            used: 0,
            device_major: 0,
            device_minor: 0,
            fsid: FILE_SYSTEM,
            fileid: FILEID,
            atime: made,
            mtime: made,
            ctime: made,
        }
    }
}

/// The name of the export with a path.
pub(super) fn name_of(path: &str) -> &[u8] {
    path.strip_prefix('/').unwrap_or(path).as_bytes()
}

/// The number of the directory on which an export is mounted, from the export's position in the listing.
pub(super) fn mounted_on(place: u64) -> u64 {
    1 << 32 | (place + 1)
}

#[cfg(test)]
mod tests;
