#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

fn figures(row: &Row) -> [f64; 2] {
    ["page_lines_per_1000", "zone_lines_per_1000"].map(|name| row.metrics.get(name).unwrap().as_f64().unwrap())
}

#[test]
fn a_line_passes_once_for_each_change_of_its_writer() {
    let mut caches = Caches::default();
    for cpu in [0, 0, 1, 1, 0] {
        caches.write(cpu, Line::Lock);
    }
    assert_eq!((caches.others_passed, caches.pages_passed), (2, 0));
    caches.read(1, Line::Lock);
    caches.read(1, Line::Lock);
    caches.read(0, Line::Lock);
    assert_eq!(caches.others_passed, 3, "both may have a copy of what nobody writes");
}

/// The sender refills, and the receiver drains, once in 31 buffers.
#[test]
fn a_sent_buffer_passes_its_page_twice_and_a_batch_passes_the_lock() {
    let [pages, zone] = figures(&of::<BatchedDrain>(Tunables::BesideLists, 1));
    assert!((1900.0..=2000.0).contains(&pages), "to the receiver, and back to the sender: {pages}");
    assert!((0.9 * 2000.0 / 31.0..=1.1 * 2000.0 / 31.0).contains(&zone), "{zone}");
    let own = figures(&of::<BatchedDrain>(Tunables::BesideLists, SENDER));
    assert!(own[0] < 1.0 && own[1] < 1.0, "what stays on a CPU passes nothing: {own:?}");
}

#[test]
fn where_the_tunables_lie_changes_no_more_than_a_line_a_batch() {
    let zone = |row: Row| figures(&row)[1];
    let beside = zone(of::<BatchedDrain>(Tunables::BesideLists, 1));
    let with_marks = zone(of::<ZoneTunables>(Tunables::WithMarks, 1));
    let with_lock = zone(of::<ZoneTunables>(Tunables::WithLock, 1));
    assert!((with_marks - beside).abs() < 1.0, "nobody writes to the watermarks: {with_marks} {beside}");
    assert!((with_marks - 1.0..=with_marks + 1000.0 / 31.0).contains(&with_lock), "{with_lock} {with_marks}");
}
