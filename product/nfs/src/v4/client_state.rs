//! The state of all clients together.
//!
//! Owns: the tables side by side, the end of a client with all that it has, room for one more of a party's, the state
//! that the party with most gives up for this.
//! Does not own: the rules of each table (`state`), the lock around them (`service`), locks and shares (the volume).
//! Invariants: a client whose lease has ended gives up its state before another client is refused for want of room. A
//! living client gives up state only if nothing is left and its party has most: a session, or an open. The caller
//! gets the holders of files, and drops them without a lock.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use afflux_frontend::{KeptItem, Party};
use afflux_volume::{HolderId, LockFamily, LockHolder, LockOwner, Locks, Nanos, Span};
use siphasher::sip::SipHasher13;

use super::grace::Grace;
use super::revocation::Revocations;
use super::state::clients::Clients;
use super::state::kept::{Memory, Record};
use super::state::kept_waits::KeptWaits;
use super::state::leases::Lease;
use super::state::lock_states::LockStates;
use super::state::opens::{Closed, Opener, Opens};
use super::state::room::TableFull;
use super::state::sessions::Sessions;
use crate::status::NfsStatus;

/// The state of all clients.
pub(super) struct State<H> {
    pub(super) memory: Memory,
    /// The facts about this server for a later one.
    pub(super) server_item: KeptItem,
    pub(super) clients: Clients,
    pub(super) sessions: Sessions,
    pub(super) opens: Opens<H>,
    pub(super) lock_states: LockStates,
    pub(super) waits: KeptWaits,
    /// The clients as the volume's holders of locks, from their first open on.
    pub(super) holders: BTreeMap<u64, HolderId>,
    pub(super) grace: Grace,
    /// The list of clients after their last end, until it is kept.
    pub(super) list: Option<Vec<u64>>,
    /// Holders of locks whose clients have ended. They have their locks until the list is kept.
    pub(super) ending: Vec<HolderId>,
    /// Leases that were revoked by those who want the clients' locks.
    pub(super) revocations: Arc<Revocations>,
}

/// A table that needs room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StateTable {
    Sessions,
    Opens,
    LockStates,
}

/// A client as a holder of locks.
struct LockingClient {
    client: u64,
    lease: Arc<Lease>,
    name: String,
    revocations: Arc<Revocations>,
}

impl LockHolder for LockingClient {
    fn has_lapsed(&self, now: Nanos) -> bool {
        self.lease.has_ended(now.0)
    }

    fn try_revoke(&self, now: Nanos) -> bool {
        if self.lease.try_revoke_ended(now.0) {
            self.revocations.begin(self.client);
        }
        self.lease.is_revoked()
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl<H> State<H> {
    pub(super) fn new(memory: &Memory) -> Self {
        Self {
            memory: Memory::clone(memory),
            server_item: KeptItem::default(),
            clients: Clients::new(memory),
            sessions: Sessions::new(memory),
            opens: Opens::new(memory),
            lock_states: LockStates::new(memory),
            waits: KeptWaits::new(memory),
            holders: BTreeMap::new(),
            grace: Grace::new(Vec::new(), 0),
            list: None,
            ending: Vec::new(),
            revocations: Arc::default(),
        }
    }

    /// Keeps what a later server has to know of this one.
    pub(super) fn keep_server(&mut self) {
        let record = Record::Server {
            memory: self.memory.number,
            run: self.memory.run,
            next_client: self.clients.next(),
            is_grace_over: self.grace.missing() == 0,
        };
        self.memory.put(0, &mut self.server_item, Party::ROOT, &record);
    }

    /// Whether a client has neither sessions nor opens.
    pub(super) fn is_idle(&self, client: u64) -> bool {
        !self.sessions.has_any(client) && !self.opens.has_any(client)
    }

    /// The share of an owner's open of a file.
    pub(super) fn share_of(&self, by: &Opener<'_>, file: u64) -> Option<(HolderId, u64)> {
        let place = self.opens.place_of_owner(by, file)?;
        Some((*self.holders.get(&by.client)?, u64::from(place)))
    }

    /// A client as a holder of locks.
    pub(super) fn holder(&mut self, client: u64, locks: &Locks) -> Result<HolderId, NfsStatus> {
        if let Some(holder) = self.holders.get(&client) {
            return Ok(*holder);
        }
        let lease = self.clients.lease(client).cloned().ok_or(NfsStatus::StaleClientid)?;
        let (party, name) = self.clients.named_for_people(client).ok_or(NfsStatus::StaleClientid)?;
        // The bound of all clients of a party.
        let mut group = SipHasher13::new();
        party.hash(&mut group);
        let revocations = Arc::clone(&self.revocations);
        let holder = locks.register(Arc::new(LockingClient { client, lease, name, revocations }), group.finish());
        self.holders.insert(client, holder);
        Ok(holder)
    }

    /// Makes room for one more of a party's in a table. As long as `check` finds none, a silent client ends: one of the
    /// party if the party has its part, or one of the party with most. Without a silent one the party with most gives
    /// up an entry. The function adds the holders of files; `check` gets their number.
    pub(super) fn make_room(
        &mut self,
        (party, table): (Party, StateTable),
        (locks, now_ns): (&Locks, u64),
        held: &mut Vec<H>,
        check: impl Fn(&Self, usize) -> Result<(), TableFull>,
    ) -> Result<(), NfsStatus> {
        while let Err(lack) = check(self, held.len()) {
            let whose = match lack {
                TableFull::OfParty => Some(party),
                TableFull::OfAll { most } => Some(most),
                TableFull::Even => None,
            };
            if let Some(silent) = self.clients.end_silent(whose, now_ns) {
                held.extend(self.end_all(&[silent], locks));
                continue;
            }
            match lack {
                TableFull::OfAll { most } if self.try_take_one(most, table, (locks, now_ns), held) => {}
                _ => return Err(lack.status()),
            }
        }
        Ok(())
    }

    /// A party gives up an entry of this table, or of another table. The result is false if the party has nothing.
    fn try_take_one(&mut self, of: Party, table: StateTable, locks: (&Locks, u64), held: &mut Vec<H>) -> bool {
        if table == StateTable::Sessions && self.sessions.try_end_one_of(of) {
            return true;
        }
        let of_locks = if table == StateTable::LockStates { self.lock_states.open_of_party(of) } else { None };
        match of_locks.or_else(|| self.opens.one_of_party(of)) {
            Some(place) => {
                held.extend(self.end_open(place, locks));
                true
            }
            None => self.sessions.try_end_one_of(of),
        }
    }

    /// Ends the open at a place, with its locks. The client gets an error when it uses the open.
    fn end_open(&mut self, place: u32, (locks, now_ns): (&Locks, u64)) -> Option<H> {
        let Closed { client, file, holder: held, .. } = self.opens.end(place)?;
        let ended = self.lock_states.end_of(place);
        if let Some(holder) = self.holders.get(&client).copied() {
            locks.stop_waiting_with(file, (holder, u64::from(place)), Nanos(now_ns));
            locks.end_share(file, (holder, u64::from(place)));
            for state in ended {
                // Without any part left over it needs no room.
                let _ = locks.unlock(file, lock_owner(holder, state.number), Span::WHOLE, Nanos(now_ns));
            }
        }
        Some(held)
    }

    /// Ends all that these clients had. Returns what held files, to be dropped without the lock. Others get the locks
    /// of the clients once the list without them is kept.
    pub(super) fn end_all(&mut self, clients: &[u64], locks: &Locks) -> Vec<H> {
        let mut holders = Vec::new();
        if let Some(list) = self.grace.remove(clients) {
            self.list = Some(list);
        }
        for client in clients {
            self.sessions.end_all(*client);
            for closed in self.opens.release(*client) {
                self.lock_states.end_of(closed.place);
                holders.push(closed.holder);
            }
            if let Some(holder) = self.holders.remove(client) {
                locks.begin_end(holder);
                self.ending.push(holder);
            }
        }
        holders
    }
}

/// A lock owner for the volume, by its holder.
pub(super) fn lock_owner(holder: HolderId, number: u64) -> LockOwner {
    LockOwner { holder, number, family: LockFamily::Single }
}

#[cfg(test)]
mod tests;
