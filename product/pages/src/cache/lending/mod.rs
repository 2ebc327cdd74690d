//! The guards that the cache lends: to which threads, and when.
//!
//! Owns: the list of threads that have slots, their part of the pages that guards may hold; the debt of recalls; the
//! order of a recall's steps.
//! Does not own: the steps on a page's record (`page::entry`), the slots (`hazards`), a guard and what a recall is for
//! (`guard`).
//! Invariants: recalls run one at a time, so a thread that waits for another's recall sees the outcome. A recall for a
//! write makes a debt, and threads in debt seldom lend: so the fences of writers stay a small part of the time that
//! lent guards save.

pub(super) mod guard;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frames::FrameId;
use smallvec::SmallVec;

use crate::hazards::{Hazards, SLOTS};
use crate::page::PageTable;
use crate::sync::{Mutex, lock};

/// Threads that have slots in a cache: a recall reads all of them.
const THREADS_MAX: u64 = 64;
/// Slots take at most this part of the pages that guards may hold.
const SLOTS_PART: u64 = 2;
/// Recalls for writes that cost a reader nothing.
pub(super) const DEBT_FREE: u64 = 16;
/// Most recalls for writes that are remembered.
pub(super) const DEBT_MAX: u64 = 1024;
/// Of a thread's guards in debt, one in so many is lent, and pays for one recall.
pub(super) const DEBT_PASSES: u32 = 64;

/// Distinguishes the caches of a process.
static CACHES: AtomicU64 = AtomicU64::new(1);

pub(crate) struct Lending {
    /// The number of the cache.
    pub(super) number: u64,
    /// The fence of all threads; without it nothing is lent.
    fence: Option<fn()>,
    /// Held during a recall.
    threads: Mutex<Vec<Arc<Hazards>>>,
    /// Pages that the threads' slots may guard.
    leased: AtomicU64,
    debt: AtomicU64,
}

impl Lending {
    pub(super) fn new(fence: Option<fn()>) -> Self {
        Self {
            number: CACHES.fetch_add(1, Ordering::Relaxed),
            fence,
            threads: Mutex::default(),
            leased: AtomicU64::new(0),
            debt: AtomicU64::new(0),
        }
    }

    /// Pages that lent guards may hold, of those that guards may hold in all.
    pub(super) fn leased(&self) -> u64 {
        self.leased.load(Ordering::Relaxed)
    }

    /// Gives this thread slots, unless the thread has slots in some cache or the threads' part is used up.
    #[cold]
    pub(super) fn enlist(&self, hazards: &Arc<Hazards>, pages_max: u64) {
        let share = (pages_max / SLOTS_PART).min(THREADS_MAX * SLOTS as u64);
        if self.fence.is_none() || !hazards.are_fresh() || self.leased() + SLOTS as u64 > share {
            return;
        }
        let mut threads = lock(&self.threads);
        if self.leased() + SLOTS as u64 <= share {
            self.leased.fetch_add(SLOTS as u64, Ordering::Relaxed);
            hazards.serve(self.number);
            threads.push(Arc::clone(hazards));
        }
    }

    /// Whether the thread may lend the page that it is about to guard.
    pub(super) fn try_lend(&self, hazards: &Hazards) -> bool {
        let debt = self.debt.load(Ordering::Relaxed);
        if debt < DEBT_FREE {
            return true;
        }
        let pays = hazards.take_nth_pass(DEBT_PASSES);
        if pays {
            self.debt.store(debt - 1, Ordering::Relaxed);
        }
        pays
    }

    pub(super) fn note_recall_for_write(&self) {
        let debt = self.debt.load(Ordering::Relaxed);
        // A recall that another one hides is no matter.
        self.debt.store((debt + 1).min(DEBT_MAX), Ordering::Relaxed);
    }

    /// Pages that threads guard by announcement at this moment.
    #[cold]
    pub(super) fn pages(&self) -> u64 {
        lock(&self.threads).iter().map(|hazards| hazards.frames().count() as u64).sum()
    }

    /// Nobody lends any more, and every thread that ends a guard from now on knows it.
    pub(super) fn end(&self) {
        lock(&self.threads).iter().for_each(|hazards| hazards.retire());
    }

    /// Whether a thread uses the cache through a lent guard.
    pub(super) fn has_users(&self) -> bool {
        !lock(&self.threads).iter().all(|hazards| hazards.are_empty())
    }

    /// Calls the world's fence of all threads, if it has one.
    pub(super) fn fence(&self) {
        if let Some(fence) = self.fence {
            fence();
        }
    }

    /// Takes back as many of the lent guards of these frames as no thread uses. An ordinary guard, which the caller
    /// ends, stands in for each.
    pub(super) fn recall(&self, frames: impl Iterator<Item = FrameId>, pages: &PageTable) -> Recalled {
        let threads = lock(&self.threads);
        let mut recalled: Recalled = frames.filter(|frame| pages.try_begin_recall(*frame)).collect();
        if !recalled.is_empty() {
            self.fence();
            let used: Recalled = threads.iter().flat_map(|hazards| hazards.frames()).collect();
            recalled.retain(|frame| {
                let is_used = used.contains(frame);
                if is_used {
                    pages.give_up_recall(*frame);
                }
                !is_used
            });
        }
        recalled
    }
}

/// Frames that a recall is of.
pub(super) type Recalled = SmallVec<[FrameId; 32]>;
