mod window_sizes;

use super::*;

/// A device that serves one read at a time, with a latency added to each.
struct Device {
    run_ns: u64,
    latency_ns: u64,
    mib_ns: u64,
    learner: Learner,
    reads_ns: u64,
}

impl Device {
    fn new(run_us: u64, latency_us: u64, bytes_per_s: u64) -> Self {
        let mib_ns = (1 << 20) * 1_000_000_000 / bytes_per_s;
        let (run_ns, latency_ns) = (run_us * 1000, latency_us * 1000);
        Self { run_ns, latency_ns, mib_ns, learner: Learner::default(), reads_ns: 0 }
    }

    fn serves(&self, runs: u64, pages: u64) -> u64 {
        runs * self.run_ns + pages * self.mib_ns / 256
    }

    /// Reads one at a time.
    fn one_by_one(&mut self, count: u64, runs: u64, pages: u64) {
        for _ in 0..count {
            self.learner.begins(0, true);
            self.reads_ns += self.latency_ns + self.serves(runs, pages);
            self.learner.ends(runs, pages << 12, 0, true, self.reads_ns);
        }
    }

    /// Reads with `depth` in flight at any time; a device that takes them at once needs its latency once.
    fn queued(&mut self, count: u64, depth: u32, runs: u64, pages: u64) {
        (0..depth).for_each(|before| self.learner.begins(before, true));
        self.reads_ns += self.latency_ns;
        for _ in 0..count {
            self.reads_ns += self.serves(runs, pages);
            self.learner.ends(runs, pages << 12, depth - 1, true, self.reads_ns);
            self.learner.begins(depth - 1, true);
        }
        for left in (0..depth).rev() {
            self.reads_ns += self.serves(runs, pages);
            self.learner.ends(runs, pages << 12, left, true, self.reads_ns);
        }
    }

    fn window_sizes(&self) -> crate::readahead::prices::WindowSizes {
        crate::readahead::prices::WindowSizes::of(self.learner.prices(), 0)
    }
}

/// Within a factor of two.
fn is_near(found: u64, expected: u64) -> bool {
    found * 2 >= expected && found <= expected * 2
}

#[test]
fn a_disk_is_told_by_a_few_reads() {
    let mut disk = Device::new(8000, 0, 120_000_000);
    disk.one_by_one(4, 1, 16);
    disk.one_by_one(16, 0, 256);
    let window_sizes = disk.window_sizes();
    assert!(
        is_near(window_sizes.most, 1856) && is_near(window_sizes.first, 58) && is_near(window_sizes.gap, 234),
        "{window_sizes:?}"
    );
}

#[test]
fn a_stick_and_a_solid_state_disk() {
    let mut stick = Device::new(1000, 0, 25_000_000);
    stick.one_by_one(8, 1, 8);
    stick.one_by_one(16, 0, 32);
    // Short lone reads say little about bytes.
    assert!((144..=1152).contains(&stick.window_sizes().most), "{:?}", stick.window_sizes());
    let mut ssd = Device::new(0, 80, 500_000_000);
    ssd.one_by_one(8, 1, 1);
    ssd.queued(256, 16, 1, 1);
    ssd.queued(256, 4, 0, 32);
    assert!(
        ssd.window_sizes().most <= 64 && ssd.window_sizes().first <= 8,
        "{:?} {:?}",
        ssd.window_sizes(),
        ssd.learner
    );
}

#[test]
fn no_part_of_a_read_took_longer_than_all_of_it() {
    let mut ssd = Device::new(50, 30, 4_000_000_000);
    ssd.one_by_one(1, 1, 32);
    let took_ns = ssd.reads_ns;
    assert!(ssd.learner.prices().run_ns <= took_ns && ssd.learner.prices().latency_ns <= took_ns);
    // A read that continues the last one says nothing about seeks.
    ssd.one_by_one(50, 0, 256);
    let window_sizes = ssd.window_sizes();
    assert!(window_sizes.most <= 32_768 / 2, "{window_sizes:?} {:?}", ssd.learner.prices());
}

#[test]
fn an_object_store_answers_late_and_much() {
    let mut store = Device::new(0, 80_000, 1_250_000_000);
    store.one_by_one(8, 1, 64);
    (0..12).for_each(|_| store.queued(64, 16, 0, 2048));
    assert!(store.window_sizes().most >= 8192 && store.window_sizes().first == 64, "{:?}", store.window_sizes());
}

#[test]
fn a_latency_is_not_taken_for_slow_bytes() {
    let mut store = Device::new(0, 150_000, 1_250_000_000);
    store.one_by_one(40, 0, 32);
    assert!(store.window_sizes().most >= 1024, "{:?} {:?}", store.window_sizes(), store.learner.prices());
    // A slow device is recognized as soon as requests are large.
    let mut card = Device::new(0, 100, 5_000_000);
    card.one_by_one(40, 0, 32);
    card.one_by_one(80, 0, 256);
    assert!(card.window_sizes().most <= 256, "{:?} {:?}", card.window_sizes(), card.learner.prices());
}

#[test]
fn what_is_disturbed_or_fails_teaches_nothing() {
    let mut disk = Device::new(8000, 0, 120_000_000);
    disk.one_by_one(20, 1, 16);
    let before = *disk.learner.prices();
    disk.learner.begins(0, false);
    assert_eq!(disk.learner.ends(1, 4096, 0, true, disk.reads_ns + 1_000_000_000), None);
    disk.learner.begins(0, true);
    assert_eq!(disk.learner.ends(1, 0, 0, true, disk.reads_ns + 2_000_000_000), None);
    disk.reads_ns += 2_000_000_000;
    assert_eq!(*disk.learner.prices(), before);
}

#[test]
fn one_stall_moves_prices_little() {
    let mut disk = Device::new(8000, 0, 120_000_000);
    disk.one_by_one(40, 1, 16);
    let before = disk.learner.prices().run_ns;
    for _ in 0..READS {
        disk.learner.begins(0, true);
        disk.reads_ns += 1_000_000_000;
        disk.learner.ends(1, 16 << 12, 0, true, disk.reads_ns);
    }
    assert!(disk.learner.prices().run_ns <= before * 7 / 4);
}
