//! Figures of this process, under the names that all programs use.
//!
//! Owns: asking the host.
//! Does not own: the names (`names`).
//! Invariants: figures that the host does not give are left out.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use afflux_metrics::{Exposition, Value};
use rustix::time::{ClockId, clock_gettime};

use super::names::{BUILD, PROCESS_CPU, PROCESS_FILES, PROCESS_MEMORY, PROCESS_START};

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessFigures {
    began: SystemTime,
}

impl ProcessFigures {
    /// Takes the present as its start.
    pub(crate) fn begins() -> Self {
        Self { began: SystemTime::now() }
    }

    pub(crate) fn add_to(self, all: &mut Exposition) {
        all.add(&BUILD, &[("version", env!("CARGO_PKG_VERSION"))], Value::Count(1));
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        all.add(&PROCESS_CPU, &[], Value::Number(cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9));
        let began = self.began.duration_since(UNIX_EPOCH).unwrap_or_default();
        all.add(&PROCESS_START, &[], Value::Number(began.as_secs_f64()));
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // The descriptor of this listing itself is not counted.
            all.add(&PROCESS_FILES, &[], Value::Count(open.count().saturating_sub(1) as u64));
        }
        if let Some(bytes) = resident_bytes() {
            all.add(&PROCESS_MEMORY, &[], Value::Count(bytes));
        }
    }
}

fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}
