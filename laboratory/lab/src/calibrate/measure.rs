//! The measurements, and single costs derived from them.
//!
//! A cost that cannot be measured alone follows from two measurements that contain it in different shares. A read of
//! one absent page and one of 256 give the costs of a request and of a byte. Writebacks in requests of one page and of
//! 256 give those of a request and of a page.
//!
//! Owns: the work that is measured, how often it runs, and the arithmetic.
//! Does not own: the engine that does the work (`rig`).
//! Invariants: nothing is timed on its first run; a difference below zero counts as zero.

use std::sync::mpsc;

use afflux_engine::counters::Counter;
use afflux_engine::{Error, Platform};
use afflux_linux_device::{IoChoice, Reactors};
use afflux_simulator::CostOf;

use super::rig::{LARGE_BYTES, PAGE, Rig, cpu_ns, scattered};
use afflux_report::failure::{Failure, Outcome};

/// Pages of a file that stays in the cache: 8 MiB, more than a core's own caches.
const SET_PAGES: u64 = 2048;
const LARGE_PAGES: f64 = (LARGE_BYTES / PAGE) as f64;

/// One cost as one round measured it.
pub(super) struct Measured {
    pub(super) of: CostOf,
    pub(super) ns: f64,
    /// The work that was measured.
    pub(super) how: &'static str,
}

/// Measures everything `rounds` times, after one unmeasured round, on a reactor's thread. There, as in the server, the
/// engine and its flushers share the thread with the caller.
pub(super) fn rounds(quick: bool, rounds: usize) -> Outcome<Vec<Vec<Measured>>> {
    let reactors = Reactors::start(1, IoChoice::Syscalls).map_err(|error| Failure::failed(error.to_string()))?;
    let platform = reactors.platform();
    let frames = if quick { 4 * SET_PAGES } else { 8 * SET_PAGES };
    let rig = Rig::new(&platform, frames)?;
    let repeats = if quick { 4 } else { 40 };
    let (sender, outcome) = mpsc::sync_channel(1);
    platform.spawn("calibrate", async move {
        let mut found = Vec::new();
        for at in 0..=rounds {
            match round(&rig, repeats).await {
                Ok(_) if at == 0 => {}
                Ok(round) => found.push(round),
                Err(error) => return drop(sender.send(Err(error))),
            }
        }
        let _ = sender.send(Ok(found));
    });
    let outcome = outcome.recv().map_err(|_| Failure::failed("the measurements ended early"))?;
    outcome.map_err(|error| Failure::failed(format!("the engine failed on a device that cannot: {error}")))
}

async fn round(rig: &Rig, repeats: u64) -> Result<Vec<Measured>, Error> {
    let step = step(rig, repeats).await;
    let hit = hit(rig, repeats).await?;
    let overwrite = overwrite(rig, repeats).await?;
    let (request, page) = miss(rig, hit).await?;
    let one_miss = request + page + hit;
    let (steal, scan) = evict(rig, one_miss).await?;
    let dirty = dirty(rig).await?;
    let write = write_back(rig, repeats).await?;
    let of = |counter, ns: f64, how| Measured { of: CostOf::Counter(counter), ns: ns.max(0.0), how };
    Ok(vec![
        Measured { of: CostOf::Step, ns: step, how: "a task of a reactor that yields" },
        of(Counter::ReadHitPages, hit, "4 KiB reads at scattered offsets of 8 MiB"),
        of(Counter::ReadMissPages, hit, "the same copy; the request and its bytes are counted apart"),
        of(Counter::WriteHitPages, overwrite, "4 KiB overwrites at scattered offsets of 8 MiB, dirty"),
        of(Counter::PagesDirtied, dirty, "4 KiB overwrites of clean pages"),
        of(Counter::PageIn, page / PAGE as f64, "reads of 1 MiB and of 4 KiB, absent, without the copies"),
        of(Counter::ReadRequests, request, "the rest of such a read, the wait included"),
        of(Counter::PagesScanned, scan, "pages passed over because they had been used twice"),
        of(Counter::PagesEvicted, steal, "absent reads in a full cache, against those in an empty one"),
        of(Counter::PagesWritten, write.page, "syncs of 8 MiB in requests of 1 MiB and of 4 KiB"),
        of(Counter::WriteRequests, write.request, "the same"),
        of(Counter::SyncCalls, write.clean_sync, "syncs of a clean file"),
        of(Counter::SyncRequests, write.flush, "syncs of one page, its write not counted"),
    ])
}

async fn step(rig: &Rig, repeats: u64) -> f64 {
    let count = repeats * 1000;
    let began = cpu_ns();
    for _ in 0..count {
        rig.platform.preemption_point().await;
    }
    (cpu_ns() - began) / count as f64
}

async fn hit(rig: &Rig, repeats: u64) -> Result<f64, Error> {
    let file = rig.file(SET_PAGES);
    rig.fill(&file).await?;
    let mut into = [0; PAGE];
    let began = cpu_ns();
    for _ in 0..repeats {
        for page in scattered(SET_PAGES) {
            rig.engine.read(&file, page * PAGE as u64, &mut into).await?;
        }
    }
    let ns = (cpu_ns() - began) / (repeats * SET_PAGES) as f64;
    rig.engine.discard(&file);
    Ok(ns)
}

async fn overwrite(rig: &Rig, repeats: u64) -> Result<f64, Error> {
    let file = rig.file(SET_PAGES);
    let bytes = [7; PAGE];
    let (mut began, mut hits) = (0.0, 0);
    for repeat in 0..=repeats {
        if repeat == 1 {
            (began, hits) = (cpu_ns(), rig.counted(Counter::WriteHitPages));
        }
        for page in scattered(SET_PAGES) {
            rig.engine.write(&file, page * PAGE as u64, &bytes).await?;
        }
    }
    let ns = cpu_ns() - began;
    let hits = rig.counted(Counter::WriteHitPages) - hits;
    rig.engine.discard(&file);
    Ok(ns / hits.max(1) as f64)
}

/// The costs of a read request and of one of its pages, beyond the copy to the reader.
async fn miss(rig: &Rig, hit: f64) -> Result<(f64, f64), Error> {
    let file = rig.file(SET_PAGES);
    let mut into = vec![0; LARGE_BYTES];
    let began = cpu_ns();
    for page in scattered(SET_PAGES) {
        rig.engine.read(&file, page * PAGE as u64, &mut into[..PAGE]).await?;
    }
    let small = (cpu_ns() - began) / SET_PAGES as f64;
    rig.engine.discard(&file);
    let file = rig.file(SET_PAGES);
    let began = cpu_ns();
    for at in (0..file.size()).step_by(LARGE_BYTES) {
        rig.engine.read(&file, at, &mut into).await?;
    }
    let large = (cpu_ns() - began) * LARGE_PAGES / SET_PAGES as f64;
    rig.engine.discard(&file);
    let page = ((large - small) / (LARGE_PAGES - 1.0) - hit).max(0.0);
    Ok(((small - page - hit).max(0.0), page))
}

/// The costs of evicting a page, and of scanning a page that stays.
async fn evict(rig: &Rig, one_miss: f64) -> Result<(f64, f64), Error> {
    let counts = || [Counter::PagesScanned, Counter::PagesEvicted].map(|counter| rig.counted(counter) as f64);
    let file = rig.file(2 * rig.frames);
    let mut into = [0; PAGE];
    // Reads each page once; for the second half of them the cache is full.
    let (mut began, mut before) = (0.0, counts());
    for (at, page) in scattered(2 * rig.frames).enumerate() {
        if at as u64 == rig.frames {
            (began, before) = (cpu_ns(), counts());
        }
        rig.engine.read(&file, page * PAGE as u64, &mut into).await?;
    }
    let evictions = cpu_ns() - began - one_miss * rig.frames as f64;
    let after = counts();
    let (scanned, evicted) = (after[0] - before[0], after[1] - before[1]);
    rig.engine.discard(&file);
    // Three quarters of the cache were used more than once: when frames run out, the scan passes over these before it
    // evicts a page.
    let file = rig.file(2 * rig.frames);
    let used = rig.frames / 4 * 3;
    for _ in 0..3 {
        for page in 0..used {
            rig.engine.read(&file, page * PAGE as u64, &mut into).await?;
        }
    }
    let mut passing = (0.0, 0.0, 0.0);
    for page in used..2 * rig.frames {
        let (began, before) = (cpu_ns(), counts());
        rig.engine.read(&file, page * PAGE as u64, &mut into).await?;
        let (ns, after) = (cpu_ns() - began - one_miss, counts());
        passing = (after[0] - before[0], after[1] - before[1], ns);
        if passing.0 > 0.0 {
            break;
        }
    }
    rig.engine.discard(&file);
    Ok(two_costs((scanned, evicted, evictions), passing))
}

/// The costs of evicting and of scanning a page, from two measurements. Each is a triple of pages scanned, pages
/// evicted, and the time of both.
fn two_costs(evicting: (f64, f64, f64), passing: (f64, f64, f64)) -> (f64, f64) {
    let determinant = evicting.0 * passing.1 - passing.0 * evicting.1;
    if determinant == 0.0 {
        return (evicting.2 / evicting.1.max(1.0), 0.0);
    }
    let scan = ((evicting.2 * passing.1 - passing.2 * evicting.1) / determinant).max(0.0);
    let steal = (evicting.2 - scan * evicting.0) / evicting.1.max(1.0);
    (steal.max(0.0), scan)
}

async fn dirty(rig: &Rig) -> Result<f64, Error> {
    let file = rig.file(SET_PAGES);
    rig.fill(&file).await?;
    let bytes = [7; PAGE];
    let began = cpu_ns();
    for page in scattered(SET_PAGES) {
        rig.engine.write(&file, page * PAGE as u64, &bytes).await?;
    }
    let ns = (cpu_ns() - began) / SET_PAGES as f64;
    rig.engine.discard(&file);
    Ok(ns)
}

struct WriteCosts {
    page: f64,
    request: f64,
    clean_sync: f64,
    flush: f64,
}

async fn write_back(rig: &Rig, repeats: u64) -> Result<WriteCosts, Error> {
    let bytes = vec![7; LARGE_BYTES];
    let mut times = Vec::new();
    for single in [false, true] {
        let file = if single { rig.file_of_single_pages(SET_PAGES) } else { rig.file(SET_PAGES) };
        for at in (0..file.size()).step_by(LARGE_BYTES) {
            rig.engine.write(&file, at, &bytes).await?;
        }
        let requests = rig.counted(Counter::WriteRequests);
        let began = cpu_ns();
        rig.engine.sync(&file, 0..u64::MAX).await?;
        times.push((cpu_ns() - began, (rig.counted(Counter::WriteRequests) - requests) as f64));
        rig.engine.discard(&file);
    }
    let [(large, few), (small, many)] = times[..] else { return Err(Error::Discarded) };
    let request = ((small - large) / (many - few).max(1.0)).max(0.0);
    let page = ((large - few * request) / SET_PAGES as f64).max(0.0);
    let file = rig.file(SET_PAGES);
    rig.engine.sync(&file, 0..u64::MAX).await?;
    let began = cpu_ns();
    for _ in 0..repeats {
        rig.engine.sync(&file, 0..u64::MAX).await?;
    }
    let clean_sync = (cpu_ns() - began) / repeats as f64;
    let mut one_page = 0.0;
    for at in 0..repeats {
        rig.engine.write(&file, at * PAGE as u64, &bytes[..PAGE]).await?;
        let began = cpu_ns();
        rig.engine.sync(&file, 0..u64::MAX).await?;
        one_page += cpu_ns() - began;
    }
    rig.engine.discard(&file);
    let flush = one_page / repeats as f64 - page - request - clean_sync;
    Ok(WriteCosts { page, request, clean_sync, flush })
}
