//! A program that mounts something.
//!
//! Owns: its process, the mount, the end of both.
//! Does not own: the program's arguments.
//! Invariants: nothing stays mounted after the value. A program that does not end with its mount is killed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use afflux_scratch::within;

/// The longest start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Everything may have to be written at the end.
const END_PATIENCE: Duration = Duration::from_secs(60);

/// A mounted program.
#[derive(Debug)]
pub struct Mounted {
    child: Child,
    point: PathBuf,
}

impl Mounted {
    /// Starts a program that mounts at `point`, which is made, and waits for the mount.
    pub fn start(command: &mut Command, point: &Path, log: &Path) -> io::Result<Self> {
        fs::create_dir_all(point)?;
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
        let before = device(point);
        let name = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = File::options().create(true).append(true).open(log)?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn();
        let child = child.map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
        let mut mounted = Self { child, point: point.to_owned() };
        let is_mounted = || device(point).is_some_and(|now| Some(now) != before);
        within(PATIENCE, || is_mounted() || !matches!(mounted.ended(), Ok(None)));
        if is_mounted() {
            return Ok(mounted);
        }
        let said = fs::read_to_string(log).unwrap_or_default();
        let last = said.lines().next_back().unwrap_or("it says nothing");
        Err(io::Error::other(format!("{name} does not mount: {last}")))
    }

    /// Where programs see its files.
    pub fn point(&self) -> &Path {
        &self.point
    }

    /// The number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Its end, if it has ended.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Unmounts, and waits for the end of the program.
    pub fn end(mut self) -> io::Result<ExitStatus> {
        if !is_unmounted(&self.point, &[]) {
            return Err(io::Error::other(format!("{} cannot be unmounted", self.point.display())));
        }
        let mut ended = None;
        within(END_PATIENCE, || {
            ended = self.child.try_wait().ok().flatten();
            ended.is_some()
        });
        ended.ok_or_else(|| io::Error::other(format!("{}: its program does not end", self.point.display())))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // It is gone already after a usual end.
        let is_unmounted = is_unmounted(&self.point, &[]) || is_unmounted(&self.point, &["-l"]);
        if !is_unmounted || !within(END_PATIENCE, || !matches!(self.ended(), Ok(None))) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

fn is_unmounted(point: &Path, words: &[&str]) -> bool {
    let status = Command::new("umount").args(words).arg(point).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests;
