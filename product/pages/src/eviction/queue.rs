//! A queue of frames, linked through the frame table.
//!
//! Owns: one queue's ends and length, the number in its frames' records, the mark of victims.
//! Does not own: which frames it holds, when they move.
//! Invariants: a frame is on at most one queue; its record has the queue's number exactly while it is linked. Links and
//! numbers change with the policy's lock held. The mark of a victim is checked with its file's lock held instead.

use afflux_frames::FrameId;

use crate::page::PageTable;

/// No frame.
const NONE: u32 = u32::MAX;

/// The number of a frame on no queue, unknown to its policy.
pub const UNLISTED: u8 = 0;

/// The number of a victim until it is put on a queue again.
const CLAIMED: u8 = u8::MAX;

/// The queue number of a frame; a victim is on no queue.
pub fn listed(pages: &PageTable, frame: FrameId) -> u8 {
    match pages.list(frame) {
        CLAIMED => UNLISTED,
        number => number,
    }
}

/// A frame that is on no queue becomes a victim.
pub(crate) fn claim(pages: &PageTable, frame: FrameId) {
    debug_assert_eq!(pages.list(frame), UNLISTED);
    pages.set_list(frame, CLAIMED);
}

/// Whether a frame that was a victim still is: then it is on no queue. Called with the file's lock held, without which
/// no frame is put on a queue.
pub fn is_claimed(pages: &PageTable, frame: FrameId) -> bool {
    pages.list(frame) == CLAIMED
}

/// Frames in order: they enter at the head, and are looked at from the tail.
pub struct Queue {
    number: u8,
    head: u32,
    tail: u32,
    len: u32,
}

impl Queue {
    /// An empty queue, with a number above 0 and below 255 that its policy gives to no other.
    pub fn new(number: u8) -> Self {
        debug_assert!(number != UNLISTED);
        Self { number, head: NONE, tail: NONE, len: 0 }
    }

    /// The number of frames.
    pub fn count(&self) -> u64 {
        u64::from(self.len)
    }

    /// The frame at the tail.
    pub fn tail(&self) -> Option<FrameId> {
        frame(self.tail)
    }

    /// The neighbour towards the head.
    #[cfg(test)]
    pub(crate) fn newer(pages: &PageTable, than: FrameId) -> Option<FrameId> {
        frame(pages.links(than).0)
    }

    /// Puts a frame that is on no queue at the head.
    pub fn push_head(&mut self, pages: &PageTable, frame: FrameId) {
        pages.set_prev(frame, NONE);
        pages.set_next(frame, self.head);
        match self.head {
            NONE => self.tail = frame.raw(),
            head => pages.set_prev(FrameId::new(head), frame.raw()),
        }
        self.head = frame.raw();
        self.note_pushed(pages, frame);
    }

    /// Puts a frame that is on no queue at the tail.
    pub fn push_tail(&mut self, pages: &PageTable, frame: FrameId) {
        pages.set_prev(frame, self.tail);
        pages.set_next(frame, NONE);
        match self.tail {
            NONE => self.head = frame.raw(),
            tail => pages.set_next(FrameId::new(tail), frame.raw()),
        }
        self.tail = frame.raw();
        self.note_pushed(pages, frame);
    }

    fn note_pushed(&mut self, pages: &PageTable, frame: FrameId) {
        self.len += 1;
        pages.set_list(frame, self.number);
    }

    /// Takes out a frame of this queue, and sets its number to `now`.
    pub fn unlink(&mut self, pages: &PageTable, frame: FrameId, now: u8) {
        debug_assert_eq!(pages.list(frame), self.number);
        let (prev, next) = pages.links(frame);
        match prev {
            NONE => self.head = next,
            prev => pages.set_next(FrameId::new(prev), next),
        }
        match next {
            NONE => self.tail = prev,
            next => pages.set_prev(FrameId::new(next), prev),
        }
        self.len -= 1;
        pages.set_list(frame, now);
    }
}

/// Takes a frame off its queue, if any: the policy knows nothing of the frame afterwards.
pub(crate) fn forget(queue: Option<&mut Queue>, pages: &PageTable, frame: FrameId) {
    match queue {
        Some(queue) => queue.unlink(pages, frame, UNLISTED),
        None => pages.set_list(frame, UNLISTED),
    }
}

fn frame(number: u32) -> Option<FrameId> {
    (number != NONE).then(|| FrameId::new(number))
}

#[cfg(test)]
mod tests;
