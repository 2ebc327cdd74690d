//! The clients of a server and their state, as people see them: the facts that knfsd shows in
//! `/proc/fs/nfsd/clients/*/info` and `states`.
//!
//! Owns: the choice of these facts, the status of a client.
//! Does not own: the state itself (`client_state`), the words for people (the command).
//! Invariants: nothing changes, and no client is heard. The lock of the state is held for one pass over the tables. A
//! list of a client's state has a bound. Holders of files leave without the lock.

use std::collections::BTreeMap;

use afflux_frontend::Party;
use afflux_volume::{Held, HeldBy, HolderId, LockMode, Platform, Share, Span};

use super::client_state::{State, lock_owner};
use super::service::Service;
use super::state::clients::{KnownClient, name_for_people, printable};
use super::state::opens::KnownOpen;

/// The number that a client got from EXCHANGE_ID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ClientId(pub u64);

impl ClientId {
    /// The number for people: the clients of a server are counted from 1 on.
    pub fn number(self) -> u32 {
        self.0 as u32
    }
}

/// Whether a client is there, in knfsd's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientStatus {
    /// It has not made a session yet.
    Unconfirmed,
    /// Its lease lasts.
    Confirmed,
    /// Its lease has ended. The server retains its state until another client conflicts with it.
    Courtesy,
    /// Its lease was revoked, and its state is about to end.
    Expired,
}

impl ClientStatus {
    /// Name in reports and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unconfirmed => "unconfirmed",
            Self::Confirmed => "confirmed",
            Self::Courtesy => "courtesy",
            Self::Expired => "expired",
        }
    }

    fn of(client: &KnownClient<'_>, now_ns: u64) -> Self {
        match () {
            () if client.lease.is_revoked() => Self::Expired,
            () if !client.is_confirmed => Self::Unconfirmed,
            () if client.lease.has_ended(now_ns) => Self::Courtesy,
            () => Self::Confirmed,
        }
    }
}

/// A client, and how much it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientInfo {
    /// Clientid, as EXCHANGE_ID returned it.
    pub id: ClientId,
    /// Its number as a holder of locks, from its first open on.
    pub holder: Option<HolderId>,
    /// The party that its state counts for.
    pub party: Party,
    /// The printable part of its own name.
    pub own_name: String,
    /// The user of its EXCHANGE_ID.
    pub user: Option<u32>,
    /// The minor version of its sessions: the last one's.
    pub minor_version: Option<u32>,
    /// Whether it is there.
    pub status: ClientStatus,
    /// The time until its lease ends.
    pub lease_left_ns: u64,
    /// Count of the client's sessions.
    pub sessions: usize,
    /// The slots of all its sessions.
    pub slots: usize,
    /// Slots with a call in progress.
    pub slots_in_use: usize,
    /// It has asked for calls from the server, and no connection carries any.
    pub is_back_channel_down: bool,
    /// Its open files.
    pub opens: usize,
    /// Opens that deny something to others.
    pub denying: usize,
    /// Count of locked byte ranges.
    pub ranges: usize,
    /// Lock owners that wait.
    pub waiting: usize,
    /// Its delegations. Revoked ones count until the client frees them.
    pub delegations: usize,
}

impl ClientInfo {
    /// Its party and its own name.
    pub fn name(&self) -> String {
        name_for_people(self.party, self.own_name.as_bytes())
    }
}

/// An open or a lock of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientStateKind {
    /// An open with its share access and share deny.
    Open(Share),
    /// A locked range.
    Lock(Span, LockMode),
    /// A delegation for reading.
    Delegation(DelegationStatus),
}

/// How far a delegation has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DelegationStatus {
    /// The client has it.
    Held,
    /// A change waits for its return.
    Recalled,
    /// The client did not return it in time, and does not know yet.
    Revoked,
}

/// One piece of a client's state.
pub struct ClientStateInfo<P: Platform> {
    /// The number of the file.
    pub file: u64,
    /// The file, as long as the open has it.
    pub held: Option<Held<P>>,
    /// The printable part of the name of its owner, a program of the client.
    pub owner: String,
    /// Whether it is an open, a lock, a denial or a delegation.
    pub kind: ClientStateKind,
}

/// The sums of a client's sessions.
#[derive(Default)]
struct OfSessions {
    minor_version: Option<u32>,
    sessions: usize,
    slots: usize,
    slots_in_use: usize,
    is_back_channel_down: bool,
}

impl<H> State<H> {
    /// The sums of each client's sessions.
    fn sums_of_sessions(&self) -> BTreeMap<u64, OfSessions> {
        let mut sums: BTreeMap<u64, OfSessions> = BTreeMap::new();
        for session in self.sessions.all() {
            let sum = sums.entry(session.clientid).or_default();
            let slots = session.slots();
            sum.minor_version = Some(session.back.manner().1);
            sum.sessions += 1;
            sum.slots += slots.count() as usize;
            sum.slots_in_use += slots.in_use();
            sum.is_back_channel_down |= session.back.is_down() || session.back.is_faulty();
        }
        sums
    }
}

impl<P: Platform> Service<P> {
    pub(crate) fn clients(&self) -> Vec<ClientInfo> {
        let now_ns = self.volume.engine().platform().now().0;
        let state = self.state();
        let mut of_sessions = state.sums_of_sessions();
        let of_holders: BTreeMap<HolderId, HeldBy> =
            self.locks().held().into_iter().map(|held| (held.holder, held)).collect();
        let info = |client: KnownClient<'_>| {
            let OfSessions { minor_version, sessions, slots, slots_in_use, is_back_channel_down } =
                of_sessions.remove(&client.id).unwrap_or_default();
            let holder = state.holders.get(&client.id).copied();
            let held = holder.and_then(|holder| of_holders.get(&holder));
            ClientInfo {
                id: ClientId(client.id),
                holder,
                party: client.party,
                own_name: printable(client.owner),
                user: client.user,
                minor_version,
                status: ClientStatus::of(&client, now_ns),
                lease_left_ns: client.lease.remaining_ns(now_ns),
                sessions,
                slots,
                slots_in_use,
                is_back_channel_down,
                opens: state.opens.count_of(client.id),
                denying: held.map_or(0, |held| held.denying),
                ranges: held.map_or(0, |held| held.ranges),
                waiting: held.map_or(0, |held| held.waiting),
                delegations: state.delegations.count_of(client.id),
            }
        };
        state.clients.all().map(info).collect()
    }

    /// A client's opens, each with the locks that were begun with it, then its delegations: `most` of them, and the
    /// number of the rest.
    pub(crate) fn states_of(&self, client: ClientId, most: usize) -> (Vec<ClientStateInfo<P>>, usize) {
        let state = self.state();
        let holder = state.holders.get(&client.0).copied();
        let mut shown = Vec::new();
        for KnownOpen { id, file, owner, share, held } in state.opens.of_client(client.0).take(most) {
            let info = |owner: &[u8], kind| ClientStateInfo { file, held: held.clone(), owner: printable(owner), kind };
            shown.push(info(owner, ClientStateKind::Open(share)));
            for (holder, by) in holder.into_iter().flat_map(|it| state.lock_states.of_open(id).map(move |by| (it, by)))
            {
                let ranges = self.locks().ranges_of(by.file, lock_owner(holder, by.number)).into_iter();
                shown.extend(ranges.map(|(span, mode)| info(&by.owner, ClientStateKind::Lock(span, mode))));
                if shown.len() >= most {
                    break;
                }
            }
            if shown.len() >= most {
                break;
            }
        }
        for delegation in state.delegations.of_client(client.0).take(most.saturating_sub(shown.len())) {
            let status = match () {
                () if delegation.is_revoked() => DelegationStatus::Revoked,
                () if delegation.is_recalled() => DelegationStatus::Recalled,
                () => DelegationStatus::Held,
            };
            let kind = ClientStateKind::Delegation(status);
            shown.push(ClientStateInfo { file: delegation.file, held: None, owner: String::new(), kind });
        }
        shown.truncate(most);
        let ranges = holder.map_or(0, |holder| self.locks().count_of_holder(holder));
        let all = state.opens.count_of(client.0) + ranges + state.delegations.count_of(client.0);
        let others = all.saturating_sub(shown.len());
        (shown, others)
    }
}

#[cfg(test)]
mod tests;
