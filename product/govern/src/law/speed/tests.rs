mod backlog;

use afflux_budget::RememberedPrices;

use super::{Backlog, BlockCounters, Speed};
use crate::law::Flow;

const MB: u64 = 1_000_000;
const LOOK_NS: u64 = 500 * MB;

/// A device and its observer.
struct Watched {
    speed: Speed,
    now_ns: u64,
    counters: BlockCounters,
}

impl Watched {
    fn new() -> Self {
        let mut watched = Self { speed: Speed::new(None), now_ns: 1, counters: BlockCounters::default() };
        watched.speed.look(1, &watched.counters);
        watched
    }

    /// Makes `looks` looks. In each the device wrote at a rate for a part of the time, with `depth` requests waiting.
    fn writes(&mut self, looks: u64, mb_per_s: u64, busy_percent: u64, depth: u64) -> &mut Self {
        for _ in 0..looks {
            let busy_ns = LOOK_NS / 100 * busy_percent;
            let bytes = mb_per_s * MB / 1000 * (busy_ns / MB);
            self.now_ns += LOOK_NS;
            self.counters.write_bytes += bytes;
            self.counters.writes += bytes.div_ceil(128 << 10);
            self.counters.write_ns += busy_ns * depth;
            self.counters.busy_ns += busy_ns;
            self.counters.in_flight = if busy_percent == 100 { depth } else { 0 };
            self.speed.look(self.now_ns, &self.counters);
        }
        self
    }

    fn mb_per_s(&self) -> Option<u64> {
        self.speed.bytes_per_second().map(|bytes| bytes / MB)
    }

    fn is_near(&self, mb_per_s: u64) {
        let found = self.mb_per_s().expect("known");
        assert!(found.abs_diff(mb_per_s) <= mb_per_s / 10, "{found} MB/s for {mb_per_s}");
    }
}

#[test]
fn a_speed_is_found_within_seconds_whatever_it_is() {
    for rate in [1, 5, 25, 120, 500, 3000] {
        let mut watched = Watched::new();
        assert_eq!(watched.mb_per_s(), None);
        watched.writes(14, rate, 100, 32).is_near(rate);
    }
}

#[test]
fn an_unknown_device_may_owe_little_until_it_has_shown_more() {
    let mut watched = Watched::new();
    let first = watched.speed.bytes_in(1000 * MB);
    assert!((32 * MB..35 * MB).contains(&first), "{first}");
    // Even a budget of an hour does not raise the bound of an unknown device.
    assert_eq!(watched.speed.bytes_in(3_600_000 * MB).abs_diff(first) / MB, 0);
    watched.writes(1, 2000, 100, 32);
    assert!(watched.speed.bytes_in(1000 * MB) > 1000 * MB, "{}", watched.speed.bytes_in(1000 * MB));
    // The bound of a slow one never rises far above its final limit.
    let mut slow = Watched::new();
    for _ in 0..10 {
        let may_owe = slow.writes(1, 25, 100, 32).speed.bytes_in(1000 * MB);
        assert!(may_owe <= 51 * MB, "{may_owe}");
    }
}

#[test]
fn a_slower_device_is_followed_within_ten_seconds_and_one_stall_is_not() {
    let mut watched = Watched::new();
    watched.writes(20, 25, 100, 32);
    watched.writes(1, 5, 100, 32).is_near(25);
    watched.writes(19, 5, 100, 32).is_near(5);
    watched.writes(20, 25, 100, 32).is_near(25);
}

#[test]
fn idle_time_counts_for_nothing() {
    let mut watched = Watched::new();
    watched.writes(20, 25, 100, 32).writes(1000, 0, 0, 0).is_near(25);
}

#[test]
fn who_writes_little_or_waits_for_each_write_proves_no_device_slow() {
    let mut watched = Watched::new();
    watched.writes(20, 200, 100, 32);
    // A write now and then; the kernel's clock makes each look as long as one of its ticks.
    watched.writes(200, 1, 10, 1).is_near(200);
    // A database that syncs each write.
    watched.writes(200, 4, 100, 1).is_near(200);
    // A higher speed than the known one is believed.
    watched.writes(20, 400, 40, 2);
    assert!(watched.mb_per_s() > Some(300), "{:?}", watched.mb_per_s());
}

#[test]
fn a_device_that_completes_nothing_between_two_looks_is_slow_and_not_idle() {
    let mut watched = Watched::new();
    for _ in 0..20 {
        // One request in five looks: 1 MB in 2.5 s.
        watched.counters.in_flight = 8;
        for _ in 0..4 {
            watched.now_ns += LOOK_NS;
            watched.counters.busy_ns += LOOK_NS;
            watched.speed.look(watched.now_ns, &watched.counters);
        }
        watched.now_ns += LOOK_NS;
        watched.counters.busy_ns += LOOK_NS;
        watched.counters.writes += 1;
        watched.counters.write_bytes += MB;
        watched.counters.write_ns += 40 * LOOK_NS;
        watched.speed.look(watched.now_ns, &watched.counters);
    }
    let speed = watched.speed.bytes_per_second().expect("known");
    assert!((360_000..440_000).contains(&speed), "{speed}");
}

#[test]
fn readers_beside_do_not_make_it_slow() {
    let mut watched = Watched::new();
    watched.writes(20, 100, 100, 32);
    for _ in 0..40 {
        // Readers get half of the device's time.
        watched.counters.reads += 100;
        watched.counters.read_bytes += 25 * MB;
        watched.counters.read_ns += 4 * LOOK_NS;
        watched.writes(1, 50, 100, 32);
    }
    assert!(watched.mb_per_s() >= Some(80), "{:?}", watched.mb_per_s());
}

/// A fast disk behind a limit: it is hardly busy, and completes each of its requests at once.
struct Throttled {
    watched: Watched,
    writeback_bytes: u64,
}

impl Throttled {
    fn new() -> Self {
        Self { watched: Watched::new(), writeback_bytes: 0 }
    }

    /// Makes `looks` looks. Before each, `new_bytes` come under writeback, and the limit lets `limit_per_look` through.
    fn looks(&mut self, looks: u64, new_bytes: u64, limit_per_look: u64) {
        for _ in 0..looks {
            let Watched { speed, now_ns, counters } = &mut self.watched;
            self.writeback_bytes += new_bytes;
            let written = self.writeback_bytes.min(limit_per_look);
            self.writeback_bytes -= written;
            *now_ns += LOOK_NS;
            counters.write_bytes += written;
            counters.writes += written.div_ceil(1 << 20);
            // At 4 GB/s.
            counters.write_ns += written / 4;
            counters.busy_ns += written / 4;
            let (writeback_bytes, written_bytes) = (self.writeback_bytes, counters.write_bytes);
            let backlog = Backlog::new(vec![Flow { cgroup: 1, writeback_bytes, written_bytes }]);
            speed.look_behind(*now_ns, counters, Some(backlog));
        }
    }
}

#[test]
fn a_limit_above_the_disk_is_its_speed_while_writeback_never_runs_dry() {
    let mut throttled = Throttled::new();
    // The kernel lets a writer run ahead; 25 MB/s pass the limit.
    throttled.looks(1, 900 * MB, 12_500_000);
    throttled.looks(13, 12_500_000, 12_500_000);
    throttled.watched.is_near(25);
    // A writer whose device is held to a budget of a second.
    let mut governed = Throttled::new();
    governed.looks(1, 25 * MB, 12_500_000);
    governed.looks(13, 12_500_000, 12_500_000);
    governed.watched.is_near(25);
    // The limit is lifted: the disk shows its own speed.
    governed.looks(60, 500 * MB, u64::MAX);
    assert!(governed.watched.mb_per_s() > Some(2000), "{:?}", governed.watched.mb_per_s());
}

#[test]
fn who_writes_less_than_the_limit_shows_no_speed_by_the_clock() {
    let mut throttled = Throttled::new();
    throttled.looks(40, 5 * MB, 12_500_000);
    assert!(throttled.watched.mb_per_s().is_none_or(|speed| speed > 2000), "{:?}", throttled.watched.mb_per_s());
}

#[test]
fn counters_that_go_back_are_another_devices() {
    let mut watched = Watched::new();
    watched.writes(20, 25, 100, 32);
    watched.counters = BlockCounters::default();
    watched.writes(1, 25, 100, 32).is_near(25);
}

#[test]
fn what_is_kept_is_known_at_once() {
    let mut watched = Watched::new();
    assert!(watched.speed.remembered().is_none(), "a device of unknown speed has no prices to keep");
    let kept = watched.writes(20, 25, 100, 32).speed.remembered().expect("known");
    let kept = RememberedPrices::from_named(&kept.named()).unwrap();
    let again = Speed::new(Some(&kept));
    let speed = again.bytes_per_second().expect("known");
    assert!(speed.abs_diff(25 * MB) < 3 * MB, "{speed}");
    assert!(again.bytes_in(1000 * MB) < 28 * MB);
}

#[test]
fn a_speed_younger_than_seconds_of_writing_is_not_kept_and_grants_no_burst() {
    let mut watched = Watched::new();
    watched.writes(9, 25, 100, 32).is_near(25);
    assert_eq!(watched.speed.remembered(), None, "4.5 s of writing are too few");
    let kept = watched.writes(6, 25, 100, 32).speed.remembered().expect("kept");
    let proven = watched.speed.bytes_in(1000 * MB);
    // After each pause, a cache takes the first seconds' bytes at twice the speed.
    for _ in 0..5 {
        watched.writes(4, 0, 0, 0).writes(6, 50, 100, 32);
        assert_eq!(watched.speed.remembered(), Some(kept));
        let may_owe = watched.speed.bytes_in(1000 * MB);
        assert!(may_owe <= proven + proven / 3, "{may_owe} for {proven}");
    }
    // A device that has become faster is one after some seconds.
    watched.writes(30, 50, 100, 32).is_near(50);
    assert!(watched.speed.bytes_in(1000 * MB) > 2 * proven - proven / 5);
    assert_ne!(watched.speed.remembered(), Some(kept));
}
