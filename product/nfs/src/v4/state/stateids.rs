//! Stateids: the names by which clients mention what they have opened.
//!
//! Owns: the layout of a stateid, the special ones, the order of its sequence numbers.
//! Does not own: the table that they lead to (`stateid_table`).
//! Invariants: a stateid of an earlier memory of the server is known as such without a search. A stateid that was given
//! back names nothing, though its entry is in use again.

use crate::status::NfsStatus;

/// Bytes of a stateid behind its sequence number.
pub(crate) const OTHER_BYTES: usize = 12;

/// A stateid as a client sends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stateid {
    /// How often the state changed; 0 means the present.
    pub(crate) seqid: u32,
    pub(crate) other: [u8; OTHER_BYTES],
}

/// `other` of a stateid: where the state is in its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StateidOther {
    /// Which memory of the server has the table.
    pub(crate) memory: u32,
    pub(crate) id: u32,
    /// How often the entry had been used.
    pub(crate) generation: u32,
}

/// The meaning of a stateid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StateidKind {
    /// No state: a READ or WRITE of nobody's open.
    Anonymous,
    /// As anonymous; a READ need not mind others' locks.
    Bypass,
    /// The stateid that an earlier operation of the compound has set.
    Current,
    /// State in the table.
    State(StateidOther),
}

impl Stateid {
    pub(crate) const ANONYMOUS: Self = Self { seqid: 0, other: [0; OTHER_BYTES] };

    /// The name of an entry. Ids begin with 1 on the wire, so that no name is a special one.
    pub(crate) fn of(id: StateidOther, seqid: u32) -> Self {
        let mut other = [0; OTHER_BYTES];
        let words = [id.memory, id.id.wrapping_add(1), id.generation];
        for (bytes, word) in other.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        Self { seqid, other }
    }

    /// Its meaning, if it has the form of a stateid.
    pub(crate) fn meaning(self) -> Result<StateidKind, NfsStatus> {
        let word = |at: usize| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&self.other[at..at + 4]);
            u32::from_be_bytes(bytes)
        };
        let (memory, id, generation) = (word(0), word(4), word(8));
        match (self.seqid, [memory, id, generation]) {
            (0, [0, 0, 0]) => Ok(StateidKind::Anonymous),
            (1, [0, 0, 0]) => Ok(StateidKind::Current),
            (u32::MAX, [u32::MAX, u32::MAX, u32::MAX]) => Ok(StateidKind::Bypass),
            (_, [_, 0, _] | [u32::MAX, u32::MAX, u32::MAX]) => Err(NfsStatus::BadStateid),
            _ => Ok(StateidKind::State(StateidOther { memory, id: id - 1, generation })),
        }
    }
}

/// The sequence number after this one: 0 has a meaning of its own.
pub(crate) fn next_seqid(seqid: u32) -> u32 {
    seqid.checked_add(1).unwrap_or(1)
}

/// Whether a sequence number comes after another. The numbers wrap.
pub(crate) fn is_later(seqid: u32, than: u32) -> bool {
    (1..u32::MAX / 2).contains(&seqid.wrapping_sub(than))
}

/// Compares a client's sequence number with the state's.
pub(crate) fn check_seqid(sent: u32, present: u32) -> Result<(), NfsStatus> {
    match sent {
        0 => Ok(()),
        _ if sent == present => Ok(()),
        // The numbers wrap: the half behind the present one is old.
        _ if present.wrapping_sub(sent) < u32::MAX / 2 => Err(NfsStatus::OldStateid),
        _ => Err(NfsStatus::BadStateid),
    }
}

#[cfg(test)]
mod tests;
