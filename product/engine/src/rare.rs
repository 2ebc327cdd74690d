//! Switches that make rare paths common, for runs in the simulator.
//!
//! Owns: the table of paths that can be forced, how often each is, the draws. Also the number of looks at state shared
//! by all devices, and the longest hold of a lock in steps.
//! Does not own: the paths; the code that takes a path asks here first.
//! Invariants: a forced path breaks no promise: an unlucky world takes each of them by itself. Without the feature
//! `rare-paths` every question is answered no at compile time. Hits ask nothing. Draws come from the given seed, in the
//! order of asking.

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

#[cfg(feature = "rare-paths")]
mod on {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::Rare;

    /// Counts looks at state shared by all devices.
    #[derive(Default)]
    pub(crate) struct SharedLooks(AtomicU64);

    impl SharedLooks {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn note(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        pub(crate) fn count(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// The most steps of a walk at once.
    #[derive(Default)]
    pub(crate) struct Longest(AtomicU64);

    impl Longest {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn note(&self, steps: u64) {
            self.0.fetch_max(steps, Ordering::Relaxed);
        }

        pub(crate) fn steps(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// How often each path is forced.
    #[derive(Default)]
    pub(crate) struct Switches {
        per_mille: [AtomicU64; Rare::ALL.len()],
        draws: AtomicU64,
        allocations: AtomicU64,
        fail_allocation: AtomicU64,
    }

    impl Switches {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        /// Whether to take the path now.
        pub(crate) fn is_forced(&self, path: Rare) -> bool {
            let per_mille = self.per_mille[path as usize].load(Ordering::Relaxed);
            per_mille > 0 && self.draw() % 1000 < per_mille
        }

        /// Whether this request for frames fails: the one with the chosen number, or a random one.
        pub(crate) fn fails_allocation(&self, path: Rare) -> bool {
            let number = self.allocations.fetch_add(1, Ordering::Relaxed) + 1;
            number == self.fail_allocation.load(Ordering::Relaxed) || self.is_forced(path)
        }

        pub(crate) fn set(&self, path: Rare, per_mille: u64) -> bool {
            self.per_mille[path as usize].store(per_mille, Ordering::Relaxed);
            true
        }

        pub(crate) fn seed(&self, seed: u64) {
            self.draws.store(seed, Ordering::Relaxed);
        }

        pub(crate) fn fail_allocation(&self, number: u64) -> bool {
            self.fail_allocation.store(number, Ordering::Relaxed);
            true
        }

        pub(crate) fn allocations(&self) -> u64 {
            self.allocations.load(Ordering::Relaxed)
        }

        /// The next number of a splitmix64 sequence.
        fn draw(&self) -> u64 {
            const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
            let mut mixed = self.draws.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ (mixed >> 31)) >> 11
        }
    }
}

#[cfg(not(feature = "rare-paths"))]
mod off {
    use super::Rare;

    /// Counts nothing.
    #[derive(Default)]
    pub(crate) struct SharedLooks;

    impl SharedLooks {
        pub(crate) const fn new() -> Self {
            Self
        }

        #[inline(always)]
        pub(crate) const fn note(&self) {}

        pub(crate) const fn count(&self) -> u64 {
            0
        }
    }

    /// Notes nothing.
    #[derive(Default)]
    pub(crate) struct Longest;

    impl Longest {
        pub(crate) const fn new() -> Self {
            Self
        }

        #[inline(always)]
        pub(crate) const fn note(&self, _: u64) {}

        pub(crate) const fn steps(&self) -> u64 {
            0
        }
    }

    /// Never forces a path.
    pub(crate) struct Switches;

    impl Switches {
        pub(crate) const fn new() -> Self {
            Self
        }

        #[inline(always)]
        pub(crate) const fn is_forced(&self, _: Rare) -> bool {
            false
        }

        #[inline(always)]
        pub(crate) const fn fails_allocation(&self, _: Rare) -> bool {
            false
        }

        pub(crate) const fn set(&self, _: Rare, per_mille: u64) -> bool {
            per_mille == 0
        }

        pub(crate) const fn seed(&self, _: u64) {}

        pub(crate) const fn fail_allocation(&self, number: u64) -> bool {
            number == 0
        }

        pub(crate) const fn allocations(&self) -> u64 {
            0
        }
    }
}

#[cfg(not(feature = "rare-paths"))]
pub(crate) use off::{Longest, SharedLooks, Switches};
#[cfg(feature = "rare-paths")]
pub(crate) use on::{Longest, SharedLooks, Switches};
