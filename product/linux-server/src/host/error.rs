//! Why directories cannot be exported.
//!
//! Owns: the reasons, and their words for people.
//! Does not own: the checks (`start`, `marks`).
//! Invariants: each message names the directory and the problem.

use std::path::PathBuf;

use afflux_volume::VolumeError;

/// Why directories cannot be exported. The message names the directory and the problem.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// None was given.
    #[error("no directory to serve was given")]
    Nothing,
    /// It cannot be opened.
    #[error("{}: {source}", path.display())]
    Open {
        /// The given path.
        path: PathBuf,
        /// The host's error.
        source: std::io::Error,
    },
    /// It is something else.
    #[error("{} is not a directory; serve its parent directory", path.display())]
    NotADirectory {
        /// The given path.
        path: PathBuf,
    },
    /// It is on a file system like `/proc`.
    #[error("{}: it is on {kind}, which stores no files; serve a directory of a file system that does", path.display())]
    StoresNothing {
        /// The given path.
        path: PathBuf,
        /// The kind of the file system.
        kind: String,
    },
    /// It may not be read.
    #[error("{} cannot be read by this user", path.display())]
    NotReadable {
        /// The given path.
        path: PathBuf,
    },
    /// Two would have the same path for clients.
    #[error("{} and {} would both be exported as /{name}; rename one, or serve a directory above both", first.display(), second.display())]
    SameName {
        /// The first of them.
        first: PathBuf,
        /// Path of the second export.
        second: PathBuf,
        /// The last part of both.
        name: String,
    },
    /// One is inside the other.
    #[error("{} is inside {}: serve the outer one alone, clients can mount what is below it", inner.display(), outer.display())]
    Nested {
        /// The inner one.
        inner: PathBuf,
        /// The outer one.
        outer: PathBuf,
    },
    /// It has no name to export it by beside others.
    #[error("{} has no name that clients could be given beside other directories; serve it alone", path.display())]
    Nameless {
        /// The given path.
        path: PathBuf,
    },
    /// Both are on file systems with one identity, such as a disk and its copy.
    #[error("{} is on a copy of the file system of {}: both have one UUID, so a client's handle would not tell them apart; serve one of them, or give one a new UUID (tune2fs -U random, xfs_admin -U generate)", path.display(), other.display())]
    OneIdentity {
        /// The second of them.
        path: PathBuf,
        /// Path of the export that came first.
        other: PathBuf,
    },
    /// Another server serves the same files.
    #[error("{}: another server serves {relation} ({processes}); two of them would overwrite each other's files", path.display())]
    Served {
        /// The given path.
        path: PathBuf,
        /// The other server's directory, relative to this one.
        relation: &'static str,
        /// The other server's processes, for people.
        processes: String,
    },
    /// The host lacks something that is needed.
    #[error("/proc/self/fd cannot be used ({source}): mount /proc")]
    NoProc {
        /// The host's error.
        source: std::io::Error,
    },
    /// It was opened, and then failed.
    #[error("{}: {error}", path.display())]
    Failed {
        /// The given path.
        path: PathBuf,
        /// Failure of the host's call.
        error: VolumeError,
    },
}
