//! Knobs that count pages and requests: of equal parts and of the kernels' laws.
//!
//! The default policy counts device time instead, and refuses them by name. `--policy equal-parts` and simulated
//! kernels read them, each where a view shows them or where the policy leaves a limit to them.
//!
//! Owns: their table. Does not own: values (the registry has both tables of the engine), the policies.
//! Invariants: the table comes second in every registry, so that the compiler knows the positions of its knobs.

crate::knobs! {
    /// A knob of a policy that counts pages and requests.
    PageKnob of "equal-parts":

    BackgroundRatio "dirty_background_ratio" 10 in 0..=100 "percent" Device AtOnce
        "Share of a device's part of the dirty limit at which its flusher starts to write. Under a kernel's law it is a share of the memory that may be dirty. A share that is not below dirty_ratio is refused; Linux accepts it, and silently uses half the limit.";
    SliceBytes "writeback_slice_bytes" 67108864 in 4096..=1099511627776 "bytes" Device NextUse
        "The most that a flusher writes of one file before it turns to the next.";
    WriteDepth "writeback_depth" also "nr_requests" 16 in 1..=65536 "requests" Device NextUse
        "The most write requests in flight. The device's own limit applies, too.";
    RequestBatch "writeback_request_batch" 1 in 1..=1024 "requests" Device NextUse
        "The number of write requests that a flusher takes in a row after it had to wait for one. At most half as many again as writeback_depth are in flight. Linux: 32.";
}
