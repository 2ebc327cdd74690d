//! A disk with a byte rate: a loop device over a file, throttled by the kernel's block layer.
//!
//! Owns: the file, the loop device, its ext4, the mount, the throttle.
//! Does not own: what is written to it.
//! Invariants: the throttle is lifted before the mount is taken down, or that would take as long as
//! what is left to write. If the process dies, a shell that waits for that takes all down.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::command::{run, run_down};
use super::error::HardwareError;

/// Where the block controller of version 1 has its files; at the root they act on everybody,
/// writeback by kernel threads included.
const BLKIO: &str = "/sys/fs/cgroup/blkio";

/// Waits for a line; if there is none because whoever would say it is gone, takes the disk down.
/// Arguments: throttle folder, device number, mount, loop device, image; a loop device's number to be removed, or
/// nothing, and how.
const GUARD: &str = r#"read said && exit 0
for kind in read write; do echo "$2 0" > "$1/blkio.throttle.${kind}_bps_device"; done
echo 0 > "/sys/class/bdi/$2/strict_limit"
echo 100 > "/sys/class/bdi/$2/max_ratio"
umount "$3" || umount -l "$3"
losetup -d "$4"
rm -f "$5"
rmdir "$3"
if [ -n "$6" ]; then perl -e "$7" "$6"; fi"#;

/// Loop devices that did not exist begin here, so that those of others are not taken.
const FRESH_FROM: u32 = 64;
const FRESH_UNTIL: u32 = 1024;
/// Has a loop device of this number removed: `LOOP_CTL_REMOVE`, for which there is no program everywhere. It is busy
/// for a moment after it was detached.
const REMOVE_LOOP: &str = r#"open(my $c, "+<", "/dev/loop-control") or exit 1;
for (1 .. 40) { exit 0 if ioctl($c, 0x4C81, $ARGV[0] + 0); select(undef, undef, undef, 0.05) }"#;

/// Bytes a second; `None` is as fast as the host is.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskRates {
    /// For reads.
    pub read_bytes_per_s: Option<u64>,
    /// For writes.
    pub write_bytes_per_s: Option<u64>,
}

/// Bytes that are free on the file system of a directory.
///
/// # Errors
/// When the program df cannot say.
pub fn free_bytes(directory: &Path) -> Result<u64, HardwareError> {
    let text = run("df", &["--output=avail", "-B1", &directory.to_string_lossy()])?;
    let number = text.lines().last().and_then(|line| line.trim().parse().ok());
    number.ok_or_else(|| HardwareError { what: format!("df said '{text}'") })
}

/// A mounted slow disk.
pub struct SlowDisk {
    image: PathBuf,
    mount: PathBuf,
    loop_device: String,
    /// Its number, if it did not exist before.
    fresh: Option<u32>,
    mounted: bool,
    /// Major and minor number as the throttle takes it.
    number: String,
    guard: Option<Child>,
}

impl SlowDisk {
    /// Makes one of `bytes` in `directory`, formatted with ext4 and mounted. Takes seconds.
    ///
    /// # Errors
    /// Without root, loop devices, or the block controller's throttle: says which.
    pub fn new(directory: &Path, bytes: u64, rates: DiskRates) -> Result<Self, HardwareError> {
        Self::over(directory, bytes, rates, None)
    }

    /// The same over a block device that did not exist before, so that the kernel knows nothing of it yet: what it
    /// learnt of one that was used earlier (bandwidth, rate limit, share of what was written) stays with it. The
    /// device is removed again where the program perl is to be had, and is left unused otherwise.
    ///
    /// # Errors
    /// As [`SlowDisk::new`].
    pub fn fresh(directory: &Path, bytes: u64, rates: DiskRates) -> Result<Self, HardwareError> {
        let unused = |number: &u32| !Path::new(&format!("/sys/block/loop{number}")).exists();
        let number = (FRESH_FROM..FRESH_UNTIL).find(unused);
        let none = || HardwareError { what: format!("loop{FRESH_FROM} to loop{} all exist", FRESH_UNTIL - 1) };
        Self::over(directory, bytes, rates, Some(number.ok_or_else(none)?))
    }

    fn over(directory: &Path, bytes: u64, rates: DiskRates, fresh: Option<u32>) -> Result<Self, HardwareError> {
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
        let attached = match fresh.map(|number| format!("/dev/loop{number}")) {
            Some(device) => run("losetup", &["--direct-io=on", &device, &image_text]).map(|_| device),
            None => run("losetup", &["-f", "--show", "--direct-io=on", &image_text]),
        };
        let loop_device = match attached {
            Ok(device) => device,
            Err(error) => {
                let _ = std::fs::remove_file(&image);
                return Err(error);
            }
        };
        let mut disk = Self { image, mount, loop_device, fresh, mounted: false, number: String::new(), guard: None };
        disk.number = run("lsblk", &["-ndo", "MAJ:MIN", &disk.loop_device])?.trim().to_owned();
        disk.guard = Some(disk.guarded()?);
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-E", lazy, "-F", &disk.loop_device])?;
        std::fs::create_dir_all(&disk.mount)
            .map_err(|error| HardwareError { what: format!("{}: {error}", disk.mount.display()) })?;
        run("mount", &[&disk.loop_device, &disk.mount.to_string_lossy()])?;
        disk.mounted = true;
        disk.settle()?;
        disk.throttle(rates)?;
        Ok(disk)
    }

    /// In a process group of its own, so that Ctrl-C does not end it, too.
    fn guarded(&self) -> Result<Child, HardwareError> {
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "sh", BLKIO, &self.number]).args([&self.mount]).arg(&self.loop_device);
        command.arg(&self.image).arg(self.fresh.map_or_else(String::new, |number| number.to_string()));
        command.arg(REMOVE_LOOP).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.spawn().map_err(|error| HardwareError { what: format!("sh could not be started: {error}") })
    }

    /// Sets its rates; acts at once.
    ///
    /// # Errors
    /// When the block controller refuses them.
    pub fn throttle(&self, rates: DiskRates) -> Result<(), HardwareError> {
        for (kind, rate) in [("read", rates.read_bytes_per_s), ("write", rates.write_bytes_per_s)] {
            let file = format!("{BLKIO}/blkio.throttle.{kind}_bps_device");
            let line = format!("{} {}", self.number, rate.unwrap_or(0));
            std::fs::write(&file, &line)
                .map_err(|error| HardwareError { what: format!("'{line}' to {file}: {error}") })?;
        }
        Ok(())
    }

    /// Its name among the block devices, as `loop0`.
    pub fn name(&self) -> &str {
        self.loop_device.rsplit('/').next().unwrap_or_default()
    }

    /// Its major and minor number, as `7:0`.
    pub fn number(&self) -> &str {
        &self.number
    }

    /// Holds what the kernel keeps dirty of it strictly to so many bytes; `None` is the kernel's own rule.
    ///
    /// # Errors
    /// When the kernel has no such knobs (before 6.2).
    pub fn limit_dirty(&self, bytes_max: Option<u64>) -> Result<(), HardwareError> {
        let (knob, value) = bytes_max.map_or(("max_ratio", 100), |bytes| ("max_bytes", bytes));
        for (knob, value) in [(knob, value), ("strict_limit", u64::from(bytes_max.is_some()))] {
            let file = format!("/sys/class/bdi/{}/{knob}", self.number);
            std::fs::write(&file, value.to_string())
                .map_err(|error| HardwareError { what: format!("{value} to {file}: {error}") })?;
        }
        Ok(())
    }

    /// Has its file system write what it has to, journal included. As slow as the disk is.
    ///
    /// # Errors
    /// When that fails.
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
        if !self.number.is_empty() {
            let _ = self.throttle(DiskRates::default());
            // The number is given out again, and what was set for it stays with it.
            let _ = self.limit_dirty(None);
        }
        if self.mounted {
            run_down("umount", &[&self.mount.to_string_lossy()]);
        }
        run_down("losetup", &["-d", &self.loop_device]);
        if let Some(number) = self.fresh {
            run_down("perl", &["-e", REMOVE_LOOP, &number.to_string()]);
        }
        let _ = std::fs::remove_file(&self.image);
        let _ = std::fs::remove_dir(&self.mount);
        if let Some(mut guard) = self.guard.take() {
            let _ = guard.stdin.take().map(|mut stdin| stdin.write_all(b"done\n"));
            let _ = guard.wait();
        }
    }
}
