//! The size of readahead and the speed of streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afflux_engine::counters::Counter;
use afflux_simulator::{DiskOptions, Random};

use crate::fixture::{EngineFixture, PAGE, SECOND, TestFile};

/// The cost of reads: device requests, pages read, virtual time.
#[derive(Clone, Copy, Debug)]
struct Cost {
    requests: u64,
    pages: u64,
    ms: u64,
}

fn cost(lab: &EngineFixture) -> Cost {
    Cost {
        requests: lab.count(Counter::ReadRequests),
        pages: lab.count(Counter::PageIn) / PAGE as u64,
        ms: lab.here.now_ns() / 1_000_000,
    }
}

/// `reads` reads of `block` pages at random multiples of it, over `files` files of `pages` pages.
fn random(files: usize, pages: usize, block: usize, reads: usize, frames: u64) -> Cost {
    let lab = EngineFixture::new(1, frames, &[DiskOptions::default()], &[]);
    let files: Vec<TestFile> = (0..files).map(|_| lab.laid_out((pages * PAGE) as u64)).collect();
    lab.run(async {
        let mut random = Random::new(7);
        let mut into = vec![0; block * PAGE];
        for _ in 0..reads {
            let file = &files[random.below(files.len() as u64) as usize];
            let at = random.below((pages / block) as u64) * (block * PAGE) as u64;
            lab.here.engine.read(&file.file, at, &mut into).await.unwrap();
        }
    });
    cost(&lab)
}

/// `callers` read a file of `blocks` blocks of `block` pages from block `first` on. Each takes the next block and sends
/// its call up to `late_ns` later, so that calls overtake each other.
fn stream(file_pages: usize, first: u64, blocks: u64, block: usize, callers: u64, late_ns: u64) -> Cost {
    let lab = EngineFixture::new(1, 16 << 10, &[DiskOptions::default()], &[]);
    let file = lab.laid_out((file_pages * PAGE) as u64);
    let next = Arc::new(AtomicU64::new(first));
    let ended: Vec<_> = (0..callers)
        .map(|caller| {
            let (here, file, next) = (Arc::clone(&lab.here), file.clone(), Arc::clone(&next));
            lab.in_background(async move {
                let mut random = Random::new(100 + caller);
                let mut into = vec![0; block * PAGE];
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= first + blocks {
                        return;
                    }
                    here.sleep(random.below(late_ns + 1)).await;
                    here.engine.read(&file.file, number * (block * PAGE) as u64, &mut into).await.unwrap();
                }
            })
        })
        .collect();
    lab.run(async {
        assert!(lab.here.until(600 * SECOND, || ended.iter().all(|ended| ended.load(Ordering::Relaxed))).await);
    });
    cost(&lab)
}

#[test]
fn random_reads_read_little_more_than_was_asked() {
    // Files, pages of each, pages of a read, frames of the cache. The first has 32 MiB for 200 MiB in files of 2 MiB.
    for (files, pages, block, frames) in
        [(100, 512, 1, 8192), (100, 512, 16, 8192), (100, 128, 1, 2048), (100, 8, 1, 512), (100, 4096, 16, 8192)]
    {
        let asked = 25_600;
        let cost = random(files, pages, block, asked / block, frames);
        let (most, what) = (asked as u64 * 11 / 10, "files of this many pages, reads of this many");
        assert!(cost.pages <= most, "{cost:?} for {asked} pages asked, {what}: {pages}, {block}");
    }
}

#[test]
fn streams_need_no_more_than_they_did() {
    let mut wrong = Vec::new();
    // Block, callers, delay of calls in ns, first page; most requests and ms. This disk serves requests in its own
    // order, so a reader may wait for the last request of a window.
    for (block, callers, late_ns, first, requests_max, ms_max) in [
        (1, 1, 0, 0, 69, 493),
        (1, 1, 0, 3000, 58, 507),
        (16, 1, 0, 0, 69, 494),
        (32, 1, 0, 0, 63, 511),
        (256, 1, 0, 0, 54, 505),
        (1, 16, 20_000, 0, 93, 504),
        (16, 8, 50_000, 0, 62, 497),
        (16, 8, 50_000, 3000, 64, 501),
        (16, 16, 50_000, 3000, 71, 515),
        (256, 16, 500_000, 0, 47, 482),
        (256, 16, 5_000_000, 3000, 46, 482),
    ] {
        let cost = stream(16_384, first / block as u64, 12_000 / block as u64, block, callers, late_ns);
        if cost.requests > requests_max || cost.ms > ms_max {
            let who = format!("{callers} callers reading {block} pages each, up to {late_ns} ns late, from {first}");
            wrong.push(format!("{who}: {cost:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
