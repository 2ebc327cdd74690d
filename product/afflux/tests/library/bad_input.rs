//! Bad input: an error that names the defect, never a panic.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::time::Duration;

use afflux::{Advice, BudgetKnob, Cache, Error, File, Knob, MEMORY_BYTES_MIN, OpenOptions};

fn cache() -> Cache {
    Cache::builder().memory(8 << 20).build().unwrap()
}

fn file(place: &tempfile::TempDir) -> File {
    cache().create(place.path().join("file")).unwrap()
}

fn range_refused(what: &str, result: std::io::Result<()>) {
    let error = result.expect_err(what);
    assert!(matches!(Error::of(&error), Some(Error::Range { .. })), "{what}: {error}");
    assert!(matches!(error.kind(), ErrorKind::FileTooLarge | ErrorKind::InvalidInput), "{what}: {error}");
    assert!(error.to_string().contains("file"), "{error}");
}

#[test]
fn ranges_that_no_file_has() {
    let place = tempfile::tempdir().unwrap();
    let file = file(&place);
    let max = i64::MAX as u64;
    let mut bytes = [0; 16];
    for offset in [u64::MAX, u64::MAX - 15, max, max - 15] {
        range_refused("read_at", file.read_at(&mut bytes, offset).map(drop));
        range_refused("try_read_at", file.try_read_at(&mut bytes, offset).map(drop));
        range_refused("write_at", file.write_at(&bytes, offset));
        range_refused("try_write_at", file.try_write_at(&bytes, offset));
        range_refused("write_vectored_at", file.write_vectored_at(&[IoSlice::new(&bytes)], offset));
        range_refused("read_vectored_at", file.read_vectored_at(&mut [IoSliceMut::new(&mut bytes)], offset).map(drop));
        smol::block_on(async {
            range_refused("read_at_async", file.read_at_async(&mut [0; 16], offset).await.map(drop));
            range_refused("write_at_async", file.write_at_async(&[0; 16], offset).await);
        });
    }
    range_refused("set_len", file.set_len(u64::MAX));
    #[allow(clippy::reversed_empty_ranges, reason = "the bad input")]
    {
        range_refused("sync_range", file.sync_range(10..5));
        range_refused("punch_hole", file.punch_hole(10..5));
        range_refused("read_pinned", file.read_pinned(10..5).map(drop));
        range_refused("advise", file.advise(10..5, Advice::WillNeed));
    }
    file.punch_hole(5..u64::MAX).unwrap();
    file.sync_range(5..u64::MAX).unwrap();
    file.prefetch(0..u64::MAX).unwrap();
    assert!(file.read_pinned(7..u64::MAX).unwrap().is_empty());
    assert_eq!(file.len(), 0, "nothing came of it");
}

#[test]
fn nothing_at_all_is_done_at_once() {
    let place = tempfile::tempdir().unwrap();
    let file = file(&place);
    assert_eq!(file.read_at(&mut [], 5).unwrap(), 0);
    assert_eq!(file.read_at(&mut [], i64::MAX as u64).unwrap(), 0);
    assert_eq!(file.try_read_at(&mut [], 0).unwrap(), 0);
    file.write_at(&[], 1 << 40).unwrap();
    file.try_write_at(&[], 0).unwrap();
    assert_eq!(file.append(&[]).unwrap(), 0);
    file.write_vectored_at(&[], 3).unwrap();
    assert_eq!(file.read_vectored_at(&mut [], 3).unwrap(), 0);
    assert!(file.read_pinned(5..5).unwrap().is_empty());
    assert_eq!(file.read_pinned(5..5).unwrap().slices().count(), 0);
    file.sync_range(5..5).unwrap();
    file.punch_hole(5..5).unwrap();
    file.sync_data().unwrap();
    assert_eq!(file.len(), 0, "nothing made it longer");
}

#[test]
fn settings_out_of_range() {
    for bytes in [0, 1, MEMORY_BYTES_MIN - 1, u64::MAX] {
        let error = Cache::builder().memory(bytes).build().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::OutOfMemory), "{error}");
        assert!(error.to_string().contains(&bytes.to_string()[..4.min(bytes.to_string().len())]), "{error}");
    }
    for count in [0, 257, usize::MAX] {
        let error = Cache::builder().memory(8 << 20).reactors(count).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    let error = Cache::builder().memory(8 << 20).knob(Knob::DirtyRatio, 500).build().unwrap_err();
    assert!(error.to_string().contains("dirty_ratio"), "{error}");
    let cache = cache();
    assert_eq!(cache.set(Knob::DirtyRatio, 0).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(cache.set_text("dirty_raito=10").unwrap_err().to_string().contains("dirty_ratio"));
    assert!(cache.set_text("nonsense").is_err());
    cache.set_text("dirty_ratio=20").unwrap();
    assert_eq!(cache.knob(Knob::DirtyRatio), 20);
    let error = cache.set(BudgetKnob::BudgetMs, 199).unwrap_err();
    assert!(error.to_string().contains("budget_ms") && error.to_string().contains("200"), "{error}");
    cache.set(BudgetKnob::BudgetMs, 3000).unwrap();
    assert_eq!(cache.knob(BudgetKnob::BudgetMs), 3000);
    let own = Cache::builder().memory(8 << 20).knob(BudgetKnob::BudgetMs, 500).build().unwrap();
    assert_eq!(own.knob(BudgetKnob::BudgetMs), 500);
    let ignored = [
        cache.set_text("writeback_depth=4").unwrap_err(),
        Cache::builder().memory(8 << 20).knob_text("writeback_depth=4").build().unwrap_err(),
    ];
    for error in ignored {
        assert!(error.to_string().contains("set writeback_in_flight_ms"), "{error}");
    }
}

#[test]
fn the_end_may_take_no_time_or_for_ever() {
    let place = tempfile::tempdir().unwrap();
    for closed in [true, false] {
        let cache = Cache::builder().memory(8 << 20).drain_time(Duration::MAX).build().unwrap();
        cache.create(place.path().join("file")).unwrap().write_at(&[closed.into(); 9_000], 0).unwrap();
        if closed {
            cache.close().unwrap();
        } else {
            drop(cache);
        }
        assert_eq!(std::fs::read(place.path().join("file")).unwrap(), [closed.into(); 9_000]);
    }
    let cache = Cache::builder().memory(8 << 20).drain_time(Duration::ZERO).build().unwrap();
    cache.create(place.path().join("clean")).unwrap().close().unwrap();
    cache.close().unwrap();
}

#[test]
fn the_smallest_cache_works() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(MEMORY_BYTES_MIN).build().unwrap();
    let file = cache.create(place.path().join("file")).unwrap();
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|at| (at % 249) as u8).collect();
    file.write_at(&bytes, 0).unwrap();
    let mut back = vec![0; bytes.len()];
    file.read_exact_at(&mut back, 0).unwrap();
    assert!(back == bytes);
    let pages = file.read_pinned(0..5_000_000).unwrap();
    assert!(pages.is_copy() && pages.to_vec() == bytes, "more than the cache holds is a copy");
    cache.close().unwrap();
    assert!(std::fs::read(place.path().join("file")).unwrap() == bytes);
}

#[test]
fn what_is_no_file() {
    let place = tempfile::tempdir().unwrap();
    let cache = cache();
    let refused = |path: &std::path::Path, word: &str| {
        let error = cache.open_read(path).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    };
    refused(place.path(), "directory");
    refused("/dev/null".as_ref(), "character device");
    // The kernel makes these bytes at each read. Lengths of 0 and of 4096 say nothing.
    for path in ["/proc/version", "/proc/self/mem", "/proc/sys/kernel/hostname"] {
        refused(path.as_ref(), "it is on proc, which stores no files");
    }
    refused("/sys/kernel/uevent_seqnum".as_ref(), "it is on sysfs");
    let error = cache.open_fd(std::fs::File::open("/proc/version").unwrap()).unwrap_err();
    assert!(matches!(afflux::Error::of(&error), Some(afflux::Error::StoresNothing { .. })), "{error}");
    refused(&place.path().join("absent"), "No such file");
    let pipe = place.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    refused(&pipe, "pipe");
    let error = cache.open(place.path().join("file"), OpenOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    let writes = std::fs::File::create(place.path().join("writes")).unwrap();
    assert!(cache.open_fd(writes).is_err(), "it could not be read");
    std::fs::write(place.path().join("there"), b"").unwrap();
    let error = cache.open(place.path().join("there"), OpenOptions::new().write(true).create_new(true)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
}

#[test]
fn nobody_cuts_or_makes_a_file_without_the_right_to_write() {
    let place = tempfile::tempdir().unwrap();
    let (cache, path) = (cache(), place.path().join("file"));
    std::fs::write(&path, b"kept").unwrap();
    let read = || OpenOptions::new().read(true);
    for (is_open, options) in [false, true].into_iter().flat_map(|is_open| {
        [read().truncate(true), read().create(true), read().create_new(true)].map(|options| (is_open, options))
    }) {
        let other = is_open.then(|| cache.create(&path).unwrap());
        for name in ["file", "new"] {
            for error in [
                cache.open(place.path().join(name), options.clone()).unwrap_err(),
                smol::block_on(cache.open_async(place.path().join(name), options.clone())).unwrap_err(),
            ] {
                assert!(matches!(Error::of(&error), Some(Error::Setting { .. })), "{error}");
                assert!(error.to_string().contains(name) && error.to_string().contains("need write"), "{error}");
            }
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"kept");
        assert!(other.is_none_or(|other| other.len() == 4) && !place.path().join("new").exists());
    }
}

#[test]
fn what_the_host_refuses_keeps_its_number_and_the_files_name() {
    let place = tempfile::tempdir().unwrap();
    let cache = cache();
    std::fs::write(place.path().join("file"), b"").unwrap();
    std::os::unix::fs::symlink("round", place.path().join("round")).unwrap();
    let long = "x".repeat(300);
    let table =
        [("absent", libc::ENOENT), ("file/below", libc::ENOTDIR), ("round", libc::ELOOP), (&*long, libc::ENAMETOOLONG)];
    for (name, errno) in table {
        let error = cache.open_read(place.path().join(name)).unwrap_err();
        assert_eq!(Error::of(&error).and_then(Error::errno), Some(errno), "{name}: {error}");
        assert_eq!(error.kind(), std::io::Error::from_raw_os_error(errno).kind());
        assert!(error.to_string().contains(name), "{error}");
    }
    let error = cache.open_read("with a\0zero").unwrap_err();
    assert!(matches!(Error::of(&error), Some(Error::Setting { .. })), "{error}");
}

#[test]
fn unaligned_everything() {
    let place = tempfile::tempdir().unwrap();
    let file = file(&place);
    let mut model = vec![0_u8; 70_000];
    let lens = [1, 3, 511, 513, 4095, 4097, 8191, 12_289];
    for (number, len) in lens.iter().cycle().take(200).enumerate() {
        let at = number * 7_919 % (model.len() - len);
        let bytes = vec![number as u8 | 1; *len + 1];
        model[at..at + len].copy_from_slice(&bytes[1..]);
        file.write_at(&bytes[1..], at as u64).unwrap();
    }
    let mut back = vec![0; model.len() + 1];
    let len = file.len() as usize;
    assert_eq!(file.read_at(&mut back[1..], 0).unwrap(), len);
    assert!(back[1..=len] == model[..len]);
    file.sync_all().unwrap();
    assert!(std::fs::read(place.path().join("file")).unwrap() == model[..len]);
}

#[test]
fn a_stream_goes_nowhere_that_is_no_place() {
    let place = tempfile::tempdir().unwrap();
    let mut stream = file(&place).stream();
    stream.write_all(b"abc").unwrap();
    assert!(stream.seek(SeekFrom::Current(-4)).is_err());
    assert!(stream.seek(SeekFrom::End(-4)).is_err());
    assert!(stream.seek(SeekFrom::Start(u64::MAX)).is_err());
    assert_eq!(stream.stream_position().unwrap(), 3);
    assert_eq!(stream.seek(SeekFrom::End(-1)).unwrap(), 2);
}

/// A waker that runs its task at once, on a thread of the cache.
#[test]
fn a_blocking_call_on_a_thread_of_the_cache_is_an_error() {
    struct Calls(std::sync::Mutex<std::sync::mpsc::Sender<std::io::Result<()>>>, File);
    impl std::task::Wake for Calls {
        fn wake(self: Arc<Self>) {
            let _ = self.0.lock().unwrap().send(self.1.sync_data());
        }
    }
    let place = tempfile::tempdir().unwrap();
    let cache = cache();
    let file = cache.create(place.path().join("file")).unwrap();
    let (told, hears) = std::sync::mpsc::channel();
    let waker = Arc::new(Calls(std::sync::Mutex::new(told), file.clone())).into();
    file.write_at(&[1; 3 << 20], 0).unwrap();
    let mut sync = Box::pin(file.sync_data_async());
    let pending = sync.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending();
    assert!(pending);
    let error = hears.recv().unwrap().unwrap_err();
    assert!(matches!(Error::of(&error), Some(Error::WaitInside)), "{error}");
    assert_eq!(error.kind(), ErrorKind::Deadlock);
    smol::block_on(sync).unwrap();
    drop(waker);
}

#[test]
fn a_knob_that_acts_with_another_value_says_which_and_why() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(16 << 20).build().unwrap();
    let _file = cache.create(place.path().join("file")).unwrap();
    assert!(cache.knob_in_force("dirty_background_centisecs").unwrap().is_empty(), "it is not set");
    cache.set_text("budget_ms=200").unwrap();
    cache.set_text("dirty_background_centisecs=300").unwrap();
    let told = cache.knob_in_force("dirty_background_centisecs").unwrap();
    assert!(told.len() == 1 && told[0].contains("centiseconds in force: "), "{told:?}");
    assert!(cache.knob_in_force("dirty_background").is_err(), "no such knob");
}
