//! A disk in memory: a loop device over a file on a tmpfs of its own, with ext4.
//!
//! Owns: the tmpfs, the file, the loop device, its ext4, both mounts.
//! Does not own: the data on it.
//! Invariants: all its memory is allocated before its first use; if the process dies, a shell takes everything down.

use std::path::{Path, PathBuf};

use afflux_scratch::{Guard, Scratch};

use super::command::{HardwareError, run, run_down};

/// Bytes of the tmpfs beyond the image.
const SPARE_BYTES: u64 = 16 << 20;
/// Arguments: the disk's mount, the loop device, the tmpfs.
const TAKE_DOWN: &str = r#"umount "$1" || umount -l "$1"
losetup -d "$2"
umount "$3" || umount -l "$3""#;

/// A mounted disk in memory.
pub struct MemoryDisk {
    memory: PathBuf,
    mount: PathBuf,
    loop_device: String,
    mounted: bool,
    _guard: Option<Guard>,
    /// The directory with both mounts. Dropped last.
    _scratch: Scratch,
}

impl MemoryDisk {
    /// Makes a disk of `bytes`, mounted in `directory`.
    ///
    /// # Errors
    /// Without root, loop devices or that much memory; the error says which.
    pub fn new(directory: &Path, bytes: u64) -> Result<Self, HardwareError> {
        let scratch = Scratch::guarded(directory, "memory")?;
        let (memory, mount) = (scratch.path().join("memory"), scratch.path().join("disk"));
        for path in [&memory, &mount] {
            let made = std::fs::create_dir(path);
            made.map_err(|error| HardwareError { what: format!("{}: {error}", path.display()) })?;
        }
        let size = format!("size={}", bytes + SPARE_BYTES);
        let (memory_text, mount_text) = (memory.to_string_lossy().into_owned(), mount.to_string_lossy().into_owned());
        // From here on a drop takes down every part that exists.
        let mut disk =
            Self { memory, mount, loop_device: String::new(), mounted: false, _guard: None, _scratch: scratch };
        run("mount", &["-t", "tmpfs", "-o", &size, "none", &memory_text])?;
        let image = disk.memory.join("disk.img").to_string_lossy().into_owned();
        run("fallocate", &["-l", &bytes.to_string(), &image])?;
        disk.loop_device = run("losetup", &["-f", "--show", "--direct-io=off", &image])?;
        let guard = Guard::new("", TAKE_DOWN, &[&mount_text, &disk.loop_device, &memory_text])?;
        disk._guard = Some(guard);
        let lazy = "lazy_itable_init=0,lazy_journal_init=0";
        run("mkfs.ext4", &["-q", "-E", lazy, "-F", &disk.loop_device])?;
        run("mount", &[&disk.loop_device, &mount_text])?;
        disk.mounted = true;
        Ok(disk)
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.mount
    }
}

impl Drop for MemoryDisk {
    fn drop(&mut self) {
        if self.mounted {
            run_down("umount", &[&self.mount.to_string_lossy()]);
        }
        if !self.loop_device.is_empty() {
            run_down("losetup", &["-d", &self.loop_device]);
        }
        run_down("umount", &[&self.memory.to_string_lossy()]);
    }
}
