//! A disk with a byte rate: a loop device over a file, throttled by the kernel's block layer.
//!
//! Owns: the file, the loop device, its ext4, the mount, the throttle.
//! Does not own: what is written to it.
//! Invariants: the throttle is lifted before the mount is taken down, or that would take as long as
//! what is left to write.

use std::path::{Path, PathBuf};

use super::HardwareError;
use super::command::{run, run_down};

/// Where the block controller of version 1 has its files; at the root they act on everybody,
/// writeback by kernel threads included.
const BLKIO: &str = "/sys/fs/cgroup/blkio";

/// Bytes a second; `None` is as fast as the host is.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskRates {
    /// For reads.
    pub read_bytes_per_s: Option<u64>,
    /// For writes.
    pub write_bytes_per_s: Option<u64>,
}

/// A mounted slow disk.
pub struct SlowDisk {
    image: PathBuf,
    mount: PathBuf,
    loop_device: String,
    mounted: bool,
    /// Major and minor number as the throttle takes it.
    number: String,
}

impl SlowDisk {
    /// Makes one of `bytes` in `directory`, formatted with ext4 and mounted. Takes seconds.
    ///
    /// # Errors
    /// Without root, loop devices, or the block controller's throttle: says which.
    pub fn new(directory: &Path, bytes: u64, rates: DiskRates) -> Result<Self, HardwareError> {
        let throttle = format!("{BLKIO}/blkio.throttle.write_bps_device");
        if !Path::new(&throttle).exists() {
            return Err(HardwareError {
                what: format!("no throttled disk: {throttle} is not there (blkio, version 1)"),
            });
        }
        let image = directory.join("slow.img");
        let mount = directory.join("slow");
        let image_text = image.to_string_lossy().into_owned();
        run("fallocate", &["-l", &bytes.to_string(), &image_text])?;
        let loop_device = match run("losetup", &["-f", "--show", "--direct-io=on", &image_text]) {
            Ok(device) => device,
            Err(error) => {
                let _ = std::fs::remove_file(&image);
                return Err(error);
            }
        };
        let mut disk = Self { image, mount, loop_device, mounted: false, number: String::new() };
        disk.number = run("lsblk", &["-ndo", "MAJ:MIN", &disk.loop_device])?.trim().to_owned();
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-E", lazy, "-F", &disk.loop_device])?;
        std::fs::create_dir_all(&disk.mount)
            .map_err(|error| HardwareError { what: format!("{}: {error}", disk.mount.display()) })?;
        run("mount", &[&disk.loop_device, &disk.mount.to_string_lossy()])?;
        disk.mounted = true;
        run("sync", &[])?;
        disk.throttle(rates)?;
        Ok(disk)
    }

    /// Sets its rates; acts at once.
    pub fn throttle(&self, rates: DiskRates) -> Result<(), HardwareError> {
        for (kind, rate) in [("read", rates.read_bytes_per_s), ("write", rates.write_bytes_per_s)] {
            let file = format!("{BLKIO}/blkio.throttle.{kind}_bps_device");
            let line = format!("{} {}", self.number, rate.unwrap_or(0));
            std::fs::write(&file, &line)
                .map_err(|error| HardwareError { what: format!("'{line}' to {file}: {error}") })?;
        }
        Ok(())
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.mount
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        if !self.number.is_empty() {
            let _ = self.throttle(DiskRates::default());
        }
        if self.mounted {
            run_down("umount", &[&self.mount.to_string_lossy()]);
        }
        run_down("losetup", &["-d", &self.loop_device]);
        let _ = std::fs::remove_file(&self.image);
        let _ = std::fs::remove_dir(&self.mount);
    }
}
