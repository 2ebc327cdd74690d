//! Directories for tests.
//!
//! Owns: a directory that is removed when it is dropped; small file systems, where the host allows
//! them.
//! Does not own: anything outside tests.
//! Invariants: names do not collide between processes, threads and tests.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed with its contents; a file system on it is unmounted first.
pub(crate) struct Scratch {
    path: PathBuf,
    mounted: bool,
}

impl Scratch {
    /// Below the usual place for temporary files.
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// In memory, if the host has a place for that.
    pub(crate) fn in_memory() -> Option<Self> {
        let place = Path::new("/dev/shm");
        place.is_dir().then(|| Self::below(place))
    }

    fn below(place: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("afflux-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self { path, mounted: false }
    }

    /// A file system of its own, of `kind` with mount options; prints the reason if there is none.
    pub(crate) fn mounted(kind: &str, bytes: u64, options: &str) -> Option<Self> {
        let mut scratch = Self::new();
        let run = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output();
            output.is_ok_and(|output| output.status.success())
        };
        let target = scratch.path.to_str().unwrap().to_owned();
        scratch.mounted = if kind == "tmpfs" {
            let options = format!("size={bytes},{options}");
            run("mount", &["-t", "tmpfs", "-o", options.trim_end_matches(','), "tmpfs", &target])
        } else {
            let image = scratch.path.with_extension("image");
            let file = std::fs::File::create(&image).unwrap();
            file.set_len(bytes).unwrap();
            let image_name = image.to_str().unwrap();
            let options = format!("loop,{options}");
            let mounted = run(&format!("mkfs.{kind}"), &["-q", image_name])
                && run("mount", &["-o", options.trim_end_matches(','), image_name, &target]);
            std::fs::remove_file(&image).unwrap();
            mounted
        };
        if !scratch.mounted {
            afflux_scratch::skipped!("no {kind} can be mounted here (not root, or no mkfs)");
            return None;
        }
        Some(scratch)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn descriptor(&self) -> OwnedFd {
        std::fs::File::open(&self.path).unwrap().into()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.mounted {
            let _ = Command::new("umount").arg("-l").arg(&self.path).output();
        }
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
