//! The folders of a volume.
//!
//! Owns: their names.
//! Does not own: the objects in them.
//! Invariants: a volume has objects in these folders alone, and few beside them.

/// The database of records.
pub(crate) const RECORDS: &str = "records";
/// A volume has objects in this folder from its making on.
pub(crate) const MANIFESTS: &str = "records/manifest";
/// Bytes of files.
pub(crate) const DATA: &str = "data";
/// The objects of probes.
pub(crate) const PROBES: &str = "probe";
