//! Switches that make rare paths common, for runs in the simulator.
//!
//! Owns: the table of paths that can be forced, how often each is, the draws. Also the number of looks at state shared
//! by all devices, and the longest hold of a lock in steps.
//! Does not own: the paths; the code that takes a path asks here first.
//! Invariants: a forced path breaks no promise: an unlucky world takes each of them by itself. Without the feature
//! `rare-paths` every question is answered no at compile time. Hits ask nothing. Draws come from the given seed, in the
//! order of asking.

#[cfg(feature = "rare-paths")]
use std::sync::atomic::Ordering::Relaxed;

macro_rules! paths {
    ($($variant:ident $name:literal $doc:literal;)*) => {
        /// A path that can be forced.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Rare {
            $(#[doc = $doc] $variant,)*
        }

        impl Rare {
            /// All paths.
            pub const ALL: &[Rare] = &[$(Rare::$variant,)*];

            /// The name in a scenario.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The path called `name`.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|path| path.name() == name)
            }
        }
    };
}

paths! {
    ShortRun "short_run" "A write request ends before the run of dirty pages does.";
    SmallPiece "small_piece" "A write is charged and carried out a page at a time.";
    EarlyFlush "early_flush" "The flusher writes though nothing is due.";
    NoFrame "no_frame" "A demand finds no free frame.";
    NoFrameAhead "no_frame_ahead" "Readahead finds no free frame.";
    SlotTaken "slot_taken" "A request slot that was free is taken by somebody else for a moment.";
    SpuriousWake "spurious_wake" "Everybody who waits for pages or memory wakes for nothing.";
    EvictNow "evict_now" "Clean pages are evicted though frames are free.";
    CopyUnderWay "copy_under_way" "A cut of a file finds somebody in the middle of a copy into its last page.";
    ShortHold "short_hold" "What goes over many pages lets go of the file's lock after each.";
    Yield "yield" "A task is switched out between finding out and acting.";
}

/// A number in builds with the feature `rare-paths`; elsewhere nothing, which reads as 0.
#[derive(Default)]
struct Number(#[cfg(feature = "rare-paths")] std::sync::atomic::AtomicU64);

#[cfg(feature = "rare-paths")]
impl Number {
    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Returns the number before.
    fn change(&self, to: impl Fn(u64) -> u64) -> u64 {
        self.0.update(Relaxed, Relaxed, to)
    }
}

#[cfg(not(feature = "rare-paths"))]
impl Number {
    #[inline(always)]
    fn get(&self) -> u64 {
        0
    }

    #[inline(always)]
    fn change(&self, _: impl Fn(u64) -> u64) -> u64 {
        0
    }
}

/// Counts looks at state shared by all devices.
#[derive(Default)]
pub(crate) struct SharedLooks(Number);

impl SharedLooks {
    #[inline]
    pub(crate) fn note(&self) {
        self.0.change(|looks| looks + 1);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.get()
    }
}

/// The most steps of a walk at once.
#[derive(Default)]
pub(crate) struct Longest(Number);

impl Longest {
    #[inline]
    pub(crate) fn note(&self, steps: u64) {
        self.0.change(|most| most.max(steps));
    }

    pub(crate) fn steps(&self) -> u64 {
        self.0.get()
    }
}

/// How often each path is forced.
#[derive(Default)]
pub(crate) struct Switches {
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
    pub(crate) fn is_forced(&self, path: Rare) -> bool {
        let per_mille = self.per_mille[path as usize].get();
        per_mille > 0 && self.draw() % 1000 < per_mille
    }

    /// Whether this request for frames fails: the one with the chosen number, or a random one.
    #[inline]
    pub(crate) fn fails_allocation(&self, path: Rare) -> bool {
        let number = self.allocations.change(|count| count + 1) + 1;
        number == self.fail_allocation.get() || self.is_forced(path)
    }

    /// False if the path cannot be forced as often as asked for.
    pub(crate) fn set(&self, path: Rare, per_mille: u64) -> bool {
        self.per_mille[path as usize].change(|_| per_mille);
        Self::IS_ON || per_mille == 0
    }

    pub(crate) fn seed(&self, seed: u64) {
        self.draws.change(|_| seed);
    }

    /// False if no request can be made to fail and one is to.
    pub(crate) fn fail_allocation(&self, number: u64) -> bool {
        self.fail_allocation.change(|_| number);
        Self::IS_ON || number == 0
    }

    pub(crate) fn allocations(&self) -> u64 {
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
