//! The directories that are served.
//!
//! Owns: opening them, the wording of errors about them.
//! Does not own: the checks (the world makes them while it opens), the tree.
//! Invariants: every error names the directory as the user gave it and tells the user what to do.

#[cfg(test)]
mod tests;

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use afflux_linux_device::WorkerPool;
use afflux_linux_server::{HostError, HostOptions, HostTree};
use afflux_volume::Directory;

use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;

/// Threads for calls about names and attributes that may block, for each file system.
const POOL_THREADS: usize = 16;

/// Most such calls that wait for a thread, for each file system.
const POOL_QUEUE: usize = 4096;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ServedExport {
    /// The path from the user.
    pub(crate) given: PathBuf,
    /// The absolute path, free of symbolic links.
    pub(crate) directory: PathBuf,
    /// The path that clients mount: `/`, or `/NAME`.
    pub(crate) path: String,
}

/// Opens the directories. With `subtree_check`, handles of files that are moved out of them are refused. Directories
/// that another server serves are refused, unless they may be `shared`.
pub(crate) fn open(
    given: &[PathBuf],
    subtree_check: bool,
    shared: bool,
) -> Outcome<(Arc<HostTree>, Vec<ServedExport>)> {
    let pool = WorkerPool::new("afflux-names", POOL_THREADS, POOL_QUEUE);
    let options = HostOptions { subtree_check, alone: !shared, ..HostOptions::default() };
    let tree = HostTree::open(given, &pool, &options).map_err(worded)?;
    let exports = given.iter().zip(tree.exports()).map(|(given, export)| ServedExport {
        given: given.clone(),
        directory: fs::canonicalize(given).unwrap_or_else(|_| given.clone()),
        path: export.path.clone(),
    });
    let exports = exports.collect();
    Ok((tree, exports))
}

fn worded(error: HostError) -> Failure {
    match &error {
        HostError::Open { path, source } => {
            let path = output::shown(path.display());
            Failure::failed(match source.kind() {
                ErrorKind::NotFound => format!("{path} does not exist"),
                ErrorKind::NotADirectory => format!("{path}: a part of the path is a file"),
                ErrorKind::PermissionDenied => format!("{path} cannot be reached by this user: {source}"),
                _ => format!("{path} cannot be served: {source}"),
            })
        }
        HostError::Served { .. } => Failure::failed(format!(
            "{}; stop that one, or have both serve them with --shared and let no two clients write to one file",
            output::shown(&error)
        )),
        HostError::Nested { inner, outer } if inner == outer => {
            Failure::wrong_use(format!("{} is named twice", output::shown(inner.display())))
        }
        HostError::Nested { .. } | HostError::SameName { .. } | HostError::Nameless { .. } => {
            Failure::wrong_use(output::shown(error))
        }
        _ => Failure::failed(output::shown(error)),
    }
}
