//! The kernel's debugging file system, where one is not mounted.
//!
//! Owns: a mount of it. Does not own: what is read there.
//! Invariants: taken down when the value is dropped, and by a shell if the process dies.

use std::path::{Path, PathBuf};

use afflux_scratch::{Guard, Scratch};

use super::command::{run, run_down};
use super::error::HardwareError;

const TAKE_DOWN: &str = r#"umount "$1""#;

/// A mounted debugfs.
pub struct KernelDebug {
    mount: PathBuf,
    _guard: Guard,
    /// Has the mount. It goes last.
    _scratch: Scratch,
}

impl KernelDebug {
    /// Mounts it in a directory of its own inside `directory`.
    ///
    /// # Errors
    /// Without root, or in a kernel that has none.
    pub fn new(directory: &Path) -> Result<Self, HardwareError> {
        let scratch = Scratch::guarded(directory, "debug")?;
        let mount = scratch.path().join("mount");
        std::fs::create_dir(&mount).map_err(|error| HardwareError { what: format!("{}: {error}", mount.display()) })?;
        let guard = Guard::new("", TAKE_DOWN, &[&mount])?;
        run("mount", &["-t", "debugfs", "none", &mount.to_string_lossy()])?;
        Ok(Self { mount, _guard: guard, _scratch: scratch })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.mount
    }
}

impl Drop for KernelDebug {
    fn drop(&mut self) {
        run_down("umount", &[&self.mount.to_string_lossy()]);
    }
}
