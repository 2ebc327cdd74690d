//! Belady's policy: evicts the page whose next use is farthest away. No policy without knowledge of the future does
//! better.
//!
//! Owns: the policy and the list of all touches, from which it knows the future.
//! Does not own: the cache trait (`mod`).
//! Invariants: touches come in the order of that list.

use std::collections::BinaryHeap;

use afflux_workloads::touches::Touch;

use super::Cache;

const NEVER: u32 = u32::MAX;

pub(in super::super) struct Belady {
    frames: usize,
    held: usize,
    /// The touches of each page, in order; the pages follow each other.
    uses: Vec<u32>,
    /// For each page, the index in `uses` of its next touch.
    next: Vec<u32>,
    /// For each page, the index in `uses` after its last touch.
    end: Vec<u32>,
    there: Vec<bool>,
    /// Pages in the cache by their next touch; an entry may be out of date.
    order: BinaryHeap<(u32, u32)>,
}

impl Belady {
    pub(in super::super) fn new(frames: usize, pages: usize, touches: &[Touch]) -> Self {
        let mut end = vec![0_u32; pages];
        touches.iter().for_each(|touch| end[touch.page as usize] += 1);
        let mut sum = 0;
        let next: Vec<u32> = end
            .iter_mut()
            .map(|count| {
                let first = sum;
                sum += *count;
                *count = sum;
                first
            })
            .collect();
        let (mut at, mut uses) = (next.clone(), vec![0; touches.len()]);
        for (time, touch) in touches.iter().enumerate() {
            let place = &mut at[touch.page as usize];
            uses[*place as usize] = time as u32;
            *place += 1;
        }
        Self { frames, held: 0, uses, next, end, there: vec![false; pages], order: BinaryHeap::new() }
    }

    fn next_use(&self, page: u32) -> u32 {
        let (next, end) = (self.next[page as usize], self.end[page as usize]);
        if next < end { self.uses[next as usize] } else { NEVER }
    }
}

impl Cache for Belady {
    fn used(&mut self, page: u32) {
        self.next[page as usize] += 1;
        self.order.push((self.next_use(page), page));
    }

    fn insert(&mut self, page: u32, ahead: bool) {
        // A page that is not read ahead was touched.
        self.next[page as usize] += u32::from(!ahead);
        while self.held == self.frames {
            let Some((time, page)) = self.order.pop() else { break };
            if self.there[page as usize] && self.next_use(page) == time {
                self.there[page as usize] = false;
                self.held -= 1;
            }
        }
        self.there[page as usize] = true;
        self.held += 1;
        self.order.push((self.next_use(page), page));
    }

    fn holds(&self, page: u32) -> bool {
        self.there[page as usize]
    }
}
