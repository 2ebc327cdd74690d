//! The common part of all front ends: the machine that a world moves bytes for, and the callers.
//!
//! Owns: the seam between protocols and transports; the facts about a peer and about the caller of one call; the
//! recording of callers' requests, and their counts. Also: the quotas of what callers make a server hold, the choice of
//! what is evicted for others, and records that outlive the process (items, and the journal of calls).
//! Does not own: any protocol (front ends), any transport (worlds), files (the volume). Exports stay with the volume:
//! they are the roots above which no handle and no `..` leads, for every front end.
//! Invariants: nothing here depends on the protocol or on its transport. A front end sees this crate and the volume; a
//! world sees this crate for its transports.
#![forbid(unsafe_code)]

mod caller;
mod counted;
mod host_users;
mod journal;
mod machine;
mod message;
mod owned_queues;
mod persisted;
mod quota;
mod recording;
pub mod trace;

pub use caller::{CallerClaim, GROUPS_MAX, Origin, Party, Peer};
pub use counted::{AnsweredSum, CountedRow, RowKind};
pub use host_users::{HostUsers, OwnerKind, UserGroups};
pub use journal::{
    CallJournal, CallKey, DoneStep, ENTRY_WORDS_MIN, EarlierProgress, EntryForm, EntryOwner, JournalCall,
};
pub use machine::{Lent, LentBytes, Output, ProtocolError, ProtocolMachine, Segment};
pub use message::{Answering, HEAD_BYTES_MAX, MESSAGE_COPIED_MAX, MessageMachine, MessageReply, Notice, Tried};
pub use owned_queues::OwnedQueues;
pub use persisted::{
    FoundItem, PERSISTED_PIECE_BYTES, PersistedItem, PersistedItems, PersistedRecordTable, PersistedSlot,
    PersistedWords, words_checksum,
};
pub use quota::{
    ByteBounds, ConnectionQuota, FairQuotas, HeldMessage, MessageQuota, OutlivingBytes, Parties, PartyQuota, QuotaFreed,
};
pub use recording::{RECORDED_CALLS_MAX, RecordedCall, Recording, RecordingReader};
