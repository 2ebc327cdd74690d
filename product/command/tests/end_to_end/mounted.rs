//! A server behind a mount, as a child process.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::geteuid;

use crate::scratch::Scratch;
use crate::server::{Server, afflux};

/// The error of programs on a mount without its server.
pub(crate) const NOT_CONNECTED: Option<i32> = Some(107);

/// A mount of a directory; the drop removes all that remains of it.
pub(crate) struct Mounted {
    pub(crate) server: Option<Server>,
    pub(crate) point: PathBuf,
}

/// Whether this machine can mount. Prints the reason if not.
pub(crate) fn can_mount() -> bool {
    match OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        Ok(_) if geteuid().is_root() => true,
        Ok(_) => {
            afflux_scratch::skipped!("only root is sure to be allowed to mount");
            false
        }
        Err(error) => {
            afflux_scratch::skipped!("/dev/fuse: {error}");
            false
        }
    }
}

impl Mounted {
    pub(crate) fn start(home: &Path, directory: &Path, point: &Path) -> Self {
        Self::start_with(home, directory, point, &[])
    }

    pub(crate) fn start_with(home: &Path, directory: &Path, point: &Path, flags: &[&str]) -> Self {
        let control = home.join("control.sock");
        let mut command = afflux(home);
        command.arg("mount").arg(directory).arg(point).args(["--json", "--cache", "64MiB", "--control"]).arg(&control);
        command.args(flags);
        // Made first: if the start fails, nothing must stay mounted.
        let mut mounted = Self { server: None, point: point.to_owned() };
        mounted.server = Some(Server::spawn(command, control, home));
        mounted
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.point.join(name)
    }

    pub(crate) fn stop(mut self) {
        self.server.take().unwrap().stop();
        assert!(!is_mounted(&self.point), "it is still mounted");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(self.server.take());
        if is_mounted(&self.point) {
            let _ = Command::new("umount").arg("-l").arg(&self.point).output();
        }
    }
}

pub(crate) fn is_mounted(point: &Path) -> bool {
    let point = point.to_str().unwrap();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().any(|line| line.split(' ').nth(1) == Some(point) && line.contains(" fuse.afflux "))
}

/// A directory below a mount point of another name.
pub(crate) fn apart(scratch: &Scratch) -> (PathBuf, PathBuf) {
    (scratch.directory("data"), scratch.directory("point"))
}

pub(crate) fn shell(script: &str, at: &Path) -> Output {
    Command::new("sh").args(["-ec", script]).current_dir(at).stdin(Stdio::null()).output().unwrap()
}
