//! Which bytes of a file have blocks of their own, and the part of a reservation that the host is asked for next.
//!
//! Owns: the question to the host (`FS_IOC_FIEMAP`); the next part after a success, and after a refusal.
//! Does not own: the calls of a reservation (`flight`); file systems that write to new blocks always.
//! Invariants: where the host does not say, the bytes have none. Each part begins behind the last one, or begins there
//! and is shorter, so a reservation ends whatever the host says about blocks
//! (`a_host_that_shows_no_blocks_is_asked_once_for_each_byte_at_most`).

use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Extents in one answer of the host.
const EXTENTS: usize = 16;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    start: u64,
    physical: u64,
    len: u64,
    reserved: [u64; 2],
    flags: u32,
    more_reserved: [u32; 3],
}

/// `struct fiemap` with its extents.
#[repr(C)]
#[derive(Default)]
struct Map {
    start: u64,
    len: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS],
}

impl Extent {
    /// Whether a write to it takes no further block.
    fn is_own(&self) -> bool {
        /// No address yet, compressed, beside other data in a block, or shared with another file.
        const ELSEWHERE: u32 = 0x2 | 0x4 | 0x8 | 0x100 | 0x200 | 0x400 | 0x2000;
        self.flags & ELSEWHERE == 0
    }
}

/// The first bytes of the range that have no blocks of their own; some after them may have. Blocks.
pub(super) fn first_lacking(file: BorrowedFd<'_>, range: Range<u64>) -> Option<Range<u64>> {
    // All bytes before have blocks.
    let mut from = range.start;
    while from < range.end {
        let asked_from = from;
        let Some(map) = ask(file, from..range.end) else { break };
        for extent in map.extents.iter().take(map.mapped as usize).filter(|extent| extent.is_own()) {
            if extent.start > from {
                return Some(from..extent.start.min(range.end));
            }
            from = from.max(extent.start.saturating_add(extent.len));
        }
        if from == asked_from {
            break;
        }
    }
    (from < range.end).then_some(from..range.end)
}

/// Some extents of the range, in order. None if the host does not say.
fn ask(file: BorrowedFd<'_>, range: Range<u64>) -> Option<Map> {
    /// `FS_IOC_FIEMAP`.
    const MAP: u64 = 0xc020_660b;
    /// `FIEMAP_FLAG_SYNC`: bytes in the host's page cache get their blocks first.
    const WRITTEN_FIRST: u32 = 1;
    let (len, count) = (range.end - range.start, EXTENTS as u32);
    let mut map = Map { start: range.start, len, flags: WRITTEN_FIRST, count, ..Map::default() };
    // SAFETY: the kernel fills at most `count` extents of the map, which outlives the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), MAP as libc::Ioctl, &raw mut map) };
    (result == 0).then_some(map)
}

/// What follows a refused part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterRefusal {
    /// Fewer bytes lack blocks: these are asked for.
    Less(Range<u64>),
    /// No byte lacks a block.
    AllHaveBlocks,
    /// There is no space for the part.
    NoSpace,
}

/// The host reserved the bytes `asked` of `whole`: the first bytes behind them that lack blocks, if any do. A host may
/// reserve bytes without showing it, so those asked for are not looked at again.
pub(super) fn after_success(
    asked: &Range<u64>,
    whole: &Range<u64>,
    first_lacking: impl FnOnce(Range<u64>) -> Option<Range<u64>>,
) -> Option<Range<u64>> {
    first_lacking(asked.end..whole.end).filter(|lacking| lacking.start >= asked.end && !lacking.is_empty())
}

/// The host refused the bytes `asked` of `whole`.
pub(super) fn after_refusal(
    asked: &Range<u64>,
    whole: &Range<u64>,
    first_lacking: impl FnOnce(Range<u64>) -> Option<Range<u64>>,
) -> AfterRefusal {
    let Some(lacking) = first_lacking(asked.start..whole.end).filter(|lacking| !lacking.is_empty()) else {
        return AfterRefusal::AllHaveBlocks;
    };
    let is_less = lacking.start > asked.start || (lacking.start == asked.start && lacking.end < asked.end);
    if is_less { AfterRefusal::Less(lacking) } else { AfterRefusal::NoSpace }
}

#[cfg(test)]
mod tests;
