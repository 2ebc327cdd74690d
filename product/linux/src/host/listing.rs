//! A directory's names, and the objects of those names without opening them.
//!
//! Owns: when a directory counts as unchanged during a look at it.
//! Does not own: the order and the pieces of listings (the volume), opening entries (`climb`).
//! Invariants: a name is given without doubt only if the directory had it while the directory was below an export.
//! Either the directory did not change between two moments at which it was found there, or the entry itself was found
//! there. The same holds for the object of a name.

use afflux_engine::WallNanos;
use afflux_volume::{Named, Stat, Timestamp, VolumeError, Window};
use bytes::Bytes;

use super::Core;
use super::calls;
use super::node::HostNode;
use crate::clock;

/// A file system that keeps nanoseconds takes times from a clock of at least 100 ticks a second.
const TICK_NS_MAX: i128 = 10_000_000;
/// The coarsest time unit of other file systems (FAT).
const COARSE_TIME_NS: i128 = 2_000_000_000;

impl Core {
    /// The entries for a window. A directory that may have changed during the read may have been outside meanwhile, so
    /// its names are then in doubt.
    pub(super) fn list(&self, directory: &HostNode, mut window: Window) -> Result<(Window, Stat), VolumeError> {
        let (read, (after, unchanged)) = self.beside_changes(directory, || {
            calls::each_entry(directory.fd(), |name, fileid| window.offer(name, fileid))
        })?;
        read?;
        if !unchanged {
            window.doubt();
        }
        window.complete();
        Ok((window, after))
    }

    /// The object of each name. Opens objects that have no identity by path alone, or that may have changed meanwhile.
    pub(super) fn name_all(&self, directory: &HostNode, names: &[Bytes]) -> Result<Vec<Option<Named>>, VolumeError> {
        let (mut named, (_, unchanged)) = self.beside_changes(directory, || {
            names.iter().map(|name| self.named_by_path(directory.fd(), name)).collect::<Vec<_>>()
        })?;
        for (named, name) in named.iter_mut().zip(names) {
            if !unchanged || named.is_none() {
                let found = self.lookup(directory, name).ok();
                *named = found.map(|found| Named { identity: found.identity, stat: found.stat });
            }
        }
        Ok(named)
    }

    /// Looks at a directory that is below an export before and after. Returns its attributes afterwards, and whether no
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
