//! A mount that an earlier server left with systemd, from the first look at it until somebody goes on with it.
//!
//! Owns: the choice between going on with it and ending it, the lines about that.
//! Does not own: its descriptors and their check (`afflux_linux`), its contents (`afflux_fuse`), serving it (`front`).
//! Invariants: a mount is hidden from this process before any path is looked at: a look at a file below it would wait for
//! this process itself. A start that fails leaves the mount as it was, unless the settings have no such mount.

use std::path::Path;

use afflux_fuse::Kept;
use afflux_linux::{DescriptorStore, KeptMount, OwnMounts, remove_mount};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use rustix::process::geteuid;
use tracing::warn;

use crate::settings::{ArenaPlace, Settings};
use crate::unmounter::{Unmounter, Unmounting};

/// The descriptors of an earlier server.
pub(crate) struct Left {
    store: DescriptorStore,
    mount: Option<LeftMount>,
    /// Why the mount in the store cannot be gone on with.
    broken: Option<String>,
    /// A mount of a server that is dead was at the point.
    was_dead: bool,
}

/// A mount that an earlier server left, hidden from this process.
struct LeftMount {
    kept: KeptMount,
    unmounter: Unmounter,
    own: OwnMounts,
}

/// What this process has for its mount already.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) kept: Option<KeptMount>,
    pub(super) unmounter: Option<Unmounter>,
    pub(super) own: Option<OwnMounts>,
}

impl Left {
    /// Takes the descriptors of an earlier server, and hides its mount. Comes before the first thread, and before the
    /// first look at a path.
    pub(crate) fn take() -> Outcome<Self> {
        let mut store = DescriptorStore::of_manager();
        let (found, broken) = match KeptMount::take(&mut store) {
            Ok(found) => (found, None),
            Err(reason) => (None, Some(reason)),
        };
        let mount = found.map(LeftMount::hidden).transpose()?;
        Ok(Self { store, mount, broken, was_dead: false })
    }

    /// Makes room at the mount point, if it has a mount of this program that nobody serves. Comes before the first look
    /// at the point.
    pub(crate) fn clear(&mut self, point: &Path, settings: &Settings) {
        let is_kept = settings.arena == Some(ArenaPlace::Systemd) && geteuid().is_root();
        if (is_kept || self.broken.is_some()) && self.mount.is_none() {
            // A failure shows at the mount.
            self.was_dead = remove_mount(point, self.broken.is_some()).unwrap_or_default();
        }
    }

    /// The store, and what there is for the mount at a point, if a mount is wanted and systemd is to keep it. Another mount
    /// ends.
    pub(super) fn for_point(self, point: Option<&Path>, is_kept: bool) -> Outcome<(DescriptorStore, Taken)> {
        let forget = || KeptMount::forget().map_err(|error| Failure::failed(format!("cannot tell systemd: {error}")));
        if let Some(reason) = &self.broken {
            warn!("the mount that systemd has is given up: {}", output::shown(reason));
            forget()?;
        } else if self.was_dead {
            warn!("the mount point had a mount whose server is dead; it is mounted anew");
        }
        let Some(LeftMount { kept, mut unmounter, own }) = self.mount else { return Ok((self.store, Taken::default())) };
        let reason = if !is_kept || point != Some(kept.point()) {
            Some("these settings have no such mount with `--arena systemd`".to_owned())
        } else {
            Kept::left(kept.memory().words()).err().map(|error| format!("its memory: {error}"))
        };
        let Some(reason) = reason else {
            return Ok((self.store, Taken { kept: Some(kept), unmounter: Some(unmounter), own: Some(own) }));
        };
        let shown = output::shown(kept.point().display());
        warn!("the mount {shown} that systemd has is given up: {reason}");
        if let Err(error) = unmounter.unmount(Unmounting::Lazily) {
            warn!("{shown} could not be unmounted: {error}");
        }
        forget()?;
        Ok((self.store, Taken { kept: None, unmounter: None, own: Some(own) }))
    }
}

impl LeftMount {
    /// Has a view of mounts without this one. The process that unmounts stays in the common view.
    fn hidden(kept: KeptMount) -> Outcome<Self> {
        let failed = |error| Failure::failed(format!("cannot separate the server's mounts: {error}"));
        let mut unmounter = super::front::unmounter(kept.point())?;
        unmounter.is_mounted(kept.number());
        unmounter.keep();
        let own = OwnMounts::separate().map_err(failed)?;
        kept.hide().map_err(failed)?;
        Ok(Self { kept, unmounter, own })
    }
}
