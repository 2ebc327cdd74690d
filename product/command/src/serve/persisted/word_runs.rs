//! Words of which most are zero, as bytes: the runs of the others, each with its place and its length.
//!
//! Owns: the form of the bytes, their bound.
//! Does not own: the words and their meaning, the file.
//! Invariants: the bytes are never more than [`bytes_max`]. Bytes of any other form are refused. No word outside the
//! memory is stored.

use std::sync::atomic::{AtomicU64, Ordering};

const WORD_BYTES: usize = 8;
/// The place and the length of a run: two numbers of 32 bits.
const RUN_HEAD_BYTES: usize = 8;
/// A run ends before so many zeros: they take no less room than the head of another run.
const GAP_WORDS: usize = 2;

/// Most bytes for so many words.
pub(crate) const fn bytes_max(words: usize) -> usize {
    RUN_HEAD_BYTES + words * WORD_BYTES
}

/// The words as bytes.
pub(crate) fn encode(words: &[AtomicU64]) -> Vec<u8> {
    let is_zero = |at: usize| words[at].load(Ordering::Relaxed) == 0;
    let (mut bytes, mut at) = (Vec::new(), 0);
    while at < words.len() {
        if is_zero(at) {
            at += 1;
            continue;
        }
        let (mut end, mut next) = (at + 1, at + 1);
        while next < words.len() && next < end + GAP_WORDS {
            next += 1;
            if !is_zero(next - 1) {
                end = next;
            }
        }
        [at, end - at].iter().for_each(|number| bytes.extend((*number as u32).to_le_bytes()));
        words[at..end].iter().for_each(|word| bytes.extend(word.load(Ordering::Relaxed).to_le_bytes()));
        at = end;
    }
    bytes
}

/// Stores the words of `bytes` in their places. None for bytes of another form; some words may be stored then.
pub(crate) fn decode(bytes: &[u8], words: &[AtomicU64]) -> Option<()> {
    let mut left = bytes;
    while !left.is_empty() {
        let (head, behind) = left.split_first_chunk::<RUN_HEAD_BYTES>()?;
        let head = u64::from_le_bytes(*head);
        let (at, count) = ((head as u32) as usize, (head >> 32) as usize);
        let run = words.get(at..at.checked_add(count)?)?;
        let (values, behind) = behind.split_at_checked(count * WORD_BYTES)?;
        let (values, _) = values.as_chunks::<WORD_BYTES>();
        run.iter().zip(values).for_each(|(word, value)| word.store(u64::from_le_bytes(*value), Ordering::Relaxed));
        left = behind;
    }
    Some(())
}

#[cfg(test)]
mod tests;
