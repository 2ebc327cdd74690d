//! The opens of clients: an owner's rights to a file, and the rights that it denies to others.
//!
//! Owns: the table of opens, their rights, their stateids; the moments at which an open is persisted for a later
//! server. Does not own: files (an `H` holds one), the form of what is persisted (`persisted`), rights of users on
//! files and share reservations (the volume).
//! Invariants: an owner has one open of a file, whose rights grow with each OPEN. A stateid works for its own client
//! alone. There are at most [`OPENS_MAX`], and no more than the volume's limit of files allows. Each party has its
//! quota (`quota`). The caller gets what holds a file, and drops it without a lock.

use std::collections::BTreeMap;

use afflux_frontend::{Party, PersistedItem};
use afflux_volume::Share;

use super::persisted::{Memory, Record, open_bytes};
use super::quota::{PartyCounts, TableFull};
use super::stateids::{Stateid, StateidOther, check_seqid, next_seqid};
use crate::status::NfsStatus;
use crate::v4::state::stateids::{StateIndex, StateKeys, StateidTable};

pub(crate) const OPENS_MAX: usize = 65_536;

/// The bit of a pair of rights in the set of pairs that were asked for.
fn bit(share: Share) -> u16 {
    1 << (share.access & 3 | (share.deny & 3) << 2)
}

/// The opener of a file.
#[derive(Clone, Copy)]
pub(crate) struct Opener<'a> {
    pub(crate) clientid: u64,
    pub(crate) party: Party,
    /// The client's name for the program.
    pub(crate) owner: &'a [u8],
    /// A number for both, which no other owner has.
    pub(crate) number: u64,
    /// The file's handle.
    pub(crate) handle: &'a [u8],
    /// The operation, for a repetition after a kill; 0 if none is known as such.
    pub(crate) mark: u64,
}

struct Open<H> {
    clientid: u64,
    party: Party,
    /// The owner, and behind it the file's handle.
    names: Box<[u8]>,
    owner_bytes: u16,
    number: u64,
    file: u64,
    share: Share,
    /// Each pair that was asked for, by its bit: OPEN_DOWNGRADE may go back to such a pair.
    asked: u16,
    seqid: u32,
    /// The operation that changed it last.
    by: u64,
    /// Of the opens of a file by a party, this open counts for the file.
    stands_for_file: bool,
    held: H,
    item: PersistedItem,
}

impl<H> Open<H> {
    /// All opens of a client end together.
    fn keys(&self) -> StateKeys {
        StateKeys { owner: (self.file, self.number), group: self.clientid, party: self.party }
    }

    fn owner(&self) -> &[u8] {
        &self.names[..usize::from(self.owner_bytes)]
    }

    fn handle(&self) -> &[u8] {
        &self.names[usize::from(self.owner_bytes)..]
    }
}

/// The rights of an open at one step of its stateid.
#[derive(Clone, Copy)]
pub(crate) struct OpenRights {
    share: Share,
    asked: u16,
    seqid: u32,
}

/// The file of an open, and what holds it.
pub(crate) struct HeldFile<H> {
    pub(crate) file: u64,
    pub(crate) held: H,
}

/// The facts about an open that people ask for.
#[derive(Clone, Copy)]
pub(crate) struct KnownOpen<'a, H> {
    pub(crate) id: u32,
    pub(crate) file: u64,
    pub(crate) owner: &'a [u8],
    pub(crate) share: Share,
    pub(crate) held: &'a H,
}

pub(crate) struct Opens<H> {
    memory: Memory,
    table: StateidTable<Open<H>>,
    index: StateIndex,
    /// The number of files that each party has open.
    files: PartyCounts,
    /// The opens of an earlier server, by the operation that changed each last.
    inherited_by: BTreeMap<u64, u32>,
}

impl<H> Opens<H> {
    /// None yet.
    pub(crate) fn new(memory: &Memory) -> Self {
        let (table, memory) = (StateidTable::new(memory, 0), Memory::clone(memory));
        let (index, files) = (StateIndex::default(), PartyCounts::default());
        Self { memory, table, index, files, inherited_by: BTreeMap::new() }
    }

    /// Number of opens.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether a client has any.
    pub(crate) fn has_any(&self, clientid: u64) -> bool {
        self.index.has_group(clientid)
    }

    /// The number of a client's opens.
    pub(crate) fn count_of(&self, clientid: u64) -> usize {
        self.index.count_of(clientid)
    }

    /// The opens of a client.
    pub(crate) fn of_client(&self, clientid: u64) -> impl Iterator<Item = KnownOpen<'_, H>> {
        self.index.of_group(clientid).filter_map(|id| {
            let open = self.table.get(id)?;
            Some(KnownOpen { id, file: open.file, owner: open.owner(), share: open.share, held: &open.held })
        })
    }

    /// The open of a file by this owner.
    fn own(&self, by: &Opener<'_>, file: u64) -> Option<(u32, &Open<H>)> {
        let id = self.index.of_owner(file, by.number)?;
        Some((id, self.table.get(id)?))
    }

    /// The id of the open of a file by this owner.
    pub(crate) fn id_of_owner(&self, by: &Opener<'_>, file: u64) -> Option<u32> {
        self.own(by, file).map(|(id, _)| id)
    }

    /// An error if the quota does not allow an open of a file. `files_available` files may still be opened, and
    /// `files_max` may be open at a time.
    pub(crate) fn check_quota(
        &self,
        by: &Opener<'_>,
        file: u64,
        files_available: usize,
        files_max: usize,
    ) -> Result<(), TableFull> {
        if self.own(by, file).is_some() {
            return Ok(());
        }
        self.index.counts().check_quota(by.party, 1, OPENS_MAX)?;
        if self.of_party(by.party, file).is_none() {
            self.files.check_quota_of_rest(by.party, 1, files_available, files_max)?;
        }
        self.memory.check_quota(&PersistedItem::default(), by.party, open_bytes(by.owner, by.handle))
    }

    /// The id of the first open of a client.
    pub(crate) fn first_of(&self, clientid: u64) -> Option<u32> {
        self.index.of_group(clientid).next()
    }

    /// The client of the open with an id.
    pub(crate) fn client_at(&self, id: u32) -> Option<u64> {
        self.table.get(id).map(|open| open.clientid)
    }

    /// The id of one of a party's opens.
    pub(crate) fn one_of_party(&self, party: Party) -> Option<u32> {
        self.index.one_of_party(party)
    }

    /// The rights of an owner's open of a file, to go back to them.
    pub(crate) fn rights(&self, by: &Opener<'_>, file: u64) -> Option<OpenRights> {
        self.own(by, file).map(|(_, open)| OpenRights { share: open.share, asked: open.asked, seqid: open.seqid })
    }

    /// Opens a file, or gives its open more rights. The caller has checked the quota. `reserve` makes the share
    /// reservation of the open with this id, unless one conflicts; `hold` holds the file of a new open.
    pub(crate) fn open(
        &mut self,
        by: Opener<'_>,
        file: u64,
        share: Share,
        reserve: impl FnOnce(u32, Share) -> bool,
        hold: impl FnOnce() -> Result<H, NfsStatus>,
    ) -> Result<Stateid, NfsStatus> {
        if let Some((id, open)) = self.own(&by, file) {
            let whole = Share { access: open.share.access | share.access, deny: open.share.deny | share.deny };
            if !reserve(id, whole) {
                return Err(NfsStatus::ShareDenied);
            }
            return self.changed(id, by.mark, |open| {
                open.asked |= bit(share);
                whole
            });
        }
        let held = hold()?;
        if !reserve(self.table.next(), share) {
            return Err(NfsStatus::ShareDenied);
        }
        let id = self.table.insert(Open {
            clientid: by.clientid,
            party: by.party,
            names: [by.owner, by.handle].concat().into(),
            owner_bytes: by.owner.len() as u16,
            number: by.number,
            file,
            share,
            asked: bit(share),
            seqid: 1,
            by: by.mark,
            stands_for_file: false,
            held,
            item: PersistedItem::default(),
        });
        self.list(id);
        self.keep(id);
        Ok(self.table.stateid(id, 1))
    }

    fn list(&mut self, id: u32) {
        let Some((keys, file)) = self.table.get(id).map(|open| (open.keys(), open.file)) else { return };
        if self.of_party(keys.party, file).is_none() {
            self.stand_for_file(id);
        }
        self.index.insert(id, keys);
    }

    /// An open of a file by a party. The search examines few opens: behind many of others the party's open is not
    /// found, and the file counts again.
    fn of_party(&self, party: Party, file: u64) -> Option<u32> {
        const LOOKS_MAX: usize = 64;
        let is_own = |id: &u32| self.table.get(*id).is_some_and(|open| open.party == party);
        self.index.of_file(file).take(LOOKS_MAX).find(is_own)
    }

    fn stand_for_file(&mut self, id: u32) {
        if let Some(open) = self.table.get_mut(id).filter(|open| !open.stands_for_file) {
            open.stands_for_file = true;
            self.files.add(open.party, 1);
        }
    }

    fn keep(&mut self, id: u32) {
        let generation = self.table.generation(id);
        let Some(open) = self.table.get_mut(id) else { return };
        let mut item = std::mem::take(&mut open.item);
        let record = Record::Open {
            clientid: open.clientid,
            file: open.file,
            generation,
            seqid: open.seqid,
            share: open.share,
            asked: open.asked,
            by: open.by,
            owner: open.owner(),
            handle: open.handle(),
        };
        self.memory.put(id, &mut item, open.party, &record);
        open.item = item;
    }

    /// Puts an open of an earlier server in its entry, with its owner's number, and with its file as it is
    /// now. False if it cannot be there. To be followed by [`Opens::restored`].
    pub(crate) fn try_restore(
        &mut self,
        id: u32,
        party: Party,
        number: u64,
        record: &Record<'_>,
        item: PersistedItem,
        HeldFile { file, held }: HeldFile<H>,
    ) -> bool {
        let Record::Open { clientid, generation, seqid, share, asked, by, owner, handle, .. } = *record else {
            return false;
        };
        self.memory.found(&item, party);
        let (names, owner_bytes) = ([owner, handle].concat().into(), owner.len() as u16);
        let open = Open {
            clientid,
            party,
            names,
            owner_bytes,
            number,
            file,
            share,
            asked,
            seqid,
            by,
            stands_for_file: false,
            held,
            item,
        };
        let is_one = self.table.try_restore(id, generation, open, OPENS_MAX);
        if is_one {
            self.inherited_by.insert(by, id);
            self.list(id);
        }
        is_one
    }

    /// All opens of an earlier server are in their entries.
    pub(crate) fn restored(&mut self) {
        self.table.restored();
    }

    /// The file of a client's open with an id.
    pub(crate) fn file_at(&self, id: u32, clientid: u64) -> Option<u64> {
        self.table.get(id).filter(|open| open.clientid == clientid).map(|open| open.file)
    }

    /// The file of a client's open with an id, with its handle.
    pub(crate) fn handle_at(&self, id: u32, clientid: u64) -> Option<(u64, &[u8])> {
        self.table.get(id).filter(|open| open.clientid == clientid).map(|open| (open.file, open.handle()))
    }

    /// The stateid of the open that an operation of an earlier server has changed last.
    pub(crate) fn changed_by(&self, mark: u64) -> Option<Stateid> {
        let id = *self.inherited_by.get(&mark)?;
        let open = self.table.get(id).filter(|open| open.by == mark)?;
        Some(self.table.stateid(id, open.seqid))
    }

    /// Changes the rights of an open, which counts as one step of its stateid.
    fn changed(&mut self, id: u32, by: u64, change: impl FnOnce(&mut Open<H>) -> Share) -> Result<Stateid, NfsStatus> {
        let open = self.table.get_mut(id).ok_or(NfsStatus::BadStateid)?;
        open.share = change(open);
        open.seqid = next_seqid(open.seqid);
        open.by = by;
        let seqid = open.seqid;
        self.keep(id);
        Ok(self.table.stateid(id, seqid))
    }

    /// Takes back the rights that an open got last, unless it has changed since. Returns the share reservation that it
    /// has again.
    pub(crate) fn go_back(&mut self, id: u32, seqid: u32, to: OpenRights) -> Option<Share> {
        let open = self.table.get_mut(id).filter(|open| open.seqid == seqid)?;
        (open.share, open.asked, open.seqid) = (to.share, to.asked, to.seqid);
        self.keep(id);
        Some(to.share)
    }

    /// A client's open with this stateid.
    fn named(&self, clientid: u64, at: StateidOther, seqid: u32) -> Result<&Open<H>, NfsStatus> {
        let open = self.table.named(at)?;
        if open.clientid != clientid {
            return Err(NfsStatus::BadStateid);
        }
        check_seqid(seqid, open.seqid)?;
        Ok(open)
    }

    /// The file and the rights of an open.
    pub(crate) fn find(&self, clientid: u64, at: StateidOther, seqid: u32) -> Result<(u64, Share), NfsStatus> {
        self.named(clientid, at, seqid).map(|open| (open.file, open.share))
    }

    /// The rights of the open with an id.
    pub(crate) fn share_at(&self, id: u32) -> Option<Share> {
        self.table.get(id).map(|open| open.share)
    }

    /// Gives up rights. The rest must be rights that were asked for at once.
    pub(crate) fn downgrade(
        &mut self,
        clientid: u64,
        at: StateidOther,
        seqid: u32,
        share: Share,
        mark: u64,
    ) -> Result<Stateid, NfsStatus> {
        let open = self.named(clientid, at, seqid)?;
        let is_part = share.access & !open.share.access == 0 && share.deny & !open.share.deny == 0;
        // Each pair is the union of pairs that were asked for.
        let within = |pair: u8| pair & 3 & !share.access == 0 && pair >> 2 & !share.deny == 0;
        let asked = (0..16_u8).filter(|pair| open.asked & 1 << pair != 0 && within(*pair));
        let union = asked.fold(0, |union, pair| union | pair);
        if !is_part || union != share.access | share.deny << 2 {
            return Err(NfsStatus::Inval);
        }
        self.changed(at.id, mark, |open| {
            let stays = |pair: &u8| within(*pair) && open.asked & 1 << pair != 0;
            open.asked = (0..16_u8).filter(stays).fold(0, |set, pair| set | 1 << pair);
            share
        })
    }

    /// Ends the open with an id. Returns the open's file.
    pub(crate) fn end(&mut self, id: u32) -> Option<HeldFile<H>> {
        let mut open = self.table.take(id)?;
        self.memory.remove(&mut open.item, open.party);
        self.index.remove(id, open.keys());
        if open.stands_for_file {
            self.files.remove(open.party, 1);
            if let Some(next) = self.of_party(open.party, open.file) {
                self.stand_for_file(next);
            }
        }
        Some(HeldFile { file: open.file, held: open.held })
    }
}

#[cfg(test)]
mod tests;
