//! The knobs that kernels have and the engine does not.
//!
//! Owns: their table. Does not own: the engine's own knobs; the knobs of each kernel (`registry`).
//! Invariants: a decision reads a value through its view, like every other knob.

afflux_engine::knobs! {
    /// A knob of the kernels' policies.
    KernelKnob of policy "linux-policies":

    MinRatio "min_ratio" 0 in 0..=99 "percent" Device AtOnce
        "Share of the dirty limit that the device has whatever it wrote lately.";
    MaxRatio "max_ratio" 100 in 0..=100 "percent" Device AtOnce
        "Largest share of the dirty limit that the device may have.";
    MinBytes "min_bytes" 0 in 0..=1099511627776 "bytes" Device AtOnce
        "Under linux-6.1: min_ratio in bytes, which become a ratio of the dirty limit when they are set. 0 leaves it to the ratio.";
    MaxBytes "max_bytes" 0 in 0..=1099511627776 "bytes" Device AtOnce
        "Under linux-6.1: max_ratio in bytes, which become a ratio of the dirty limit when they are set. 0 leaves it to the ratio.";
    StrictLimit "strict_limit" 0 in 0..=1 "0 or 1" Device AtOnce
        "Under linux-6.1: hold the device to its own share even while the others leave room.";
    ExtentPages "extent_pages" 1 in 1..=1048576 "pages" Device AtOnce
        "Under linux-6.1: most pages whose writeback the file system ends at once. ext4 has 2048 in new blocks.";
    InodesInUse "inodes_in_use" 0 in 0..=1099511627776 "inodes" Device AtOnce
        "Inodes in use on the machine; periodic writeback writes as many pages more.";
}
