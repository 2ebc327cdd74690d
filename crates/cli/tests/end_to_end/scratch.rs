//! Directories for tests, on the disk that the build is on, and bytes to fill files with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed at the end of its test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("e2e-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes a directory in it.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file system of its own in a directory; unmounted at the end.
pub(crate) struct Mount {
    point: PathBuf,
    device: Option<String>,
}

impl Mount {
    /// A tmpfs of `bytes`; nothing where that is not allowed, which is said.
    pub(crate) fn tmpfs(point: &Path, bytes: u64) -> Option<Self> {
        let size = format!("size={bytes}");
        let point_text = point.to_str()?;
        run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", point_text])?;
        Some(Self { point: point.to_path_buf(), device: None })
    }

    /// An ext4 in a file of `bytes`, on a loop device; nothing where that is not allowed.
    pub(crate) fn ext4(image: &Path, point: &Path, bytes: u64) -> Option<Self> {
        fs::File::create(image).ok()?.set_len(bytes).ok()?;
        run("mkfs.ext4", &["-q", "-F", "-m", "0", image.to_str()?])?;
        Self::of(image, point)
    }

    /// The file system in a file, on a loop device; nothing where that is not allowed.
    pub(crate) fn of(image: &Path, point: &Path) -> Option<Self> {
        let device = run("losetup", &["-f", "--show", image.to_str()?])?.trim().to_owned();
        let mounted = Self { point: point.to_path_buf(), device: Some(device.clone()) };
        run("mount", &[&device, point.to_str()?])?;
        Some(mounted)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A server that was killed holds its files until the kernel has taken its rings apart, a moment after its
        // process is gone; in the end the mount goes with whoever holds it.
        let unmount = |how: &[&str]| {
            let output = Command::new("umount").args(how).arg(&self.point).output();
            output.is_ok_and(|output| output.status.success())
        };
        let unmounted = (0..100).any(|_| {
            unmount(&[]) || {
                std::thread::sleep(std::time::Duration::from_millis(20));
                false
            }
        });
        if !unmounted {
            unmount(&["-l"]);
        }
        if let Some(device) = &self.device {
            let _ = Command::new("losetup").args(["-d", device]).output();
        }
    }
}

/// The output of a command, or nothing (said) if it cannot run or fails.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => {
            eprintln!("skipped: {program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
            None
        }
        Err(error) => {
            eprintln!("skipped: {program}: {error}");
            None
        }
    }
}

/// Bytes that differ from place to place and from seed to seed.
pub(crate) struct Bytes(u64);

impl Bytes {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn vec(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.number().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }
}
