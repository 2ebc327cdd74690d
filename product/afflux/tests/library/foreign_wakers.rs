//! Wakers of the cache's users: a panic in one harms no other caller, and a waker may call the cache.

//! rule: a user's waker is called with no lock held, and a panic in it ends there

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

use afflux::{Cache, File, OpenOptions};

/// Longer than any step here may take.
const PATIENCE: Duration = Duration::from_secs(60);
const BYTES: usize = 300_000;

/// A waker with an action for its wake and one for its drop. It reports each before it runs it.
struct Calls {
    told: Sender<()>,
    woken: Box<dyn Fn() + Send + Sync>,
    dropped: Box<dyn Fn() + Send + Sync>,
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        let _ = self.told.send(());
        (self.woken)();
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        let _ = self.told.send(());
        (self.dropped)();
    }
}

fn waker(
    woken: impl Fn() + Send + Sync + 'static,
    dropped: impl Fn() + Send + Sync + 'static,
) -> (Waker, Receiver<()>) {
    let (told, called) = channel();
    let calls = Calls { told, woken: Box::new(woken), dropped: Box::new(dropped) };
    (Waker::from(Arc::new(calls)), called)
}

/// A durable file that is not cached.
fn cold(cache: &Cache, path: &Path) -> File {
    let file = cache.create(path).unwrap();
    file.write_at(&[1; BYTES], 0).unwrap();
    file.sync_all().unwrap();
    cache.drop_clean_pages();
    file
}

/// Polls the future once with the waker. Returns whether it waited. The waker may be a bad one, and the test may have
/// the last of it: a disk may answer before the poll, or between the poll and the drop here.
fn waits<T>(future: Pin<&mut impl Future<Output = T>>, waker: Waker) -> bool {
    let waits = future.poll(&mut Context::from_waker(&waker)).is_pending();
    if waits {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(waker)));
    } else {
        std::mem::forget(waker);
    }
    waits
}

/// A disk may answer before the poll: then this tries again.
fn until_it_waits(mut try_once: impl FnMut() -> bool) {
    let began = Instant::now();
    while !try_once() {
        assert!(began.elapsed() < PATIENCE, "nothing ever waits: the test shows nothing");
    }
}

/// Every kind of wait happens once with a waker of that kind. Other callers' bytes are still written.
fn hurts_nobody(bad: fn() -> (Waker, Receiver<()>)) {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    let (file, other) = (cold(&cache, &place.path().join("file")), cache.create(place.path().join("other")).unwrap());
    other.write_at(&[2; 53_000], 0).unwrap();
    until_it_waits(|| {
        cache.drop_clean_pages();
        let ((waker, called), mut into) = (bad(), [0; 10_000]);
        let mut read = Box::pin(file.read_at_async(&mut into, 100_000));
        let waited = waits(read.as_mut(), waker);
        if waited {
            called.recv_timeout(PATIENCE).unwrap();
            assert_eq!(smol::block_on(read).unwrap(), 10_000);
        }
        waited
    });
    until_it_waits(|| {
        file.write_at(&[3; BYTES], 0).unwrap();
        let (waker, called) = bad();
        let mut sync = Box::pin(file.sync_data_async());
        let waited = waits(sync.as_mut(), waker);
        if waited {
            called.recv_timeout(PATIENCE).unwrap();
            smol::block_on(sync).unwrap();
        }
        waited
    });
    until_it_waits(|| {
        let (waker, called) = bad();
        let mut open = Box::pin(cache.open_async(place.path().join("file"), OpenOptions::new().read(true)));
        let waited = waits(open.as_mut(), waker);
        if waited {
            called.recv_timeout(PATIENCE).unwrap();
            smol::block_on(open).unwrap();
        }
        waited
    });
    let (waker, called) = bad();
    let mut close = Box::pin(cache.clone().close_async());
    if waits(close.as_mut(), waker) {
        called.recv_timeout(PATIENCE).unwrap();
        smol::block_on(close).unwrap();
    }
    assert_eq!(std::fs::read(place.path().join("other")).unwrap(), [2; 53_000]);
    assert_eq!(std::fs::read(place.path().join("file")).unwrap(), [3; BYTES]);
}

#[test]
fn a_waker_that_panics_when_it_is_woken_hurts_nobody() {
    hurts_nobody(|| waker(|| panic!("woken"), || ()));
}

#[test]
fn a_waker_that_panics_when_it_is_dropped_hurts_nobody() {
    hurts_nobody(|| waker(|| (), || panic!("dropped")));
}

/// A dropped future has dropped its waker; a panic in the waker then concerns only its owner.
#[test]
fn a_waker_that_panics_as_its_future_is_given_up_hurts_nobody() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    let file = cold(&cache, &place.path().join("file"));
    until_it_waits(|| {
        cache.drop_clean_pages();
        let ((waker, called), mut into) = (waker(|| (), || panic!("dropped")), [0; 10_000]);
        let mut read = Box::pin(file.read_at_async(&mut into, 100_000));
        let waited = waits(read.as_mut(), waker);
        drop(read);
        if waited {
            called.recv_timeout(PATIENCE).unwrap();
        }
        waited
    });
    file.write_at(&[2; BYTES], 0).unwrap();
    cache.close().unwrap();
    assert_eq!(std::fs::read(place.path().join("file")).unwrap(), [2; BYTES]);
}

/// A waker may use the file whose page it waited for, even while the file is being cut: no lock of the file is held.
#[test]
fn a_waker_may_call_the_cache() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    let file = cold(&cache, &place.path().join("file"));
    for round in 0..100 {
        let own = (cache.clone(), file.clone());
        let uses = move || {
            let (cache, file) = &own;
            let mut bytes = [0; 100];
            let _ = file.try_read_at(&mut bytes, 100_000);
            let _ = file.read_at(&mut bytes, 200_000);
            let _ = file.write_at(&bytes, 100_000);
            file.prefetch(0..u64::MAX).unwrap();
            cache.drop_clean_pages();
            let _ = cache.stats();
        };
        let (first, first_called) = waker(uses.clone(), || ());
        let (second, second_called) = waker(uses, || ());
        // The second read waits for the request of the first.
        let (mut one, mut two) = ([0; 4096], [0; 4096]);
        let mut reads = [&mut one, &mut two].map(|into| Box::pin(file.read_at_async(into, 196_608)));
        let waiting: Vec<_> =
            reads.iter_mut().zip([first, second]).map(|(read, waker)| waits(read.as_mut(), waker)).collect();
        let cut = std::thread::scope(|scope| {
            let (told, cut) = channel();
            let file = &file;
            scope.spawn(move || told.send(file.set_len(8192)));
            let cut = cut.recv_timeout(PATIENCE);
            if matches!(cut, Err(RecvTimeoutError::Timeout)) {
                // The thread that waits can never be joined.
                println!("round {round}: the cut never ends");
                std::process::abort();
            }
            cut.unwrap()
        });
        cut.unwrap();
        for ((waits, called), read) in waiting.into_iter().zip([first_called, second_called]).zip(reads) {
            if waits {
                called.recv_timeout(PATIENCE).unwrap();
                let _ = smol::block_on(read);
            }
        }
        file.write_at(&[1; BYTES], 0).unwrap();
        file.sync_data().unwrap();
        cache.drop_clean_pages();
    }
    drop(file);
    cache.close().unwrap();
}
