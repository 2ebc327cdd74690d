//! Switches that make rare paths common, for runs in the simulator.
//!
//! Owns: the table of paths that can be forced, how often each is, the draws; the numbers that only checks read; the
//! points at which a simulated process can be killed.
//! Does not own: the paths; the code that takes a path asks here first.
//! Invariants: a forced path breaks no promise: an unlucky world takes each of them by itself. Without the feature
//! `rare-paths` every question is answered no at compile time. Hits ask nothing. Draws come from the given seed, in the
//! order of asking.

#[cfg(feature = "rare-paths")]
use std::sync::atomic::Ordering::Relaxed;

use crate::named;

named! {
    /// A path that can be forced, by its name in a scenario.
    Rare:

    /// A write request ends before the run of dirty pages does.
    ShortRun "short_run";
    /// A write is charged and carried out a page at a time.
    SmallPiece "small_piece";
    /// The flusher writes though nothing is due.
    EarlyFlush "early_flush";
    /// A demand finds no free frame.
    NoFrame "no_frame";
    /// Readahead finds no free frame.
    NoFrameAhead "no_frame_ahead";
    /// A request slot that was free is taken by somebody else for a moment.
    SlotTaken "slot_taken";
    /// A sync's caller runs the sync itself, as a blocked thread does.
    SyncInCall "sync_in_call";
    /// Everybody who waits for pages or memory wakes for nothing.
    SpuriousWake "spurious_wake";
    /// Clean pages are evicted though frames are free.
    EvictNow "evict_now";
    /// A cut of a file finds somebody in the middle of a copy into its last page.
    CopyUnderWay "copy_under_way";
    /// What goes over many pages lets go of the file's lock after each.
    ShortHold "short_hold";
    /// A task is switched out between finding out and acting.
    Yield "yield";
}

impl Rare {
    /// The path called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|path| path.name() == name)
    }
}

/// A number in builds with the feature `rare-paths`; elsewhere nothing, which reads as 0.
#[derive(Default)]
pub struct Number(#[cfg(feature = "rare-paths")] std::sync::atomic::AtomicU64);

#[cfg(feature = "rare-paths")]
impl Number {
    /// The number now.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Returns the number before.
    fn change(&self, to: impl Fn(u64) -> u64) -> u64 {
        self.0.fetch_update(Relaxed, Relaxed, |before| Some(to(before))).unwrap_or_else(|before| before)
    }
}

#[cfg(not(feature = "rare-paths"))]
impl Number {
    /// The number now.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        0
    }

    #[inline(always)]
    fn change(&self, _: impl Fn(u64) -> u64) -> u64 {
        0
    }
}

impl Number {
    /// Counts one more.
    #[inline]
    pub fn count_one(&self) {
        self.change(|count| count + 1);
    }

    /// Raises the number to at least this.
    #[inline]
    pub fn raise_to(&self, least: u64) {
        self.change(|most| most.max(least));
    }
}

/// The points between two stores to the arena: a killed process stands at one of them. In builds with the feature
/// `rare-paths` a hook can be called at a chosen one.
#[derive(Default)]
pub struct Stores {
    remaining: Number,
    #[cfg(feature = "rare-paths")]
    hook: std::sync::Mutex<Option<Hook>>,
}

/// Called in the middle of a step.
pub(crate) type Hook = Box<dyn FnOnce() + Send>;

impl Stores {
    /// A thread that is killed now has made its earlier stores and no later ones.
    #[inline(always)]
    pub fn point(&self) {
        if self.remaining.get() > 0 && self.remaining.change(|remaining| remaining.saturating_sub(1)) == 1 {
            self.reached();
        }
    }

    #[cfg(feature = "rare-paths")]
    #[cold]
    fn reached(&self) {
        let hook = crate::wait::lock(&self.hook).take();
        hook.into_iter().for_each(|hook| hook());
    }

    #[cfg(not(feature = "rare-paths"))]
    #[inline(always)]
    fn reached(&self) {}

    /// Calls the hook at point number `number`, counted from now on. False if that cannot be.
    #[cfg(feature = "rare-paths")]
    pub fn try_call_at(&self, number: u64, hook: Hook) -> bool {
        *crate::wait::lock(&self.hook) = Some(hook);
        self.remaining.change(|_| number);
        true
    }

    /// Without the feature no hook is called: false.
    #[cfg(not(feature = "rare-paths"))]
    pub fn try_call_at(&self, _: u64, _: Hook) -> bool {
        false
    }
}

/// How often each path is forced.
#[derive(Default)]
pub struct Switches {
    per_mille: [Number; Rare::ALL.len()],
    draws: Number,
    allocations: Number,
    fail_allocation: Number,
}

impl Switches {
    /// Whether paths can be forced.
    const IS_ON: bool = cfg!(feature = "rare-paths");

    /// Whether to take the path now.
    #[inline]
    pub fn is_forced(&self, path: Rare) -> bool {
        let per_mille = self.per_mille[path as usize].get();
        per_mille > 0 && self.draw() % 1000 < per_mille
    }

    /// Whether this request for frames fails: the one with the chosen number, or a random one.
    #[inline]
    pub fn must_fail_allocation(&self, path: Rare) -> bool {
        let number = self.allocations.change(|count| count + 1) + 1;
        number == self.fail_allocation.get() || self.is_forced(path)
    }

    /// False if the path cannot be forced as often as asked for.
    pub fn try_set(&self, path: Rare, per_mille: u64) -> bool {
        self.per_mille[path as usize].change(|_| per_mille);
        Self::IS_ON || per_mille == 0
    }

    /// The seed of the draws.
    pub fn seed(&self, seed: u64) {
        self.draws.change(|_| seed);
    }

    /// False if no request can be made to fail and one is to.
    pub fn try_fail_allocation(&self, number: u64) -> bool {
        self.fail_allocation.change(|_| number);
        Self::IS_ON || number == 0
    }

    /// Requests for frames so far; 0 without the feature.
    pub fn allocations(&self) -> u64 {
        self.allocations.get()
    }

    /// The next number of a splitmix64 sequence.
    fn draw(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.draws.change(|last| last.wrapping_add(STEP)).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) >> 11
    }
}
