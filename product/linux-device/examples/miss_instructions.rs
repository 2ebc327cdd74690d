//! Reads of pages that are not in the cache, to be counted by callgrind: `miss_instructions awaited|here COUNT`.
//!
//! Reads 4 KiB pages in scattered order from a file 128 times as large as the cache, which is too small for reclaim
//! ahead of need. The device completes each read at once: awaited ones as requests, the others on the caller's thread
//! (`Engine::read_here`). So the count covers the engine's way from the miss to the
//! bytes, with an eviction and the copy, and no system call.
#![allow(clippy::unwrap_used, missing_docs, reason = "a measured program")]

mod stepped;

use std::sync::Arc;

use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Device, DeviceError, Engine, Limits, Request, TransferHere};
use afflux_frames::Frames;
use afflux_linux_device::{IoChoice, Reactors};
use stepped::Stepped;

const PAGES: u64 = 65_536;

/// Completes all at once.
struct Instant(Limits);

impl Device for Instant {
    fn limits(&self) -> &Limits {
        &self.0
    }

    fn submit(&self, request: Request) {
        request.complete(Ok(()));
    }

    fn read_here(&self, _: &TransferHere<'_>) -> Option<Result<(), DeviceError>> {
        Some(Ok(()))
    }

    fn free_bytes_hint(&self) -> u64 {
        u64::MAX
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (is_awaited, count) = (arguments[1] == "awaited", arguments[2].parse::<u64>().unwrap());
    // System calls instead of a ring: valgrind knows them all.
    let reactors = Reactors::start(1, IoChoice::Syscalls).unwrap();
    let platform = reactors.platform();
    let engine = Engine::new(Arc::new(Stepped::new(platform.clone())), Settings::new(), Frames::new(2 << 20).unwrap());
    let limits = Limits { block_bytes: 4096, request_bytes_max: 1 << 20, depth: 64, ..Limits::default() };
    let id = engine.add_device("instant", Arc::new(Instant(limits)));
    let file = engine.open(id, Backing::new(Arc::new(())), PAGES * 4096);
    let mut bytes = [0; 4096];
    // An odd factor: every page once before any comes again.
    let offsets = (0..count).map(|at| at * 40_503 % PAGES * 4096);
    if is_awaited {
        platform.block_on(async {
            for offset in offsets {
                assert_eq!(engine.read(&file, offset, &mut bytes).await, Ok(4096));
            }
        });
    } else {
        for offset in offsets {
            let read = engine.read_here(&file, offset, &mut bytes, |work| Ok::<_, ()>(platform.block_on(work)));
            assert_eq!(read, Ok(Ok(4096)));
        }
    }
}
