//! A volume in an object store: the part that decides.
//!
//! Bytes are stored in immutable segments, one object each. Records map each file to extents of segments. A store of
//! records with one fenced writer holds them.
//!
//! Owns: the formats, the map of a file, COMMIT, reads, the end of an epoch, the collection of garbage, names and
//! attributes (`tree`), views that only read.
//! Does not own: the store (`Objects`), the database (`Records`), time (`Clock`), threads.
//! Invariants: a batch names a segment only after the PUT of the segment was answered. A COMMIT is answered only after
//! its batch is durable. No record of any living view names a deleted segment. After a successor's first answer, an
//! older writer gives none.
#![forbid(unsafe_code)]

mod check;
mod collect;
mod commit;
mod compact;
mod control;
mod device;
mod error;
mod extents;
mod file;
mod format;
mod holder;
mod joints;
mod open;
mod packing;
mod paths;
mod read;
mod retry;
mod seams;
mod share;
mod state;
#[cfg(test)]
mod tests;
mod tree;
mod usage;

pub use check::{CheckReport, FileRange, ObjectFault, check};
pub use device::{DeviceVolume, ObjectDevice, PlatformClock, WatchedObjects};
pub use error::ObjectVolumeError;
pub use file::BodyInMemory;
pub use format::FormatError;
pub use format::compression::Compression;
pub use format::extent::{EPOCH_MAX, SEGMENT_BYTES_MAX, SEGMENT_NUMBER_MAX, SegmentId};
pub use format::line::LINE_BYTES;
pub use format::records::{Body, Lineage, VOLUME_FORMAT, VolumeHeader};
pub use format::segment::{DIRECTORY_ENTRY_BYTES, FOOTER_BYTES, RunEntry, SegmentWriter, directory};
pub use holder::{Holder, PreviousClients};
pub use open::{EndedWriter, Fresh, ObjectVolume};
pub use paths::paths;
pub use seams::{
    Arrivals, Batch, ByteParts, Checkpoint, Clock, DatedObject, DatedObjects, Durability, Key, Manifest, ObjectError,
    ObjectVersion, Objects, PutOutcome, Record, RecordChange, RecordDatabase, RecordsError, ReplaceOutcome, Sequence,
    Value,
};
pub use state::VolumeLimits;
pub use tree::{DataCore, HeldNode, ObjectTree, ObjectTreeOptions};
pub use usage::{VolumeUsage, usage};
