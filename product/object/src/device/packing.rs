//! Small writes that share a segment.
//!
//! Owns: the open segment's writes, when it closes.
//! Does not own: large writes, which are segments of their own; the PUT.
//! Invariants: a write waits only while two small segments are on their way. So an idle store never waits, and a busy
//! one gets full segments.

use std::collections::VecDeque;

use afflux_engine::Request;

use crate::format::segment_id::SEGMENT_BYTES_MAX;

/// Small segments on their way above which the open one waits to be full.
const SMALL_SEGMENTS: u32 = 2;

/// A write that waits for its PUT.
pub(super) struct PackedWrite {
    /// The volume's number of the write.
    pub(super) number: u64,
    pub(super) bytes: u64,
    pub(super) request: Request,
}

#[derive(Default)]
pub(super) struct Packing {
    open: VecDeque<PackedWrite>,
    open_bytes: u64,
    on_their_way: u32,
}

impl Packing {
    /// Adds a write. Returns whether the caller has to start a PUT; an urgent write waits for no other segment.
    pub(super) fn add(&mut self, write: PackedWrite, is_urgent: bool) -> bool {
        self.open_bytes += write.bytes;
        self.open.push_back(write);
        let starts = is_urgent || self.is_ready();
        self.on_their_way += u32::from(starts);
        starts
    }

    fn is_ready(&self) -> bool {
        let is_full = self.open_bytes >= u64::from(SEGMENT_BYTES_MAX);
        is_full || self.on_their_way < SMALL_SEGMENTS && !self.open.is_empty()
    }

    /// Takes the writes of a segment.
    pub(super) fn close(&mut self) -> Vec<PackedWrite> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while let Some(write) = self.open.pop_front_if(|write| bytes + write.bytes <= u64::from(SEGMENT_BYTES_MAX)) {
            bytes += write.bytes;
            taken.push(write);
        }
        self.open_bytes -= bytes;
        taken
    }

    /// A PUT has ended. Returns whether the caller has to start another.
    pub(super) fn put_ends(&mut self) -> bool {
        self.on_their_way -= 1;
        let starts = self.is_ready();
        self.on_their_way += u32::from(starts);
        starts
    }
}
