//! A file or device with a byte rate, below a slow disk.
//!
//! Owns: the two ways to hold the rate: a FUSE server in this process, and the block layer's throttle.
//! Does not own: the disk above it (`slow_disk`).
//! Invariants: a new rate takes effect at once. A shell lifts the throttle if this process dies first.

use std::path::Path;

use afflux_disk::{DiskFile, DiskOptions, Rates};
use afflux_scratch::Guard;

use super::command::{run, run_down};
use super::error::HardwareError;
use super::loop_device::{attach, number_of};

/// The files of the block controller, version 1. At the root they act on every task, writeback by kernel threads
/// included.
const BLKIO: &str = "/sys/fs/cgroup/blkio";

/// Arguments of both scripts: throttle folder, number of the throttled device, the device.
const LIFT: &str = r#"for kind in read write; do echo "$2 0" > "$1/blkio.throttle.${kind}_bps_device"; done"#;
const TAKE_DOWN: &str = r#"losetup -d "$3""#;

/// Bytes a second; `None` for the speed of the host.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskRates {
    /// For reads.
    pub read_bytes_per_s: Option<u64>,
    /// For writes.
    pub write_bytes_per_s: Option<u64>,
}

/// A file or device with a byte rate.
pub(super) enum RatedFile {
    /// The file of our server.
    Served(DiskFile),
    /// A loop device that the kernel throttles.
    Throttled(ThrottledDevice),
}

impl RatedFile {
    /// A file of a server in this process; its parts are in `directory`.
    pub(super) fn served(directory: &Path, bytes: u64) -> Result<Self, HardwareError> {
        // No power is cut here, so a volatile cache would only cost time.
        let options = DiskOptions { cache_bytes: 0, ..DiskOptions::new(bytes.next_multiple_of(4096)) };
        Ok(Self::Served(DiskFile::new(directory, options)?))
    }

    /// A loop device over a file in `directory`, throttled by the kernel.
    pub(super) fn throttled(directory: &Path, bytes: u64) -> Result<Self, HardwareError> {
        let throttle = format!("{BLKIO}/blkio.throttle.write_bps_device");
        if !Path::new(&throttle).exists() {
            let what = format!("no throttled disk: {throttle} is not there (blkio, version 1)");
            return Err(HardwareError { what });
        }
        let image = directory.join("slow.img").to_string_lossy().into_owned();
        run("fallocate", &["-l", &bytes.to_string(), &image])?;
        let device = attach(&image, None)?;
        let mut throttled = ThrottledDevice { number: String::new(), device, guard: None };
        throttled.number = number_of(&throttled.device)?;
        let arguments = [BLKIO, &throttled.number, &throttled.device];
        throttled.guard = Some(Guard::new(LIFT, TAKE_DOWN, &arguments)?);
        Ok(Self::Throttled(throttled))
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Served(file) => file.path(),
            Self::Throttled(device) => Path::new(&device.device),
        }
    }

    /// Sets the rates.
    pub(super) fn set(&self, rates: DiskRates) -> Result<(), HardwareError> {
        match self {
            Self::Served(file) => {
                file.set_rates(Rates {
                    read_bytes_per_s: rates.read_bytes_per_s.unwrap_or(0),
                    write_bytes_per_s: rates.write_bytes_per_s.unwrap_or(0),
                    ..Rates::default()
                });
                Ok(())
            }
            Self::Throttled(device) => device.set(rates),
        }
    }
}

/// A loop device that the kernel throttles.
pub(super) struct ThrottledDevice {
    device: String,
    /// Major and minor number, in the throttle's form.
    number: String,
    guard: Option<Guard>,
}

impl ThrottledDevice {
    fn set(&self, rates: DiskRates) -> Result<(), HardwareError> {
        for (kind, rate) in [("read", rates.read_bytes_per_s), ("write", rates.write_bytes_per_s)] {
            let file = format!("{BLKIO}/blkio.throttle.{kind}_bps_device");
            let line = format!("{} {}", self.number, rate.unwrap_or(0));
            std::fs::write(&file, &line)
                .map_err(|error| HardwareError { what: format!("'{line}' to {file}: {error}") })?;
        }
        Ok(())
    }
}

impl Drop for ThrottledDevice {
    fn drop(&mut self) {
        // The kernel reuses the device number together with its settings.
        let _ = self.set(DiskRates::default());
        run_down("losetup", &["-d", &self.device]);
        // If the process dies before, the guard takes down the device.
        drop(self.guard.take());
    }
}
