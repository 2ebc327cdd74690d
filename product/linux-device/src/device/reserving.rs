//! The part of a reservation that the host is asked for next.
//!
//! Owns: the next part after a success, and after a refusal.
//! Does not own: the calls (`flight`), which bytes have blocks (`blocks`).
//! Invariants: each part begins behind the last one, or begins there and is shorter, so a reservation ends whatever the
//! host says about blocks (`a_host_that_shows_no_blocks_is_asked_once_for_each_byte_at_most`).

use std::ops::Range;

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
