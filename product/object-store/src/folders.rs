//! The folders of a volume.
//!
//! Owns: their names; which objects are records, which have data of files.
//! Does not own: names of single objects.
//! Invariants: a volume has objects in these folders alone, and few beside them. A folder of the same name in the volume's prefix
//! changes nothing.

use object_store::path::Path;

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
/// Objects of the records that change have this folder.
const CHANGING: &str = "gc";

/// Whether it is an object of the records that never changes.
pub(crate) fn is_record(path: &Path) -> bool {
    in_records(path) && !is_for_hosts(path) && !path.parts().any(|part| part.as_ref() == CHANGING)
}

/// Whether an object has data of files. The others are records, and those by which hosts find each other.
pub(crate) fn is_data(path: &Path) -> bool {
    !is_for_hosts(path) && !in_records(path)
}

/// Whether hosts find each other by it.
fn is_for_hosts(path: &Path) -> bool {
    matches!(path.filename(), Some("holder" | "clock"))
}

/// Whether the last of the volume's folders in the path is that of the records. The prefix may have such folders, too.
fn in_records(path: &Path) -> bool {
    let mut folders = path.parts().filter(|part| [RECORDS, DATA, PROBES].contains(&part.as_ref()));
    folders.next_back().is_some_and(|part| part.as_ref() == RECORDS)
}

#[cfg(test)]
mod tests;
