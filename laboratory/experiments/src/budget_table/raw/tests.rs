#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use super::super::devices::device;
use super::*;

#[test]
fn a_byte_rate_is_reached_and_no_place_comes_twice() {
    let rate = bytes_per_s(device("25MB/s").unwrap(), RawOrder::Stream, 4).unwrap();
    assert!((24e6..=25.5e6).contains(&rate), "{rate}");
    let pages: BTreeSet<u64> = (0..RANDOM_PAGES).map(scattered).collect();
    assert_eq!((pages.len() as u64, pages.last()), (RANDOM_PAGES, Some(&(RANDOM_PAGES - 1))));
}

#[test]
fn the_head_of_a_disk_makes_random_writes_dear() {
    let hdd = device("hdd").unwrap();
    let [stream, random] = [RawOrder::Stream, RawOrder::Random].map(|order| bytes_per_s(hdd, order, 20).unwrap());
    // Includes the bytes that fit into its cache.
    assert!(stream > 100e6 && random < stream / 20.0, "{stream} {random}");
}
