//! The return of clients with their sessions, opens and locks from memory that an earlier server left.
//!
//! Owns: the order of return, the choice between going on and beginning anew.
//! Does not own: the form of what was kept (`state::kept`), the tables (`state`), the files of opens (`service`).
//! Invariants: all that was kept comes back, or nothing does: then clients find a new server and ask again for their
//! state. What lacks its client or its open stays away. No lock comes back beside one that it excludes.

use std::collections::BTreeMap;

use afflux_frontend::{FoundItem, KeptItem, Party};
use afflux_volume::{HolderId, Lock, LockFamily, LockOwner, Locks, Nanos};

use super::client_state::{State, lock_owner};
use super::state::kept::{LockedRange, Memory, RangeStep, Record};

/// The place of a volume's number for a client's lock owner.
pub(super) type OwnerNumber<'a> = &'a dyn Fn(u64, &[u8]) -> u64;

/// The ranges of a lock owner of a file, as they come back.
struct LeftLocks {
    file: u64,
    owner: LockOwner,
    ranges: Vec<LockedRange>,
    steps: Vec<RangeStep>,
}

impl LeftLocks {
    /// Locks them, after all steps. False if another's lock is in the way.
    fn try_lock(self, locks: &Locks, now_ns: u64) -> bool {
        let Self { file, owner, ranges, steps } = self;
        let ranges = if steps.is_empty() { ranges } else { after(ranges, &steps) };
        let lock = |(span, mode)| Lock { owner, span, mode, process: 0 };
        ranges.into_iter().all(|range| locks.reclaim(file, lock(range), Nanos(now_ns)).is_ok())
    }
}

/// Ranges after some steps.
fn after(ranges: Vec<LockedRange>, steps: &[RangeStep]) -> Vec<LockedRange> {
    // A table of its own has the rules of joining and splitting.
    let (alone, file, now) = (Locks::default(), 0, Nanos(0));
    let owner = LockOwner { holder: HolderId(0), number: 0, family: LockFamily::Single };
    let first = ranges.into_iter().map(|(span, mode)| (span, Some(mode)));
    for (span, mode) in first.chain(steps.iter().copied()) {
        // Nobody is in the way, and an earlier server had room for it.
        let _ = match mode {
            Some(mode) => alone.lock(file, Lock { owner, span, mode, process: 0 }, now),
            None => alone.unlock(file, owner, span, now),
        };
    }
    alone.ranges_of(file, owner)
}

/// The memory that an earlier server left goes on with its number, in its next run. Also returns the first number for
/// new clients, and whether nobody was missing.
pub(super) fn of_server(found: &[FoundItem]) -> Option<(u32, u32, u64, bool)> {
    match Record::read(0, &found.first().filter(|first| first.kind == 0)?.bytes)? {
        Record::Server { memory, run, next_client, is_grace_over } => {
            Some((memory, run.wrapping_add(1), next_client, is_grace_over))
        }
        _ => None,
    }
}

impl<H: Default> State<H> {
    /// The state that was found. None if it is not whole; then the volume has no lock of it.
    pub(super) fn recovered(
        memory: &Memory,
        found: Vec<FoundItem>,
        number: OwnerNumber<'_>,
        locks: &Locks,
        now_ns: u64,
    ) -> Option<Self> {
        let mut state = Self::new(memory);
        let is_whole = state.restore_all(memory, found, number, locks, now_ns).is_some();
        if !is_whole {
            state.holders.values().for_each(|holder| locks.release_holder(*holder, Nanos(now_ns)));
        }
        is_whole.then_some(state)
    }

    fn restore_all(
        &mut self,
        memory: &Memory,
        found: Vec<FoundItem>,
        number: OwnerNumber<'_>,
        locks: &Locks,
        now_ns: u64,
    ) -> Option<()> {
        let mut called: BTreeMap<u32, (u32, KeptItem)> = BTreeMap::new();
        let (mut sessions, mut left) = (Vec::new(), BTreeMap::new());
        // By kind: clients, then sessions, then opens, then locks, then their steps.
        for FoundItem { kind, id, mut item, bytes } in found {
            let record = Record::read(kind, &bytes)?;
            let is_there = match &record {
                Record::Server { .. } => {
                    self.server_item = std::mem::take(&mut item);
                    true
                }
                Record::Client { .. } => self.clients.try_restore(&record, std::mem::take(&mut item), now_ns),
                Record::Session { .. } => {
                    sessions.push((id, std::mem::take(&mut item), bytes.clone()));
                    true
                }
                Record::BackChannel { sequence } => {
                    called.insert(id, (*sequence, std::mem::take(&mut item)));
                    true
                }
                Record::Open { client, .. } => match self.party(*client) {
                    Some(party) => {
                        self.try_restore_open(id, (party, number), &record, std::mem::take(&mut item), (locks, now_ns))
                    }
                    None => {
                        memory.drop_found(&mut item);
                        true
                    }
                },
                Record::Locks { client, open, file, .. } => match self.party(*client) {
                    Some(party) if self.opens.is_of(*open, *client, *file) => {
                        let item = std::mem::take(&mut item);
                        let found = self.restore_locks(id, (party, number), &record, item, locks);
                        found.map(|found| left.insert(id, found)).is_some()
                    }
                    _ => {
                        memory.drop_found(&mut item);
                        true
                    }
                },
                Record::LockStep { .. } => {
                    let counts = self.lock_states.restore_step(&record, std::mem::take(&mut item));
                    let known = counts.and_then(|(place, step)| Some((left.get_mut(&place)?, step)));
                    known.into_iter().for_each(|(left, step): (&mut LeftLocks, _)| left.steps.push(step));
                    true
                }
            };
            is_there.then_some(())?;
        }
        self.opens.restored();
        self.lock_states.restored();
        // Only now: one may have unlocked in its last step what another locked then.
        left.into_values().all(|left: LeftLocks| left.try_lock(locks, now_ns)).then_some(())?;
        for (id, mut item, bytes) in sessions {
            let record = Record::read(2, &bytes)?;
            let Record::Session { client, .. } = record else { return None };
            let mut back = called.remove(&id).unwrap_or_default();
            let is_there = match (self.party(client), self.clients.lease(client).cloned()) {
                (Some(party), Some(lease)) => self.sessions.try_restore(id, (party, lease), &record, (item, back)),
                _ => {
                    memory.drop_found(&mut back.1);
                    memory.drop_found(&mut item);
                    true
                }
            };
            is_there.then_some(())?;
        }
        called.into_values().for_each(|(_, mut item)| memory.drop_found(&mut item));
        Some(())
    }

    fn party(&self, client: u64) -> Option<Party> {
        self.clients.name(client).map(|name| name.party)
    }

    fn try_restore_open(
        &mut self,
        place: u32,
        (party, number): (Party, OwnerNumber<'_>),
        record: &Record<'_>,
        item: KeptItem,
        (locks, now_ns): (&Locks, u64),
    ) -> bool {
        let Record::Open { client, file, share, owner, .. } = *record else { return false };
        let Ok(holder) = self.holder(client, locks) else { return false };
        self.opens.try_restore(place, (party, number(client, owner)), record, item, H::default())
            && locks.share(file, (holder, u64::from(place)), share, Nanos(now_ns)).is_ok()
    }

    fn restore_locks(
        &mut self,
        place: u32,
        (party, number): (Party, OwnerNumber<'_>),
        record: &Record<'_>,
        item: KeptItem,
        locks: &Locks,
    ) -> Option<LeftLocks> {
        let Record::Locks { client, file, owner, ranges, .. } = record else { return None };
        let (number, holder) = (number(*client, owner), self.holder(*client, locks).ok()?);
        let is_there = self.lock_states.try_restore(place, (party, number), record, item);
        let (owner, ranges) = (lock_owner(holder, number), ranges.to_vec());
        is_there.then(|| LeftLocks { file: *file, owner, ranges, steps: Vec::new() })
    }
}
