//! Knobs: settings of a running engine. Each owner declares its own in a table; a registry holds them all.
//!
//! Owns: the engine's own tables; rows, tables, values and errors in the modules below.
//! Does not own: the knobs of volumes, front ends and policies, which bring their own tables; the effect of a value:
//! policies and mechanisms read it where they need it.
//! Invariants: a value in force is inside its range; a change takes no lock. The engine's table comes first in every
//! registry, so that the compiler knows the positions of its knobs.

mod error;
mod page_knobs;
mod table;
mod values;

pub use error::{KnobError, Threshold, did_you_mean, near};
pub use page_knobs::{KNOBS as PAGE_KNOBS, PageKnob};
pub use table::{Acts, KnobInfo, KnobTable, Scope, TableKnob};
pub use values::{BackgroundBase, DeviceSettings, KnobId, RatioBases, Settings, WhichKnob, would_fit};

crate::knobs! {
    /// A knob of the engine itself.
    Knob of "engine":

    DirtyRatio "dirty_ratio" 50 in 1..=90 "percent" Engine AtOnce
        "Share of the cache that may be dirty, on all devices together. Each device gets an equal part; a writer waits when its device's part is used up.";
    DirtyBytes "dirty_bytes" 0 in 0..=1099511627776 "bytes" Engine AtOnce
        "The dirty limit of all devices together in bytes, in place of dirty_ratio. A kernel's law reads less than two pages as two. 0: the ratio decides.";
    BackgroundBytes "dirty_background_bytes" 0 in 0..=1099511627776 "bytes" Device AtOnce
        "Dirty bytes of a device above which its flusher starts to write, in place of dirty_background_ratio, or of the flush budget's own line. The budget uses at most the amount that writers may dirty without a pause. Under a kernel's law they are those of all devices together. A threshold that is not below the dirty limit is refused; Linux accepts it, and silently uses half the limit. 0: the ratio decides.";
    BackgroundCentisecs "dirty_background_centisecs" 0 in 0..=360000 "centiseconds" Device AtOnce
        "The background threshold of a device in time: its flusher starts to write above measured bandwidth x centiseconds / 100, or above another threshold. It starts at once while no bandwidth has been measured. The flush budget uses at most the amount that writers may dirty without a pause. Of the kernels' laws, only linux-3.6 reads this knob. 0: off.";
    ExpireCentisecs "dirty_expire_centisecs" 3000 in 1..=360000 "centiseconds" Device AtOnce
        "Age at which the flusher writes dirty data, however little there is.";
    WritebackCentisecs "dirty_writeback_centisecs" 500 in 0..=360000 "centiseconds" Engine AtOnce
        "How often a flusher looks for expired data, and for written files without a sync. 0: off, so that age alone causes no write.";
    ReadaheadBytes "readahead_bytes_max" 134217728 in 0..=134217728 "bytes" Device NextUse
        "The most that is read ahead of one reader. The amount follows from the cost of the device's reads and from the pages that the reader has used. All unread pages together hold at most a quarter of the cache. 0: no readahead.";
    ReserveBytes "reserve_below_bytes" 67108864 in 0..=1099511627776 "bytes" Device NextUse
        "Free space of a device below which a write first reserves its space.";
}

#[cfg(test)]
mod tests;
