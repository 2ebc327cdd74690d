//! A disk with a byte rate: a loop device over a file, throttled by the kernel's block layer.
//!
//! The throttle keeps its requests in a list without a bound, which no disk has. So there is a form with a queue: a
//! loop device with few and small requests over the throttled one.
//!
//! Owns: the file, the loop devices, the ext4, the mount, the throttle.
//! Does not own: the data on it.
//! Invariants: the throttle is lifted before the unmount, which would otherwise take as long as the remaining writes.
//! If the process dies, a shell that waits for its end takes everything down. The shell lifts the throttle first,
//! because a thread in a sync would keep the process alive until the sync ends.

use std::path::{Path, PathBuf};

use afflux_scratch::{Guard, Scratch};

use super::command::{run, run_down};
use super::error::HardwareError;

/// The files of the block controller, version 1. At the root they act on every task, writeback by kernel threads
/// included.
const BLKIO: &str = "/sys/fs/cgroup/blkio";

/// Arguments of both scripts: throttle folder, number of the throttled device, number of the mounted device, mount,
/// mounted device. Then the throttled device if it is another, the number of a loop device to remove or an empty text,
/// and the program to remove it.
const LIFT: &str = r#"for kind in read write; do echo "$2 0" > "$1/blkio.throttle.${kind}_bps_device"; done"#;
const TAKE_DOWN: &str = r#"echo 0 > "/sys/class/bdi/$3/strict_limit"
echo 100 > "/sys/class/bdi/$3/max_ratio"
umount "$4" || umount -l "$4"
losetup -d "$5"
if [ -n "$6" ]; then losetup -d "$6"; fi
if [ -n "$7" ]; then perl -e "$8" "$7"; fi"#;

/// The queue of a disk: 64 requests of 128 KiB, so at most 8 MiB are in flight.
const QUEUE: [(&str, &str); 3] = [("scheduler", "mq-deadline"), ("nr_requests", "64"), ("max_sectors_kb", "128")];

/// New loop devices have numbers from here on, so that no device of another program is taken.
const FRESH_FROM: u32 = 64;
const FRESH_UNTIL: u32 = 1024;
/// Most numbers to try.
const FRESH_TRIES: usize = 8;
/// Removes the loop device of this number: `LOOP_CTL_REMOVE`, for which not every host has a program. The device is
/// busy for a moment after it was detached.
const REMOVE_LOOP: &str = r#"open(my $c, "+<", "/dev/loop-control") or exit 1;
for (1 .. 40) { exit 0 if ioctl($c, 0x4C81, $ARGV[0] + 0); select(undef, undef, undef, 0.05) }"#;

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
    /// The throttled device behind the loop device, if the disk has a queue.
    behind: Option<String>,
    /// The loop device's number, if the device did not exist before.
    fresh: Option<u32>,
    mounted: bool,
    /// Major and minor number of the mounted device.
    number: String,
    /// Major and minor number of the throttled device, in the throttle's form.
    throttled: String,
    guard: Option<Guard>,
    /// The directory with the image and the mount. Dropped last.
    _scratch: Scratch,
}

impl SlowDisk {
    /// Makes a disk of `bytes` in `directory`, formatted with ext4 and mounted. Takes seconds.
    ///
    /// # Errors
    /// Without root, loop devices, or the block controller's throttle; the error says which.
    pub fn new(directory: &Path, bytes: u64, rates: DiskRates) -> Result<Self, HardwareError> {
        Self::over(directory, bytes, rates, false, false)
    }

    /// As [`SlowDisk::new`], over a block device that did not exist before. The kernel knows nothing about such a
    /// device; a used one keeps its bandwidth, rate limit and share of completed writes. A drop removes the device
    /// again if the program perl is available, and otherwise leaves it unused.
    ///
    /// # Errors
    /// As [`SlowDisk::new`].
    pub fn fresh(directory: &Path, bytes: u64, rates: DiskRates) -> Result<Self, HardwareError> {
        Self::over(directory, bytes, rates, true, false)
    }

    /// As [`SlowDisk::fresh`], with a queue of requests before the throttle, as in a disk.
    ///
    /// # Errors
    /// As [`SlowDisk::new`].
    pub fn queued(directory: &Path, bytes: u64, rates: DiskRates) -> Result<Self, HardwareError> {
        Self::over(directory, bytes, rates, true, true)
    }

    /// Checks for the requirements of a throttled disk, before anything is set up.
    ///
    /// # Errors
    /// Without root or without the throttle.
    pub fn probe() -> Result<(), HardwareError> {
        if !rustix::process::geteuid().is_root() {
            return Err(HardwareError { what: "a throttled disk needs root".to_owned() });
        }
        let throttle = format!("{BLKIO}/blkio.throttle.write_bps_device");
        if !Path::new(&throttle).exists() {
            let what = format!("no throttled disk: {throttle} is not there (blkio, version 1)");
            return Err(HardwareError { what });
        }
        Ok(())
    }

    fn over(directory: &Path, bytes: u64, rates: DiskRates, fresh: bool, queued: bool) -> Result<Self, HardwareError> {
        Self::probe()?;
        let scratch = Scratch::guarded(directory, "disk")?;
        let (image, mount) = (scratch.path().join("slow.img"), scratch.path().join("slow"));
        // From here on a drop takes down every part that exists.
        let mut disk = Self {
            mount,
            loop_device: String::new(),
            behind: None,
            fresh: None,
            mounted: false,
            number: String::new(),
            throttled: String::new(),
            guard: None,
            _scratch: scratch,
        };
        let image_text = image.to_string_lossy().into_owned();
        run("fallocate", &["-l", &bytes.to_string(), &image_text])?;
        if queued {
            disk.behind = Some(attach(&image_text, None)?);
        }
        let below = disk.behind.as_ref().unwrap_or(&image_text);
        (disk.loop_device, disk.fresh) = match fresh {
            true => attach_fresh(below).map(|(device, number)| (device, Some(number)))?,
            false => (attach(below, None)?, None),
        };
        disk.number = number_of(&disk.loop_device)?;
        disk.throttled = number_of(disk.behind.as_ref().unwrap_or(&disk.loop_device))?;
        disk.guard = Some(disk.guarded()?);
        if queued {
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
            BLKIO.to_owned(),
            self.throttled.clone(),
            self.number.clone(),
            text(&self.mount),
            self.loop_device.clone(),
            self.behind.clone().unwrap_or_default(),
            self.fresh.map_or_else(String::new, |number| number.to_string()),
            REMOVE_LOOP.to_owned(),
        ];
        Ok(Guard::new(LIFT, TAKE_DOWN, &arguments)?)
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
    /// When the block controller refuses them.
    pub fn throttle(&self, rates: DiskRates) -> Result<(), HardwareError> {
        for (kind, rate) in [("read", rates.read_bytes_per_s), ("write", rates.write_bytes_per_s)] {
            let file = format!("{BLKIO}/blkio.throttle.{kind}_bps_device");
            let line = format!("{} {}", self.throttled, rate.unwrap_or(0));
            std::fs::write(&file, &line)
                .map_err(|error| HardwareError { what: format!("'{line}' to {file}: {error}") })?;
        }
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
        if !self.throttled.is_empty() {
            let _ = self.throttle(DiskRates::default());
            // The kernel reuses the device number together with its settings.
            let _ = self.limit_dirty(None);
        }
        if self.mounted {
            run_down("umount", &[&self.mount.to_string_lossy()]);
        }
        let devices = [Some(&self.loop_device).filter(|device| !device.is_empty()), self.behind.as_ref()];
        for device in devices.into_iter().flatten() {
            run_down("losetup", &["-d", device]);
        }
        if let Some(number) = self.fresh {
            run_down("perl", &["-e", REMOVE_LOOP, &number.to_string()]);
        }
        // Dropped last: if the process dies before, the guard takes down the rest.
        drop(self.guard.take());
    }
}

/// Attaches a loop device to a file or a device: the device of this number, or any.
fn attach(below: &str, number: Option<u32>) -> Result<String, HardwareError> {
    match number.map(|number| format!("/dev/loop{number}")) {
        Some(device) => run("losetup", &["--direct-io=on", &device, below]).map(|_| device),
        None => run("losetup", &["-f", "--show", "--direct-io=on", below]),
    }
}

/// Attaches a loop device that did not exist. If another program takes the number meanwhile, tries the next one.
fn attach_fresh(below: &str) -> Result<(String, u32), HardwareError> {
    let unused = |number: &u32| !Path::new(&format!("/sys/block/loop{number}")).exists();
    let none = HardwareError { what: format!("loop{FRESH_FROM} to loop{} all exist", FRESH_UNTIL - 1) };
    let mut tried = Err(none);
    for number in (FRESH_FROM..FRESH_UNTIL).filter(unused).take(FRESH_TRIES) {
        tried = attach(below, Some(number)).map(|device| (device, number));
        if tried.is_ok() {
            break;
        }
    }
    tried
}

/// Major and minor number, as `7:0`.
fn number_of(device: &str) -> Result<String, HardwareError> {
    run("lsblk", &["-ndo", "MAJ:MIN", device]).map(|number| number.trim().to_owned())
}
