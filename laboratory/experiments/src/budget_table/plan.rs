//! The options of a run, read and checked.
//!
//! Owns: the options with their ranges and defaults, the short form of a quick run, the order of the cells.
//! Does not own: running the cells.
//! Invariants: a plan that was read can be run.

use super::case::{Case, Load};
use super::devices::{self, Device};
use super::laws::Law;
use crate::experiment::{LabError, Request};
use crate::options::{Named, options};

options! {
    pub(super) OPTIONS {
        /// the laws that are compared
        LAWS_OPTION: Law = choice("laws", "LIST", "budget,linux-6.1,zfs-like,hard");
        /// the loads; all unless given
        LOADS_OPTION: Load = choice("loads", "LIST", "");
        /// the devices, or 'each' for those of each load [each; with --quick the first of each load]
        DEVICES_OPTION: &'static Device = parsed("devices", "LIST", "", devices::device);
        /// for how long writers write, in virtual time; 0: as long as suits the device
        SECONDS: u64 = number("seconds", "NUMBER", "0", 0..=3600);
        /// memory of the machine, all of it cache
        MEMORY: u64 = size("memory", "SIZE", "4GiB", 256 << 20..=64 << 30);
        /// the seed of all random numbers
        SEED: u64 = number("seed", "NUMBER", "1", 0..=u64::MAX);
    }
}

/// The value of `--devices` for those of each load.
const EACH: &str = "each";

/// A quick run has the first laws only: the budget and Linux.
const QUICK_LAWS: usize = 2;

/// The cells to run.
pub(super) struct Plan {
    pub(super) cases: Vec<Case>,
}

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        let (mut laws, loads) = (LAWS_OPTION.list(request)?, LOADS_OPTION.list_if_given(request)?);
        if request.quick && !request.gives(&LAWS_OPTION.info) {
            laws.truncate(QUICK_LAWS);
        }
        let loads = loads.unwrap_or_else(|| Load::ALL.iter().map(|(_, load)| *load).collect());
        let each = request.text(&DEVICES_OPTION.info) == EACH;
        let asked = if each { None } else { DEVICES_OPTION.list_if_given(request)? };
        let (all_devices, asked_seconds) = (each || !request.quick, SECONDS.value(request)?);
        let (memory_bytes, seed) = (MEMORY.value(request)?, SEED.value(request)?);
        let frame = afflux_frames::FRAME_BYTES as u64;
        let mut cases = Vec::new();
        for load in loads {
            let own = || load.devices().iter().map(|name| devices::device(name)).collect::<Result<Vec<_>, _>>();
            let of_load = match &asked {
                Some(asked) => asked.clone(),
                None if all_devices => own().map_err(LabError::Failed)?,
                None => own().map_err(LabError::Failed)?.into_iter().take(1).collect(),
            };
            for device in of_load {
                let seconds = match (asked_seconds, request.quick) {
                    (0, true) => device.seconds.1,
                    (0, false) => device.seconds.0,
                    (seconds, _) => seconds,
                };
                let memory_bytes = memory_bytes / frame * frame;
                let case = |law| Case { law, device, load, seconds, memory_bytes, seed, quick: request.quick };
                cases.extend(laws.iter().map(|law| case(*law)));
            }
        }
        Ok(Self { cases })
    }
}
