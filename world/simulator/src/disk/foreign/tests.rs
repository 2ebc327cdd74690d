use std::sync::Arc;

use afflux_engine::{Nanos, Platform};

use super::*;
use crate::disk::DiskOptions;
use crate::{World, WorldOptions};

const MB: u64 = 1_000_000;
const STREAM: ForeignLoad = ForeignLoad {
    writes: true,
    request_bytes: 64 << 10,
    scattered: false,
    file_bytes: 1 << 20,
    in_flight: 4,
    bytes_per_second: 10 * MB,
    lasts_ns: 2 * Nanos::SECOND,
};

/// Bytes that each program has in each of so many half seconds, on a disk of 100 MB/s.
fn in_half_seconds(count: u64, loads: &[ForeignLoad]) -> Vec<Vec<u64>> {
    let world = World::new(WorldOptions::seed(1));
    let disk = Disk::new(&world, 0, DiskOptions { bytes_per_second: 100 * MB, ..DiskOptions::default() });
    let programs: Vec<_> = loads.iter().map(|load| disk.add_foreign_load(load.clone())).collect();
    let platform = Arc::clone(world.platform());
    let mut before = vec![0; programs.len()];
    let each = (1..=count).map(|half| {
        world.run(platform.sleep_until(Nanos(half * Nanos::SECOND / 2))).unwrap();
        let now: Vec<u64> = programs.iter().map(|program| disk.foreign_bytes(*program)).collect();
        let passed = now.iter().zip(&before).map(|(now, before)| now - before).collect();
        before = now;
        passed
    });
    let each = each.collect();
    assert_eq!(disk.figures().bytes, (0, 0), "the disk's figures are the engine's");
    each
}

#[test]
fn a_program_keeps_to_its_rate_and_ends_when_its_time_is_over() {
    let halves = in_half_seconds(6, &[STREAM]);
    for (number, bytes) in halves.iter().flatten().enumerate() {
        let expected = if number < 4 { 5 * MB } else { 0 };
        assert!(bytes.abs_diff(expected) <= 4 * 65_536, "half second {number}: {bytes} bytes");
    }
}

#[test]
fn what_one_program_leaves_of_the_disk_another_has() {
    let greedy = ForeignLoad { bytes_per_second: u64::MAX, lasts_ns: u64::MAX, writes: false, ..STREAM };
    let halves = in_half_seconds(6, &[STREAM, greedy]);
    for (number, bytes) in halves.iter().enumerate() {
        let all: u64 = bytes.iter().sum();
        assert!(all.abs_diff(50 * MB) <= MB, "half second {number}: {bytes:?}");
    }
    assert!(halves[1][0].abs_diff(5 * MB) <= 4 * 65_536 && halves[5][0] == 0, "{halves:?}");
}
