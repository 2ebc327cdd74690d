//! Scans of many records, some at a time.
//!
//! Owns: the key at which the next scan begins.
//! Does not own: the scans, their sizes.
//! Invariants: none beyond its types.

use crate::seams::{Key, Record};

/// The key to go on with after a scan for so many records.
pub(crate) fn next_page(found: &[Record], most: usize, end: &Key) -> Key {
    match found.last() {
        Some((last, _)) if found.len() == most => [last.as_slice(), &[0]].concat(),
        _ => end.clone(),
    }
}
