//! The opens of clients: an owner's rights to a file, and the rights that it denies to others.
//!
//! Owns: the table of opens, share reservations between them, their stateids.
//! Does not own: files (an `H` holds one), rights of users on files (the volume).
//! Invariants: an owner has one open of a file, whose rights grow with each OPEN. No two owners have rights that one of
//! them denies. A stateid works for its own client alone. There are at most [`OPENS_MAX`], and [`PARTY_OPENS_MAX`] of one
//! party. The caller gets the holder of a file, and drops it without a lock.

use std::collections::{BTreeMap, BTreeSet};

use afflux_frontend::Party;

use super::stateids::{StatePlace, Stateid, check_sequence, next_sequence};
use crate::status::Status;

/// Most opens.
pub(crate) const OPENS_MAX: usize = 65_536;
/// Most opens of one party.
pub(crate) const PARTY_OPENS_MAX: usize = OPENS_MAX / 2;
/// Reading, as a right or as a denied right.
pub(crate) const READ: u8 = 1;
/// Writing, likewise.
pub(crate) const WRITE: u8 = 2;

/// Rights to a file, and the rights that others may not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    pub(crate) access: u8,
    pub(crate) deny: u8,
}

impl Share {
    /// Whether two owners cannot have these at once.
    fn conflicts(self, other: Self) -> bool {
        self.access & other.deny != 0 || self.deny & other.access != 0
    }

    /// The bit of this pair in the set of pairs that were asked for.
    fn bit(self) -> u16 {
        1 << (self.access & 3 | (self.deny & 3) << 2)
    }
}

/// Who opens.
#[derive(Clone, Copy)]
pub(crate) struct Opener<'a> {
    pub(crate) client: u64,
    pub(crate) party: Party,
    /// The client's name for the program.
    pub(crate) owner: &'a [u8],
}

struct Open<H> {
    client: u64,
    party: Party,
    owner: Box<[u8]>,
    file: u64,
    share: Share,
    /// Each pair that was asked for, by its bit: OPEN_DOWNGRADE may go back to such a pair.
    asked: u16,
    sequence: u32,
    holder: H,
}

struct Place<H> {
    generation: u32,
    open: Option<Open<H>>,
}

/// All opens.
pub(crate) struct Opens<H> {
    memory: u32,
    places: Vec<Place<H>>,
    free: Vec<u32>,
    of_file: BTreeMap<u64, Vec<u32>>,
    of_client: BTreeMap<u64, BTreeSet<u32>>,
    of_party: BTreeMap<Party, usize>,
    /// Number of opens that deny something.
    denying: usize,
}

impl<H> Opens<H> {
    /// None yet. `memory` marks their stateids.
    pub(crate) fn new(memory: u32) -> Self {
        Self {
            memory,
            places: Vec::new(),
            free: Vec::new(),
            of_file: BTreeMap::new(),
            of_client: BTreeMap::new(),
            of_party: BTreeMap::new(),
            denying: 0,
        }
    }

    /// Number of opens.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether a client has any.
    pub(crate) fn has_any(&self, client: u64) -> bool {
        self.of_client.contains_key(&client)
    }

    fn at(&self, place: u32) -> Option<&Open<H>> {
        self.places.get(place as usize)?.open.as_ref()
    }

    fn opens_of(&self, file: u64) -> impl Iterator<Item = (u32, &Open<H>)> {
        let places = self.of_file.get(&file).map_or(&[][..], Vec::as_slice);
        places.iter().filter_map(|place| Some((*place, self.at(*place)?)))
    }

    /// The clients whose opens of a file are in the way of this one.
    pub(crate) fn in_the_way(&self, file: u64, share: Share, of: Option<(u64, &[u8])>) -> Vec<u64> {
        let is_own = |open: &Open<H>| of.is_some_and(|(client, owner)| open.client == client && *open.owner == *owner);
        let others = self.opens_of(file).filter(|(_, open)| !is_own(open) && open.share.conflicts(share));
        others.map(|(_, open)| open.client).collect()
    }

    /// Whether any owner denies anything of any file.
    pub(crate) fn denies_any(&self) -> bool {
        self.denying > 0
    }

    /// Opens a file, or gives its open more rights. `hold` makes the holder of a new open.
    pub(crate) fn open(
        &mut self,
        by: Opener<'_>,
        file: u64,
        share: Share,
        hold: impl FnOnce() -> Result<H, Status>,
    ) -> Result<Stateid, Status> {
        if !self.in_the_way(file, share, Some((by.client, by.owner))).is_empty() {
            return Err(Status::ShareDenied);
        }
        let own = self.opens_of(file).find(|(_, open)| open.client == by.client && *open.owner == *by.owner);
        if let Some(place) = own.map(|(place, _)| place) {
            return self.changed(place, |open| {
                open.asked |= share.bit();
                Share { access: open.share.access | share.access, deny: open.share.deny | share.deny }
            });
        }
        let of_party = self.of_party.get(&by.party).copied().unwrap_or_default();
        if self.len() >= OPENS_MAX || of_party >= PARTY_OPENS_MAX {
            return Err(Status::Jukebox);
        }
        let holder = hold()?;
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, open: None });
            (self.places.len() - 1) as u32
        });
        let open = Open {
            client: by.client,
            party: by.party,
            owner: by.owner.into(),
            file,
            share,
            asked: share.bit(),
            sequence: 1,
            holder,
        };
        self.denying += usize::from(share.deny != 0);
        self.places[place as usize].open = Some(open);
        self.of_file.entry(file).or_default().push(place);
        self.of_client.entry(by.client).or_default().insert(place);
        *self.of_party.entry(by.party).or_default() += 1;
        Ok(self.stateid(place, 1))
    }

    fn stateid(&self, place: u32, sequence: u32) -> Stateid {
        let generation = self.places[place as usize].generation;
        Stateid::of(StatePlace { memory: self.memory, place, generation }, sequence)
    }

    /// Changes the rights of an open, which counts as one step of its stateid.
    fn changed(&mut self, place: u32, change: impl FnOnce(&mut Open<H>) -> Share) -> Result<Stateid, Status> {
        let open = self.places[place as usize].open.as_mut().ok_or(Status::BadStateid)?;
        let denied_before = open.share.deny != 0;
        open.share = change(open);
        open.sequence = next_sequence(open.sequence);
        let (denies, sequence) = (open.share.deny != 0, open.sequence);
        self.denying = self.denying + usize::from(denies) - usize::from(denied_before);
        Ok(self.stateid(place, sequence))
    }

    /// The place of a client's open with this stateid.
    fn place_of(&self, client: u64, at: StatePlace, sequence: u32) -> Result<u32, Status> {
        if at.memory != self.memory {
            return Err(Status::StaleStateid);
        }
        let place = self.places.get(at.place as usize).filter(|place| place.generation == at.generation);
        let open = place.and_then(|place| place.open.as_ref()).filter(|open| open.client == client);
        check_sequence(sequence, open.ok_or(Status::BadStateid)?.sequence)?;
        Ok(at.place)
    }

    /// The file and the rights of an open.
    pub(crate) fn find(&self, client: u64, at: StatePlace, sequence: u32) -> Result<(u64, Share), Status> {
        let place = self.place_of(client, at, sequence)?;
        let open = self.at(place).ok_or(Status::BadStateid)?;
        Ok((open.file, open.share))
    }

    /// Gives up rights. The rest must be rights that were asked for at once.
    pub(crate) fn downgrade(
        &mut self,
        client: u64,
        at: StatePlace,
        sequence: u32,
        share: Share,
    ) -> Result<Stateid, Status> {
        let place = self.place_of(client, at, sequence)?;
        let open = self.at(place).ok_or(Status::BadStateid)?;
        let is_part = share.access & !open.share.access == 0 && share.deny & !open.share.deny == 0;
        // Each pair is the union of pairs that were asked for.
        let within = |pair: u8| pair & 3 & !share.access == 0 && pair >> 2 & !share.deny == 0;
        let asked = (0..16_u8).filter(|pair| open.asked & 1 << pair != 0 && within(*pair));
        let union = asked.fold(0, |union, pair| union | pair);
        if !is_part || union != share.access | share.deny << 2 {
            return Err(Status::Invalid);
        }
        self.changed(place, |open| {
            let stays = |pair: &u8| within(*pair) && open.asked & 1 << pair != 0;
            open.asked = (0..16_u8).filter(stays).fold(0, |set, pair| set | 1 << pair);
            share
        })
    }

    /// Closes. Returns what held the file.
    pub(crate) fn close(&mut self, client: u64, at: StatePlace, sequence: u32) -> Result<H, Status> {
        let place = self.place_of(client, at, sequence)?;
        self.take(place).ok_or(Status::BadStateid)
    }

    fn take(&mut self, place: u32) -> Option<H> {
        let entry = self.places.get_mut(place as usize)?;
        let open = entry.open.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(place);
        self.denying -= usize::from(open.share.deny != 0);
        if let Some(places) = self.of_file.get_mut(&open.file) {
            places.retain(|other| *other != place);
            if places.is_empty() {
                self.of_file.remove(&open.file);
            }
        }
        if let Some(places) = self.of_client.get_mut(&open.client) {
            places.remove(&place);
            if places.is_empty() {
                self.of_client.remove(&open.client);
            }
        }
        if let Some(count) = self.of_party.get_mut(&open.party) {
            *count -= 1;
            if *count == 0 {
                self.of_party.remove(&open.party);
            }
        }
        Some(open.holder)
    }

    /// Closes all that a client has open. Returns what held the files.
    pub(crate) fn release(&mut self, client: u64) -> Vec<H> {
        let places = self.of_client.get(&client).cloned().unwrap_or_default();
        places.into_iter().filter_map(|place| self.take(place)).collect()
    }
}

#[cfg(test)]
mod tests;
