#![allow(clippy::unwrap_used, reason = "tests")]

use afflux_simulator::{CostTable, CpuOptions, Slice, World, WorldOptions};

use super::form::Progress;
use super::page_alloc::Gfp;
use super::*;

const COSTS: Costs = Costs { allocate_ns: 100, add_ns: 500, copy_ns: 5_000, reclaim_ns: 1_000, pass_ns: 20_000 };

/// A machine of 1 GiB with 3 CPUs, of which no thread speaks. Its marks are 1024, 1280, 1536.
fn options(form_name: &str, page_frames: u32) -> MemoryOptions {
    MemoryOptions {
        memory_bytes: 1 << 30,
        page_frames,
        cpus: 3,
        drift_frames: Some(0),
        files: 8,
        cached_objects: 0,
        costs: COSTS,
        form: form(form_name).unwrap(),
        kswapd_ahead: false,
    }
}

/// Frames that stay free: the last batch lies in a CPU's lists, where no count shows it.
const FREE: u32 = 64;

fn world() -> World {
    let cpus = CpuOptions { slice: Slice::Fixed(3_000_000), costs: CostTable::free(), ..CpuOptions::count(3) };
    World::new(WorldOptions::machine(3, cpus))
}

/// Runs `body` with a memory in which `free` frames are free; a page in the others is held if `held` says so, else a
/// file's.
fn with_held<T>(
    options: MemoryOptions,
    free: u32,
    held: impl Fn(u32) -> Option<Held>,
    body: impl AsyncFnOnce(&Memory) -> T,
) -> T {
    let world = world();
    let memory = Memory::boot(world.platform(), options);
    let fill = || {
        for page in 0..options.page_frames - free {
            match held(page) {
                Some(held) => memory.lru().add_held(memory.take(0, 0).unwrap(), held),
                None => memory.lru().add(memory.take(0, 0).unwrap(), Owner { file: 0, page }),
            }
        }
        memory.zone.drain_all();
    };
    world
        .run(async {
            // By now kswapd sleeps until it is woken.
            memory.sleep(200_000_000).await;
            fill();
            body(&memory).await
        })
        .unwrap()
}

fn with<T>(options: MemoryOptions, free: u32, body: impl AsyncFnOnce(&Memory) -> T) -> T {
    with_held(options, free, |_| None, body)
}

/// Pages freed and scanned by one reclaim, and the lists after it.
fn reclaim(name: &str, held: impl Fn(u32) -> Option<Held>) -> (u64, u64, lru::Sizes) {
    with_held(options(name, 204_800 + FREE), FREE, held, async |memory: &Memory| {
        let (reclaimed, _) = memory.try_to_free_pages(0).await;
        (reclaimed, memory.counted(Event::ScanDirect), memory.lru().sizes())
    })
}

#[test]
fn the_marks_are_the_formulas() {
    with(options("base", 4096), 4096, async |memory: &Memory| {
        assert_eq!(memory.watermarks(), Watermarks { min: 1024, low: 1280, high: 1536 });
    });
    let drift = MemoryOptions { drift_frames: None, ..options("base", 4096) };
    // 2 bits of 3 CPUs, 4 bits of 8 units of 128 MiB: 2 * 2 * (1 + 4).
    with(drift, 4096, async |memory: &Memory| assert_eq!(memory.drift_frames(), 20));
}

#[test]
fn a_reclaim_is_a_sum_of_whole_passes() {
    // 204,800 pages: 50, 100, 200, 400, 800 a pass, of the list that the passes before have left.
    for (name, pages) in [("base", 50), ("wmark-min", 1_550), ("wmark-high", 1_550), ("time-limit-10ms", 1_550)] {
        with(options(name, 204_800 + FREE), FREE, async |memory: &Memory| {
            let (reclaimed, _) = memory.try_to_free_pages(0).await;
            assert!(reclaimed.abs_diff(pages) <= 12, "{name}: {reclaimed}, not {pages}");
            assert_eq!(memory.counted(Event::AllocStall), 1);
            let counts = (memory.counted(Event::ScanDirect), memory.counted(Event::StealDirect));
            assert_eq!(counts, (reclaimed, reclaimed));
            // Each page and each pass takes its time.
            let passes = if name == "base" { 1 } else { 5 };
            assert_eq!(memory.take_delays(), [(0, reclaimed * 1_000 + passes * 20_000)]);
        });
    }
}

#[test]
fn a_later_pass_ends_in_its_middle_once_it_has_brought_the_target_by_itself() {
    let of = |frames| {
        with(options("base", frames + FREE), FREE, async |memory: &Memory| memory.try_to_free_pages(0).await.0)
    };
    assert_eq!(of(18_000), 4 + 8 + 17 + 32);
    // The first pass never does.
    assert_eq!(of(400_000), 97);
}

#[test]
fn pages_that_a_scan_cannot_free_are_scanned_and_stay() {
    // They lie first: the eleventh pass is the first that gets past them.
    let third = |held| move |page| (page < 68_000).then_some(held);
    for name in ["wmark-high", "wmark-high-limited-scan"] {
        // A limited scan must have 32 pages before it may end, so here it helps nobody.
        let (reclaimed, scanned, sizes) = reclaim(name, third(Held::Dirty));
        assert!(reclaimed >= 32 && scanned - reclaimed == 68_000, "{name}: {reclaimed} {scanned}");
        assert_eq!((sizes.active, sizes.inactive), (0, 204_800 - reclaimed));
    }
    // Mapped pages go to the active list, which stays out of it while it is the shorter one.
    let (reclaimed, _, sizes) = reclaim("wmark-high", third(Held::Mapped));
    assert_eq!((sizes.active, sizes.inactive), (68_000, 136_800 - reclaimed));
}

#[test]
fn a_limited_scan_ends_before_its_target_where_most_pages_cannot_go() {
    // The limit of 3,072 looks comes before the target of 1,536 pages only if fewer than half of them can go.
    let dirty = |of_10| move |page| (page % 10 < of_10).then_some(Held::Dirty);
    let ((all, all_scanned, _), (limited, limited_scanned, _)) =
        (reclaim("wmark-high", dirty(8)), reclaim("wmark-high-limited-scan", dirty(8)));
    assert!(all >= 1_536 && (32..1_536).contains(&limited), "{all} {limited}");
    // Passes of 50, 100, 200, ... pages: the sixth leads beyond 3,072.
    assert!(limited_scanned.abs_diff(3_150) < 20 && all_scanned > limited_scanned, "{limited_scanned} {all_scanned}");
    assert_eq!(reclaim("wmark-high", dirty(1)).0, reclaim("wmark-high-limited-scan", dirty(1)).0);
}

#[test]
fn nothing_ends_a_reclaim_before_its_smallest_target() {
    let marks = Watermarks { min: 1773, low: 2216, high: 2659 };
    let at =
        |reclaimed, scanned, ms: u64, free| Progress { reclaimed, scanned, began_ns: 0, now_ns: ms * 1_000_000, free };
    let scanned_much = 2 * u64::from(marks.high) + 1;
    for (name, progress, enough) in [
        ("base", at(31, 31, 9_999, 9_999), false),
        ("base", at(32, 32, 0, 0), true),
        ("wmark-min", at(1772, 1772, 9_999, 9_999), false),
        ("wmark-min", at(1773, 1773, 0, 0), true),
        ("wmark-high", at(2658, scanned_much, 9_999, 9_999), false),
        ("wmark-high", at(2659, 2659, 0, 0), true),
        ("wmark-high-limited-scan", at(32, scanned_much - 1, 9_999, 9_999), false),
        ("wmark-high-limited-scan", at(32, scanned_much, 0, 0), true),
        ("wmark-high-limited-scan", at(31, scanned_much, 0, 0), false),
        ("time-limit-100ms", at(32, 32, 100, 0), false),
        ("time-limit-100ms", at(32, 32, 101, 0), true),
        ("time-limit-100ms", at(31, 31, 101, 0), false),
        ("time-limit-10ms", at(32, 32, 11, 0), true),
        ("stop-above-high", at(32, 32, 0, 2659), false),
        ("stop-above-high", at(32, 32, 0, 2660), true),
        ("stop-above-high", at(31, 31, 0, 2660), false),
    ] {
        assert_eq!(form(name).unwrap().has_done_enough(&progress, &marks), enough, "{name}: {progress:?}");
    }
    let error = form("wmark-low").unwrap_err().to_string();
    assert!(error.contains("wmark-low") && error.contains("keep-freed-pages"), "{error}");
}

#[test]
fn freed_pages_lie_in_a_cpus_lists_until_a_drain_interrupts_the_others() {
    let tried = |name| {
        with(options(name, 204_800), 1024, async |memory: &Memory| {
            let frame = memory.alloc_page(0, Gfp::NoRetry).await;
            (frame.is_some(), memory.counted(Event::AllocFail), memory.interrupts().iter().sum::<u64>())
        })
    };
    // 50 pages are less than a CPU's lists hold (186): base needs its drain, and succeeds.
    assert_eq!(tried("base"), (true, 0, 2));
    assert_eq!(tried("keep-freed-pages"), (true, 0, 2));
    assert_eq!(tried("wmark-high"), (true, 0, 0));
}

#[test]
fn a_request_without_retry_fails_once_and_another_never() {
    // All pages are dirty, so that reclaim frees nothing.
    with_held(
        options("base", 4096),
        1000,
        |_| Some(Held::Dirty),
        async |memory: &Memory| {
            assert!(memory.alloc_page(0, Gfp::NoRetry).await.is_none());
            assert_eq!((memory.counted(Event::AllocFail), memory.counted(Event::AllocStall)), (1, 1));
        },
    );
    // Two requests to its own node fail at the low mark, the third is served above the min mark, and wakes kswapd.
    with(options("base", 8192), 1200, async |memory: &Memory| {
        assert!(memory.alloc_slab(0).await.is_some());
        assert_eq!((memory.counted(Event::SlabAllocFail), memory.counted(Event::AllocStall)), (2, 0));
    });
}

#[test]
fn kswapd_balances_up_to_the_high_mark_and_counts_its_short_sleeps() {
    with(options("base", 204_800), 3_000, async |memory: &Memory| {
        let take_down_to = |free| {
            while memory.zone.seen_free() > free {
                memory.take(0, 0).unwrap();
            }
        };
        let quickly = || [Event::LowMarkHitQuickly, Event::HighMarkHitQuickly].map(|event| memory.counted(event));
        take_down_to(1_250);
        memory.sleep(150_000_000).await;
        assert_eq!(memory.counted(Event::PageOutRun), 0, "nobody has woken it");
        assert!(memory.alloc_page(0, Gfp::MayRetry).await.is_some());
        memory.sleep(50_000_000).await;
        // Runs of one pass of 49 pages each; some of them lie in its CPU's lists, which hold up to 186.
        let (runs, freed) = (memory.counted(Event::PageOutRun), memory.counted(Event::StealKswapd));
        assert!(memory.zone.seen_free() > 1_536 && freed.abs_diff(49 * runs) <= 49 && runs >= 6, "{runs} {freed}");
        // Woken in its short sleep.
        take_down_to(1_250);
        memory.wakeup_kswapd();
        memory.sleep(10_000_000).await;
        assert_eq!(quickly(), [1, 0]);
        // Below the high mark but above the low one, nobody wakes it; it finds out by itself.
        take_down_to(1_330);
        memory.wakeup_kswapd();
        memory.sleep(150_000_000).await;
        assert_eq!(quickly(), [1, 1]);
    });
}

#[test]
fn a_reader_reads_each_page_once_and_what_was_evicted_again() {
    let counts = with(options("base", 8192), 8192, async |memory: &Memory| {
        let mut reader = filemap::Reader::new(0, 1);
        while memory.read(&mut reader, 20_000).await {}
        (memory.counted(Event::StealKswapd) + memory.counted(Event::StealDirect), memory.lru().sizes().inactive)
    });
    // kswapd may have a batch in its hands at the end.
    assert!((19_900..=20_000).contains(&(counts.0 + counts.1)), "{counts:?}");
    assert_eq!([1, 4, 8, 16, 32].map(filemap::next_window), [4, 8, 16, 32, 32]);
}

#[test]
fn a_page_is_there_until_its_frame_is_freed_or_its_reader_has_passed_it() {
    let mut lru = Lru::new(8, 2);
    let page = |page| Owner { file: 1, page };
    (0..3).for_each(|frame| lru.add(frame, page(frame)));
    assert!((0..3).all(|at| lru.has(page(at))) && !lru.has(page(3)) && !lru.has(Owner { file: 0, page: 0 }));
    let mut isolated = lru.isolate(lru::List::InactiveFile, 2);
    assert_eq!((isolated.as_slice(), lru.sizes()), (&[0, 1][..], lru::Sizes { inactive: 1, active: 0, isolated: 2 }));
    lru.mark_read(page(0));
    lru.shrink(&mut isolated);
    assert_eq!(lru.sizes(), lru::Sizes { inactive: 1, active: 0, isolated: 0 });
    assert_eq!([0, 1, 2].map(|at| lru.has(page(at))), [false, false, true], "1 went before it was read");
    // A page 64 further on has the same bit, and stays when one that was read goes.
    lru.mark_read(page(2));
    lru.add(3, page(2 + lru::AHEAD_PAGES));
    let mut isolated = lru.isolate(lru::List::InactiveFile, 1);
    lru.shrink(&mut isolated);
    assert!(lru.has(page(2 + lru::AHEAD_PAGES)));
}
