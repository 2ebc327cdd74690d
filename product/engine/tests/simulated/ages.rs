//! The age that dirty pages can reach on a working device.

//! rule: on a working device no page gets older than the policy's age and two passes over its file
//! kept in: `product/engine/src/devices/pass.rs`

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND, TestFile};
use crate::timed::{Terms, lab, slow, slow_terms, stream};

/// Pages of a file, each of which carries the instant at which it was written, and the age of the oldest unwritten one.
struct Dated {
    file: TestFile,
    /// By page, the instants of writes that may not be on the disk yet.
    written: Mutex<Vec<VecDeque<u64>>>,
}

impl Dated {
    fn new(file: TestFile, pages: usize) -> Arc<Self> {
        Arc::new(Self { file, written: Mutex::new(vec![VecDeque::new(); pages]) })
    }

    async fn write(&self, lab: &crate::fixture::Inside, page: usize) {
        let now = lab.now_ns();
        let bytes = now.to_le_bytes().repeat(PAGE / 8);
        lab.engine.write(&self.file.file, (page * PAGE) as u64, &bytes).await.unwrap();
        // The page is noted when it is in the cache: a writer that waits to be admitted is not late.
        self.written.lock().unwrap()[page].push_back(now);
    }

    /// The age of the oldest dirtied page that the disk does not have.
    fn age_ns(&self, now_ns: u64) -> u64 {
        let mut oldest = now_ns;
        for (page, written) in self.written.lock().unwrap().iter_mut().enumerate() {
            let bytes = self.file.disk.live_bytes(self.file.id, (page * PAGE) as u64, 8);
            let on_disk = bytes.try_into().map_or(0, u64::from_le_bytes);
            while written.front().is_some_and(|at| *at <= on_disk) {
                written.pop_front();
            }
            oldest = written.front().map_or(oldest, |at| oldest.min(*at));
        }
        now_ns - oldest
    }
}

/// Rewrites random pages of the file, with a pause after each.
fn rewrite(lab: &EngineFixture, dated: &Arc<Dated>, pause_ns: u64, stop: &Arc<AtomicBool>) {
    let (here, dated, stop) = (Arc::clone(&lab.here), Arc::clone(dated), Arc::clone(stop));
    lab.in_background(async move {
        let pages = dated.written.lock().unwrap().len();
        let mut random = 88_172_645_463_325_252_u64;
        while !stop.load(Ordering::Relaxed) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            dated.write(&here, random as usize % pages).await;
            here.sleep(pause_ns).await;
        }
    });
}

/// The age of the oldest page in this many seconds, sampled every 200 ms.
fn oldest_in(lab: &EngineFixture, seconds: u64, files: &[&Arc<Dated>]) -> u64 {
    let mut oldest = 0;
    for _ in 0..5 * seconds {
        lab.run(lab.here.sleep(200 * MILLISECOND));
        let now = lab.here.now_ns();
        oldest = files.iter().map(|file| file.age_ns(now)).max().unwrap().max(oldest);
    }
    oldest
}

#[test]
fn no_page_is_older_than_its_expiry_and_a_little_whatever_is_dirtied_anew() {
    // Age is three seconds, and nothing else is a reason to write.
    let terms = Terms { background_ns: 100 * SECOND, ..slow_terms() };
    let (lab, _) = lab(slow(), terms, &["dirty_expire_centisecs=300"]);
    let stop = Arc::new(AtomicBool::new(false));
    let (hot, wide) = (Dated::new(lab.file(0, 0, 0), 4), Dated::new(lab.file(0, 0, 0), 2000));
    rewrite(&lab, &hot, MILLISECOND, &stop);
    rewrite(&lab, &wide, 10 * MILLISECOND, &stop);
    let oldest = oldest_in(&lab, 40, &[&hot, &wide]);
    assert!((5 * SECOND / 2..7 * SECOND / 2).contains(&oldest), "{oldest} ns");
    let written = lab.count(afflux_engine::counters::Counter::PagesWritten);
    // 4 pages, and 300 that are each at least 3 s old.
    assert!((2500..5500).contains(&written), "{written} pages");
    stop.store(true, Ordering::Relaxed);
}

#[test]
fn nor_beside_streams_and_rewriters_that_have_more_to_write_than_the_device_can() {
    let (lab, _) = lab(slow(), slow_terms(), &[]);
    let stop = Arc::new(AtomicBool::new(false));
    // The first page of a growing file, a wide file rewritten faster than the device writes, and a file with a page now
    // and then.
    let log = Dated::new(lab.file(0, 0, 0), 1);
    let (wide, rare) = (Dated::new(lab.file(0, 0, 0), 5_000), Dated::new(lab.file(0, 0, 0), 3));
    rewrite(&lab, &log, 100 * MILLISECOND, &stop);
    rewrite(&lab, &wide, MILLISECOND / 5, &stop);
    rewrite(&lab, &rare, 300 * MILLISECOND, &stop);
    let streams = stream(&lab, &log.file, 0);
    let oldest = oldest_in(&lab, 20, &[&log, &wide, &rare]);
    eprintln!("{oldest} ns old at most");
    // Two seconds, and two passes over a backlog of a second.
    assert!((2 * SECOND..6 * SECOND).contains(&oldest), "{oldest} ns");
    stop.store(true, Ordering::Relaxed);
    streams.store(true, Ordering::Relaxed);
}
