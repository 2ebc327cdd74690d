//! A directory's names, and the objects of those names without opening them.
//!
//! Owns: when a directory counts as unchanged while it is read.
//! Does not own: the order and the pieces of listings (the volume), opening entries (`climb`).
//! Invariants: a name is given without doubt only if the directory had it while the directory was below an export.
//! Either the directory did not change between two moments at which it was found there, or the entry itself was found
//! there. The same holds for the object of a name.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use afflux_engine::WallNanos;
use afflux_volume::{Named, Stat, Timestamp, VolumeError, Window};
use bytes::Bytes;
use rustix::fs::readlinkat;

use super::Core;
use super::calls::{self, error_of};
use super::node::HostNode;
use afflux_linux_device::clock;
use afflux_linux_device::kinds::Unsure;

/// A file system that stores nanoseconds takes times from a clock of at least 100 ticks a second.
const TICK_NS_MAX: i128 = 10_000_000;
/// The coarsest time unit of other file systems (FAT).
const COARSE_TIME_NS: i128 = 2_000_000_000;

impl Core {
    /// The entries for a window. A directory that may have changed during the read may have been outside meanwhile, so
    /// its names are then in doubt.
    pub(super) fn list(&self, directory: &HostNode, mut window: Window) -> Result<(Window, Stat), VolumeError> {
        self.learn_names(directory);
        let (mounted, unsure) = match self.mounted_in(directory) {
            // Its path is too long for the table of mounts.
            Err(VolumeError::NameTooLong { .. }) => (Vec::new(), Unsure::Everything),
            mounted => (mounted?, self.unsure_in(directory)),
        };
        let (read, (after, unchanged)) = self.beside_changes(directory, || {
            directory.each_entry(|name, fileid, may_be_directory| {
                let is_sure = match unsure {
                    Unsure::Nothing => true,
                    Unsure::Directories => !may_be_directory,
                    Unsure::Everything => false,
                };
                if is_sure && !mounted.iter().any(|mounted| mounted.as_bytes() == name) {
                    window.offer(name, fileid);
                } else {
                    window.offer_unsure(name, fileid);
                }
            })?;
            window.ask(|name| self.fileid_of(directory, name));
            Ok::<_, VolumeError>(())
        })?;
        read?;
        if !unchanged {
            window.doubt();
        }
        window.complete();
        Ok((window, after))
    }

    fn unsure_in(&self, directory: &HostNode) -> Unsure {
        self.file_systems.traits(directory.device()).map_or(Unsure::Everything, |traits| traits.unsure)
    }

    /// The names in a directory at which file systems are mounted.
    fn mounted_in(&self, directory: &HostNode) -> Result<Vec<OsString>, VolumeError> {
        let held = directory.fd().as_raw_fd().to_string();
        let path = readlinkat(&self.descriptors, held, Vec::new()).map_err(error_of)?;
        let points = self.file_systems.mounts.points()?;
        Ok(points.names_in(Path::new(OsStr::from_bytes(path.as_bytes()))).to_vec())
    }

    /// The number of an entry's object, and the id of its file system if that is not the directory's. `None` if the
    /// host does not report it.
    fn fileid_of(&self, directory: &HostNode, name: &[u8]) -> Option<(Option<u64>, u64)> {
        let name = CString::new(name).ok()?;
        // A network's file system need not be asked for its root's number.
        let stat = calls::known_stat(directory.fd(), &name).ok()?;
        if stat.device == directory.device() {
            return Some((None, stat.fileid));
        }
        if let Some(id) = self.file_systems.known_id(stat.device) {
            return Some((Some(id), stat.fileid));
        }
        let found = self.lookup(directory, name.as_bytes()).ok()?;
        Some((Some(found.identity.fsid()), found.stat.fileid))
    }

    /// The object of each name. Opens objects that have no identity by path alone, or that may have changed meanwhile.
    pub(super) fn name_all(&self, directory: &HostNode, names: &[Bytes]) -> Result<Vec<Option<Named>>, VolumeError> {
        if directory.is_void() {
            return Ok(vec![None; names.len()]);
        }
        let (mut named, (_, unchanged)) = self.beside_changes(directory, || {
            names.iter().map(|name| self.named_by_path(directory.fd(), name)).collect::<Vec<_>>()
        })?;
        for (named, name) in named.iter_mut().zip(names) {
            if !unchanged || named.is_none() {
                *named = self.named(directory, name)?;
            }
        }
        Ok(named)
    }

    /// Reads a directory that is below an export before and after. Returns its attributes afterwards, and whether no
    /// name in it came or went meanwhile. If none did, everything seen in it was inside.
    fn beside_changes<T>(
        &self,
        directory: &HostNode,
        look: impl FnOnce() -> T,
    ) -> Result<(T, (Stat, bool)), VolumeError> {
        self.contained(directory)?;
        let (before, now) = (directory.stat()?, clock::wall());
        let seen = look();
        let after = directory.stat()?;
        self.contained(directory)?;
        let unchanged = after.ctime == before.ctime && is_settled(before.ctime, now);
        Ok((seen, (after, unchanged)))
    }
}

/// Whether a change from `now` on would change the change time `changed`.
fn is_settled(changed: Timestamp, now: WallNanos) -> bool {
    let unit_ns = if changed.nanos == 0 { COARSE_TIME_NS } else { TICK_NS_MAX };
    changed.as_nanos() + unit_ns < now.0
}
