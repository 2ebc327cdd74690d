//! The laws to compare, each as the setup of an engine.
//!
//! Owns: their names, and the two laws that exist only for comparison.
//! Does not own: the flush budget, kernels' laws (by name from the simulator's setup).
//! Invariants: each run has policies of its own, so that estimates begin afresh.

mod stop;

use std::sync::Arc;

use afflux_engine::Policies;
use afflux_engine::policy::AnyPolicy;
use afflux_engine::settings::Knob;
use afflux_simulator::{OWN_POLICY, Setup};
use clap::ValueEnum;

use self::stop::{PLAIN, ZFS_LIKE};
use crate::experiment::LabError;
use crate::options::Named;

/// Centiseconds after which a transaction group is written, however little is dirty (OpenZFS: `zfs_txg_timeout`, 5 s).
const GROUP_CENTISECS: u64 = 500;

/// A law.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Law {
    Budget,
    #[value(name = "linux-6.1")]
    Linux,
    ZfsLike,
    #[value(name = "hard")]
    HardLimit,
}

impl Law {
    /// The setup of an engine under this law.
    pub(super) fn setup(self) -> Result<Setup, LabError> {
        let of = |policy: Arc<dyn AnyPolicy>| Setup {
            policies: Policies { policy, ..Policies::default() },
            ..Setup::default()
        };
        match self {
            Self::Budget => Setup::of(OWN_POLICY).map_err(LabError::failed),
            Self::Linux => Setup::of(&self.name()).map_err(LabError::failed),
            Self::HardLimit => Ok(of(Arc::new(PLAIN))),
            Self::ZfsLike => {
                let mut setup = of(Arc::new(ZFS_LIKE));
                setup.settings.set(Knob::ExpireCentisecs, GROUP_CENTISECS).map_err(LabError::failed)?;
                Ok(setup)
            }
        }
    }
}
