//! The kernel's dirty limits, in bytes, for as long as a value lives.
//!
//! Owns: `vm.dirty_bytes` and `vm.dirty_background_bytes`, and their former values.
//! Does not own: a device's own limits (`slow_disk`).
//! Invariants: the former values are restored when the value is dropped. If the process dies, a shell that waits for
//! its end restores them.

use afflux_scratch::Guard;

use super::error::HardwareError;

/// The knobs in bytes, each with the ratio that it replaces. Writing one of the pair disables the other. The background
/// knob comes last, because its value has to be below the limit.
const KNOBS: [(&str, &str); 2] = [
    ("/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"),
    ("/proc/sys/vm/dirty_background_bytes", "/proc/sys/vm/dirty_background_ratio"),
];

/// Arguments: pairs of file and value.
const WRITE_BACK: &str = r#"while [ $# -gt 1 ]; do echo "$2" > "$1"; shift 2; done"#;

/// Limits in bytes that are in force for the whole machine.
pub struct DirtyLimits {
    /// The files to restore, and their values.
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
    /// Limits dirty data on the whole machine to `bytes`, and makes writeback begin above `background_bytes`.
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
