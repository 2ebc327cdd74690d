//! Figures of a case, from the records of the writers and the looks at the devices.
//!
//! Owns: percentiles, the true backlog, fairness.
//! Does not own: the rig, the choice of figures for a load.
//! Invariants: a backlog is time that the disk really worked, never a law's estimate.

use super::rig::{Look, Teller};
use crate::machine::lock;

/// The values that all writers recorded, sorted.
pub(super) fn sorted(tellers: &[Teller], of: fn(&super::rig::WriterRecord) -> &Vec<u64>) -> Vec<u64> {
    let mut all: Vec<u64> = tellers.iter().flat_map(|teller| of(&lock(teller)).clone()).collect();
    all.sort_unstable();
    all
}

pub(super) fn bytes(tellers: &[Teller]) -> u64 {
    tellers.iter().map(|teller| lock(teller).bytes).sum()
}

/// For each look: how long the disk worked after it until it had written as many bytes as were dirty then, in
/// nanoseconds. If the disk never wrote that much, all its work after the look.
pub(super) fn backlogs_ns(looks: &[Look]) -> Vec<(u64, u64)> {
    let last = looks.last().copied().unwrap_or_default();
    let backlog = |look: &Look| {
        if look.dirty_bytes == 0 {
            return 0;
        }
        let upto = look.written_bytes + look.dirty_bytes;
        let at = looks.partition_point(|other| other.written_bytes < upto);
        looks.get(at).unwrap_or(&last).worked_ns.saturating_sub(look.worked_ns)
    };
    looks.iter().map(|look| (look.at_ns, backlog(look))).collect()
}

/// Bytes that the disk wrote between two instants, by the looks at it.
pub(super) fn written_between(looks: &[Look], from_ns: u64, until_ns: u64) -> u64 {
    let at = |ns| looks.iter().rev().find(|look| look.at_ns <= ns).map_or(0, |look| look.written_bytes);
    at(until_ns).saturating_sub(at(from_ns))
}

/// Jain's index: 1 if all shares are equal, 1/n if one has everything.
pub(super) fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = (shares.iter().sum::<f64>(), shares.iter().map(|share| share * share).sum::<f64>());
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests;
