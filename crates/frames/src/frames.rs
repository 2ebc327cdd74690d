//! Which frames are free.
//!
//! Owns: a bitmap of free frames and a stack of free single frames, under one lock.
//! Does not own: the memory (the arena), or what waits for a frame (the engine).
//! Invariants: a frame's bit says whether it is free; freeing a free or foreign frame aborts.

use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Arena, ArenaError, Effort, FrameId, Mobility, Order};

/// The arena and its free frames.
pub struct Frames {
    arena: Arena,
    free: Mutex<FreeList>,
    free_frames: AtomicU32,
    /// Frames that only [`Effort::Reserve`] may take.
    reserve_frames: u32,
    /// Free frames below which [`Effort::NoRetry`] fails.
    low_frames: u32,
}

struct FreeList {
    /// One bit a frame, set while free.
    bits: Box<[u64]>,
    /// Single frames, last freed first, so that a warm one is reused.
    stack: Vec<FrameId>,
    /// Entries of `stack` that a block allocation has taken since are skipped when met.
    frames: u32,
}

impl Frames {
    /// An arena of `bytes`, all of it free. See [`Arena::new`] for the limits.
    pub fn new(bytes: u64) -> Result<Self, ArenaError> {
        let arena = Arena::new(bytes)?;
        let frames = arena.frames();
        let mut bits = vec![0_u64; frames.div_ceil(64) as usize].into_boxed_slice();
        for frame in 0..frames {
            bits[frame as usize / 64] |= 1 << (frame % 64);
        }
        let mut stack = Vec::with_capacity(frames as usize);
        stack.extend((0..frames).rev().map(FrameId::new));
        Ok(Self {
            arena,
            free: Mutex::new(FreeList { bits, stack, frames }),
            free_frames: AtomicU32::new(frames),
            reserve_frames: (frames / 256).clamp(4, 1024),
            low_frames: (frames / 64).clamp(8, 8192),
        })
    }

    /// The memory behind the frames.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// How many frames there are.
    pub fn total(&self) -> u32 {
        self.arena.frames()
    }

    /// How many frames are free now. A hint: others allocate meanwhile.
    pub fn free_count(&self) -> u32 {
        self.free_frames.load(Ordering::Relaxed)
    }

    /// Free frames below which background reclaim should run.
    pub fn low_watermark(&self) -> u32 {
        self.low_frames
    }

    /// The address of a frame, valid for 4096 bytes.
    pub fn address(&self, frame: FrameId) -> NonNull<u8> {
        self.arena.address(frame)
    }

    /// Takes a block of contiguous frames, aligned to its size. Its contents are undefined.
    pub fn allocate(&self, order: Order, mobility: Mobility, effort: Effort) -> Option<FrameId> {
        let mut first = None;
        if order == Order::SINGLE {
            self.allocate_bulk(1, mobility, effort, |frame| first = Some(frame));
            return first;
        }
        let mut list = self.lock();
        let spare = list.stack_frames().saturating_sub(self.floor(effort));
        if spare < order.frames() {
            return None;
        }
        let first = list.take_block(order)?;
        self.publish(&list);
        Some(first)
    }

    /// Takes up to `count` single frames at once and hands each to `take`; returns how many.
    pub fn allocate_bulk(&self, count: u32, _mobility: Mobility, effort: Effort, mut take: impl FnMut(FrameId)) -> u32 {
        let mut list = self.lock();
        let spare = list.stack_frames().saturating_sub(self.floor(effort));
        let mut taken = 0;
        while taken < count.min(spare) {
            let Some(frame) = list.pop() else { break };
            take(frame);
            taken += 1;
        }
        self.publish(&list);
        taken
    }

    /// Gives back a block got from [`Frames::allocate`] with the same order.
    ///
    /// Aborts the process when any of it is free already or is not the arena's: the memory may
    /// then be in two hands, and no caller can repair that.
    pub fn free(&self, first: FrameId, order: Order) {
        let mut list = self.lock();
        for index in first.raw()..first.raw().saturating_add(order.frames()) {
            if index >= self.total() || list.is_free(index) {
                drop(list);
                abort_on_bad_free(index, self.total());
            }
            list.push(FrameId::new(index));
        }
        self.publish(&list);
    }

    fn floor(&self, effort: Effort) -> u32 {
        match effort {
            Effort::Reserve => 0,
            Effort::Normal => self.reserve_frames,
            Effort::NoRetry => self.low_frames,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, FreeList> {
        self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn publish(&self, list: &FreeList) {
        self.free_frames.store(list.frames, Ordering::Relaxed);
    }
}

#[cold]
fn abort_on_bad_free(index: u32, total: u32) -> ! {
    let why = if index >= total { "is not in the arena" } else { "is free already" };
    #[allow(clippy::print_stderr, reason = "the last words before an abort")]
    {
        eprintln!("afflux: frame {index} of {total} was freed but {why}; stopping before data mixes");
    }
    std::process::abort()
}

impl FreeList {
    fn stack_frames(&self) -> u32 {
        self.frames
    }

    fn is_free(&self, index: u32) -> bool {
        self.bits[index as usize / 64] & (1 << (index % 64)) != 0
    }

    fn mark_used(&mut self, index: u32) {
        self.bits[index as usize / 64] &= !(1 << (index % 64));
        self.frames -= 1;
    }

    fn pop(&mut self) -> Option<FrameId> {
        while let Some(frame) = self.stack.pop() {
            if self.is_free(frame.raw()) {
                self.mark_used(frame.raw());
                return Some(frame);
            }
        }
        None
    }

    fn push(&mut self, frame: FrameId) {
        if self.stack.len() == self.stack.capacity() {
            // Blocks leave stale entries behind; without them the stack never outgrows the arena.
            self.rebuild_stack();
        }
        self.bits[frame.index() / 64] |= 1 << (frame.raw() % 64);
        self.frames += 1;
        self.stack.push(frame);
    }

    fn rebuild_stack(&mut self) {
        self.stack.clear();
        for (word, bits) in self.bits.iter().enumerate() {
            let mut left = *bits;
            while left != 0 {
                self.stack.push(FrameId::new(word as u32 * 64 + left.trailing_zeros()));
                left &= left - 1;
            }
        }
    }

    fn take_block(&mut self, order: Order) -> Option<FrameId> {
        let size = order.frames();
        let total = self.bits.len() as u32 * 64;
        let first = (0..total / size)
            .map(|block| block * size)
            .find(|first| (*first..*first + size).all(|index| self.is_free(index)))?;
        for index in first..first + size {
            self.mark_used(index);
        }
        Some(FrameId::new(first))
    }
}
