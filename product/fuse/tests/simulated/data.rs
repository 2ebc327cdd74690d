//! Bytes: reading, writing, syncing, interrupting.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use afflux_engine::{Nanos, Platform};
use afflux_frontend::{MessageMachine, Tried};

use crate::kernel::{KILLED, Kernel, ROOT, by, content, longs, u64_at, words};

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7) as u8).collect()
}

#[test]
fn written_bytes_are_read_back_also_from_the_disk() {
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    let data = bytes(300_000);
    assert_eq!(kernel.write(fh, 123, &data), Ok(300_000));
    assert_eq!(kernel.attributes(file).unwrap().0, 300_123);
    assert_eq!(kernel.read(fh, 123, 1 << 20).unwrap(), data);
    assert!(!kernel.waited.get(), "cached bytes are read at once");
    kernel.sync(fh).unwrap();
    assert_eq!(kernel.disk.durable(kernel.tree.file_at(&["file"]).unwrap())[123..], data);
    kernel.drop_pages();
    assert_eq!(kernel.read(fh, 1000, 5000).unwrap(), data[877..5877]);
    assert!(kernel.waited.get());
    assert_eq!(kernel.read(fh, 400_000, 10).unwrap(), b"", "past the end");
}

/// A close fails if a limit that no free space shows refuses accepted bytes. Elsewhere it waits for nothing.
#[test]
fn a_close_waits_for_the_writing_where_a_limit_may_refuse_it() {
    const NO_SPACE: i32 = 28;
    let kernel = Kernel::new();
    let (_, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, &bytes(65_536)).unwrap();
    kernel.flush(fh).unwrap();
    assert!(!kernel.waited.get(), "the free space has told");
    kernel.disk.hide_limit();
    kernel.flush(fh).unwrap();
    assert!(kernel.waited.get());
    kernel.waited.set(false);
    kernel.flush(fh).unwrap();
    assert!(!kernel.waited.get(), "all is written");
    kernel.disk.set_capacity(128 << 10);
    kernel.write(fh, 65_536, &bytes(1 << 20)).unwrap();
    assert_eq!(kernel.flush(fh), Err(NO_SPACE));
    assert_eq!(kernel.flush(fh), Err(NO_SPACE), "it is not written yet");
}

#[test]
fn an_overwrite_of_dirty_bytes_does_not_wait() {
    let kernel = Kernel::new();
    let (_, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, &bytes(8192)).unwrap();
    kernel.write(fh, 0, &[1; 4096]).unwrap();
    assert!(!kernel.waited.get());
    assert_eq!(kernel.read(fh, 4095, 2).unwrap(), [1, bytes(4097)[4096]]);
}

#[test]
fn truncation_at_open_and_by_size() {
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, &bytes(10_000)).unwrap();
    assert_eq!(kernel.set(file, 1 << 3 | 1 << 6, 16, &longs(&[5])), Err(9), "no such open file");
    kernel.set(file, 1 << 3, 16, &longs(&[5])).unwrap();
    kernel.set(file, 1 << 3, 16, &longs(&[9])).unwrap();
    assert_eq!(kernel.read(fh, 0, 100).unwrap(), [&bytes(5)[..], &[0; 4]].concat());
    kernel.open(file, 0o1001).unwrap();
    assert_eq!(kernel.attributes(file).unwrap().0, 0);
}

// rule: no byte that a mount's program wrote is reported as a hole, wherever it is
#[test]
fn holes_are_told_with_unwritten_bytes_as_data() {
    const NOTHING: i32 = 6;
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    let seek = |offset: u64, whence: u32| {
        let body = [longs(&[fh, offset]), words(&[whence, 0])].concat();
        kernel.call(46, file, &body).map(|answer| u64_at(&answer, 0))
    };
    const DATA: u32 = 3;
    const HOLE: u32 = 4;
    assert_eq!(seek(0, DATA), Err(NOTHING), "an empty file");
    kernel.write(fh, 1 << 20, &bytes(4096)).unwrap();
    for dirty in [true, false] {
        assert_eq!((seek(0, DATA), seek(0, HOLE)), (Ok(1 << 20), Ok(0)), "dirty: {dirty}");
        assert_eq!((seek(1 << 20, DATA), seek(1 << 20, HOLE)), (Ok(1 << 20), Ok((1 << 20) + 4096)), "dirty: {dirty}");
        assert_eq!((seek(2 << 20, DATA), seek(2 << 20, HOLE)), (Err(NOTHING), Err(NOTHING)), "dirty: {dirty}");
        kernel.sync(fh).unwrap();
    }
    // A hole of the host with unwritten bytes in it.
    kernel.write(fh, 65_536, b"dirty").unwrap();
    assert_eq!((seek(0, DATA), seek(65_536, HOLE)), (Ok(65_536), Ok(65_536 + 4096)));
    assert_eq!(seek(0, 2), Err(22), "the kernel asks for nothing else");
}

#[test]
fn a_hole_is_punched_into_dirty_and_written_bytes() {
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    let punch = |offset: u64, len: u64, mode: u32| {
        kernel.call(43, file, &[longs(&[fh, offset, len]), words(&[mode, 0])].concat()).map(drop)
    };
    let mut data = bytes(100_000);
    kernel.write(fh, 0, &data).unwrap();
    kernel.sync(fh).unwrap();
    kernel.write(fh, 0, &data[..20_000]).unwrap();
    punch(5000, 60_000, 3).unwrap();
    data[5000..65_000].fill(0);
    assert_eq!(kernel.read(fh, 0, 1 << 20).unwrap(), data);
    kernel.sync(fh).unwrap();
    kernel.drop_pages();
    assert_eq!(kernel.read(fh, 0, 1 << 20).unwrap(), data);
    for mode in [2, 8, 0x12, 0x20, 0x40, 0x43] {
        assert_eq!(punch(0, 10, mode), Err(95), "{mode}");
    }
    assert_eq!(punch(u64::MAX, 10, 3), Err(27));
    assert_eq!(kernel.notices(), []);
}

// rule: FALLOCATE gives a file its space, or says that there is too little
#[test]
fn space_is_reserved_zeroed_or_refused() {
    const KEEP: u32 = 1;
    const ZERO: u32 = 0x10;
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    let allocate = |offset: u64, len: u64, mode: u32| {
        kernel.call(43, file, &[longs(&[fh, offset, len]), words(&[mode, 0])].concat()).map(drop)
    };
    let size = || kernel.attributes(file).unwrap().0;
    let mut data = bytes(100_000);
    kernel.write(fh, 0, &data).unwrap();
    allocate(0, 1 << 20, KEEP).unwrap();
    assert_eq!(size(), 100_000, "the size stays");
    allocate(50_000, 150_000, 0).unwrap();
    assert_eq!(size(), 200_000, "the file grows to the end of the range");
    allocate(10_000, 10_000, 0).unwrap();
    data.resize(200_000, 0);
    assert_eq!((size(), kernel.read(fh, 0, 1 << 20).unwrap() == data), (200_000, true), "bytes stay");
    allocate(5000, 60_000, ZERO).unwrap();
    data[5000..65_000].fill(0);
    assert_eq!(kernel.read(fh, 0, 1 << 20).unwrap(), data);
    allocate(190_000, 20_000, ZERO | KEEP).unwrap();
    data[190_000..].fill(0);
    assert_eq!((size(), kernel.read(fh, 0, 1 << 20).unwrap() == data), (200_000, true));
    kernel.sync(fh).unwrap();
    kernel.drop_pages();
    assert_eq!(kernel.read(fh, 0, 1 << 20).unwrap(), data);
    assert_eq!(allocate(0, 0, 0), Err(22));
    assert_eq!(allocate(u64::MAX, 10, 0), Err(27));
    assert_eq!(kernel.notices(), [(2, file, longs(&[98_304, 4096]))], "the last page before the file grew");
    assert_eq!(allocate(0, 1 << 42, KEEP), Err(28), "the disk is smaller");
    assert_eq!(size(), 200_000);
}

#[test]
fn a_write_past_the_largest_file_is_refused() {
    let kernel = Kernel::new();
    let (_, fh) = kernel.create(ROOT, "file");
    assert_eq!(kernel.write(fh, u64::MAX - 2, b"123"), Err(27));
    assert_eq!(kernel.read(fh, u64::MAX, 10).unwrap(), b"");
}

/// Interrupts a call of this thread that the disk holds up. Returns after how long it ended.
fn interrupted_after_ns(thread: u32) -> u64 {
    let kernel = Kernel::new();
    let (_, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, &bytes(4096)).unwrap();
    kernel.sync(fh).unwrap();
    kernel.drop_pages();
    kernel.disk.hang();
    let read = by(thread, kernel.message(15, 0, &[longs(&[fh, 0]), words(&[4096, 0, 0, 0, 0, 0])].concat()));
    let unique = kernel.last();
    // The kernel's own: it has no thread.
    let interrupt = by(0, kernel.message(36, 0, &longs(&[unique])));
    assert!(matches!(kernel.mount.try_answer(&read), Tried::Waits));
    assert!(matches!(kernel.mount.try_answer(&interrupt), Tried::Waits));
    let reading = Arc::clone(&kernel.mount).answer(Box::new(read));
    let interrupting = Arc::clone(&kernel.mount).answer(Box::new(interrupt));
    kernel.world.spawn("interrupt", async move { assert!(interrupting.await.is_none()) });
    let platform = Arc::clone(kernel.world.platform());
    let (reply, waited_ns) = kernel
        .world
        .run(async move {
            let began = platform.now();
            let reply = reading.await;
            (reply.unwrap(), platform.now().since(began))
        })
        .unwrap();
    assert_eq!(content(reply, unique), Err(4));
    assert_eq!(kernel.mount.calls_waiting(), 0);
    kernel.disk.release();
    assert_eq!(kernel.read(fh, 0, 4096).unwrap(), bytes(4096));
    waited_ns
}

// rule: an interrupted call of a mount ends after a second if its program is being killed, otherwise after ten
#[test]
fn an_interrupted_call_ends_sooner_if_its_program_is_killed() {
    let (killed, other) = (interrupted_after_ns(KILLED), interrupted_after_ns(KILLED + 1));
    assert!((Nanos::SECOND..2 * Nanos::SECOND).contains(&killed), "{killed}");
    assert!((10 * Nanos::SECOND..11 * Nanos::SECOND).contains(&other), "{other}");
}

#[test]
fn a_call_that_ends_in_time_is_not_interrupted() {
    let kernel = Kernel::new();
    let (_, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, &bytes(4096)).unwrap();
    kernel.sync(fh).unwrap();
    kernel.drop_pages();
    let read = kernel.message(15, 0, &[longs(&[fh, 0]), words(&[4096, 0, 0, 0, 0, 0])].concat());
    let unique = kernel.last();
    let interrupt = kernel.message(36, 0, &longs(&[unique]));
    let interrupting = Arc::clone(&kernel.mount).answer(Box::new(interrupt));
    kernel.world.spawn("interrupt", async move { assert!(interrupting.await.is_none()) });
    let reading = Arc::clone(&kernel.mount).answer(Box::new(read));
    let reply = kernel.world.run(reading).unwrap().unwrap();
    assert_eq!(content(reply, unique).unwrap(), bytes(4096));
}

// rule: an fsync makes names durable that were changed before it, also beside another fsync and after one that was
// given up kept in: `product/fuse/src/operations/data.rs`, `product/fuse/src/nodes.rs`
#[test]
fn no_sync_of_a_directory_passes_over_names_that_another_sync_has_not_made_durable() {
    let kernel = Kernel::new();
    let fh = u64_at(&kernel.call(27, ROOT, &words(&[0, 0])).unwrap(), 0);
    kernel.make_directory(ROOT, "new");
    let sync = || {
        let message = kernel.message(30, ROOT, &[longs(&[fh]), words(&[0, 0])].concat());
        (Arc::clone(&kernel.mount).answer(Box::new(message)), kernel.last())
    };
    let (mut given_up, _) = sync();
    let [(mut one, first), (mut other, second)] = [sync(), sync()];
    let replies = kernel.world.run(async move {
        poll_fn(|cx| {
            assert!(given_up.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        drop(given_up);
        poll_fn(|cx| {
            assert!(one.as_mut().poll(cx).is_pending(), "what was given up has synced nothing");
            assert!(other.as_mut().poll(cx).is_pending(), "the other sync has not ended");
            Poll::Ready(())
        })
        .await;
        [(one.await.unwrap(), first), (other.await.unwrap(), second)]
    });
    for (reply, unique) in replies.unwrap() {
        content(reply, unique).unwrap();
    }
}
