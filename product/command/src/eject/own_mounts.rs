//! Mounts of `afflux mount` that keep a disk in use.
//!
//! Owns: finding them, the disk behind a mount point, the path to a file system that such a mount covers.
//! Does not own: other mounts (crate `govern`), the servers behind them (`servers`).
//! Invariants: only mounts that the kernel lists are found, by this process's own view alone. No call waits for the
//! server of a mount.

use std::path::{Component, Path, PathBuf};

use afflux_govern::{Host, Mounted};

use crate::processes;

/// The kind of the mounts, as the kernel shows it.
pub(super) const KIND: &str = "fuse.afflux";

/// The mounts that stand on a disk: mounts of its directories, and mounts at its directories. `is_of_disk` knows the
/// disk's own mounts.
pub(super) fn on(mounts: &[Mounted], is_of_disk: impl Fn(&Mounted) -> bool) -> Vec<Mounted> {
    let stands = |mount: &&Mounted| behind(mounts, mount).chain(above(mounts, mount)).any(&is_of_disk);
    mounts.iter().filter(|mount| mount.kind == KIND).filter(stands).cloned().collect()
}

/// The number of the disk behind a mount of `afflux mount` at this place.
pub(super) fn disk_behind(host: &Host, mount_point: &Path) -> Option<String> {
    let mount_point: PathBuf = std::path::absolute(mount_point).ok()?.components().collect();
    let mounts = host.mounts();
    let mount = mounts.iter().rev().find(|mount| mount.kind == KIND && mount.mount_point == mount_point)?;
    host.whole_of_mount(&behind(&mounts, mount).last()?.number)
}

/// The path to a file system at a place that a mount of `afflux mount` covers: the server sees it. `leads_there` knows
/// the paths to the disk's files. None if the mount is dead.
pub(super) fn below(mount_point: &Path, leads_there: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    processes::servers().into_iter().map(|server| seen_by(server, mount_point)).find(|path| leads_there(path))
}

/// The mount that has the directory of a mount. If that is one of `afflux mount`, too, then the one behind it, and so
/// on.
fn behind<'m>(mounts: &'m [Mounted], mount: &'m Mounted) -> impl Iterator<Item = &'m Mounted> {
    let (mut seen, mut path) = (vec![mount], Some(PathBuf::from(&mount.source)));
    std::iter::from_fn(move || {
        let wanted = path.take()?;
        let with = mounts.iter().filter(|mount| wanted.starts_with(&mount.mount_point) && !seen.contains(mount));
        // Of mounts at one place, the newest covers the others.
        let found = with.max_by_key(|mount| mount.mount_point.components().count())?;
        let rest = wanted.strip_prefix(&found.mount_point).ok()?;
        path = (found.kind == KIND).then(|| Path::new(&found.source).join(rest));
        seen.push(found);
        Some(found)
    })
}

/// The mounts in which the place of a mount is.
fn above<'m>(mounts: &'m [Mounted], mount: &'m Mounted) -> impl Iterator<Item = &'m Mounted> {
    let parent = |mount: &&'m Mounted| mounts.iter().find(|above| above.id == mount.parent && above.id != mount.id);
    std::iter::successors(Some(mount), parent).skip(1)
}

/// The path as a process sees it.
fn seen_by(process: u32, path: &Path) -> PathBuf {
    let below = path.components().filter(|part| matches!(part, Component::Normal(_)));
    Path::new("/proc").join(process.to_string()).join("root").join(below.collect::<PathBuf>())
}

#[cfg(test)]
mod tests;
