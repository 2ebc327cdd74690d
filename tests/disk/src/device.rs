//! The block device over the disk's file, and a file system on it.
//!
//! Owns: the mount of the FUSE server, the loop device, the ext4.
//! Does not own: the bytes (`medium`), the answers to the kernel (`server`).
//! Invariants: the file system goes before the loop device, the device before the FUSE mount. A process that
//! dies leaves a FUSE mount, and the kernel fails every request to the mount.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use afflux_scratch::Scratch;
use fuser::{BackgroundSession, Config, MountOption};

use crate::medium::Medium;
use crate::server::{FILE, Parts, Server};
use crate::timing::{Clock, Rates};
use crate::{DiskOptions, SECTOR_BYTES};

/// A disk with its block device.
pub struct Disk {
    parts: Arc<Parts>,
    /// Such as `/dev/loop7`; none while the disk is detached.
    device: Option<String>,
    session: Option<BackgroundSession>,
    scratch: Scratch,
}

impl Disk {
    /// Makes a disk of zeros. Its files are in a directory of their own inside `directory`.
    ///
    /// # Errors
    /// Without root, `/dev/fuse` or loop devices; the text says which.
    pub fn new(directory: &Path, options: DiskOptions) -> io::Result<Self> {
        if !options.bytes.is_multiple_of(4096) || options.bytes == 0 {
            return Err(io::Error::other(format!("a disk of {} bytes: no multiple of 4096", options.bytes)));
        }
        let scratch = Scratch::new(directory, "disk")?;
        let durable = File::options().read(true).write(true).create_new(true).open(scratch.path().join("medium"))?;
        durable.set_len(options.bytes)?;
        let medium = Medium::new(durable, options.flushes);
        let parts = Arc::new(Parts::new(medium, Clock::start(options.rates), options.bytes));
        let point = scratch.path().join("point");
        std::fs::create_dir(&point)?;
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("afflux-disk".to_owned())];
        let session = fuser::spawn_mount(Server(Arc::clone(&parts)), &point, &config)?;
        let mut disk = Self { parts, device: None, session: Some(session), scratch };
        disk.attach()?;
        Ok(disk)
    }

    /// The path of the block device, such as `/dev/loop7`; empty while it is detached.
    pub fn device(&self) -> &str {
        self.device.as_deref().unwrap_or_default()
    }

    /// Sets the time of later requests.
    pub fn set_rates(&self, rates: Rates) {
        self.parts.clock.set(rates);
    }

    /// Every request for these bytes fails from now on. Whole sectors of [`SECTOR_BYTES`] count.
    pub fn damage(&self, bytes: Range<u64>) {
        self.parts.medium().damage(bytes.start / SECTOR_BYTES..bytes.end.div_ceil(SECTOR_BYTES));
    }

    /// Turns the power off. About half of the sectors that no flush covered are lost; `seed` chooses them. Every request
    /// fails until [`Disk::power_on`].
    ///
    /// # Errors
    /// The host's, for the file that holds the bytes.
    pub fn cut_power(&self, seed: u64) -> io::Result<()> {
        self.parts.medium().cut(seed)
    }

    /// Turns the power on again. The block device is a new one: the kernel remembers nothing of the old one's bytes.
    /// File systems on it must be unmounted.
    ///
    /// # Errors
    /// The loop device's.
    pub fn power_on(&mut self) -> io::Result<()> {
        self.detach();
        self.parts.medium().power_on();
        self.attach()
    }

    fn attach(&mut self) -> io::Result<()> {
        let file = self.scratch.path().join("point").join(FILE);
        let device = run("losetup", &["--find", "--show", "--direct-io=on", &file.to_string_lossy()])?;
        self.device = Some(device.trim().to_owned());
        Ok(())
    }

    fn detach(&mut self) {
        if let Some(device) = self.device.take() {
            let _ = run("losetup", &["--detach", &device]);
            // The kernel detaches a moment later if a program has the device open.
            let name = device.trim_start_matches("/dev/").to_owned();
            let backing = PathBuf::from(format!("/sys/block/{name}/loop/backing_file"));
            afflux_scratch::within(std::time::Duration::from_secs(10), || !backing.exists());
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.detach();
        if let Some(session) = self.session.take() {
            let _ = session.umount_and_join();
        }
    }
}

/// An ext4 on a block device, mounted.
pub struct Ext4 {
    point: PathBuf,
}

impl Ext4 {
    /// Makes a new ext4, without work that is left for later, and mounts it at an existing directory.
    ///
    /// # Errors
    /// Those of `mkfs.ext4` and `mount`.
    pub fn format(disk: &Disk, point: &Path) -> io::Result<Self> {
        run("mkfs.ext4", &["-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", disk.device()])?;
        Self::mount(disk, point)
    }

    /// Mounts the ext4 that is there. The kernel replays its journal.
    ///
    /// # Errors
    /// Those of `mount`.
    pub fn mount(disk: &Disk, point: &Path) -> io::Result<Self> {
        run("mount", &["-t", "ext4", disk.device(), &point.to_string_lossy()])?;
        Ok(Self { point: point.to_owned() })
    }

    /// The directory where it is mounted.
    pub fn path(&self) -> &Path {
        &self.point
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        let unmount = |how: &[&str]| {
            let output = Command::new("umount").args(how).arg(&self.point).output();
            output.is_ok_and(|output| output.status.success())
        };
        // A killed program holds its files until the kernel has torn it down.
        if !afflux_scratch::within(std::time::Duration::from_secs(10), || unmount(&[])) {
            unmount(&["-l"]);
        }
    }
}

/// Runs a program; its output.
fn run(program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{program} {}: {}", arguments.join(" "), said.trim())))
}
