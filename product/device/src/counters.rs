//! Every counter once: name, unit, meaning. docs/reference/counters.md is generated from this table.
//!
//! Owns: the table, one block of values a thread, the sum over all threads.
//! Does not own: gauges (pages dirty now), which the engine reads from the state they describe.
//! Invariants: a block has one writer, its thread, so counting is a plain load and store. A sum may miss counts of the
//! last instants, never earlier ones.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use afflux_pages::hazards::Hazards;

/// One row of the counter table.
#[derive(Clone, Copy, Debug)]
pub struct CounterInfo {
    /// The name; the kernel's name if it has the same counter.
    pub name: &'static str,
    /// The unit of the value.
    pub unit: &'static str,
    /// The meaning of the counter.
    pub doc: &'static str,
}

macro_rules! counters {
    ($($variant:ident $name:literal $unit:literal $doc:literal;)*) => {
        /// A counter: grows from 0 while the engine lives.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Counter {
            $(#[doc = $doc] $variant,)*
        }

        impl Counter {
            /// All counters, in the order of [`COUNTERS`].
            pub const ALL: &[Counter] = &[$(Counter::$variant,)*];
        }

        /// The counter table, in the order of [`Counter`].
        pub const COUNTERS: &[CounterInfo] = &[
            $(CounterInfo { name: $name, unit: $unit, doc: $doc },)*
        ];
    };
}

counters! {
    ReadHitPages "read_hit_pages" "pages" "Pages of reads that were in the cache when the call came. Hits and misses together are all pages of all reads that succeeded.";
    ReadMissPages "read_miss_pages" "pages" "Pages of reads that were not in the cache, or not whole, when the call came.";
    ReadJoinedPages "read_joined_pages" "pages" "Of these, pages that were being read already, for another call or ahead of this one.";
    WriteHitPages "write_hit_pages" "pages" "Pages overwritten while already dirty, without a lock.";
    PagesDirtied "nr_dirtied" "pages" "Pages that went from clean, absent or under writeback to dirty.";
    PagesWritten "nr_written" "pages" "Pages that a device has written.";
    PagesRedirtied "nr_redirtied" "pages" "Of the pages that became dirty, those that were being written, or had been and were not flushed: to write them was wasted.";
    IdlePages "nr_idle_written" "pages" "Pages handed to devices that would have idled, since their files had been left alone.";
    PagesTruncated "nr_dirty_truncated" "pages" "Dirty pages dropped because their bytes were cut off, punched out or removed.";
    PagesCopiedStable "nr_stable_copies" "pages" "Writes that went to a new frame because the old one was being written or shown.";
    PageIn "pgpgin" "bytes" "Bytes asked of devices by reads and readahead.";
    PageOut "pgpgout" "bytes" "Bytes handed to devices to write.";
    ReadRequests "read_requests" "requests" "Read requests submitted.";
    WriteRequests "write_requests" "requests" "Write requests submitted.";
    SyncRequests "sync_requests" "requests" "Device flushes submitted.";
    WriteErrors "write_errors" "requests" "Write and flush requests that failed.";
    ReadErrors "read_errors" "requests" "Read requests that failed.";
    PagesScanned "pgscan" "pages" "Pages looked at in search of one to evict.";
    PagesEvicted "pgsteal" "pages" "Clean pages evicted.";
    AllocStall "allocstall" "events" "Allocations that found fewer free frames than they wanted, and recycled clean pages or waited.";
    DemandAllocFail "demand_alloc_fail" "events" "Of these, those that found no clean page to recycle either, and waited.";
    AllocFail "nr_alloc_fail" "events" "Readahead allocations that failed, cheaply.";
    ReadaheadPages "readahead_pages" "pages" "Pages read before anybody asked for them.";
    ReadGapPages "read_gap_pages" "pages" "Cached pages that requests to a store read again: a short gap is cheaper than another request.";
    ReadaheadWaste "readahead_waste" "pages" "Of the pages read ahead, those that nobody asked for until they left the cache, or until 30 to 60 s after they were read. A page counts once, also if it is asked for later.";
    ThrottlePauses "throttle_pauses" "events" "Times a writer waited for its device's dirty limit.";
    ThrottleNs "throttle_ns" "ns" "Time that writers waited for their devices' dirty limits.";
    BalanceCalls "balance_calls" "events" "Calls that the policy in force answered: the allowance of a writer was used up.";
    BalancePasses "balance_passes" "events" "Snapshots taken for such calls.";
    SyncCalls "sync_calls" "events" "Calls of sync.";
    SyncNs "sync_ns" "ns" "Time that callers of sync waited.";
    FlusherTurns "flusher_turns" "events" "Turns that flushers and blocked callers of syncs gave to files.";
    NamesChanged "names_changed" "changes" "Names made, removed, moved or linked by clients and by programs on a mount. With `names_durable`, each waited for its disk.";
    FilesMade "files_made" "files" "Of these, new files.";
    ReadRaces "read_races" "events" "Lookups that found a frame that had just become another page.";
}

/// The number of counters.
pub const COUNTER_COUNT: usize = COUNTERS.len();

/// One thread's counters, on cache lines of their own.
#[repr(align(128))]
pub(crate) struct CounterBlock {
    values: [AtomicU64; COUNTER_COUNT],
}

/// All threads' counters of one world.
#[derive(Default)]
pub struct Counters {
    blocks: Mutex<Vec<Arc<CounterBlock>>>,
    /// The number of blocks, for readers that may not wait for the lock.
    threads: AtomicU64,
}

impl Counters {
    /// Counters without threads.
    pub fn new() -> Self {
        Self::default()
    }

    /// The sum over all threads, in the order of [`COUNTERS`].
    pub fn sum(&self) -> [u64; COUNTER_COUNT] {
        let blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        std::array::from_fn(|at| blocks.iter().map(|block| block.values[at].load(Ordering::Relaxed)).sum())
    }

    /// The number of threads or virtual CPUs.
    pub fn threads(&self) -> u64 {
        self.threads.load(Ordering::Relaxed)
    }

    /// The sum of one counter.
    pub fn get(&self, counter: Counter) -> u64 {
        self.sum()[counter as usize]
    }
}

/// A thread's own state. A platform makes one for each thread (or virtual CPU) and stores it.
pub struct Local {
    block: Arc<CounterBlock>,
    number: u64,
    /// The thread's slots, in which it announces frames.
    pub hazards: Arc<Hazards>,
    /// Counting is a plain store because a block has one writer.
    not_sync: PhantomData<Cell<()>>,
}

impl Local {
    /// A new block, counted in `counters` for ever.
    pub fn new(counters: &Counters) -> Self {
        let block = Arc::new(CounterBlock { values: std::array::from_fn(|_| AtomicU64::new(0)) });
        counters.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&block));
        let number = counters.threads.fetch_add(1, Ordering::Relaxed);
        let hazards = Arc::new(Hazards::new());
        Self { block, number, hazards, not_sync: PhantomData }
    }

    /// The number of this thread or virtual CPU, from 0.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether the counters are unreachable: the [`Counters`] of this block are gone.
    pub fn is_forgotten(&self) -> bool {
        Arc::strong_count(&self.block) == 1
    }

    /// Adds `amount` to a counter of this thread.
    #[inline]
    pub fn count(&self, counter: Counter, amount: u64) {
        let value = &self.block.values[counter as usize];
        value.store(value.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    /// The count of this thread so far.
    #[inline]
    pub fn counted(&self, counter: Counter) -> u64 {
        self.block.values[counter as usize].load(Ordering::Relaxed)
    }
}
