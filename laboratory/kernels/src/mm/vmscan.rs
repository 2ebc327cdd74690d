//! Reclaim: passes over the lists, direct reclaim, kswapd (`mm/vmscan.c`).
//!
//! Priority p scans 1/2^p of each list, in batches. The first pass scans all of its share, even beyond the target. In a
//! later pass, a task stops early once this pass by itself has freed the whole target; kswapd never does. So a reclaim
//! frees a sum of whole passes: 163, 490, 1,144, 2,452, 5,069 pages of a list of 670,000.
//!
//! Owns: the loops. Does not own: when a direct reclaim has done enough (`form`), its caller (`page_alloc`).
//! Invariants: a pass ends: it takes no more from each list than the share at its beginning. kswapd never ends; each of
//! its rounds scans or sleeps.

use std::sync::atomic::Ordering;

use afflux_engine::{Nanos, Platform};

use super::form::{Progress, SWAP_CLUSTER_MAX};
use super::lru::{List, Sizes};
use super::{Event, Memory};

/// The priority of the first pass.
const DEF_PRIORITY: u32 = 12;
/// Objects that a cache scans at a time.
const SHRINK_BATCH: u64 = 128;
/// kswapd scans up to the high mark plus this fraction of the zone's pages, or plus the low mark if that is less.
const KSWAPD_ZONE_BALANCE_GAP_RATIO: u32 = 100;
/// kswapd's short sleep; a task's wait while too many pages are isolated.
const NAP_NS: u64 = 100 * Nanos::MILLISECOND;

/// `scan_control`.
struct ScanControl {
    is_kswapd: bool,
    nr_to_reclaim: u64,
    nr_scanned: u64,
    nr_reclaimed: u64,
    /// Frames to be freed at the end, if the form holds them so long.
    held: Option<Vec<u32>>,
}

/// The rest of a pass's share of each list.
struct Shares {
    inactive: u64,
    active: u64,
}

impl Shares {
    /// `get_scan_count`, and `inactive_file_is_low` for the active list.
    fn of(sizes: &Sizes, priority: u32) -> Self {
        let active = if sizes.active > sizes.inactive { sizes.active >> priority } else { 0 };
        Self { inactive: sizes.inactive >> priority, active }
    }
}

fn batch(left: &mut u64) -> u64 {
    let pages = SWAP_CLUSTER_MAX.min(*left);
    *left -= pages;
    pages
}

impl Memory {
    /// Frees pages until the form says that it is enough; returns their number, and the frames that are still to be
    /// freed.
    pub(super) async fn try_to_free_pages(&self, task: u32) -> (u64, Vec<u32>) {
        self.count(Event::AllocStall, 1);
        let (form, marks, began) = (&self.options.form, self.watermarks(), self.platform.now());
        let mut sc = ScanControl {
            is_kswapd: false,
            nr_to_reclaim: form.nr_to_reclaim(&marks),
            nr_scanned: 0,
            nr_reclaimed: 0,
            held: form.keeps_freed.then(Vec::new),
        };
        for priority in (0..=DEF_PRIORITY).rev() {
            let (sizes, before) = (self.lru().sizes(), sc.nr_scanned);
            self.shrink_zone(priority, &mut sc).await;
            self.shrink_slab(sc.nr_scanned - before, sizes.inactive + sizes.active).await;
            let progress = Progress {
                reclaimed: sc.nr_reclaimed,
                scanned: sc.nr_scanned,
                began_ns: began.0,
                now_ns: self.platform.now().0,
                free: self.zone.seen_free(),
            };
            if form.has_done_enough(&progress, &marks) {
                break;
            }
        }
        let ns = self.platform.now().since(began);
        crate::wait::lock(&self.delays).push((task, ns));
        (sc.nr_reclaimed, sc.held.unwrap_or_default())
    }

    /// One pass.
    async fn shrink_zone(&self, priority: u32, sc: &mut ScanControl) {
        let mut shares = Shares::of(&self.lru().sizes(), priority);
        let (scanned, reclaimed) = (sc.nr_scanned, sc.nr_reclaimed);
        while shares.inactive + shares.active > 0 {
            let (inactive, active) = (batch(&mut shares.inactive), batch(&mut shares.active));
            if inactive > 0 {
                self.shrink_inactive_list(inactive, sc).await;
            }
            if active > 0 {
                let isolated = self.isolate(List::ActiveFile, active, sc).await;
                self.lru().deactivate(&isolated);
            }
            if sc.nr_reclaimed - reclaimed >= sc.nr_to_reclaim && priority < DEF_PRIORITY {
                break;
            }
        }
        let (scan, steal) = match sc.is_kswapd {
            false => (Event::ScanDirect, Event::StealDirect),
            true => (Event::ScanKswapd, Event::StealKswapd),
        };
        self.count(scan, sc.nr_scanned - scanned);
        self.count(steal, sc.nr_reclaimed - reclaimed);
    }

    async fn shrink_inactive_list(&self, pages: u64, sc: &mut ScanControl) {
        while !sc.is_kswapd && self.too_many_isolated() {
            self.sleep(NAP_NS).await;
        }
        let mut isolated = self.isolate(List::InactiveFile, pages, sc).await;
        self.lru().shrink(&mut isolated);
        sc.nr_reclaimed += isolated.len() as u64;
        match &mut sc.held {
            Some(held) => held.append(&mut isolated),
            None => self.free_pages(isolated),
        }
    }

    fn too_many_isolated(&self) -> bool {
        let sizes = self.lru().sizes();
        sizes.isolated > sizes.inactive
    }

    /// Takes a batch off a list, and looks at its pages for their CPU time.
    async fn isolate(&self, list: List, pages: u64, sc: &mut ScanControl) -> Vec<u32> {
        let isolated = self.lru().isolate(list, pages);
        sc.nr_scanned += isolated.len() as u64;
        self.platform.work(isolated.len() as u64 * self.options.costs.reclaim_ns).await;
        isolated
    }

    /// Shrinks the kernel's other caches by twice the share that `scanned` is of `of`, a whole batch at a time.
    async fn shrink_slab(&self, scanned: u64, of: u64) {
        let parts = 2 * scanned * self.options.cached_objects;
        let due = self.objects_due.fetch_add(parts, Ordering::Relaxed) + parts;
        let rounds = due / (of.max(1) * SHRINK_BATCH);
        if rounds > 0 {
            self.objects_due.fetch_sub(rounds * of.max(1) * SHRINK_BATCH, Ordering::Relaxed);
            self.count(Event::SlabsScanned, rounds * SHRINK_BATCH);
        }
        self.platform.work(self.options.costs.pass_ns).await;
    }

    /// kswapd's thread.
    pub(super) async fn kswapd(&self) {
        loop {
            self.kswapd_try_to_sleep().await;
            self.balance_pgdat().await;
        }
    }

    pub(super) fn wakeup_kswapd(&self) {
        if !self.kswapd_wait.is_empty() && !self.zone_watermark_ok_safe(self.watermarks().low) {
            self.kswapd_wait.wake_all();
        }
    }

    /// Sleeps a tenth of a second, looks again, and only then sleeps until it is woken.
    async fn kswapd_try_to_sleep(&self) {
        let mut entry = self.kswapd_wait.enter();
        let mut was_woken = false;
        if !self.sleeping_prematurely(was_woken) {
            was_woken = entry.at_most(&self.platform, NAP_NS).await;
            entry = self.kswapd_wait.enter();
        }
        if self.sleeping_prematurely(was_woken) {
            self.count(if was_woken { Event::LowMarkHitQuickly } else { Event::HighMarkHitQuickly }, 1);
        } else {
            entry.await;
        }
    }

    fn sleeping_prematurely(&self, was_woken: bool) -> bool {
        was_woken || !self.zone_watermark_ok_safe(self.watermarks().high)
    }

    /// Scans until more than the high mark is free. After 32 freed pages it starts afresh, so that the priority does
    /// not rise while other tasks allocate.
    pub(super) async fn balance_pgdat(&self) {
        while !self.balance_once().await {
            self.cond_resched().await;
        }
    }

    /// From `loop_again` on; returns whether more than the high mark is free.
    async fn balance_once(&self) -> bool {
        let marks = self.watermarks();
        let gap = marks.low.min(self.options.page_frames.div_ceil(KSWAPD_ZONE_BALANCE_GAP_RATIO));
        let mut sc =
            ScanControl { is_kswapd: true, nr_to_reclaim: u64::MAX, nr_scanned: 0, nr_reclaimed: 0, held: None };
        self.count(Event::PageOutRun, 1);
        for priority in (0..=DEF_PRIORITY).rev() {
            if self.zone_watermark_ok_safe(marks.high) {
                return true;
            }
            let (sizes, before) = (self.lru().sizes(), sc.nr_scanned);
            if !self.zone_watermark_ok_safe(marks.high + gap) {
                self.shrink_zone(priority, &mut sc).await;
            }
            self.shrink_slab(sc.nr_scanned - before, sizes.inactive + sizes.active).await;
            if self.zone_watermark_ok_safe(marks.high) {
                return true;
            }
            if sc.nr_scanned > 0 && priority < DEF_PRIORITY - 2 {
                if self.zone_watermark_ok_safe(marks.min) {
                    self.sleep(NAP_NS).await;
                } else {
                    self.count(Event::SkipCongestionWait, 1);
                }
            }
            if sc.nr_reclaimed >= SWAP_CLUSTER_MAX {
                break;
            }
        }
        false
    }
}
