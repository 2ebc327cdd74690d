//! Models of the page word for loom: every interleaving of two or three threads, with the weak memory
//! that the orderings allow.
//!
//! Owns: the models. Does not own: the protocol; the models change a word by calls of the table.
//! Invariants: the bytes of a frame are one relaxed atomic a writer, so that a missing happens-before shows as an old
//! value.

use std::sync::Arc;

use afflux_frames::FrameId;
use loom::thread;

use super::*;
use crate::cache::witness::Witness;
use crate::hazards::Hazards;
use crate::sync;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const OLD_PAGE: PageIdentity = PageIdentity { file: 1, index: 10 };
const NEW_PAGE: PageIdentity = PageIdentity { file: 2, index: 20 };
const DIRTY_PAGE: u64 = PRESENT | UPTODATE | DIRTY;
const PASSED_BY: u64 = PRIOR | READING | WRITEBACK;

/// A table with one frame in use and one fresh frame, and their bytes.
struct World {
    pages: PageTable,
    /// For each frame, the bytes that each of two writers writes.
    bytes: [[AtomicU64; 2]; 2],
    /// The page's own bytes, and the next page's after reuse.
    whole: Witness,
    released: AtomicU32,
    size: AtomicU64,
    /// The slots of two threads that guard by announcement.
    hazards: [Hazards; 2],
    /// Held during a recall.
    recalling: sync::Mutex<()>,
}

/// The number of the modelled cache.
const CACHE: u64 = 7;

fn frame() -> FrameId {
    FrameId::new(0)
}

impl World {
    fn new(flags: u64, stamp: u64) -> Arc<Self> {
        let bytes = || [AtomicU64::new(0), AtomicU64::new(0)];
        let world = Self {
            pages: PageTable::new(2),
            bytes: [bytes(), bytes()],
            whole: Witness::new(),
            released: AtomicU32::new(0),
            size: AtomicU64::new(4096),
            hazards: [Hazards::new(), Hazards::new()],
            recalling: sync::Mutex::new(()),
        };
        world.hazards.iter().for_each(|hazards| hazards.serve(CACHE));
        world.store(frame(), 0, stamp);
        world.pages.set_sectors(frame(), Sectors::ALL);
        world.pages.set_dirty(frame(), if flags & DIRTY != 0 { Sectors::ALL } else { Sectors::NONE });
        world.pages.occupy(frame(), OLD_PAGE, flags);
        Arc::new(world)
    }

    fn load(&self, frame: FrameId, writer: usize) -> u64 {
        self.bytes[frame.index()][writer].load(Ordering::Relaxed)
    }

    fn store(&self, frame: FrameId, writer: usize, value: u64) {
        self.bytes[frame.index()][writer].store(value, Ordering::Relaxed);
    }

    /// A pinned hit: the copy reads the bytes twice, so that a change in its middle is seen.
    fn read(&self, identity: PageIdentity) -> Option<[u64; 2]> {
        let found = self.pages.try_enter_reader(frame(), identity);
        let seen = found.then(|| {
            self.whole.read();
            [self.load(frame(), 0), self.load(frame(), 0)]
        });
        if self.pages.unhold(frame(), PIN).has(DETACHED) {
            self.release();
        }
        seen
    }

    /// A hit that holds nothing.
    fn begin_optimistic_read(&self, identity: PageIdentity) -> Option<[u64; 2]> {
        let glance = self.pages.begin_optimistic_read(frame(), identity)?;
        let seen = [self.load(frame(), 0), self.load(frame(), 0)];
        glance.is_valid().then_some(seen)
    }

    /// Frees the frame if nobody holds it, and reuses the frame at once for another page.
    fn release(&self) {
        if self.pages.try_release(frame()) {
            self.released.fetch_add(1, Ordering::Relaxed);
            self.whole.write();
            about_to_fill();
            self.store(frame(), 0, NEW_PAGE.index);
            self.pages.occupy(frame(), NEW_PAGE, PRESENT | UPTODATE);
        }
    }

    fn guard(&self) -> Option<[[u64; 2]; 2]> {
        let found = self.pages.try_enter_guard(frame(), OLD_PAGE);
        let both = || [self.load(frame(), 0), self.load(frame(), 1)];
        let seen = found.then(|| {
            self.whole.read();
            [both(), both()]
        });
        if self.pages.end_guard(frame()).0 {
            self.release();
        }
        seen
    }

    /// A guard by announcement, whose thread may have to lend it first.
    fn lent_guard(&self, thread: usize) -> Option<[[u64; 2]; 2]> {
        let slot = self.hazards[thread].announce(CACHE, frame()).expect("a thread with an empty slot");
        let record = self.pages.get(frame()).expect("a frame of the table");
        let found = PageTable::try_enter_lent(record, OLD_PAGE) || self.pages.try_lend(record, OLD_PAGE);
        let both = || [self.load(frame(), 0), self.load(frame(), 1)];
        let seen = found.then(|| {
            self.whole.read();
            [both(), both()]
        });
        slot.leave();
        if self.pages.word(frame()).has(DETACHED) {
            self.recall();
        }
        slot.empty();
        seen
    }

    fn recall(&self) {
        let recalling = sync::lock(&self.recalling);
        if !self.pages.try_begin_recall(frame()) {
            return;
        }
        crate::sync::atomic::fence(Ordering::SeqCst);
        if self.hazards.iter().flat_map(Hazards::frames).any(|used| used == frame()) {
            return self.pages.give_up_recall(frame());
        }
        drop(recalling);
        if self.pages.end_guard(frame()).0 {
            self.release();
        }
    }

    /// [`World::release`] by the thread that detached the frame.
    fn release_detached(&self) {
        self.release();
        if self.pages.word(frame()).has(DETACHED | LENT) {
            self.recall();
        }
    }

    fn overwrite(&self, writer: usize, value: u64) -> bool {
        let fits = || self.size.load(Ordering::Acquire) == 4096 && self.pages.dirty(frame()).contains(Sectors::ALL);
        let found = self.pages.try_enter_overwriter(frame(), OLD_PAGE, fits);
        if found {
            self.store(frame(), writer, value);
        }
        if self.pages.unhold(frame(), WRITER).has(DETACHED) {
            self.release();
        }
        found
    }
}

#[test]
fn loom_a_frame_is_released_once_and_shows_no_other_page() {
    for truncated in [false, true] {
        sync::model(move || {
            let world = World::new(PRESENT | UPTODATE, OLD_PAGE.index);
            let of_old = Arc::clone(&world);
            let of_old = thread::spawn(move || {
                if let Some(seen) = of_old.read(OLD_PAGE) {
                    assert_eq!(seen, [OLD_PAGE.index; 2]);
                }
            });
            let of_new = Arc::clone(&world);
            let of_new = thread::spawn(move || {
                if let Some(seen) = of_new.read(NEW_PAGE) {
                    assert_eq!(seen, [NEW_PAGE.index; 2]);
                }
            });
            let let_go = if truncated {
                let _ = world.pages.detach(frame());
                true
            } else {
                world.pages.try_detach_idle(frame())
            };
            if let_go {
                world.release();
            }
            of_old.join().unwrap();
            of_new.join().unwrap();
            assert_eq!(world.released.load(Ordering::Relaxed), u32::from(let_go));
            assert_eq!(world.pages.word(frame()).flags(), PRESENT | UPTODATE);
            assert!(!world.pages.word(frame()).is_held());
        });
    }
}

#[test]
fn loom_a_read_that_holds_nothing_stands_only_if_it_is_of_the_page() {
    sync::model(|| {
        let world = World::new(PRESENT | UPTODATE, OLD_PAGE.index);
        let readers: Vec<_> = [OLD_PAGE, NEW_PAGE]
            .map(|page| {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    if let Some(seen) = world.begin_optimistic_read(page) {
                        assert_eq!(seen, [page.index; 2]);
                    }
                })
            })
            .into();
        if world.pages.try_detach_idle(frame()) {
            world.release();
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!(world.begin_optimistic_read(NEW_PAGE), Some([NEW_PAGE.index; 2]));
    });
}

#[test]
fn loom_a_read_that_holds_nothing_sees_that_the_page_went_and_came_back() {
    sync::model(|| {
        let world = World::new(PRESENT | UPTODATE, OLD_PAGE.index);
        let reader = Arc::clone(&world);
        let reader = thread::spawn(move || {
            if let Some(seen) = reader.begin_optimistic_read(OLD_PAGE) {
                assert!(seen == [OLD_PAGE.index; 2], "bytes of another page: {seen:?}");
            }
        });
        assert!(world.pages.try_detach_idle(frame()));
        world.release();
        assert!(world.pages.try_detach_idle(frame()) && world.pages.try_release(frame()));
        about_to_fill();
        world.store(frame(), 0, OLD_PAGE.index);
        world.pages.occupy(frame(), OLD_PAGE, PRESENT | UPTODATE);
        reader.join().unwrap();
    });
}

#[test]
fn loom_a_page_cut_off_while_written_is_released_once() {
    sync::model(|| {
        let world = World::new(DIRTY_PAGE, OLD_PAGE.index);
        assert!(world.pages.change_unless(frame(), PASSED_BY, DIRTY, WRITEBACK).is_ok());
        let reader = Arc::clone(&world);
        let reader = thread::spawn(move || {
            if let Some(seen) = reader.read(OLD_PAGE) {
                assert_eq!(seen, [OLD_PAGE.index; 2]);
            }
        });
        let truncation = Arc::clone(&world);
        let truncation = thread::spawn(move || {
            let _ = truncation.pages.detach(frame());
            truncation.release();
        });
        // The device reads the frame until here, even if the page is dropped.
        world.whole.read();
        assert_eq!(world.load(frame(), 0), OLD_PAGE.index);
        let _ = world.pages.change(frame(), WRITEBACK, 0);
        world.release();
        reader.join().unwrap();
        truncation.join().unwrap();
        assert_eq!(world.released.load(Ordering::Relaxed), 1);
        assert_eq!(world.pages.word(frame()).flags(), PRESENT | UPTODATE);
        assert!(!world.pages.word(frame()).is_held());
    });
}

#[test]
fn loom_a_page_under_writeback_does_not_change_and_loses_no_overwrite() {
    sync::model(|| {
        let world = World::new(DIRTY_PAGE, 0);
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let world = Arc::clone(&world);
                thread::spawn(move || world.overwrite(writer, 1))
            })
            .collect();
        let claimed = world.pages.change_unless(frame(), PASSED_BY, DIRTY, WRITEBACK).is_ok();
        let both = || [world.load(frame(), 0), world.load(frame(), 1)];
        let written = both();
        if claimed {
            thread::yield_now();
            assert_eq!(both(), written, "what the device has is one version");
            world.pages.set_dirty(frame(), Sectors::NONE);
            let _ = world.pages.change(frame(), WRITEBACK, 0);
        }
        for (writer, thread) in writers.into_iter().enumerate() {
            let acknowledged = thread.join().unwrap();
            assert!(!(acknowledged && claimed) || written[writer] == 1, "clean, and not on the device");
        }
        assert_eq!(world.pages.word(frame()).has(DIRTY), !claimed);
    });
}

#[test]
fn loom_a_guarded_page_does_not_change() {
    sync::model(|| {
        let world = World::new(DIRTY_PAGE, 0);
        let overwriter = Arc::clone(&world);
        let overwriter = thread::spawn(move || overwriter.overwrite(0, 1));
        // Like a write under the file's lock.
        let writer = Arc::clone(&world);
        let writer = thread::spawn(move || {
            let in_place = !writer.pages.hold(frame(), WRITER).is_stable();
            if in_place {
                writer.store(frame(), 1, 1);
            }
            assert!(!writer.pages.unhold(frame(), WRITER).has(DETACHED));
        });
        if let Some([before, after]) = world.guard() {
            assert_eq!(before, after);
        }
        let acknowledged = overwriter.join().unwrap();
        writer.join().unwrap();
        assert_eq!(world.load(frame(), 0), u64::from(acknowledged));
        assert!(!world.pages.word(frame()).is_held());
    });
}

#[test]
fn loom_nothing_lands_past_a_new_end() {
    sync::model(|| {
        let world = World::new(DIRTY_PAGE, 0);
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let world = Arc::clone(&world);
                thread::spawn(move || world.overwrite(writer, 1))
            })
            .collect();
        world.size.swap(0, Ordering::AcqRel);
        while world.pages.hold(frame(), WRITER).is_being_written_to() {
            assert!(!world.pages.unhold(frame(), WRITER).has(DETACHED));
            thread::yield_now();
        }
        (0..2).for_each(|writer| world.store(frame(), writer, 0));
        assert!(!world.pages.unhold(frame(), WRITER).has(DETACHED));
        writers.into_iter().for_each(|writer| drop(writer.join()));
        assert_eq!((world.load(frame(), 0), world.load(frame(), 1)), (0, 0));
    });
}

#[test]
fn loom_a_page_replaced_while_its_guard_goes_loses_no_overwrite() {
    sync::model(|| {
        let world = World::new(DIRTY_PAGE, 0);
        assert!(world.pages.try_enter_guard(frame(), OLD_PAGE));
        let reply = Arc::clone(&world);
        let reply = thread::spawn(move || {
            if reply.pages.end_guard(frame()).0 {
                reply.pages.try_release(frame());
            }
        });
        let overwriter = Arc::clone(&world);
        let overwriter = thread::spawn(move || overwriter.overwrite(0, 1));
        // Like a write under the file's lock.
        let new = FrameId::new(1);
        let stable = world.pages.hold(frame(), WRITER).is_stable();
        let replaced = stable && {
            let frozen = world.pages.try_freeze(frame());
            if frozen {
                world.store(new, 0, world.load(frame(), 0));
                world.pages.occupy(new, OLD_PAGE, DIRTY_PAGE);
                let _ = world.pages.detach(frame());
            }
            let _ = world.pages.end_guard(frame()).0;
            frozen
        };
        if world.pages.unhold(frame(), WRITER).has(DETACHED) {
            world.pages.try_release(frame());
        }
        let acknowledged = overwriter.join().unwrap();
        reply.join().unwrap();
        let now = if replaced { new } else { frame() };
        assert_eq!(world.load(now, 0), u64::from(acknowledged));
    });
}

fn lend(world: &World) {
    let record = world.pages.get(frame()).unwrap();
    assert!(world.pages.try_lend(record, OLD_PAGE));
}

#[test]
fn loom_a_page_under_a_lent_guard_does_not_change() {
    for lent in [false, true] {
        sync::model(move || {
            let world = World::new(DIRTY_PAGE, 0);
            if lent {
                lend(&world);
            }
            let recall = Arc::clone(&world);
            let recall = thread::spawn(move || recall.recall());
            let overwriter = Arc::clone(&world);
            let overwriter = thread::spawn(move || overwriter.overwrite(0, 1));
            if let Some([before, after]) = world.lent_guard(0) {
                assert_eq!(before, after);
            }
            recall.join().unwrap();
            let acknowledged = overwriter.join().unwrap();
            assert_eq!(world.load(frame(), 0), u64::from(acknowledged));
            assert!(!world.pages.word(frame()).is_held());
        });
    }
}

/// A thread that guards the page by announcement, and sees the page's bytes as long as it does.
fn guarding(world: &Arc<World>) -> thread::JoinHandle<()> {
    let world = Arc::clone(world);
    thread::spawn(move || {
        if let Some([before, after]) = world.lent_guard(0) {
            assert!(before[0] == OLD_PAGE.index && before == after);
        }
    })
}

#[test]
fn loom_a_page_under_a_lent_guard_is_not_evicted() {
    sync::model(|| {
        let world = World::new(PRESENT | UPTODATE, OLD_PAGE.index);
        lend(&world);
        let guard = guarding(&world);
        world.recall();
        if world.pages.try_detach_idle(frame()) {
            world.release();
        }
        guard.join().unwrap();
        assert!(!world.pages.word(frame()).is_held());
    });
}

#[test]
fn loom_a_frame_detached_under_a_lent_guard_is_released_once() {
    sync::model(|| {
        let world = World::new(PRESENT | UPTODATE, OLD_PAGE.index);
        lend(&world);
        let guard = guarding(&world);
        let _ = world.pages.detach(frame());
        world.release_detached();
        guard.join().unwrap();
        assert_eq!(world.released.load(Ordering::Relaxed), 1);
        assert!(!world.pages.word(frame()).is_held() && !world.pages.word(frame()).has(LENT));
    });
}
