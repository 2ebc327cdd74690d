//! The part of version 4 that all connections share: clients, sessions, opens, and the tree above the exports.
//!
//! Owns: the lock of the state, the end of clients with all that they have, the numbers that name this server.
//! Does not own: the rules of the state (`state`), the operations (`operations`).
//! Invariants: the holder of a file is dropped without the lock, since its drop may end the file.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use afflux_volume::{FileHandle, Held, Platform, Volume};

use super::counts::Counts;
use super::pseudo_root::PseudoRoot;
use super::state::clients::Clients;
use super::state::opens::{Opener, Opens, Share};
use super::state::sessions::{SessionId, Sessions};
use super::state::stateids::Stateid;
use crate::status::Status;

/// Version 4 of a server.
pub(crate) struct Service<P: Platform> {
    state: Mutex<State<Held<P>>>,
    pub(super) root: PseudoRoot,
    /// The handle of the single export, once somebody has asked for the root.
    pub(super) single: OnceLock<FileHandle>,
    /// Names this server, over restarts.
    pub(super) name: [u8; 16],
    /// When this server began.
    pub(super) began_ns: u64,
    pub(crate) counts: Counts,
}

/// The state of all clients.
pub(super) struct State<H> {
    pub(super) clients: Clients,
    pub(super) sessions: Sessions,
    pub(super) opens: Opens<H>,
}

impl<H> State<H> {
    /// Whether a client has neither sessions nor opens.
    pub(super) fn is_idle(&self, client: u64) -> bool {
        !self.sessions.has_any(client) && !self.opens.has_any(client)
    }

    /// Ends all that these clients had. Returns what held files, to be dropped without the lock.
    pub(super) fn end_all(&mut self, clients: &[u64]) -> Vec<H> {
        let mut holders = Vec::new();
        for client in clients {
            self.sessions.end_all(*client);
            holders.extend(self.opens.release(*client));
        }
        holders
    }

    /// Ends those clients in the way of an open whose leases have ended. Returns what held files.
    pub(super) fn clear_way(&mut self, file: u64, share: Share, of: Option<(u64, &[u8])>, now_ns: u64) -> Vec<H> {
        let in_the_way = self.opens.in_the_way(file, share, of);
        let has_ended = |client: &u64| self.clients.lease(*client).is_none_or(|lease| lease.has_ended(now_ns));
        let ended: Vec<u64> = in_the_way.into_iter().filter(has_ended).collect();
        ended.iter().for_each(|client| self.clients.expire(*client));
        self.end_all(&ended)
    }
}

impl<P: Platform> Service<P> {
    /// Without clients. `places` are pairs of a path of the host and an export's path.
    pub(crate) fn new(volume: &Volume<P>, places: &[(Vec<u8>, String)]) -> Self {
        let platform = volume.engine().platform();
        // Never 0, which begins the special stateids, nor their other value.
        let memory = (platform.random_u64() as u32).clamp(1, u32::MAX - 1);
        let state = State { clients: Clients::new(memory), sessions: Sessions::default(), opens: Opens::new(memory) };
        Self {
            state: Mutex::new(state),
            root: PseudoRoot::new(&volume.exports(), places),
            single: OnceLock::new(),
            name: volume.hash_key().map(|byte| byte ^ 0x34),
            began_ns: platform.now().0,
            counts: Counts::new(),
        }
    }

    /// The state. Nothing is awaited, and no holder is dropped, while it is locked.
    pub(super) fn state(&self) -> MutexGuard<'_, State<Held<P>>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers of clients, sessions and opens.
    pub(crate) fn held(&self) -> (usize, usize, usize) {
        let state = self.state();
        (state.clients.len(), state.sessions.len(), state.opens.len())
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
        let ended = state.clear_way(file, share, Some((by.client, by.owner)), now_ns);
        let opened = state.opens.open(by, file, share, hold);
        drop(state);
        drop(ended);
        opened
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
