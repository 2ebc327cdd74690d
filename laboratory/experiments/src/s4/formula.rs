//! The seed's own arithmetic: a window is received, then the rest of it is written, and the COMMIT is answered.
//!
//! Owns: the formula. Does not own: the simulated copies.
//! Invariants: nothing is chosen: link, disk, window and threshold give the rate.

use super::plan::{Plan, Threshold};

/// The rate of a copy, in the unit of its parameters. `threshold` is dirty when the server begins to write.
fn rate(window: f64, link: f64, disk: f64, threshold: f64) -> f64 {
    let begins_at = threshold.min(window);
    // A disk that is slower than the link falls behind from the threshold on.
    let left = begins_at.max(window - disk / link * (window - begins_at));
    window / (window / link + left / disk)
}

/// The formula's rate for a column, in MB/s. It knows one client, and no threshold in percent of memory.
pub(super) fn mb_per_s(plan: &Plan, threshold: Threshold) -> Option<f64> {
    let (window, disk) = (plan.window_bytes as f64, plan.disk_bytes_per_s as f64);
    let begins_at = match threshold {
        Threshold::OFF => window,
        Threshold::Centisecs(centisecs) => disk * centisecs as f64 / 100.0,
        Threshold::Bytes(bytes) => bytes as f64,
        Threshold::Tuned => return None,
    };
    let link = plan.link.stream_bytes_per_second() as f64;
    (plan.clients == 1).then(|| rate(window, link, disk, begins_at) / 1e6)
}

#[cfg(test)]
mod tests;
