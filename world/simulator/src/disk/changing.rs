//! The bytes that requests in flight change, to find two requests whose order matters.
//!
//! Owns: the ranges, by file.
//! Does not own: the requests (`state`), the handling of a conflict (`mod`).
//! Invariants: the ranges of a file do not overlap, because a conflicting request is refused.

use std::collections::BTreeMap;

use afflux_engine::Operation;

use super::DiskFileId;

#[derive(Default)]
pub(super) struct Changing {
    /// From file and first byte to the byte after the last, and the operation that changes them.
    ranges: BTreeMap<(u64, u64), (u64, Operation)>,
}

/// The bytes whose contents depend on when the operation is carried out, in whole blocks.
fn touched(operation: Operation, block: u64) -> Option<(u64, u64)> {
    match operation {
        Operation::Write { offset, len } => Some((offset, (offset + u64::from(len)).next_multiple_of(block))),
        Operation::SetSize { size } => Some((size, u64::MAX)),
        Operation::Punch { offset, len } => Some((offset, offset + len)),
        _ => None,
    }
}

impl Changing {
    /// An operation in flight on the same file that conflicts with this one: their order, which is undefined while both
    /// are in flight, decides the file's contents.
    pub(super) fn conflict(&self, file: DiskFileId, operation: Operation, block: u64) -> Option<Operation> {
        let (start, end) = touched(operation, block)?;
        let (_, (other_end, other)) = self.ranges.range((file.0, 0)..(file.0, end)).next_back()?;
        (*other_end > start).then_some(*other)
    }

    pub(super) fn begins(&mut self, file: DiskFileId, operation: Operation, block: u64) {
        if let Some((start, end)) = touched(operation, block) {
            self.ranges.insert((file.0, start), (end, operation));
        }
    }

    pub(super) fn ended(&mut self, file: DiskFileId, operation: Operation, block: u64) {
        if let Some((start, _)) = touched(operation, block) {
            self.ranges.remove(&(file.0, start));
        }
    }

    pub(super) fn clear(&mut self) {
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests;
