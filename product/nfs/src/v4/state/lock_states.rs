//! The stateids of lock owners: a program's name for its locks of one file.
//!
//! Owns: the table of lock owners with locks of a file, their stateids, their bounds; the moments at which a lock owner
//! is persisted with its locks for a later server.
//! Does not own: the locks (the volume), opens (`opens`), the form of what is persisted (`persisted`).
//! Invariants: the record of a change does not grow with the number of locks. A lock owner has one stateid for a file.
//! The stateid works for its own client alone, and ends with the open that began it. There are at most
//! [`LOCK_STATES_MAX`]; each party has its part (`quota`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use afflux_frontend::{Party, PersistedItem, PersistedItems};

use super::persisted::{LockedRange, Memory, RangeStep, Record, STEP_BYTES, locks_bytes};
use super::quota::TableFull;
use super::stateids::{Stateid, StateidOther, check_seqid, is_later, next_seqid};
use crate::status::NfsStatus;
use crate::steps::step;
use crate::v4::state::stateids::{StateIndex, StateKeys, StateidTable};

/// Most lock owners of files.
pub(crate) const LOCK_STATES_MAX: usize = 65_536;
/// The first id: those of opens are below.
const FIRST_LOCK_ID: u32 = 1 << 31;
/// Bits of a step's number among those of its lock owner.
const STEP_BITS: u32 = 14;
/// Most steps of a lock owner.
const STEPS_MAX: usize = 1 << STEP_BITS;
const _: () = assert!(LOCK_STATES_MAX << STEP_BITS <= 1 << u32::BITS);

/// The id under which a step is persisted. A later server finds the steps of a lock owner in the order of these.
fn step_id(id: u32, at: usize) -> u32 {
    (id - FIRST_LOCK_ID) << STEP_BITS | at as u32
}

/// A lock owner of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LockState {
    pub(crate) clientid: u64,
    pub(crate) party: Party,
    pub(crate) file: u64,
    /// The id of the open that it was begun with.
    pub(crate) open: u32,
    /// The client's name for it.
    pub(crate) owner: Box<[u8]>,
    /// The number that the volume has for it.
    pub(crate) number: u64,
    pub(crate) seqid: u32,
    /// The operation that changed it last.
    pub(crate) by: u64,
}

impl LockState {
    /// All lock owners of an open end together.
    fn keys(&self) -> StateKeys {
        StateKeys { owner: (self.file, self.number), group: self.open.into(), party: self.party }
    }
}

/// The state of a lock owner that a later server finds: a record of all its ranges, and the steps since then.
#[derive(Default)]
struct PersistedOwner {
    item: PersistedItem,
    /// Pieces of the record.
    pieces: usize,
    steps: Vec<PersistedItem>,
}

/// The ranges of a lock owner after a change, as far as they are asked for.
pub(crate) struct RangesAfter<'a> {
    pub(crate) step: RangeStep,
    pub(crate) count: &'a dyn Fn() -> usize,
    /// All of them.
    pub(crate) all: &'a dyn Fn() -> Vec<LockedRange>,
}

/// All lock owners of files.
pub(crate) struct LockStates {
    memory: Memory,
    table: StateidTable<(LockState, PersistedOwner)>,
    index: StateIndex,
    /// The lock owners of an earlier server, by the operation that changed each last.
    inherited_by: BTreeMap<u64, u32>,
}

impl StateidOther {
    /// Whether it is a lock owner's.
    pub(crate) fn is_of_locks(self) -> bool {
        self.id >= FIRST_LOCK_ID
    }
}

impl LockStates {
    /// None yet.
    pub(crate) fn new(memory: &Memory) -> Self {
        let (table, memory) = (StateidTable::new(memory, FIRST_LOCK_ID), Memory::clone(memory));
        Self { memory, table, index: StateIndex::default(), inherited_by: BTreeMap::new() }
    }

    /// Number of lock owners of files.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// The lock owner of a file with this number.
    pub(crate) fn of_owner(&self, file: u64, number: u64) -> Option<&LockState> {
        self.index.of_owner(file, number).and_then(|id| self.table.get(id)).map(|it| &it.0)
    }

    /// A client's lock owner with this stateid.
    pub(crate) fn find(&self, clientid: u64, at: StateidOther, seqid: u32) -> Result<&LockState, NfsStatus> {
        let state = &self.table.named(at)?.0;
        if state.clientid != clientid {
            return Err(NfsStatus::BadStateid);
        }
        check_seqid(seqid, state.seqid)?;
        Ok(state)
    }

    /// The id of the lock owner of a file with this number.
    pub(crate) fn id_of(&self, file: u64, number: u64) -> Option<u32> {
        self.index.of_owner(file, number)
    }

    /// The lock owner with an id.
    pub(crate) fn at(&self, id: u32) -> Option<&LockState> {
        self.table.get(id).map(|it| &it.0)
    }

    /// The lock owners that were begun with an open.
    pub(crate) fn of_open(&self, open: u32) -> impl Iterator<Item = &LockState> {
        self.index.of_group(open.into()).filter_map(|id| self.at(id))
    }

    /// The id of the first lock owner that was begun with an open.
    pub(crate) fn first_of_open(&self, open: u32) -> Option<u32> {
        self.index.of_group(open.into()).next()
    }

    /// An error if the quota does not allow a change of the lock owner with an id, or a new one of this party and name.
    /// `ranges` returns how many ranges it has afterwards.
    pub(crate) fn check_quota(
        &self,
        id: Option<u32>,
        party: Party,
        owner: &[u8],
        ranges: impl Fn() -> usize,
    ) -> Result<(), TableFull> {
        match id.and_then(|id| self.table.get(id)) {
            Some((state, persisted)) => self.check_step(state.party, persisted).or_else(|_| {
                self.memory.check_quota(&persisted.item, state.party, locks_bytes(&state.owner, ranges()))
            }),
            None => {
                self.index.counts().check_quota(party, 1, LOCK_STATES_MAX)?;
                self.memory.check_quota(&PersistedItem::default(), party, locks_bytes(owner, ranges()))
            }
        }
    }

    /// An error if the quota does not allow one more step.
    fn check_step(&self, party: Party, persisted: &PersistedOwner) -> Result<(), TableFull> {
        if persisted.steps.len() >= STEPS_MAX {
            return Err(TableFull::OfParty);
        }
        self.memory.check_quota(&PersistedItem::default(), party, STEP_BYTES)
    }

    /// A new owner has got its first lock of a file: its stateid begins. The caller has checked the quota.
    pub(crate) fn begin(&mut self, state: LockState, ranges: &RangesAfter<'_>) -> Stateid {
        let id = self.table.insert((LockState { seqid: 1, ..state }, PersistedOwner::default()));
        self.list(id);
        self.keep(id, ranges);
        self.table.stateid(id, 1)
    }

    fn list(&mut self, id: u32) {
        let keys = self.table.get(id).map(|(state, _)| state.keys());
        keys.into_iter().for_each(|keys| self.index.insert(id, keys));
    }

    /// An owner's locks have changed to these ranges, which counts as one step of its stateid.
    pub(crate) fn changed(&mut self, id: u32, by: u64, ranges: &RangesAfter<'_>) -> Stateid {
        let seqid = self.table.get_mut(id).map_or(1, |(state, _)| {
            state.seqid = next_seqid(state.seqid);
            state.by = by;
            state.seqid
        });
        self.keep(id, ranges);
        self.table.stateid(id, seqid)
    }

    /// Persists a change: as a step, or as a record of all ranges once the steps have as many pieces as the record.
    fn keep(&mut self, id: u32, ranges: &RangesAfter<'_>) {
        if !self.memory.is_persistent() {
            return;
        }
        let Some((state, persisted)) = self.table.get(id) else { return };
        let bytes = locks_bytes(&state.owner, (ranges.count)());
        let is_due = persisted.pieces == 0
            || persisted.pieces + persisted.steps.len() + 1 >= 2 * PersistedItems::pieces_of(bytes);
        let may_step = persisted.pieces > 0 && self.check_step(state.party, persisted).is_ok();
        let is_whole = !may_step || is_due && self.memory.check_quota(&persisted.item, state.party, bytes).is_ok();
        if is_whole { self.keep_whole(id, bytes, ranges) } else { self.keep_step(id, ranges.step) }
    }

    fn keep_whole(&mut self, id: u32, bytes: usize, ranges: &RangesAfter<'_>) {
        let generation = self.table.generation(id);
        let Some((state, persisted)) = self.table.get_mut(id) else { return };
        let record = Record::Locks {
            clientid: state.clientid,
            file: state.file,
            generation,
            seqid: state.seqid,
            open: state.open,
            by: state.by,
            owner: &state.owner,
            ranges: Cow::Owned((ranges.all)()),
        };
        // The steps count until the record is there, and no more from then on.
        self.memory.put(id, &mut persisted.item, state.party, &record);
        persisted.pieces = PersistedItems::pieces_of(bytes);
        persisted.steps.drain(..).for_each(|mut step| self.memory.remove(&mut step, state.party));
    }

    fn keep_step(&mut self, id: u32, step: RangeStep) {
        let generation = self.table.generation(id);
        let Some((state, persisted)) = self.table.get_mut(id) else { return };
        let record = Record::LockStep { id, generation, seqid: state.seqid, by: state.by, step };
        let mut item = PersistedItem::default();
        self.memory.put(step_id(id, persisted.steps.len()), &mut item, state.party, &record);
        persisted.steps.push(item);
    }

    /// Puts a lock owner of an earlier server in its entry, with the numbers that the volume has for it and its file
    /// now. False if it cannot be there. To be followed by [`LockStates::restored`].
    pub(crate) fn try_restore(
        &mut self,
        id: u32,
        party: Party,
        number: u64,
        file: u64,
        record: &Record<'_>,
        item: PersistedItem,
    ) -> bool {
        let Record::Locks { clientid, generation, seqid, open, by, owner, ref ranges, .. } = *record else {
            return false;
        };
        self.memory.found(&item, party);
        let pieces = PersistedItems::pieces_of(locks_bytes(owner, ranges.len()));
        let state = LockState { clientid, party, file, open, owner: owner.into(), number, seqid, by };
        let persisted = PersistedOwner { item, pieces, steps: Vec::new() };
        let is_one = self.table.try_restore(id, generation, (state, persisted), LOCK_STATES_MAX);
        if is_one {
            self.inherited_by.insert(by, id);
            self.list(id);
        }
        is_one
    }

    /// A step of an earlier server. Returns the change if it counts: the record of its lock owner is older. One that
    /// does not is dropped.
    pub(crate) fn restore_step(&mut self, record: &Record<'_>, mut item: PersistedItem) -> Option<(u32, RangeStep)> {
        let Record::LockStep { id, generation, seqid, by, step } = *record else { return None };
        let known = self.table.generation(id) == generation;
        match self.table.get_mut(id).filter(|(state, _)| known && is_later(seqid, state.seqid)) {
            Some((state, persisted)) => {
                self.memory.found(&item, state.party);
                (state.seqid, state.by) = (seqid, by);
                persisted.steps.push(item);
                self.inherited_by.insert(by, id);
                Some((id, step))
            }
            None => {
                self.memory.drop_found(&mut item);
                None
            }
        }
    }

    /// All lock owners of an earlier server are in their entries.
    pub(crate) fn restored(&mut self) {
        self.table.restored();
    }

    /// The stateid of the lock owner that an operation of an earlier server has changed last.
    pub(crate) fn changed_by(&self, mark: u64) -> Option<Stateid> {
        let id = *self.inherited_by.get(&mark)?;
        let (state, _) = self.table.get(id).filter(|(state, _)| state.by == mark)?;
        Some(self.table.stateid(id, state.seqid))
    }

    /// The open with which one of a party's lock owners was begun.
    pub(crate) fn open_of_party(&self, party: Party) -> Option<u32> {
        self.at(self.index.one_of_party(party)?).map(|state| state.open)
    }

    /// Ends an owner's stateid.
    pub(crate) fn end(&mut self, id: u32) -> Option<LockState> {
        let (state, mut persisted) = self.table.take(id)?;
        // Steps without their record do not count.
        self.memory.remove(&mut persisted.item, state.party);
        for kept_step in &mut persisted.steps {
            step();
            self.memory.remove(kept_step, state.party);
        }
        self.index.remove(id, state.keys());
        Some(state)
    }
}

#[cfg(test)]
mod tests;
