//! The cost of evicting a page under an eviction policy, to be counted by callgrind: `eviction_cost POLICY COUNT`
//! brings COUNT pages into a full cache, each in the place of another. Every fourth was there not long ago, and every
//! other page that comes is read once more. Subtract the instructions of two counts and divide: the quotient is the
//! cost of one page, which comes, is used twice, and makes another go.
//!
//! Owns: the loop. Does not own: the policy. Invariants: the same arguments mean the same work.

#![forbid(unsafe_code)]

use afflux_engine::eviction::{Admitted, Offline};

const FRAMES: u64 = 4096;
/// Frames that reclaim frees at a time.
const BATCH: usize = 32;

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().collect();
    let [_, policy, count] = &words[..] else { return Err("eviction_cost POLICY COUNT".to_owned()) };
    let count: u64 = count.parse().map_err(|_| format!("'{count}' is no count"))?;
    let mut cache = Offline::new(afflux_linux_policies::eviction(policy)?, FRAMES as u32);
    for number in 0..FRAMES + count {
        if !cache.has_free_frame() {
            cache.evict(BATCH, |_| {});
        }
        let again = number.is_multiple_of(4) && number > FRAMES;
        let page = if again { number - FRAMES / 2 } else { FRAMES + number };
        let frame = cache.admit(page, Admitted::Demand);
        frame.filter(|_| number.is_multiple_of(2)).into_iter().for_each(|frame| cache.read(frame));
    }
    Ok(())
}
