//! The memory of the simulated machine.
//!
//! Owns: reading a size, the range, this process's limit for the simulation's tables.
//! Does not own: the size of these tables (the simulator).
//! Invariants: a machine whose tables do not fit here is refused before any allocation.

#[cfg(test)]
mod tests;

use afflux_workloads::simulation::{CACHED_PAGE_OWN_BYTES, FRAME_OWN_BYTES, Simulation};
use rustix::process::{Resource, getrlimit};

use afflux_linux_device::HostMemory;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::{quantity, units};

/// The smallest cache that a run can have, and the largest.
const BYTES_MIN: u64 = 1 << 20;
const BYTES_MAX: u64 = 1 << 40;
/// Making tables of this size takes more than a second.
const SAID_BYTES_MIN: u64 = 2 << 30;

/// Most memory for the simulation's tables here: nine tenths of the available memory, or of the limit on the process's
/// memory (`ulimit -v`) if that is lower.
pub(super) fn own_bytes_max() -> u64 {
    let limit = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
    HostMemory::measured().available_bytes.min(limit) / 10 * 9
}

/// A remark for a large cache: making its tables takes a while, before there is any progress to show.
pub(super) fn long_preparation(simulation: &Simulation) -> Option<String> {
    let own = simulation.own_bytes(simulation.memory_bytes);
    let words = || {
        let (memory, own) = (units::memory(simulation.memory_bytes), units::memory(own));
        format!("preparing {memory} of simulated memory: its tables take up to {own} here, and some seconds")
    };
    (own >= SAID_BYTES_MIN).then(words)
}

/// Reads a size such as `512MiB`. This process may use `own_bytes_max` for the simulation's tables.
pub(super) fn bytes(text: &str, simulation: &Simulation, own_bytes_max: u64) -> Outcome<u64> {
    let fits = simulation.memory_bytes_max(own_bytes_max).clamp(BYTES_MIN, BYTES_MAX);
    let range = format!("{} to {}", units::memory(BYTES_MIN), units::memory(fits));
    let wrong = |what: String| Failure::wrong_use(format!("--memory: '{text}' {what}"));
    let bytes = quantity::bytes(text).map_err(|why| wrong(format!("is {why} ({range})")))?;
    if (BYTES_MIN..=fits).contains(&bytes) {
        return Ok(bytes - bytes % 4096);
    }
    if !(BYTES_MIN..=BYTES_MAX).contains(&bytes) {
        return Err(wrong(format!("is out of range ({range})")));
    }
    let needs = units::memory(simulation.own_bytes(bytes));
    let each = format!("{FRAME_OWN_BYTES} bytes a page of cache, {CACHED_PAGE_OWN_BYTES} more once it is used");
    let has = units::memory(own_bytes_max);
    Err(wrong(format!(
        "is out of range ({range} here): the simulation would need {needs} for its own tables ({each}), and there \
         are {has}"
    )))
}
