//! The users that the calls of one connection are carried out for.
//!
//! Owns: the user that follows from a call's claim and its peer's standing; the callers of the connection's last
//! credentials.
//! Does not own: peers' standing (`admission`), reading credentials (`rpc`), callers' rights (the volume).
//! Invariants: on one connection, equal bytes of a credential mean the same caller. The anonymous user keeps no part of
//! a claim. At most [`KNOWN_MAX`] credentials are kept.

use afflux_frontend::CallerClaim;
use afflux_volume::{Caller, Client};

use crate::wire::admission::{ActingUser, PeerRights, Squash};
use crate::wire::rpc::{self, Refusal};

/// Most credentials that are kept, for users who use one mount at the same time.
const KNOWN_MAX: usize = 8;

/// Not a user's number: hosts take it for 'no change'.
const NO_ONE: u32 = u32::MAX;
const ROOT: u32 = 0;

/// A credential, and the caller that it stands for.
pub(crate) struct CachedCaller {
    credential: Box<[u8]>,
    /// The user that its calls are carried out as.
    pub(crate) caller: Caller,
    /// The client that its writes count for.
    pub(crate) client: Client,
}

impl CachedCaller {
    /// The host's user that its calls are carried out as; none for the server's own.
    pub(crate) fn uid(&self) -> Option<u32> {
        self.caller.credentials().map(|user| user.uid)
    }
}

/// The callers of one connection.
pub(crate) struct Callers {
    standing: PeerRights,
    anonymous: (u32, u32),
    client: Client,
    known: Vec<CachedCaller>,
    last: usize,
}

impl Callers {
    /// Begins without callers. Writes of the connection count for `client`.
    pub(crate) fn new(standing: PeerRights, anonymous: (u32, u32), client: Client) -> Self {
        Self { standing, anonymous, client, known: Vec::new(), last: 0 }
    }

    /// The index of the known caller with this credential. `user` makes a caller of a user, its group and its other
    /// groups.
    #[inline]
    pub(crate) fn find(
        &mut self,
        credential: &[u8],
        user: impl Fn(u32, u32, &[u32]) -> Caller,
    ) -> Result<usize, Refusal> {
        match self.known.get(self.last) {
            Some(known) if *known.credential == *credential => Ok(self.last),
            _ => self.find_or_add(credential, user),
        }
    }

    /// One of the known callers.
    pub(crate) fn get(&self, at: usize) -> &CachedCaller {
        &self.known[at]
    }

    #[cold]
    fn find_or_add(&mut self, credential: &[u8], user: impl Fn(u32, u32, &[u32]) -> Caller) -> Result<usize, Refusal> {
        let PeerRights::Admitted { acts, read_only } = &self.standing else { return Err(Refusal::WeakCredential) };
        if let Some(at) = self.known.iter().position(|known| *known.credential == *credential) {
            self.last = at;
            return Ok(at);
        }
        let claim = rpc::claim(credential)?;
        let mut caller = match identity(acts, self.anonymous, &claim) {
            None => Caller::SERVER,
            Some((uid, gid, groups)) => user(uid, gid, &groups),
        };
        if *read_only {
            caller = caller.reading_only();
        }
        let uid = match (caller.credentials(), claim) {
            (Some(user), _) => Some(user.uid),
            (None, CallerClaim::User { uid, .. }) => Some(uid),
            _ => None,
        };
        let client = uid.map_or_else(|| self.client.clone(), |uid| self.client.of_user(uid));
        let known = CachedCaller { credential: credential.into(), caller, client };
        // Replaces the slot after the last: the slots before it were used since.
        self.last = if self.known.len() < KNOWN_MAX { self.known.len() } else { (self.last + 1) % KNOWN_MAX };
        match self.known.get_mut(self.last) {
            Some(replaced) => *replaced = known,
            None => self.known.push(known),
        }
        Ok(self.last)
    }
}

/// User, group and other groups that a call with this claim is carried out as; none for the server's own user.
fn identity(acts: &ActingUser, anonymous: (u32, u32), claim: &CallerClaim) -> Option<(u32, u32, Vec<u32>)> {
    let nobody = (anonymous.0, anonymous.1, Vec::new());
    let squash = match acts {
        ActingUser::AsServer => return None,
        ActingUser::AsUser { uid, gid, groups } => {
            return Some((*uid, first_group(claim, *uid, *gid, groups), groups.clone()));
        }
        ActingUser::Anonymously => Squash::All,
        ActingUser::AsClaimed { squash } => *squash,
    };
    let CallerClaim::User { uid, gid, groups, group_count } = claim else { return Some(nobody) };
    if squash == Squash::All || *uid == NO_ONE || (*uid == ROOT && squash == Squash::Root) {
        return Some(nobody);
    }
    let squashed = |group: u32| group == NO_ONE || (group == ROOT && squash == Squash::Root);
    let gid = if squashed(*gid) { anonymous.1 } else { *gid };
    let groups = groups.iter().take(usize::from(*group_count)).copied();
    Some((*uid, gid, groups.filter(|group| !squashed(*group)).collect()))
}

/// The group of new objects of a user of this host: the claimed one if the user is in it, as after newgrp(1).
fn first_group(claim: &CallerClaim, user: u32, first: u32, groups: &[u32]) -> u32 {
    match claim {
        CallerClaim::User { uid, gid, .. } if *uid == user && groups.contains(gid) => *gid,
        _ => first,
    }
}

#[cfg(test)]
mod tests;
