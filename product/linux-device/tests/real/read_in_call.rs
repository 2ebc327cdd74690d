//! Misses of blocked callers: their threads read from the host themselves.

use std::collections::VecDeque;
use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::thread;

use afflux_engine::counters::Counter;
use afflux_engine::settings::Settings;
use afflux_engine::{
    Backing, Device, DeviceError, Engine, Error, File, Limits, Operation, Platform, Request, TransferHere,
};
use afflux_frames::Frames;
use afflux_linux_device::{Caching, HostDevice, HostFile, IoChoice, LinuxPlatform, Reactors};
use afflux_scratch::Scratch;

const PAGE: u64 = 4096;

/// A disk that counts who reads, and can stop or fail a read of a blocked caller.
struct NotedDisk {
    disk: Arc<HostDevice>,
    here: AtomicU64,
    requests: AtomicU64,
    /// The next read in the call says that it is here, and waits for an answer.
    gate: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    /// Outcomes of the next reads in the call.
    fails: Mutex<VecDeque<DeviceError>>,
}

impl Device for NotedDisk {
    fn limits(&self) -> &Limits {
        self.disk.limits()
    }

    fn submit(&self, request: Request) {
        if let Operation::Read { .. } = request.operation() {
            self.requests.fetch_add(1, Ordering::Relaxed);
        }
        self.disk.submit(request);
    }

    fn read_here(&self, read: &TransferHere<'_>) -> Option<Result<(), DeviceError>> {
        if let Some((arrives, goes_on)) = self.gate.lock().unwrap().take() {
            arrives.send(()).unwrap();
            goes_on.recv().unwrap();
        }
        if let Some(error) = self.fails.lock().unwrap().pop_front() {
            return Some(Err(error));
        }
        let done = self.disk.read_here(read);
        self.here.fetch_add(u64::from(done.is_some()), Ordering::Relaxed);
        done
    }

    fn free_bytes_hint(&self) -> u64 {
        self.disk.free_bytes_hint()
    }
}

struct Setup {
    _reactors: Reactors,
    platform: LinuxPlatform,
    engine: Arc<Engine<LinuxPlatform>>,
    noted: Arc<NotedDisk>,
    file: File,
    bytes: Vec<u8>,
    _scratch: Scratch,
}

impl Setup {
    /// A file of so many bytes, none of them cached, and a cache of so many.
    fn new(caching: Caching, file_bytes: u64, cache_bytes: u64) -> Self {
        let scratch = Scratch::new(&std::env::temp_dir(), "read-in-call").unwrap();
        let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
        let platform = reactors.platform();
        let mut settings = Settings::new();
        settings.set_text("readahead_bytes_max=0").unwrap();
        let engine = Engine::new(Arc::new(platform.clone()), settings, Frames::new(cache_bytes).unwrap());
        let directory = OwnedFd::from(std::fs::File::open(scratch.path()).unwrap());
        let disk = HostDevice::new(&platform, directory, caching).unwrap();
        let (gate, fails) = (Mutex::default(), Mutex::default());
        let noted = Arc::new(NotedDisk { disk, here: AtomicU64::new(0), requests: AtomicU64::new(0), gate, fails });
        let device = engine.add_device("noted", Arc::clone(&noted) as _);
        let bytes: Vec<u8> = (0..file_bytes).map(|at| (at % 251) as u8 ^ (at / PAGE) as u8).collect();
        let path = scratch.path().join("file");
        std::fs::write(&path, &bytes).unwrap();
        let host = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        let file = engine.open(device, Backing::new(Arc::new(HostFile::new(host.into()))), file_bytes);
        let setup = Self { _reactors: reactors, platform, engine, noted, file, bytes, _scratch: scratch };
        // The first read has the host open a descriptor for O_DIRECT.
        setup.read(file_bytes - 1, 1).unwrap();
        setup.noted.requests.store(0, Ordering::Relaxed);
        setup.noted.here.store(0, Ordering::Relaxed);
        setup
    }

    /// Reads as a blocked caller.
    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, Error> {
        let mut into = vec![0; len];
        let wait = |work: std::pin::Pin<&mut afflux_engine::Waiting<'_>>| Ok::<_, ()>(self.platform.block_on(work));
        let count = self.engine.read_here(&self.file, offset, &mut into, wait).unwrap()?;
        into.truncate(count);
        Ok(into)
    }

    fn expected(&self, offset: u64, len: usize) -> &[u8] {
        &self.bytes[offset as usize..][..len]
    }

    /// Reads in the call, and requests.
    fn reads(&self) -> (u64, u64) {
        (self.noted.here.load(Ordering::Relaxed), self.noted.requests.load(Ordering::Relaxed))
    }

    /// Whether the disk takes O_DIRECT, without which each read is a request.
    fn is_direct(&self) -> bool {
        let direct = self.noted.disk.describe().contains("O_DIRECT");
        if !direct {
            afflux_scratch::skipped!("the file system of the temporary directory takes no O_DIRECT");
        }
        direct
    }
}

#[test]
fn a_blocked_caller_reads_by_itself_and_through_evictions() {
    let setup = Setup::new(Caching::Auto, 256 * PAGE, 64 * PAGE);
    if !setup.is_direct() {
        return;
    }
    for round in 0..3 {
        for page in (0..255).map(|at| at * 77 % 255) {
            let (offset, len) = (page * PAGE + 100, 3000);
            assert_eq!(setup.read(offset, len).unwrap(), setup.expected(offset, len), "round {round}, page {page}");
        }
    }
    let (here, requests) = setup.reads();
    assert!(here > requests, "{here} reads in the call, {requests} requests");
    assert_eq!(setup.platform.counters().get(Counter::ReadRequests), here + requests + 1);
    assert_eq!(setup.read(255 * PAGE, 9000).unwrap(), setup.expected(255 * PAGE, PAGE as usize), "up to the end");
}

#[test]
fn others_wait_for_a_read_in_the_call() {
    let setup = Setup::new(Caching::Auto, 64 * PAGE, 1 << 20);
    if !setup.is_direct() {
        return;
    }
    let (arrives, arrived) = channel();
    let (go_on, goes_on) = channel();
    *setup.noted.gate.lock().unwrap() = Some((arrives, goes_on));
    thread::scope(|threads| {
        let reader = threads.spawn(|| setup.read(5 * PAGE, 100).unwrap());
        arrived.recv().unwrap();
        let mut into = [0; 50];
        {
            let mut other = pin!(setup.engine.read(&setup.file, 5 * PAGE + 50, &mut into));
            assert!(
                other.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(),
                "the page is being read"
            );
            go_on.send(()).unwrap();
            assert_eq!(setup.platform.block_on(other), Ok(50));
        }
        assert_eq!(into[..], *setup.expected(5 * PAGE + 50, 50));
        assert_eq!(reader.join().unwrap(), setup.expected(5 * PAGE, 100));
    });
    assert_eq!(setup.reads(), (1, 0), "one read for both");
    assert_eq!(setup.platform.counters().get(Counter::ReadJoinedPages), 1);
}

#[test]
fn a_read_in_the_call_falls_back_to_a_request() {
    let setup = Setup::new(Caching::Buffered, 64 * PAGE, 1 << 20);
    assert_eq!(setup.read(7 * PAGE + 1, 9000).unwrap(), setup.expected(7 * PAGE + 1, 9000));
    assert_eq!(setup.reads(), (0, 1), "a disk without O_DIRECT");
    // A read that the host shortens: the file ends inside the page.
    let setup = Setup::new(Caching::Auto, 9 * PAGE + 10, 64 * PAGE);
    for page in 0..9 {
        setup.read(page * PAGE, 1).unwrap();
    }
    setup.engine.drop_clean_pages();
    assert_eq!(setup.read(9 * PAGE, 100).unwrap(), setup.expected(9 * PAGE, 10));
    assert_eq!(setup.reads().1, 1 + if setup.noted.disk.describe().contains("O_DIRECT") { 0 } else { 9 });
}

#[test]
fn an_error_in_the_call_is_told_once_and_its_neighbours_are_read() {
    let setup = Setup::new(Caching::Auto, 64 * PAGE, 1 << 20);
    if !setup.is_direct() {
        return;
    }
    let error = DeviceError::Io { errno: 5 };
    setup.noted.fails.lock().unwrap().push_back(error);
    assert_eq!(setup.read(3 * PAGE, 10), Err(Error::Device(error)));
    assert_eq!(setup.read(3 * PAGE, 10).unwrap(), setup.expected(3 * PAGE, 10), "the page is read anew");
    // Four pages at once fail, then each is read by itself, and the second fails again.
    setup.noted.fails.lock().unwrap().push_back(error);
    assert_eq!(setup.read(10 * PAGE, 4 * PAGE as usize).unwrap(), setup.expected(10 * PAGE, 4 * PAGE as usize));
    assert_eq!(setup.reads(), (1 + 4, 0));
}
