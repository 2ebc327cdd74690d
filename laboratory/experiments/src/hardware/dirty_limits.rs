//! The kernel's limits on what may be dirty, in bytes, for as long as a value lives.
//!
//! Owns: `vm.dirty_bytes` and `vm.dirty_background_bytes`, and what stood there before.
//! Does not own: a device's own limits (`slow_disk`).
//! Invariants: what stood there before stands there again when the value is dropped; if the process dies a
//! shell that waits for that writes it back.

use afflux_scratch::Guard;

use super::error::HardwareError;

/// The knobs, each with the one that it takes the place of. A limit and its ratio put each other out of force,
/// and the background is last: it has to be below.
const KNOBS: [(&str, &str); 2] = [
    ("/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"),
    ("/proc/sys/vm/dirty_background_bytes", "/proc/sys/vm/dirty_background_ratio"),
];

/// Arguments: pairs of file and value.
const WRITE_BACK: &str = r#"while [ $# -gt 1 ]; do echo "$2" > "$1"; shift 2; done"#;

/// Limits in bytes that are in force for the whole machine.
pub struct DirtyLimits {
    /// What to write where.
    before: Vec<(&'static str, u64)>,
    _guard: Option<Guard>,
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
        let mut limits = Self { before, _guard: None };
        limits._guard = Some(limits.guarded()?);
        for ((in_bytes, _), value) in KNOBS.into_iter().zip([bytes, background_bytes]) {
            write(in_bytes, value)?;
        }
        Ok(limits)
    }

    fn guarded(&self) -> Result<Guard, HardwareError> {
        let pairs = self.before.iter().flat_map(|(file, value)| [(*file).to_owned(), value.to_string()]);
        Ok(Guard::new("", WRITE_BACK, &pairs.collect::<Vec<_>>())?)
    }
}

impl Drop for DirtyLimits {
    fn drop(&mut self) {
        for (file, value) in &self.before {
            let _ = write(file, *value);
        }
    }
}
