//! The clients that a server knows, from EXCHANGE_ID to their end.
//!
//! Owns: the client IDs of each client owner (`client_owner4`) of a party, and which of two equally named clients is
//! meant; the order of CREATE_SESSIONs, the clients' bounds; the moments at which a client is persisted for a later
//! server.
//! Does not own: a client's opens (`opens`) and sessions (`sessions`). The caller ends both for each client that is
//! named as gone.
//! Invariants: at most one client of an owner is confirmed, and at most one is not. A client of another party or of
//! another user has no influence on a client. A machine with several addresses is one client (trunking, RFC 8881
//! 2.10.5). Its owner, its verifier and its user prove this. No other machine knows the verifier
//! (`a_machine_is_one_client_from_each_of_its_addresses`). There are at most [`CLIENTS_MAX`]; each party has its quota
//! (`quota`). A party without clients takes no memory. A client that was never confirmed goes first, then one with an
//! ended lease, then one without state. No call walks over all clients.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use afflux_frontend::{Party, PersistedItem};

use crate::status::NfsStatus;
use crate::steps::step;
use crate::v4::state::leases::{Lease, SilenceOrder, may_be_forgotten};
use crate::v4::state::persisted::{CLIENT_BYTES_MAX, Memory, Record};
use crate::v4::state::quota::{PartyCounts, TableFull};

pub(crate) const CLIENTS_MAX: usize = 4096;
/// Most further addresses of a client. The address that was added first is forgotten for another one.
const FURTHER_ADDRESSES_MAX: usize = 8;

/// The party of the connection, and the user of the call.
pub(crate) type Speaker = (Party, Option<u32>);

/// The arguments of EXCHANGE_ID that count.
pub(crate) struct ExchangeIdClient<'a> {
    pub(crate) owner: &'a [u8],
    pub(crate) verifier: [u8; 8],
    /// Only a confirmed client is meant.
    pub(crate) updates: bool,
}

/// The answer to EXCHANGE_ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ExchangeIdResult {
    pub(crate) clientid: u64,
    /// The number for its next CREATE_SESSION.
    pub(crate) sequenceid: u32,
    pub(crate) is_confirmed: bool,
}

/// The kind of a CREATE_SESSION.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum CreateSessionStep {
    New,
    /// A repetition, which has these results.
    Again(Vec<u8>),
}

struct Client {
    owner: Arc<[u8]>,
    verifier: [u8; 8],
    party: Party,
    /// The machine's other addresses that it has used. A later server learns them anew.
    further: VecDeque<Party>,
    user: Option<u32>,
    is_confirmed: bool,
    /// The number for its next CREATE_SESSION.
    sequenceid: u32,
    /// The results of its last one.
    created: Option<Vec<u8>>,
    lease: Arc<Lease>,
    has_reclaimed: bool,
    item: PersistedItem,
}

impl Client {
    fn name(&self) -> ClientName<'_> {
        ClientName { party: self.party, own: &self.owner, verifier: self.verifier }
    }

    /// Whether a party is one of its addresses.
    fn is_of(&self, party: Party) -> bool {
        self.party == party || self.further.contains(&party)
    }

    fn add_address(&mut self, party: Party) {
        if !self.is_of(party) {
            self.further.truncate(FURTHER_ADDRESSES_MAX - 1);
            self.further.push_front(party);
        }
    }

    /// The run of a confirmed client of another machine.
    fn run(&self) -> Option<MachineRun> {
        let is_found = self.is_confirmed && matches!(self.party, Party::Machine(_));
        is_found.then(|| (Arc::clone(&self.owner), self.verifier, self.user))
    }
}

/// The owner, the verifier and the user of another machine's confirmed client.
type MachineRun = (Arc<[u8]>, [u8; 8], Option<u32>);

/// The name of a client's run.
#[derive(Clone, Copy)]
pub(crate) struct ClientName<'a> {
    pub(crate) party: Party,
    pub(crate) own: &'a [u8],
    pub(crate) verifier: [u8; 8],
}

/// The facts about a client that people ask for.
#[derive(Clone, Copy)]
pub(crate) struct KnownClient<'a> {
    pub(crate) id: u64,
    pub(crate) owner: &'a [u8],
    pub(crate) party: Party,
    pub(crate) user: Option<u32>,
    pub(crate) is_confirmed: bool,
    pub(crate) lease: &'a Lease,
}

pub(crate) struct Clients {
    memory: Memory,
    /// By clientid.
    known: BTreeMap<u64, Client>,
    owners: ClientOwners,
    /// The confirmed clients of other machines, by run.
    runs: BTreeMap<MachineRun, u64>,
    confirmed: SilenceOrder<u64>,
    unconfirmed: SilenceOrder<u64>,
    next: u64,
}

impl Clients {
    /// None yet. The upper half of a client's number names the memory. A server with another memory knows none of these
    /// numbers.
    pub(crate) fn new(memory: &Memory) -> Self {
        let next = u64::from(memory.number) << 32 | 1;
        Self {
            memory: Memory::clone(memory),
            known: BTreeMap::new(),
            owners: ClientOwners::default(),
            runs: BTreeMap::new(),
            confirmed: SilenceOrder::default(),
            unconfirmed: SilenceOrder::default(),
            next,
        }
    }

    /// The number of the next client.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Goes on with numbers from this one on.
    pub(crate) fn set_next(&mut self, next: u64) {
        self.next = next;
    }

    /// A client of an earlier server, whose lease begins anew. An older one of its name goes.
    pub(crate) fn try_restore(&mut self, record: &Record<'_>, item: PersistedItem, now_ns: u64) -> bool {
        let Record::Client { clientid, owner, verifier, party, user, sequenceid, created, has_reclaimed } = *record
        else {
            return false;
        };
        self.memory.found(&item, party);
        if let Some(older) = self.owners.find(party, owner).confirmed {
            self.forget(older, &mut Vec::new());
        }
        let client = Client {
            owner: owner.into(),
            verifier,
            party,
            further: VecDeque::new(),
            user,
            is_confirmed: true,
            sequenceid,
            created: Some(created.to_vec()),
            lease: Arc::new(Lease::begun(now_ns)),
            has_reclaimed,
            item,
        };
        let is_one = !self.known.contains_key(&clientid);
        if is_one {
            self.add(clientid, client);
        }
        is_one
    }

    fn add(&mut self, id: u64, client: Client) {
        self.known.insert(id, client);
        self.list(id);
    }

    fn list(&mut self, id: u64) {
        let Some(client) = self.known.get(&id) else { return };
        self.owners.add(client.party, &client.owner, id, client.is_confirmed);
        if let Some(run) = client.run() {
            self.runs.entry(run).or_insert(id);
        }
        let order = if client.is_confirmed { &mut self.confirmed } else { &mut self.unconfirmed };
        order.add(id, client.party, client.lease.heard_ns());
    }

    /// Persists a client for a later server.
    fn keep(&mut self, id: u64) {
        let Some(client) = self.known.get_mut(&id) else { return };
        let record = Record::Client {
            clientid: id,
            owner: &client.owner,
            verifier: client.verifier,
            party: client.party,
            user: client.user,
            sequenceid: client.sequenceid,
            created: client.created.as_deref().unwrap_or_default(),
            has_reclaimed: client.has_reclaimed,
        };
        self.memory.put(id as u32, &mut client.item, client.party, &record);
    }

    /// EXCHANGE_ID of a client. `is_idle` returns whether a client has neither sessions nor opens. Clients that end by
    /// it go to `gone`.
    pub(crate) fn exchange_id(
        &mut self,
        who: ExchangeIdClient<'_>,
        (party, user): Speaker,
        now_ns: u64,
        is_idle: impl Fn(u64) -> bool,
        gone: &mut Vec<u64>,
    ) -> Result<ExchangeIdResult, NfsStatus> {
        if let Some(same) = self.meet_again(&who, (party, user), gone) {
            return Ok(same);
        }
        let OwnerClientids { confirmed, unconfirmed } = self.owners.find(party, who.owner);
        let known = confirmed.map(|id| (id, &self.known[&id]));
        let is_same_user = known.is_none_or(|(_, client)| client.user == user);
        let is_same_run = known.is_some_and(|(_, client)| client.verifier == who.verifier);
        if who.updates {
            return match known {
                None => Err(NfsStatus::Noent),
                Some(_) if !is_same_run => Err(NfsStatus::NotSame),
                Some(_) if !is_same_user => Err(NfsStatus::Perm),
                Some((clientid, it)) => {
                    Ok(ExchangeIdResult { clientid, sequenceid: it.sequenceid, is_confirmed: true })
                }
            };
        }
        match known {
            Some((clientid, it)) if is_same_user && is_same_run => {
                return Ok(ExchangeIdResult { clientid, sequenceid: it.sequenceid, is_confirmed: true });
            }
            Some((id, it)) if !is_same_user => {
                if !is_idle(id) && !it.lease.has_ended(now_ns) {
                    return Err(NfsStatus::ClidInuse);
                }
                self.forget(id, gone);
            }
            _ => {}
        }
        if let Some(id) = unconfirmed {
            self.forget(id, gone);
        }
        self.evict_for(party, now_ns, |id| !is_idle(id), gone)?;
        let clientid = self.next;
        self.next += 1;
        let made = Client {
            owner: who.owner.into(),
            verifier: who.verifier,
            party,
            further: VecDeque::new(),
            user,
            is_confirmed: false,
            sequenceid: 1,
            created: None,
            lease: Arc::new(Lease::begun(now_ns)),
            has_reclaimed: false,
            item: PersistedItem::default(),
        };
        self.add(clientid, made);
        Ok(ExchangeIdResult { clientid, sequenceid: 1, is_confirmed: false })
    }

    /// A machine's confirmed client that introduces itself from an address of which it is not the client yet. The
    /// machine's earlier run at that address ends, as a CREATE_SESSION there would end it.
    fn meet_again(
        &mut self,
        who: &ExchangeIdClient<'_>,
        (party, user): Speaker,
        gone: &mut Vec<u64>,
    ) -> Option<ExchangeIdResult> {
        if !matches!(party, Party::Machine(_)) {
            return None;
        }
        let id = *self.runs.get(&(who.owner.into(), who.verifier, user))?;
        let OwnerClientids { confirmed, unconfirmed } = self.owners.find(party, who.owner);
        if confirmed.is_some_and(|own| self.known[&own].verifier == who.verifier) {
            return None;
        }
        let before = confirmed.filter(|before| self.known[before].user == user);
        before.into_iter().chain(unconfirmed).for_each(|before| self.forget(before, gone));
        let client = self.known.get_mut(&id)?;
        client.add_address(party);
        Some(ExchangeIdResult { clientid: id, sequenceid: client.sequenceid, is_confirmed: true })
    }

    fn forget(&mut self, id: u64, gone: &mut Vec<u64>) {
        self.remove(id);
        gone.push(id);
    }

    fn remove(&mut self, id: u64) {
        if let Some(mut client) = self.known.remove(&id) {
            if let Some(run) = client.run().filter(|run| self.runs.get(run) == Some(&id)) {
                self.runs.remove(&run);
            }
            self.owners.remove(client.party, &client.owner, id);
            self.confirmed.remove(id);
            self.unconfirmed.remove(id);
            self.memory.remove(&mut client.item, client.party);
        }
    }

    /// Evicts a client for one more of a party. The longest silent one goes. A client that is not confirmed goes before
    /// a client with an ended lease, and that before one of the party with most.
    fn evict_for(
        &mut self,
        party: Party,
        now_ns: u64,
        has_state: impl Fn(u64) -> bool,
        gone: &mut Vec<u64>,
    ) -> Result<(), NfsStatus> {
        self.forget_silent(now_ns, gone);
        let Err(lack) = self.owners.counts().check_quota(party, 1, CLIENTS_MAX) else { return Ok(()) };
        let of_party = self.owners.counts().of(party);
        // A party without clients may evict another party's client that was never confirmed.
        let may_go = |it: &Client| it.party == party || of_party == 0 || it.lease.has_ended(now_ns);
        let whose = (lack == TableFull::OfParty).then_some(party);
        let of_most = if let TableFull::OfAll { most } = lack { Some(most) } else { whose };
        let unconfirmed = self.longest_unconfirmed(whose).filter(|id| may_go(&self.known[id]));
        let mut victim = unconfirmed.or_else(|| self.longest_unconfirmed(Some(party)));
        if victim.is_none() {
            victim = self.longest_ended(of_most, now_ns);
        }
        if victim.is_none() {
            victim = of_most.filter(|most| *most != party).and_then(|most| self.first_to_go(most, has_state));
        }
        self.forget(victim.ok_or(lack.status())?, gone);
        Ok(())
    }

    /// The confirmed or the unconfirmed clients of a party, or of all parties, the longest silent one first.
    fn longest_silent(&mut self, of: Option<Party>, are_confirmed: bool) -> Vec<u64> {
        let known = &self.known;
        let order = if are_confirmed { &mut self.confirmed } else { &mut self.unconfirmed };
        order.longest_silent(of, |id| known[&id].lease.heard_ns())
    }

    /// Of a party, or of all, the client that is not confirmed and was silent for longest.
    fn longest_unconfirmed(&mut self, of: Option<Party>) -> Option<u64> {
        self.longest_silent(of, false).first().copied()
    }

    /// The client of a party that is evicted for another party. Clients without state go first, then the longest silent
    /// ones.
    fn first_to_go(&mut self, party: Party, has_state: impl Fn(u64) -> bool) -> Option<u64> {
        // The first of equals is the longest silent one.
        let unconfirmed = self.longest_unconfirmed(Some(party));
        unconfirmed.or_else(|| self.longest_silent(Some(party), true).into_iter().min_by_key(|id| has_state(*id)))
    }

    /// Forgets clients that were silent for too long, some at a time.
    fn forget_silent(&mut self, now_ns: u64, gone: &mut Vec<u64>) {
        for are_confirmed in [false, true] {
            let order = if are_confirmed { &self.confirmed } else { &self.unconfirmed };
            if order.heard_from_ns().is_none_or(|heard_ns| !may_be_forgotten(heard_ns, now_ns)) {
                continue;
            }
            for id in self.longest_silent(None, are_confirmed) {
                if may_be_forgotten(self.known[&id].lease.heard_ns(), now_ns) {
                    self.forget(id, gone);
                }
            }
        }
    }

    /// The client of a party, or of all parties, whose lease has ended for longest. One that is not confirmed comes
    /// first.
    fn longest_ended(&mut self, of: Option<Party>, now_ns: u64) -> Option<u64> {
        let has_ended = |known: &BTreeMap<u64, Client>, id: &u64| known[id].lease.has_ended(now_ns);
        let unconfirmed = self.longest_unconfirmed(of).filter(|id| has_ended(&self.known, id));
        unconfirmed.or_else(|| {
            let silent = self.longest_silent(of, true);
            silent.first().copied().filter(|id| has_ended(&self.known, id))
        })
    }

    /// Ends the client whose lease has ended for longest: of a party, or of all. Returns its number; the caller ends
    /// all that it had.
    pub(crate) fn end_silent(&mut self, of: Option<Party>, now_ns: u64) -> Option<u64> {
        let silent = self.longest_ended(of, now_ns)?;
        let is_over = self.lease(silent).is_some_and(|lease| lease.is_revoked() || lease.try_revoke_ended(now_ns));
        is_over.then(|| self.remove(silent)).map(|()| silent)
    }

    /// An error if the memory has no space for what a later server has to know of a client.
    pub(crate) fn check_quota(&self, id: u64) -> Result<(), TableFull> {
        let Some(client) = self.known.get(&id) else { return Ok(()) };
        self.memory.check_quota(&client.item, client.party, client.owner.len() + CLIENT_BYTES_MAX)
    }

    /// The client with this number, for its own addresses.
    fn of(&mut self, id: u64, party: Party) -> Result<&mut Client, NfsStatus> {
        self.known.get_mut(&id).filter(|it| it.is_of(party)).ok_or(NfsStatus::StaleClientid)
    }

    /// A CREATE_SESSION begins. The client was heard.
    pub(crate) fn create_session(
        &mut self,
        id: u64,
        (party, user): Speaker,
        sequenceid: u32,
        now_ns: u64,
    ) -> Result<CreateSessionStep, NfsStatus> {
        let client = self.of(id, party)?;
        if !client.is_confirmed && client.lease.has_ended(now_ns) {
            return Err(NfsStatus::StaleClientid);
        }
        if sequenceid.wrapping_add(1) == client.sequenceid
            && let Some(created) = &client.created
        {
            return Ok(CreateSessionStep::Again(created.clone()));
        }
        if sequenceid != client.sequenceid {
            return Err(NfsStatus::SeqMisordered);
        }
        if !client.is_confirmed && client.user != user {
            return Err(NfsStatus::ClidInuse);
        }
        if !client.lease.try_renew(now_ns) {
            return Err(NfsStatus::StaleClientid);
        }
        Ok(CreateSessionStep::New)
    }

    /// The CREATE_SESSION that was begun has these results, which a repetition gets, too. One that failed does not
    /// count.
    pub(crate) fn created(&mut self, id: u64, results: &[u8]) {
        if let Some(client) = self.known.get_mut(&id) {
            client.sequenceid = client.sequenceid.wrapping_add(1);
            client.created = Some(results.to_vec());
        }
        self.keep(id);
    }

    /// The client has a session now, so that it is no phantom. The client that had its name before goes to `gone`.
    pub(crate) fn confirm(&mut self, id: u64, now_ns: u64, gone: &mut Vec<u64>) {
        let Some(client) = self.known.get_mut(&id) else { return };
        client.lease.try_renew(now_ns);
        if client.is_confirmed {
            return;
        }
        let (party, owner) = (client.party, Arc::clone(&client.owner));
        client.is_confirmed = true;
        self.owners.remove(party, &owner, id);
        self.unconfirmed.remove(id);
        let before = self.owners.find(party, &owner).confirmed;
        before.into_iter().for_each(|before| self.forget(before, gone));
        self.list(id);
    }

    /// The lease of a client.
    pub(crate) fn lease(&self, id: u64) -> Option<&Arc<Lease>> {
        self.known.get(&id).map(|client| &client.lease)
    }

    /// The client has no more state of an earlier server to ask for.
    pub(crate) fn reclaim_complete(&mut self, id: u64) -> Result<(), NfsStatus> {
        let client = self.known.get_mut(&id).ok_or(NfsStatus::StaleClientid)?;
        if std::mem::replace(&mut client.has_reclaimed, true) {
            return Err(NfsStatus::CompleteAlready);
        }
        self.keep(id);
        Ok(())
    }

    /// Whether the client has said so.
    pub(crate) fn has_reclaimed(&self, id: u64) -> bool {
        self.known.get(&id).is_some_and(|client| client.has_reclaimed)
    }

    /// Ends a client at its own wish. It must be idle.
    pub(crate) fn destroy_clientid(&mut self, id: u64, party: Party, is_idle: bool) -> Result<(), NfsStatus> {
        self.of(id, party)?;
        if !is_idle {
            return Err(NfsStatus::ClientidBusy);
        }
        self.remove(id);
        Ok(())
    }

    /// Ends those of these clients whose leases were revoked. Returns their numbers.
    pub(crate) fn take_revoked(&mut self, mut clients: Vec<u64>) -> Vec<u64> {
        clients.retain(|id| self.lease(*id).is_some_and(|lease| lease.is_revoked()));
        clients.sort_unstable();
        clients.dedup();
        clients.iter().for_each(|id| self.remove(*id));
        clients
    }

    /// All clients with a session: number, name, and whether it has reclaimed its state.
    pub(crate) fn names(&self) -> impl Iterator<Item = (u64, ClientName<'_>, bool)> {
        let confirmed = self.known.iter().inspect(|_| step()).filter(|(_, it)| it.is_confirmed);
        confirmed.map(|(id, it)| (*id, it.name(), it.has_reclaimed))
    }

    /// The name of a client.
    pub(crate) fn name(&self, id: u64) -> Option<ClientName<'_>> {
        self.known.get(&id).map(Client::name)
    }

    /// The party of a client, and its name for people.
    pub(crate) fn named_for_people(&self, id: u64) -> Option<(Party, String)> {
        let client = self.known.get(&id)?;
        Some((client.party, name_for_people(client.party, &client.owner)))
    }

    /// All clients, by number.
    pub(crate) fn all(&self) -> impl Iterator<Item = KnownClient<'_>> {
        self.known.iter().inspect(|_| step()).map(|(id, Client { owner, party, user, is_confirmed, lease, .. })| {
            KnownClient { id: *id, owner, party: *party, user: *user, is_confirmed: *is_confirmed, lease }
        })
    }

    /// Number of clients.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

/// The printable part of a name that a client has chosen.
pub(crate) fn printable(name: &[u8]) -> String {
    const SHOWN_MAX: usize = 64;
    let shown = name.iter().take(SHOWN_MAX).filter(|byte| byte.is_ascii_graphic() || **byte == b' ');
    let shown: String = shown.map(|byte| char::from(*byte)).collect();
    shown.trim().to_owned()
}

/// The name of a client for people: its party, and the printable part of its own name.
pub(crate) fn name_for_people(party: Party, owner: &[u8]) -> String {
    format!("{party}, {}", printable(owner))
}

/// The client IDs of one owner.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct OwnerClientids {
    pub(super) confirmed: Option<u64>,
    pub(super) unconfirmed: Option<u64>,
}

#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct ClientOwners {
    of: BTreeMap<Party, BTreeMap<Arc<[u8]>, OwnerClientids>>,
    counts: PartyCounts,
}

impl ClientOwners {
    /// The client IDs of a party's owner.
    pub(super) fn find(&self, party: Party, ownerid: &[u8]) -> OwnerClientids {
        self.of.get(&party).and_then(|own| own.get(ownerid)).copied().unwrap_or_default()
    }

    /// The number of each party's clients.
    pub(super) fn counts(&self) -> &PartyCounts {
        &self.counts
    }

    /// Adds a client.
    pub(super) fn add(&mut self, party: Party, ownerid: &Arc<[u8]>, clientid: u64, is_confirmed: bool) {
        self.counts.add(party, 1);
        let clientids = self.of.entry(party).or_default().entry(Arc::clone(ownerid)).or_default();
        let of_kind = if is_confirmed { &mut clientids.confirmed } else { &mut clientids.unconfirmed };
        *of_kind = Some(clientid);
    }

    pub(super) fn remove(&mut self, party: Party, ownerid: &[u8], clientid: u64) {
        let Some(own) = self.of.get_mut(&party) else { return };
        let Some(clientids) = own.get_mut(ownerid) else { return };
        if clientids.confirmed == Some(clientid) {
            clientids.confirmed = None;
        } else if clientids.unconfirmed == Some(clientid) {
            clientids.unconfirmed = None;
        } else {
            return;
        }
        self.counts.remove(party, 1);
        if *clientids == OwnerClientids::default() {
            own.remove(ownerid);
        }
        if own.is_empty() {
            self.of.remove(&party);
        }
    }
}

#[cfg(test)]
mod tests;
