//! kswapd: one task that brings free frames back above the high mark.
//!
//! kswapd scans like a task, priority by priority, but always completes a pass. After a pass it ends if more than the
//! high mark is free. It starts afresh after 32 freed pages, so that its priority does not rise while other tasks
//! allocate. If passes free little, it waits for devices, unless less than the min mark is free. With enough free
//! frames it sleeps a tenth of a second, looks again, and only then sleeps until it is woken.
//!
//! Owns: its rounds and sleeps. Does not own: a pass (`pass`); waking it (`allocate`).
//! Invariants: it never ends. Each round scans or sleeps.

use afflux_engine::Nanos;
use afflux_frames::Watermarks;

use super::mechanisms::{Event, Mechanisms, Scanner};
use super::pass::{BATCH_PAGES, PRIORITY_START, scan_pass};

/// The short sleep, and the wait for devices.
const NAP_NS: u64 = 100 * Nanos::MILLISECOND;
/// kswapd scans up to the high mark plus this fraction of the zone's pages, or plus the low mark if that is less.
const GAP_PART: u64 = 100;

/// Runs for ever. `zone_pages` is the number of all frames.
pub async fn background<M: Mechanisms>(memory: &M, zone_pages: u64) {
    memory.sleep_until_woken(None).await;
    loop {
        balance(memory, zone_pages).await;
        let high = memory.marks().high;
        if memory.free() <= high {
            continue;
        }
        let woken = memory.sleep_until_woken(Some(NAP_NS)).await;
        if woken || memory.free() <= high {
            memory.count(if woken { Event::LowMarkHitQuickly } else { Event::HighMarkHitQuickly }, 1);
        } else {
            memory.sleep_until_woken(None).await;
        }
    }
}

async fn balance<M: Mechanisms>(memory: &M, zone_pages: u64) {
    let marks = memory.marks();
    loop {
        memory.count(Event::PageOutRun, 1);
        let mut all = 0;
        for priority in (0..=PRIORITY_START).rev() {
            if memory.free() > marks.high {
                return;
            }
            let reclaimed = turn(memory, &marks, priority, zone_pages).await;
            all += reclaimed;
            if memory.free() > marks.high {
                return;
            }
            if priority < PRIORITY_START - 2 {
                wait_for_devices(memory, &marks).await;
            }
            if all >= BATCH_PAGES {
                break;
            }
        }
        memory.resched().await;
    }
}

/// Scans at one priority.
async fn turn<M: Mechanisms>(memory: &M, marks: &Watermarks, priority: u32, zone_pages: u64) -> u64 {
    let gap = u64::from(marks.low).min(zone_pages.div_ceil(GAP_PART));
    let sizes = memory.sizes();
    if u64::from(memory.free()) > u64::from(marks.high) + gap {
        return 0;
    }
    let pass = scan_pass(memory, Scanner::Background, priority, None).await;
    memory.shrink_caches(pass.scanned, sizes.inactive + sizes.active).await;
    pass.reclaimed
}

async fn wait_for_devices<M: Mechanisms>(memory: &M, marks: &Watermarks) {
    if memory.free() <= marks.min {
        memory.count(Event::SkipCongestionWait, 1);
    } else {
        memory.sleep(NAP_NS).await;
    }
}
