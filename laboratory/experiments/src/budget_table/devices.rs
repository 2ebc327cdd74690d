//! The devices of the table, by names of the catalogue, with their stalls and hangs.
//!
//! Owns: the list of devices, the length of a run on each, stalls and hangs.
//! Does not own: the models, their figures and the sources of these (`devices/`, by the catalogue).
//! Invariants: stalls and hangs depend on virtual time alone.

use afflux_engine::Nanos;
use afflux_simulator::catalogue::{DeviceChoice, Model};

use crate::experiment::LabError;

/// Stalls and hangs on top of the device's model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Script {
    /// Nothing beyond the model.
    None,
    /// Every `every_ns` the device completes nothing for `ns`.
    Stalls { every_ns: u64, ns: u64 },
    /// One hang, from `from_ns` on, for `ns`.
    Hang { from_ns: u64, ns: u64 },
}

impl Script {
    /// Begin and end of the next stall that begins at or after `at_ns`.
    pub(super) fn next(self, at_ns: u64) -> Option<(u64, u64)> {
        match self {
            Self::None => None,
            Self::Stalls { every_ns, ns } => {
                let from = at_ns.div_ceil(every_ns).max(1) * every_ns;
                Some((from, from + ns))
            }
            Self::Hang { from_ns, ns } => (at_ns <= from_ns).then_some((from_ns, from_ns + ns)),
        }
    }

    /// Time that the device has stood still until `until_ns`.
    pub(super) fn stood_ns(self, until_ns: u64) -> u64 {
        let (mut at, mut sum) = (0, 0);
        while let Some((from, to)) = self.next(at).filter(|(from, _)| *from < until_ns) {
            sum += to.min(until_ns) - from;
            at = to;
        }
        sum
    }
}

/// A device of the table.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) name: &'static str,
    /// Name in the catalogue, and changes to the figures there.
    choice: &'static str,
    pub(super) script: Script,
    /// Seconds that writers write, in a full run and in a quick one; fewer on devices that take much data in a second.
    pub(super) seconds: (u64, u64),
}

const fn plain(name: &'static str, choice: &'static str, seconds: (u64, u64)) -> Device {
    Device { name, choice, script: Script::None, seconds }
}

/// All devices. Changes to the catalogue's figures are modelled: a bare byte rate has no file system's journal behind
/// it, and the shingled disk's cache zone is small enough to be filled.
pub(super) const DEVICES: &[Device] = &[
    plain("25MB/s", "throttled,capacity_bytes=1 TB,longer_alone=0,journal_bytes=0,commit_bytes=0", (60, 20)),
    plain("hdd", "disk", (40, 20)),
    plain("hdd-uncached", "disk,write_cache_bytes=0", (40, 20)),
    plain("usb", "usb-stick", (60, 30)),
    Device {
        script: Script::Stalls { every_ns: 5 * Nanos::SECOND, ns: 350 * Nanos::MILLISECOND },
        ..plain("ssd-stalls", "sata-ssd", (20, 11))
    },
    plain("smr", "smr-disk,shingle_cache_bytes=1 GB", (40, 20)),
    Device {
        script: Script::Hang { from_ns: 10 * Nanos::SECOND, ns: 10 * Nanos::SECOND },
        ..plain(
            "hang",
            "throttled,rate=100MB,capacity_bytes=1 TB,longer_alone=0,journal_bytes=0,commit_bytes=0",
            (40, 25),
        )
    },
    plain("nvme", "nvme-ssd", (5, 2)),
    plain("object", "object-store", (20, 8)),
    plain("ssd", "sata-ssd", (20, 8)),
];

/// The device called `name`.
pub(super) fn device(name: &str) -> Result<&'static Device, String> {
    DEVICES.iter().find(|device| device.name == name).ok_or_else(|| {
        let names: Vec<&str> = DEVICES.iter().map(|device| device.name).collect();
        format!("'{name}' is none of {}", names.join(", "))
    })
}

impl Device {
    pub(super) fn model(&self) -> Result<Model, LabError> {
        DeviceChoice::parse(self.choice).and_then(|choice| choice.model(None)).map_err(LabError::failed)
    }
}

#[cfg(test)]
mod tests;
