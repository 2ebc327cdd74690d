//! The memory of a request: pieces of frames, in the order of the file's bytes.
//!
//! Owns: a reference to the arena, so that its memory outlives the request; the routine that copies (`copy`).
//! Does not own: the frames' states; the maker of the request holds them busy until it completes.
//! Invariants: every piece lies inside one frame.

pub mod copy;

use std::ops::Deref;
use std::sync::Arc;

use afflux_frames::{Effort, FRAME_BYTES, FrameId, Frames};
use smallvec::SmallVec;

/// A piece of one frame.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Frame that the bytes are in.
    pub frame: FrameId,
    /// The first byte in the frame.
    pub start: u16,
    /// The number of bytes: to the frame's end at most.
    pub len: u16,
}

/// Pieces in order. A single piece needs no heap memory.
pub type Pieces = SmallVec<[Piece; 1]>;

/// Holds an arena alive for as long as requests need it. On its own cache lines, with its own reference count: a
/// mechanism that makes many requests has its own `SharedArena`.
#[repr(align(128))]
pub struct SharedArena(pub Arc<Frames>);

impl Deref for SharedArena {
    type Target = Frames;

    fn deref(&self) -> &Frames {
        &self.0
    }
}

/// The memory that a request reads into or writes from.
pub struct FrameMemory {
    frames: Arc<SharedArena>,
    pieces: Pieces,
    /// All pieces except the first and the last are whole pages.
    whole_pages: bool,
}

impl FrameMemory {
    /// The memory of these pieces.
    ///
    /// # Panics
    /// If a piece leaves its frame.
    pub fn new(frames: Arc<SharedArena>, pieces: Pieces) -> Self {
        for piece in &*pieces {
            assert!(usize::from(piece.start) + usize::from(piece.len) <= FRAME_BYTES);
        }
        let inner = pieces.get(1..pieces.len().saturating_sub(1)).unwrap_or_default();
        let whole_pages = inner.iter().all(|piece| usize::from(piece.len) == FRAME_BYTES);
        Self { frames, pieces, whole_pages }
    }

    /// Fresh frames for `len` bytes of a file from `offset` on, for a request without an engine.
    pub fn allocate(frames: &Arc<SharedArena>, offset: u64, len: usize) -> Self {
        let mut pieces = Pieces::default();
        let skip = (offset % FRAME_BYTES as u64) as usize;
        let count = (skip + len).div_ceil(FRAME_BYTES) as u32;
        let mut done = 0;
        frames.allocate_bulk(count, Effort::Normal, |frame| {
            // A frame backs its page's first bytes, so a piece has the same offset in the frame as in its page.
            let start = if done == 0 { skip } else { 0 };
            let here = (len - done).min(FRAME_BYTES - start);
            pieces.push(Piece { frame, start: start as u16, len: here as u16 });
            done += here;
        });
        assert_eq!(pieces.len() as u32, count, "free frames for the probe");
        Self::new(Arc::clone(frames), pieces)
    }

    /// Gives the frames of [`FrameMemory::allocate`] back.
    pub fn free(self) {
        for piece in &*self.pieces {
            self.frames.free(piece.frame);
        }
    }

    /// All bytes of the pieces.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| usize::from(piece.len)).sum()
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The number of [`FrameMemory::segments`].
    pub fn segment_count(&self) -> usize {
        self.pieces.len()
    }

    /// How many bytes of each frame have memory.
    pub fn backed_bytes(&self) -> usize {
        self.frames.backed_bytes()
    }

    /// The address and length of each piece.
    ///
    /// # Panics
    /// If the frames back only their first bytes.
    pub fn segments(&self) -> impl Iterator<Item = (*mut u8, usize)> + '_ {
        assert!(self.frames.backed_bytes() == FRAME_BYTES, "stamped frames have no memory for all their bytes");
        self.pieces.iter().map(|piece| {
            let start = self.frames.address(piece.frame).as_ptr().wrapping_add(usize::from(piece.start));
            (start, usize::from(piece.len))
        })
    }

    /// Copies bytes from `at` on into `out`. Bytes without memory read as zeros.
    pub fn copy_out(&self, at: usize, out: &mut [u8]) {
        if self.frames.backed_bytes() < FRAME_BYTES {
            out.fill(0);
        }
        self.walk(at, out.len(), |address, range, _| {
            // SAFETY: `address` is frame memory for the range's length; `out` is ours.
            unsafe { copy::copy_bytes(address, out[range.clone()].as_mut_ptr(), range.len()) };
        });
    }

    /// Copies `bytes` to `at`, as far as the frames have memory.
    pub fn copy_in(&self, at: usize, bytes: &[u8]) {
        self.walk(at, bytes.len(), |address, range, _| {
            // SAFETY: `address` is frame memory for the range's length; `bytes` is the caller's.
            unsafe { copy::copy_bytes(bytes[range.clone()].as_ptr(), address, range.len()) };
        });
    }

    /// Copies the backed bytes of a range into `out`, without gaps; returns how many.
    pub fn copy_backed_out(&self, range: std::ops::Range<usize>, out: &mut [u8]) -> usize {
        self.walk(range.start, range.len(), |address, range, before| {
            let out = &mut out[before..before + range.len()];
            // SAFETY: `address` is frame memory for the range's length; `out` is ours and as long.
            unsafe { copy::copy_backed(address, out.as_mut_ptr(), range.len()) };
        })
    }

    /// Copies to the backed bytes of a range; `bytes` has them without gaps.
    pub fn copy_backed_in(&self, range: std::ops::Range<usize>, bytes: &[u8]) -> usize {
        self.walk(range.start, range.len(), |address, range, before| {
            let bytes = &bytes[before..before + range.len()];
            // SAFETY: `address` is frame memory for the range's length; `bytes` is the caller's and as long.
            unsafe { copy::copy_backed(bytes.as_ptr(), address, range.len()) };
        })
    }

    /// Calls `step` for each run of backed bytes: its address, its offset in the range, and the number of backed bytes
    /// before it. Returns the number of backed bytes.
    fn walk(&self, at: usize, len: usize, mut step: impl FnMut(*mut u8, std::ops::Range<usize>, usize)) -> usize {
        let backed_bytes = self.frames.backed_bytes();
        let (first, mut skip) = self.piece_at(at);
        let (mut done, mut kept) = (0, 0);
        for piece in &self.pieces[first..] {
            if done == len {
                return kept;
            }
            let (start, piece_len) = (usize::from(piece.start), usize::from(piece.len));
            let count = (piece_len - skip).min(len - done);
            let from = start + skip;
            let here = count.min(backed_bytes.saturating_sub(from));
            if here > 0 {
                step(self.frames.address(piece.frame).as_ptr().wrapping_add(from), done..done + here, kept);
            }
            (done, kept, skip) = (done + count, kept + here, 0);
        }
        assert_eq!(done, len, "the range ends inside the request");
        kept
    }

    /// The piece that holds byte `at`, and the offset in it. Pieces between the first and the last are whole pages in
    /// all requests of the engine; otherwise the pieces are searched.
    fn piece_at(&self, at: usize) -> (usize, usize) {
        let Some(first_len) = self.pieces.first().map(|piece| usize::from(piece.len)) else { return (0, at) };
        if at < first_len {
            return (0, at);
        }
        if self.whole_pages {
            let rest = at - first_len;
            return ((1 + rest / FRAME_BYTES).min(self.pieces.len()), rest % FRAME_BYTES);
        }
        let mut skip = at;
        let found = self.pieces.iter().position(|piece| {
            let here = skip < usize::from(piece.len);
            skip -= if here { 0 } else { usize::from(piece.len) };
            here
        });
        (found.unwrap_or(self.pieces.len()), skip)
    }
}
