//! The law's vectors for the estimator, and its properties on a device whose true prices are known.

use super::*;

const SECOND: u64 = 1_000_000_000;

/// A device that does one request after the other.
struct Device {
    truth: [Prices; 2],
    estimator: Estimator,
    now: u64,
}

impl Device {
    fn new(reads: Prices, writes: Prices) -> Self {
        Self { truth: [reads, writes], estimator: Estimator::new(32), now: SECOND }
    }

    /// A request and its completion, with some time lost on the way.
    fn request(&mut self, side: Side, runs: u64, bytes: u64, extra_ns: u64, unwatched_ns: u64) {
        let submitted_ns = self.now;
        self.estimator.begins(submitted_ns, side);
        self.now += self.truth[side as usize].cost_ns(runs, bytes) + extra_ns;
        let done = Completion { side, runs, bytes, submitted_ns, unwatched_ns };
        self.estimator.completed(self.now, done);
    }

    fn write(&mut self, runs: u64, bytes: u64) {
        self.request(Side::Write, runs, bytes, 0, 0);
    }

    /// Streams and scattered pages by turns.
    fn mixed_writes(&mut self, rounds: u32) {
        for _ in 0..rounds {
            self.write(1, 4096);
            (0..3).for_each(|_| self.write(0, 512 << 10));
        }
    }

    fn learned(&self) -> Prices {
        self.estimator.learned(Side::Write)
    }
}

const DISK: Prices = Prices { run_ns: 8 * MILLISECOND, mib_ns: 8 * MILLISECOND };

fn within(value: u64, truth: u64, percent: u64) -> bool {
    value.abs_diff(truth) * 100 <= truth * percent
}

#[test]
fn cold_prices_are_those_of_the_law() {
    let mut estimator = Estimator::new(32);
    let at = |estimator: &Estimator| estimator.prices(SECOND, 64 << 10);
    assert_eq!(at(&estimator), Prices { run_ns: 62_500_000, mib_ns: 250_000_000 });
    estimator.writes.done = Work { runs: 120, bytes: 10 * MIB };
    estimator.writes.prices.run_ns = 1000;
    assert_eq!(at(&estimator), Prices { run_ns: 3_906_250, mib_ns: 41_666_666 });
}

#[test]
fn one_stalled_window_is_overlooked_and_two_are_not() {
    assert_eq!(believed([16_384, 1000, 1030], 10), 1030);
    assert_eq!(believed([16_384, 16_000, 1030], 10), 16_000);
    assert_eq!(believed([16_384, 0, 0], 3), 16_384, "at first everything counts");
    assert_eq!(believed([1500, 900, 900], 10), 1500, "no stall");
}

#[test]
fn both_prices_are_found() {
    let mut device = Device::new(DISK, DISK);
    device.mixed_writes(2000);
    let learned = device.learned();
    assert!(within(learned.run_ns, DISK.run_ns, 10) && within(learned.mib_ns, DISK.mib_ns, 10), "{learned:?}");
    assert!(!device.estimator.is_cold());
}

#[test]
fn a_stall_moves_no_price_by_more_than_five_percent() {
    let mut device = Device::new(DISK, DISK);
    device.mixed_writes(2000);
    let before = device.learned();
    device.request(Side::Write, 0, 512 << 10, SECOND, 0);
    device.mixed_writes(20);
    let after = device.learned();
    assert!(within(after.mib_ns, before.mib_ns, 5) && within(after.run_ns, before.run_ns, 5), "{before:?} {after:?}");
}

#[test]
fn a_tenfold_slowdown_is_known_after_a_second_and_the_way_back_after_half_of_one() {
    let mut device = Device::new(DISK, DISK);
    (0..2000).for_each(|_| device.write(0, 512 << 10));
    device.truth[1].mib_ns *= 10;
    let began = device.now;
    while device.now < began + SECOND {
        device.write(0, 512 << 10);
    }
    assert!(within(device.learned().mib_ns, device.truth[1].mib_ns, 25), "{:?}", device.learned());
    device.truth[1].mib_ns /= 10;
    let began = device.now;
    while device.now < began + SECOND / 2 {
        device.write(0, 512 << 10);
    }
    assert!(within(device.learned().mib_ns, device.truth[1].mib_ns, 25), "{:?}", device.learned());
}

#[test]
fn a_reader_beside_the_writer_moves_no_price_of_writes_by_more_than_ten_percent() {
    for read in [(1, 4096), (0, 512 << 10), (1, 128 << 10)] {
        let mut device = Device::new(Prices { run_ns: 6 * MILLISECOND, mib_ns: 7 * MILLISECOND }, DISK);
        device.mixed_writes(1000);
        let before = device.learned();
        for round in 0..3000_u32 {
            device.request(Side::Read, read.0, read.1, 0, 0);
            if round.is_multiple_of(3) {
                device.mixed_writes(1);
            }
        }
        let after = device.learned();
        let kept = within(after.mib_ns, before.mib_ns, 10) && within(after.run_ns, before.run_ns, 10);
        assert!(kept, "{read:?}: {before:?} became {after:?}");
    }
}

#[test]
fn a_reaper_that_comes_late_does_not_make_the_device_look_slow() {
    let mut device = Device::new(DISK, DISK);
    device.mixed_writes(1000);
    let before = device.learned();
    for _ in 0..500 {
        device.request(Side::Write, 0, 512 << 10, 20 * MILLISECOND, 20 * MILLISECOND);
    }
    let after = device.learned();
    assert!(within(after.mib_ns, before.mib_ns, 10), "{before:?} became {after:?}");
}

#[test]
fn a_flusher_that_ran_dry_proves_no_slowness() {
    let mut device = Device::new(DISK, DISK);
    device.mixed_writes(1000);
    let before = device.learned();
    for _ in 0..500 {
        device.estimator.ran_dry();
        device.request(Side::Write, 0, 4096, 5 * MILLISECOND, 0);
    }
    assert!(device.learned().mib_ns <= before.mib_ns * 11 / 10, "{before:?} became {:?}", device.learned());
}

#[test]
fn while_a_request_lags_prices_do_not_fall() {
    let mut device = Device::new(DISK, DISK);
    device.mixed_writes(1000);
    let before = device.learned();
    device.estimator.begins(device.now, Side::Write);
    device.now += 1;
    device.truth[1] = Prices { run_ns: 10_000, mib_ns: MILLISECOND };
    let began = device.now;
    // The first window may have begun before the request did.
    while device.now < began + SECOND {
        let submitted_ns = device.now;
        device.estimator.begins(submitted_ns, Side::Write);
        device.now += device.truth[1].cost_ns(0, 512 << 10);
        let done = Completion { side: Side::Write, runs: 0, bytes: 512 << 10, submitted_ns, unwatched_ns: 1 };
        device.estimator.completed(device.now, done);
    }
    assert!(device.learned().mib_ns >= before.mib_ns / 2, "{before:?} became {:?}", device.learned());
}

#[test]
fn a_completion_of_nothing_that_was_submitted_is_overlooked() {
    let mut estimator = Estimator::new(1);
    let done = Completion { side: Side::Write, runs: 1, bytes: 4096, submitted_ns: 5, unwatched_ns: 0 };
    assert!(!estimator.completed(10, done));
}

#[test]
fn the_time_that_a_few_reads_took_is_not_charged_to_the_writes_beside_them() {
    let mut device = Device::new(DISK, DISK);
    for _ in 0..1000 {
        device.request(Side::Read, 1, 4096, 0, 0);
        (0..3).for_each(|_| device.request(Side::Read, 0, 512 << 10, 0, 0));
    }
    device.mixed_writes(1000);
    let before = device.learned();
    // One read in eight requests: a fifth of each window's time.
    for _ in 0..300 {
        device.request(Side::Read, 1, 512 << 10, 0, 0);
        (0..11).for_each(|_| device.write(0, 512 << 10));
    }
    let after = device.learned();
    assert!(within(after.mib_ns, DISK.mib_ns, 1), "{before:?} became {after:?}");
}

#[test]
fn a_completion_beside_a_read_in_flight_proves_nothing_by_itself() {
    let mut device = Device::new(DISK, DISK);
    device.mixed_writes(2000);
    let before = device.learned();
    let submitted_ns = device.now;
    device.estimator.begins(submitted_ns, Side::Read);
    // The device serves half of the read first.
    device.request(Side::Write, 0, 64 << 10, 3 * MILLISECOND, 0);
    assert_eq!(device.learned(), before);
}

#[test]
fn one_slow_completion_moves_no_price_by_more_than_five_percent() {
    let mut device = Device::new(DISK, DISK);
    device.mixed_writes(2000);
    let before = device.learned();
    device.request(Side::Write, 0, 64 << 10, 3 * MILLISECOND, 0);
    let after = device.learned();
    assert!(after.mib_ns > before.mib_ns && within(after.mib_ns, before.mib_ns, 5), "{before:?} became {after:?}");
}
