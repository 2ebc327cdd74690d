//! The rehearsal of a mount, for `--check`.
//!
//! Owns: the view of mounts in which root's rehearsal mounts, the questions to the helper that mounts for other users.
//! Does not own: the calls of a start that it repeats (`front`), their order (`start::check`).
//! Invariants: nobody but this process sees the mount of a rehearsal, and it is gone at once.

use std::path::PathBuf;

use afflux_report::failure::{OrFailed, Outcome};
use rustix::process::geteuid;

use super::{NOT_MOUNTED, WantedFront, WantedMount};
use crate::serve::persisted::persisted_mount::{NOT_SEPARATED, Taken, own_view};

impl WantedFront {
    /// As [`Self::separated`], for a rehearsal: root will mount for this process alone. The mount of the server that is
    /// to be reloaded is out of sight.
    pub(crate) fn separated_for_rehearsal(&self) -> Outcome<Taken> {
        let Some(WantedMount { point, .. }) = &self.mount else { return Ok(Taken::default()) };
        let mut taken = self.separated(Taken::default())?;
        if geteuid().is_root() {
            let own = taken.own.map_or_else(own_view, Ok)?;
            point.uncover().or_failed(NOT_SEPARATED)?;
            taken.own = Some(own.rehearsing().or_failed(NOT_SEPARATED)?);
        }
        Ok(taken)
    }

    /// Finds what [`Self::prepared`] would refuse of a mount, and leaves none. The host's helper would mount for
    /// everybody, so it does not mount here.
    pub(crate) fn rehearse_mount(&self, source: Option<&PathBuf>, separated: Taken, own_places: &[PathBuf]) -> Outcome {
        let Some(WantedMount { point, .. }) = &self.mount else { return Ok(()) };
        if !geteuid().is_root() {
            return point.check_helper().or_failed(NOT_MOUNTED);
        }
        let mount_alone = Self { nfs: None, ..self.clone() };
        mount_alone.prepared(None, source, separated, own_places).map(drop)
    }
}
