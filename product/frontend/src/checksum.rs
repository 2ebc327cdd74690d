//! The check of records in memory that outlives the process.
//!
//! Owns: the hash.
//! Does not own: the forms of records, the reaction to a failed check (front ends).
//! Invariants: each word counts, and its place. The hash is part of the forms: another hash is another form.

/// The check of some words.
pub fn words_checksum(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0x51_7c_c1_b7_27_22_0a_95, |hash, word| {
        let mixed = (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    })
}
