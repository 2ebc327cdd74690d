//! Futures that are dropped half way have the documented effects, and nobody waits for them.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use afflux::{Cache, File, OpenOptions};

const BYTES: usize = 600_000;

struct Rig {
    place: tempfile::TempDir,
    cache: Cache,
    file: File,
}

impl Rig {
    /// A durable file full of ones, not cached; the cache holds little more than the file.
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::builder().memory(1 << 20).build().unwrap();
        let file = cache.create(place.path().join("file")).unwrap();
        file.write_at(&[1; BYTES], 0).unwrap();
        file.sync_all().unwrap();
        cache.drop_clean_pages();
        Self { place, cache, file }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.file.len() as usize];
        let count = self.file.read_at(&mut bytes, 0).unwrap();
        bytes.truncate(count);
        bytes
    }

    /// The file can still be used in every way.
    fn works(&self) {
        let end = self.file.append(b"end").unwrap();
        self.file.set_len(end).unwrap();
        self.file.punch_hole(0..10).unwrap();
        self.file.sync_all().unwrap();
        assert_eq!(self.bytes().len() as u64, end);
        let host = std::fs::metadata(self.place.path().join("file")).unwrap();
        assert_eq!(host.len(), end);
    }
}

/// Wakes a thread that is parked.
struct Unparks(Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls up to `polls` times and then drops the future. Before every other poll it waits a little for a completion. A
/// future behind one that nobody polls is never woken, so the wait has an end.
fn give_up_after<T>(polls: u32, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    for poll in 0..polls {
        if let std::task::Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(done);
        }
        if poll % 2 == 1 {
            thread::park_timeout(Duration::from_micros(200));
        }
    }
    None
}

const POLLS: [u32; 7] = [0, 1, 2, 3, 5, 9, 17];

#[test]
fn reads() {
    let mut given_up = 0;
    for polls in POLLS {
        let rig = Rig::new();
        let mut into = vec![9; 100_000];
        given_up += u32::from(give_up_after(polls, rig.file.read_at_async(&mut into, 50_000)).is_none());
        assert!(into.iter().all(|byte| *byte == 1 || *byte == 9));
        given_up += u32::from(give_up_after(polls, rig.file.read_pinned_async(0..200_000)).is_none());
        given_up += u32::from(give_up_after(polls, rig.file.read_exact_at_async(&mut into, 300_000)).is_none());
        assert_eq!(rig.bytes(), [1; BYTES]);
        let began = Instant::now();
        while rig.cache.stats().pinned_bytes > 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "pages stay held");
        }
        rig.works();
    }
    assert!(given_up > 3, "{given_up} reads were given up: the test shows nothing");
}

#[test]
fn writes_leave_a_prefix() {
    let (mut given_up, began) = (0, Instant::now());
    // On a busy machine the device may complete a write's requests before the next poll.
    while given_up == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "no write was given up half way: the test shows nothing");
        given_up += POLLS.iter().filter(|polls| !leaves_a_prefix(**polls) && **polls > 0).count();
    }
}

/// Drops a write after `polls` polls. Returns whether it was done.
fn leaves_a_prefix(polls: u32) -> bool {
    let rig = Rig::new();
    // The write starts within a page, so that it waits for reads, and is above the dirty limit.
    let from = vec![2; BYTES];
    let done = give_up_after(polls, rig.file.write_at_async(&from, 1_001));
    let bytes = rig.bytes();
    let changed = bytes[1_001..].iter().take_while(|byte| **byte == 2).count();
    assert!(bytes[..1_001].iter().all(|byte| *byte == 1));
    assert!(bytes[1_001 + changed..].iter().all(|byte| *byte == 1), "more than a prefix was written");
    assert_eq!(bytes.len(), BYTES.max(1_001 + changed));
    assert!(done.is_none() || changed == BYTES);
    rig.works();
    done.is_some()
}

#[test]
fn appends_leave_a_prefix_and_let_others_append() {
    for polls in POLLS {
        let rig = Rig::new();
        let from = vec![2; BYTES];
        let _ = give_up_after(polls, rig.file.append_async(&from));
        let at = rig.file.append(b"next").unwrap();
        let bytes = rig.bytes();
        assert!(bytes[BYTES..at as usize].iter().all(|byte| *byte == 2));
        assert_eq!(&bytes[at as usize..], b"next");
        // An append that waits for its turn, and is dropped.
        let mut first = pin!(rig.file.append_async(&from));
        let waits = first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        let _ = give_up_after(polls, rig.file.append_async(b"never"));
        if waits {
            assert!(smol::block_on(first).unwrap() > at);
        }
        rig.works();
    }
}

#[test]
fn syncs_go_on_without_those_who_asked() {
    for polls in POLLS {
        let rig = Rig::new();
        rig.file.write_at(&[3; 300_000], 5).unwrap();
        let _ = give_up_after(polls, rig.file.sync_data_async());
        let _ = give_up_after(polls, rig.file.sync_all_async());
        let _ = give_up_after(polls, rig.file.sync_range_async(0..1000));
        let _ = give_up_after(polls, rig.cache.drain_async());
        rig.file.sync_data().unwrap();
        assert_eq!(std::fs::read(rig.place.path().join("file")).unwrap(), rig.bytes());
        rig.works();
    }
}

#[test]
fn changes_of_shape_are_whole_or_not_at_all() {
    for polls in POLLS {
        let rig = Rig::new();
        rig.file.write_at(&[4; 10_000], 0).unwrap();
        let _ = give_up_after(polls, rig.file.set_len_async(5_000));
        rig.file.sync_data().unwrap();
        let bytes = rig.bytes();
        assert!(matches!(bytes.len(), 5_000 | BYTES), "{}", bytes.len());
        assert!(bytes[..5_000].iter().all(|byte| *byte == 4));
        let _ = give_up_after(polls, rig.file.punch_hole_async(1_000..4_000));
        let _ = give_up_after(polls, rig.file.set_len_async(7_000));
        rig.file.sync_data().unwrap();
        let hole = rig.bytes()[1_000..4_000].to_vec();
        assert!(hole == [0; 3_000] || hole == [4; 3_000]);
        rig.works();
    }
}

#[test]
fn opens_and_closes() {
    for polls in POLLS {
        let rig = Rig::new();
        let path = rig.place.path().join("another");
        let options = OpenOptions::new().read(true).write(true).create(true);
        let _ = give_up_after(polls, rig.cache.open_async(&path, options.clone()));
        let _ = give_up_after(polls, rig.file.metadata_async());
        let another = rig.cache.open(&path, options).unwrap();
        another.write_at(b"there", 0).unwrap();
        let _ = give_up_after(polls, another.close_async());
        let _ = give_up_after(polls, rig.file.clone().close_async());
        rig.works();
        // The cache ends even if nobody waits for it any more, once its end has begun.
        let Rig { place, cache, file } = rig;
        let _ = give_up_after(polls, cache.clone().close_async());
        drop((file, cache));
        let began = Instant::now();
        while std::fs::read(place.path().join("another")).unwrap() != b"there" {
            assert!(began.elapsed() < Duration::from_secs(60));
        }
    }
}
