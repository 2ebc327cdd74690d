//! Decisions of the flush budget and ends of writes, to be counted by callgrind: `decision_instructions KIND PAGES`.
//!
//! KIND is `admit` or `complete`. With `admit`, the writer's device completes nothing, so that the law is asked at
//! every page, and the writer pauses as soon as the backlog is in the band. With `complete`, a device completes one
//! page at a time and at once, so that its prices are known soon. Prints the number of decisions and of completed
//! writes.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a measured program")]

mod stepped;

use std::sync::{Arc, Mutex};

use afflux_budget::Budget;
use afflux_engine::counters::Counter;
use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Device, Engine, Limits, Platform, Policies, Request};
use afflux_frames::Frames;
use afflux_linux_device::{IoChoice, Reactors};
use stepped::Stepped;

const PAGE_BYTES: u64 = 4096;

/// Completes writes at once, or never.
struct Here {
    limits: Limits,
    kept: Option<Mutex<Vec<Request>>>,
}

impl Device for Here {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&self, request: Request) {
        match &self.kept {
            Some(kept) => kept.lock().unwrap().push(request),
            None => request.complete(Ok(())),
        }
    }

    fn free_bytes_hint(&self) -> u64 {
        u64::MAX
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, kind, pages] = &arguments[..] else { panic!("decision_instructions admit|complete PAGES") };
    let (completes, pages): (bool, u64) = (kind == "complete", pages.parse().unwrap());
    // System calls instead of a ring: valgrind knows them all.
    let reactors = Reactors::start(1, IoChoice::Syscalls).unwrap();
    let platform = reactors.platform();
    let policies = Policies { policy: Arc::new(Budget), ..Policies::default() };
    let frames = Frames::new(64 << 20).unwrap();
    let engine = Engine::with_policies(
        Arc::new(Stepped::new(platform.clone())),
        Settings::with([&afflux_budget::KNOBS]),
        frames,
        policies,
    );
    let limits =
        Limits { block_bytes: 4096, request_bytes_max: 4096, depth: 4, volatile_cache: false, ..Limits::default() };
    let kept = (!completes).then(Mutex::default);
    let device = Arc::new(Here { limits, kept });
    let id = engine.add_device("here", Arc::clone(&device) as _);
    let file = engine.open(id, Backing::new(Arc::new(())), 0);
    let count = |counter| platform.counters().get(counter);
    platform.block_on(async {
        for page in 0..pages {
            engine.write(&file, page * PAGE_BYTES, &[7; PAGE_BYTES as usize]).await.unwrap();
            if completes {
                engine.sync(&file, 0..u64::MAX).await.unwrap();
            }
        }
    });
    println!("{} decisions, {} pages written", count(Counter::BalancePasses), count(Counter::PagesWritten));
    if let Some(kept) = &device.kept {
        kept.lock().unwrap().drain(..).for_each(|request| request.complete(Ok(())));
    }
    engine.discard(&file);
}
