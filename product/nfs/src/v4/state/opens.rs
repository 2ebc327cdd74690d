//! The opens of clients: an owner's rights to a file, and the rights that it denies to others.
//!
//! Owns: the table of opens, their rights, their stateids.
//! Does not own: files (an `H` holds one), rights of users on files and share reservations (the volume).
//! Invariants: an owner has one open of a file, whose rights grow with each OPEN. A stateid works for its own client
//! alone. There are at most [`OPENS_MAX`], and [`PARTY_OPENS_MAX`] of one party. The caller gets the holder of a file, and
//! drops it without a lock.

use std::collections::{BTreeMap, BTreeSet};

use afflux_frontend::Party;
use afflux_volume::Share;

use super::places::Places;
use super::stateids::{StatePlace, Stateid, check_sequence, next_sequence};
use crate::status::Status;

/// Most opens.
pub(crate) const OPENS_MAX: usize = 65_536;
/// Most opens of one party.
pub(crate) const PARTY_OPENS_MAX: usize = OPENS_MAX / 2;

/// The bit of a pair of rights in the set of pairs that were asked for.
fn bit(share: Share) -> u16 {
    1 << (share.access & 3 | (share.deny & 3) << 2)
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

/// An open that has ended.
pub(crate) struct Closed<H> {
    pub(crate) file: u64,
    pub(crate) place: u32,
    pub(crate) holder: H,
}

/// All opens.
pub(crate) struct Opens<H> {
    places: Places<Open<H>>,
    of_file: BTreeMap<u64, Vec<u32>>,
    of_client: BTreeMap<u64, BTreeSet<u32>>,
    of_party: BTreeMap<Party, usize>,
}

impl<H> Opens<H> {
    /// None yet. `memory` marks their stateids.
    pub(crate) fn new(memory: u32) -> Self {
        Self {
            places: Places::new(memory, 0),
            of_file: BTreeMap::new(),
            of_client: BTreeMap::new(),
            of_party: BTreeMap::new(),
        }
    }

    /// Number of opens.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether a client has any.
    pub(crate) fn has_any(&self, client: u64) -> bool {
        self.of_client.contains_key(&client)
    }

    /// The open of a file by this owner.
    fn own(&self, by: &Opener<'_>, file: u64) -> Option<(u32, &Open<H>)> {
        let places = self.of_file.get(&file).map_or(&[][..], Vec::as_slice);
        let mut opens = places.iter().filter_map(|place| Some((*place, self.places.get(*place)?)));
        opens.find(|(_, open)| open.client == by.client && *open.owner == *by.owner)
    }

    /// The place of the open of a file by this owner.
    pub(crate) fn place_of_owner(&self, by: &Opener<'_>, file: u64) -> Option<u32> {
        self.own(by, file).map(|(place, _)| place)
    }

    /// Opens a file, or gives its open more rights. `reserve` tells whether nobody's share is in the way of the open at this
    /// place; `hold` makes the holder of a new open.
    pub(crate) fn open(
        &mut self,
        by: Opener<'_>,
        file: u64,
        share: Share,
        reserve: impl FnOnce(u32, Share) -> bool,
        hold: impl FnOnce() -> Result<H, Status>,
    ) -> Result<Stateid, Status> {
        if let Some((place, open)) = self.own(&by, file) {
            let whole = Share { access: open.share.access | share.access, deny: open.share.deny | share.deny };
            if !reserve(place, whole) {
                return Err(Status::ShareDenied);
            }
            return self.changed(place, |open| {
                open.asked |= bit(share);
                whole
            });
        }
        let of_party = self.of_party.get(&by.party).copied().unwrap_or_default();
        if self.len() >= OPENS_MAX || of_party >= PARTY_OPENS_MAX {
            return Err(Status::Jukebox);
        }
        let holder = hold()?;
        if !reserve(self.places.next(), share) {
            return Err(Status::ShareDenied);
        }
        let place = self.places.insert(Open {
            client: by.client,
            party: by.party,
            owner: by.owner.into(),
            file,
            share,
            asked: bit(share),
            sequence: 1,
            holder,
        });
        self.of_file.entry(file).or_default().push(place);
        self.of_client.entry(by.client).or_default().insert(place);
        *self.of_party.entry(by.party).or_default() += 1;
        Ok(self.places.stateid(place, 1))
    }

    /// Changes the rights of an open, which counts as one step of its stateid.
    fn changed(&mut self, place: u32, change: impl FnOnce(&mut Open<H>) -> Share) -> Result<Stateid, Status> {
        let open = self.places.get_mut(place).ok_or(Status::BadStateid)?;
        open.share = change(open);
        open.sequence = next_sequence(open.sequence);
        let sequence = open.sequence;
        Ok(self.places.stateid(place, sequence))
    }

    /// A client's open with this stateid.
    fn named(&self, client: u64, at: StatePlace, sequence: u32) -> Result<&Open<H>, Status> {
        let open = self.places.named(at)?;
        if open.client != client {
            return Err(Status::BadStateid);
        }
        check_sequence(sequence, open.sequence)?;
        Ok(open)
    }

    /// The file and the rights of an open.
    pub(crate) fn find(&self, client: u64, at: StatePlace, sequence: u32) -> Result<(u64, Share), Status> {
        self.named(client, at, sequence).map(|open| (open.file, open.share))
    }

    /// The rights of the open at a place.
    pub(crate) fn share_at(&self, place: u32) -> Option<Share> {
        self.places.get(place).map(|open| open.share)
    }

    /// Gives up rights. The rest must be rights that were asked for at once.
    pub(crate) fn downgrade(
        &mut self,
        client: u64,
        at: StatePlace,
        sequence: u32,
        share: Share,
    ) -> Result<Stateid, Status> {
        let open = self.named(client, at, sequence)?;
        let is_part = share.access & !open.share.access == 0 && share.deny & !open.share.deny == 0;
        // Each pair is the union of pairs that were asked for.
        let within = |pair: u8| pair & 3 & !share.access == 0 && pair >> 2 & !share.deny == 0;
        let asked = (0..16_u8).filter(|pair| open.asked & 1 << pair != 0 && within(*pair));
        let union = asked.fold(0, |union, pair| union | pair);
        if !is_part || union != share.access | share.deny << 2 {
            return Err(Status::Invalid);
        }
        self.changed(at.place, |open| {
            let stays = |pair: &u8| within(*pair) && open.asked & 1 << pair != 0;
            open.asked = (0..16_u8).filter(stays).fold(0, |set, pair| set | 1 << pair);
            share
        })
    }

    /// Closes.
    pub(crate) fn close(&mut self, client: u64, at: StatePlace, sequence: u32) -> Result<Closed<H>, Status> {
        self.named(client, at, sequence)?;
        self.take(at.place).ok_or(Status::BadStateid)
    }

    fn take(&mut self, place: u32) -> Option<Closed<H>> {
        let open = self.places.take(place)?;
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
        Some(Closed { file: open.file, place, holder: open.holder })
    }

    /// Closes all that a client has open.
    pub(crate) fn release(&mut self, client: u64) -> Vec<Closed<H>> {
        let places = self.of_client.get(&client).cloned().unwrap_or_default();
        places.into_iter().filter_map(|place| self.take(place)).collect()
    }
}

#[cfg(test)]
mod tests;
