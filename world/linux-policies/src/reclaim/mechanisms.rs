//! The mechanisms of a machine's memory that reclaim needs.
//!
//! Owns: the seam, and the counted events by the kernel's names.
//! Does not own: either side of it.
//! Invariants: a mechanism decides nothing: it does its step, and returns the result.

use afflux_engine::Nanos;
use afflux_frames::Watermarks;

/// A list of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum List {
    /// Pages used once, the oldest at the tail.
    Inactive,
    /// Pages used again.
    Active,
}

/// The task that scans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scanner {
    /// A task that needs a frame.
    Direct,
    /// kswapd.
    Background,
}

/// Pages on the lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    /// Pages on the inactive list.
    pub inactive: u64,
    /// Pages on the active list.
    pub active: u64,
    /// Pages that scanners have isolated from the inactive list.
    pub isolated: u64,
}

/// The result of a scan of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Scanned {
    /// Pages looked at.
    pub scanned: u64,
    /// Pages freed, of those looked at.
    pub reclaimed: u64,
}

/// A counted event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Direct reclaims begun.
    AllocStall,
    /// No-retry allocations of pages that failed.
    AllocFail,
    /// Failed requests for a slab from its own node alone. The seed's author counted these with the others.
    SlabAllocFail,
    /// Rounds in which an allocation that must not fail found no frame.
    DemandAllocFail,
    /// Pages that tasks looked at.
    ScanDirect,
    /// Pages freed, of those that tasks looked at.
    StealDirect,
    /// Pages that kswapd looked at.
    ScanKswapd,
    /// Pages freed, of those that kswapd looked at.
    StealKswapd,
    /// Pages that kswapd freed by dropping inodes.
    KswapdInodeSteal,
    /// Objects of the kernel's own caches looked at.
    SlabsScanned,
    /// Times that kswapd began to balance.
    PageOutRun,
    /// Times that kswapd was woken in the short sleep after its work.
    LowMarkHitQuickly,
    /// Times that kswapd slept through this time, and then found too few free frames.
    HighMarkHitQuickly,
    /// Waits for devices that kswapd left out, since less than the min mark was free.
    SkipCongestionWait,
}

impl Event {
    /// All events, in the order of tables.
    pub const ALL: [Self; 14] = [
        Self::AllocStall,
        Self::AllocFail,
        Self::SlabAllocFail,
        Self::DemandAllocFail,
        Self::ScanDirect,
        Self::StealDirect,
        Self::ScanKswapd,
        Self::StealKswapd,
        Self::KswapdInodeSteal,
        Self::SlabsScanned,
        Self::PageOutRun,
        Self::LowMarkHitQuickly,
        Self::HighMarkHitQuickly,
        Self::SkipCongestionWait,
    ];

    /// The kernel's name of the counter; `nr_alloc_fail` is the seed author's, `slab_alloc_fail` and
    /// `demand_alloc_fail` are ours.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllocStall => "allocstall",
            Self::AllocFail => "nr_alloc_fail",
            Self::SlabAllocFail => "slab_alloc_fail",
            Self::DemandAllocFail => "demand_alloc_fail",
            Self::ScanDirect => "pgscan_direct",
            Self::StealDirect => "pgsteal_direct",
            Self::ScanKswapd => "pgscan_kswapd",
            Self::StealKswapd => "kswapd_steal",
            Self::KswapdInodeSteal => "kswapd_inodesteal",
            Self::SlabsScanned => "slabs_scanned",
            Self::PageOutRun => "pageoutrun",
            Self::LowMarkHitQuickly => "kswapd_low_wmark_hit_quickly",
            Self::HighMarkHitQuickly => "kswapd_high_wmark_hit_quickly",
            Self::SkipCongestionWait => "kswapd_skip_congestion_wait",
        }
    }
}

/// The memory of a machine, as reclaim sees it. Each step runs in the current task, on its CPU.
pub trait Mechanisms: Send + Sync {
    /// A taken page frame.
    type Frame: Send;

    /// The time.
    fn now(&self) -> Nanos;

    /// The marks on free frames.
    fn marks(&self) -> Watermarks;

    /// Free frames, as this task sees them.
    fn free(&self) -> u32;

    /// The sizes of the lists.
    fn sizes(&self) -> Sizes;

    /// Takes a frame if more than `mark` are free, as this task sees it.
    fn take(&self, mark: u32) -> Option<Self::Frame>;

    /// Drains the lists of every CPU to the zone.
    fn drain_all(&self);

    /// Takes up to `pages` off the tail of a list, and frees those that can be freed. Of the others, pages that were
    /// used again go to the active list, and unused ones from the active list go to the inactive one.
    fn scan(&self, scanner: Scanner, list: List, pages: u64) -> impl Future<Output = Scanned> + Send;

    /// Shrinks the kernel's own caches by the same share as `scanned` is of `of`. Counts the scanned objects.
    fn shrink_caches(&self, scanned: u64, of: u64) -> impl Future<Output = ()> + Send;

    /// Lets other tasks run if the slice is used up.
    fn resched(&self) -> impl Future<Output = ()> + Send;

    /// Sleeps.
    fn sleep(&self, ns: u64) -> impl Future<Output = ()> + Send;

    /// Wakes kswapd.
    fn wake_background(&self);

    /// Makes kswapd sleep until it is woken, for at most `ns` if there is a bound; returns false if that time has
    /// passed.
    fn sleep_until_woken(&self, ns: Option<u64>) -> impl Future<Output = bool> + Send;

    /// Records the time of a direct reclaim that has ended.
    fn reclaimed_for(&self, ns: u64);

    /// Counts `by` events.
    fn count(&self, event: Event, by: u64);
}
