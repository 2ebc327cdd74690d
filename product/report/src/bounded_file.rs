//! Reads users' files whole.
//!
//! Owns: the bound on their size.
//! Does not own: their contents.
//! Invariants: no read exceeds the bound, even if a file claims a smaller size. The bound for devices is lower.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{Error, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::units;

/// Most bytes that are read from a device: `/dev/null` has none, a terminal few, and `/dev/zero` no end.
const DEVICE_BYTES_MAX: u64 = 1 << 20;

/// Reads all bytes of a file of at most `bytes_max` bytes.
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let file = File::open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(Error::other("it is a directory"));
    }
    let is_device = kind.is_char_device() || kind.is_block_device();
    let bytes_max = if is_device { bytes_max.min(DEVICE_BYTES_MAX) } else { bytes_max };
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(Error::other(format!("it is larger than {}", units::memory(bytes_max))));
    }
    Ok(bytes)
}
