//! The meaning of the words of `cargo xtask mounted`.
//!
//! Owns: the mount and the place of the files that they ask for, the defaults, the combinations that make no sense.
//! Does not own: the words (`words`), the names of programs.
//! Invariants: a word that a run would not obey is refused.

use std::time::Duration;

use afflux_rig::choice;
use afflux_rig::words::Count;
use anyhow::Result;

use crate::words::{Mounted, Store};

/// Seconds of a load whose length is free.
const SECONDS: u64 = 20;

choice! {
    /// The mount that programs use: our NFS server behind a FUSE bridge, or `afflux mount`.
    pub(super) Way { Bridge = "bridge", Fuse = "fuse" }
}

/// The place of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    Directory,
    /// A volume in a store that is a directory.
    FileStore,
    /// A volume in a Ceph. Its gateway is killed and started again at this interval.
    Radosgw(Option<Duration>),
}

impl Storage {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::FileStore | Self::Radosgw(_) => "store",
        }
    }
}

impl Mounted {
    pub(super) fn way(&self) -> Way {
        if self.fuse || self.xfstests.is_some() { Way::Fuse } else { Way::Bridge }
    }

    pub(super) fn storage(&self) -> Result<Storage> {
        match (self.store, self.kill_every) {
            (Some(Store::Radosgw), every) => Ok(Storage::Radosgw(every.map(|every| Duration::from_secs(every.0)))),
            (_, Some(_)) => {
                Err(xflags::Error::new("only a gateway can be killed: --kill-every goes with --store radosgw").into())
            }
            (Some(Store::File), None) => Ok(Storage::FileStore),
            (None, None) => Ok(Storage::Directory),
        }
    }

    /// Operations, seeds and the first seed of fsx.
    pub(super) fn of_fsx(&self) -> [u64; 3] {
        let or = |given: Option<Count>, usual| given.map_or(usual, |count| count.0);
        [or(self.operations, 20_000), or(self.seeds, 1), or(self.first_seed, 1)]
    }

    /// How long a load lasts whose length is free.
    pub(super) fn lasts(&self) -> Duration {
        Duration::from_secs(self.minutes.map_or(SECONDS, |minutes| 60 * minutes.0))
    }
}

#[cfg(test)]
mod tests;
