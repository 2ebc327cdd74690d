//! Bytes of an object in the pieces in which they came.
//!
//! Owns: reading them one after another.
//! Does not own: their meaning.
//! Invariants: no byte is copied.

use bytes::Bytes;

/// A place in the bytes. It moves to the end as they are taken.
#[derive(Clone, Debug)]
pub(crate) struct Pieces<'a> {
    pieces: &'a [Bytes],
    /// Bytes of the first piece that were taken.
    taken: usize,
}

impl<'a> Pieces<'a> {
    /// The bytes behind the first `skipped` ones.
    pub(crate) fn behind(mut pieces: &'a [Bytes], mut skipped: usize) -> Self {
        while let Some((first, rest)) = pieces.split_first().filter(|(first, _)| first.len() <= skipped) {
            skipped -= first.len();
            pieces = rest;
        }
        Self { pieces, taken: skipped }
    }

    /// How many bytes are left.
    pub(crate) fn remaining(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum::<usize>().saturating_sub(self.taken)
    }

    /// Calls `each` with the next `count` bytes, piece by piece; with fewer if fewer are left.
    pub(crate) fn take(&mut self, mut count: usize, mut each: impl FnMut(&'a [u8])) {
        while count > 0
            && let Some((first, rest)) = self.pieces.split_first()
        {
            let remaining = first.get(self.taken..).unwrap_or_default();
            let here = remaining.len().min(count);
            if here > 0 {
                each(&remaining[..here]);
            }
            count -= here;
            if here == remaining.len() {
                (self.pieces, self.taken) = (rest, 0);
            } else {
                self.taken += here;
            }
        }
    }
}
