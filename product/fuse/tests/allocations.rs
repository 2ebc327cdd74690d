//! The allocations of calls that the kernel makes while it frees memory. A mount is part of its own host's reclaim: a
//! call that asks the host for memory may wait for itself.

#![allow(clippy::unwrap_used, unreachable_pub, dead_code, reason = "tests")]

//! rule: READ and WRITE of cached pages, LOOKUP of a cached name, GETATTR, FLUSH and FORGET of a mount allocate no
//! memory
//! kept in: `product/fuse/src/answering.rs`, `product/fuse/src/operations/data.rs`

#[path = "simulated/kernel.rs"]
mod kernel;

use std::sync::Arc;

use afflux_frontend::{MessageMachine, Tried};

use kernel::{Kernel, ROOT, longs, name, words};

const ROUNDS: u64 = 64;

/// The allocations of one call of a kind, after some calls have filled the kept memory.
fn of_a_call(kernel: &Kernel, opcode: u32, node: u64, body: &[u8]) -> u64 {
    let call = || {
        let message = kernel.message(opcode, node, body);
        let counted = allocation_counter::measure(|| {
            let tried = kernel.mount.try_answer(&message);
            assert!(!matches!(tried, Tried::Waits), "operation {opcode} waits");
        });
        counted.count_total
    };
    (0..ROUNDS).for_each(|_| {
        call();
    });
    (0..ROUNDS).map(|_| call()).sum()
}

#[test]
fn calls_of_the_reclaim_path_allocate_nothing() {
    let kernel = Kernel::new();
    let (file, fh) = kernel.create(ROOT, "file");
    kernel.write(fh, 0, &vec![1; 64 << 10]).unwrap();
    kernel.read(fh, 0, 64 << 10).unwrap();
    kernel.look_up(ROOT, "file").unwrap();
    let extent = |len: u32| [longs(&[fh, 4096]), words(&[len, 0, 0, 0, 0, 0])].concat();
    let write = [extent(4096), vec![2; 4096]].concat();
    let rows = [
        ("READ of a page", of_a_call(&kernel, 15, file, &extent(4096))),
        ("WRITE of a page", of_a_call(&kernel, 16, file, &write)),
        ("GETATTR", of_a_call(&kernel, 3, file, &[0; 16])),
        ("FLUSH", of_a_call(&kernel, 25, file, &[longs(&[fh]), words(&[0, 0]), longs(&[0])].concat())),
        ("LOOKUP", of_a_call(&kernel, 1, ROOT, &name("file"))),
        ("FORGET", of_a_call(&kernel, 2, file, &longs(&[0]))),
    ];
    assert!(rows.iter().all(|(_, allocations)| *allocations == 0), "allocations of {ROUNDS} calls: {rows:?}");
}

// rule: a call of a mount that waits moves at most 3 KiB
// kept in: `product/fuse/src/operations/mod.rs`, `product/fuse/src/interrupts.rs`
#[test]
fn a_call_that_waits_is_small() {
    let kernel = Kernel::new();
    let message = kernel.message(1, ROOT, &name("absent"));
    let answering = Arc::clone(&kernel.mount).answer(Box::new(message));
    // 18 KiB while an interruptible call was held twice and each call had room for a walk through the exports.
    let bytes = size_of_val(&*answering);
    assert!(bytes <= 3 << 10, "{bytes} bytes");
}
