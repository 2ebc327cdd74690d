//! The counted events, by the kernel's names.
//!
//! Owns: the names. Does not own: when they are counted.
//! Invariants: [`Event::ALL`] has each event, in the order of the enumeration.

macro_rules! events {
    ($($(#[$doc:meta])* $event:ident = $name:literal,)*) => {
        /// A counted event.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Event {
            $($(#[$doc])* $event,)*
        }

        impl Event {
            /// All events, in the order of tables.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$event),*];

            /// The kernel's name of the counter; `nr_alloc_fail` is the seed author's, `slab_alloc_fail` and
            /// `demand_alloc_fail` are ours.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$event => $name,)*
                }
            }
        }
    };
}

events! {
    /// Direct reclaims begun.
    AllocStall = "allocstall",
    /// No-retry allocations of pages that failed.
    AllocFail = "nr_alloc_fail",
    /// Failed requests for a slab from its own node alone. The seed's author counted these with the others.
    SlabAllocFail = "slab_alloc_fail",
    /// Rounds in which an allocation that must not fail found no frame.
    DemandAllocFail = "demand_alloc_fail",
    /// Pages that tasks looked at.
    ScanDirect = "pgscan_direct",
    /// Pages freed, of those that tasks looked at.
    StealDirect = "pgsteal_direct",
    /// Pages that kswapd looked at.
    ScanKswapd = "pgscan_kswapd",
    /// Pages freed, of those that kswapd looked at.
    StealKswapd = "kswapd_steal",
    /// Objects of the kernel's own caches looked at.
    SlabsScanned = "slabs_scanned",
    /// Times that kswapd began to balance.
    PageOutRun = "pageoutrun",
    /// Times that kswapd was woken in the short sleep after its work.
    LowMarkHitQuickly = "kswapd_low_wmark_hit_quickly",
    /// Times that kswapd found too few free frames again, before or after this short sleep.
    HighMarkHitQuickly = "kswapd_high_wmark_hit_quickly",
    /// Waits for devices that kswapd left out, since less than the min mark was free.
    SkipCongestionWait = "kswapd_skip_congestion_wait",
}
