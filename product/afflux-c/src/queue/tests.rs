#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::ffi::{CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

use super::*;
use crate::border::last;
use crate::cache::{Settings, afflux_cache_close, afflux_cache_drop_clean_pages, afflux_cache_new};
use crate::file::{afflux_open, afflux_release, afflux_write};

const PAGE: usize = 4096;

struct Rig {
    index: tempfile::TempDir,
    cache: *mut CacheHandleOfTests,
    file: *mut FileHandle,
    queue: *mut QueueHandle,
}

type CacheHandleOfTests = crate::cache::CacheHandle;

fn open(cache: *mut CacheHandleOfTests, path: &Path) -> *mut FileHandle {
    let (name, mut file) = (CString::new(path.as_os_str().as_bytes()).unwrap(), null_mut());
    // SAFETY: all pointers are valid.
    let opened = unsafe { afflux_open(cache, name.as_ptr(), libc::O_RDWR | libc::O_CREAT, 0o600, &raw mut file) };
    assert_eq!(opened, 0, "{}", last());
    file
}

impl Rig {
    fn new(depth: u32) -> Self {
        // SAFETY: the place is valid.
        Self::with(|_, queue| unsafe { afflux_queue_new(depth, queue) })
    }

    /// With a queue for this thread alone.
    fn own(depth: u32) -> Self {
        // SAFETY: as above.
        Self::with(|cache, queue| unsafe { afflux_queue_new_own(cache, depth, queue) })
    }

    fn with(make: impl FnOnce(*mut CacheHandleOfTests, *mut *mut QueueHandle) -> c_int) -> Self {
        let index = tempfile::tempdir().unwrap();
        // SAFETY: zeros are valid settings.
        let mut settings: Settings = unsafe { std::mem::zeroed() };
        settings.size = size_of::<Settings>();
        settings.memory_bytes = 16 << 20;
        let (mut cache, mut queue) = (null_mut(), null_mut());
        // SAFETY: all pointers are valid.
        assert_eq!(unsafe { afflux_cache_new(&raw const settings, &raw mut cache) }, 0, "{}", last());
        assert_eq!(make(cache, &raw mut queue), 0, "{}", last());
        let file = open(cache, &index.path().join("file"));
        Self { index, cache, file, queue }
    }

    /// Pages with their number in each byte, on the device and not in the cache.
    fn cold(&self, pages: usize) {
        for page in 0..pages {
            let bytes = [page as u8; PAGE];
            // SAFETY: the bytes are valid.
            let wrote = unsafe { afflux_write(self.file, bytes.as_ptr().cast(), PAGE, (page * PAGE) as u64) };
            assert_eq!(wrote, PAGE as i64, "{}", last());
        }
        assert_eq!(crate::file::afflux_sync_all(self.file), 0);
        assert!(afflux_cache_drop_clean_pages(self.cache) > 0);
    }

    fn request(&self, op: Op, data: *mut c_void, len: usize, page: usize, tag: u64) -> Request {
        let offset = (page * PAGE) as u64;
        Request { op: op as u32, reserved: 0, file: self.file, data, len: len as u64, offset, tag }
    }

    fn submit(&self, requests: &[Request]) -> i64 {
        // SAFETY: the requests are valid, and so is their memory until the test has waited.
        unsafe { afflux_submit(self.queue, requests.as_ptr(), requests.len()) }
    }

    fn wait(&self, room: usize, least: usize, timeout_ns: i64) -> Vec<Completion> {
        let mut outcomes = vec![Completion { tag: 0, result: 0 }; room];
        // SAFETY: there is room.
        let count = unsafe { afflux_wait(self.queue, outcomes.as_mut_ptr(), room, least, timeout_ns) };
        outcomes.truncate(usize::try_from(count).unwrap_or_else(|_| panic!("{}", last())));
        outcomes
    }

    fn end(self) -> c_int {
        afflux_queue_close(self.queue);
        assert_eq!(afflux_release(self.file), 0);
        // SAFETY: no function is called.
        let closed = unsafe { afflux_cache_close(self.cache, None, null_mut()) };
        drop(self.index);
        closed
    }
}

#[test]
fn cold_reads_in_flight_bring_their_bytes_once_each() {
    for rig in [Rig::new(64), Rig::own(64)] {
        check_cold_reads(rig);
    }
}

fn check_cold_reads(rig: Rig) {
    rig.cold(64);
    let mut memory = vec![[0_u8; PAGE]; 64];
    let requests: Vec<_> =
        (0..64).map(|at| rig.request(Op::Read, memory[at].as_mut_ptr().cast(), PAGE, 63 - at, at as u64)).collect();
    assert_eq!(rig.submit(&requests), 64);
    assert_eq!(rig.submit(&requests[..1]), i64::from(Code::WouldBlock as i32), "the queue is full");
    let mut tags = Vec::new();
    while tags.len() < 64 {
        for Completion { tag, result } in rig.wait(10, 1, -1) {
            assert_eq!(result, PAGE as i64);
            let at = usize::try_from(tag).unwrap();
            assert!(memory[at].iter().all(|byte| usize::from(*byte) == 63 - at));
            tags.push(tag);
        }
    }
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..64));
    assert!(rig.wait(1, 1, -1).is_empty(), "nothing is in flight, so nothing is waited for");
    assert_eq!(rig.end(), 0);
}

#[test]
fn each_kind_of_call_does_what_the_blocking_one_does() {
    for rig in [Rig::new(8), Rig::own(8)] {
        check_kinds_of_calls(rig);
    }
}

fn check_kinds_of_calls(rig: Rig) {
    let mut bytes = *b"some bytes";
    let data: *mut c_void = bytes.as_mut_ptr().cast();
    let one = |request: Request| {
        assert_eq!(rig.submit(&[request]), 1, "{}", last());
        let outcome = rig.wait(8, 1, -1);
        assert_eq!(outcome.len(), 1);
        outcome[0].result
    };
    assert_eq!(one(rig.request(Op::Write, data, 10, 0, 0)), 10);
    assert_eq!(one(rig.request(Op::Append, data, 10, 0, 0)), 10, "where it begins");
    assert_eq!(one(rig.request(Op::SyncData, null_mut(), 0, 0, 0)), 0);
    assert_eq!(std::fs::read(rig.index.path().join("file")).unwrap(), b"some bytessome bytes");
    assert_eq!(one(rig.request(Op::SetLen, null_mut(), 15, 0, 0)), 0);
    assert_eq!(one(rig.request(Op::PunchHole, null_mut(), 5, 0, 0)), 0);
    assert_eq!(one(rig.request(Op::SyncRange, null_mut(), 15, 0, 0)), 0);
    assert_eq!(one(rig.request(Op::SyncAll, null_mut(), 0, 0, 0)), 0);
    assert_eq!(std::fs::read(rig.index.path().join("file")).unwrap(), b"\0\0\0\0\0bytessome ");
    assert_eq!(one(rig.request(Op::Read, data, 10, 0, 0)), 10);
    assert_eq!(&bytes, b"\0\0\0\0\0bytes");
    assert_eq!(rig.end(), 0);
}

#[test]
fn what_cannot_be_is_refused_and_the_rest_goes_on() {
    for rig in [Rig::new(8), Rig::own(8)] {
        check_refusals(rig);
    }
}

fn check_refusals(rig: Rig) {
    let mut byte = 0_u8;
    let good = rig.request(Op::Write, (&raw mut byte).cast(), 1, 0, 1);
    let bad = Request { op: 99, ..good };
    assert_eq!(rig.submit(&[bad]), i64::from(-libc::EINVAL));
    assert_eq!(rig.submit(&[good, bad, good]), 1, "those before the first that cannot be");
    assert!(last().contains("op 99"), "{}", last());
    assert_eq!(rig.submit(&[Request { reserved: 1, ..good }]), i64::from(-libc::EINVAL));
    assert_eq!(rig.submit(&[Request { data: null_mut(), ..good }]), i64::from(-libc::EFAULT));
    assert_eq!(rig.submit(&[Request { file: null_mut(), ..good }]), i64::from(-libc::EBADF));
    assert_eq!(rig.submit(&[Request { len: u64::MAX, ..good }]), i64::from(-libc::EINVAL));
    // SAFETY: a NULL pointer is not used.
    assert_eq!(unsafe { afflux_submit(rig.queue, std::ptr::null(), 1) }, i64::from(-libc::EFAULT));
    // SAFETY: as above.
    assert_eq!(unsafe { afflux_wait(rig.queue, null_mut(), 1, 0, 0) }, i64::from(-libc::EFAULT));
    assert_eq!(
        rig.submit(&[Request { offset: u64::MAX, ..good }]),
        1,
        "a range that cannot be is the call's own error"
    );
    let mut results: Vec<_> = rig.wait(8, 2, -1).iter().map(|outcome| outcome.result).collect();
    // The first write of a file waits for a descriptor.
    results.sort_unstable();
    assert_eq!(results, [i64::from(-libc::EFBIG), 1]);
    // SAFETY: all pointers are valid.
    assert_eq!(unsafe { afflux_queue_new(0, &mut null_mut()) }, -libc::EINVAL);
    assert_eq!(rig.end(), 0);
}

#[test]
fn the_descriptor_is_readable_when_there_is_something_to_do() {
    let rig = Rig::new(8);
    rig.cold(2);
    let fd = afflux_queue_fd(rig.queue);
    assert!(fd >= 0);
    let readable = |timeout: c_int| {
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one element is there.
        (unsafe { libc::poll(&raw mut poll, 1, timeout) }) == 1
    };
    assert!(!readable(0));
    let mut page = [9_u8; PAGE];
    assert_eq!(rig.submit(&[rig.request(Op::Read, page.as_mut_ptr().cast(), PAGE, 1, 3)]), 1);
    let mut outcome = Vec::new();
    while outcome.is_empty() {
        assert!(readable(60_000));
        outcome = rig.wait(8, 0, 0);
    }
    assert_eq!(outcome, [Completion { tag: 3, result: PAGE as i64 }]);
    assert!(page.iter().all(|byte| *byte == 1));
    assert!(!readable(0), "all was taken");
    assert_eq!(rig.submit(&[rig.request(Op::Read, page.as_mut_ptr().cast(), PAGE, 1, 4)]), 1, "a hit");
    assert!(readable(0));
    assert_eq!(rig.wait(8, 0, 0).len(), 1);
    assert!(!readable(0));
    assert_eq!(rig.end(), 0);
}

#[test]
fn closing_gives_up_what_is_in_flight_and_uses_its_memory_no_more() {
    for rig in [Rig::new(64), Rig::own(64)] {
        check_closing(rig);
    }
}

fn check_closing(rig: Rig) {
    rig.cold(64);
    let mut memory = vec![[0_u8; PAGE]; 64];
    let requests: Vec<_> =
        (0..64).map(|at| rig.request(Op::Read, memory[at].as_mut_ptr().cast(), PAGE, at, 0)).collect();
    assert_eq!(rig.submit(&requests), 64);
    assert_eq!(afflux_queue_close(rig.queue), 0);
    memory.fill([255; PAGE]);
    assert_eq!(afflux_queue_close(rig.queue), -libc::EBADF);
    assert_eq!(crate::cache::afflux_cache_drain(rig.cache), 0);
    assert!(memory.iter().flatten().all(|byte| *byte == 255));
    assert_eq!(rig.end(), 0);
}

#[test]
fn who_waits_hears_of_the_end_of_the_queue_or_the_cache() {
    let rig = Rig::new(8);
    let shared = Shared::new(2).unwrap();
    // A call that never ends.
    let cache = on_file(rig.file, |file| Ok(file.cache())).unwrap();
    shared.add(1, PendingWork { future: Box::pin(std::future::pending()), cache }).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| shared.wait(1, 1, None).map_err(|failure| failure.code));
        while shared.state().waiting == 0 {
            std::thread::yield_now();
        }
        shared.close();
        assert_eq!(waiter.join().unwrap(), Err(Code::Closed as c_int));
    });
    rig.cold(4);
    let mut page = [0_u8; PAGE];
    // SAFETY: no function is called.
    assert_eq!(unsafe { afflux_cache_close(rig.cache, None, null_mut()) }, 0);
    assert_eq!(rig.submit(&[rig.request(Op::Read, page.as_mut_ptr().cast(), PAGE, 1, 4)]), 1);
    assert_eq!(rig.wait(1, 1, -1), [Completion { tag: 4, result: Code::Closed as i64 }]);
    assert_eq!(rig.end(), -libc::EBADF, "the cache is closed already");
}

#[test]
fn threads_that_share_a_queue_take_each_outcome_once() {
    let rig = Rig::new(32);
    rig.cold(256);
    struct Shared(*mut QueueHandle, *mut FileHandle);
    // SAFETY: handles are numbers.
    unsafe impl Sync for Shared {}
    let (shared, taken) = (Shared(rig.queue, rig.file), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (shared, taken) = (&shared, &taken);
            scope.spawn(move || {
                let mut memory = vec![[0_u8; PAGE]; 256];
                let mut next = thread;
                let mut outcomes = [Completion { tag: 0, result: 0 }; 4];
                while taken.load(Ordering::SeqCst) < 256 {
                    if next < 256 {
                        let data = memory[next].as_mut_ptr().cast();
                        let (len, offset) = (PAGE as u64, (next * PAGE) as u64);
                        let request =
                            Request { op: 0, reserved: 0, file: shared.1, data, len, offset, tag: next as u64 };
                        // SAFETY: the memory lives until all outcomes are taken.
                        if unsafe { afflux_submit(shared.0, &raw const request, 1) } == 1 {
                            next += 3;
                        }
                    }
                    // SAFETY: there is room.
                    let count = unsafe { afflux_wait(shared.0, outcomes.as_mut_ptr(), 4, 1, 1_000_000) };
                    let count = usize::try_from(count).unwrap();
                    assert!(outcomes[..count].iter().all(|outcome| outcome.result == PAGE as i64));
                    taken.fetch_add(count, Ordering::SeqCst);
                }
                memory
            });
        }
    });
    assert_eq!(taken.load(Ordering::SeqCst), 256);
    assert_eq!(rig.end(), 0);
}

/// The write to the caller's memory may block: other threads use the queue meanwhile.
#[test]
fn outcomes_are_handed_over_without_the_lock_of_the_queue() {
    for count in [1, FEW, FEW + 1, 100] {
        let queue = Shared::new(count as u32).unwrap();
        for tag in 0..count as u64 {
            queue.inside.fetch_add(1, Ordering::Relaxed);
            queue.done(&mut queue.state(), tag, Ok(7));
        }
        let mut taken = Vec::new();
        let take = |completion: Completion| {
            assert!(queue.state.try_lock().is_ok(), "the queue is locked");
            taken.push(completion.tag);
        };
        queue.wait(count, count, None).unwrap();
        queue.take(count, take);
        assert!(taken.into_iter().eq(0..count as u64));
        assert_eq!(queue.inside.load(Ordering::Relaxed), 0);
    }
}

/// A handle in another thread.
struct Sent<T>(*mut T);
// SAFETY: handles are numbers.
unsafe impl<T> Send for Sent<T> {}

impl<T> Sent<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

#[test]
fn a_queue_of_one_thread_refuses_others() {
    let rig = Rig::own(8);
    rig.cold(2);
    let mut page = [9_u8; PAGE];
    let request = rig.request(Op::Read, page.as_mut_ptr().cast(), PAGE, 1, 3);
    assert_eq!(rig.submit(&[request]), 1);
    let queue = Sent(rig.queue);
    let refused = std::thread::spawn(move || {
        let mut outcome = Completion { tag: 0, result: 0 };
        // SAFETY: there is room, and nothing is read from an empty array.
        let waited = unsafe { afflux_wait(queue.get(), &raw mut outcome, 1, 1, -1) };
        assert!(last().contains("the thread that made it"), "{}", last());
        // SAFETY: as above.
        let submitted = unsafe { afflux_submit(queue.get(), std::ptr::dangling(), 0) };
        [waited, submitted, afflux_queue_close(queue.get()).into()]
    });
    assert_eq!(refused.join().unwrap(), [i64::from(-libc::EINVAL); 3]);
    assert_eq!(afflux_queue_fd(rig.queue), Code::Unsupported as c_int);
    assert_eq!(rig.wait(1, 1, -1), [Completion { tag: 3, result: PAGE as i64 }]);
    assert!(page.iter().all(|byte| *byte == 1));
    assert!(rig.wait(1, 0, 0).is_empty());
    assert_eq!(rig.end(), 0);
}

#[test]
fn a_read_of_an_own_queue_ends_in_waits_without_time_or_with_little() {
    let rig = Rig::own(8);
    rig.cold(3);
    let mut page = [9_u8; PAGE];
    for (at, timeout_ns) in [(0, 0), (1, 1_000), (2, 60_000_000_000)] {
        assert_eq!(rig.submit(&[rig.request(Op::Read, page.as_mut_ptr().cast(), PAGE, at, at as u64)]), 1);
        let mut outcome = rig.wait(8, usize::from(timeout_ns > 0), timeout_ns);
        while outcome.is_empty() {
            outcome = rig.wait(8, 0, timeout_ns);
        }
        assert_eq!(outcome, [Completion { tag: at as u64, result: PAGE as i64 }]);
    }
    assert_eq!(rig.end(), 0);
}

#[test]
fn a_blocking_read_gets_a_page_that_the_threads_own_queue_reads() {
    let rig = Rig::own(8);
    rig.cold(2);
    let (mut page, mut again) = ([9_u8; PAGE], [9_u8; PAGE]);
    assert_eq!(rig.submit(&[rig.request(Op::Read, page.as_mut_ptr().cast(), PAGE, 1, 3)]), 1);
    // SAFETY: the memory is valid.
    let count = unsafe { crate::file::afflux_read(rig.file, again.as_mut_ptr().cast(), PAGE, PAGE as u64) };
    assert_eq!(count, PAGE as i64);
    assert!(again.iter().all(|byte| *byte == 1));
    assert_eq!(rig.wait(1, 1, -1).len(), 1);
    assert_eq!(rig.end(), 0);
}

#[test]
fn a_queue_whose_thread_has_ended_keeps_nobody_waiting() {
    let rig = Rig::new(8);
    rig.cold(4);
    let (cache, file) = (Sent(rig.cache), Sent(rig.file));
    let left = std::thread::spawn(move || {
        let mut queue = null_mut();
        // SAFETY: the place is valid.
        assert_eq!(unsafe { afflux_queue_new_own(cache.get(), 8, &raw mut queue) }, 0, "{}", last());
        let memory: &'static mut [u8; PAGE] = Box::leak(Box::new([0; PAGE]));
        let (data, len) = (memory.as_mut_ptr().cast(), PAGE as u64);
        let request = Request { op: 0, reserved: 0, file: file.get(), data, len, offset: len, tag: 0 };
        // SAFETY: the memory lives for ever.
        assert_eq!(unsafe { afflux_submit(queue, &raw const request, 1) }, 1);
        Sent(queue)
    });
    let queue = left.join().unwrap();
    let mut page = [9_u8; PAGE];
    // SAFETY: the memory is valid.
    let count = unsafe { crate::file::afflux_read(rig.file, page.as_mut_ptr().cast(), PAGE, PAGE as u64) };
    assert_eq!(count, PAGE as i64);
    let mut outcome = Completion { tag: 0, result: 0 };
    // SAFETY: there is room.
    let waited = unsafe { afflux_wait(queue.get(), &raw mut outcome, 1, 1, 0) };
    assert_eq!(waited, i64::from(-libc::EINVAL), "its thread is gone");
    assert_eq!(afflux_queue_close(queue.get()), 0, "so any thread may close it");
    assert_eq!(rig.end(), 0);
}
