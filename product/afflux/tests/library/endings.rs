//! The end of a cache: dirty bytes are written or reported, nothing is written later, and nobody waits for ever.

use std::future::Future;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use afflux::{Cache, Error, OpenOptions, Unwritten};
use afflux_scratch::eventually;

fn cache() -> Cache {
    Cache::builder().memory(8 << 20).build().unwrap()
}

/// A small file system; prints a message if there can be none.
struct Mounted(PathBuf);

impl Mounted {
    fn tmpfs(place: &Path, bytes: u64) -> Option<Self> {
        let path = place.join("mounted");
        std::fs::create_dir(&path).unwrap();
        let options = format!("size={bytes}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&path).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            afflux_scratch::skipped!("nothing can be mounted here");
            return None;
        }
        Some(Self(path))
    }

    /// A journaled one that can be frozen: writes to it then wait in the kernel.
    fn ext4(place: &Path) -> Option<Self> {
        let (path, image) = (place.join("mounted"), place.join("image"));
        std::fs::create_dir(&path).unwrap();
        std::fs::File::create(&image).unwrap().set_len(16 << 20).unwrap();
        let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
            let output = Command::new(program).args(arguments).output();
            output.is_ok_and(|output| output.status.success())
        };
        let made = run("mkfs.ext4", &["-q".as_ref(), image.as_ref()])
            && run("mount", &["-o".as_ref(), "loop".as_ref(), image.as_ref(), path.as_ref()]);
        if !made {
            afflux_scratch::skipped!("nothing can be mounted here");
        }
        made.then_some(Self(path))
    }

    /// As if its disk had been pulled out: from now on every call to it fails, and nothing more is written.
    fn pull_out(&self) -> bool {
        // EXT4_IOC_SHUTDOWN without the log; not every system has a program for it.
        let script = r#"open(my $place, "<", $ARGV[0]) or exit 1; my $how = pack("L", 2); ioctl($place, 0x8004587D, $how) or exit 1"#;
        let output = Command::new("perl").args(["-e", script]).arg(&self.0).output();
        output.is_ok_and(|output| output.status.success())
    }

    fn freeze(&self, how: &str) -> bool {
        let output = Command::new("fsfreeze").arg(how).arg(&self.0).output();
        output.is_ok_and(|output| output.status.success())
    }

    /// Fills it completely.
    fn fill(&self) {
        let filler = vec![0; 2 << 20];
        assert!(std::fs::write(self.0.join("filler"), filler).is_err());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn dropping_the_last_handle_writes_everything() {
    let place = tempfile::tempdir().unwrap();
    for bytes in [1_usize, 64 << 10, 1 << 20, 3_000_001] {
        let path = place.path().join(format!("file-{bytes}"));
        let content: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        let cache = cache();
        let file = cache.create(&path).unwrap();
        file.write_at(&content, 0).unwrap();
        drop(cache);
        assert!(file.write_at(b"", 0).is_ok(), "a handle of a file keeps the cache");
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
}

/// Whether this process has a descriptor of the file.
fn is_open(path: &Path) -> bool {
    let path = path.canonicalize().unwrap();
    let mut descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    descriptors.any(|fd| std::fs::read_link(fd.unwrap().path()).is_ok_and(|open| open == path))
}

#[test]
fn nothing_is_written_after_the_last_drop() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    let cache = cache();
    let file = cache.create(&path).unwrap();
    // More than the dirty limit, so that the flusher is in the middle of its work.
    for at in 0..64_u64 {
        file.write_at(&vec![2; 128 << 10], at * (128 << 10)).unwrap();
    }
    drop((file, cache));
    std::fs::write(&path, b"mine").unwrap();
    // Only a descriptor of the file could still write there.
    eventually("the file is closed", || !is_open(&path));
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn after_a_close_every_call_fails() {
    let place = tempfile::tempdir().unwrap();
    let cache = cache();
    let file = cache.create(place.path().join("file")).unwrap();
    file.write_at(&[3; 10_000], 0).unwrap();
    cache.clone().close().unwrap();
    cache.clone().close().unwrap();
    let closed = |what: &str, result: std::io::Result<()>| {
        let error = result.expect_err(what);
        assert!(matches!(Error::of(&error), Some(Error::Closed)), "{what}: {error}");
        assert_eq!(error.kind(), ErrorKind::NotConnected);
    };
    let mut bytes = [0; 10];
    closed("read_at", file.read_at(&mut bytes, 0).map(drop));
    closed("try_read_at", file.try_read_at(&mut bytes, 0).map(drop));
    closed("read_pinned", file.read_pinned(0..10).map(drop));
    closed("try_read_pinned", file.try_read_pinned(0..10).map(drop));
    closed("write_at", file.write_at(&bytes, 0));
    closed("try_write_at", file.try_write_at(&bytes, 0));
    closed("append", file.append(&bytes).map(drop));
    closed("sync_data", file.sync_data());
    closed("sync_all", file.sync_all());
    closed("sync_range", file.sync_range(0..10));
    closed("set_len", file.set_len(0));
    closed("punch_hole", file.punch_hole(0..10));
    closed("advise", file.prefetch(0..10));
    closed("metadata", file.metadata().map(drop));
    closed("close", file.clone().close());
    closed("open", cache.create(place.path().join("file")).map(drop));
    closed("drain", cache.drain());
    closed("set", cache.set(afflux::Knob::DirtyRatio, 10));
    smol::block_on(async {
        closed("read_at_async", file.read_at_async(&mut [0; 10], 0).await.map(drop));
        closed("write_at_async", file.write_at_async(&[0; 10], 0).await);
        closed("append_async", file.append_async(&[0; 10]).await.map(drop));
        closed("sync_data_async", file.sync_data_async().await);
        closed("set_len_async", file.set_len_async(1).await);
        closed("metadata_async", file.metadata_async().await.map(drop));
        closed("open_async", cache.open_async("x", OpenOptions::new().read(true)).await.map(drop));
        closed("drain_async", cache.drain_async().await);
        cache.clone().close_async().await.unwrap();
    });
    assert_eq!(file.len(), 10_000);
}

#[test]
fn what_cannot_be_written_is_told_and_goes_nowhere_later() {
    let place = tempfile::tempdir().unwrap();
    let Some(small) = Mounted::tmpfs(place.path(), 1 << 20) else { return };
    let told: Arc<Mutex<Vec<Unwritten>>> = Arc::default();
    let hears = Arc::clone(&told);
    let cache = Cache::builder()
        .memory(16 << 20)
        .drain_time(Duration::from_secs(5))
        .knob(afflux::Knob::ReserveBytes, 0)
        .on_unwritten(move |unwritten| hears.lock().unwrap().push(unwritten.clone()))
        .build()
        .unwrap();
    let (full, fits) = (cache.create(small.0.join("full")).unwrap(), cache.create(place.path().join("fits")).unwrap());
    fits.write_at(&[4; 5_000], 0).unwrap();
    small.fill();
    // Few enough bytes to be accepted in one piece: with more, the disk may refuse the first before the last are
    // accepted.
    full.write_at(&vec![4; 16 << 10], 0).unwrap();
    let error = full.sync_data().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    assert!(error.to_string().contains("full"), "{error}");
    let began = Instant::now();
    drop((full, fits, cache));
    assert!(began.elapsed() < Duration::from_secs(60));
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 1);
    let [file] = told[0].files.as_slice() else { panic!("{:?}", told[0]) };
    assert!(file.path.ends_with("full") && file.bytes == 16 << 10, "{file:?}");
    assert!(file.error.as_deref().is_some_and(|error| error.contains("no space")), "{file:?}");
    assert_eq!(std::fs::read(place.path().join("fits")).unwrap(), [4; 5_000]);
}

/// The traced program of the next test: a drop loses bytes, with a hook if the environment says so.
#[test]
#[ignore = "the next test runs it"]
fn a_drop_that_loses_bytes() {
    let place = tempfile::tempdir().unwrap();
    let Some(small) = Mounted::tmpfs(place.path(), 1 << 20) else { return };
    let mut builder = Cache::builder().memory(16 << 20).knob(afflux::Knob::ReserveBytes, 0);
    if std::env::var_os("AFFLUX_TEST_HOOK").is_some() {
        builder = builder.on_unwritten(|unwritten| assert_eq!(unwritten.files.len(), 1));
    }
    let cache = builder.build().unwrap();
    let full = cache.create(small.0.join("full")).unwrap();
    small.fill();
    full.write_at(&vec![4; 16 << 10], 0).unwrap();
    drop((full, cache));
}

#[test]
fn lost_bytes_go_to_the_hook_or_without_one_to_standard_error() {
    let place = tempfile::tempdir().unwrap();
    if Mounted::tmpfs(place.path(), 1 << 20).is_none() {
        return;
    }
    for hook in [false, true] {
        let mut program = std::process::Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "endings::a_drop_that_loses_bytes", "--ignored", "--nocapture"]);
        program.envs(hook.then_some(("AFFLUX_TEST_HOOK", "1")));
        let output = program.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        assert_eq!(errors.contains("could not be written"), !hook, "hook: {hook}: {errors}");
    }
}

#[test]
fn a_close_returns_what_a_drop_would_have_told() {
    let place = tempfile::tempdir().unwrap();
    let Some(small) = Mounted::tmpfs(place.path(), 1 << 20) else { return };
    let cache = Cache::builder()
        .memory(16 << 20)
        .knob(afflux::Knob::ReserveBytes, 0)
        .on_unwritten(|unwritten| panic!("close returns it: {unwritten}"))
        .build()
        .unwrap();
    let full = cache.create(small.0.join("full")).unwrap();
    small.fill();
    full.write_at(&vec![4; 16 << 10], 0).unwrap();
    let unwritten = cache.clone().close().unwrap_err();
    assert_eq!(unwritten.files.len(), 1);
    assert!(unwritten.to_string().contains("could not be written"), "{unwritten}");
    assert!(cache.close().is_err(), "who comes second hears the same");
}

/// Calls of many threads while the cache is closed: each returns, and acknowledged and synced bytes are there.
#[test]
fn closing_in_the_middle_of_calls_strands_nobody() {
    let place = tempfile::tempdir().unwrap();
    for round in 0..6_u8 {
        let path = place.path().join(format!("file-{round}"));
        let cache = cache();
        let file = cache.create(&path).unwrap();
        let calls = AtomicU64::new(0);
        let acknowledged = std::thread::scope(|scope| {
            let calls = &calls;
            let threads: Vec<_> = (0..4_u64)
                .map(|thread| {
                    let file = file.clone();
                    scope.spawn(move || {
                        let mut acknowledged = 0;
                        loop {
                            let at = (thread << 32) + acknowledged * 10_000;
                            match file.write_at(&[round + 1; 10_000], at) {
                                Ok(()) => {
                                    acknowledged += 1;
                                    calls.fetch_add(1, Ordering::Relaxed);
                                }
                                Err(error) => {
                                    assert!(matches!(Error::of(&error), Some(Error::Closed)), "{error}");
                                    return acknowledged;
                                }
                            }
                            if acknowledged.is_multiple_of(64) && file.sync_data().is_err() {
                                return acknowledged;
                            }
                        }
                    })
                })
                .collect();
            eventually("many calls have returned", || calls.load(Ordering::Relaxed) > 500);
            cache.clone().close().unwrap();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        // The close has written every acknowledged write.
        let host = std::fs::File::open(&path).unwrap();
        for (thread, count) in acknowledged.into_iter().enumerate() {
            let mut bytes = vec![0; 10_000];
            for number in 0..count {
                let at = ((thread as u64) << 32) + number * 10_000;
                std::os::unix::fs::FileExt::read_exact_at(&host, &mut bytes, at).unwrap();
                assert!(bytes.iter().all(|byte| *byte == round + 1), "write {number} of thread {thread} is not there");
            }
        }
    }
}

#[test]
fn a_future_that_nobody_polls_does_not_keep_the_end_waiting() {
    let place = tempfile::tempdir().unwrap();
    let cache = cache();
    let file = cache.create(place.path().join("file")).unwrap();
    file.write_at(&[5; 1 << 20], 0).unwrap();
    let mut sync = Box::pin(file.sync_data_async());
    let mut context = Context::from_waker(Waker::noop());
    let first = sync.as_mut().poll(&mut context);
    cache.close().unwrap();
    if first.is_pending() {
        let Poll::Ready(Err(error)) = sync.as_mut().poll(&mut context) else { panic!("it waits still") };
        assert!(matches!(Error::of(&error), Some(Error::Closed)));
    }
}

#[test]
fn pages_that_are_shown_outlive_the_cache() {
    let place = tempfile::tempdir().unwrap();
    let cache = cache();
    let file = cache.create(place.path().join("file")).unwrap();
    file.write_at(&[6; 20_000], 0).unwrap();
    let pages = file.read_pinned(0..20_000).unwrap();
    drop(file);
    cache.close().unwrap();
    assert_eq!(pages.to_vec(), [6; 20_000]);
}

/// The last handle is dropped on a thread of the cache, in a waker: the cache still ends.
#[test]
fn the_last_handle_may_be_dropped_by_a_waker() {
    struct Drops(Mutex<Option<afflux::File>>);
    impl std::task::Wake for Drops {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().unwrap().take());
        }
    }
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    let (ended, end) = std::sync::mpsc::channel::<()>();
    let cache = Cache::builder().memory(8 << 20).build().unwrap();
    let file = cache.create(&path).unwrap();
    let waker = Waker::from(Arc::new(Drops(Mutex::new(Some(file.clone())))));
    // A disk may have written all of it before the poll.
    let waits = |_: u32| {
        file.write_at(&[7; 2 << 20], 0).unwrap();
        let syncing = file.clone();
        let mut sync = Box::pin(async move { syncing.sync_data_async().await });
        let pending = sync.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
        pending.then_some(sync)
    };
    let sync = (0..1_000).find_map(waits).expect("a sync that waits");
    drop((cache, file, sync, ended));
    // Only the waker has a handle. The future has dropped its copy of the waker, so that the last copy goes here or on
    // the cache's thread.
    drop(waker);
    assert!(end.recv().is_err());
    eventually("it is written", || std::fs::read(&path).unwrap() == [7; 2 << 20]);
}

/// A thread is not one of the cache's because of its name. A close on a user's thread has written everything on return.
#[test]
fn a_thread_of_a_user_closes_a_cache_whatever_it_is_called() {
    let place = tempfile::tempdir().unwrap();
    let Some(small) = Mounted::tmpfs(place.path(), 1 << 20) else { return };
    for name in ["afflux-open", "afflux-io", "afflux-0", "afflux-file"] {
        let cache = Cache::builder().memory(16 << 20).knob(afflux::Knob::ReserveBytes, 0).build().unwrap();
        let file = cache.create(small.0.join(name)).unwrap();
        small.fill();
        file.write_at(&[4; 16 << 10], 0).unwrap();
        let close = move || cache.close();
        let closed = std::thread::Builder::new().name(name.to_owned()).spawn(close).unwrap().join().unwrap();
        assert!(closed.is_err_and(|unwritten| unwritten.files.len() == 1), "{name}: it did not say what was lost");
        std::fs::remove_file(small.0.join("filler")).unwrap();
    }
}

/// A frozen file system. It is thawed in any case, after a while even if this process hangs in it: otherwise it would
/// stay frozen on the machine.
struct Frozen<'a> {
    mounted: &'a Mounted,
    /// Dropping this ends the watch.
    _over: std::sync::mpsc::Sender<()>,
    thawed: Arc<std::sync::atomic::AtomicBool>,
}

impl<'a> Frozen<'a> {
    fn new(mounted: &'a Mounted) -> Option<Self> {
        if !mounted.freeze("--freeze") {
            afflux_scratch::skipped!("it cannot be frozen");
            return None;
        }
        let (over, ends) = std::sync::mpsc::channel::<()>();
        let path = mounted.0.clone();
        let thawed = Arc::<std::sync::atomic::AtomicBool>::default();
        let thaws = Arc::clone(&thawed);
        std::thread::spawn(move || {
            if ends.recv_timeout(FROZEN_MAX).is_err_and(|end| end == std::sync::mpsc::RecvTimeoutError::Timeout) {
                thaws.store(true, std::sync::atomic::Ordering::SeqCst);
                let _ = Command::new("fsfreeze").arg("--unfreeze").arg(path).output();
            }
        });
        Some(Self { mounted, _over: over, thawed })
    }

    /// Whether it has not been thawed.
    fn is_still(&self) -> bool {
        !self.thawed.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.mounted.freeze("--unfreeze");
    }
}

/// Threads of this process that wait in the kernel and take no signals, as for a frozen file system.
fn waiting_in_kernel() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let states = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    states.filter(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" D"))).count()
}

/// Longer than any step here may take.
const FROZEN_MAX: Duration = Duration::from_secs(40);

#[test]
fn a_device_that_hangs_does_not_keep_the_end_longer_than_was_said() {
    let place = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::ext4(place.path()) else { return };
    let built = Cache::builder().memory(8 << 20).drain_time(Duration::from_secs(1));
    // Otherwise the writer would reserve space on the small file system, and wait for it to thaw.
    let cache = built.knob(afflux::Knob::ReserveBytes, 0).build().unwrap();
    let file = cache.create(mounted.0.join("file")).unwrap();
    let fine = cache.create(place.path().join("fine")).unwrap();
    file.write_at(&[8; 100_000], 0).unwrap();
    file.sync_data().unwrap();
    let Some(frozen) = Frozen::new(&mounted) else { return };
    file.write_at(&[9; 100_000], 0).unwrap();
    fine.write_at(&[9; 100_000], 0).unwrap();
    let began = Instant::now();
    let unwritten = cache.clone().close().unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(unwritten.still_in_flight, "{unwritten}");
    let [lost] = unwritten.files.as_slice() else { panic!("{unwritten}") };
    assert!(lost.path.ends_with("mounted/file") && lost.error.is_none(), "{unwritten}");
    assert!(unwritten.to_string().contains("within 1s"), "{unwritten}");
    assert_eq!(std::fs::read(place.path().join("fine")).unwrap(), [9; 100_000], "the other device did not hang");
    assert!(file.read_at(&mut [0; 10], 0).is_err());
    drop(frozen);
    drop((file, fine, cache));
}

/// With little space left, a writer's space is reserved before its bytes are accepted, and the reservation waits in the
/// kernel as long as the file system is frozen. The writer leaves earlier: when the cache is closed.
#[test]
fn a_writer_that_waits_for_space_on_a_device_that_hangs_leaves_when_the_cache_is_closed() {
    let place = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::ext4(place.path()) else { return };
    let cache = reserving(Cache::builder().drain_time(Duration::from_secs(1)));
    let file = cache.create(mounted.0.join("file")).unwrap();
    let Some(frozen) = Frozen::new(&mounted) else { return };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| file.write_at(&[8; 100_000], 0));
        eventually("the writer waits in the kernel", || waiting_in_kernel() > 0);
        assert!(!writer.is_finished(), "it would have to wait for the reservation");
        let closed = cache.clone().close();
        let error = writer.join().unwrap().unwrap_err();
        assert!(matches!(Error::of(&error), Some(Error::Closed)), "{error}");
        assert!(frozen.is_still(), "it waited for the thaw");
        drop(closed);
    });
    drop(frozen);
}

/// It also leaves when the device has been silent for the time that writers may wait. Other writers go on meanwhile,
/// even if as many wait as a device has threads.
#[test]
fn writers_that_wait_for_space_on_a_device_that_hangs_are_told_so_and_keep_nobody() {
    let place = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::ext4(place.path()) else { return };
    let cache = reserving(Cache::builder().drain_time(Duration::from_secs(1)).knob_text("hang_error_ms=10000"));
    let files: Vec<_> = (0..20).map(|number| cache.create(mounted.0.join(number.to_string())).unwrap()).collect();
    let fine = cache.create(place.path().join("fine")).unwrap();
    let Some(frozen) = Frozen::new(&mounted) else { return };
    std::thread::scope(|scope| {
        let writers: Vec<_> = files.iter().map(|file| scope.spawn(|| file.write_at(&[8; 10_000], 0))).collect();
        eventually("writers wait in the kernel", || waiting_in_kernel() > 1);
        fine.write_at(&[9; 300_000], 0).unwrap();
        fine.sync_all().unwrap();
        assert!(writers.iter().all(|writer| !writer.is_finished()), "they would have to wait for the reservation");
        for writer in writers {
            let error = writer.join().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        }
        assert!(frozen.is_still(), "they waited for the thaw");
    });
    drop(frozen);
    // The refusal ends when the device completes a request.
    eventually("a write is taken again", || files[0].write_at(&[7; 10_000], 0).is_ok());
    files[0].sync_data().unwrap();
    cache.close().unwrap();
}

/// The same holds for changes of size and for holes. A change that was not begun does not happen later.
#[test]
fn changes_of_shape_on_a_device_that_hangs_are_told_so() {
    let place = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::ext4(place.path()) else { return };
    let built = Cache::builder().memory(8 << 20).knob(afflux::Knob::ReserveBytes, 0);
    let cache = built.drain_time(Duration::from_secs(60)).knob_text("hang_error_ms=10000").build().unwrap();
    let files = ["cut", "hole", "truncated"].map(|name| {
        let file = cache.create(mounted.0.join(name)).unwrap();
        file.write_at(&[8; 100_000], 0).unwrap();
        file.sync_data().unwrap();
        file
    });
    let Some(frozen) = Frozen::new(&mounted) else { return };
    std::thread::scope(|scope| {
        let cut = scope.spawn(|| files[0].set_len(10));
        let hole = scope.spawn(|| files[1].punch_hole(4096..20_000));
        let options = OpenOptions::new().read(true).write(true).truncate(true);
        let truncated = scope.spawn(|| cache.open(mounted.0.join("truncated"), options).map(drop));
        for refused in [cut, hole, truncated] {
            let error = refused.join().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        }
        // From then on the call fails at once.
        assert_eq!(files[0].set_len(20).unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(frozen.is_still(), "they waited for the thaw");
    });
    drop(frozen);
    eventually("a change of size is taken again", || files[0].set_len(30).is_ok());
    assert_eq!(files[0].len(), 30);
    cache.close().unwrap();
}

/// A cache in which writers reserve space on every device.
fn reserving(builder: afflux::Builder) -> Cache {
    builder.memory(8 << 20).knob(afflux::Knob::ReserveBytes, 1 << 40).build().unwrap()
}

/// Requests that wait in the kernel for one device do not take the slots of other devices' requests.
#[test]
fn a_device_that_hangs_with_many_requests_does_not_keep_another() {
    let place = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::ext4(place.path()) else { return };
    let built = Cache::builder().memory(16 << 20).reactors(1).drain_time(Duration::from_secs(1));
    let cache = built.knob(afflux::Knob::ReserveBytes, 0).build().unwrap();
    let files: Vec<_> = (0..40).map(|number| cache.create(mounted.0.join(number.to_string())).unwrap()).collect();
    let fine: Vec<_> = (0..4).map(|number| cache.create(place.path().join(number.to_string())).unwrap()).collect();
    let Some(frozen) = Frozen::new(&mounted) else { return };
    std::thread::scope(|scope| {
        let syncs: Vec<_> = files
            .iter()
            .map(|file| {
                scope.spawn(|| {
                    file.write_at(&[8; 10_000], 0).unwrap();
                    file.sync_all()
                })
            })
            .collect();
        eventually("requests wait in the kernel", || waiting_in_kernel() > 1);
        for round in 0..5 {
            for file in &fine {
                file.append(&[round; 100_000]).unwrap();
                file.sync_data().unwrap();
            }
        }
        assert!(frozen.is_still(), "the other device waited for the thaw");
        drop(frozen);
        syncs.into_iter().for_each(|sync| sync.join().unwrap().unwrap());
    });
    cache.close().unwrap();
}

/// A handle in thread-local storage is dropped when the thread has almost ended.
#[test]
fn the_last_handle_may_go_with_a_thread() {
    thread_local! {
        static RESERVE: std::cell::RefCell<Option<afflux::File>> = const { std::cell::RefCell::new(None) };
    }
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    let own = path.clone();
    let thread = std::thread::spawn(move || {
        RESERVE.with_borrow_mut(|kept| {
            let file = cache().create(&own).unwrap();
            file.write_at(&[5; 30_000], 0).unwrap();
            *kept = Some(file);
        });
    });
    thread.join().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), [5; 30_000]);
}

#[test]
fn a_device_that_vanishes_fails_every_sync_and_the_close_says_what_was_lost() {
    let place = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::ext4(place.path()) else { return };
    let built = Cache::builder().memory(8 << 20).knob(afflux::Knob::ReserveBytes, 0);
    // The flusher is not to write and flush pages before the device vanishes.
    let built = built.knob(afflux::Knob::WritebackCentisecs, 0).knob(afflux::Knob::BackgroundCentisecs, 100);
    let cache = built.build().unwrap();
    let file = cache.create(mounted.0.join("file")).unwrap();
    let clean = cache.create(mounted.0.join("clean")).unwrap();
    let fine = cache.create(place.path().join("fine")).unwrap();
    clean.write_at(&[6; 50_000], 0).unwrap();
    file.write_at(&[7; 500_000], 0).unwrap();
    cache.drain().unwrap();
    cache.drop_clean_pages();
    file.write_at(&[8; 200_000], 0).unwrap();
    if !mounted.pull_out() {
        afflux_scratch::skipped!("it cannot be pulled out");
        return;
    }
    let began = Instant::now();
    for _ in 0..3 {
        let error = file.sync_data().unwrap_err();
        assert!(error.to_string().contains("mounted/file"), "{error}");
    }
    let mut bytes = vec![0; 100_000];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, [8; 100_000], "what was accepted is there as long as the cache is");
    assert!(file.read_at(&mut bytes, 400_000).is_err(), "what is not cached is gone");
    assert!(clean.read_at(&mut bytes, 0).is_err());
    assert!(file.set_len(10).is_err() && file.len() == 500_000, "the size stays what it was");
    fine.write_at(&[9; 300_000], 0).unwrap();
    fine.sync_all().unwrap();
    assert!(cache.drain().is_err());
    let unwritten = cache.clone().close().unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(!unwritten.still_in_flight, "{unwritten}");
    let [lost] = unwritten.files.as_slice() else { panic!("{unwritten}") };
    assert!(lost.path.ends_with("mounted/file") && lost.error.is_some(), "{unwritten}");
    assert!(lost.bytes >= 200_000, "{unwritten}");
    assert_eq!(std::fs::read(place.path().join("fine")).unwrap(), [9; 300_000]);
}
