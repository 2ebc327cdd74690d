//! libFuzzer on the protocol machine: `cargo +nightly fuzz run protocol` in this folder's parent.
//!
//! Owns: the entry point. Does not own: the inputs and the properties to check (`../harness.rs`).
//! Invariants: a server is replaced after a number of inputs, so that an input's effect depends on few inputs before
//! it.
#![no_main]

#[path = "../harness.rs"]
mod harness;

use std::cell::RefCell;

use harness::FuzzedServer;

const FEEDINGS_MAX: u32 = 1_000;

thread_local! {
    static BENCH: RefCell<(FuzzedServer, u32)> = RefCell::new((fresh(), 0));
}

/// A server with the files that its seeds use.
fn fresh() -> FuzzedServer {
    let bench = FuzzedServer::new();
    bench.seeds();
    bench.seeds_of_sessions();
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
