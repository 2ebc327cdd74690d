//! The directory for state that outlives a server.
//!
//! Owns: the directory, the names in it, how a file in it is replaced.
//! Does not own: the contents of the files (`afflux_linux::handle_key`, `afflux_linux::kept_places`, `kept_prices`,
//! `kept_verifier`).
//! Invariants: only this user can access the directory. A server works without it if it cannot be made.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;

use rustix::fs::{Access, access};
use rustix::process::geteuid;

pub(crate) struct StateDirectory(Option<PathBuf>);

impl StateDirectory {
    /// The directory `named`, or this user's place for state. Makes it.
    pub(crate) fn made(named: Option<&Path>) -> Self {
        let directory = named.map(Path::to_path_buf).or_else(usual);
        if let Some(directory) = &directory {
            // The first use of the directory reports a failure to make it.
            let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        }
        Self(directory)
    }

    /// Its path, if there is a place for it.
    pub(super) fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    /// The key that handles are sealed with.
    pub(crate) fn key_path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|directory| directory.join("handle-key"))
    }

    /// The last known places of objects, to find them again.
    pub(super) fn places_path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|directory| directory.join("places"))
    }

    /// The disks' prices.
    pub(crate) fn prices_path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|directory| directory.join("disks.json"))
    }

    /// The write verifier of a server that ended with everything written.
    pub(super) fn verifier_path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|directory| directory.join("write-verifier"))
    }

    /// The disks' speeds that `afflux govern` has measured; these are speeds of the kernel's writeback.
    pub(crate) fn speeds_path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|directory| directory.join("govern-disks.json"))
    }

    /// Why nothing can be kept, if that is so.
    pub(crate) fn unwritable(&self) -> Option<String> {
        let Some(directory) = &self.0 else { return Some("no home directory is known".to_owned()) };
        let error = access(directory, Access::WRITE_OK | Access::EXEC_OK).err()?;
        Some(format!("{}: {}", directory.display(), std::io::Error::from(error)))
    }
}

/// Replaces a file with a whole new one, durably.
///
/// # Errors
/// When that fails; the old file may then be there, or the new one.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let new = beside(path, "new");
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        writeln!(file, "{text}")?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        sync_directory_of(path)
    })();
    if written.is_err() {
        // The file may not exist.
        let _ = fs::remove_file(&new);
    }
    written
}

/// A name beside a file that only this process uses.
pub(super) fn beside(path: &Path, what: &str) -> PathBuf {
    path.with_extension(format!("{what}-{}", process::id()))
}

pub(super) fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().ok_or(ErrorKind::NotFound)?;
    File::open(directory)?.sync_all()
}

fn usual() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    match variable("XDG_STATE_HOME") {
        Some(state) => Some(state.join("afflux")),
        None if geteuid().is_root() => Some(Path::new("/var/lib/afflux").to_path_buf()),
        None => Some(variable("HOME")?.join(".local/state/afflux")),
    }
}
