//! The block device over the disk's file, and a file system on it.
//!
//! Owns: the loop device, the ext4.
//! Does not own: the disk (`file`).
//! Invariants: the loop device goes before the file. After a power cut the device is a new one.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use afflux_scratch::Scratch;

use crate::DiskOptions;
use crate::file::DiskFile;

/// The kernel unmounts and detaches a moment after the last user ends.
const LAST_USER_MAX: Duration = Duration::from_secs(10);

/// A disk with its block device. It derefs to the disk's file, which has the controls.
pub struct Disk {
    file: DiskFile,
    /// Such as `/dev/loop7`; none while the disk is detached.
    device: Option<String>,
    /// Dropped last.
    _scratch: Scratch,
}

impl Disk {
    /// Makes a disk of zeros. Its files are in a directory of their own inside `directory`.
    pub fn new(directory: &Path, options: DiskOptions) -> io::Result<Self> {
        let scratch = Scratch::new(directory, "disk")?;
        let mut disk = Self { file: DiskFile::new(scratch.path(), options)?, device: None, _scratch: scratch };
        disk.attach()?;
        Ok(disk)
    }

    /// The path of the block device, such as `/dev/loop7`; empty while it is detached.
    pub fn device(&self) -> &str {
        self.device.as_deref().unwrap_or_default()
    }

    /// Turns the power on again. The block device is a new one: the kernel remembers nothing of the old one's bytes.
    /// File systems on it must be unmounted.
    pub fn restart(&mut self) -> io::Result<()> {
        self.detach();
        self.file.power_on();
        self.attach()
    }

    fn attach(&mut self) -> io::Result<()> {
        let device = run("losetup", &["--find", "--show", "--direct-io=on", &self.file.path().to_string_lossy()])?;
        self.device = Some(device.trim().to_owned());
        Ok(())
    }

    fn detach(&mut self) {
        if let Some(device) = self.device.take() {
            let _ = run("losetup", &["--detach", &device]);
            let name = device.trim_start_matches("/dev/").to_owned();
            let backing = PathBuf::from(format!("/sys/block/{name}/loop/backing_file"));
            afflux_scratch::within(LAST_USER_MAX, || !backing.exists());
        }
    }
}

impl Deref for Disk {
    type Target = DiskFile;

    fn deref(&self) -> &DiskFile {
        &self.file
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.detach();
    }
}

/// An ext4 on a block device, mounted.
pub struct Ext4 {
    point: PathBuf,
}

impl Ext4 {
    /// Makes a new ext4, without work that is left for later, and mounts it at an existing directory.
    pub fn format(disk: &Disk, point: &Path) -> io::Result<Self> {
        run("mkfs.ext4", &["-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", disk.device()])?;
        Self::mount(disk, point)
    }

    /// Mounts the ext4 that is there. The kernel replays its journal.
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
        if !afflux_scratch::within(LAST_USER_MAX, || unmount(&[])) {
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
