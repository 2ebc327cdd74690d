use super::*;
use crate::magazines::zones::Zones;

fn order(order: u8) -> Order {
    Order::new(order).unwrap()
}

fn take(zones: &Zones, class: Mobility, out: &mut [u32]) -> usize {
    zones.take(0, 0, class, out)
}

fn take_block(zones: &Zones, order: Order, class: Mobility) -> Option<u32> {
    zones.take_block(0, 0, order, class)
}

#[test]
fn single_frames_come_lowest_first_from_begun_chunks() {
    let zones = Zones::new(2048, 1);
    let mut out = [0; 4];
    assert_eq!(take(&zones, Mobility::Movable, &mut out), 4);
    assert_eq!(out, [0, 1, 2, 3]);
    assert_eq!(take(&zones, Mobility::Unmovable, &mut out), 4);
    assert_eq!(out, [512, 513, 514, 515], "another class begins another chunk");
    assert_eq!(take(&zones, Mobility::Movable, &mut out), 4);
    assert_eq!(out, [4, 5, 6, 7]);
    zones.give(&[1]);
    assert_eq!(take(&zones, Mobility::Movable, &mut out[..1]), 1);
    assert_eq!(out[0], 1);
}

#[test]
fn exhaustion_takes_of_other_classes_and_then_ends() {
    for frames in [1027, 40_000] {
        let zones = Zones::new(frames, 1);
        let mut out = vec![0; frames as usize + 100];
        assert_eq!(take(&zones, Mobility::Unmovable, &mut out[..1]), 1);
        assert_eq!(take(&zones, Mobility::Movable, &mut out[1..]), frames as usize - 1);
        let mut taken = out[..frames as usize].to_vec();
        taken.sort_unstable();
        assert_eq!(taken, (0..frames).collect::<Vec<u32>>());
        assert_eq!((zones.free_frames(), take(&zones, Mobility::Movable, &mut out)), (0, 0));
    }
}

#[test]
fn a_floor_is_left() {
    let zones = Zones::new(2048, 1);
    let mut out = vec![0; 2048];
    assert_eq!(zones.take(0, 2000, Mobility::Movable, &mut out), 48);
    assert_eq!(zones.take_block(0, 1490, order(9), Mobility::Movable), None);
    assert_eq!(zones.take_huge(900, &mut out[..4]), 2);
    assert_eq!((zones.free_frames(), zones.take_huge(900, &mut out[..4])), (2000 - 1024, 0));
}

#[test]
fn neighbours_that_come_back_are_a_block_again() {
    let zones = Zones::new(1024, 1);
    let mut out = vec![0; 1024];
    take(&zones, Mobility::Movable, &mut out);
    assert_eq!(take_block(&zones, order(1), Mobility::Movable), None);
    for frame in out.iter().rev().filter(|frame| **frame != 77) {
        zones.give(&[*frame]);
    }
    assert_eq!(take_block(&zones, order(10), Mobility::Movable), None);
    assert_eq!(take_block(&zones, order(9), Mobility::Movable), Some(512));
    zones.give_block(512, order(9));
    zones.give(&[77]);
    assert_eq!(take_block(&zones, order(10), Mobility::Movable), Some(0));
}

#[test]
fn frames_of_several_zones_go_back_together() {
    let zones = Zones::new(40_000, 1);
    let mut out = vec![0; 40_000];
    take(&zones, Mobility::Movable, &mut out);
    out.sort_unstable_by_key(|frame| frame.wrapping_mul(0x9E37_79B1));
    out.chunks(100).for_each(|frames| zones.give(frames));
    assert_eq!(zones.free_frames(), 40_000);
    let pairs = std::iter::from_fn(|| take_block(&zones, order(10), Mobility::Movable)).count();
    assert_eq!(pairs, 39);
}

#[test]
fn blocks_of_every_order_are_aligned_and_disjoint() {
    for frames in [1024, 4096, 5000, 20_000] {
        for wanted in 0..=10 {
            let zones = Zones::new(frames, 1);
            let mut seen = vec![false; frames as usize];
            while let Some(first) = take_block(&zones, order(wanted), Mobility::Reclaimable) {
                assert_eq!(first % (1 << wanted), 0);
                for frame in first..first + (1 << wanted) {
                    assert!(!std::mem::replace(&mut seen[frame as usize], true));
                }
            }
            let left = seen.iter().filter(|seen| !**seen).count() as u32;
            assert!(left < 1 << wanted, "order {wanted} leaves {left} of {frames}");
            assert_eq!(left, zones.free_frames());
        }
    }
}

#[test]
fn small_blocks_do_not_break_whole_chunks_while_others_have_room() {
    let zones = Zones::new(4096, 1);
    assert_eq!(take_block(&zones, order(3), Mobility::Movable), Some(0));
    assert_eq!(take_block(&zones, order(6), Mobility::Movable), Some(64));
    assert_eq!(take_block(&zones, order(8), Mobility::Movable), Some(256));
    assert_eq!(take_block(&zones, order(0), Mobility::Movable), Some(8));
    assert_eq!(take_block(&zones, order(9), Mobility::Movable), Some(512));
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
