//! The mount point that a command names.
//!
//! Owns: the refusal of points that can only be a mistake: a mount hides the files that were at its point before.
//! Does not own: mounting (`afflux_linux_server`), the server's own places below a mount (`front`).
//! Invariants: an error names the point, the files that the mount would hide, and what to do.

use std::path::Path;

use afflux_linux_server::MountTarget;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use rustix::process::geteuid;

/// Directories with the kernel's tables and devices.
const OF_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
/// The one below them that has files of programs.
const SHARED_MEMORY: &str = "/dev/shm";

/// The mount point at this path, for a mount of this directory of the host.
pub(super) fn at(path: &Path, directory: Option<&Path>) -> Outcome<MountTarget> {
    let point = MountTarget::at(path).map_err(|error| Failure::failed(output::shown(error)))?;
    match mistake(point.path(), directory, geteuid().is_root()) {
        Some(mistake) => Err(Failure::wrong_use(mistake)),
        None => Ok(point),
    }
}

/// What is wrong with a mount point, for people.
fn mistake(point: &Path, directory: Option<&Path>, is_root: bool) -> Option<String> {
    let shown = output::shown(point.display());
    let hides = |what: &str| {
        format!(
            "a mount at {shown} would hide {what} from the programs of this host; name an empty directory elsewhere"
        )
    };
    if point == Path::new("/") {
        return Some(hides("all files"));
    }
    let is_of_kernel = OF_KERNEL.iter().any(|table| point.starts_with(table));
    let is_of_programs = point.starts_with(SHARED_MEMORY) && point != Path::new(SHARED_MEMORY);
    if is_of_kernel && !is_of_programs {
        return Some(hides("what the kernel and programs have there"));
    }
    let directory = directory?;
    (!is_root && point.starts_with(directory)).then(|| {
        format!(
            "only root can mount over the directory itself or below it, at {shown}: another user's server would wait for \
             itself on the way; name a mount point elsewhere"
        )
    })
}

#[cfg(test)]
mod tests;
