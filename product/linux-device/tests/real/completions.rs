//! The reports to a policy when requests for real files complete: facts that fit together, however long anything took.

//! rule: the policy learns a device's prices from its observations, under any other load

use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use afflux_engine::policy::{
    Admission, BusyTimes, ChargeBounds, Completed, Cost, DevicePolicy, Direction, LentMemory, LimitPages, Needs, Pace,
    PauseCause, View,
};
use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Device, Engine, Limits, Nanos, Operation, Platform, Policies, Request};
use afflux_frames::Frames;
use afflux_linux_device::{Caching, HostDevice, HostFile, IoChoice, Reactors};
use afflux_scratch::Scratch;

const PAGE: u64 = 4096;
const FILE_BYTES: u64 = 8 << 20;

/// The report of one completion, with the instant and the oldest request that remained.
type CompletionReport = (Nanos, Completed, BusyTimes, Option<Nanos>);

/// Records the reports.
#[derive(Default)]
struct Notes(Mutex<Vec<CompletionReport>>);

impl DevicePolicy for Notes {
    type Payer = ();
    type Device = ();
    type Shared = ();

    fn name(&self) -> &'static str {
        "notes"
    }

    fn needs(&self) -> Needs {
        Needs { reads: true, ..Needs::NONE }
    }

    fn pause_ns_max(&self) -> u64 {
        0
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        Pace::UNASKED
    }

    fn charge_bounds(&self, _: &View, (): &mut ()) -> ChargeBounds {
        let cost_max = Cost(512);
        ChargeBounds { cost_max, cause: PauseCause::DevicePart, wake_above: Cost(0), ..ChargeBounds::UNLIMITED }
    }

    fn admit(&self, _: &View, _: LentMemory<'_, Self>) -> Admission {
        Admission::Enter
    }

    fn completed(&self, view: &View, ends: &[Completed], (): &mut (), (): &mut ()) {
        let device = view.device();
        let told = ends.iter().map(|done| (view.now, *done, device.busy, device.oldest_in_flight));
        self.0.lock().unwrap().extend(told);
    }

    fn is_over_background(&self, view: &View, (): &mut (), (): &mut ()) -> bool {
        view.device().reclaimable > 0
    }

    fn slice_bytes(&self, _: &View, (): &mut (), (): &mut ()) -> u64 {
        1 << 20
    }

    fn limits(&self, _: &View, (): &mut (), (): &mut ()) -> LimitPages {
        LimitPages { dirty: 512, background: 0, bandwidth: None }
    }
}

/// Writes, flushes and reads a file; returns the reports, and the time of the whole.
fn told(choice: IoChoice, caching: Caching) -> (Vec<CompletionReport>, u64) {
    let scratch = Scratch::new(&std::env::temp_dir(), "completions").unwrap();
    let path = scratch.path();
    let reactors = Reactors::start(2, choice).unwrap();
    let platform = reactors.platform();
    let notes = Arc::new(Notes::default());
    let policies = Policies { policy: Arc::clone(&notes) as _, ..Policies::default() };
    let frames = Frames::new(4 << 20).unwrap();
    let engine = Engine::with_policies(Arc::new(platform.clone()), Settings::new(), frames, policies);
    let directory: OwnedFd = std::fs::File::open(path).unwrap().into();
    let device = engine.add_device("notes", HostDevice::new(&platform, directory, caching).unwrap());
    let host = OpenOptions::new().read(true).write(true).create_new(true).open(path.join("file")).unwrap();
    let file = engine.open(device, Backing::new(Arc::new(HostFile::new(host.into()))), 0);
    let began = platform.now();
    platform.block_on(async {
        let mut page = vec![7; PAGE as usize];
        for at in (0..FILE_BYTES).step_by(64 << 10) {
            engine.write(&file, at, &vec![5; 64 << 10]).await.unwrap();
        }
        for round in 0..20 {
            engine.write(&file, round * 37 * PAGE, &page).await.unwrap();
            engine.sync(&file, 0..u64::MAX).await.unwrap();
        }
        for round in 0..200 {
            engine.read(&file, round * 997 % (FILE_BYTES / PAGE) * PAGE, &mut page).await.unwrap();
        }
    });
    let passed_ns = platform.now().since(began);
    drop(file);
    drop(engine);
    drop(reactors);
    let told = std::mem::take(&mut *notes.0.lock().unwrap());
    (told, passed_ns)
}

fn are_sane(choice: IoChoice, caching: Caching) {
    let (told, passed_ns) = told(choice, caching);
    let of = |direction| told.iter().filter(move |told| told.1.direction == direction).count();
    assert!(of(Direction::Write) > 20 && of(Direction::Read) > 0, "{} completions", told.len());
    // Several threads report completions: a request that another thread submits meanwhile may be later than a report's
    // instant.
    let latest = told.iter().map(|told| told.0).max();
    for (_, done, busy, oldest) in &told {
        assert!(done.unwatched_ns <= done.latency_ns, "{done:?}");
        assert!(busy.reads_ns.max(busy.writes_ns) <= busy.transfers_ns, "{busy:?}");
        assert!(busy.transfers_ns <= busy.reads_ns + busy.writes_ns, "{busy:?}");
        assert!(
            busy.held_up_ns <= busy.transfers_ns && busy.transfers_ns + busy.calls_alone_ns <= passed_ns,
            "{busy:?}"
        );
        assert!(*oldest <= latest, "{oldest:?} of {latest:?}");
    }
    // Several threads report, in about the order of the ends: the largest value of each clock is the last.
    let last = told.iter().map(|told| told.2).max_by_key(|busy| busy.transfers_ns).unwrap();
    assert!(last.reads_ns > 0 && last.writes_ns > 0 && last.calls_alone_ns > 0, "{last:?}");
    let moved: u64 = told.iter().filter(|told| told.1.direction == Direction::Write).map(|told| told.1.bytes).sum();
    assert!(moved >= FILE_BYTES, "{moved} bytes");
}

#[test]
fn what_a_ring_tells_fits_together() {
    are_sane(IoChoice::Auto, Caching::Auto);
}

#[test]
fn what_worker_threads_tell_fits_together() {
    are_sane(IoChoice::Syscalls, Caching::Buffered);
}

/// A device that records for each write whether it is for a sync.
struct Noting(Arc<HostDevice>, Mutex<Vec<bool>>);

impl Device for Noting {
    fn limits(&self) -> &Limits {
        self.0.limits()
    }

    fn submit(&self, request: Request) {
        if matches!(request.operation(), Operation::Write { .. }) {
            self.1.lock().unwrap().push(request.is_for_sync());
        }
        self.0.submit(request);
    }

    fn free_bytes_hint(&self) -> u64 {
        self.0.free_bytes_hint()
    }
}

/// Writes a page to a new file, and then syncs it, or leaves it to a policy that has everything written.
fn is_for_sync(synced: bool) -> bool {
    let scratch = Scratch::new(&std::env::temp_dir(), "for-sync").unwrap();
    let path = scratch.path();
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let frames = Frames::new(16 << 20).unwrap();
    let policies = Policies { policy: Arc::new(Notes::default()) as _, ..Policies::default() };
    let policies = if synced { Policies::default() } else { policies };
    let engine = Engine::with_policies(Arc::new(platform.clone()), Settings::new(), frames, policies);
    let directory: OwnedFd = std::fs::File::open(path).unwrap().into();
    let host_device = HostDevice::new(&platform, directory, Caching::Auto).unwrap();
    let noting = Arc::new(Noting(host_device, Mutex::default()));
    let device = engine.add_device("noting", Arc::clone(&noting) as _);
    let host = OpenOptions::new().read(true).write(true).create_new(true).open(path.join("file")).unwrap();
    let file = engine.open(device, Backing::new(Arc::new(HostFile::new(host.into()))), 0);
    platform.block_on(async {
        engine.write(&file, 0, &[5; PAGE as usize]).await.unwrap();
        if synced {
            engine.sync(&file, 0..u64::MAX).await.unwrap();
        }
        while noting.1.lock().unwrap().is_empty() {
            platform.sleep_until(platform.now().after(Nanos::MILLISECOND)).await;
        }
    });
    let noted = noting.1.lock().unwrap()[0];
    drop((file, engine, reactors));
    noted
}

#[test]
fn a_write_says_whether_it_is_for_a_sync() {
    assert!(is_for_sync(true));
    assert!(!is_for_sync(false));
}
