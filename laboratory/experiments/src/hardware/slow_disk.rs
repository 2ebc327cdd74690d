//! A disk with a byte rate: a loop device over a file with that rate.
//!
//! The file is that of a FUSE server in this process (`afflux-disk`). There is a form with a queue of few and small
//! requests, as in a disk.
//!
//! Owns: the loop device, the ext4, the mount, the queue.
//! Does not own: the data on it, the file with the rate (`afflux_disk`).
//! Invariants: the rate is lifted before the unmount, which would otherwise take as long as the remaining writes. If
//! the process dies, a shell that waits for its end takes everything down. The file with the rate has a shell of its
//! own.

use std::path::{Path, PathBuf};

use afflux_disk::{DiskFile, DiskOptions, Rates};
use afflux_scratch::{Guard, Scratch};

use super::command::{HardwareError, run, run_down};
use super::loop_device::{REMOVE_LOOP, attach, attach_fresh, number_of};

/// Arguments of the script: number of the mounted device, mount, device, and the number of a loop device to remove or
/// an empty text, and the program to remove it.
const TAKE_DOWN: &str = r#"echo 0 > "/sys/class/bdi/$1/strict_limit"
echo 100 > "/sys/class/bdi/$1/max_ratio"
umount "$2" || umount -l "$2"
losetup -d "$3"
if [ -n "$4" ]; then perl -e "$5" "$4"; fi"#;

/// The queue of a disk: 64 requests of 128 KiB, so at most 8 MiB are in flight.
const QUEUE: [(&str, &str); 3] = [("scheduler", "mq-deadline"), ("nr_requests", "64"), ("max_sectors_kb", "128")];

/// Bytes a second; `None` for the speed of the host.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskRates {
    /// For reads.
    pub read_bytes_per_s: Option<u64>,
    /// For writes.
    pub write_bytes_per_s: Option<u64>,
}

/// The free bytes on the file system of a directory.
///
/// # Errors
/// When the program df fails.
pub fn free_bytes(directory: &Path) -> Result<u64, HardwareError> {
    let text = run("df", &["--output=avail", "-B1", &directory.to_string_lossy()])?;
    let number = text.lines().last().and_then(|line| line.trim().parse().ok());
    number.ok_or_else(|| HardwareError { what: format!("df said '{text}'") })
}

/// A mounted slow disk.
pub struct SlowDisk {
    mount: PathBuf,
    loop_device: String,
    /// The loop device's number, if the device did not exist before.
    fresh: Option<u32>,
    mounted: bool,
    /// Major and minor number of the mounted device.
    number: String,
    guard: Option<Guard>,
    /// Dropped after the device over it.
    file: DiskFile,
    /// The directory with the file and the mount. Dropped last.
    _scratch: Scratch,
}

impl SlowDisk {
    /// Makes a disk of `bytes` in `directory`, formatted with ext4 and mounted. Takes seconds.
    ///
    /// # Errors
    /// Without root, loop devices or FUSE; the error says which.
    pub fn new(directory: &Path, bytes: u64, rates: DiskRates) -> Result<Self, HardwareError> {
        Self::over(directory, bytes, rates, false)
    }

    /// As [`SlowDisk::new`], with a queue of requests before the rate, as in a disk, and over a block device that did
    /// not exist before. The kernel knows nothing about such a device; a used one still has its bandwidth, rate limit
    /// and share of completed writes. A drop removes the device again if the program perl is available, and otherwise
    /// leaves it unused.
    ///
    /// # Errors
    /// As [`SlowDisk::new`].
    pub fn queued(directory: &Path, bytes: u64, rates: DiskRates) -> Result<Self, HardwareError> {
        Self::over(directory, bytes, rates, true)
    }

    /// Checks for the requirements of a slow disk, before anything is set up.
    ///
    /// # Errors
    /// Without root, FUSE or loop devices.
    pub fn probe() -> Result<(), HardwareError> {
        if !rustix::process::geteuid().is_root() {
            return Err(HardwareError { what: "a slow disk needs root".to_owned() });
        }
        for device in ["/dev/fuse", "/dev/loop-control"] {
            if !Path::new(device).exists() {
                return Err(HardwareError { what: format!("no slow disk: {device} is not there") });
            }
        }
        Ok(())
    }

    fn over(directory: &Path, bytes: u64, rates: DiskRates, has_queue: bool) -> Result<Self, HardwareError> {
        Self::probe()?;
        let scratch = Scratch::guarded(directory, "disk")?;
        let mount = scratch.path().join("slow");
        // No power is cut here, so a volatile cache would only cost time.
        let options = DiskOptions { cache_bytes: 0, ..DiskOptions::new(bytes.next_multiple_of(4096)) };
        let file = DiskFile::new(scratch.path(), options)?;
        // From here on a drop takes down every part that exists.
        let mut disk = Self {
            mount,
            loop_device: String::new(),
            fresh: None,
            mounted: false,
            number: String::new(),
            guard: None,
            file,
            _scratch: scratch,
        };
        let below = disk.file.path().to_string_lossy().into_owned();
        (disk.loop_device, disk.fresh) = match has_queue {
            true => attach_fresh(&below).map(|(device, number)| (device, Some(number)))?,
            false => (attach(&below, None)?, None),
        };
        disk.number = number_of(&disk.loop_device)?;
        disk.guard = Some(disk.guarded()?);
        if has_queue {
            disk.limit_queue()?;
        }
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-E", lazy, "-F", &disk.loop_device])?;
        std::fs::create_dir(&disk.mount)
            .map_err(|error| HardwareError { what: format!("{}: {error}", disk.mount.display()) })?;
        run("mount", &[&disk.loop_device, &disk.mount.to_string_lossy()])?;
        disk.mounted = true;
        disk.settle()?;
        disk.throttle(rates)?;
        Ok(disk)
    }

    fn guarded(&self) -> Result<Guard, HardwareError> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let arguments = [
            self.number.clone(),
            text(&self.mount),
            self.loop_device.clone(),
            self.fresh.map_or_else(String::new, |number| number.to_string()),
            REMOVE_LOOP.to_owned(),
        ];
        Ok(Guard::new("", TAKE_DOWN, &arguments)?)
    }

    fn limit_queue(&self) -> Result<(), HardwareError> {
        for (knob, value) in QUEUE {
            let file = format!("/sys/block/{}/queue/{knob}", self.name());
            std::fs::write(&file, value)
                .map_err(|error| HardwareError { what: format!("{value} to {file}: {error}") })?;
        }
        Ok(())
    }

    /// Sets the rates; takes effect at once.
    ///
    /// # Errors
    /// None today: a file of our own server takes any rate.
    pub fn throttle(&self, rates: DiskRates) -> Result<(), HardwareError> {
        self.file.set_rates(Rates {
            read_bytes_per_s: rates.read_bytes_per_s.unwrap_or(0),
            write_bytes_per_s: rates.write_bytes_per_s.unwrap_or(0),
            ..Rates::default()
        });
        Ok(())
    }

    /// The name of the block device, as `loop0`.
    pub fn name(&self) -> &str {
        self.loop_device.rsplit('/').next().unwrap_or_default()
    }

    /// The major and minor number, as `7:0`.
    pub fn number(&self) -> &str {
        &self.number
    }

    /// Holds the kernel's dirty bytes of this disk strictly to `bytes_max`; `None` restores the kernel's own rule.
    ///
    /// # Errors
    /// If the kernel has no such knobs (before 6.2).
    pub fn limit_dirty(&self, bytes_max: Option<u64>) -> Result<(), HardwareError> {
        let (knob, value) = bytes_max.map_or(("max_ratio", 100), |bytes| ("max_bytes", bytes));
        for (knob, value) in [(knob, value), ("strict_limit", u64::from(bytes_max.is_some()))] {
            let file = format!("/sys/class/bdi/{}/{knob}", self.number);
            std::fs::write(&file, value.to_string())
                .map_err(|error| HardwareError { what: format!("{value} to {file}: {error}") })?;
        }
        Ok(())
    }

    /// Makes its file system write all data and the journal. Takes as long as the disk needs.
    ///
    /// # Errors
    /// When the sync fails.
    pub fn settle(&self) -> Result<(), HardwareError> {
        run("sync", &["-f", &self.mount.to_string_lossy()]).map(drop)
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.mount
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        let _ = self.throttle(DiskRates::default());
        if !self.number.is_empty() {
            // The kernel reuses the device number together with its settings.
            let _ = self.limit_dirty(None);
        }
        if self.mounted {
            run_down("umount", &[&self.mount.to_string_lossy()]);
        }
        if !self.loop_device.is_empty() {
            run_down("losetup", &["-d", &self.loop_device]);
        }
        if let Some(number) = self.fresh {
            run_down("perl", &["-e", REMOVE_LOOP, &number.to_string()]);
        }
        // Dropped last: if the process dies before, the guard takes down the rest.
        drop(self.guard.take());
    }
}
