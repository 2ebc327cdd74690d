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

/// Random allocations and frees; some frames are passed to other threads, which free them.
pub(super) fn soak(magazines: &Magazines, seed: u64, steps: usize, passed: &Mutex<Vec<u32>>) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut held: Vec<u32> = Vec::new();
    for _ in 0..steps {
        match random.below(12) {
            0..6 => {
                let effort = [Effort::Normal, Effort::NoRetry, Effort::Reserve][random.below(3)];
                held.extend((0..1 + random.below(20)).map_while(|_| take(magazines, effort)));
            }
            6 => {
                let count = random.below(150) as u32;
                magazines.allocate_bulk(cpu::slot(), count, Effort::Normal, |frame| held.push(frame));
            }
            7 if !held.is_empty() => {
                let frame = held.swap_remove(random.below(held.len()));
                passed.lock().expect("no panic").push(frame);
            }
            8 => {
                let others: Vec<_> = passed.lock().expect("no panic").drain(..).collect();
                others.iter().for_each(|frame| give(magazines, *frame).expect("ours"));
            }
            _ => {
                for _ in 0..1 + random.below(1 + held.len() / 4) {
                    if !held.is_empty() {
                        give(magazines, held.swap_remove(random.below(held.len()))).expect("ours");
                    }
                }
            }
        }
    }
    held.iter().for_each(|frame| give(magazines, *frame).expect("ours"));
}

/// One thread acts as four CPUs, against a set of free frames. Every allocated frame was free. A failure for want of
/// frames is exact to the frame, and the counts agree after every step.
#[test]
fn behaves_as_a_set_of_free_frames() {
    for seed in 1..=40_u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let frames = [64, 200, 1024, 3000, 20_000][random.below(5)];
        let magazines = Magazines::new(frames);
        let marks = magazines.shared.marks;
        let mut free = vec![true; frames as usize];
        let mut count = frames;
        let mut held: Vec<u32> = Vec::new();
        for step in 0..6000 {
            crate::run_as_cpu((random.below(5) > 0).then_some(random.below(4) as u32));
            if random.below(100) < if step / 500 % 2 == 0 { 70 } else { 30 } {
                let effort = [Effort::Normal, Effort::NoRetry, Effort::Reserve][random.below(3)];
                // By one, or so many that the marks are reached in the large arenas, too.
                for _ in 0..[1, 1, 1, 40][random.below(4)] {
                    let above_mark = count > marks.floor(effort);
                    let Some(frame) = take(&magazines, effort) else {
                        // A given CPU cannot reach the frames in this thread's own stash.
                        let stashes: usize = magazines.stashes.iter().map(Stash::len).sum();
                        let reachable = count - stashes as u32 > marks.floor(effort);
                        let must = above_mark && effort != Effort::NoRetry && reachable;
                        assert!(!must, "seed {seed} step {step}: {count} of {frames} free");
                        break;
                    };
                    assert!(above_mark, "seed {seed} step {step}: {effort:?} left less than its mark");
                    assert!(std::mem::replace(&mut free[frame as usize], false), "seed {seed} step {step}");
                    count -= 1;
                    held.push(frame);
                }
            } else {
                for _ in 0..[1, 1, 1, 40][random.below(4)].min(held.len()) {
                    let frame = held.swap_remove(random.below(held.len()));
                    give(&magazines, frame).unwrap();
                    free[frame as usize] = true;
                    count += 1;
                }
            }
            assert_eq!(magazines.free_count(), count, "seed {seed} step {step}");
        }
        crate::run_as_cpu(None);
    }
}
