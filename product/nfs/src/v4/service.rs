//! The state of version 4 that all connections share: clients, sessions, opens, and the directory of all exports.
//!
//! Owns: the lock of the state, the moment at which the clients of an earlier server come back, the end of clients
//! whose locks were revoked, the numbers that name this server.
//! Does not own: the state (`client_state`), its rules (`state`), the operations (`operations`), the steps of a lock
//! (`locking`), locks and share reservations (the volume).
//! Invariants: the holder of a file is dropped without the lock, since its drop may end the file. The volume's locks
//! are asked under the lock of the state, and never the reverse.

use std::hash::Hasher;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use afflux_frontend::{CallJournal, FoundItem, HostUsers, OwnerKind, Party, PersistedWords, Recording};
use afflux_volume::{
    ChangeInProgress, Changer, Held, HolderId, KnobId, Locks, Nanos, Platform, Share, ShareRefusal, Timestamp, Volume,
    VolumeError, WhichKnob,
};
use futures_util::future::{BoxFuture, Either, OptionFuture, select};
use siphasher::sip::SipHasher13;

use super::client_state::{ENDS_MAX, State, StateTable};
use super::grace::{ClientList, Grace, are_of_one};
use super::pseudo_root::PseudoRoot;
use super::recovery::{self, FoundFiles, LostOpen, VolumeView, of_server};
use super::state::clients::ClientName;
use super::state::opens::{HeldFile, OpenRights, Opener};
use super::state::persisted::{PersistedRecords, ServerMemory};
use super::state::stateids::{Stateid, StateidKind, StateidOther};
use crate::call_gate::CallGate;
use crate::limits::{LOOK_UP_PATIENCE_NS, NfsKnob};
use crate::status::NfsStatus;
use crate::v4::opnum::Counts;
use crate::v4::state::persisted::{CALL_FORM, CALL_WORDS};
use crate::v4::state::slots::SessionId;

/// Time between two tries to persist a list.
const KEEP_AGAIN_NS: u64 = Nanos::SECOND;

/// One of so many equal parts of this memory is for calls.
const CALLS_PART: usize = 4;

/// The state that outlives a server of version 4.
#[derive(Default)]
pub struct ClientMemory {
    /// The names of clients, inherited from an earlier server.
    pub previous_names: Vec<u64>,
    /// Persists the names of clients for a later server.
    pub list: Option<Arc<dyn ClientList>>,
    /// Persists all state of clients for a later server, and has that of an earlier one: it may have any bytes at
    /// first.
    pub words: Option<PersistedWords>,
    /// Gets the opens of an earlier server's clients that have ended with that server.
    pub told: Option<TellLost>,
}

/// Reports opens that have ended to people.
pub type TellLost = Arc<dyn Fn(&[LostOpen]) + Send + Sync>;

/// The clients inherited from an earlier server, until the files of their opens are found.
struct InheritedClients {
    records: Arc<PersistedRecords>,
    found: Vec<FoundItem>,
    /// Names of clients.
    names: Vec<u64>,
}

/// Why an OPEN is not granted.
pub(super) enum OpenRefusal {
    /// This holder has a conflicting share reservation, and ends.
    Ending(HolderId),
    /// Other clients have delegations of the file, which are recalled.
    Recalling,
    Status(NfsStatus),
}

impl From<NfsStatus> for OpenRefusal {
    fn from(status: NfsStatus) -> Self {
        Self::Status(status)
    }
}

impl From<ShareRefusal> for OpenRefusal {
    fn from(refusal: ShareRefusal) -> Self {
        match refusal {
            ShareRefusal::Ending(holder) => Self::Ending(holder),
            ShareRefusal::Denied => Self::Status(NfsStatus::ShareDenied),
            ShareRefusal::Grace => Self::Status(NfsStatus::Grace),
        }
    }
}

/// An OPEN that was granted.
#[derive(Clone, Copy)]
pub(super) struct OpenGrant {
    pub(super) stateid: Stateid,
    /// The rights that the open had before; none of a new one.
    before: Option<OpenRights>,
}

impl OpenGrant {
    /// As an earlier server has granted it.
    pub(super) fn earlier(stateid: Stateid) -> Self {
        Self { stateid, before: None }
    }
}

/// Version 4 of a server.
pub(crate) struct Service<P: Platform> {
    /// For tasks, which do not hold the service.
    me: Weak<Self>,
    state: Mutex<State<Option<Held<P>>>>,
    pub(super) volume: Arc<Volume<P>>,
    /// Persists the names of clients for a later server.
    list: Option<Arc<dyn ClientList>>,
    /// The calls that a later server finds.
    pub(super) journal: Option<Arc<CallJournal>>,
    /// The users that the host knows; none if calls are carried out as no other user.
    host_users: Option<Arc<dyn HostUsers>>,
    pub(super) root: PseudoRoot,
    /// Names this server to clients, over restarts.
    pub(super) name: [u8; 16],
    pub(crate) counts: Counts,
    /// The recording of reads, writes and syncs.
    pub(super) recording: Arc<Recording>,
    xattrs: KnobId,
    posix_acls: KnobId,
    /// The volume's secret for hashes of numbers and names that clients choose.
    pub(super) hash_key: [u8; 16],
}

impl<P: Platform> Service<P> {
    /// With the clients inherited from an earlier server, as far as its memory is there. The gate is shut until their
    /// files are found.
    pub(crate) fn begin(
        volume: &Arc<Volume<P>>,
        ClientMemory { previous_names, list, words, told }: ClientMemory,
        gate: &Arc<CallGate>,
        recording: &Arc<Recording>,
        host_users: Option<Arc<dyn HostUsers>>,
    ) -> Arc<Self> {
        let hash_key = volume.hash_key();
        let calls = words.as_ref().map(|words| (**words).as_ref().len() / CALLS_PART / CALL_WORDS * CALL_WORDS);
        let journal = words.clone().zip(calls).map(|(words, calls)| CallJournal::new(words, 0..calls, CALL_FORM));
        let (records, found) = words.zip(calls).map(|(words, calls)| PersistedRecords::new(words, calls)).unzip();
        let (state, previous_names) = match records.clone().zip(found.flatten()) {
            // No call sees this state: the calls wait until the clients are back.
            Some((records, found)) => (
                State::new(&ServerMemory::new(0, 0, None)),
                Some(InheritedClients { records, found, names: previous_names }),
            ),
            None => (fresh(volume, records.as_ref(), previous_names), None),
        };
        let service = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            root: PseudoRoot::new(volume.exports(), Timestamp::from_wall(volume.engine().platform().wall_clock())),
            name: volume.server_name(),
            hash_key,
            state: Mutex::new(state),
            journal,
            host_users,
            list,
            counts: Counts::new(),
            recording: Arc::clone(recording),
            xattrs: NfsKnob::Xattrs.id(volume.engine().settings()),
            posix_acls: NfsKnob::PosixAcls.id(volume.engine().settings()),
            volume: Arc::clone(volume),
        });
        let told = told.unwrap_or_else(|| Arc::new(|_| {}));
        match previous_names {
            Some(previous_names) => service.find_files(previous_names, told, gate),
            None => service.begin_tasks(),
        }
        service
    }

    /// The number of a user or a group that a client names. A host that does not answer in time may do so later.
    ///
    /// # Errors
    /// `BADOWNER` for a name that the host does not know, `DELAY` without an answer.
    pub(super) async fn owner_of(&self, kind: OwnerKind, name: &str) -> Result<u32, NfsStatus> {
        let host = self.host_users.as_ref().ok_or(NfsStatus::Badowner)?;
        let platform = self.volume.engine().platform();
        let patience = platform.sleep_until(platform.now().after(LOOK_UP_PATIENCE_NS));
        match select(host.number_of(kind, name), pin!(patience)).await {
            Either::Left((number, _)) => number.ok_or(NfsStatus::Badowner),
            Either::Right(_) => Err(NfsStatus::Delay),
        }
    }

    /// Finds the files of an earlier server's opens, and brings the clients back. No call starts before that.
    fn find_files(self: &Arc<Self>, previous_names: InheritedClients, told: TellLost, gate: &Arc<CallGate>) {
        let handles = recovery::handles(&previous_names.found);
        if handles.is_empty() {
            return told(&self.bring_back(previous_names, &FoundFiles::new()));
        }
        gate.shut();
        let (me, volume, gate) = (Arc::downgrade(self), Arc::clone(&self.volume), Arc::clone(gate));
        self.volume.engine().platform().spawn("find open files", async move {
            let files = recovery::hold_all(&volume, handles).await;
            if let Some(service) = me.upgrade() {
                told(&service.bring_back(previous_names, &files));
                drop(service);
                recovery::show_on_host(&volume, &files).await;
            }
            gate.open();
        });
    }

    /// The clients of an earlier server have their state again, with these files. Returns the opens that have ended.
    fn bring_back(
        self: &Arc<Self>,
        InheritedClients { records, found, names }: InheritedClients,
        files: &FoundFiles<P>,
    ) -> Vec<LostOpen> {
        let back = recovered(&self.volume, &records, found, files, &names);
        let (state, lost) = back.unwrap_or_else(|| (fresh(&self.volume, Some(&records), names), Vec::new()));
        *self.state() = state;
        self.begin_tasks();
        if !self.is_in_grace() {
            // Some wait for bytes that their holder has unlocked, or that ended with the server.
            self.locks().tick(self.volume.engine().platform().now());
        }
        lost
    }

    /// The state. Nothing is awaited, and no holder is dropped, while it is locked.
    pub(super) fn state(&self) -> MutexGuard<'_, State<Option<Held<P>>>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether extended attributes are offered.
    pub(super) fn has_xattrs(&self) -> bool {
        self.volume.engine().settings().get(self.xattrs) != 0
    }

    /// Whether access control lists are offered.
    pub(super) fn has_posix_acls(&self) -> bool {
        self.volume.engine().settings().get(self.posix_acls) != 0
    }

    /// Numbers of clients, sessions and opens.
    pub(crate) fn held(&self) -> (usize, usize, usize) {
        let state = self.state();
        (state.clients.len(), state.sessions.len(), state.opens.len())
    }

    /// The number of an earlier server's clients that others wait for.
    pub(crate) fn missing(&self) -> usize {
        self.state().grace.missing()
    }

    pub(super) fn locks(&self) -> &Locks {
        self.volume.locks()
    }

    /// The volume's number for a lock owner of a client. Nobody without the volume's key makes two owners one.
    pub(super) fn owner_id(&self, clientid: u64, owner: &[u8]) -> u64 {
        owner_id(&self.hash_key, clientid, owner)
    }

    /// Ends silent clients whose locks others want.
    pub(super) fn end_revoked(&self) {
        // Dropped after the lock.
        let mut ended = Vec::new();
        self.end_revoked_of(&mut self.state(), &mut ended);
    }

    /// As [`Service::end_revoked`], by a caller that has the state. Adds the holders of files, to be dropped without
    /// the lock.
    pub(super) fn end_revoked_of(&self, state: &mut State<Option<Held<P>>>, held: &mut Vec<Option<Held<P>>>) {
        let revoked = state.revocations.take();
        if !revoked.is_empty() {
            let clients = state.clients.take_revoked(revoked);
            held.extend(state.end_all(&clients, self.locks()));
            self.keep_list(state);
        }
    }

    /// Ends a client, as if it were dead. False if there is none.
    pub(crate) fn try_end_client(&self, clientid: u64) -> bool {
        let state = self.state();
        let Some(lease) = state.clients.lease(clientid) else { return false };
        lease.revoke();
        state.revocations.begin(clientid);
        drop(state);
        self.end_revoked();
        true
    }

    /// Whether new state has to wait for the clients of an earlier server.
    pub(super) fn is_in_grace(&self) -> bool {
        self.locks().is_in_grace()
    }

    /// The state of this server is there. Begins the tasks that end silent clients and the grace period.
    fn begin_tasks(self: &Arc<Self>) {
        let (me, volume) = (Arc::downgrade(self), Arc::clone(&self.volume));
        let end_clients = move || {
            let me = me.clone();
            volume.engine().platform().spawn("end silent clients", async move {
                if let Some(service) = me.upgrade() {
                    service.end_revoked();
                }
            });
        };
        let until = {
            let state = self.state();
            state.revocations.call(end_clients);
            if state.grace.missing() == 0 {
                return;
            }
            self.locks().begin_grace(state.grace.are_denials_missing());
            Nanos(state.grace.until_ns())
        };
        let (me, volume) = (Arc::downgrade(self), Arc::clone(&self.volume));
        self.volume.engine().platform().spawn("end the grace period", async move {
            volume.engine().platform().sleep_until(until).await;
            if let Some(service) = me.upgrade() {
                service.end_grace().await;
            }
        });
    }

    /// Gives up on the clients that are missing. Others get locks once the list without them is durable.
    async fn end_grace(&self) {
        let platform = self.volume.engine().platform();
        if !self.is_in_grace() {
            return;
        }
        self.state().grace.expire(platform.now().0);
        while !OptionFuture::from(self.keep_names()).await.unwrap_or(true) {
            platform.sleep_until(platform.now().after(KEEP_AGAIN_NS)).await;
        }
        self.state().keep_server();
        self.locks().end_grace(platform.now());
    }

    /// Whether a client may ask for what it had.
    pub(super) fn may_reclaim(&self, clientid: u64, now_ns: u64) -> bool {
        let state = self.state();
        let name = self.listed_name(&state, clientid);
        name.is_some_and(|name| state.grace.may_reclaim(name, now_ns))
    }

    /// A client has asked for all that it had.
    pub(super) fn reclaim_complete(&self, clientid: u64) -> Result<(), NfsStatus> {
        let mut state = self.state();
        state.clients.reclaim_complete(clientid)?;
        if let Some(name) = self.listed_name(&state, clientid) {
            state.grace.complete(name);
        }
        // A later server still knows the client: the list has the client's present name.
        drop(self.keep(&mut state));
        if self.is_in_grace() && state.grace.missing() == 0 {
            state.keep_server();
            self.locks().end_grace(self.volume.engine().platform().now());
        }
        Ok(())
    }

    /// Whether a client may have state, since a later server would know it. With `denies`, an open that denies uses.
    pub(super) fn is_listed(&self, clientid: u64, denies: bool) -> bool {
        self.list.is_none() || self.state().grace.is_durable(clientid, denies)
    }

    /// Puts a client on the list for a later server, durably; also waits for a change that another call has begun. The
    /// implementation of the list reports an error.
    pub(super) async fn enlist(&self, clientid: u64, denies: bool) {
        let (name, written) = {
            let mut state = self.state();
            let Some(name) = self.listed_name(&state, clientid) else { return };
            state.grace.add(clientid, name);
            if denies {
                state.grace.add_denials();
            }
            let change = state.grace.take_change().unwrap_or_default();
            (name, self.list.as_ref().map(|list| list.change(change)))
        };
        if OptionFuture::from(written).await.unwrap_or(true) {
            self.state().grace.confirm(clientid, name, denies);
        }
    }

    /// The name of a client on the list.
    fn listed_name(&self, state: &State<Option<Held<P>>>, clientid: u64) -> Option<u64> {
        state.clients.name(clientid).map(|name| listed_name(&self.hash_key, name))
    }

    /// Has the present list persisted, changed or not.
    fn keep_names(&self) -> Option<BoxFuture<'static, bool>> {
        let change = self.state().grace.take_change();
        Some(self.list.as_ref()?.change(change.unwrap_or_default()))
    }

    /// Has a changed list persisted. The caller has the state, so that changes are made in their order.
    fn keep(&self, state: &mut State<Option<Held<P>>>) -> Option<BoxFuture<'static, bool>> {
        let change = state.grace.take_change()?;
        Some(self.list.as_ref()?.change(change))
    }

    /// Has the list persisted after the end of clients. Others get the clients' locks after that. A task ends the rest
    /// of the clients' opens.
    pub(super) fn keep_list(&self, state: &mut State<Option<Held<P>>>) {
        if state.has_ended() && !std::mem::replace(&mut state.is_ending, true) {
            let (me, volume) = (Weak::clone(&self.me), Arc::clone(&self.volume));
            self.volume.engine().platform().spawn("end opens", async move {
                while me.upgrade().is_some_and(|service| service.try_end_some()) {
                    volume.engine().platform().preemption_point().await;
                }
            });
        }
        let (written, ending) = (self.keep(state), std::mem::take(&mut state.ending));
        let platform = self.volume.engine().platform();
        match written {
            Some(written) if !ending.is_empty() => {
                let (me, volume) = (Weak::clone(&self.me), Arc::clone(&self.volume));
                platform.spawn("release locks", release_once_durable(me, volume, written, ending));
            }
            _ => ending.into_iter().for_each(|holder| self.locks().release_holder(holder, platform.now())),
        }
    }

    /// Ends some opens of clients that have ended. False once none remains.
    fn try_end_some(&self) -> bool {
        let mut held = Vec::new();
        let mut state = self.state();
        state.end_some(&mut { ENDS_MAX }, &mut held);
        state.is_ending = state.has_ended();
        state.is_ending
    }

    /// Checks that no share reservation conflicts with an open of this file. A silent client with a conflicting one
    /// ends.
    fn check_share(
        &self,
        state: &mut State<Option<Held<P>>>,
        file: u64,
        own: Option<(HolderId, u64)>,
        share: Share,
        now_ns: u64,
        ended: &mut Vec<Option<Held<P>>>,
    ) -> Result<(), ShareRefusal> {
        let checked = self.locks().check_share(file, own, share, Nanos(now_ns));
        let Err(ShareRefusal::Ending(_)) = checked else { return checked };
        self.end_revoked_of(state, ended);
        self.locks().check_share(file, own, share, Nanos(now_ns))
    }

    /// Opens a file for an owner. With `cuts`, the caller is about to truncate it, which counts as a write.
    pub(super) fn open(
        &self,
        by: Opener<'_>,
        file: u64,
        share: Share,
        cuts: bool,
        now_ns: u64,
        hold: impl FnOnce() -> Result<Option<Held<P>>, NfsStatus>,
    ) -> Result<OpenGrant, OpenRefusal> {
        // Dropped after the lock.
        let mut ended = Vec::new();
        let mut state = self.state();
        let is_conflicting = share.access & Share::WRITE != 0 || share.deny & Share::READ != 0 || cuts;
        let delegations = self.volume.delegations();
        // Until the open is there, nobody else gets a delegation.
        let _change = if is_conflicting && delegations.are_on() {
            let begun = delegations.begin_change(file, Changer::Holder(by.clientid), Nanos(now_ns));
            begun.map_err(|_| OpenRefusal::Recalling)?
        } else {
            ChangeInProgress::default()
        };
        if share.deny != 0 || self.locks().has_denials() {
            // The other client's open ends before the caller gets the file.
            let (own, access) = (state.share_of(&by, file), share.access | if cuts { Share::WRITE } else { 0 });
            self.check_share(&mut state, file, own, Share { access, ..share }, now_ns, &mut ended)?;
        }
        let evicted = state.evict_for(by.party, StateTable::Opens, self.locks(), now_ns, &mut ended, |state, ended| {
            // The files of opens that have ended here are closed after the lock.
            let available = self.volume.open_files_available() + ended;
            state.opens.check_quota(&by, file, available, self.volume.open_files_max())
        });
        self.keep_list(&mut state);
        evicted?;
        let holder = state.holder(by.clientid, self.locks())?;
        let reserve = |id: u32, share| self.locks().share(file, (holder, u64::from(id)), share, Nanos(now_ns)).is_ok();
        let before = state.opens.rights(&by, file);
        let stateid = state.opens.open(by, file, share, reserve, hold)?;
        Ok(OpenGrant { stateid, before })
    }

    /// Takes back what an OPEN has got, since the rest of it failed: the client never hears of it.
    pub(super) fn take_back(&self, clientid: u64, file: u64, granted: OpenGrant, now_ns: u64) {
        let OpenGrant { stateid, before } = granted;
        let Ok(StateidKind::State(at)) = stateid.meaning() else { return };
        match before {
            // An owner's next OPEN may have got more meanwhile.
            None if stateid.seqid == 1 => drop(self.close(clientid, at, stateid.seqid, now_ns)),
            None => {}
            Some(before) => {
                let mut state = self.state();
                if let Some(share) = state.opens.go_back(at.id, stateid.seqid, before)
                    && let Some(holder) = state.holders.get(&clientid)
                {
                    // A smaller share reservation than before conflicts with nobody.
                    let _ = self.locks().share(file, (*holder, u64::from(at.id)), share, Nanos(now_ns));
                }
            }
        }
    }

    /// Checks that no share reservation conflicts with a use of a file without an open.
    pub(super) fn check_use(&self, file: u64, access: u8, now_ns: u64) -> Result<(), NfsStatus> {
        let checked = self.locks().check_use(file, access, Nanos(now_ns));
        let checked = match checked {
            Err(ShareRefusal::Ending(_)) => {
                self.end_revoked();
                self.locks().check_use(file, access, Nanos(now_ns))
            }
            checked => checked,
        };
        checked.map_err(|refusal| match refusal {
            ShareRefusal::Denied => NfsStatus::Locked,
            ShareRefusal::Ending(_) => NfsStatus::Delay,
            ShareRefusal::Grace => NfsStatus::Grace,
        })
    }

    /// Gives up rights of an open.
    pub(super) fn downgrade(
        &self,
        clientid: u64,
        at: StateidOther,
        seqid: u32,
        share: Share,
        mark: u64,
        now_ns: u64,
    ) -> Result<Stateid, NfsStatus> {
        let mut state = self.state();
        let (file, _) = state.opens.find(clientid, at, seqid)?;
        let stateid = state.opens.downgrade(clientid, at, seqid, share, mark)?;
        let holder = state.holder(clientid, self.locks())?;
        // A smaller share reservation than before conflicts with nobody.
        let _ = self.locks().share(file, (holder, u64::from(at.id)), share, Nanos(now_ns));
        Ok(stateid)
    }

    /// Closes an open, with the locks that were begun with it. The client of an open with many locks comes again.
    pub(super) fn close(&self, clientid: u64, at: StateidOther, seqid: u32, now_ns: u64) -> Result<(), NfsStatus> {
        let mut state = self.state();
        state.opens.find(clientid, at, seqid)?;
        let of = state.holders.get(&clientid).map(|holder| (*holder, self.locks(), now_ns));
        let held = state.end_open(at.id, of, &mut { ENDS_MAX });
        drop(state);
        held.map(drop).ok_or(NfsStatus::Delay)
    }

    /// The stateid that a repeated operation had made or changed before the end of an earlier server.
    pub(super) fn changed_by(&self, mark: u64) -> Option<Stateid> {
        let state = self.state();
        state.opens.changed_by(mark).or_else(|| state.lock_states.changed_by(mark))
    }
}

/// Releases the locks of clients that have ended, once a list without them is durable. A further try persists the list
/// as it is at that time: other clients may have come meanwhile.
async fn release_once_durable<P: Platform>(
    me: Weak<Service<P>>,
    volume: Arc<Volume<P>>,
    mut written: BoxFuture<'static, bool>,
    ending: Vec<HolderId>,
) {
    let platform = volume.engine().platform();
    while !written.await {
        platform.sleep_until(platform.now().after(KEEP_AGAIN_NS)).await;
        let again = me.upgrade().and_then(|service| service.keep_names());
        let Some(again) = again else { return };
        written = again;
    }
    ending.into_iter().for_each(|holder| volume.locks().release_holder(holder, platform.now()));
}

/// The state of a server without clients.
fn fresh<P: Platform>(
    volume: &Volume<P>,
    records: Option<&Arc<PersistedRecords>>,
    previous_names: Vec<u64>,
) -> State<Option<Held<P>>> {
    let platform = volume.engine().platform();
    records.inspect(|records| records.clear());
    // Never 0, which begins the special stateids, nor their other value.
    let number = (platform.random_u64() as u32).clamp(1, u32::MAX - 1);
    let mut state = State::new(&ServerMemory::new(number, 0, records));
    state.grants = Arc::clone(volume.delegations());
    state.grace = Grace::new(previous_names, platform.now().0);
    state.keep_server();
    state
}

/// The state inherited from an earlier server, and the opens that have ended.
type Recovered<P> = (State<Option<Held<P>>>, Vec<LostOpen>);

/// The state inherited from an earlier server. None if it is not whole.
fn recovered<P: Platform>(
    volume: &Volume<P>,
    records: &Arc<PersistedRecords>,
    found: Vec<FoundItem>,
    files: &FoundFiles<P>,
    previous_names: &[u64],
) -> Option<Recovered<P>> {
    let (number, run, next_client, is_grace_over) = of_server(&found)?;
    let (memory, now_ns) = (ServerMemory::new(number, run, Some(records)), volume.engine().platform().now().0);
    let key = volume.hash_key();
    let owner_id = |clientid, owner: &[u8]| owner_id(&key, clientid, owner);
    let file_of = |handle: &[u8]| match files.get(handle) {
        Some(Ok(held)) => Ok(HeldFile { file: held.inode().fileid(), held: Some(held.clone()) }),
        Some(Err(error)) => Err(error.clone()),
        None => Err(VolumeError::Stale),
    };
    let view = VolumeView { owner_id: &owner_id, file_of: &file_of, locks: volume.locks(), now_ns };
    let (mut state, lost) = State::recovered(&memory, found, &view)?;
    state.clients.set_next(next_client);
    state.grant_again(volume.delegations());
    let known = state.clients.names().map(|(id, name, has_reclaimed)| (id, listed_name(&key, name), has_reclaimed));
    let is_left = |name: u64| previous_names.iter().any(|previous_names| are_of_one(*previous_names, name));
    let known: Vec<(u64, u64, bool)> = known.filter(|(_, name, _)| is_left(*name)).collect();
    let is_back =
        |name: &u64| known.iter().any(|(_, known, has_reclaimed)| are_of_one(*known, *name) && *has_reclaimed);
    let missing = previous_names.iter().copied().filter(|name| !is_grace_over && !is_back(name));
    state.grace = Grace::new(missing.collect(), now_ns);
    known.iter().for_each(|(id, name, _)| state.grace.add(*id, *name));
    if volume.locks().has_denials() {
        state.grace.add_denials();
    }
    state.grace.drop_unlisted(previous_names);
    state.keep_server();
    Some((state, lost))
}

/// The volume's number for a lock owner of a client. Nobody without the volume's key makes two owners one.
fn owner_id(key: &[u8; 16], clientid: u64, owner: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_key(key);
    hasher.write_u64(clientid);
    hasher.write(owner);
    hasher.finish()
}

/// The name of a client on the list. Nobody without the volume's key makes two clients one.
fn listed_name(key: &[u8; 16], name: ClientName<'_>) -> u64 {
    let hash = |party: &str, run: &[u8]| {
        let mut hasher = SipHasher13::new_with_key(key);
        hasher.write(party.as_bytes());
        hasher.write_u8(0);
        hasher.write(name.own);
        hasher.write(run);
        hasher.finish() >> 32
    };
    let party = name.party.to_string();
    let any = if matches!(name.party, Party::Machine(_)) { "any machine" } else { &party };
    hash(&party, &[]) << 32 | hash(any, &name.verifier)
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
