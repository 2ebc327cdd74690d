//! Directories for tests of several users, and small file systems on them.
//!
//! Owns: the directory, the file system, its mount.
//! Does not own: the making of a directory (`directory`).
//! Invariants: a file system is unmounted before its directory is removed.

#![allow(clippy::unwrap_used, clippy::new_without_default, reason = "a test ends without its directory")]

use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::Scratch;

/// A directory. The drop removes it with its contents, and unmounts a file system on it first.
pub struct TestDirectory {
    directory: Scratch,
    mounted: bool,
}

impl TestDirectory {
    /// A directory below the usual place for temporary files.
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir()).unwrap()
    }

    /// A directory in memory. `None` if the host has no such place.
    pub fn in_memory() -> Option<Self> {
        let place = Path::new("/dev/shm");
        let made = place.is_dir().then(|| Self::below(place))?;
        made.map_err(|error| crate::skipped!("no file system in memory: {error}")).ok()
    }

    fn below(place: &Path) -> std::io::Result<Self> {
        let directory = Scratch::new(place, "test")?;
        // Tests act as other users there.
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
        Ok(Self { directory, mounted: false })
    }

    /// A file system of this kind, mounted with these options. `None`, with a printed reason, if the host refuses one.
    pub fn mounted(kind: &str, bytes: u64, options: &str) -> Option<Self> {
        let mut scratch = Self::new();
        let run = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output();
            output.is_ok_and(|output| output.status.success())
        };
        let target = scratch.path().to_str().unwrap().to_owned();
        scratch.mounted = if kind == "tmpfs" {
            let options = format!("size={bytes},{options}");
            run("mount", &["-t", "tmpfs", "-o", options.trim_end_matches(','), "tmpfs", &target])
        } else {
            let images = Scratch::new(&std::env::temp_dir(), "image").unwrap();
            let image = images.path().join("image");
            let file = std::fs::File::create(&image).unwrap();
            file.set_len(bytes).unwrap();
            let image_name = image.to_str().unwrap();
            let options = format!("loop,{options}");
            // The loop device keeps the image.
            run(&format!("mkfs.{kind}"), &["-q", image_name])
                && run("mount", &["-o", options.trim_end_matches(','), image_name, &target])
        };
        if !scratch.mounted {
            match options {
                "" => crate::skipped!("no {kind} can be mounted here (not root, or no mkfs)"),
                _ => crate::skipped!("{options} is no option of {kind} here"),
            }
            return None;
        }
        Some(scratch)
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Opens the directory.
    pub fn descriptor(&self) -> OwnedFd {
        std::fs::File::open(self.path()).unwrap().into()
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        if self.mounted {
            let _ = Command::new("umount").arg("-l").arg(self.path()).output();
        }
    }
}
