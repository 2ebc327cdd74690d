//! The same cache from tokio, smol, a program's own threads, and threads without a runtime, at once.

use std::fs;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;
use std::thread;
use std::time::Duration;

use afflux::{Cache, File, OpenOptions};
use rustix::thread::gettid;
use smol::future::poll_once;

const BLOCK: usize = 10_000;
const BLOCKS: u64 = 150;
const PAGE: u64 = 4096;

fn options() -> OpenOptions {
    OpenOptions::new().read(true).write(true).create(true)
}

/// Writes, syncs, cold and hot reads, appends: the same on every runtime.
async fn work(cache: &Cache, path: &Path, mark: u8) {
    let file = cache.open_async(path, options()).await.unwrap();
    for block in 0..BLOCKS {
        file.write_at_async(&[mark; BLOCK], block * BLOCK as u64).await.unwrap();
    }
    file.sync_data_async().await.unwrap();
    cache.drop_clean_pages();
    let mut bytes = [0; BLOCK];
    for block in 0..BLOCKS {
        file.read_exact_at_async(&mut bytes, block * BLOCK as u64).await.unwrap();
        assert_eq!(bytes, [mark; BLOCK]);
    }
    assert_eq!(file.append_async(b"tail").await.unwrap(), BLOCKS * BLOCK as u64);
    let pages = file.read_pinned_async(BLOCKS * BLOCK as u64 - 2..u64::MAX).await.unwrap();
    assert_eq!(pages.to_vec(), [&[mark; 2], &b"tail"[..]].concat());
    file.set_len_async(BLOCK as u64).await.unwrap();
    file.punch_hole_async(0..100).await.unwrap();
    file.sync_all_async().await.unwrap();
    assert_eq!(file.metadata_async().await.unwrap().len(), BLOCK as u64);
    file.close_async().await.unwrap();
}

fn blocking_work(cache: &Cache, path: &Path, mark: u8) {
    let file: File = cache.open(path, options()).unwrap();
    for block in 0..BLOCKS {
        file.write_at(&[mark; BLOCK], block * BLOCK as u64).unwrap();
    }
    file.sync_data().unwrap();
    cache.drop_clean_pages();
    let mut bytes = [0; BLOCK];
    for block in 0..BLOCKS {
        file.read_exact_at(&mut bytes, block * BLOCK as u64).unwrap();
        assert_eq!(bytes, [mark; BLOCK]);
    }
    file.set_len(BLOCK as u64).unwrap();
    file.punch_hole(0..100).unwrap();
    file.close().unwrap();
}

async fn join<T>(tasks: Vec<smol::Task<T>>) {
    for task in tasks {
        task.await;
    }
}

/// Bytes that this thread and the kernel's workers for its ring have read from disks. A worker does a read that the
/// kernel cannot begin at once.
fn read_here() -> u64 {
    let this = gettid().as_raw_nonzero().to_string();
    let is_thread = |number: &str| Path::new("/proc/self/task").join(number).exists();
    let threads = fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    let ours = threads.filter(|thread| {
        // Another test's thread may end meanwhile.
        let name = fs::read_to_string(thread.join("comm")).unwrap_or_default();
        // The kernel names a worker by the number that the thread has outside of containers. In a container no thread
        // has that number, and the worker may be any thread's.
        let of = name.trim_end().strip_prefix("iou-wrk-");
        thread.ends_with(&this) || of.is_some_and(|of| of == this || !is_thread(of))
    });
    ours.map(|thread| read_bytes(&thread.join("io"))).sum()
}

fn read_bytes(figures: &Path) -> u64 {
    let figures = fs::read_to_string(figures).unwrap();
    figures.lines().find_map(|line| line.strip_prefix("read_bytes: ")).unwrap().parse().unwrap()
}

// rule: a program's own thread does the reads of the calls that it runs
// kept in: `product/linux-device/src/platform.rs`
#[test]
fn a_programs_thread_reads_for_the_calls_that_it_runs() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    let file = cache.open(place.path().join("file"), options()).unwrap();
    if !cache.stats().devices[0].access.contains("O_DIRECT") {
        return afflux_scratch::skipped!("this file system has no O_DIRECT");
    }
    file.write_at(&[7; 1 << 20], 0).unwrap();
    file.sync_data().unwrap();
    cache.drop_clean_pages();
    let (executor, before) = (smol::LocalExecutor::new(), read_here());
    let read = |page: u64| {
        let file = file.clone();
        executor.spawn(async move {
            let mut into = [0; PAGE as usize];
            file.read_exact_at_async(&mut into, page * PAGE).await.unwrap();
            assert_eq!(into, [7; PAGE as usize]);
        })
    };
    // Apart, so that each is read for itself.
    let reads = (0..32).map(|number| read(number * 37 % 256)).collect();
    let refused = cache.run(executor.run(async {
        join(reads).await;
        cache.drop_clean_pages();
        file.read_at(&mut [0; 1], PAGE)
    }));
    assert!(refused.unwrap().is_err(), "a blocking call would stop the thread");
    let read = read_here() - before;
    assert!(read >= 32 * PAGE, "another thread has read: this one {read} bytes of {}", 32 * PAGE);
}

/// A file of a MiB in a new cache, of which no page is cached; none if the disk reads through the host's cache.
fn cold(place: &Path) -> Option<(Cache, File)> {
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    let file = cache.open(place.join("file"), options()).unwrap();
    file.write_at(&[7; 1 << 20], 0).unwrap();
    file.sync_data().unwrap();
    cache.drop_clean_pages();
    cache.stats().devices[0].access.contains("O_DIRECT").then_some((cache, file))
}

/// A read of a page, which one poll leaves in flight.
fn page_read(file: &File, page: u64) -> Pin<Box<dyn Future<Output = ()>>> {
    let file = file.clone();
    Box::pin(async move {
        let mut into = [0; PAGE as usize];
        file.read_exact_at_async(&mut into, page * PAGE).await.unwrap();
        assert_eq!(into, [7; PAGE as usize]);
    })
}

// rule: a thread may leave its reads in flight, and comes back for them
// kept in: `product/linux-device/src/platform/visit.rs`
#[test]
fn a_thread_leaves_its_reads_in_flight_and_comes_back_for_them() {
    let place = tempfile::tempdir().unwrap();
    let Some((cache, file)) = cold(place.path()) else { return afflux_scratch::skipped!("no O_DIRECT here") };
    let (reactor, before) = (cache.thread_reactor(), read_here());
    let mut reads: Vec<_> = (0..32).map(|number| page_read(&file, number * 37 % 256)).collect();
    let begun = reactor.drive(async {
        for read in &mut reads {
            assert!(poll_once(read).await.is_none(), "it waits for the disk");
        }
    });
    begun.unwrap();
    for read in reads {
        reactor.drive(read).unwrap();
    }
    let read = read_here() - before;
    assert!(read >= 32 * PAGE, "another thread has read: this one {read} bytes of {}", 32 * PAGE);
}

// rule: no blocking call of a thread waits for a read that the thread itself has left in flight
// kept in: `product/linux-device/src/platform/visit.rs`
#[test]
fn a_blocking_call_gets_a_page_that_its_thread_left_in_flight() {
    let place = tempfile::tempdir().unwrap();
    let Some((cache, file)) = cold(place.path()) else { return afflux_scratch::skipped!("no O_DIRECT here") };
    let reactor = cache.thread_reactor();
    let mut reads = [page_read(&file, 5), page_read(&file, 9)];
    for read in &mut reads {
        assert!(reactor.drive(poll_once(read)).unwrap().is_none());
    }
    let mut into = [0; PAGE as usize];
    file.read_exact_at(&mut into, 5 * PAGE).unwrap();
    assert_eq!(into, [7; PAGE as usize]);
    file.write_at(&[8; 10], 9 * PAGE).unwrap();
    file.sync_all().unwrap();
    file.set_len(9 * PAGE).unwrap();
    // A read of another thread waits for this one, and no longer.
    let other = thread::spawn({
        let file = file.clone();
        move || file.read_exact_at(&mut [0; PAGE as usize], 8 * PAGE).unwrap()
    });
    other.join().unwrap();
    let [read, cut] = reads;
    reactor.drive(read).unwrap();
    drop(cut);
}

#[test]
fn a_part_without_time_looks_once() {
    let place = tempfile::tempdir().unwrap();
    let Some((cache, file)) = cold(place.path()) else { return afflux_scratch::skipped!("no O_DIRECT here") };
    let reactor = cache.thread_reactor();
    let mut read = page_read(&file, 5);
    while reactor.drive_for(&mut read, Duration::ZERO).unwrap().is_none() {
        thread::yield_now();
    }
    let never = std::future::pending::<()>();
    assert!(reactor.drive_for(never, Duration::from_millis(3)).unwrap().is_none());
    let inside = reactor.drive(async { reactor.drive(async {}).is_err() });
    assert!(inside.unwrap(), "one part at a time");
}

#[test]
fn the_drop_of_a_threads_reactor_waits_for_its_reads() {
    let place = tempfile::tempdir().unwrap();
    let Some((cache, file)) = cold(place.path()) else { return afflux_scratch::skipped!("no O_DIRECT here") };
    let reactor = cache.thread_reactor();
    let mut read = page_read(&file, 5);
    assert!(reactor.drive(poll_once(&mut read)).unwrap().is_none());
    drop(reactor);
    let other = thread::spawn({
        let file = file.clone();
        move || file.read_exact_at(&mut [0; PAGE as usize], 5 * PAGE).unwrap()
    });
    other.join().unwrap();
    smol::block_on(read);
    // The end of the cache waits for no thread that stays away.
    let reactor = cache.thread_reactor();
    let mut read = page_read(&file, 200);
    assert!(reactor.drive(poll_once(&mut read)).unwrap().is_none());
    drop((read, file));
    cache.close().unwrap();
    assert!(reactor.drive(async { true }).unwrap());
}

// rule: a panic in a program's future ends nobody else's calls, also if its thread was reading for them
// kept in: `product/linux-device/src/platform.rs`
#[test]
fn a_panic_in_a_future_that_a_thread_runs_keeps_nobody_waiting() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    fs::write(place.path().join("file"), [7; 1 << 20]).unwrap();
    let file = cache.open(place.path().join("file"), options()).unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        cache.run(async {
            let mut into = [0; PAGE as usize];
            let read = file.read_exact_at_async(&mut into, 0);
            assert!(poll_once(read).await.is_none(), "it waits for the disk");
            panic!("a test of panics");
        })
    }));
    assert!(panicked.is_err());
    let reads = {
        let file = file.clone();
        thread::spawn(move || {
            let mut into = [0; PAGE as usize];
            file.read_exact_at(&mut into, 0).map(|()| into)
        })
    };
    afflux_scratch::eventually("the page is read, though its first reader has gone", || reads.is_finished());
    assert_eq!(reads.join().unwrap().unwrap(), [7; PAGE as usize]);
}

#[test]
fn tokio_smol_and_plain_threads_share_a_cache() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async {
                let tasks = (0..3_u8).map(|number| {
                    let (cache, path) = (cache.clone(), place.path().join(format!("tokio-{number}")));
                    tokio::spawn(async move { work(&cache, &path, 10 + number).await })
                });
                for task in tasks.collect::<Vec<_>>() {
                    task.await.unwrap();
                }
            });
        });
        scope.spawn(|| {
            let executor = smol::LocalExecutor::new();
            let tasks = (0..3_u8).map(|number| {
                let (cache, path) = (cache.clone(), place.path().join(format!("own-{number}")));
                executor.spawn(async move { work(&cache, &path, 30 + number).await })
            });
            let tasks: Vec<_> = tasks.collect();
            cache.run(executor.run(async { join(tasks).await })).unwrap();
        });
        scope.spawn(|| {
            let executor = smol::LocalExecutor::new();
            smol::block_on(executor.run(async {
                let tasks = (0..3_u8).map(|number| {
                    let (cache, path) = (cache.clone(), place.path().join(format!("smol-{number}")));
                    executor.spawn(async move { work(&cache, &path, 20 + number).await })
                });
                for task in tasks.collect::<Vec<_>>() {
                    task.await;
                }
            }));
        });
        for number in 0..2_u8 {
            let (cache, path) = (cache.clone(), place.path().join(format!("thread-{number}")));
            scope.spawn(move || blocking_work(&cache, &path, 30 + number));
        }
    });
    for (name, mark) in [("tokio-0", 10), ("smol-2", 22), ("thread-1", 31)] {
        let bytes = std::fs::read(place.path().join(name)).unwrap();
        assert_eq!((bytes.len(), &bytes[..100]), (BLOCK, &[0; 100][..]));
        assert!(bytes[100..].iter().all(|byte| *byte == mark));
    }
    cache.close().unwrap();
}

/// Blocking calls work inside a runtime, too: they only block its thread.
#[test]
fn blocking_calls_inside_a_runtime() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    smol::block_on(async { blocking_work(&cache, &place.path().join("file"), 7) });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        blocking_work(&cache, &place.path().join("file"), 8);
        cache.close_async().await.unwrap();
    });
}

/// Appends from many tasks and threads: each has its own range.
#[test]
fn appends_never_overlap() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    let file = cache.create(place.path().join("log")).unwrap();
    let record = |thread: u8, number: u8| vec![thread * 16 + number % 16; 100 + usize::from(number)];
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for number in 0..100 {
                    let record = record(thread, number);
                    let at = match thread {
                        0 | 1 => file.append(&record).unwrap(),
                        _ => smol::block_on(file.append_async(&record)).unwrap(),
                    };
                    let mut back = vec![0; record.len()];
                    file.read_exact_at(&mut back, at).unwrap();
                    assert!(back == record);
                }
            });
        }
    });
    let total: u64 = (0..100).map(|number| 100 + number).sum::<u64>() * 4;
    assert_eq!(file.len(), total);
}

// rule: an awaited call of the library takes at most 4 KiB, which a program keeps for each of its tasks
// kept in: `product/afflux/src/file.rs`, `product/afflux/src/core.rs`, `product/engine/src/call.rs`
#[test]
fn an_awaited_call_is_small() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::builder().memory(4 << 20).build().unwrap();
    let file = cache.open(place.path().join("a"), options()).unwrap();
    let mut into = [0; 16];
    // Reads and writes took 32 and 35 KiB while each layer of a call had its work as an argument and in its place.
    let calls = [
        ("open", size_of_val(&cache.open_async(place.path(), options()))),
        ("drain", size_of_val(&cache.drain_async())),
        ("read", size_of_val(&file.read_exact_at_async(&mut into, 0))),
        ("pinned read", size_of_val(&file.read_pinned_async(0..1))),
        ("vectored read", size_of_val(&file.read_vectored_at_async(&mut [], 0))),
        ("write", size_of_val(&file.write_at_async(&[], 0))),
        ("vectored write", size_of_val(&file.write_vectored_at_async(&[], 0))),
        ("append", size_of_val(&file.append_async(&[]))),
        ("vectored append", size_of_val(&file.append_vectored_async(&[]))),
        ("set_len", size_of_val(&file.set_len_async(0))),
        ("punch_hole", size_of_val(&file.punch_hole_async(0..1))),
        ("sync_data", size_of_val(&file.sync_data_async())),
        ("sync_all", size_of_val(&file.sync_all_async())),
        ("sync_range", size_of_val(&file.sync_range_async(0..1))),
        ("metadata", size_of_val(&file.metadata_async())),
        ("withhold", size_of_val(&file.withhold_async(0..1))),
        ("order_after", size_of_val(&file.order_after_async(0..1, &file, 0..1))),
    ];
    assert!(calls.iter().all(|(_, bytes)| *bytes <= 4 << 10), "{calls:?}");
}

#[test]
fn bytes_of_callers_that_sync_one_file_are_on_the_host_after_each_sync() {
    const BLOCKED: u64 = 6;
    const CALLERS: u64 = BLOCKED + 2;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("shared");
    let cache = Cache::builder().memory(8 << 20).build().unwrap();
    let file = cache.open(&path, options()).unwrap();
    file.set_len(CALLERS * PAGE).unwrap();
    let host = fs::File::open(&path).unwrap();
    let caller = |number: u64| {
        for round in 1..=100 {
            file.write_at(&[round; PAGE as usize], number * PAGE).unwrap();
            if number < BLOCKED {
                file.sync_data().unwrap();
            } else {
                smol::block_on(file.sync_data_async()).unwrap();
            }
            let mut bytes = [0; PAGE as usize];
            host.read_exact_at(&mut bytes, number * PAGE).unwrap();
            assert_eq!(bytes, [round; PAGE as usize], "caller {number}");
        }
    };
    let caller = &caller;
    thread::scope(|scope| (0..CALLERS).for_each(|number| drop(scope.spawn(move || caller(number)))));
}
