use std::sync::Mutex;

use super::*;

/// A small generator; the sequence depends on the seed alone.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }
}

/// Random allocations and frees of all orders; some blocks are passed to other threads, which free
/// them.
pub(super) fn soak(magazines: &Magazines, seed: u64, steps: usize, passed: &Mutex<Vec<(u32, Order)>>) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut held: Vec<(u32, Order)> = Vec::new();
    for _ in 0..steps {
        match random.below(12) {
            0..6 => {
                let order = order([0, 0, 0, 0, 0, 1, 2, 3, 5, 6, 8, 9, 10][random.below(13)]);
                let class = Mobility::ALL[random.below(3)];
                let effort = [Effort::Normal, Effort::NoRetry, Effort::Reserve][random.below(3)];
                held.extend(magazines.allocate(order, class, effort).map(|first| (first, order)));
            }
            6 => {
                let count = random.below(150) as u32;
                magazines.allocate_bulk(count, Mobility::Movable, Effort::Normal, |frame| {
                    held.push((frame, Order::SINGLE));
                });
            }
            7 if !held.is_empty() => {
                let block = held.swap_remove(random.below(held.len()));
                passed.lock().expect("no panic").push(block);
            }
            8 => {
                let others: Vec<_> = passed.lock().expect("no panic").drain(..).collect();
                others.iter().for_each(|(first, order)| magazines.free(*first, *order).expect("ours"));
            }
            _ => {
                for _ in 0..1 + random.below(1 + held.len() / 4) {
                    if !held.is_empty() {
                        let (first, order) = held.swap_remove(random.below(held.len()));
                        magazines.free(first, order).expect("ours");
                    }
                }
            }
        }
    }
    held.iter().for_each(|(first, order)| magazines.free(*first, *order).expect("ours"));
}

/// One thread acts as four CPUs, against a set of free frames. Every allocated block is aligned and
/// was free. A failure for want of frames is exact to the frame, and the counts agree after every
/// step.
#[test]
fn behaves_as_a_set_of_free_frames() {
    for seed in 1..=40_u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let frames = [64, 200, 1024, 3000, 20_000][random.below(5)];
        let magazines = <Magazines as Allocator>::new(frames);
        let marks = magazines.watermarks();
        let mut free = vec![true; frames as usize];
        let mut count = frames;
        let mut held: Vec<(u32, Order)> = Vec::new();
        for step in 0..3000 {
            crate::run_as_cpu((random.below(5) > 0).then_some(random.below(4) as u32));
            if random.below(100) < if step / 500 % 2 == 0 { 60 } else { 40 } {
                let order = order([0, 0, 0, 0, 0, 1, 3, 6, 9, 10][random.below(10)]);
                let effort = [Effort::Normal, Effort::NoRetry, Effort::Reserve][random.below(3)];
                let class = Mobility::ALL[random.below(3)];
                let above_mark = count >= order.frames() + marks.floor(effort);
                match magazines.allocate(order, class, effort) {
                    Some(first) => {
                        assert!(above_mark, "seed {seed} step {step}: {effort:?} left less than its mark");
                        assert_eq!(first % order.frames(), 0, "seed {seed} step {step}");
                        for frame in &mut free[first as usize..(first + order.frames()) as usize] {
                            assert!(std::mem::replace(frame, false), "seed {seed} step {step}");
                        }
                        count -= order.frames();
                        held.push((first, order));
                    }
                    None => {
                        let must = order == Order::SINGLE && above_mark && effort != Effort::NoRetry;
                        // A given CPU cannot reach the frames in this thread's own hand.
                        let hands: usize = magazines.hands.iter().map(Hands::len).sum();
                        let reachable = count - hands as u32 > marks.floor(effort);
                        assert!(!(must && reachable), "seed {seed} step {step}: {count} of {frames} free");
                    }
                }
            } else if !held.is_empty() {
                let (first, order) = held.swap_remove(random.below(held.len()));
                magazines.free(first, order).unwrap();
                free[first as usize..(first + order.frames()) as usize].fill(true);
                count += order.frames();
            }
            assert_eq!(magazines.free_count(), count, "seed {seed} step {step}");
        }
        crate::run_as_cpu(None);
    }
}
