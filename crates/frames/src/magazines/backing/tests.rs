use super::*;

fn take(backing: &mut Backing, class: Mobility, out: &mut [u32]) -> usize {
    let taken = backing.take(class, true, out);
    taken + backing.take(class, false, &mut out[taken..])
}

fn take_block(backing: &mut Backing, order: Order, class: Mobility) -> Option<u32> {
    backing.take_block(order, class, true).or_else(|| backing.take_block(order, class, false))
}

fn order(order: u8) -> Order {
    Order::new(order).unwrap()
}

fn free_bits(backing: &Backing) -> u32 {
    backing.bits.iter().flatten().map(|word| word.count_ones()).sum()
}

#[test]
fn single_frames_come_lowest_first_from_begun_chunks() {
    let mut backing = Backing::new(0, 2048);
    let mut out = [0; 4];
    assert_eq!(take(&mut backing, Mobility::Movable, &mut out), 4);
    assert_eq!(out, [0, 1, 2, 3]);
    assert_eq!(take(&mut backing, Mobility::Unmovable, &mut out), 4);
    assert_eq!(out, [512, 513, 514, 515], "another class begins another chunk");
    assert_eq!(take(&mut backing, Mobility::Movable, &mut out), 4);
    assert_eq!(out, [4, 5, 6, 7]);
    backing.give(&[1]);
    assert_eq!(take(&mut backing, Mobility::Movable, &mut out[..1]), 1);
    assert_eq!(out[0], 1);
}

#[test]
fn exhaustion_takes_of_other_classes_and_then_ends() {
    let mut backing = Backing::new(0, 1024 + 3);
    let mut out = vec![0; 2000];
    assert_eq!(take(&mut backing, Mobility::Unmovable, &mut out[..1]), 1);
    assert_eq!(take(&mut backing, Mobility::Movable, &mut out[1..]), 1026);
    let mut taken = out[..1027].to_vec();
    taken.sort_unstable();
    assert_eq!(taken, (0..1027).collect::<Vec<u32>>());
    assert_eq!((backing.free_frames(), take(&mut backing, Mobility::Movable, &mut out)), (0, 0));
}

#[test]
fn neighbours_that_come_back_are_a_block_again() {
    let mut backing = Backing::new(0, 1024);
    let mut out = vec![0; 1024];
    take(&mut backing, Mobility::Movable, &mut out);
    assert_eq!(take_block(&mut backing, order(1), Mobility::Movable), None);
    for frame in out.iter().rev().filter(|frame| **frame != 77) {
        backing.give(&[*frame]);
    }
    assert_eq!(take_block(&mut backing, order(10), Mobility::Movable), None);
    assert_eq!(take_block(&mut backing, order(9), Mobility::Movable), Some(512));
    backing.give_block(512, order(9));
    backing.give(&[77]);
    assert_eq!(take_block(&mut backing, order(10), Mobility::Movable), Some(0));
}

#[test]
fn blocks_of_every_order_are_aligned_and_disjoint() {
    for frames in [1024, 4096, 5000] {
        for wanted in 0..=10 {
            let mut backing = Backing::new(0, frames);
            let mut seen = vec![false; frames as usize];
            while let Some(first) = take_block(&mut backing, order(wanted), Mobility::Reclaimable) {
                assert_eq!(first % (1 << wanted), 0);
                for frame in first..first + (1 << wanted) {
                    assert!(!std::mem::replace(&mut seen[frame as usize], true));
                }
            }
            let left = seen.iter().filter(|seen| !**seen).count() as u32;
            assert!(left < 1 << wanted || frames == 5000, "order {wanted} leaves {left} of {frames}");
            assert_eq!((left, left), (backing.free_frames(), free_bits(&backing)));
        }
    }
}

#[test]
fn small_blocks_do_not_break_whole_chunks_while_others_have_room() {
    let mut backing = Backing::new(0, 4096);
    assert_eq!(take_block(&mut backing, order(3), Mobility::Movable), Some(0));
    assert_eq!(take_block(&mut backing, order(6), Mobility::Movable), Some(64));
    assert_eq!(take_block(&mut backing, order(8), Mobility::Movable), Some(256));
    assert_eq!(take_block(&mut backing, order(0), Mobility::Movable), Some(8));
    assert_eq!(backing.whole.next(0), Some(1));
}

#[test]
fn runs_are_found_at_every_alignment() {
    for order_bits in 0..6_u8 {
        let size = 1_u32 << order_bits;
        for at in 0..64 / size {
            let word = (u64::MAX >> (64 - size)) << (at * size);
            assert_eq!(run_starts(word, order_bits), 1 << (at * size));
            assert_eq!(run_starts(word & word << 1, order_bits), 0, "one frame short");
        }
    }
}

#[test]
fn a_zone_that_does_not_begin_at_zero_speaks_of_the_arenas_frames() {
    let mut backing = Backing::new(4096, 1024);
    let mut out = [0; 2];
    take(&mut backing, Mobility::Movable, &mut out);
    assert_eq!(out, [4096, 4097]);
    assert_eq!(take_block(&mut backing, order(4), Mobility::Movable), Some(4112));
    assert_eq!(take_block(&mut backing, order(9), Mobility::Movable), Some(4608));
    backing.give(&out);
    backing.give_block(4112, order(4));
    backing.give_block(4608, order(9));
    assert_eq!(take_block(&mut backing, order(10), Mobility::Movable), Some(4096));
}
