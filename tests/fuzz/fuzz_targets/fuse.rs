//! libFuzzer on the FUSE machine: `cargo +nightly fuzz run fuse` in this folder's parent.
//!
//! Owns: the entry point. Does not own: the inputs and the properties to check (`../fuse_harness.rs`).
//! Invariants: a mount is replaced after a number of inputs, so that an input's effect depends on few inputs before it.
#![no_main]

#[path = "../fuse_harness.rs"]
mod harness;

use std::cell::RefCell;

use harness::FuzzedMount;

const FEEDINGS_MAX: u32 = 1_000;

thread_local! {
    static BENCH: RefCell<(FuzzedMount, u32)> = RefCell::new((fresh(), 0));
}

/// A mount with the files that its seeds use.
fn fresh() -> FuzzedMount {
    let bench = FuzzedMount::new();
    bench.seeds();
    bench
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    BENCH.with_borrow_mut(|(bench, fed)| {
        if *fed >= FEEDINGS_MAX {
            (*bench, *fed) = (fresh(), 0);
        }
        *fed += 1;
        bench.run(input);
    });
});
