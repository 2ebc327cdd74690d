//! A mount that an earlier server stored with systemd, from the first check of it until a server goes on with it.
//!
//! Owns: the choice between going on with it and ending it, the lines about that.
//! Does not own: the check of its descriptors (`afflux_linux_server`), the meaning of its memory (`afflux_fuse`), its
//! service (`front`).
//! Invariants: a mount is hidden from this process before any path is accessed: an access to a file below it would wait
//! for this process itself. A start that fails leaves the mount as it was, unless the settings have no such mount.

use std::io::ErrorKind;
use std::path::Path;

use afflux_fuse::MountState;
use afflux_linux_server::{DescriptorStore, OwnMounts, PersistedMount, remove_mount};
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::output;
use rustix::process::geteuid;
use tracing::warn;

use crate::unmounter::{Unmounter, Unmounting};

/// Why a view of mounts without ours cannot be had.
pub(crate) const NOT_SEPARATED: &str = "cannot separate the server's mounts";

/// A view of the host's mounts of this process's own.
pub(crate) fn own_view() -> Outcome<OwnMounts> {
    OwnMounts::separate().map_err(|error| {
        let rights = match error.kind() {
            ErrorKind::PermissionDenied => "; root's mount takes CAP_SYS_ADMIN and CAP_SYS_CHROOT",
            _ => "",
        };
        Failure::failed(format!("{NOT_SEPARATED}: {error}{rights}"))
    })
}

/// The descriptors of an earlier server.
pub(crate) struct InheritedDescriptors {
    store: DescriptorStore,
    mount: Option<InheritedMount>,
    /// Why the mount in the store cannot be gone on with.
    broken: Option<String>,
    /// A mount of a server that is dead was at the point.
    was_dead: bool,
}

/// An inherited mount, hidden from this process.
struct InheritedMount {
    persisted: PersistedMount,
    unmounter: Unmounter,
    own: OwnMounts,
}

/// The parts of a mount that this process has already.
#[derive(Default)]
pub(crate) struct Taken {
    /// The mount of the earlier server, with the contents of its memory.
    pub(crate) persisted: Option<(PersistedMount, MountState)>,
    pub(crate) unmounter: Option<Unmounter>,
    /// For root's mount of a host's directory: a view of the mounts without ours.
    pub(crate) own: Option<OwnMounts>,
}

impl InheritedDescriptors {
    /// Takes the descriptors of an earlier server, and hides its mount. Comes before the first access to a path.
    pub(crate) fn take() -> Outcome<Self> {
        let mut store = DescriptorStore::of_manager();
        let (found, broken) = match PersistedMount::take(&mut store) {
            Ok(found) => (found, None),
            Err(reason) => (None, Some(reason)),
        };
        let mount = found.map(InheritedMount::hidden).transpose()?;
        Ok(Self { store, mount, broken, was_dead: false })
    }

    /// Takes a mount of this program without a server away from the mount point. Comes before the first access to the
    /// point.
    pub(crate) fn clear(&mut self, point: &Path, is_persistent: bool) {
        let is_persistent = is_persistent && geteuid().is_root();
        if (is_persistent || self.broken.is_some()) && self.mount.is_none() {
            // A failure shows at the mount.
            self.was_dead = remove_mount(point, self.broken.is_some()).unwrap_or_default();
        }
    }

    /// The store, and the earlier server's mount at this point. The mount ends if the settings do not have it any more,
    /// or do not have systemd store it.
    pub(crate) fn for_point(self, point: Option<&Path>, is_persistent: bool) -> Outcome<(DescriptorStore, Taken)> {
        if let Some(reason) = &self.broken {
            warn!("the mount that systemd has is given up: {}", output::shown(reason));
            forget()?;
        } else if self.was_dead {
            warn!("the mount point had a mount whose server is dead; it is mounted anew");
        }
        let Some(InheritedMount { persisted, unmounter, own }) = self.mount else {
            return Ok((self.store, Taken::default()));
        };
        let contents = if !is_persistent || point != Some(persisted.point()) {
            Err("these settings have no such mount with `--arena systemd`".to_owned())
        } else {
            MountState::inherited(persisted.memory().words()).map_err(|error| format!("its memory: {error}"))
        };
        let taken = match contents {
            Ok(contents) => {
                Taken { persisted: Some((persisted, contents)), unmounter: Some(unmounter), own: Some(own) }
            }
            Err(reason) => {
                give_up(&persisted, unmounter, &reason)?;
                Taken { own: Some(own), ..Taken::default() }
            }
        };
        Ok((self.store, taken))
    }
}

fn forget() -> Outcome {
    PersistedMount::forget().or_failed("cannot tell systemd")
}

impl Taken {
    /// Ends the mount of the earlier server if the cache's memory did not come with it. Programs would take lost bytes
    /// for written ones.
    pub(crate) fn with_cache(self, is_inherited: bool) -> Outcome<Self> {
        if is_inherited {
            return Ok(self);
        }
        if let (Some((persisted, _)), Some(unmounter)) = (self.persisted, self.unmounter) {
            give_up(&persisted, unmounter, "systemd has no cache with it")?;
        }
        Ok(Self { own: self.own, ..Self::default() })
    }
}

/// Unmounts the mount of the earlier server.
fn give_up(persisted: &PersistedMount, mut unmounter: Unmounter, reason: &str) -> Outcome {
    let shown = output::shown(persisted.point().display());
    warn!("the mount {shown} that systemd has is given up: {reason}");
    if let Err(error) = unmounter.unmount(Unmounting::Lazily) {
        warn!("{shown} could not be unmounted: {error}");
    }
    forget()
}

/// The process that unmounts at the end.
pub(crate) fn unmounter(point: &Path) -> Outcome<Unmounter> {
    Unmounter::start(point).or_failed("cannot start the process that unmounts at the end")
}

impl InheritedMount {
    /// Has a view of mounts without this one. The process that unmounts stays in the common view.
    fn hidden(persisted: PersistedMount) -> Outcome<Self> {
        let mut unmounter = unmounter(persisted.point())?;
        unmounter.set_mounted(persisted.mount_id());
        unmounter.keep();
        let own = own_view()?;
        persisted.hide().or_failed(NOT_SEPARATED)?;
        Ok(Self { persisted, unmounter, own })
    }
}
