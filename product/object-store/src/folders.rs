//! The folders of a volume.
//!
//! Owns: their names; which objects are records, which have data of files.
//! Does not own: names of single objects.
//! Invariants: a volume has objects in these folders alone, and few beside them. A folder of the same name in the
//! volume's prefix changes nothing (`tests`, and `tests/stores/prefixes.rs` on real stores).

use object_store::path::{Path, PathPart};

/// The database of records.
pub(crate) const RECORDS: &str = "records";
/// A folder of the records. A volume has objects in it from its making on.
pub(crate) const MANIFESTS: &str = "manifest";
/// The log of the records.
pub(crate) const LOG: &str = "wal";
/// The states of the database's work on its tables.
pub(crate) const COMPACTIONS: &str = "compactions";
/// Bytes of files.
pub(crate) const DATA: &str = "data";
/// The objects of probes.
pub(crate) const PROBES: &str = "probe";
/// The folder of the tables. The database looks for no object there that may be absent.
pub(crate) const TABLES: &str = "compacted";
/// Objects of the records that change have this folder.
const CHANGING: &str = "gc";

/// Whether it is an object of the records that never changes.
pub(crate) fn is_record(path: &Path) -> bool {
    is_in_records(path) && !is_for_hosts(path) && !is_in(path, CHANGING)
}

/// Whether an object has data of files. The others are records, and those by which hosts find each other.
pub(crate) fn is_data(path: &Path) -> bool {
    !is_for_hosts(path) && !is_in_records(path)
}

/// Whether hosts find each other by it, or each other's clients.
fn is_for_hosts(path: &Path) -> bool {
    matches!(path.filename(), Some("holder" | "clock" | "clients"))
}

/// Whether it is an object of the records in this folder of theirs.
pub(crate) fn is_in(path: &Path, folder: &str) -> bool {
    let from_last = path.parts().rev().collect::<Vec<_>>();
    let at = from_last.iter().position(|part| is_folder(part));
    at.is_some_and(|at| from_last[at].as_ref() == RECORDS && at > 0 && from_last[at - 1].as_ref() == folder)
}

fn is_folder(part: &PathPart<'_>) -> bool {
    [RECORDS, DATA, PROBES].contains(&part.as_ref())
}

/// Whether the last of the volume's folders in the path is that of the records. The prefix may have such folders, too.
pub(crate) fn is_in_records(path: &Path) -> bool {
    path.parts().rfind(is_folder).is_some_and(|part| part.as_ref() == RECORDS)
}

#[cfg(test)]
mod tests;
