//! A policy in device time, in outline: fixed costs, a hard limit. The test shows that a policy can be this short and
//! needs only the seam of the engine.

//! rule: a policy in other units needs nothing but the seam
//! kept in: `product/device/src/policy/mod.rs`

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afflux_engine::Policies;
use afflux_engine::counters::Counter;
use afflux_engine::policy::{
    Admission, ChargeBounds, Completed, Cost, DevicePolicy, Direction, LentMemory, LimitPages, Needs, Pace, PauseCause,
    Prices, View,
};
use afflux_simulator::DiskOptions;

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND};

/// Limits the time that the device needs for its dirty and in-flight pages.
struct DeviceTime {
    limit_ns: u64,
    prices: Prices,
    /// The largest backlog found, in nanoseconds; below, the number of runs found last.
    most_ns: AtomicU64,
    runs: AtomicU64,
    /// How often the charge bounds were asked for.
    asked: AtomicU64,
    /// The completed requests reported to it, and the device's busy time at the end of the last.
    told: Mutex<(Vec<Completed>, u64)>,
}

impl DeviceTime {
    fn backlog_ns(&self, view: &View) -> u64 {
        let device = view.device();
        self.prices.of(device.reclaimable + device.writeback, device.runs).0
    }

    fn pages_in(&self, ns: u64) -> u64 {
        ns / self.prices.page.0
    }
}

impl DevicePolicy for DeviceTime {
    type Payer = ();
    type Device = ();
    type Shared = ();

    fn name(&self) -> &'static str {
        "device time"
    }

    fn needs(&self) -> Needs {
        Needs { admits: true, memory_guard: true, reads: true, ends_together: true, ..Needs::NONE }
    }

    fn pause_ns_max(&self) -> u64 {
        0
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        // No payer is asked about while the limit is not reached.
        Pace::UNASKED
    }

    fn charge_bounds(&self, _: &View, (): &mut ()) -> ChargeBounds {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (cost_max, cause) = (Cost(self.limit_ns), PauseCause::DeviceTime);
        ChargeBounds { cost_max, prices: self.prices, cause, wake_above: Cost(0), ..ChargeBounds::UNLIMITED }
    }

    fn admit(&self, view: &View, memory: LentMemory<'_, Self>) -> Admission {
        memory.pace.unpaid_pages = 0;
        let device = view.device();
        let pages = device.reclaimable + device.writeback + view.payer.wanted;
        let fits = self.prices.of(pages, device.runs + 1) <= Cost(self.limit_ns);
        if fits { Admission::Enter } else { Admission::Wait }
    }

    fn completed(&self, view: &View, ends: &[Completed], (): &mut (), (): &mut ()) {
        let mut told = self.told.lock().unwrap();
        told.0.extend_from_slice(ends);
        told.1 = view.device().busy.transfers_ns;
        self.most_ns.fetch_max(self.backlog_ns(view), Ordering::Relaxed);
        self.runs.store(view.device().runs, Ordering::Relaxed);
    }

    fn is_over_background(&self, view: &View, (): &mut (), (): &mut ()) -> bool {
        view.device().reclaimable > 0 && self.backlog_ns(view) > self.limit_ns / 8
    }

    fn slice_bytes(&self, _: &View, (): &mut (), (): &mut ()) -> u64 {
        self.pages_in(self.limit_ns / 10) * PAGE as u64
    }

    fn limits(&self, _: &View, (): &mut (), (): &mut ()) -> LimitPages {
        let dirty = self.pages_in(self.limit_ns);
        LimitPages { dirty, background: dirty / 8, bandwidth: Some(self.pages_in(SECOND)) }
    }
}

/// A disk of 100 requests and about 10,000 pages per second, 8,192 frames and a limit of half a second.
fn lab(frames: u64, limit_ns: u64) -> (EngineFixture, Arc<DeviceTime>) {
    lab_on(10 * MILLISECOND, frames, limit_ns)
}

fn lab_on(latency_ns: u64, frames: u64, limit_ns: u64) -> (EngineFixture, Arc<DeviceTime>) {
    let bytes_per_second = if latency_ns < MILLISECOND { 1 << 40 } else { 40_960_000 };
    let disk = DiskOptions { latency_ns, bytes_per_second, ..DiskOptions::default() };
    let prices = Prices { page: Cost(100_000), run: Cost(10 * MILLISECOND) };
    let [most_ns, runs, asked] = [0; 3].map(AtomicU64::new);
    let policy = Arc::new(DeviceTime { limit_ns, prices, most_ns, runs, asked, told: Mutex::default() });
    let policies = Policies { policy: Arc::clone(&policy) as _, ..Policies::default() };
    (EngineFixture::with_policies(1, frames, &[disk], &["readahead_bytes_max=0"], policies), policy)
}

/// Writes pages at this distance; returns the most dirty pages at once.
fn write(lab: &EngineFixture, pages: u64, apart: u64) -> u64 {
    let file = lab.file(0, 0, 0);
    lab.run(async {
        let mut most = 0;
        for page in 0..pages {
            lab.here.write(&file, page * apart * PAGE as u64, PAGE, 1).await.unwrap();
            most = most.max(lab.here.dirty_bytes() / PAGE as u64);
        }
        lab.here.sync(&file).await.unwrap();
        most
    })
}

#[test]
fn runs_cost_what_they_cost_the_device() {
    let (lab, policy) = lab(8192, SECOND / 2);
    let of_stream = write(&lab, 8000, 1);
    // The rest of a run that is being written counts as another run.
    let longest = policy.most_ns.load(Ordering::Relaxed);
    assert!((1000..=5000).contains(&of_stream), "a stream has one run: {of_stream} pages were dirty");
    assert!((SECOND / 10..=SECOND / 2 + 20 * MILLISECOND).contains(&longest), "{longest} ns");
    assert_eq!(policy.runs.load(Ordering::Relaxed), 0, "no run is left");
    let scattered = write(&lab, 500, 3);
    assert!((30..=50).contains(&scattered), "{scattered} pages apart were dirty at once");
    assert_eq!(policy.runs.load(Ordering::Relaxed), 0, "no run is left");
    let causes: Vec<_> = lab.here.engine.status().devices[0].pauses.iter().map(|row| row.cause).collect();
    assert_eq!(causes, [PauseCause::DeviceTime]);
    assert_eq!(lab.here.engine.status().devices[0].dirty_limit_bytes, 5000 * PAGE as u64, "the status is the policy's");
}

#[test]
fn whatever_it_lets_in_frames_are_left_to_readers() {
    let (lab, _) = lab(256, 1000 * SECOND);
    let most = write(&lab, 2000, 1);
    // Half-way between half of the frames and all of them.
    assert!((128..=192).contains(&most), "{most} pages were dirty at once");
    let causes: Vec<_> = lab.here.engine.status().devices[0].pauses.iter().map(|row| row.cause).collect();
    assert_eq!(causes, [PauseCause::MemoryGuard]);
}

#[test]
fn it_is_told_of_what_the_device_did_in_which_direction_and_for_how_long() {
    const PAGES: u64 = 512;
    let (lab, policy) = lab(8192, SECOND / 2);
    let (stream, scattered) = (lab.file(0, PAGES as usize * PAGE, 1), lab.file(0, 20_000_000, 2));
    lab.run(async {
        for page in (0..PAGES).step_by(16) {
            lab.here.read(&stream, page * PAGE as u64, 16 * PAGE).await.unwrap();
        }
        for page in (0..20).map(|number| number * 997 % 4801) {
            lab.here.read(&scattered, page * PAGE as u64, PAGE).await.unwrap();
        }
        lab.here.write(&stream, 0, 64 * PAGE, 1).await.unwrap();
        lab.here.sync(&stream).await.unwrap();
    });
    let (told, busy_ns) = &*policy.told.lock().unwrap();
    let of = |direction| told.iter().filter(move |done| done.direction == direction);
    let (reads, writes): (Vec<_>, Vec<_>) = (of(Direction::Read).collect(), of(Direction::Write).collect());
    let bytes: u64 = reads.iter().map(|done| done.bytes).sum();
    assert_eq!(bytes, lab.count(Counter::PageIn));
    assert_eq!(reads.len() as u64, lab.count(Counter::ReadRequests));
    assert_eq!(reads.iter().map(|done| done.pages).sum::<u64>(), PAGES + 20);
    // One for the stream's first read, and one for each other read: none begins at the end of the device's last read.
    assert_eq!(reads.iter().map(|done| done.runs).sum::<u64>(), 21, "{reads:?}");
    assert!(reads.iter().all(|done| done.latency_ns >= 10 * MILLISECOND && done.unwatched_ns == 0));
    assert_eq!((writes.iter().map(|done| done.pages).sum::<u64>(), writes[0].runs), (64, 1));
    let status = &lab.here.engine.status().devices[0];
    assert!(*busy_ns > 0 && *busy_ns <= status.busy_ns, "{busy_ns} of {}", status.busy_ns);
}

/// Writes 32 KiB a call at the end of a file, with so many calls at once, for ever. Returns the bytes written so far.
fn writes_on(lab: &EngineFixture, calls: u64) -> Arc<AtomicU64> {
    let (file, written) = (lab.file(0, 0, 0), Arc::new(AtomicU64::new(0)));
    for call in 0..calls {
        let (here, to, written) = (Arc::clone(&lab.here), file.clone(), Arc::clone(&written));
        lab.world.spawn("call", async move {
            for turn in 0.. {
                here.write(&to, (turn * calls + call) * 8 * PAGE as u64, 8 * PAGE, 1).await.unwrap();
                written.fetch_add(8 * PAGE as u64, Ordering::Relaxed);
            }
        });
    }
    written
}

#[test]
fn a_payer_with_many_calls_has_one_place_in_the_queue() {
    let (lab, _) = lab(8192, SECOND / 2);
    let [few, many] = [1, 32].map(|calls| writes_on(&lab, calls));
    lab.passes(20 * SECOND);
    let [few, many] = [few, many].map(|written| written.load(Ordering::Relaxed) as f64);
    assert!(few > 0.8 * many, "one call at a time wrote {few} bytes, 32 at once {many}");
}

#[test]
fn a_policy_is_told_of_ends_together_and_of_each_once() {
    // The time of a write, what may be dirty, and how many ends are reported together at least and at most.
    let long = 100 * SECOND;
    for (latency_ns, limit_ns, least, most) in
        [(5_000, long, 8, 16), (300_000, long, 2, 16), (MILLISECOND, long, 1, 1), (5_000, SECOND / 10, 1, 2)]
    {
        let (lab, policy) = lab_on(latency_ns, 8192, limit_ns);
        let before = policy.asked.load(Ordering::Relaxed);
        write(&lab, 500, 3);
        // A status is a question, so the last are reported now.
        assert_eq!(lab.here.engine.status().devices[0].written_bytes, 500 * PAGE as u64);
        let told = policy.told.lock().unwrap().0.clone();
        let groups = policy.asked.load(Ordering::Relaxed) - before;
        assert_eq!(told.len(), 500);
        // With a low limit, writers wait for each answer.
        assert!((500 / most..=500 / least).contains(&groups), "{groups} times told of ends of {latency_ns} ns");
        assert!(
            told.is_sorted_by_key(|done| (done.at, done.device.busy.writes_ns)),
            "the clocks of each end are its own"
        );
        let clocks: BTreeSet<u64> = told.iter().map(|done| done.device.busy.writes_ns).collect();
        assert!(clocks.len() > groups as usize || most == 1 || limit_ns < long, "{} clocks", clocks.len());
    }
}

#[test]
fn a_policy_is_asked_only_after_it_was_told_of_every_end() {
    let (lab, policy) = lab_on(5_000, 8192, 100 * SECOND);
    let file = lab.file(0, 0, 0);
    for round in 1..=5 {
        lab.run(async {
            lab.here.write(&file, 0, PAGE, round as u64).await.unwrap();
            lab.here.sync(&file).await.unwrap();
        });
        assert_eq!(lab.here.engine.status().devices[0].written_bytes, (round * PAGE) as u64);
        assert_eq!(policy.told.lock().unwrap().0.len(), round);
    }
}
