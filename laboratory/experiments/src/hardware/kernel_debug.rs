//! A mount of the kernel's debugging file system.
//!
//! Owns: the mount. Does not own: the files in it.
//! Invariants: unmounted when the value is dropped, and by a shell if the process dies.

use std::path::{Path, PathBuf};

use afflux_scratch::{Guard, Scratch};

use super::command::{HardwareError, run, run_down};

const TAKE_DOWN: &str = r#"umount "$1""#;

/// A mounted debugfs.
pub struct KernelDebug {
    mount: PathBuf,
    _guard: Guard,
    /// The directory with the mount. Dropped last.
    _scratch: Scratch,
}

impl KernelDebug {
    /// Mounts debugfs in a directory of its own inside `directory`.
    ///
    /// # Errors
    /// Without root, or if the kernel has no debugfs.
    pub fn new(directory: &Path) -> Result<Self, HardwareError> {
        let scratch = Scratch::guarded(directory, "debug")?;
        let mount = scratch.path().join("mount");
        std::fs::create_dir(&mount).map_err(|error| HardwareError { what: format!("{}: {error}", mount.display()) })?;
        let guard = Guard::new("", TAKE_DOWN, &[&mount])?;
        run("mount", &["-t", "debugfs", "none", &mount.to_string_lossy()])?;
        Ok(Self { mount, _guard: guard, _scratch: scratch })
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        &self.mount
    }
}

impl Drop for KernelDebug {
    fn drop(&mut self) {
        run_down("umount", &[&self.mount.to_string_lossy()]);
    }
}
