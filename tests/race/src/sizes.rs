//! Units of sizes in bytes.
//!
//! Owns: the units, a size as text in whole units.
//! Does not own: the sizes of cases.

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

pub(crate) fn size(bytes: u64) -> String {
    if bytes >= GIB { format!("{} GiB", bytes / GIB) } else { format!("{} MiB", bytes / MIB) }
}
