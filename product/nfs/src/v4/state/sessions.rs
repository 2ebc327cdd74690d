//! Sessions: a client has each call carried out once, over any of its connections.
//!
//! Owns: the table of sessions, each session's client and party.
//! Does not own: the slots' rules (`slots`), what both sides agreed on (`slots`), clients (`clients`).
//! Invariants: a session of a user of this host answers that user alone. A session of another machine answers every
//! machine that knows its number, 128 random bits. There are at most [`SESSIONS_MAX`]; each party has its quota
//! (`quota`). No call walks over all sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_frontend::{Party, PersistedItem};

use super::super::back_channel::{BackChannel, CallbackSequence};
use super::leases::Lease;
use super::persisted::{CLIENT_BYTES_MAX, Memory, Record};
use super::quota::{PartyCounts, TableFull};
use super::slots::{SLOTS_MAX, Slots};
use crate::status::NfsStatus;
use crate::steps::step;
use crate::v4::back_channel::LockNotices;
use crate::v4::state::leases::SilenceOrder;
use crate::v4::state::slots::{ChannelAttrs, SessionId};

pub(crate) const SESSIONS_MAX: usize = 1024;

pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) clientid: u64,
    pub(crate) party: Party,
    pub(crate) channel: ChannelAttrs,
    pub(crate) lease: Arc<Lease>,
    /// The back channel to the client.
    pub(crate) back: Arc<BackChannel>,
    /// The id of its item in the memory that a later server finds.
    item_id: u32,
    item: Mutex<PersistedItem>,
    slots: Mutex<Slots>,
}

impl Session {
    /// Its slots. The lock is a leaf.
    pub(crate) fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn item(&self) -> MutexGuard<'_, PersistedItem> {
        self.item.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct Sessions {
    memory: Memory,
    known: BTreeMap<SessionId, Arc<Session>>,
    of_clients: BTreeMap<u64, BTreeSet<SessionId>>,
    /// By the silence of their clients. The earlier one of two comes first.
    order: SilenceOrder<(u32, SessionId)>,
    /// The notices of each client that has had a session or waits, until the client ends.
    notices: BTreeMap<u64, Arc<LockNotices>>,
    counts: PartyCounts,
    next: u32,
}

impl Sessions {
    /// None yet.
    pub(crate) fn new(memory: &Memory) -> Self {
        Self {
            memory: Memory::clone(memory),
            known: BTreeMap::new(),
            of_clients: BTreeMap::new(),
            order: SilenceOrder::default(),
            notices: BTreeMap::new(),
            counts: PartyCounts::default(),
            next: 0,
        }
    }

    /// An error if the quota does not allow a session of a party.
    pub(crate) fn check_quota(&self, party: Party) -> Result<(), TableFull> {
        self.counts.check_quota(party, 1, SESSIONS_MAX)?;
        self.memory.check_quota(&PersistedItem::default(), party, CLIENT_BYTES_MAX)
    }

    /// Makes a session. The caller has drawn its number, and has checked the quota.
    pub(crate) fn make(
        &mut self,
        id: SessionId,
        clientid: u64,
        party: Party,
        channel: ChannelAttrs,
        lease: Arc<Lease>,
    ) -> Arc<Session> {
        let (item_id, back) = (self.next, BackChannel::new(id, self.notices_of(clientid)));
        self.next += 1;
        let slots = Slots::new(channel.maxrequests);
        let (item, slots) = (Mutex::default(), Mutex::new(slots));
        self.add(Session { id, clientid, party, channel, lease, back, item_id, item, slots })
    }

    /// The notices of a client.
    pub(crate) fn notices_of(&mut self, clientid: u64) -> &Arc<LockNotices> {
        self.notices.entry(clientid).or_default()
    }

    fn add(&mut self, session: Session) -> Arc<Session> {
        let session = Arc::new(session);
        if let Some(before) = self.known.insert(session.id, Arc::clone(&session)) {
            self.unlist(&before);
        }
        self.of_clients.entry(session.clientid).or_default().insert(session.id);
        self.order.add((session.item_id, session.id), session.party, session.lease.heard_ns());
        self.counts.add(session.party, 1);
        session
    }

    fn unlist(&mut self, session: &Session) {
        if let Some(own) = self.of_clients.get_mut(&session.clientid) {
            own.remove(&session.id);
            if own.is_empty() {
                self.of_clients.remove(&session.clientid);
            }
        }
        self.order.remove((session.item_id, session.id));
        self.counts.remove(session.party, 1);
    }

    /// Persists a session for a later server, with the back channel to its client as it is now.
    pub(crate) fn keep(&self, session: &Session) {
        let (calling, minor, is_wanted) = session.back.manner();
        let Session { id, clientid, channel, .. } = *session;
        let record = Record::Session { id, clientid, channel, calling, minor, is_wanted };
        self.memory.put(session.item_id, &mut session.item(), session.party, &record);
        session.back.keep_sequence(&self.memory, session.item_id, session.party);
    }

    /// A session of an earlier server, and the number of its last call to the client. Its slots do not know their last
    /// calls.
    pub(crate) fn try_restore(
        &mut self,
        item_id: u32,
        party: Party,
        lease: Arc<Lease>,
        record: &Record<'_>,
        item: PersistedItem,
        called: CallbackSequence,
    ) -> bool {
        let Record::Session { id, clientid, channel, calling, minor, is_wanted } = *record else { return false };
        self.memory.found(&item, party);
        self.memory.found(&called.item, party);
        self.next = self.next.max(item_id + 1);
        let back = BackChannel::inherited(id, self.notices_of(clientid), calling, minor, is_wanted, called);
        back.keep_sequence(&self.memory, item_id, party);
        let (slots, is_one) = (Slots::inherited(channel.maxrequests.min(SLOTS_MAX)), !self.known.contains_key(&id));
        let (item, slots) = (Mutex::new(item), Mutex::new(slots));
        self.add(Session { id, clientid, party, channel, lease, back, item_id, item, slots });
        is_one
    }

    /// The session with this number, for a party that may use it. A machine may have several addresses, and may get
    /// another one.
    pub(crate) fn find(&self, id: &SessionId, party: Party) -> Result<Arc<Session>, NfsStatus> {
        let may_use = |session: &Session| match (session.party, party) {
            (Party::Machine(_), Party::Machine(_)) => true,
            (own, party) => own == party,
        };
        self.known.get(id).filter(|session| may_use(session)).cloned().ok_or(NfsStatus::Badsession)
    }

    /// Whether a client has any.
    pub(crate) fn has_any(&self, clientid: u64) -> bool {
        self.of_clients.contains_key(&clientid)
    }

    /// Ends one, also for connections that know it. Its calls in progress go on.
    pub(crate) fn end(&mut self, id: &SessionId) {
        if let Some(session) = self.known.remove(id) {
            self.unlist(&session);
            session.slots().end_all();
            self.memory.remove(&mut session.item(), session.party);
            session.back.forget(&self.memory, session.party);
            session.back.end();
        }
    }

    /// Ends a session of one of a party's longest silent clients, if possible a session without calls in progress. The
    /// client makes another session when it needs one. The function returns false if the party has no session.
    pub(crate) fn try_end_one_of(&mut self, party: Party) -> bool {
        let known = &self.known;
        let silent = self.order.longest_silent(Some(party), |(_, id)| known[&id].lease.heard_ns());
        // The first of equals is the longest silent one.
        let first = silent.into_iter().min_by_key(|(_, id)| known[id].slots().is_at_work());
        first.iter().for_each(|(_, id)| self.end(id));
        first.is_some()
    }

    /// Ends all of a client.
    pub(crate) fn end_all(&mut self, clientid: u64) {
        let own = self.of_clients.get(&clientid).cloned().unwrap_or_default();
        for id in &own {
            step();
            self.end(id);
        }
        self.notices.remove(&clientid);
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.known.values().inspect(|_| step())
    }

    /// Number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests;
