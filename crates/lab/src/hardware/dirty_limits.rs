//! The kernel's limits on what may be dirty, in bytes, for as long as a value lives.
//!
//! Owns: `vm.dirty_bytes` and `vm.dirty_background_bytes`, and what stood there before.
//! Does not own: a device's own limits (`slow_disk`).
//! Invariants: what stood there before stands there again when the value is dropped; if the process dies a
//! shell that waits for that writes it back.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::error::HardwareError;

/// The knobs, each with the one that it takes the place of. A limit and its ratio put each other out of force,
/// and the background is last: it has to be below.
const KNOBS: [(&str, &str); 2] = [
    ("/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"),
    ("/proc/sys/vm/dirty_background_bytes", "/proc/sys/vm/dirty_background_ratio"),
];

/// Waits for a line; if there is none because whoever would say it is gone, writes back: pairs of file and value.
const GUARD: &str = r#"read said && exit 0
while [ $# -gt 1 ]; do echo "$2" > "$1"; shift 2; done"#;

/// Limits in bytes that are in force for the whole machine.
pub struct DirtyLimits {
    /// What to write where.
    before: Vec<(&'static str, u64)>,
    guard: Option<Child>,
}

fn read(file: &str) -> Result<u64, HardwareError> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| HardwareError { what: format!("{file}: {error}") })?;
    text.trim().parse().map_err(|_| HardwareError { what: format!("{file} says '{}'", text.trim()) })
}

fn write(file: &str, value: u64) -> Result<(), HardwareError> {
    std::fs::write(file, value.to_string())
        .map_err(|error| HardwareError { what: format!("{value} to {file}: {error}") })
}

impl DirtyLimits {
    /// Lets so many bytes be dirty on the whole machine, and has writeback begin above `background_bytes`.
    ///
    /// # Errors
    /// Without root.
    pub fn set(bytes: u64, background_bytes: u64) -> Result<Self, HardwareError> {
        let mut before = Vec::new();
        for (in_bytes, ratio) in KNOBS {
            let bytes = read(in_bytes)?;
            before.push(if bytes > 0 { (in_bytes, bytes) } else { (ratio, read(ratio)?) });
        }
        let mut limits = Self { before, guard: None };
        limits.guard = Some(limits.guarded()?);
        for ((in_bytes, _), value) in KNOBS.into_iter().zip([bytes, background_bytes]) {
            write(in_bytes, value)?;
        }
        Ok(limits)
    }

    /// In a process group of its own, so that Ctrl-C does not end it, too.
    fn guarded(&self) -> Result<Child, HardwareError> {
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "sh"]);
        for (file, value) in &self.before {
            command.arg(file).arg(value.to_string());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.spawn().map_err(|error| HardwareError { what: format!("sh could not be started: {error}") })
    }
}

impl Drop for DirtyLimits {
    fn drop(&mut self) {
        for (file, value) in &self.before {
            let _ = write(file, *value);
        }
        if let Some(mut guard) = self.guard.take() {
            let _ = guard.stdin.take().map(|mut stdin| stdin.write_all(b"done\n"));
            let _ = guard.wait();
        }
    }
}
