use std::future::{Future, pending};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use afflux_engine::Platform;

use crate::core::{Core, SyncOf};
use crate::{Cache, Error, Faults, RequestKind, Unwritten};

/// A panic in a task poisons the cache; the process goes on, and the dirty bytes are reported.
#[test]
fn a_panic_in_a_task_puts_the_cache_out_of_use() {
    let place = tempfile::tempdir().unwrap();
    let told: Arc<Mutex<Vec<Unwritten>>> = Arc::default();
    let hears = Arc::clone(&told);
    let cache = Cache::builder()
        .memory(8 << 20)
        .on_unwritten(move |unwritten| hears.lock().unwrap().push(unwritten.clone()))
        .build()
        .unwrap();
    let file = cache.create(place.path().join("file")).unwrap();
    file.write_at(&[1; 5_000], 0).unwrap();
    file.core_of_tests().platform().spawn("unlucky", async { panic!("a test of panics") });
    let began = Instant::now();
    let error = loop {
        match file.read_at(&mut [0; 10], 0) {
            Ok(_) => assert!(began.elapsed() < Duration::from_secs(60), "it goes on for ever"),
            Err(error) => break error,
        }
    };
    assert!(matches!(Error::of(&error), Some(Error::Poisoned { .. })), "{error}");
    assert!(error.to_string().contains("'unlucky': a test of panics"), "{error}");
    assert!(file.write_at(&[2; 10], 0).is_err());
    assert!(file.sync_data().is_err());
    assert!(cache.create(place.path().join("other")).is_err());
    drop((file, cache));
    let told = told.lock().unwrap();
    let [unwritten] = told.as_slice() else { panic!("told {} times", told.len()) };
    assert_eq!(unwritten.files.len(), 1);
    assert!(unwritten.panic.as_deref().is_some_and(|panic| panic.contains("a test of panics")));
}

/// Tells of each wake.
struct Tells(Sender<()>);

impl Wake for Tells {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

// rule: a panic on the thread of a blocked caller puts the cache out of use, and keeps no other caller waiting
// kept in: `product/afflux/src/gate.rs`
#[test]
fn a_panic_in_a_callers_round_keeps_nobody_waiting() {
    let place = tempfile::tempdir().unwrap();
    let faults = Faults::new();
    let cache = Cache::builder().memory(8 << 20).faults(&faults).build().unwrap();
    let file = cache.create(place.path().join("file")).unwrap();
    let other = cache.create(place.path().join("other")).unwrap();
    file.write_at(&[1; 5_000], 0).unwrap();
    let (flushing, flushes) = channel();
    let (may_panic, told) = channel();
    let told = Mutex::new(told);
    faults.call(RequestKind::Flush, move || {
        flushing.send(thread::current().id()).unwrap();
        told.lock().unwrap().recv().unwrap();
        panic!("a test of panics");
    });
    let runs = {
        let file = file.clone();
        thread::spawn(move || file.sync_data())
    };
    assert_eq!(flushes.recv().unwrap(), runs.thread().id(), "the caller runs the round itself");
    let (wakes, woken) = channel();
    let waker = Waker::from(Arc::new(Tells(wakes)));
    let mut context = Context::from_waker(&waker);
    file.write_at(&[2; 10], 0).unwrap();
    let mut sync = pin!(file.sync_data_async());
    assert!(sync.as_mut().poll(&mut context).is_pending(), "its round comes after the one that runs");
    may_panic.send(()).unwrap();
    assert!(runs.join().is_err(), "the caller has its panic");
    let mut ended = None;
    afflux_scratch::eventually("who waits for the round is told", || {
        if woken.try_recv().is_ok()
            && let Poll::Ready(result) = sync.as_mut().poll(&mut context)
        {
            ended = Some(result);
        }
        ended.is_some()
    });
    let error = ended.unwrap().unwrap_err();
    assert!(matches!(Error::of(&error), Some(Error::Poisoned { .. })), "{error}");
    assert!(error.to_string().contains("panic in a call"), "{error}");
    assert!(other.write_at(&[2; 10], 0).is_err());
}

struct Ends(Arc<Core>);

impl Wake for Ends {
    fn wake(self: Arc<Self>) {
        self.0.end_with_report();
    }
}

/// A call waits while the cache ends. Its waker ends the cache, too, before the first end has begun to write.
#[test]
fn of_two_that_end_a_cache_one_reports() {
    let place = tempfile::tempdir().unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let hears = Arc::clone(&told);
    let cache = Cache::builder()
        .memory(8 << 20)
        .drain_time(Duration::ZERO)
        .on_unwritten(move |_| {
            hears.fetch_add(1, Ordering::SeqCst);
        })
        .build()
        .unwrap();
    let file = cache.create(place.path().join("file")).unwrap();
    file.write_at(&[1; 1 << 20], 0).unwrap();
    let core = Arc::clone(file.core_of_tests());
    let waker = Waker::from(Arc::new(Ends(Arc::clone(&core))));
    let mut forever = pin!(pending::<Result<(), Error>>());
    let mut waits = pin!(core.pass(0, forever.as_mut()));
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    core.end_with_report();
    // The device may have been so fast that nothing is lost.
    assert!(told.load(Ordering::SeqCst) <= 1, "{} reports", told.load(Ordering::SeqCst));
}

/// On a thread that cannot wait for itself, the drop begins the end, which then comes by itself.
#[test]
fn the_last_handle_on_a_thread_of_the_cache() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(8 << 20).build().unwrap();
    let file = cache.create(place.path().join("file")).unwrap();
    file.write_at(&[3; 5_000], 0).unwrap();
    let core = Arc::clone(file.core_of_tests());
    drop(cache);
    core.platform().spawn("drops", async move { drop(file) });
    let began = Instant::now();
    while core.ended.lock().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not end");
        std::thread::yield_now();
    }
    assert!(core.ended.lock().unwrap().as_ref().is_some_and(Result::is_ok));
    assert_eq!(std::fs::read(place.path().join("file")).unwrap(), [3; 5_000]);
}

/// A write during a sync may be on the device when the sync ends, without being flushed by it.
#[test]
fn a_file_that_awaits_a_flush_keeps_its_descriptor_until_it_is_durable() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(8 << 20).build().unwrap();
    let file = cache.create(place.path().join("file")).unwrap();
    file.write_at(&[3; 5_000], 0).unwrap();
    let core = Arc::clone(file.core_of_tests());
    let cached = core.files.all().remove(0);
    let began = Instant::now();
    while !cached.file.is_clean() {
        assert!(began.elapsed() < Duration::from_secs(60), "it is not written");
        std::thread::yield_now();
    }
    // A sync that was requested before the write and ended after it leaves this state.
    cached.unsynced.store(false, std::sync::atomic::Ordering::SeqCst);
    assert!(!cached.is_durable());
    drop(file);
    while !cached.is_durable() {
        assert!(began.elapsed() < Duration::from_secs(60), "it is not flushed");
        std::thread::yield_now();
    }
    drop((core, cached));
    cache.close().unwrap();
}

/// A sync that the closed gate sent away notes that it has not ended, perhaps after all bytes were written and flushed.
#[test]
fn a_sync_that_leaves_after_the_drain_makes_no_file_unwritten() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(8 << 20).build().unwrap();
    let file = cache.create(place.path().join("file")).unwrap();
    file.write_at(&[3; 5_000], 0).unwrap();
    let core = Arc::clone(file.core_of_tests());
    let cached = core.files.all().remove(0);
    let leaving = SyncOf::begins(&cached);
    core.gate.close();
    let drained = core.drain_until(Instant::now() + Duration::from_secs(60));
    drop(leaving);
    assert!(cached.unsynced.load(Ordering::SeqCst));
    assert_eq!(core.outcome(&drained, false).err().map(|unwritten| unwritten.to_string()), None);
    drop((core, cached, file));
    cache.close().unwrap();
}
