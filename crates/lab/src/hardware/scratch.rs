//! A directory of this process on a disk, for as long as a value lives.
//!
//! Owns: the directory, with all that is in it.
//! Does not own: what is mounted in it: whoever mounted takes that down.
//! Invariants: it is removed when the value is dropped, and by a shell if the process dies, once nothing is
//! mounted in it any more; nothing on another file system is removed.

use std::path::{Path, PathBuf};

use super::error::HardwareError;
use super::guard::Guard;

/// Arguments: the directory.
const REMOVE: &str = r#"turns=0
while grep -q " $1/" /proc/mounts && [ $turns -lt 600 ]; do sleep 0.2; turns=$((turns + 1)); done
rm -rf --one-file-system "$1""#;

/// A directory that goes with the value.
pub struct Scratch {
    path: PathBuf,
    _guard: Guard,
}

impl Scratch {
    /// Makes one in `directory`; its name begins with `name`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(directory: &Path, name: &str) -> Result<Self, HardwareError> {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let failed = |error: std::io::Error| HardwareError { what: format!("{}: {error}", directory.display()) };
        let directory = std::path::absolute(directory).map_err(failed)?;
        let path = directory.join(format!("afflux-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| HardwareError { what: format!("{}: {error}", path.display()) })?;
        let guard = Guard::new("", REMOVE, &[&path])?;
        Ok(Self { path, _guard: guard })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
