//! The end of a run: without faults, everything becomes clean, durable and right.
//!
//! Owns: the checks at the end of every run.
//! Does not own: the checks of contents (`contents`).
//! Invariants: a run that passes has lost nothing: every dirtied page was written or truncated, no frame is missing, no
//! task waits.

use std::pin::pin;

use afflux_engine::counters::Counter;
use afflux_engine::settings::Knob;
use afflux_engine::{Device, Nanos, Platform};
use futures_util::future::{Either, select};

use crate::outcome::Unwritten;
use crate::simulated::SimulatedSite;

/// Attempts to drain, each with twice the pause of the last: a quarter of an hour in all.
const TRIES: u32 = 10;
/// A drain is given up once nothing has been written for this long.
const STALLED_NS: u64 = 600 * Nanos::SECOND;
/// Most entries in the list of data that cannot be written.
const NAMED_MAX: usize = 20;

/// Writes everything out; returns the data that could not be written.
pub(super) async fn settle(machine: &SimulatedSite) -> Vec<Unwritten> {
    let mut left = Vec::new();
    for turn in 0..TRIES {
        left.clear();
        for at in 0..machine.volumes.len() {
            match drain(machine, at).await {
                Ok(failed) => left.extend(failed),
                Err(stalled) => return vec![stalled],
            }
        }
        let status = machine.engine.status();
        if left.is_empty() && status.dirty_bytes == 0 && status.writeback_bytes == 0 {
            left.extend(settle_past_cache(machine).await);
            return left;
        }
        pause(machine, (1 << turn) * Nanos::SECOND).await;
    }
    if left.is_empty() {
        let status = machine.engine.status();
        let (what, why) = ("some file".to_owned(), "it stays dirty".to_owned());
        left.push(Unwritten { what, why, dirty_bytes: status.dirty_bytes });
    }
    left.truncate(NAMED_MAX);
    left
}

/// Makes writes past the cache durable and updates the cache; returns the files that failed.
async fn settle_past_cache(machine: &SimulatedSite) -> Vec<Unwritten> {
    let mut left = Vec::new();
    for file in machine.files() {
        if let Err(error) = machine.flush_past_cache(&file).await {
            left.push(Unwritten { what: file.path.clone(), why: error.to_string(), dirty_bytes: 0 });
        }
        machine.after_others(&file).await;
    }
    left
}

/// Has a device write everything. Returns the failed files, or an error if nothing is written any more.
async fn drain(machine: &SimulatedSite, at: usize) -> Result<Vec<Unwritten>, Unwritten> {
    let volume = &machine.volumes[at];
    let written = || machine.platform.counters().get(Counter::PagesWritten);
    let mut draining = pin!(machine.engine.drain(volume.device));
    let failed = loop {
        let before = written();
        let stalled = pin!(machine.platform.sleep_until(machine.platform.now().after(STALLED_NS)));
        match select(draining.as_mut(), stalled).await {
            Either::Left((failed, _)) => break Some(failed),
            Either::Right(_) if written() == before => break None,
            Either::Right(_) => {}
        }
    };
    let dirty_bytes = machine.engine.status().devices.get(at).map_or(0, |device| device.dirty_bytes);
    let Some(failed) = failed else {
        let full = Device::free_bytes_hint(&*volume.disk) == 0;
        let why = if full { "no space left on the device" } else { "nothing is written any more" };
        return Err(Unwritten { what: volume.name.clone(), why: why.to_owned(), dirty_bytes });
    };
    let named = |what: String, why: String| Unwritten { what, why, dirty_bytes };
    let mut left = Vec::new();
    for file in machine.files().into_iter().filter(|file| file.volume == at) {
        left.extend(file.file.write_error().map(|error| named(file.path.clone(), error.to_string())));
    }
    // Only a server knows the names of its files.
    if left.is_empty() {
        left.extend(failed.first().map(|(_, error)| named(format!("a file on {}", volume.name), error.to_string())));
    }
    Ok(left)
}

async fn pause(machine: &SimulatedSite, ns: u64) {
    machine.platform.sleep_until(machine.platform.now().after(ns)).await;
}

/// Checks the state after everything is clean and all jobs are gone.
pub(super) fn check_clean(machine: &SimulatedSite) -> Result<(), String> {
    let status = machine.engine.status();
    for device in &status.devices {
        if device.writers_waiting != 0 || device.files_dirty != 0 || device.files_failed != 0 {
            return Err(format!("everything is clean, but a device says {device:?}"));
        }
    }
    if status.pinned_bytes != 0 {
        return Err(format!("no reply is on its way, but {} bytes are pinned", status.pinned_bytes));
    }
    for file in machine.files().into_iter().filter(|file| !file.is_removed()) {
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

/// Checks that every frame is free once all files are gone.
pub(super) async fn check_frames(machine: &SimulatedSite) -> Result<(), String> {
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
