//! Sequential readers, each of its own file, beside a hot set.
//!
//! Owns: this generator. Does not own: the presence of readahead pages when their reader comes.
//! Invariants: a reader reads each page of its file once, in order; the next reader is drawn.

use afflux_simulator::Random;

use super::touch::{Sequence, Sizes, Touch};
use crate::zipf::Zipf;

/// Pages that each reader has read ahead.
const AHEAD_PAGES: u8 = 4;

pub(super) fn streams(sizes: Sizes, random: &mut Random, pages_a_stream: u64) -> Sequence {
    let hot_pages = sizes.pages / 4;
    let hot = Zipf::new(hot_pages, 0.999_99);
    let count = (sizes.pages / pages_a_stream).max(1);
    let drawn: Vec<u64> = (0..sizes.touches / 2).map(|_| random.below(count)).collect();
    let mut lengths = vec![0_u64; count as usize];
    drawn.iter().for_each(|stream| lengths[*stream as usize] += 1);
    let mut next: Vec<u64> = lengths
        .iter()
        .scan(hot_pages, |start, length| {
            let first = *start;
            // Pages read ahead past its last one belong to no other file.
            *start += length + u64::from(AHEAD_PAGES);
            Some(first)
        })
        .collect();
    let files = std::iter::once(0).chain(next.iter().map(|first| *first as u32)).collect();
    let mut touches = Vec::with_capacity(sizes.touches as usize);
    for stream in drawn {
        let page = &mut next[stream as usize];
        touches.push(Touch { ahead: AHEAD_PAGES, ..Touch::read(*page) });
        *page += 1;
        touches.push(Touch::read(hot.draw(random)));
    }
    Sequence { touches, files }
}
