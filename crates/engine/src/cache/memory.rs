//! The memory of a request: pieces of frames, in the order of the file's bytes.
//!
//! Owns: a reference to the arena, so that its memory outlives the request.
//! Does not own: the frames' states; whoever made the request holds them busy until it completes.
//! Invariants: every piece lies inside one frame.

use std::sync::Arc;

use frames::{Effort, FRAME_BYTES, FrameId, Frames, Mobility, Order};

use super::copy;

/// A piece of one frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) frame: FrameId,
    pub(crate) start: u16,
    pub(crate) len: u16,
}

/// The memory that a request reads into or writes from.
pub(crate) struct FrameMemory {
    frames: Arc<Frames>,
    pieces: Vec<Piece>,
}

impl FrameMemory {
    pub(crate) fn new(frames: Arc<Frames>, pieces: Vec<Piece>) -> Self {
        for piece in &pieces {
            assert!(usize::from(piece.start) + usize::from(piece.len) <= FRAME_BYTES);
        }
        Self { frames, pieces }
    }

    /// Fresh frames for `len` bytes, for a request of no engine.
    pub(crate) fn allocate(frames: &Arc<Frames>, len: usize) -> Self {
        let mut pieces = Vec::new();
        let count = len.div_ceil(FRAME_BYTES) as u32;
        frames.allocate_bulk(count, Mobility::Movable, Effort::Normal, |frame| {
            let start = pieces.len() * FRAME_BYTES;
            pieces.push(Piece { frame, start: 0, len: (len - start).min(FRAME_BYTES) as u16 });
        });
        assert_eq!(pieces.len() as u32, count, "free frames for the probe");
        Self::new(Arc::clone(frames), pieces)
    }

    /// Gives the frames of [`FrameMemory::allocate`] back.
    pub(crate) fn free(self) {
        for piece in &self.pieces {
            self.frames.free(piece.frame, Order::SINGLE);
        }
    }

    /// How many bytes it is.
    pub(crate) fn len(&self) -> usize {
        self.pieces.iter().map(|piece| usize::from(piece.len)).sum()
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    pub(crate) fn segment_count(&self) -> usize {
        self.pieces.len()
    }

    pub(crate) fn segments(&self) -> impl Iterator<Item = (*mut u8, usize)> + '_ {
        self.pieces.iter().map(|piece| {
            let start = self.frames.address(piece.frame).as_ptr().wrapping_add(usize::from(piece.start));
            (start, usize::from(piece.len))
        })
    }

    /// Copies bytes from `at` on into `out`.
    pub(crate) fn copy_out(&self, at: usize, out: &mut [u8]) {
        self.walk(at, out.len(), |address, range| {
            // SAFETY: `address` is frame memory for the range's length; `out` is ours.
            unsafe { copy::copy_bytes(address, out[range.clone()].as_mut_ptr(), range.len()) };
        });
    }

    /// Copies `bytes` to `at`.
    pub(crate) fn copy_in(&self, at: usize, bytes: &[u8]) {
        self.walk(at, bytes.len(), |address, range| {
            // SAFETY: `address` is frame memory for the range's length; `bytes` is the caller's.
            unsafe { copy::copy_bytes(bytes[range.clone()].as_ptr(), address, range.len()) };
        });
    }

    fn walk(&self, at: usize, len: usize, mut step: impl FnMut(*mut u8, std::ops::Range<usize>)) {
        let (mut skip, mut done) = (at, 0);
        for (address, piece_len) in self.segments() {
            if skip >= piece_len {
                skip -= piece_len;
                continue;
            }
            let count = (piece_len - skip).min(len - done);
            step(address.wrapping_add(skip), done..done + count);
            done += count;
            skip = 0;
            if done == len {
                return;
            }
        }
        assert_eq!(done, len, "the range ends inside the request");
    }
}
