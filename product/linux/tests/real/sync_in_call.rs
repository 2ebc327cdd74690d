//! Which thread carries out a sync.

//! rule: a blocked caller of a sync writes and flushes on its own thread, unless it may have to leave a hung disk
//! kept in: `product/engine/src/writeback/in_call.rs`

use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread, ThreadId};

use afflux_budget::Budget;
use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Device, Engine, Limits, Operation, Policies, Request};
use afflux_frames::Frames;
use afflux_linux::{Caching, HostDevice, HostFile, IoChoice, Reactors};
use afflux_scratch::Scratch;

const PAGE: u64 = 4096;
/// The flusher has no reason of its own to write.
const UNDISTURBED: &[&str] = &["dirty_expire_centisecs=360000", "dirty_background_ratio=80", "dirty_ratio=90"];

/// A disk that notes who submits.
struct NotedDisk {
    disk: Arc<HostDevice>,
    submits: Mutex<Vec<(Operation, ThreadId)>>,
}

impl Device for NotedDisk {
    fn limits(&self) -> &Limits {
        self.disk.limits()
    }

    fn submit(&self, request: Request) {
        self.submits.lock().unwrap().push((request.operation(), thread::current().id()));
        self.disk.submit(request);
    }

    fn free_bytes_hint(&self) -> u64 {
        self.disk.free_bytes_hint()
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Awaits the work as another program's runtime does.
fn awaited<T>(mut work: Pin<&mut impl Future<Output = T>>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match work.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// The writes and flushes of one sync of `pages` pages that do not touch, each with whether the caller's thread did it.
fn requests_of_a_sync(policies: Policies, knobs: &[&str], pages: u64, is_blocked: bool) -> Vec<(Operation, bool)> {
    let scratch = Scratch::new(&std::env::temp_dir(), "sync-in-call").unwrap();
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let mut settings = Settings::with([&afflux_budget::KNOBS]);
    for knob in knobs {
        settings.set_text(knob).unwrap();
    }
    let frames = Frames::new(16 << 20).unwrap();
    let engine = Engine::with_policies(Arc::new(platform.clone()), settings, frames, policies);
    let directory = OwnedFd::from(std::fs::File::open(scratch.path()).unwrap());
    let disk = HostDevice::new(&platform, directory, Caching::Auto).unwrap();
    let noted = Arc::new(NotedDisk { disk, submits: Mutex::default() });
    let device = engine.add_device("noted", Arc::clone(&noted) as _);
    let host = OpenOptions::new().read(true).write(true).create_new(true).open(scratch.path().join("file")).unwrap();
    host.set_len(2 * pages * PAGE).unwrap();
    let file = engine.open(device, Backing::new(Arc::new(HostFile::new(host.into()))), 2 * pages * PAGE);
    let write = async {
        for page in 0..pages {
            engine.write(&file, 2 * page * PAGE, &[7; PAGE as usize]).await.unwrap();
        }
    };
    platform.block_on(write);
    let caller = thread::current().id();
    if is_blocked {
        platform.block_on(engine.sync(&file, 0..u64::MAX)).unwrap();
    } else {
        awaited(pin!(engine.sync(&file, 0..u64::MAX))).unwrap();
    }
    assert!(file.is_clean());
    let submits = noted.submits.lock().unwrap();
    submits.iter().map(|(operation, thread)| (*operation, *thread == caller)).collect()
}

#[test]
fn a_blocked_caller_writes_and_flushes_by_itself() {
    for pages in [1, 20] {
        let requests = requests_of_a_sync(Policies::default(), UNDISTURBED, pages, true);
        assert_eq!(requests.len() as u64, pages + 1);
        assert_eq!(requests.last(), Some(&(Operation::Sync, true)));
        assert!(requests.iter().all(|(_, by_caller)| *by_caller), "{requests:?}");
    }
}

#[test]
fn a_caller_that_awaits_leaves_its_sync_to_others() {
    assert!(requests_of_a_sync(Policies::default(), UNDISTURBED, 3, false).iter().all(|(_, by_caller)| !by_caller));
}

#[test]
fn a_blocked_caller_that_a_hung_disk_may_refuse_stays_out_of_system_calls() {
    let policies = || Policies { policy: Arc::new(Budget), ..Policies::default() };
    let is_by_caller = |knobs| requests_of_a_sync(policies(), knobs, 3, true).last().unwrap().1;
    assert!(is_by_caller(&[]));
    assert!(!is_by_caller(&["hang_error_ms=10000"]));
}
