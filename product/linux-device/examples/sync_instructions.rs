//! Pages apart from each other are written and synced by a blocked caller, over and over, to be counted by callgrind:
//! `sync_instructions COUNT PAGES_OF_A_SYNC`.
//!
//! The device takes each page and flush at once, on the caller's thread, and Budget decides. So the count covers the
//! engine's way of a write and its sync, and no system call.
#![allow(clippy::unwrap_used, missing_docs, reason = "a measured program")]

mod stepped;

use std::pin::pin;
use std::sync::Arc;

use afflux_budget::Budget;
use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Device, DeviceError, Engine, Limits, Policies, Request, TransferHere};
use afflux_frames::Frames;
use afflux_linux_device::{IoChoice, Reactors};
use stepped::Stepped;

const PAGES: u64 = 1024;

/// Takes all at once.
struct Instant(Limits);

impl Device for Instant {
    fn limits(&self) -> &Limits {
        &self.0
    }

    fn submit(&self, request: Request) {
        request.complete(Ok(()));
    }

    fn write_here(&self, _: &TransferHere<'_>) -> Option<()> {
        Some(())
    }

    fn sync_here(&self, _: &Backing) -> Option<Result<(), DeviceError>> {
        Some(Ok(()))
    }

    fn free_bytes_hint(&self) -> u64 {
        u64::MAX
    }
}

fn main() {
    let [count, pages] = [1, 2].map(|at| std::env::args().nth(at).unwrap().parse::<u64>().unwrap());
    // System calls instead of a ring: valgrind knows them all.
    let reactors = Reactors::start(1, IoChoice::Syscalls).unwrap();
    let platform = reactors.platform();
    let policies = Policies { policy: Arc::new(Budget), ..Policies::default() };
    let settings = Settings::with([&afflux_budget::KNOBS]);
    let frames = Frames::new(64 << 20).unwrap();
    let engine = Engine::with_policies(Arc::new(Stepped::new(platform.clone())), settings, frames, policies);
    let limits = Limits { block_bytes: 4096, request_bytes_max: 1 << 20, depth: 64, ..Limits::default() };
    let id = engine.add_device("instant", Arc::new(Instant(limits)));
    let file = engine.open(id, Backing::new(Arc::new(())), PAGES * 4096);
    let bytes = [1; 4096];
    for at in 0..count {
        for page in 0..pages {
            let offset = ((at * 403 + page * 2) % PAGES) * 4096;
            platform.block_on(pin!(engine.write(&file, offset, &bytes))).unwrap();
        }
        platform.block_on(pin!(engine.sync(&file, 0..u64::MAX))).unwrap();
        assert!(file.is_clean());
    }
}
