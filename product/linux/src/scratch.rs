//! Directories for tests.
//!
//! Owns: a directory that is removed when it is dropped; small file systems, where the host allows
//! them.
//! Does not own: anything outside tests.
//! Invariants: each directory is new, and nobody else could have made it.

use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A directory that is removed with its contents; a file system on it is unmounted first.
pub(crate) struct Scratch {
    directory: ::afflux_scratch::Scratch,
    mounted: bool,
}

impl Scratch {
    /// Below the usual place for temporary files.
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir()).unwrap()
    }

    /// In memory, if the host has a place for that.
    pub(crate) fn in_memory() -> Option<Self> {
        let place = Path::new("/dev/shm");
        let made = place.is_dir().then(|| Self::below(place))?;
        made.map_err(|error| afflux_scratch::skipped!("no file system in memory: {error}")).ok()
    }

    fn below(place: &Path) -> std::io::Result<Self> {
        let directory = ::afflux_scratch::Scratch::new(place, "test")?;
        // Tests act as other users there.
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
        Ok(Self { directory, mounted: false })
    }

    /// A file system of its own, of `kind` with mount options; prints the reason if there is none.
    pub(crate) fn mounted(kind: &str, bytes: u64, options: &str) -> Option<Self> {
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
            let images = ::afflux_scratch::Scratch::new(&std::env::temp_dir(), "image").unwrap();
            let image = images.path().join("image");
            let file = std::fs::File::create(&image).unwrap();
            file.set_len(bytes).unwrap();
            let image_name = image.to_str().unwrap();
            let options = format!("loop,{options}");
            // The loop device keeps the image, whose name goes.
            run(&format!("mkfs.{kind}"), &["-q", image_name])
                && run("mount", &["-o", options.trim_end_matches(','), image_name, &target])
        };
        if !scratch.mounted {
            match options {
                "" => afflux_scratch::skipped!("no {kind} can be mounted here (not root, or no mkfs)"),
                _ => afflux_scratch::skipped!("{options} is no option of {kind} here"),
            }
            return None;
        }
        Some(scratch)
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn descriptor(&self) -> OwnedFd {
        std::fs::File::open(self.path()).unwrap().into()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.mounted {
            let _ = Command::new("umount").arg("-l").arg(self.path()).output();
        }
    }
}
