//! A run that ended.
//!
//! Owns: the record of a run and of its repetitions with shifted starts.
//! Does not own: the figures (the simulator), their forms (`text`, `comparison`, `json`, `fio_json`, `html`).

use std::time::Duration;

use afflux_workloads::simulation::Outcome as Figures;

pub(super) struct Run {
    /// The job files and workloads, as the user named them.
    pub(super) jobs: String,
    /// The name of its policy.
    pub(super) policy: String,
    pub(super) figures: Figures,
    /// Real time that it took.
    pub(super) real: Duration,
    /// The same run with shifted starts.
    pub(super) shifted: Vec<Figures>,
}

impl Run {
    /// All figures of the policy, those with shifted starts last.
    pub(super) fn all(&self) -> impl Iterator<Item = &Figures> {
        std::iter::once(&self.figures).chain(&self.shifted)
    }
}
