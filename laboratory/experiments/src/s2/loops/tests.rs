use afflux_kernels::zone::{ShortcutDrain, Zone};

use super::*;

/// A zone that records its requests.
struct Noting {
    zone: Zone<ShortcutDrain>,
    asked: Mutex<Vec<(Mobility, u8)>>,
}

impl Allocator for Noting {
    fn allocate(&self, cpu: usize, order: u8, mobility: Mobility) -> Option<u32> {
        self.asked.lock().unwrap().push((mobility, order));
        self.zone.allocate(cpu, order, mobility)
    }

    fn free(&self, cpu: usize, first: u32, order: u8) {
        Allocator::free(&self.zone, cpu, first, order);
    }
}

fn asked(work: LoopKind, operations: u64) -> Vec<(Mobility, u8)> {
    let noting = Noting { zone: Zone::new(1 << 15, 1), asked: Mutex::default() };
    run(&noting, &Load { work, threads: 1, operations, timed: false }, &Memory::new()).unwrap();
    assert_eq!(noting.zone.free_count(), 1 << 15, "all of it is given back");
    noting.asked.into_inner().unwrap()
}

/// The first thread draws the same numbers in every run, so these figures are exact: 60, 20 and 20 % of 100,000, up to
/// the scatter of the draw; and 88, 7, 3 and 2 %.
#[test]
fn kernbench_asks_for_the_classes_and_sizes_that_its_comment_says() {
    let asked = asked(LoopKind::Kernbench, 100_000);
    let of = |class| asked.iter().filter(|(mobility, _)| *mobility == class).count();
    let counts = [Mobility::Movable, Mobility::Reclaimable, Mobility::Unmovable].map(of);
    assert_eq!(counts, [60_014, 19_912, 20_074]);
    let orders = [0, 1, 2, 3].map(|order| asked.iter().filter(|(_, asked)| *asked == order).count());
    assert_eq!(orders, [88_071, 6_920, 3_029, 1_980]);
    let first: String = asked[..24].iter().map(|(class, _)| ["U", "R", "M"][class.index()]).collect();
    assert_eq!(first, "MRMRMMMMRURMMMMMMRUURRMM");
}

#[test]
fn the_other_loops_ask_for_single_frames_of_the_class_that_they_stand_for() {
    let single = |class| (class, 0);
    assert!(asked(LoopKind::PageTest, 512).into_iter().all(|asked| asked == single(Mobility::Movable)));
    // A page table, then the heap's pages.
    let heap = [&[single(Mobility::Unmovable)][..], &[single(Mobility::Movable); HEAP_PAGES]].concat();
    assert_eq!(asked(LoopKind::BrkTest, 2 * HEAP_PAGES as u64), [&heap[..], &heap].concat());
    // One message in eight opens a file or a socket.
    let messages = asked(LoopKind::Hackbench, 64);
    for (number, (class, order)) in messages.into_iter().enumerate() {
        let expected = if number % 8 == 0 { Mobility::Reclaimable } else { Mobility::Unmovable };
        assert_eq!((class, order), single(expected), "message {number}");
    }
}

#[test]
fn the_loops_of_single_frames_ask_for_nothing_larger() {
    for work in LoopKind::named("all").unwrap() {
        let largest = asked(work, 10_000).into_iter().map(|(_, order)| order).max();
        assert_eq!(work.asks_single_frames(), largest == Some(0), "{}", work.name());
    }
}
