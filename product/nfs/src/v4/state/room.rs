//! Room in a table of state, which all parties share.
//!
//! Owns: the reasons for which there is none, and the errors that they are.
//! Does not own: the bounds of the tables, the end of silent clients (`client_state`).
//! Invariants: a client that has filled its own party's part is never told to come again: only it makes room there. One
//! that finds the room of all taken is.

use afflux_frontend::Party;

use crate::status::Status;

/// Why there is no room for one more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TableFull {
    /// The party has as much as one may have.
    OfParty,
    /// All parties together have all.
    OfAll,
}

impl TableFull {
    /// Compares what there is with its bounds: of all, and of one party.
    pub(crate) fn check((all, most): (usize, usize), (of_party, most_of_party): (usize, usize)) -> Result<(), Self> {
        match () {
            () if of_party >= most_of_party => Err(Self::OfParty),
            () if all >= most => Err(Self::OfAll),
            () => Ok(()),
        }
    }

    /// The party whose clients could make room; none if each could.
    pub(crate) fn whose(self, party: Party) -> Option<Party> {
        (self == Self::OfParty).then_some(party)
    }

    /// The error for the client. Version 4.1 has no error for a bound of the server, and this one that ends the
    /// program's call.
    pub(crate) fn status(self) -> Status {
        match self {
            Self::OfParty => Status::ServerFault,
            Self::OfAll => Status::Jukebox,
        }
    }
}
