//! Which thread carries out a sync.

//! rule: blocked callers of syncs write and flush on their own threads, unless they may have to leave a hung disk
//! kept in: `product/engine/src/writeback/sync.rs`

use std::fs::OpenOptions;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread, ThreadId};
use std::time::Duration;

use afflux_budget::Budget;
use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Device, Engine, Error, File, Limits, Operation, Platform, Policies, Request};
use afflux_frames::Frames;
use afflux_linux_device::{Caching, HostDevice, HostFile, IoChoice, LinuxPlatform, Reactors};
use afflux_scratch::Scratch;

const PAGE: u64 = 4096;
/// The flusher has no reason of its own to write.
const UNDISTURBED: &[&str] = &["dirty_expire_centisecs=360000", "dirty_background_ratio=80", "dirty_ratio=90"];

/// A disk that notes who submits.
struct NotedDisk {
    disk: Arc<HostDevice>,
    submits: Mutex<Vec<(Operation, ThreadId)>>,
    /// The first sync says that it is here, and waits for an answer.
    gate: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Device for NotedDisk {
    fn limits(&self) -> &Limits {
        self.disk.limits()
    }

    fn submit(&self, request: Request) {
        self.submits.lock().unwrap().push((request.operation(), thread::current().id()));
        let gate = self.gate.lock().unwrap().take_if(|_| request.operation() == Operation::Sync);
        if let Some((arrives, goes_on)) = gate {
            arrives.send(()).unwrap();
            goes_on.recv().unwrap();
        }
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

struct Setup {
    _reactors: Reactors,
    platform: LinuxPlatform,
    engine: Arc<Engine<LinuxPlatform>>,
    noted: Arc<NotedDisk>,
    file: File,
    _scratch: Scratch,
}

impl Setup {
    /// A file of `pages` pages.
    fn new(policies: Policies, knobs: &[&str], pages: u64) -> Self {
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
        let noted = Arc::new(NotedDisk { disk, submits: Mutex::default(), gate: Mutex::default() });
        let device = engine.add_device("noted", Arc::clone(&noted) as _);
        let mut options = OpenOptions::new();
        let host = options.read(true).write(true).create_new(true).open(scratch.path().join("file")).unwrap();
        host.set_len(pages * PAGE).unwrap();
        let file = engine.open(device, Backing::new(Arc::new(HostFile::new(host.into()))), pages * PAGE);
        Self { _reactors: reactors, platform, engine, noted, file, _scratch: scratch }
    }

    fn write(&self, page: u64) {
        self.platform.block_on(self.engine.write(&self.file, page * PAGE, &[7; PAGE as usize])).unwrap();
    }

    fn sync(&self) -> impl Future<Output = Result<(), Error>> {
        self.engine.sync(&self.file, 0..u64::MAX)
    }

    /// Each write and flush, with whether this thread submitted it.
    fn requests(&self) -> Vec<(Operation, bool)> {
        let submits = self.noted.submits.lock().unwrap();
        submits.iter().map(|(operation, by)| (*operation, *by == thread::current().id())).collect()
    }
}

/// The writes and flushes of one sync of `pages` pages that do not touch, each with whether the caller's thread did it.
fn requests_of_a_sync(policies: Policies, knobs: &[&str], pages: u64, is_blocked: bool) -> Vec<(Operation, bool)> {
    let setup = Setup::new(policies, knobs, 2 * pages);
    (0..pages).for_each(|page| setup.write(2 * page));
    if is_blocked {
        setup.platform.block_on(setup.sync()).unwrap();
    } else {
        awaited(pin!(setup.sync())).unwrap();
    }
    assert!(setup.file.is_clean());
    setup.requests()
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
fn the_requests_of_a_poll_are_driven_by_the_ring_that_its_thread_enters() {
    let setup = Setup::new(Policies::default(), UNDISTURBED, 40);
    (0..20).for_each(|page| setup.write(2 * page));
    let ((release, held), (ended, end)) = (channel::<()>(), channel());
    // The only reactor that could take the requests is held.
    setup.platform.spawn("held", async move {
        let _ = held.recv();
    });
    let watch = thread::spawn(move || {
        let ends_alone = end.recv_timeout(Duration::from_secs(30)).is_ok();
        drop(release);
        ends_alone
    });
    let mut sync = pin!(setup.sync());
    if setup.platform.poll_here(sync.as_mut()).is_pending() {
        setup.platform.block_on(sync).unwrap();
    }
    let _ = ended.send(());
    assert!(watch.join().unwrap(), "another thread had to help");
    assert!(setup.file.is_clean());
}

#[test]
fn a_blocked_caller_that_comes_during_a_round_runs_the_next() {
    let setup = Setup::new(Policies::default(), UNDISTURBED, 2);
    let ((arrives, first_is_here), (joined, goes_on)) = (channel(), channel());
    *setup.noted.gate.lock().unwrap() = Some((arrives, goes_on));
    setup.write(0);
    thread::scope(|scope| {
        scope.spawn(|| setup.platform.block_on(setup.sync()).unwrap());
        first_is_here.recv().unwrap();
        setup.write(1);
        let mut sync = pin!(setup.sync());
        let second = async {
            let is_ready = poll_fn(|cx| Poll::Ready(sync.as_mut().poll(cx).is_ready())).await;
            assert!(!is_ready, "it waits for the first one's round");
            joined.send(()).unwrap();
            sync.await
        };
        setup.platform.block_on(second).unwrap();
    });
    let requests = setup.requests();
    let by_second = requests.iter().map(|(_, by_this)| *by_this).collect::<Vec<_>>();
    assert_eq!(by_second, [false, false, true, true], "{requests:?}");
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
