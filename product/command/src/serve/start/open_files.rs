//! The number of files that may be open at a time, as a start tells it.
//!
//! Owns: the words, and when they are a note for people.
//! Does not own: the bound (the volume), the limit on descriptors (`afflux_linux_server`).
//! Invariants: a limit that few clients meet is told before the first of them does.

use afflux_linux_device::LinuxPlatform;
use afflux_report::units;
use afflux_volume::Volume;
use rustix::process::{Resource, getrlimit};
use tracing::debug;

/// With so many there is nothing to tell: the tables of front ends have no more places.
const ALL: usize = 65_536;
/// Fewer than these are a note.
const MANY: usize = 4_096;

/// The note for a start under a low limit. Under another one the log has it.
pub(crate) fn note(volume: &Volume<LinuxPlatform>) -> Option<String> {
    let limit = getrlimit(Resource::Nofile).current?;
    told(volume.open_files_max(), limit)
}

fn told(most: usize, limit: u64) -> Option<String> {
    if most >= ALL {
        return None;
    }
    let (files, descriptors) = (units::count(most as u64), units::count(limit));
    let words = format!(
        "the limit of {descriptors} descriptors allows {files} files open at a time, half of them for one user or \
         machine"
    );
    if most >= MANY {
        debug!("{words}");
        return None;
    }
    Some(format!("{words}; a higher hard limit allows more (LimitNOFILE= of a unit, `ulimit -Hn` of a shell)"))
}

#[cfg(test)]
mod tests;
