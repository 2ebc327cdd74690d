use std::time::Duration;

use super::{ServerCounts, SmallFiles};

/// The findings of a server that checks once a second while clients create files of a size.
fn found(created_per_s: u64, file_bytes: u64, seconds: u64) -> Vec<u64> {
    let mut small = SmallFiles::default();
    let counts = |at| ServerCounts {
        at: Duration::from_secs(at),
        created: at * created_per_s,
        dirtied_bytes: at * created_per_s * file_bytes,
    };
    (0..seconds).filter_map(|at| small.look(counts(at))).collect()
}

#[test]
fn many_small_files_within_ten_seconds_are_found_once() {
    assert_eq!(found(20, 4_096, 1_000), [200], "in the eleventh look");
    assert_eq!(found(1_000, 0, 1_000), [1_000]);
    assert_eq!(found(40, (64 << 10) - 1, 1_000), [200]);
}

#[test]
fn few_files_or_large_ones_are_not() {
    assert!(found(19, 4_096, 1_000).is_empty());
    assert!(found(1_000, 64 << 10, 1_000).is_empty());
}

#[test]
fn looks_in_a_hurry_take_no_more_memory_than_their_ten_seconds() {
    let mut small = SmallFiles::default();
    for at in 0..1_000 {
        small.look(ServerCounts { at: Duration::from_secs(at), created: 0, dirtied_bytes: 0 });
    }
    assert!(small.seen.len() <= 11, "{}", small.seen.len());
}
