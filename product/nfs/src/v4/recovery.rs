//! The return of clients with their sessions, opens and locks from memory inherited from an earlier server.
//!
//! Owns: the files of persisted opens, the order of return, the choice between going on and beginning anew.
//! Does not own: the form of what was persisted (`state::persisted`), the tables (`state`), the moment of the return
//! (`service`).
//! Invariants: all that was persisted comes back, or nothing does: then clients find a new server and ask again for
//! their state. State without its client, its open or its file does not come back. A file is found by its handle, and
//! never by a number: another file may have the number now
//! (`each_open_of_a_file_that_is_gone_ends_with_its_locks_and_denials`). Each open holds its file, so that no other
//! file gets the number while it lives. No lock comes back beside one that it excludes.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use afflux_frontend::{FoundItem, Party, PersistedItem};
use afflux_volume::{
    DelegationHolder, Delegations as Grants, Held, HolderId, Lock, LockFamily, LockOwner, Locks, Nanos, Platform,
    Volume, VolumeError,
};
use futures_util::future::{Either, select};
use futures_util::stream::{self, StreamExt};

use super::back_channel::{CallbackSequence, LockCall};
use super::client_state::{State, lock_owner};
use super::state::delegations::Delegate;
use super::state::opens::HeldFile;
use super::state::persisted::{LockedRange, Memory, RangeStep, Record};
use crate::v4::back_channel::LockNotice;

/// Files that are looked for at the same time.
const AT_A_TIME: usize = 64;
/// A server waits no longer than this for files of opens before it answers others.
const PATIENCE_NS: u64 = 20 * Nanos::SECOND;
/// Linux's errno for a file system that has not answered in time.
const ETIMEDOUT: i32 = 110;

/// An open of an earlier server's client that has ended with that server, since its file cannot be had again. Its locks
/// and denials have ended with it.
#[derive(Debug)]
pub struct LostOpen {
    /// The number that the file had.
    pub file: u64,
    /// The client, for people.
    pub client: String,
    /// Why the file cannot be had.
    pub error: VolumeError,
}

/// The files of persisted opens, by handle, as they were found.
pub(super) type FoundFiles<P> = BTreeMap<Box<[u8]>, Result<Held<P>, VolumeError>>;

/// The file of a handle, as it is now.
pub(super) type FileOf<'a, H> = &'a dyn Fn(&[u8]) -> Result<HeldFile<H>, VolumeError>;

/// The volume, as the return of clients needs it.
pub(super) struct VolumeView<'a, H> {
    pub(super) owner_id: OwnerId<'a>,
    pub(super) file_of: FileOf<'a, H>,
    pub(super) locks: &'a Locks,
    pub(super) now_ns: u64,
}

/// The handles of all files that were open or delegated.
pub(super) fn handles(found: &[FoundItem]) -> Vec<Box<[u8]>> {
    let handle = |item: &FoundItem| match Record::read(item.kind, &item.bytes) {
        Some(Record::Open { handle, .. } | Record::Delegation { handle, .. }) => Some(Box::from(handle)),
        _ => None,
    };
    let handles: std::collections::BTreeSet<Box<[u8]>> = found.iter().filter_map(handle).collect();
    handles.into_iter().collect()
}

/// Holds the files of these handles. A file whose file system does not answer in time counts as one that is not found.
pub(super) async fn hold_all<P: Platform>(volume: &Volume<P>, handles: Vec<Box<[u8]>>) -> FoundFiles<P> {
    let platform = volume.engine().platform();
    let mut files: FoundFiles<P> =
        handles.iter().map(|it| (it.clone(), Err(VolumeError::Io { errno: ETIMEDOUT }))).collect();
    let hold = |handle: Box<[u8]>| async move {
        let held = volume.hold_inherited(&handle).await;
        (handle, held)
    };
    let mut found = pin!(stream::iter(handles).map(hold).buffer_unordered(AT_A_TIME));
    let mut over = pin!(platform.sleep_until(platform.now().after(PATIENCE_NS)));
    while let Either::Left((Some((handle, held)), _)) = select(found.next(), &mut over).await {
        files.insert(handle, held);
    }
    files
}

/// Shows the locks of these files to programs of the host, if they are to see any. A program that got a lock meanwhile
/// retains it, and the client's own stays.
pub(super) async fn show_on_host<P: Platform>(volume: &Volume<P>, files: &FoundFiles<P>) {
    if !volume.locks().are_on_host() {
        return;
    }
    let platform = volume.engine().platform();
    let show = |held: &Held<P>| {
        let inode = Arc::clone(held.inode());
        async move { drop(volume.host_locks(&inode).await) }
    };
    let mut shown = pin!(stream::iter(files.values().flatten()).map(show).buffer_unordered(AT_A_TIME));
    let mut over = pin!(platform.sleep_until(platform.now().after(PATIENCE_NS)));
    while let Either::Left((Some(()), _)) = select(shown.next(), &mut over).await {}
}

/// The volume's number for a client's lock owner.
pub(super) type OwnerId<'a> = &'a dyn Fn(u64, &[u8]) -> u64;

/// The ranges of a lock owner of a file, as they come back.
struct InheritedLocks {
    file: u64,
    owner: LockOwner,
    ranges: Vec<LockedRange>,
    steps: Vec<RangeStep>,
}

impl InheritedLocks {
    /// Locks them, after all steps. False if another's lock conflicts.
    fn try_lock(self, locks: &Locks) -> bool {
        let Self { file, owner, ranges, steps } = self;
        let ranges = if steps.is_empty() { ranges } else { after(ranges, &steps) };
        let lock = |(span, mode)| Lock { owner, span, mode, process: 0 };
        ranges.into_iter().all(|range| locks.restore(file, lock(range)).is_ok())
    }
}

/// Ranges after some steps.
fn after(ranges: Vec<LockedRange>, steps: &[RangeStep]) -> Vec<LockedRange> {
    // A table of its own has the rules of joining and splitting.
    let (alone, file, now) = (Locks::default(), 0, Nanos(0));
    let owner = LockOwner { holder: HolderId(0), number: 0, family: LockFamily::Single };
    let first = ranges.into_iter().map(|(span, mode)| (span, Some(mode)));
    for (span, mode) in first.chain(steps.iter().copied()) {
        // No lock conflicts, and the bounds of an earlier server allowed it.
        let _ = match mode {
            Some(mode) => alone.lock(file, Lock { owner, span, mode, process: 0 }, now),
            None => alone.unlock(file, owner, span, now),
        };
    }
    alone.ranges_of(file, owner)
}

/// The memory inherited from an earlier server goes on with its number, in its next run. Also returns the first number
/// for new clients, and whether nobody was missing.
pub(super) fn of_server(found: &[FoundItem]) -> Option<(u32, u32, u64, bool)> {
    match Record::read(0, &found.first().filter(|first| first.kind == 0)?.bytes)? {
        Record::Server { memory, run, next_client, is_grace_over } => {
            Some((memory, run.wrapping_add(1), next_client, is_grace_over))
        }
        _ => None,
    }
}

impl<H> State<H> {
    /// The state that was found, and the opens that have ended. None if it is not whole; then the volume has no lock of
    /// it.
    pub(super) fn recovered(
        memory: &Memory,
        found: Vec<FoundItem>,
        view: &VolumeView<'_, H>,
    ) -> Option<(Self, Vec<LostOpen>)> {
        let (mut state, mut lost) = (Self::new(memory), Vec::new());
        let is_whole = state.restore_all(memory, found, view, &mut lost).is_some();
        if !is_whole {
            state.holders.values().for_each(|holder| view.locks.release_holder(*holder, Nanos(view.now_ns)));
        }
        is_whole.then_some((state, lost))
    }

    fn restore_all(
        &mut self,
        memory: &Memory,
        found: Vec<FoundItem>,
        view: &VolumeView<'_, H>,
        lost: &mut Vec<LostOpen>,
    ) -> Option<()> {
        let mut called: BTreeMap<u32, CallbackSequence> = BTreeMap::new();
        let (mut sessions, mut left, mut waits) = (Vec::new(), BTreeMap::new(), Vec::new());
        // By kind: clients, then sessions, then opens, then locks, then their steps, then waits, then delegations.
        for FoundItem { kind, id, mut item, bytes } in found {
            let record = Record::read(kind, &bytes)?;
            let is_there = match &record {
                Record::Server { .. } => {
                    self.server_item = std::mem::take(&mut item);
                    true
                }
                Record::Client { .. } => self.clients.try_restore(&record, std::mem::take(&mut item), view.now_ns),
                Record::Session { .. } => {
                    sessions.push((id, std::mem::take(&mut item), bytes.clone()));
                    true
                }
                Record::BackChannel { sequenceid } => {
                    called.insert(id, CallbackSequence { sequenceid: *sequenceid, item: std::mem::take(&mut item) });
                    true
                }
                Record::Open { clientid, handle, file: number_before, .. } => {
                    match (self.party(*clientid), (view.file_of)(handle)) {
                        (Some(party), Ok(file)) => {
                            let item = std::mem::take(&mut item);
                            self.try_restore_open(id, party, &record, item, file, view)
                        }
                        (party, file) => {
                            let client = party.and_then(|_| self.clients.named_for_people(*clientid));
                            if let (Some((_, client)), Err(error)) = (client, file) {
                                lost.push(LostOpen { file: *number_before, client, error });
                            }
                            memory.drop_found(&mut item);
                            true
                        }
                    }
                }
                // The open's entry names their file. The earlier server reused no entry whose locks it still removed.
                Record::Locks { clientid, open, .. } => {
                    match (self.party(*clientid), self.opens.file_at(*open, *clientid)) {
                        (Some(party), Some(file)) => {
                            let item = std::mem::take(&mut item);
                            let found = self.restore_locks(id, party, file, &record, item, view);
                            found.map(|found| left.insert(id, found)).is_some()
                        }
                        _ => {
                            memory.drop_found(&mut item);
                            true
                        }
                    }
                }
                Record::LockStep { .. } => {
                    let counts = self.lock_states.restore_step(&record, std::mem::take(&mut item));
                    let known = counts.and_then(|(id, step)| Some((left.get_mut(&id)?, step)));
                    known.into_iter().for_each(|(left, step): (&mut InheritedLocks, _)| left.steps.push(step));
                    true
                }
                Record::Wait { .. } => {
                    waits.push((id, std::mem::take(&mut item), bytes.clone()));
                    true
                }
                // Without the file no change can outdate the copy of the client.
                Record::Delegation { clientid, handle, .. } => match (self.party(*clientid), (view.file_of)(handle)) {
                    (Some(party), Ok(HeldFile { file, .. })) => {
                        let item = std::mem::take(&mut item);
                        self.try_restore_delegation(id, party, file, &record, item)
                    }
                    _ => {
                        memory.drop_found(&mut item);
                        true
                    }
                },
            };
            is_there.then_some(())?;
        }
        self.opens.restored();
        self.lock_states.restored();
        self.delegations.restored();
        // Only now: one may have unlocked in its last step what another locked then.
        left.into_values().all(|left: InheritedLocks| left.try_lock(view.locks)).then_some(())?;
        for (id, mut item, bytes) in sessions {
            let record = Record::read(2, &bytes)?;
            let Record::Session { clientid, .. } = record else { return None };
            let mut back = called.remove(&id).unwrap_or_default();
            let is_there = match (self.party(clientid), self.clients.lease(clientid).cloned()) {
                (Some(party), Some(lease)) => self.sessions.try_restore(id, party, lease, &record, item, back),
                _ => {
                    memory.drop_found(&mut back.item);
                    memory.drop_found(&mut item);
                    true
                }
            };
            is_there.then_some(())?;
        }
        called.into_values().for_each(|mut back| memory.drop_found(&mut back.item));
        for (id, item, bytes) in waits {
            self.restore_wait(id, &Record::read(7, &bytes)?, item, view);
        }
        Some(())
    }

    /// An owner goes on waiting, unless its open has ended.
    fn restore_wait(&mut self, id: u32, record: &Record<'_>, mut item: PersistedItem, view: &VolumeView<'_, H>) {
        let Record::Wait { clientid, open, owner, span, mode, .. } = *record else { return };
        let of_open = self.opens.handle_at(open, clientid).map(|(file, handle)| (file, handle.to_vec()));
        let (Some(party), Some((file, handle)), Ok(holder)) =
            (self.party(clientid), of_open, self.holder(clientid, view.locks))
        else {
            return self.memory.drop_found(&mut item);
        };
        let (wait, notices) = (self.waits.restore(id, party, item), Arc::clone(self.sessions.notices_of(clientid)));
        let notice = LockNotice { file: handle, clientid, owner: owner.into(), wait };
        let wanted = Lock { owner: lock_owner(holder, (view.owner_id)(clientid, owner)), span, mode, process: 0 };
        view.locks.wait_again(file, wanted, Arc::new(LockCall { notices, open, notice }));
    }

    fn party(&self, clientid: u64) -> Option<Party> {
        self.clients.name(clientid).map(|name| name.party)
    }

    fn try_restore_open(
        &mut self,
        id: u32,
        party: Party,
        record: &Record<'_>,
        item: PersistedItem,
        open: HeldFile<H>,
        view: &VolumeView<'_, H>,
    ) -> bool {
        let Record::Open { clientid, share, owner, .. } = *record else { return false };
        let Ok(holder) = self.holder(clientid, view.locks) else { return false };
        let (file, number) = (open.file, (view.owner_id)(clientid, owner));
        self.opens.try_restore(id, party, number, record, item, open)
            && view.locks.share(file, (holder, u64::from(id)), share, Nanos(view.now_ns)).is_ok()
    }

    fn try_restore_delegation(
        &mut self,
        id: u32,
        party: Party,
        file: u64,
        record: &Record<'_>,
        item: PersistedItem,
    ) -> bool {
        let Record::Delegation { clientid, handle, .. } = *record else { return false };
        let Some(lease) = self.clients.lease(clientid).cloned() else { return false };
        let calls = Arc::clone(self.sessions.notices_of(clientid));
        let to = Delegate { clientid, party, file, handle, lease: &lease, calls: &calls };
        self.delegations.try_restore(id, to, record, item)
    }

    /// The clients have their delegations again. Those that the volume does not grant any more are revoked.
    pub(super) fn grant_again(&mut self, grants: &Arc<Grants>) {
        self.grants = Arc::clone(grants);
        for delegation in self.delegations.all().filter(|it| !it.is_revoked()) {
            let holder: Arc<dyn DelegationHolder> = Arc::clone(delegation) as _;
            if !grants.try_grant(delegation.file, delegation.clientid, holder, || true) {
                delegation.revoke();
            }
        }
    }

    fn restore_locks(
        &mut self,
        id: u32,
        party: Party,
        file: u64,
        record: &Record<'_>,
        item: PersistedItem,
        view: &VolumeView<'_, H>,
    ) -> Option<InheritedLocks> {
        let Record::Locks { clientid, owner, ranges, .. } = record else { return None };
        let (number, holder) = ((view.owner_id)(*clientid, owner), self.holder(*clientid, view.locks).ok()?);
        let is_there = self.lock_states.try_restore(id, party, number, file, record, item);
        let (owner, ranges) = (lock_owner(holder, number), ranges.to_vec());
        is_there.then(|| InheritedLocks { file, owner, ranges, steps: Vec::new() })
    }
}

#[cfg(test)]
mod tests;
