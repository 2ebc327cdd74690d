//! The state of clients that is persisted in memory, where a later server finds it.
//!
//! Owns: the form of each record, the quota of the memory that one party has; the numbers and the ends of records of
//! owners that wait for a lock; the form of the entries of calls, and the word of a key that names party, session and
//! slot.
//! Does not own: the memory, the journal of calls and the replacement of a record as a whole (`afflux_frontend`), the
//! state (`clients`, `sessions`, `opens`, `lock_states`), the queue of waiting owners (the volume), the return of all
//! (`v4::recovery`).
//! Invariants: a state is persisted before the server answers, and before another client can get a state that it
//! excludes. The space for a record is checked before the state changes. Each party has its quota (`records`). A change
//! of an owner's locks is one piece, however many locks it has: a record of all, and steps since then. A wait is
//! persisted from the refusal of its LOCK until its owner has left the queue and the client has answered the notice. A
//! later server finds waits in their order. A wait beyond its party's quota is not persisted: after a kill its client
//! asks when its own patience ends. A slot has one call there, the newest: by the next call the client says that it has
//! the reply. The calls of a session, or of a party, take no slot of another with fewer.
//!
//! The life of a record: the table that owns the state puts it with each change, and removes it at the end. A record
//! whose client or open is not there any more, since a kill came between two removals, does not come back.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_frontend::{
    CallKey, EntryForm, EntryOwner, FoundItem, PERSISTED_PIECE_BYTES, Party, PersistedItem, PersistedItems,
    PersistedWords,
};
use afflux_volume::{LockMode, Share, Span};
use siphasher::sip::SipHasher13;

use crate::limits::OWNER_BYTES_MAX;
use crate::v4::state::quota::{PartyCounts, TableFull};
use crate::v4::state::slots::{CallbackSecurity, ChannelAttrs, SLOTS_MAX, SessionId};
use crate::wire::xdr::{Reader, Writer, XdrError};

/// Most bytes of a part of a record whose length varies.
const PART_BYTES_MAX: usize = OWNER_BYTES_MAX;

/// A server's memory of its clients, as all tables of state need it.
pub(crate) struct ServerMemory {
    /// Names this memory in numbers of clients and in stateids. A later server that finds it goes on with it.
    pub(crate) number: u32,
    /// How many servers had it before.
    pub(crate) run: u32,
    records: Option<Arc<PersistedRecords>>,
}

/// The memory for records that a later server finds.
pub(crate) struct PersistedRecords {
    items: PersistedItems,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    /// Pieces of each party.
    pieces: PartyCounts,
    buffer: Vec<u8>,
}

/// The memory of all clients, shared by the tables.
pub(crate) type Memory = Arc<ServerMemory>;

/// A range of a lock owner.
pub(crate) type LockedRange = (Span, LockMode);

/// One change of a lock owner's ranges: bytes locked in this mode, or unlocked.
pub(crate) type RangeStep = (Span, Option<LockMode>);

/// A piece of state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Record<'a> {
    Server {
        memory: u32,
        run: u32,
        next_client: u64,
        is_grace_over: bool,
    },
    Client {
        clientid: u64,
        owner: &'a [u8],
        verifier: [u8; 8],
        party: Party,
        user: Option<u32>,
        sequenceid: u32,
        created: &'a [u8],
        has_reclaimed: bool,
    },
    Session {
        id: SessionId,
        clientid: u64,
        channel: ChannelAttrs,
        calling: CallbackSecurity,
        minor: u32,
        is_wanted: bool,
    },
    /// The number of the last call to the client.
    BackChannel {
        sequenceid: u32,
    },
    Open {
        clientid: u64,
        /// The number that the file had for the server that wrote this. Another server finds the file by its handle.
        file: u64,
        generation: u32,
        seqid: u32,
        share: Share,
        asked: u16,
        by: u64,
        owner: &'a [u8],
        handle: &'a [u8],
    },
    Locks {
        clientid: u64,
        /// As the number of an open's file. Another server takes the file of the open.
        file: u64,
        generation: u32,
        seqid: u32,
        open: u32,
        by: u64,
        owner: &'a [u8],
        ranges: Cow<'a, [LockedRange]>,
    },
    /// A change of a lock owner's ranges since its record. One that is no later than the record counts no more.
    LockStep {
        /// Of the lock owner.
        id: u32,
        generation: u32,
        seqid: u32,
        by: u64,
        step: RangeStep,
    },
    /// An owner that waits for bytes of an open's file.
    Wait {
        clientid: u64,
        open: u32,
        owner: &'a [u8],
        span: Span,
        mode: LockMode,
    },
    /// A delegation of a file.
    Delegation {
        clientid: u64,
        /// As the number of an open's file.
        file: u64,
        generation: u32,
        /// The client has lost it, and does not know.
        is_revoked: bool,
        handle: &'a [u8],
    },
}

impl ServerMemory {
    /// The memory with this number, in its next run. Without `records` a later server finds nothing.
    pub(crate) fn new(number: u32, run: u32, records: Option<&Arc<PersistedRecords>>) -> Memory {
        Arc::new(Self { number, run, records: records.cloned() })
    }

    /// Removes a record of an earlier server that has not come back.
    pub(crate) fn drop_found(&self, item: &mut PersistedItem) {
        self.records.iter().for_each(|records| records.items.remove(item));
    }

    /// Counts a record of an earlier server as its party's.
    pub(crate) fn found(&self, item: &PersistedItem, party: Party) {
        if let Some(records) = &self.records {
            records.taken().pieces.add(party, records.items.pieces(item));
        }
    }

    /// Whether a later server finds anything.
    pub(crate) fn is_persistent(&self) -> bool {
        self.records.is_some()
    }

    /// Whether a record would have no space in place of the one before.
    pub(crate) fn check_quota(&self, item: &PersistedItem, party: Party, bytes: usize) -> Result<(), TableFull> {
        let Some(records) = &self.records else { return Ok(()) };
        let (before, after) = (records.items.pieces(item), PersistedItems::pieces_of(bytes));
        if after > before {
            // A change needs an eighth for a moment.
            records.taken().pieces.check_quota(party, after - before, records.items.capacity() / 8 * 7)?;
        }
        if records.items.has_space(item, bytes) { Ok(()) } else { Err(TableFull::Even) }
    }

    /// Whether a further record would take space that state needs of which a client cannot do without: the records that
    /// may be refused leave half of the memory.
    pub(crate) fn check_spare(&self, party: Party, bytes: usize) -> Result<(), TableFull> {
        let Some(records) = &self.records else { return Ok(()) };
        let pieces = PersistedItems::pieces_of(bytes);
        records.taken().pieces.check_quota(party, pieces, records.items.capacity() / 2)?;
        if records.items.has_space(&PersistedItem::default(), bytes) { Ok(()) } else { Err(TableFull::Even) }
    }

    /// Persists a record in place of the one before. The caller has checked that there is space.
    pub(crate) fn put(&self, id: u32, item: &mut PersistedItem, party: Party, record: &Record<'_>) {
        let Some(records) = &self.records else { return };
        let mut taken = records.taken();
        let mut writer = Writer::reusing(std::mem::take(&mut taken.buffer));
        record.write(&mut writer);
        let before = records.items.pieces(item);
        records.items.try_put(record.kind(), id, item, writer.since(0));
        taken.count(party, before, records.items.pieces(item));
        taken.buffer = writer.into_bytes();
    }

    /// A piece of state is gone.
    pub(crate) fn remove(&self, item: &mut PersistedItem, party: Party) {
        let Some(records) = &self.records else { return };
        let mut taken = records.taken();
        taken.count(party, records.items.pieces(item), 0);
        records.items.remove(item);
    }
}

impl PersistedRecords {
    /// The memory in these words, from `at` on, and the records of an earlier server in it.
    pub(crate) fn new(words: PersistedWords, at: usize) -> (Arc<Self>, Option<Vec<FoundItem>>) {
        let (items, found) = PersistedItems::new(words, at);
        (Arc::new(Self { items, taken: Mutex::default() }), found)
    }

    /// Forgets all records.
    pub(crate) fn clear(&self) {
        self.items.clear();
        *self.taken() = Taken::default();
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    fn count(&mut self, party: Party, before: usize, after: usize) {
        self.pieces.remove(party, before.saturating_sub(after));
        self.pieces.add(party, after.saturating_sub(before));
    }
}

/// Bytes of a record of an open.
pub(crate) fn open_bytes(owner: &[u8], handle: &[u8]) -> usize {
    44 + owner.len().next_multiple_of(4) + handle.len().next_multiple_of(4)
}

/// Bytes of a record of a lock owner.
pub(crate) fn locks_bytes(owner: &[u8], ranges: usize) -> usize {
    44 + owner.len().next_multiple_of(4) + ranges * 20
}

/// Bytes of a record of an owner that waits.
pub(crate) fn wait_bytes(owner: &[u8]) -> usize {
    36 + owner.len().next_multiple_of(4)
}

/// Bytes of a record of a delegation.
pub(crate) fn delegation_bytes(handle: &[u8]) -> usize {
    28 + handle.len().next_multiple_of(4)
}

/// Bytes of a record of one change of locks.
pub(crate) const STEP_BYTES: usize = 40;

/// Bytes that each record of a client or a session has at most, apart from the client's own name.
pub(crate) const CLIENT_BYTES_MAX: usize = 3 * PERSISTED_PIECE_BYTES;

impl<'a> Record<'a> {
    fn kind(&self) -> u8 {
        match self {
            Self::Server { .. } => 0,
            Self::Client { .. } => 1,
            Self::Session { .. } => 2,
            Self::BackChannel { .. } => 3,
            Self::Open { .. } => 4,
            Self::Locks { .. } => 5,
            Self::LockStep { .. } => 6,
            Self::Wait { .. } => 7,
            Self::Delegation { .. } => 8,
        }
    }

    fn write(&self, to: &mut Writer) {
        match self {
            Self::Server { memory, run, next_client, is_grace_over } => {
                to.u32(*memory);
                to.u32(*run);
                to.u64(*next_client);
                to.bool(*is_grace_over);
            }
            Self::Client { clientid, owner, verifier, party, user, sequenceid, created, has_reclaimed } => {
                to.u64(*clientid);
                to.opaque(owner);
                to.raw(verifier);
                write_party(*party, to);
                to.bool(user.is_some());
                to.u32(user.unwrap_or_default());
                to.u32(*sequenceid);
                to.opaque(created);
                to.bool(*has_reclaimed);
            }
            Self::Session { id, clientid, channel, calling, minor, is_wanted } => {
                to.raw(id);
                to.u64(*clientid);
                let ChannelAttrs {
                    maxrequestsize,
                    maxresponsesize,
                    maxresponsesize_cached,
                    maxoperations,
                    maxrequests,
                } = *channel;
                let words = [maxrequestsize, maxresponsesize, maxresponsesize_cached, maxoperations, maxrequests];
                words.iter().for_each(|word| to.u32(*word));
                to.u32(calling.program);
                write_callback_user(calling.user, to);
                to.u32(*minor);
                to.bool(*is_wanted);
            }
            Self::BackChannel { sequenceid } => to.u32(*sequenceid),
            Self::Open { clientid, file, generation, seqid, share, asked, by, owner, handle } => {
                to.u64(*clientid);
                to.u64(*file);
                to.u32(*generation);
                to.u32(*seqid);
                to.u32(u32::from(share.access) | u32::from(share.deny) << 8 | u32::from(*asked) << 16);
                to.u64(*by);
                to.opaque(owner);
                to.opaque(handle);
            }
            Self::Locks { clientid, file, generation, seqid, open, by, owner, ranges } => {
                to.u64(*clientid);
                to.u64(*file);
                [*generation, *seqid, *open].iter().for_each(|word| to.u32(*word));
                to.u64(*by);
                to.opaque(owner);
                to.u32(ranges.len() as u32);
                for (span, mode) in ranges.iter() {
                    to.u64(span.first());
                    to.u64(span.last());
                    to.bool(*mode == LockMode::Exclusive);
                }
            }
            Self::LockStep { id, generation, seqid, by, step: (span, mode) } => {
                [*id, *generation, *seqid].iter().for_each(|word| to.u32(*word));
                to.u64(*by);
                to.u64(span.first());
                to.u64(span.last());
                to.u32(match mode {
                    None => 0,
                    Some(LockMode::Shared) => 1,
                    Some(LockMode::Exclusive) => 2,
                });
            }
            Self::Wait { clientid, open, owner, span, mode } => {
                to.u64(*clientid);
                to.u32(*open);
                to.opaque(owner);
                to.u64(span.first());
                to.u64(span.last());
                to.bool(*mode == LockMode::Exclusive);
            }
            Self::Delegation { clientid, file, generation, is_revoked, handle } => {
                to.u64(*clientid);
                to.u64(*file);
                to.u32(*generation);
                to.bool(*is_revoked);
                to.opaque(handle);
            }
        }
    }

    /// The record in an item of an earlier server. None if it is none of this form.
    pub(crate) fn read(kind: u8, bytes: &'a [u8]) -> Option<Self> {
        Self::parse(kind, &mut Reader::new(bytes)).ok().flatten()
    }

    fn parse(kind: u8, from: &mut Reader<'a>) -> Result<Option<Self>, XdrError> {
        Ok(Some(match kind {
            0 => Self::Server {
                memory: from.u32()?,
                run: from.u32()?,
                next_client: from.u64()?,
                is_grace_over: from.bool("grace")?,
            },
            1 => {
                let (clientid, owner) = (from.u64()?, from.opaque(PART_BYTES_MAX)?);
                let (verifier, party) = (from.fixed()?, read_party(from)?);
                let user = (from.bool("user")?, from.u32()?);
                let user = user.0.then_some(user.1);
                let (sequenceid, created) = (from.u32()?, from.opaque(PART_BYTES_MAX)?);
                let has_reclaimed = from.bool("reclaimed")?;
                Self::Client { clientid, owner, verifier, party, user, sequenceid, created, has_reclaimed }
            }
            2 => Self::Session {
                id: from.fixed()?,
                clientid: from.u64()?,
                channel: ChannelAttrs {
                    maxrequestsize: from.u32()?,
                    maxresponsesize: from.u32()?,
                    maxresponsesize_cached: from.u32()?,
                    maxoperations: from.u32()?,
                    maxrequests: from.u32()?,
                },
                calling: CallbackSecurity { program: from.u32()?, user: read_callback_user(from)? },
                minor: from.u32()?,
                is_wanted: from.bool("wanted")?,
            },
            3 => Self::BackChannel { sequenceid: from.u32()? },
            4 => {
                let (clientid, file, generation, seqid) = (from.u64()?, from.u64()?, from.u32()?, from.u32()?);
                let rights = from.u32()?;
                let share = Share { access: rights as u8, deny: (rights >> 8) as u8 };
                let (by, owner, handle) = (from.u64()?, from.opaque(PART_BYTES_MAX)?, from.opaque(PART_BYTES_MAX)?);
                let asked = (rights >> 16) as u16;
                Self::Open { clientid, file, generation, seqid, share, asked, by, owner, handle }
            }
            5 => {
                let (clientid, file) = (from.u64()?, from.u64()?);
                let [generation, seqid, open] = [from.u32()?, from.u32()?, from.u32()?];
                let (by, owner, count) = (from.u64()?, from.opaque(PART_BYTES_MAX)?, from.u32()?);
                let mut ranges = Vec::new();
                for _ in 0..count {
                    let (span, is_exclusive) = (Span::between(from.u64()?, from.u64()?), from.bool("mode")?);
                    let Some(span) = span else { return Ok(None) };
                    ranges.push((span, if is_exclusive { LockMode::Exclusive } else { LockMode::Shared }));
                }
                let ranges = Cow::Owned(ranges);
                Self::Locks { clientid, file, generation, seqid, open, by, owner, ranges }
            }
            6 => {
                let [id, generation, seqid] = [from.u32()?, from.u32()?, from.u32()?];
                let (by, span) = (from.u64()?, Span::between(from.u64()?, from.u64()?));
                let mode = match from.u32()? {
                    0 => None,
                    1 => Some(LockMode::Shared),
                    2 => Some(LockMode::Exclusive),
                    _ => return Ok(None),
                };
                let Some(span) = span else { return Ok(None) };
                Self::LockStep { id, generation, seqid, by, step: (span, mode) }
            }
            7 => {
                let (clientid, open, owner) = (from.u64()?, from.u32()?, from.opaque(PART_BYTES_MAX)?);
                let (span, is_exclusive) = (Span::between(from.u64()?, from.u64()?), from.bool("mode")?);
                let Some(span) = span else { return Ok(None) };
                let mode = if is_exclusive { LockMode::Exclusive } else { LockMode::Shared };
                Self::Wait { clientid, open, owner, span, mode }
            }
            8 => {
                let (clientid, file, generation) = (from.u64()?, from.u64()?, from.u32()?);
                let (is_revoked, handle) = (from.bool("revoked")?, from.opaque(PART_BYTES_MAX)?);
                Self::Delegation { clientid, file, generation, is_revoked, handle }
            }
            _ => return Ok(None),
        }))
    }
}

/// No user is 0, user and group 0 are 1, as all users were once; 2 goes before any other user.
fn write_callback_user(user: Option<(u32, u32)>, to: &mut Writer) {
    match user {
        None => to.u32(0),
        Some((0, 0)) => to.u32(1),
        Some((uid, gid)) => [2, uid, gid].iter().for_each(|&word| to.u32(word)),
    }
}

fn read_callback_user(from: &mut Reader<'_>) -> Result<Option<(u32, u32)>, XdrError> {
    match from.u32()? {
        0 => Ok(None),
        1 => Ok(Some((0, 0))),
        2 => Ok(Some((from.u32()?, from.u32()?))),
        value => Err(XdrError::Value { field: "the user of callbacks", value }),
    }
}

fn write_party(party: Party, to: &mut Writer) {
    let (kind, value) = match party {
        Party::User(user) => (0, user.into()),
        Party::Orphans => (1, 0),
        Party::Machine(IpAddr::V4(address)) => (2, address.to_bits().into()),
        Party::Machine(IpAddr::V6(address)) => (3, address.to_bits()),
    };
    to.u32(kind);
    to.raw(&u128::to_be_bytes(value));
}

fn read_party(from: &mut Reader<'_>) -> Result<Party, XdrError> {
    let (kind, value) = (from.u32()?, u128::from_be_bytes(from.fixed()?));
    match kind {
        0 => Ok(Party::User(value as u32)),
        1 => Ok(Party::Orphans),
        2 => Ok(Party::Machine(Ipv4Addr::from_bits(value as u32).into())),
        3 => Ok(Party::Machine(Ipv6Addr::from_bits(value).into())),
        value => Err(XdrError::Value { field: "party", value }),
    }
}

/// The record of a wait, which is removed with the last user of this.
pub(crate) struct PersistedWait {
    memory: Memory,
    party: Party,
    item: Mutex<PersistedItem>,
}

impl Drop for PersistedWait {
    fn drop(&mut self) {
        let item = self.item.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.memory.remove(item, self.party);
    }
}

/// The numbers of waits.
pub(crate) struct PersistedWaits {
    memory: Memory,
    next: u32,
}

impl PersistedWaits {
    /// None yet.
    pub(crate) fn new(memory: &Memory) -> Self {
        Self { memory: Memory::clone(memory), next: 0 }
    }

    /// A wait of a party that is not persisted yet.
    pub(crate) fn begin(&self, party: Party) -> Arc<PersistedWait> {
        self.with(party, PersistedItem::default())
    }

    /// Persists a wait, if its party has space.
    pub(crate) fn keep(&mut self, wait: &PersistedWait, record: &Record<'_>) {
        let Record::Wait { owner, .. } = record else { return };
        let mut item = wait.item.lock().unwrap_or_else(PoisonError::into_inner);
        if self.memory.is_persistent() && self.memory.check_quota(&item, wait.party, wait_bytes(owner)).is_ok() {
            self.memory.put(self.next, &mut item, wait.party, record);
            self.next = self.next.wrapping_add(1);
        }
    }

    /// A wait of an earlier server, under its id.
    pub(crate) fn restore(&mut self, id: u32, party: Party, item: PersistedItem) -> Arc<PersistedWait> {
        self.memory.found(&item, party);
        self.next = self.next.max(id.wrapping_add(1));
        self.with(party, item)
    }

    fn with(&self, party: Party, item: PersistedItem) -> Arc<PersistedWait> {
        Arc::new(PersistedWait { memory: Memory::clone(&self.memory), party, item: Mutex::new(item) })
    }
}

/// Words of a call that changes something, in memory that a later server finds: replies to most calls fit.
pub(crate) const CALL_WORDS: usize = 128;

/// The form of the entries. The value of a call is the wall clock's time at its beginning.
pub(crate) const CALL_FORM: EntryForm = EntryForm { words: CALL_WORDS, age: |_, begun_ns| begun_ns, owner };

const SLOT_BITS: u32 = SLOTS_MAX.ilog2();
/// Bits of a session's number. Those above them are of the party's hash.
const SESSION_BITS: u32 = 36;

/// The word of a key that names the owner of a call.
pub(crate) fn owner_word(hash_key: &[u8; 16], party: Party, session: &SessionId, slot: u32) -> u64 {
    let mut hasher = SipHasher13::new_with_key(hash_key);
    party.hash(&mut hasher);
    // The number is drawn at random, so a part of it will do.
    let session = session.first_chunk().copied().map_or(0, u64::from_le_bytes) % (1 << SESSION_BITS);
    hasher.finish() >> (SESSION_BITS + SLOT_BITS) << (SESSION_BITS + SLOT_BITS) | session << SLOT_BITS | u64::from(slot)
}

fn owner(&[_, _, word]: &CallKey) -> EntryOwner {
    let (of_session, slot) = (word >> SLOT_BITS, word % u64::from(SLOTS_MAX));
    EntryOwner { party: of_session >> SESSION_BITS, user: of_session % (1 << SESSION_BITS), slot: Some(slot) }
}

const _: () = assert!(SLOTS_MAX.is_power_of_two());

#[cfg(test)]
mod tests;
