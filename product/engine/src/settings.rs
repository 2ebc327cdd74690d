//! Knobs: settings of a running engine. Each owner declares its own in a table; a registry holds them all.
//!
//! Owns: the engine's own table; rows, tables, values and errors in the modules below.
//! Does not own: the knobs of volumes, front ends and policies, which bring their own tables; the effect of a value:
//! policies and mechanisms read it where they need it.
//! Invariants: a value in force is inside its range; a change takes no lock. The engine's table comes first in every
//! registry, so that the compiler knows the places of its knobs.

mod error;
mod near;
mod table;
mod threshold;
mod values;

pub use error::KnobError;
pub use near::{did_you_mean, near};
pub use table::{Acts, KnobInfo, KnobTable, Scope, TableKnob};
pub(crate) use threshold::would_fit;
pub use threshold::{BackgroundShare, Shares, Threshold};
pub use values::{DeviceSettings, KnobId, Settings, WhichKnob};

crate::knobs! {
    /// A knob of the engine itself.
    Knob of "engine":

    DirtyRatio "dirty_ratio" 50 in 1..=90 "percent" Engine AtOnce
        "Share of the cache that may be dirty, all devices together. Each device gets an equal part of it; a writer waits when its own device's part is used up.";
    BackgroundRatio "dirty_background_ratio" 10 in 0..=100 "percent" Device AtOnce
        "Share of a device's part of the dirty limit at which its flusher starts to write. Under a kernel's law: of the memory that may be dirty, and refused unless below dirty_ratio; Linux takes it and uses half the limit without saying so.";
    DirtyBytes "dirty_bytes" 0 in 0..=1099511627776 "bytes" Engine AtOnce
        "The dirty limit of all devices together in bytes, in place of dirty_ratio; a kernel's law takes less than two pages as two. 0 leaves it to the ratio.";
    BackgroundBytes "dirty_background_bytes" 0 in 0..=1099511627776 "bytes" Device AtOnce
        "What a device's flusher leaves unwritten before it starts to write, in place of dirty_background_ratio. 0 leaves it to the ratio. Under a kernel's law: of all devices together. One that is not below the dirty limit is refused; Linux takes it and uses half the limit without saying so.";
    BackgroundCentisecs "dirty_background_centisecs" 0 in 0..=360000 "centiseconds" Device AtOnce
        "What the device writes in so much time is what its flusher leaves unwritten before it starts to write: measured bandwidth x centiseconds / 100, beside the other thresholds; at once while nothing has been measured. By the flush budget: no more than writers may dirty without a pause. By a kernel's law: in linux-3.6 alone. 0 is off.";
    ExpireCentisecs "dirty_expire_centisecs" 3000 in 1..=360000 "centiseconds" Device AtOnce
        "Age at which dirty data is written whatever its amount.";
    WritebackCentisecs "dirty_writeback_centisecs" 500 in 0..=360000 "centiseconds" Engine AtOnce
        "How often a flusher looks for data that has expired, and for files that nobody syncs. 0 is off: nothing is written because of its age.";
    SliceBytes "writeback_slice_bytes" 67108864 in 4096..=1099511627776 "bytes" Device NextUse
        "Most that a flusher writes of one file before it turns to the next.";
    WriteDepth "writeback_depth" also "nr_requests" 16 in 1..=65536 "requests" Device NextUse
        "Most write requests in flight; a device's own limit applies too.";
    RequestBatch "writeback_request_batch" 1 in 1..=1024 "requests" Device NextUse
        "Write requests that a flusher, or a writer that writes back itself, takes in a row once it had to wait for one, as far as there are no more than half as many again as writeback_depth. Linux: 32.";
    ReadaheadBytes "readahead_bytes_max" 134217728 in 0..=134217728 "bytes" Device NextUse
        "Most that is read ahead of a reader at once. How much is follows from what the device's reads cost and what the reader has used; together it is at most a quarter of the cache. 0 turns readahead off.";
    ReadAheadKb "read_ahead_kb" 128 in 0..=131072 "KiB" Device NextUse
        "The largest window of --readahead linux, by the kernel's name; of no other.";
    RetryMinMs "write_retry_ms_min" 100 in 1..=60000 "milliseconds" Device NextUse
        "Pause before a failed write is tried again; doubles with each failure in a row.";
    RetryMaxMs "write_retry_ms_max" 30000 in 1..=3600000 "milliseconds" Device NextUse
        "Longest pause before a failed write is tried again.";
    ReserveBytes "reserve_below_bytes" 67108864 in 0..=1099511627776 "bytes" Device NextUse
        "Free space of a device below which writers reserve what they write before it is accepted.";
    PinnedRatio "pinned_ratio" 25 in 1..=50 "percent" Engine NextUse
        "Share of the cache that replies on their way to clients may hold; above it (by an eighth at most, and less than 4 MiB) they are copied.";
}

#[cfg(test)]
mod tests;
