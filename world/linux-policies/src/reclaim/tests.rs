use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use afflux_engine::Nanos;
use afflux_engine::old_kernels::{OldKernel, Passes};
use afflux_frames::Watermarks;

use super::*;

const MARKS: Watermarks = Watermarks { min: 1773, low: 2216, high: 2659 };

/// A memory without other tasks: freed frames go to a list of the CPU, which a drain empties.
#[derive(Default)]
struct SimulatedMemory {
    now_ns: u64,
    free: u32,
    listed: u32,
    sizes: Sizes,
    /// Percentage of scanned pages that can be freed.
    clean_percent: u64,
    batch_ns: u64,
    counts: HashMap<Event, u64>,
    drains: u64,
    wakes: u64,
    /// Freed frames are free at once, instead of going to the list.
    listed_at_once: bool,
    /// kswapd's sleeps until it is woken, each with its bound. After `sleeps_max` of them it is not woken.
    sleeps: Vec<Option<u64>>,
    sleeps_max: usize,
    /// Rounds without progress before kswapd is stopped.
    rounds_max: usize,
}

struct Memory(Mutex<SimulatedMemory>);

impl Memory {
    fn of(free: u32, inactive: u64) -> Self {
        let sizes = Sizes { inactive, ..Sizes::default() };
        Self(Mutex::new(SimulatedMemory { free, sizes, clean_percent: 100, ..SimulatedMemory::default() }))
    }

    fn state(&self) -> MutexGuard<'_, SimulatedMemory> {
        self.0.lock().unwrap()
    }

    fn counted(&self, event: Event) -> u64 {
        self.state().counts.get(&event).copied().unwrap_or(0)
    }
}

impl Mechanisms for Memory {
    type Frame = ();

    fn now(&self) -> Nanos {
        Nanos(self.state().now_ns)
    }

    fn marks(&self) -> Watermarks {
        MARKS
    }

    fn free(&self) -> u32 {
        self.state().free
    }

    fn sizes(&self) -> Sizes {
        self.state().sizes
    }

    fn take(&self, mark: u32) -> Option<()> {
        let mut state = self.state();
        let more = state.free > mark;
        state.free -= u32::from(more);
        more.then_some(())
    }

    fn drain_all(&self) {
        let mut state = self.state();
        state.free += std::mem::take(&mut state.listed);
        state.drains += 1;
    }

    async fn scan(&self, _: Scanner, list: List, pages: u64) -> Scanned {
        let mut state = self.state();
        assert!(pages <= BATCH_PAGES);
        state.now_ns += state.batch_ns;
        if list == List::Active {
            state.sizes.active -= pages;
            state.sizes.inactive += pages;
            return Scanned { scanned: pages, reclaimed: 0 };
        }
        let reclaimed = pages * state.clean_percent / 100;
        state.sizes.inactive -= reclaimed;
        state.listed += reclaimed as u32;
        if state.listed_at_once {
            state.free += std::mem::take(&mut state.listed);
        }
        Scanned { scanned: pages, reclaimed }
    }

    async fn shrink_caches(&self, _: u64, _: u64) {}

    async fn resched(&self) {
        let stop = {
            let mut state = self.state();
            let stop = state.sleeps_max > 0 && state.rounds_max == 1;
            state.rounds_max = state.rounds_max.saturating_sub(1);
            stop
        };
        if stop {
            std::future::pending().await
        }
    }

    async fn sleep(&self, ns: u64) {
        let mut state = self.state();
        state.now_ns += ns;
        // The other scanners have put their isolated pages back.
        state.sizes.inactive += std::mem::take(&mut state.sizes.isolated);
    }

    fn wake_background(&self) {
        self.state().wakes += 1;
    }

    async fn sleep_until_woken(&self, ns: Option<u64>) -> bool {
        let over = {
            let mut state = self.state();
            state.sleeps.push(ns);
            state.sleeps.len() == state.sleeps_max && state.rounds_max == 0
        };
        if over {
            std::future::pending::<()>().await;
        }
        ns.is_none()
    }

    fn reclaimed_for(&self, _: u64) {}

    fn count(&self, event: Event, by: u64) {
        *self.state().counts.entry(event).or_default() += by;
    }
}

/// The output of a future that never waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

fn policy(name: &str) -> ReclaimPolicy {
    reclaim_policy(name).unwrap()
}

#[test]
fn a_reclaim_is_a_sum_of_whole_passes() {
    for (name, pages) in [("base", 163), ("wmark-min", 2452), ("wmark-high", 5069), ("time-limit-10ms", 5069)] {
        let memory = Memory::of(0, 670_000);
        let reclaimed = at_once(reclaim_directly(&policy(name), &memory));
        // The passes before have made the list shorter.
        assert!(reclaimed.abs_diff(pages) <= 20, "{name}: {reclaimed}, not {pages}");
        assert_eq!(memory.counted(Event::AllocStall), 1);
        assert_eq!((memory.counted(Event::ScanDirect), memory.counted(Event::StealDirect)), (reclaimed, reclaimed));
    }
}

#[test]
fn a_later_pass_ends_in_its_middle_once_it_has_brought_the_target_by_itself() {
    let memory = Memory::of(0, 18_000);
    assert_eq!(at_once(reclaim_directly(&policy("base"), &memory)), 4 + 8 + 17 + 32);
    // The first pass never does.
    assert_eq!(at_once(reclaim_directly(&policy("base"), &Memory::of(0, 1 << 20))), 256);
}

#[test]
fn what_cannot_be_freed_is_scanned_to_the_last_pass_and_no_further() {
    let memory = Memory::of(0, 4096);
    memory.state().clean_percent = 0;
    assert_eq!(at_once(reclaim_directly(&policy("wmark-high"), &memory)), 0);
    let all: u64 = (0..=12).map(|priority| 4096 >> priority).sum();
    assert_eq!(memory.counted(Event::ScanDirect), all);
}

#[test]
fn the_active_list_takes_part_while_it_is_the_longer_one() {
    let memory = Memory::of(0, 4096 * 32);
    memory.state().sizes.active = 4096 * 64;
    at_once(reclaim_directly(&policy("base"), &memory));
    assert_eq!(memory.counted(Event::ScanDirect), 32 + 64);
    assert_eq!(memory.sizes().active, 4096 * 64 - 64);
}

#[test]
fn a_task_waits_while_more_is_in_others_hands_than_on_the_list() {
    let memory = Memory::of(0, 4096);
    memory.state().sizes.isolated = 5000;
    at_once(reclaim_directly(&policy("base"), &memory));
    assert_eq!(memory.now(), Nanos(100 * Nanos::MILLISECOND));
}

#[test]
fn nothing_stops_a_reclaim_before_its_smallest_target() {
    let at = |reclaimed, scanned, ms: u64, free| Progress {
        reclaimed,
        scanned,
        began: Nanos(0),
        now: Nanos(ms * Nanos::MILLISECOND),
        free,
    };
    let scanned_much = 2 * u64::from(MARKS.high) + 1;
    for (name, progress, enough) in [
        ("base", at(31, 31, 9_999, 9_999), false),
        ("base", at(32, 32, 0, 0), true),
        ("wmark-min", at(1772, 1772, 9_999, 9_999), false),
        ("wmark-min", at(1773, 1773, 0, 0), true),
        ("wmark-high", at(2658, scanned_much, 9_999, 9_999), false),
        ("wmark-high", at(2659, 2659, 0, 0), true),
        ("wmark-high-limited-scan", at(32, scanned_much - 1, 9_999, 9_999), false),
        ("wmark-high-limited-scan", at(32, scanned_much, 0, 0), true),
        ("wmark-high-limited-scan", at(31, scanned_much, 0, 0), false),
        ("time-limit-100ms", at(32, 32, 100, 0), false),
        ("time-limit-100ms", at(32, 32, 101, 0), true),
        ("time-limit-100ms", at(31, 31, 101, 0), false),
        ("time-limit-20ms", at(32, 32, 20, 0), false),
        ("time-limit-20ms", at(32, 32, 21, 0), true),
        ("time-limit-10ms", at(32, 32, 11, 0), true),
        ("stop-above-high", at(32, 32, 0, 2659), false),
        ("stop-above-high", at(32, 32, 0, 2660), true),
        ("stop-above-high", at(31, 31, 0, 2660), false),
    ] {
        assert_eq!(policy(name).has_done_enough(&progress, &MARKS), enough, "{name}: {progress:?}");
    }
}

#[test]
fn what_is_freed_lies_in_lists_until_a_drain_which_base_alone_has() {
    for (name, frame, drains, failed) in [("base", true, 1, 0), ("wmark-high", false, 0, 1)] {
        let memory = Memory::of(MARKS.min, 670_000);
        let got = at_once(allocate(&policy(name).dipping(false), &memory, MayRetry::No));
        assert_eq!((got.is_some(), memory.state().drains), (frame, drains), "{name}");
        assert_eq!((memory.counted(Event::AllocFail), memory.counted(Event::AllocStall)), (failed, 1), "{name}");
        assert_eq!(memory.state().wakes, 1);
    }
}

#[test]
fn a_try_after_a_reclaim_may_dip_where_the_patches_let_it() {
    let dip = MARKS.min - MARKS.min / 4;
    for (free, frame) in [(dip, false), (dip + 1, true)] {
        let memory = Memory::of(free, 670_000);
        assert_eq!(at_once(allocate(&policy("wmark-high"), &memory, MayRetry::No)).is_some(), frame, "{free}");
    }
}

#[test]
fn a_slab_asks_its_own_node_twice_and_then_as_who_must_not_fail() {
    for (free, failed, wakes, stalls) in
        [(MARKS.low + 1, 0, 0, 0), (MARKS.low, 2, 1, 0), (MARKS.min + 1, 2, 1, 0), (MARKS.min, 2, 1, 1)]
    {
        let memory = Memory::of(free, 670_000);
        assert!(at_once(allocate_slab(&policy("base"), &memory)).is_some(), "{free}");
        let counted = [Event::SlabAllocFail, Event::AllocStall, Event::AllocFail].map(|event| memory.counted(event));
        assert_eq!(counted, [failed, stalls, 0], "{free}");
        assert_eq!(memory.state().wakes, wakes, "{free}");
    }
}

#[test]
fn above_the_marks_nothing_is_reclaimed() {
    for (free, wakes) in [(MARKS.low + 1, 0), (MARKS.low, 1), (MARKS.min + 1, 1)] {
        let memory = Memory::of(free, 670_000);
        assert!(at_once(allocate(&policy("base"), &memory, MayRetry::No)).is_some());
        assert_eq!((memory.counted(Event::AllocStall), memory.state().wakes), (0, wakes), "{free}");
    }
}

#[test]
fn who_must_not_fail_goes_round_until_there_is_a_frame() {
    let memory = Memory::of(MARKS.min - 300, 670_000);
    assert!(at_once(allocate(&policy("base"), &memory, MayRetry::Yes)).is_some());
    assert_eq!(memory.counted(Event::DemandAllocFail), 1, "163 pages are not enough, 326 are");
    assert_eq!(memory.counted(Event::AllocFail), 0);
}

/// Runs kswapd until it has slept `count` times; returns its sleeps with their bounds.
fn sleeps(memory: &Memory, count: usize) -> Vec<Option<u64>> {
    memory.state().sleeps_max = count;
    assert!(pin!(background(memory, 786_432)).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    std::mem::take(&mut memory.state().sleeps)
}

#[test]
fn kswapd_frees_up_to_the_high_mark_and_sleeps() {
    let memory = Memory::of(MARKS.low, 670_000);
    memory.state().listed_at_once = true;
    let nap = Some(100 * Nanos::MILLISECOND);
    assert_eq!(sleeps(&memory, 3), [None, nap, None]);
    assert!(memory.free() > MARKS.high);
    assert_eq!(memory.counted(Event::StealKswapd), u64::from(memory.free() - MARKS.low));
    assert!(memory.counted(Event::PageOutRun) > 1, "it starts afresh after each pass that freed 32");
    assert_eq!(memory.counted(Event::ScanDirect), 0);
}

#[test]
fn kswapd_that_gets_nowhere_waits_for_devices_unless_less_than_the_min_mark_is_free() {
    for (free, skipped) in [(MARKS.min, true), (MARKS.min + 1, false)] {
        let memory = Memory::of(free, 670_000);
        memory.state().clean_percent = 0;
        memory.state().sleeps_max = 1;
        memory.state().rounds_max = 1;
        assert!(pin!(background(&memory, 786_432)).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        assert_eq!(memory.counted(Event::SkipCongestionWait) > 0, skipped, "{free}");
        assert_eq!(memory.now().0 > 0, !skipped, "{free}");
    }
}

/// The passes that a form requests from an engine, if every scanned page is freed and a batch takes `batch_ms`.
fn passes_on_an_engine(name: &str, cached: u64, batch_ms: u64) -> Vec<u64> {
    let form = policy(name);
    let mut so_far =
        Passes { made: 0, scanned: 0, reclaimed: 0, began: Nanos(0), now: Nanos(0), free: 0, cached, marks: MARKS };
    let mut passes = Vec::new();
    loop {
        let pages = form.next_pass(&so_far);
        if pages == 0 {
            return passes;
        }
        passes.push(pages);
        so_far.made += 1;
        so_far.scanned += pages;
        so_far.reclaimed += pages;
        so_far.now = so_far.now.after(pages.div_ceil(BATCH_PAGES) * batch_ms * Nanos::MILLISECOND);
        assert!(passes.len() < 20, "{passes:?}");
    }
}

#[test]
fn on_an_engine_a_form_asks_for_the_kernels_passes() {
    for (name, cached, batch_ms, passes) in [
        ("base", 670_000, 0, &[163][..]),
        ("wmark-min", 670_000, 0, &[163, 327, 654, 1308]),
        ("wmark-high", 670_000, 0, &[163, 327, 654, 1308, 2617]),
        ("wmark-high-limited-scan", 670_000, 0, &[163, 327, 654, 1308, 2617]),
        // 6 batches of 2 ms are more than 10 ms, and 17 more than 20.
        ("time-limit-10ms", 670_000, 2, &[163]),
        ("time-limit-20ms", 670_000, 2, &[163, 327]),
        // A pass that frees the target by itself goes no further; a list of less than 4,096 pages is scanned, too.
        ("base", 2048, 0, &[1, 1, 2, 4, 8, 16]),
        ("wmark-min", 7_000_000, 0, &[1708, 1792]),
    ] {
        assert_eq!(passes_on_an_engine(name, cached, batch_ms), passes, "{name} over {cached} pages");
    }
}

#[test]
fn on_an_engine_a_form_that_gets_nowhere_ends_after_thirteen_passes() {
    let mut so_far = Passes {
        made: 13,
        scanned: 9999,
        reclaimed: 0,
        began: Nanos(0),
        now: Nanos(0),
        free: 0,
        cached: 4096,
        marks: MARKS,
    };
    assert_eq!(policy("wmark-high").next_pass(&so_far), 0);
    so_far.made = 12;
    assert_eq!(policy("wmark-high").next_pass(&so_far), 2688, "2,659 in whole batches");
}

#[test]
fn an_unknown_form_is_told_with_those_that_there_are() {
    let told = reclaim_policy("wmark-low").unwrap_err().to_string();
    assert!(told.starts_with("there is no form of reclaim 'wmark-low'; there are: base, wmark-min, wmark-high, "));
}
