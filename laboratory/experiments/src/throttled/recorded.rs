//! The case `recorded`: `linux-6.1` in the simulator beside a real Linux 6.1, second by second.
//!
//! The real kernel ran in an emulated machine with its time counted in instructions (`cargo xtask guest-law`). So its
//! tables are the same on every machine, and are kept here.
//!
//! Owns: the order of the runs.
//! Does not own: the recorded tables (`recording`), the simulated machine (`simulated`, `disk`), what it runs (`load`),
//! the compared figures (`second`), rows and sentences (`page`).
//! Invariants: each recorded table is simulated once.

mod disk;
mod load;
mod page;
mod recording;
mod second;
mod simulated;

use self::recording::Recording;
use crate::experiment::{Findings, LabError, Watch};

pub(super) fn run(watch: &mut dyn Watch) -> Result<Findings, LabError> {
    let mut page = page::RecordedPage::default();
    for (done, (name, text)) in recording::ALL.iter().enumerate() {
        watch.step(name, done as f64 / recording::ALL.len() as f64);
        let real = Recording::read(text).ok_or_else(|| LabError::Failed(format!("{name} is no recorded table")))?;
        page.add(name, &real, &simulated::simulate(&real)?, watch);
    }
    Ok(page.findings())
}

#[cfg(test)]
mod tests;
