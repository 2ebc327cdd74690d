use std::sync::atomic::Ordering;

use super::*;

/// Bytes of memory that this process has.
fn resident_bytes() -> u64 {
    let told = std::fs::read_to_string("/proc/self/statm").expect("the kernel tells");
    told.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("the second number") * 4096
}

#[test]
fn a_table_takes_memory_for_what_was_written_to_alone() {
    const ENTRIES: usize = 128 << 20;
    let before = resident_bytes();
    let table: Box<[AtomicU64]> = zeroed(ENTRIES);
    table[ENTRIES / 2].store(7, Ordering::Relaxed);
    let more = resident_bytes().saturating_sub(before);
    assert!(more < 256 << 20, "{more} bytes of 1 GiB");
    assert_eq!([0, ENTRIES / 2, ENTRIES - 1].map(|at| table[at].load(Ordering::Relaxed)), [0, 7, 0]);
}
