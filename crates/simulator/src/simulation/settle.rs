//! The end of a run: without faults, everything becomes clean, durable and right.
//!
//! Owns: the checks that every run ends with.
//! Does not own: what is checked of contents (`workload::contents`).
//! Invariants: a run that passes has lost nothing: dirtied pages were written or cut off, no frame is
//! missing, nobody waits.

use engine::Nanos;
use engine::Platform;
use engine::counters::Counter;
use engine::settings::Knob;

use crate::workload::machine::Machine;

/// How often a drain is tried, with twice the pause each time.
const TRIES: u32 = 12;

/// Writes everything out.
pub(super) async fn settle(machine: &Machine) -> Result<(), String> {
    let mut errors = Vec::new();
    for turn in 0..TRIES {
        errors.clear();
        for volume in &machine.volumes {
            errors.extend(machine.engine.drain(volume.device).await.into_iter().map(|(_, error)| error.to_string()));
        }
        let status = machine.engine.status();
        if errors.is_empty() && status.dirty_bytes == 0 && status.writeback_bytes == 0 {
            return Ok(());
        }
        pause(machine, (1 << turn) * Nanos::SECOND).await;
    }
    Err(format!("without faults, not clean after an hour: errors {errors:?}, {:?}", machine.engine.status()))
}

async fn pause(machine: &Machine, ns: u64) {
    machine.platform.sleep_until(machine.platform.now().after(ns)).await;
}

/// What must hold once everything is clean and all jobs are gone.
pub(super) fn check_clean(machine: &Machine) -> Result<(), String> {
    let status = machine.engine.status();
    for device in &status.devices {
        if device.writers_waiting != 0 || device.files_dirty != 0 || device.files_failed != 0 {
            return Err(format!("everything is clean, but a device says {device:?}"));
        }
    }
    if status.pinned_bytes != 0 {
        return Err(format!("no reply is on its way, but {} bytes are pinned", status.pinned_bytes));
    }
    for file in machine.files() {
        if !file.file.is_clean() || file.file.write_error().is_some() {
            return Err(format!("{} is not clean: {:?}", file.path, file.file.write_error()));
        }
        let disk = &machine.volumes[file.volume].disk;
        let sizes = (file.file.size(), disk.size(file.disk_file), disk.durable_size(file.disk_file));
        if sizes.0 != sizes.1 || sizes.1 != sizes.2 {
            return Err(format!("{} has size {}; on the disk {}, durable {}", file.path, sizes.0, sizes.1, sizes.2));
        }
    }
    let count = |counter| machine.platform.counters().get(counter);
    let (dirtied, written) = (count(Counter::PagesDirtied), count(Counter::PagesWritten));
    let truncated = count(Counter::PagesTruncated);
    if dirtied != written + truncated {
        return Err(format!("of {dirtied} pages that were dirtied {written} were written and {truncated} truncated"));
    }
    Ok(())
}

/// With all files gone every frame is free.
pub(super) async fn check_frames(machine: &Machine) -> Result<(), String> {
    for file in machine.files() {
        machine.engine.discard(&file.file);
    }
    // A flusher's list may hold a file until its time comes.
    for (knob, value) in [(Knob::ExpireCentisecs, 1), (Knob::WritebackCentisecs, 500)] {
        machine.engine.set_knob(knob, value).map_err(|error| error.to_string())?;
    }
    pause(machine, 100 * Nanos::SECOND).await;
    let status = machine.engine.status();
    if status.free_bytes != status.cache_bytes {
        return Err(format!("all files are gone, but of {} bytes {} are free", status.cache_bytes, status.free_bytes));
    }
    Ok(())
}
