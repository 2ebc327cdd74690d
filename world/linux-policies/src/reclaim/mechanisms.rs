//! What reclaim needs of a machine's memory.
//!
//! Owns: the seam, and what is counted, by the kernel's names.
//! Does not own: either side of it.
//! Invariants: no step decides anything: each does what it is told, and says what came of it.

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

/// Who scans.
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
    /// On the inactive one.
    pub inactive: u64,
    /// On the active one.
    pub active: u64,
    /// Off the inactive one, in the hands of scanners.
    pub isolated: u64,
}

/// What a scan of a batch came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Scanned {
    /// Pages looked at.
    pub scanned: u64,
    /// Of these, freed.
    pub reclaimed: u64,
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// Direct reclaims begun.
    AllocStall,
    /// No-retry allocations of pages that failed.
    AllocFail,
    /// A slab's requests to its own node alone that failed. The seed's author counted these with the others.
    SlabAllocFail,
    /// Rounds in which an allocation that must not fail found nothing.
    DemandAllocFail,
    /// Pages that tasks looked at.
    ScanDirect,
    /// Of these, freed.
    StealDirect,
    /// Pages that kswapd looked at.
    ScanKswapd,
    /// Of these, freed.
    StealKswapd,
    /// Pages that kswapd freed by dropping inodes.
    KswapdInodeSteal,
    /// Objects of the kernel's own caches looked at.
    SlabsScanned,
    /// Times that kswapd set about balancing.
    PageOutRun,
    /// Times that kswapd was woken again in the short sleep that follows its work.
    LowMarkHitQuickly,
    /// Times that it slept that through, and found too little free.
    HighMarkHitQuickly,
    /// Waits for devices that it left out, since less than the min mark was free.
    SkipCongestionWait,
}

impl Event {
    /// All, in the order of tables.
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

/// The memory of a machine, as reclaim works on it. Each step is the running task's, on its CPU.
pub trait Mechanisms: Send + Sync {
    /// A page frame that was taken.
    type Frame: Send;

    /// The time.
    fn now(&self) -> Nanos;

    /// The marks on free frames.
    fn marks(&self) -> Watermarks;

    /// Free frames, as this task sees them.
    fn free(&self) -> u32;

    /// What is on the lists.
    fn sizes(&self) -> Sizes;

    /// Takes a frame if more than `mark` are free, as this task sees it.
    fn take(&self, mark: u32) -> Option<Self::Frame>;

    /// Has every CPU give what its lists hold back to the zone.
    fn drain_all(&self);

    /// Takes up to `pages` off the tail of a list, frees those that may go, and puts the others where they belong:
    /// one used again goes to the active list, one of the active list that was not to the inactive one.
    fn scan(&self, scanner: Scanner, list: List, pages: u64) -> impl Future<Output = Scanned> + Send;

    /// Has the kernel's own caches shrink by as much as `scanned` pages are of all `of`. Counts what was looked at.
    fn shrink_caches(&self, scanned: u64, of: u64) -> impl Future<Output = ()> + Send;

    /// Lets others run, if the slice is used up.
    fn resched(&self) -> impl Future<Output = ()> + Send;

    /// Sleeps.
    fn sleep(&self, ns: u64) -> impl Future<Output = ()> + Send;

    /// Wakes kswapd.
    fn wake_background(&self);

    /// kswapd sleeps until it is woken, for `ns` at most if there is such a bound; false when that passed.
    fn sleep_until_woken(&self, ns: Option<u64>) -> impl Future<Output = bool> + Send;

    /// A direct reclaim has ended: how long its task was in it.
    fn reclaimed_for(&self, ns: u64);

    /// Counts.
    fn count(&self, event: Event, by: u64);
}
