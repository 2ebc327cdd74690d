//! The part of version 4 that all connections share: clients, sessions, opens, and the tree above the exports.
//!
//! Owns: the lock of the state, the end of clients with all that they have, the numbers that name this server.
//! Does not own: the rules of the state (`state`), the operations (`operations`), locks and shares (the volume).
//! Invariants: the holder of a file is dropped without the lock, since its drop may end the file. The volume's locks are
//! asked under the lock of the state, and never the other way round.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use afflux_volume::{
    FileHandle, Held, HolderId, KnobId, LockFamily, LockHolder, LockOwner, Locks, Nanos, Platform, Share, Span, Volume,
    WhichKnob,
};
use futures_util::future::BoxFuture;
use siphasher::sip::SipHasher13;

use super::counts::Counts;
use super::grace::{ClientList, Grace};
use super::pseudo_root::PseudoRoot;
use super::state::clients::Clients;
use super::state::leases::Lease;
use super::state::lock_states::{LockState, LockStates};
use super::state::opens::{Closed, Opener, Opens};
use super::state::sessions::{SessionId, Sessions};
use super::state::stateids::{StatePlace, Stateid};
use crate::knobs::NfsKnob;
use crate::status::Status;

/// Version 4 of a server.
pub(crate) struct Service<P: Platform> {
    state: Mutex<State<Held<P>>>,
    pub(super) volume: Arc<Volume<P>>,
    /// The volume's count of revoked holders, as far as their clients have ended here.
    ended_revoked: AtomicU64,
    /// Keeps the names of clients for a later server.
    list: Option<Arc<dyn ClientList>>,
    /// Nobody of an earlier server is missing.
    is_grace_over: AtomicBool,
    pub(super) root: PseudoRoot,
    /// The handle of the single export, once somebody has asked for the root.
    pub(super) single: OnceLock<FileHandle>,
    /// Names this server, over restarts.
    pub(super) name: [u8; 16],
    pub(crate) counts: Counts,
    xattrs: KnobId,
}

/// The state of all clients.
pub(super) struct State<H> {
    pub(super) clients: Clients,
    pub(super) sessions: Sessions,
    pub(super) opens: Opens<H>,
    pub(super) lock_states: LockStates,
    /// The clients as the volume's holders of locks, from their first open on.
    pub(super) holders: BTreeMap<u64, HolderId>,
    grace: Grace,
    /// The list of clients after their last end, until it is kept.
    list: Option<Vec<u64>>,
}

/// A client as a holder of locks.
struct LockingClient {
    lease: Arc<Lease>,
    name: String,
}

impl LockHolder for LockingClient {
    fn has_lapsed(&self, now: Nanos) -> bool {
        self.lease.has_ended(now.0)
    }

    fn revoke(&self, now: Nanos) -> bool {
        self.lease.revoke_if_ended(now.0)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl<H> State<H> {
    /// Whether a client has neither sessions nor opens.
    pub(super) fn is_idle(&self, client: u64) -> bool {
        !self.sessions.has_any(client) && !self.opens.has_any(client)
    }

    /// A client as a holder of locks.
    pub(super) fn holder(&mut self, client: u64, locks: &Locks) -> Result<HolderId, Status> {
        if let Some(holder) = self.holders.get(&client) {
            return Ok(*holder);
        }
        let lease = self.clients.lease(client).cloned().ok_or(Status::StaleClientId)?;
        let (party, name) = self.clients.named_for_people(client).ok_or(Status::StaleClientId)?;
        // The bound of all clients of a party.
        let mut group = SipHasher13::new();
        std::hash::Hash::hash(&party, &mut group);
        let holder = locks.register(Arc::new(LockingClient { lease, name }), group.finish());
        self.holders.insert(client, holder);
        Ok(holder)
    }

    /// Ends all that these clients had. Returns what held files, to be dropped without the lock.
    pub(super) fn end_all(&mut self, clients: &[u64], locks: &Locks, now_ns: u64) -> Vec<H> {
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
                locks.release_holder(holder, Nanos(now_ns));
            }
        }
        holders
    }
}

/// A lock owner for the volume, by its holder.
pub(super) fn lock_owner(holder: HolderId, number: u64) -> LockOwner {
    LockOwner { holder, number, family: LockFamily::Single }
}

impl<P: Platform> Service<P> {
    /// Without clients. `places` are pairs of a path of the host and an export's path. An earlier server has left the
    /// names of its clients.
    pub(crate) fn new(
        volume: &Arc<Volume<P>>,
        places: &[(Vec<u8>, String)],
        left: Vec<u64>,
        list: Option<Arc<dyn ClientList>>,
    ) -> Self {
        let platform = volume.engine().platform();
        // Never 0, which begins the special stateids, nor their other value.
        let memory = (platform.random_u64() as u32).clamp(1, u32::MAX - 1);
        let state = State {
            clients: Clients::new(memory),
            sessions: Sessions::default(),
            opens: Opens::new(memory),
            lock_states: LockStates::new(memory),
            holders: BTreeMap::new(),
            grace: Grace::new(left.clone(), platform.now().0),
            list: None,
        };
        Self {
            state: Mutex::new(state),
            ended_revoked: AtomicU64::new(0),
            root: PseudoRoot::new(&volume.exports(), places),
            single: OnceLock::new(),
            name: volume.hash_key().map(|byte| byte ^ 0x34),
            is_grace_over: AtomicBool::new(left.is_empty()),
            list,
            counts: Counts::new(),
            xattrs: NfsKnob::Xattrs.id(volume.engine().settings()),
            volume: Arc::clone(volume),
        }
    }

    /// The state. Nothing is awaited, and no holder is dropped, while it is locked.
    pub(super) fn state(&self) -> MutexGuard<'_, State<Held<P>>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether extended attributes are offered.
    pub(super) fn has_xattrs(&self) -> bool {
        self.volume.engine().settings().get(self.xattrs) != 0
    }

    /// Numbers of clients, sessions and opens.
    pub(crate) fn held(&self) -> (usize, usize, usize) {
        let state = self.state();
        (state.clients.len(), state.sessions.len(), state.opens.len())
    }

    pub(super) fn locks(&self) -> &Locks {
        self.volume.locks()
    }

    /// The volume's number for a lock owner of a client. Nobody without the volume's key makes two owners one.
    pub(super) fn owner_number(&self, client: u64, owner: &[u8]) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.volume.hash_key());
        hasher.write_u64(client);
        hasher.write(owner);
        hasher.finish()
    }

    /// Ends the clients that have lost their locks, since they were silent and in somebody's way.
    pub(super) fn end_revoked(&self, now_ns: u64) {
        let revoked = self.locks().revoked();
        if self.ended_revoked.swap(revoked, Ordering::Relaxed) != revoked {
            self.end_those_revoked(now_ns);
        }
    }

    fn end_those_revoked(&self, now_ns: u64) {
        let mut state = self.state();
        let clients = state.clients.take_revoked();
        let holders = state.end_all(&clients, self.locks(), now_ns);
        self.keep_list(&mut state);
        drop(state);
        drop(holders);
    }

    /// Ends the client that is this holder of locks, as if it were dead. False if there is none.
    pub(crate) fn end_holder(&self, holder: HolderId, now_ns: u64) -> bool {
        let state = self.state();
        let client = state.holders.iter().find(|(_, it)| **it == holder).map(|(client, _)| *client);
        let lease = client.and_then(|client| state.clients.lease(client));
        lease.inspect(|lease| lease.revoke());
        let is_one = lease.is_some();
        drop(state);
        self.end_those_revoked(now_ns);
        is_one
    }

    /// Whether new state has to wait for the clients of an earlier server.
    pub(super) fn is_in_grace(&self, now_ns: u64) -> bool {
        if self.is_grace_over.load(Ordering::Relaxed) {
            return false;
        }
        let mut state = self.state();
        let list = state.grace.expire(now_ns);
        self.keep(list);
        let is_on = state.grace.is_on(now_ns);
        self.is_grace_over.store(!is_on, Ordering::Relaxed);
        is_on
    }

    /// Whether a client may ask for what it had.
    pub(super) fn may_reclaim(&self, client: u64, now_ns: u64) -> bool {
        let state = self.state();
        let name = self.listed_name(&state, client);
        name.is_some_and(|name| state.grace.may_reclaim(name, now_ns))
    }

    /// A client has asked for all that it had.
    pub(super) fn complete(&self, client: u64) -> Result<(), Status> {
        let mut state = self.state();
        state.clients.reclaimed(client)?;
        let list = self.listed_name(&state, client).and_then(|name| state.grace.complete(name));
        self.keep(list);
        Ok(())
    }

    /// Whether a client may have state, since a later server would know it.
    pub(super) fn is_listed(&self, client: u64) -> bool {
        self.list.is_none() || self.state().grace.has(client)
    }

    /// Puts a client on the list for a later server, durably.
    pub(super) async fn enlist(&self, client: u64) {
        let kept = {
            let mut state = self.state();
            let list = self.listed_name(&state, client).and_then(|name| state.grace.add(client, name));
            self.keep(list)
        };
        if let Some(kept) = kept {
            kept.await;
        }
    }

    /// The name of a client on the list. Nobody without the volume's key makes two clients one.
    fn listed_name(&self, state: &State<Held<P>>, client: u64) -> Option<u64> {
        let (party, own) = state.clients.own_name(client)?;
        let mut hasher = SipHasher13::new_with_key(&self.volume.hash_key());
        hasher.write(party.to_string().as_bytes());
        hasher.write_u8(0);
        hasher.write(own);
        Some(hasher.finish())
    }

    /// Has a changed list kept. The caller has the state, so that lists are kept in their order.
    fn keep(&self, list: Option<Vec<u64>>) -> Option<BoxFuture<'static, ()>> {
        Some(self.list.as_ref()?.keep(list?))
    }

    /// Has the list kept after the end of clients.
    pub(super) fn keep_list(&self, state: &mut State<Held<P>>) {
        let list = state.list.take();
        self.keep(list);
    }

    /// Opens a file for an owner.
    pub(super) fn open(
        &self,
        by: Opener<'_>,
        file: u64,
        share: Share,
        now_ns: u64,
        hold: impl FnOnce() -> Result<Held<P>, Status>,
    ) -> Result<Stateid, Status> {
        let mut state = self.state();
        let holder = state.holder(by.client, self.locks())?;
        let reserve = |place: u32, share| self.locks().share(file, (holder, u64::from(place)), share, Nanos(now_ns));
        let opened = state.opens.open(by, file, share, reserve, hold);
        drop(state);
        self.end_revoked(now_ns);
        opened
    }

    /// Whether nobody's share is in the way of a use of a file, but for the owner's own.
    pub(super) fn may_use(&self, file: u64, share: Share, by: Option<Opener<'_>>, now_ns: u64) -> bool {
        let own = by.and_then(|by| {
            let state = self.state();
            let place = state.opens.place_of_owner(&by, file)?;
            Some((*state.holders.get(&by.client)?, u64::from(place)))
        });
        let is_free = self.locks().may_share(file, own, share, Nanos(now_ns));
        self.end_revoked(now_ns);
        is_free
    }

    /// Gives up rights of an open.
    pub(super) fn downgrade(
        &self,
        client: u64,
        (at, sequence): (StatePlace, u32),
        share: Share,
        now_ns: u64,
    ) -> Result<Stateid, Status> {
        let mut state = self.state();
        let (file, _) = state.opens.find(client, at, sequence)?;
        let stateid = state.opens.downgrade(client, at, sequence, share)?;
        let holder = state.holder(client, self.locks())?;
        // Less than before is in nobody's way.
        self.locks().share(file, (holder, u64::from(at.place)), share, Nanos(now_ns));
        Ok(stateid)
    }

    /// Closes an open, with the locks that were begun with it.
    pub(super) fn close(&self, client: u64, (at, sequence): (StatePlace, u32), now_ns: u64) -> Result<(), Status> {
        let mut state = self.state();
        let Closed { file, place, holder: held } = state.opens.close(client, at, sequence)?;
        let ended = state.lock_states.end_of(place);
        if let Some(holder) = state.holders.get(&client).copied() {
            self.locks().end_share(file, (holder, u64::from(place)));
            ended.iter().for_each(|it| self.unlock_all(holder, it, now_ns));
        }
        drop(state);
        drop(held);
        Ok(())
    }

    /// Drops all locks of a lock owner of a file.
    fn unlock_all(&self, holder: HolderId, of: &LockState, now_ns: u64) {
        let owner = lock_owner(holder, of.number);
        // Without any part left over it needs no room.
        let _ = self.locks().unlock(of.file, owner, Span::WHOLE, Nanos(now_ns));
    }
}

/// A number for a session that nobody guesses.
pub(super) fn session_id(volume: &Volume<impl Platform>) -> SessionId {
    let platform = volume.engine().platform();
    let mut id = [0; 16];
    for half in id.chunks_exact_mut(8) {
        half.copy_from_slice(&platform.random_u64().to_be_bytes());
    }
    id
}

/// The state, shared by connections.
pub(crate) type Shared<P> = Arc<Service<P>>;
