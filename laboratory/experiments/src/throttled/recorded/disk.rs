//! The guest's disks for the simulator: null_blk, one request at a time.
//!
//! Owns: the disk's figures.
//! Does not own: its rate and the positions of files (`recording`), the guest's disk (`tests/guest/law/run.sh`).
//! Invariants: each request takes as long, however short it is. A file with recorded positions has those.

use std::sync::Arc;

use afflux_simulator::{DiskFileId, catalogue};
use afflux_workloads::simulation::DeviceChoice;

use super::recording::Piece;
use super::second::PAGE_BYTES;
use crate::experiment::LabError;
use crate::machine::model;

/// The guest's disk takes one request at a time, and each takes as long as 128 KiB. Its queue is sorted, as the guest's
/// is.
const DISK: [(&str, &str); 11] = [
    ("request_bytes_max", "128 KiB"),
    ("nr_requests", "64"),
    ("device_depth", "1"),
    ("dies", "1"),
    ("page_bytes", "128 KiB"),
    ("fresh_bytes", "64 GiB"),
    ("interface_bytes_per_second", "1000 GB"),
    ("command_ns", "0 ns"),
    ("volatile", "0"),
    ("memory_bytes", "0"),
    ("flush_ns", "0 ns"),
];

/// A disk with this time for a request, for a directory or for all other paths. Its files have numbers in the order of
/// their names.
pub(super) fn device(
    request_ns: u64,
    directory: Option<&str>,
    positions: &[Vec<Piece>],
) -> Result<DeviceChoice, LabError> {
    let changes = DISK.into_iter().map(|(key, value)| (key, value.to_owned()));
    let changes: Vec<_> = changes.chain([("program_ns", format!("{request_ns} ns"))]).collect();
    let model = model("sata-ssd", &changes)?;
    let positions = positions.to_vec();
    let make = Arc::new(move |world: &_, number| {
        let disk = catalogue::make(world, number, &model);
        for (file, pieces) in (0..).map(DiskFileId).zip(&positions) {
            for Piece { page, position, pages } in pieces {
                disk.place(file, page * PAGE_BYTES, position * PAGE_BYTES, pages * PAGE_BYTES);
            }
        }
        Ok(disk)
    });
    Ok(DeviceChoice { directory: directory.map(str::to_owned), model: "the guest's disk".to_owned(), make })
}
