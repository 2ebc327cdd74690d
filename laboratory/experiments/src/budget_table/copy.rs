//! A copy over NFS, in windows: the client sends 100 MB, COMMITs and waits.
//!
//! Owns: the server, the client and the goal for the copy.
//! Does not own: the parts of the server, the model of the client (`workloads`).
//! Invariants: over a link of N bytes a second to a faster disk, a window of D bytes should take at most D/N + 0.2 s.

use std::sync::{Arc, Mutex};

use afflux_engine::Platform;
use afflux_engine::counters::Counter;
use afflux_nfs::{Admission, Server};
use afflux_reference::StampModel;
use afflux_report::Fields;
use afflux_simulator::{Link, LinkOptions, Memory, MemoryTree, SimMachine, TreeOptions};
use afflux_workloads::nfs_client::{NfsClient, NfsClientOptions, NfsEntry};

use super::case::Case;
use super::failure::failed;
use super::figures::{ms, seconds};
use super::rig::{disk, world};
use crate::experiment::LabError;
use crate::machine::rounded;

const WINDOW_BYTES: u64 = 100_000_000;
/// Time allowed for a window on top of its time on the link.
const COMMIT_S: f64 = 0.2;
const WRITE_BYTES: u32 = 32 << 10;

/// The copy's figures.
pub(super) fn run(case: &Case, mbit: u64) -> Result<Fields, LabError> {
    let windows = if case.quick { 3 } else { 10 };
    let world = world(case.seed);
    let disk = disk(&world, 0, case.device)?;
    let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
    let mut setup = case.law.setup()?;
    setup.settings.add(&afflux_nfs::KNOBS);
    let mut parts = SimMachine::new(&world, Memory::Stamped(case.memory_bytes), setup).map_err(failed)?;
    let volume = parts.add_tree("disk", &tree).map_err(failed)?;
    let options = LinkOptions::parse(&format!("rate={mbit}Mbit")).map_err(failed)?;
    let link_bytes_per_s = options.stream_bytes_per_second() as f64;
    let entry = NfsEntry::new(world.platform(), Link::new(&world, 0, options), Server::new(volume, Admission::AnyPeer));
    let options = NfsClientOptions {
        file_bytes: windows * WINDOW_BYTES,
        record_bytes: WRITE_BYTES,
        dirty_limit_bytes: WINDOW_BYTES,
        ..NfsClientOptions::default()
    };
    let model = Arc::new(Mutex::new(StampModel::new(1, 0)));
    let client = NfsClient::new(world.platform(), &entry, options, model);
    let copy = world.run(client.run()).map_err(failed)?.map_err(failed)?;
    let rate = copy.bytes as f64 / seconds(copy.elapsed_ns);
    let window = WINDOW_BYTES as f64;
    let wanted = window / (window / link_bytes_per_s + COMMIT_S);
    let commits = &copy.commit_waits_ns;
    let mean = commits.iter().sum::<u64>() / commits.len().max(1) as u64;
    let counters = world.platform().counters().sum();
    Ok(Fields::new()
        .with("mb_per_s", rounded(rate / 1e6, 3))
        .with("wanted_mb_per_s", rounded(wanted / 1e6, 3))
        .with("percent_of_link", rounded(100.0 * rate / link_bytes_per_s, 2))
        .with("commit_mean_ms", rounded(ms(mean), 2))
        .with("commit_max_ms", rounded(ms(commits.iter().copied().max().unwrap_or(0)), 2))
        .with("write_max_ms", rounded(ms(copy.write_ns_max), 2))
        .with("throttle_pauses", counters[Counter::ThrottlePauses as usize]))
}
