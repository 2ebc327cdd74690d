mod time_unit;

use super::*;

const MIB: u64 = 1 << 20;

#[test]
fn what_was_written_since_the_host_was_asked_is_added_in_pages() {
    let mut usage = ReportedUsage::default();
    assert_eq!(usage.reported_bytes(8192, 100 * MIB), 8192);
    usage.wrote(&(4095..4097));
    assert_eq!(usage.reported_bytes(8192, 100 * MIB), 8192 + 8192);
    usage.wrote(&(0..1));
    assert_eq!(usage.reported_bytes(8192, 100 * MIB), 8192 + 12_288);
    let mark = usage.mark();
    usage.wrote(&(MIB..2 * MIB));
    usage.renewed(mark.with_unwritten(4096));
    assert_eq!(usage.reported_bytes(16_384, 100 * MIB), 16_384 + 4096 + MIB);
}

#[test]
fn no_more_is_told_than_the_file_has_pages_or_the_host_says() {
    let mut usage = ReportedUsage::default();
    for _ in 0..5 {
        usage.wrote(&(0..10_000));
    }
    assert_eq!(usage.reported_bytes(0, 10_000), 12_288);
    assert_eq!(usage.reported_bytes(65_536, 10_000), 65_536, "room that was reserved");
    usage.wrote(&(u64::MAX / 2 - 10..u64::MAX / 2));
    assert_eq!(usage.reported_bytes(u64::MAX - 5, u64::MAX / 2), u64::MAX - 5);
}

#[test]
fn answers_that_come_late_only_tell_too_much() {
    let mut usage = ReportedUsage::default();
    let early = usage.mark();
    usage.wrote(&(0..MIB));
    // The host has all of the data, and its answer says so.
    usage.renewed(usage.mark());
    assert_eq!(usage.reported_bytes(MIB, MIB), MIB);
    // An earlier answer.
    usage.renewed(early);
    assert_eq!(usage.reported_bytes(0, MIB), MIB);
}
