#![allow(clippy::unwrap_used, reason = "tests")]

use afflux_engine::policy::{DeviceCounts, SharedCounts};

use super::*;

const LIMIT_PAGES: u64 = ZFS_LIKE.limit_pages;
const DELAYED_FROM_PAGES: u64 = ZFS_LIKE.delayed_from_pages;

fn view(now_ns: u64, dirty: u64) -> View {
    let mut view = View::new(Nanos(now_ns), DeviceCounts::default());
    view.shared = SharedCounts { dirty, ..SharedCounts::default() };
    view
}

fn asked(now_ns: u64, dirty: u64, last_ns: &mut u64) -> Admission {
    let mut pace = Pace::UNASKED;
    let memory = LentMemory { payer: &mut false, device: &mut (), shared: last_ns, pace: &mut pace };
    ZFS_LIKE.admit(&view(now_ns, dirty), memory)
}

fn pause_ns(admission: Admission) -> Option<u64> {
    if let Admission::Pause(pause) = admission { Some(pause.ns) } else { None }
}

#[test]
fn the_curve_is_that_of_openzfs() {
    let half_way = u64::midpoint(DELAYED_FROM_PAGES, LIMIT_PAGES);
    assert_eq!(ZFS_LIKE.delay_ns(DELAYED_FROM_PAGES), 0);
    assert!(
        ZFS_LIKE.delay_ns(half_way).abs_diff(SCALE_NS) < 50,
        "the scale is the time in the middle: {}",
        ZFS_LIKE.delay_ns(half_way)
    );
    assert_eq!(ZFS_LIKE.delay_ns(LIMIT_PAGES - 1), SCALE_NS * (LIMIT_PAGES - 1 - DELAYED_FROM_PAGES).min(200));
    assert_eq!(ZFS_LIKE.delay_ns(LIMIT_PAGES), DELAY_NS_MAX);
}

#[test]
fn writers_take_turns_and_stop_at_the_limit() {
    let (half_way, mut last_ns) = (u64::midpoint(DELAYED_FROM_PAGES, LIMIT_PAGES), 0);
    assert_eq!(asked(7, DELAYED_FROM_PAGES, &mut last_ns), Admission::Enter);
    let delay = ZFS_LIKE.delay_ns(half_way);
    assert_eq!(pause_ns(asked(1000, half_way, &mut last_ns)), Some(delay));
    assert_eq!(pause_ns(asked(1000, half_way, &mut last_ns)), Some(2 * delay), "behind the one before");
    assert_eq!(pause_ns(asked(1000 + 3 * delay, half_way, &mut last_ns)), Some(delay), "nobody waits any more");
    let stopped = asked(0, LIMIT_PAGES, &mut last_ns);
    assert!(matches!(stopped, Admission::Pause(Pause { ns: LOOK_NS, .. })), "{stopped:?}");
}
