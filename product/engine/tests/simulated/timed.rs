//! A policy in device time with fixed prices, which writes the file with most dirty pages first, or pages older than a
//! bound.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afflux_engine::policy::{
    Admission, ChargeBounds, Completed, Cost, DevicePolicy, DirtyFiles, Flight, FlushSlice, LentMemory, LimitPages,
    Needs, Next, Pace, PauseCause, Prices, View,
};
use afflux_engine::{Nanos, Policies};
use afflux_simulator::{DiskOptions, Memory as MachineMemory, Setup, WorldOptions};

use crate::fixture::{EngineFixture, PAGE, SECOND, TestFile};

/// The policy's parameters.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) prices: Prices,
    pub(crate) flight: Flight,
    /// The dirty limit; below, the background threshold.
    pub(crate) limit_ns: u64,
    pub(crate) background_ns: u64,
    pub(crate) slice_bytes: u64,
    /// Older pages are written first.
    pub(crate) old_ns: u64,
}

impl Terms {
    /// Terms of a device of this many ns a run and bytes per second, as the law sets them for a budget of a second.
    pub(crate) fn of(run_ns: u64, bytes_per_second: u64) -> Self {
        let page_ns = PAGE as u64 * SECOND / bytes_per_second;
        let in_flight_ns = SECOND / 10;
        let bytes_in = |ns: u64| ns / page_ns * PAGE as u64;
        let flight = Flight {
            requests_max: Some(u32::MAX),
            requests: 4,
            cost_max: Cost(in_flight_ns),
            request_bytes: bytes_in(in_flight_ns / 4).clamp(64 << 10, 1 << 20),
            run_tail_bytes: bytes_in(in_flight_ns / 4),
            slice_align_bytes: 0,
            sync_lead: Cost(SECOND / 4),
            ..Flight::BY_KNOBS
        };
        Self {
            prices: Prices { page: Cost(page_ns), run: Cost(run_ns) },
            flight,
            limit_ns: SECOND,
            background_ns: SECOND / 8,
            slice_bytes: bytes_in((4 * run_ns).clamp(in_flight_ns, SECOND)),
            old_ns: 2 * SECOND,
        }
    }
}

pub(crate) struct Timed {
    terms: Terms,
    pub(crate) told: Mutex<Vec<Completed>>,
    /// The most that was in flight, including the request that had just ended.
    pub(crate) most_in_flight_ns: AtomicU64,
}

impl Timed {
    /// The next pages to write.
    fn first(&self, view: &View, files: &dyn DirtyFiles) -> Next {
        let before = Nanos(view.now.0.saturating_sub(self.terms.old_ns));
        match files.dirty_since(true) {
            Some(since) if since <= before => Next::FlushSlice(FlushSlice::Oldest { before, hot: true }),
            Some(_) => Next::FlushSlice(FlushSlice::Largest { hot: true }),
            None => Next::WaitUntil(Nanos::NEVER),
        }
    }
}

impl DevicePolicy for Timed {
    type Payer = ();
    type Device = ();
    type Shared = ();

    fn name(&self) -> &'static str {
        "timed"
    }

    fn needs(&self) -> Needs {
        Needs { memory_guard: true, ..Needs::NONE }
    }

    fn pause_ns_max(&self) -> u64 {
        0
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        Pace::UNASKED
    }

    fn charge_bounds(&self, _: &View, (): &mut ()) -> ChargeBounds {
        let Terms { prices, limit_ns, .. } = self.terms;
        ChargeBounds {
            cost_max: Cost(limit_ns),
            prices,
            cause: PauseCause::DeviceTime,
            wake_above: Cost(0),
            ..ChargeBounds::UNLIMITED
        }
    }

    fn flight(&self, _: &View, (): &mut ()) -> Flight {
        self.terms.flight
    }

    fn admit(&self, _: &View, _: LentMemory<'_, Self>) -> Admission {
        Admission::Enter
    }

    fn completed(&self, view: &View, ends: &[Completed], (): &mut (), (): &mut ()) {
        let device = view.device();
        for done in ends {
            let ended = (device.runs_in_flight + done.runs, device.writeback + done.pages);
            self.most_in_flight_ns.fetch_max(self.terms.prices.of(ended.1, ended.0).0, Ordering::Relaxed);
            self.told.lock().unwrap().push(*done);
        }
    }

    fn is_over_background(&self, view: &View, (): &mut (), (): &mut ()) -> bool {
        let (device, Terms { prices, background_ns, .. }) = (view.device(), self.terms);
        device.reclaimable > 0 && prices.of(device.reclaimable, device.runs) > Cost(background_ns)
    }

    fn next(&self, view: &View, files: &dyn DirtyFiles, device: &mut (), shared: &mut ()) -> Next {
        if files.has_any() && self.is_over_background(view, device, shared) {
            return self.first(view, files);
        }
        match Next::write_expired(view, files) {
            Next::FlushSlice(FlushSlice::Old { before }) => Next::FlushSlice(FlushSlice::Oldest { before, hot: true }),
            other => other,
        }
    }

    fn next_if_pressed(&self, view: &View, files: &dyn DirtyFiles, (): &mut (), (): &mut ()) -> Next {
        self.first(view, files)
    }

    fn slice_bytes(&self, _: &View, (): &mut (), (): &mut ()) -> u64 {
        self.terms.slice_bytes
    }

    fn limits(&self, _: &View, (): &mut (), (): &mut ()) -> LimitPages {
        LimitPages::default()
    }
}

fn policies(terms: Terms) -> (Arc<Timed>, Policies) {
    let policy = Arc::new(Timed { terms, told: Mutex::default(), most_in_flight_ns: AtomicU64::new(0) });
    (Arc::clone(&policy), Policies { policy, ..Policies::default() })
}

const KNOBS: [&str; 1] = ["readahead_bytes_max=0"];

pub(crate) fn lab(disk: DiskOptions, terms: Terms, knobs: &[&str]) -> (EngineFixture, Arc<Timed>) {
    let (policy, policies) = policies(terms);
    (EngineFixture::with_policies(1, 65_536, &[disk], &[&KNOBS, knobs].concat(), policies), policy)
}

/// A lab with a disk of the catalogue.
pub(crate) fn lab_with(disk: &str, terms: Terms) -> (EngineFixture, Arc<Timed>) {
    let (policy, policies) = policies(terms);
    let setup = Setup { policies, ..Setup::default() }.with_knobs(&KNOBS).unwrap();
    (EngineFixture::on_disk(disk, WorldOptions::seed(1), MachineMemory::Stamped(256 << 20), setup), policy)
}

/// 25 MB/s.
pub(crate) fn slow() -> DiskOptions {
    DiskOptions { bytes_per_second: 25_000_000, ..DiskOptions::default() }
}

/// Terms for that disk, and a budget of a second.
pub(crate) fn slow_terms() -> Terms {
    Terms::of(100_000, 25_000_000)
}

/// Writes to the file for ever, from 64 KiB on and 64 KiB at a time, with gaps.
pub(crate) fn stream(lab: &EngineFixture, to: &TestFile, gap_bytes: u64) -> Arc<AtomicBool> {
    let (here, to, stop) = (Arc::clone(&lab.here), to.clone(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    lab.in_background(async move {
        let (buffer, mut at) = (vec![5; 64 << 10], 64 << 10);
        while !stopped.load(Ordering::Relaxed) {
            here.engine.write(&to.file, at, &buffer).await.unwrap();
            at += buffer.len() as u64 + gap_bytes;
        }
    });
    stop
}
