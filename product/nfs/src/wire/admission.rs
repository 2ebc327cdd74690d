//! The rules of which peers are answered, and the users that the calls of one connection are carried out for.
//!
//! Owns: the rules, by the world's knowledge of a peer: its address and port, the owner of its socket; the user that
//! follows from a call's claim and its peer's standing; the callers of the connection's last credentials.
//! Does not own: that knowledge and users' groups (worlds), the refusal's form and reading credentials (`rpc`),
//! callers' rights (the volume).
//! Invariants: a peer of which too little is known is refused. A process of this host is the owner of its socket,
//! whatever its calls claim, unless that owner is root. A user of another host is the user that the host names. So only
//! hosts in the list are believed, and only programs there that may use a port below 1,024, unless that rule is lifted.
//! On one connection, equal bytes of a credential mean the same caller, until the host's
//! answers about groups are to be renewed. The anonymous user retains nothing of a claim.
//! At most [`KNOWN_MAX`] credentials are cached.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use afflux_frontend::{CallerClaim, HostUsers, Origin, Peer, UserGroups};
use afflux_volume::{Caller, Client};

use crate::wire::rpc::{self, Refusal};

const ROOT: u32 = 0;
/// The first port that every program may use.
const UNRESERVED_PORT_MIN: u16 = 1024;
/// The customary user and group of callers without an identity on the host.
const NOBODY: u32 = 65_534;

/// Which callers become the anonymous user, independent of their claims.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Squash {
    /// Root of other hosts. Root of this host could do everything here without the server.
    #[default]
    Root,
    /// Callers of all addresses.
    All,
    /// No caller.
    None,
}

/// Addresses whose first bits are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    address: IpAddr,
    prefix_bits: u8,
    read_only: bool,
}

impl Network {
    fn has(&self, address: IpAddr) -> bool {
        let shared = |one: u128, two: u128, width: u32| {
            let differ = (one ^ two) << (u128::BITS - width);
            differ.leading_zeros() >= u32::from(self.prefix_bits)
        };
        match (self.address, address) {
            (IpAddr::V4(one), IpAddr::V4(two)) => shared(one.to_bits().into(), two.to_bits().into(), 32),
            (IpAddr::V6(one), IpAddr::V6(two)) => shared(one.to_bits(), two.to_bits(), 128),
            _ => false,
        }
    }
}

/// `ADDRESS` or `ADDRESS/BITS`, optionally followed by `=ro`.
impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}' is no address or network, such as 192.0.2.7, 192.0.2.0/24, 2001:db8::/32 or 192.0.2.0/24=ro"
            )
        };
        let (network, read_only) = match text.split_once('=') {
            Some((network, "ro")) => (network, true),
            Some((network, "rw")) => (network, false),
            Some(_) => return Err(wrong()),
            None => (text, false),
        };
        let (address, bits) = network.split_once('/').map_or((network, None), |(address, bits)| (address, Some(bits)));
        let given: IpAddr = address.parse().map_err(|_| wrong())?;
        let address = given.to_canonical();
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match bits {
            None => width,
            // The bits of an IPv4 address in IPv6's form count from the start of that form.
            Some(bits) => {
                // Without a sign and zeros in front: some programs take those for octal numbers.
                let is_plain =
                    bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
                let bits: u8 = bits.parse().ok().filter(|_| is_plain).ok_or_else(wrong)?;
                let lead = if given.is_ipv6() && address.is_ipv4() { 96 } else { 0 };
                bits.checked_sub(lead).filter(|bits| *bits <= width).ok_or_else(wrong)?
            }
        };
        let network = Self { address, prefix_bits, read_only };
        let first = match address {
            IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & !low_bits(32 - u32::from(prefix_bits)) as u32).into()),
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !low_bits(128 - u32::from(prefix_bits)))),
        };
        if first != address {
            return Err(format!(
                "'{text}' has bits set behind its first {prefix_bits}; did you mean {first}/{prefix_bits}?"
            ));
        }
        Ok(network)
    }
}

fn low_bits(count: u32) -> u128 {
    u128::MAX.checked_shr(u128::BITS - count).unwrap_or(0)
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read_only = if self.read_only { "=ro" } else { "" };
        write!(f, "{}/{}{read_only}", self.address, self.prefix_bits)
    }
}

/// The treatment of peers.
#[derive(Clone)]
pub struct Rules {
    /// The user that all calls are carried out as, if the server cannot act as others; none if each call is carried out
    /// as its caller.
    pub serving_user: Option<u32>,
    /// Which callers become the anonymous user.
    pub squash: Squash,
    /// User and group of the anonymous user.
    pub anonymous: (u32, u32),
    /// Networks whose calls are answered, in addition to this host's.
    pub networks: Vec<Network>,
    /// Whether these calls may come from any port.
    pub any_port: bool,
    /// Whether every change is refused.
    pub read_only: bool,
    /// The users that this host knows.
    pub host_users: Arc<dyn HostUsers>,
    /// Whether a user of another host has the groups that this host knows. Otherwise those count that its call lists,
    /// at most 16.
    pub has_host_groups: bool,
}

impl Rules {
    /// Carries out each call as its caller, for processes of this host only.
    pub fn of_callers(host_users: Arc<dyn HostUsers>) -> Self {
        Self {
            serving_user: None,
            squash: Squash::default(),
            anonymous: (NOBODY, NOBODY),
            networks: Vec::new(),
            any_port: false,
            read_only: false,
            host_users,
            has_host_groups: false,
        }
    }

    /// Carries out all calls as the serving user, for that user's and root's processes on this host only.
    pub fn of_serving_user(uid: u32) -> Self {
        Self { serving_user: Some(uid), ..Self::of_callers(Arc::new(|_| UserGroups::default())) }
    }

    fn standing(&self, peer: &Peer) -> PeerRights {
        match peer.origin {
            Origin::User(owner) => self.standing_here(owner),
            // Its socket may have belonged to any user of this host.
            Origin::Orphan => PeerRights::Refused,
            Origin::Elsewhere => self.standing_elsewhere(peer),
        }
    }

    /// The standing of a process of this host.
    fn standing_here(&self, owner: u32) -> PeerRights {
        let acts = match (self.serving_user, self.squash) {
            // The process gains nothing: its user could do the same without the server, or all users have access.
            (Some(uid), squash) if owner == uid || owner == ROOT || squash == Squash::All => ActingUser::AsServer,
            (Some(_), _) => return PeerRights::Refused,
            (None, Squash::All) => ActingUser::Anonymously,
            // Root's process is a kernel's NFS client, or could act as any user anyway.
            (None, _) if owner == ROOT => self.as_claimed(Squash::None),
            (None, _) => ActingUser::AsUser { uid: owner },
        };
        PeerRights::Admitted { acts, read_only: self.read_only }
    }

    fn standing_elsewhere(&self, peer: &Peer) -> PeerRights {
        let address = peer.address.to_canonical();
        let allowing = self.networks.iter().filter(|network| network.has(address));
        // The narrowest network counts; of two equally narrow ones the stricter.
        let Some(network) = allowing.max_by_key(|network| (network.prefix_bits, network.read_only)) else {
            return PeerRights::Refused;
        };
        if !self.any_port && !(1..UNRESERVED_PORT_MIN).contains(&peer.port) {
            return PeerRights::Refused;
        }
        let acts = match (self.serving_user, self.squash) {
            (Some(_), _) => ActingUser::AsServer,
            (None, Squash::All) => ActingUser::Anonymously,
            (None, squash) => self.as_claimed(squash),
        };
        PeerRights::Admitted { acts, read_only: self.read_only || network.read_only }
    }

    fn as_claimed(&self, squash: Squash) -> ActingUser {
        ActingUser::AsClaimed { squash, has_host_groups: self.has_host_groups }
    }
}

/// Which peers are answered, and as which user.
#[derive(Clone)]
pub enum AdmittedPeers {
    /// Every peer that reaches the server, with all rights of the serving user; for worlds that know all peers.
    AnyPeer,
    /// Peers that the rules admit.
    Rules(Arc<Rules>),
}

impl From<Rules> for AdmittedPeers {
    fn from(rules: Rules) -> Self {
        Self::Rules(Arc::new(rules))
    }
}

impl AdmittedPeers {
    /// The rights of a peer's calls.
    pub(crate) fn standing(&self, peer: &Peer) -> PeerRights {
        match self {
            Self::AnyPeer => PeerRights::Admitted { acts: ActingUser::AsServer, read_only: false },
            Self::Rules(rules) => rules.standing(peer),
        }
    }

    /// User and group of the anonymous user.
    pub(crate) fn anonymous(&self) -> (u32, u32) {
        match self {
            Self::AnyPeer => (NOBODY, NOBODY),
            Self::Rules(rules) => rules.anonymous,
        }
    }

    /// The users that this host knows, if calls are carried out as some of them.
    pub(crate) fn host_users(&self) -> Option<Arc<dyn HostUsers>> {
        match self {
            Self::AnyPeer => None,
            Self::Rules(rules) => Some(Arc::clone(&rules.host_users)),
        }
    }
}

/// The rights of a peer's calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PeerRights {
    /// The calls are refused unread.
    Refused,
    /// The calls are carried out.
    Admitted {
        /// The user that they are carried out as.
        acts: ActingUser,
        /// Whether calls that change something are refused.
        read_only: bool,
    },
}

/// The user of this host that a verified certificate names; none if the host knows no such user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CertifiedUser(pub(crate) Option<u32>);

impl PeerRights {
    /// The rights of a peer whose certificate names a user. A peer whose claims count as they are is that user instead.
    /// A name that this host does not know has no rights.
    pub(crate) fn certified(self, CertifiedUser(user): CertifiedUser) -> Self {
        let Self::Admitted { acts: ActingUser::AsClaimed { squash, .. }, read_only } = self else { return self };
        let acts = match user {
            None => return Self::Refused,
            Some(ROOT) if squash == Squash::Root => ActingUser::Anonymously,
            Some(uid) => ActingUser::AsUser { uid },
        };
        Self::Admitted { acts, read_only }
    }

    /// Whether callers have the groups that the host knows.
    fn has_host_groups(&self) -> bool {
        let Self::Admitted { acts, .. } = self else { return false };
        matches!(acts, ActingUser::AsUser { .. } | ActingUser::AsClaimed { has_host_groups: true, .. })
    }
}

/// The user that calls are carried out as.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ActingUser {
    /// As the server's own user.
    AsServer,
    /// As the anonymous user.
    Anonymously,
    /// As this user of the host, for any claim.
    AsUser {
        /// Number of the user that the caller acts as.
        uid: u32,
    },
    /// As the user that they claim, except for squashed ones.
    AsClaimed {
        /// Which callers become the anonymous user.
        squash: Squash,
        /// Whether the host's groups count instead of the claimed ones.
        has_host_groups: bool,
    },
}

/// Most credentials that are cached, for users who use one mount at the same time.
const KNOWN_MAX: usize = 8;

/// Not a user's number: hosts take it for 'no change'.
const NO_ONE: u32 = u32::MAX;

/// A credential, and the caller that it means.
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
    /// None if no caller has groups that the host knows.
    host_users: Option<Arc<dyn HostUsers>>,
    /// The age of the host's answers that these callers have.
    age: u64,
    client: Client,
    known: Vec<CachedCaller>,
    last: usize,
}

/// Why a call has no caller yet.
pub(crate) enum NoCaller {
    /// It is refused.
    Refused(Refusal),
    /// The host must be asked for the groups of this user first.
    Unknown(u32, Arc<dyn HostUsers>),
}

impl From<Refusal> for NoCaller {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Callers {
    /// Begins without callers. Writes of the connection count for `client`.
    pub(crate) fn new(
        standing: PeerRights,
        anonymous: (u32, u32),
        host_users: Option<Arc<dyn HostUsers>>,
        client: Client,
    ) -> Self {
        let host_users = host_users.filter(|_| standing.has_host_groups());
        let age = host_users.as_ref().map_or(0, |users| users.age());
        Self { standing, anonymous, host_users, age, client, known: Vec::new(), last: 0 }
    }

    /// Whether the host is to be asked again for the groups of users.
    #[inline]
    pub(crate) fn are_old(&self) -> bool {
        self.host_users.as_ref().is_some_and(|users| users.age() != self.age)
    }

    /// The index of the known caller with this credential. `user` makes a caller of a user, its group and its other
    /// groups.
    #[inline]
    pub(crate) fn find(
        &mut self,
        credential: &[u8],
        user: impl Fn(u32, u32, &[u32]) -> Caller,
    ) -> Result<usize, NoCaller> {
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
    fn find_or_add(&mut self, credential: &[u8], user: impl Fn(u32, u32, &[u32]) -> Caller) -> Result<usize, NoCaller> {
        let PeerRights::Admitted { acts, read_only } = &self.standing else {
            return Err(Refusal::WeakCredential.into());
        };
        if let Some(at) = self.known.iter().position(|known| *known.credential == *credential) {
            self.last = at;
            return Ok(at);
        }
        let claim = rpc::claim(credential)?;
        let find = |uid| match &self.host_users {
            Some(host) => host.find(uid).ok_or_else(|| NoCaller::Unknown(uid, Arc::clone(host))),
            None => Ok(UserGroups::default()),
        };
        let mut caller = match identity(acts, self.anonymous, &claim, find)? {
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

/// User, group and further groups that a call is carried out as.
type Identity = (u32, u32, Vec<u32>);

/// The identity that follows from a claim; none for the server's own user. `find` has the host's groups of a user.
fn identity<E>(
    acts: &ActingUser,
    anonymous: (u32, u32),
    claim: &CallerClaim,
    find: impl Fn(u32) -> Result<UserGroups, E>,
) -> Result<Option<Identity>, E> {
    let nobody = Ok(Some((anonymous.0, anonymous.1, Vec::new())));
    let (squash, has_host_groups) = match acts {
        ActingUser::AsServer => return Ok(None),
        ActingUser::AsUser { uid } => {
            let own = find(*uid)?;
            let gid = first_group(claim, *uid, &own).unwrap_or(NOBODY);
            return Ok(Some((*uid, gid, own.further)));
        }
        ActingUser::Anonymously => return nobody,
        ActingUser::AsClaimed { squash, has_host_groups } => (*squash, *has_host_groups),
    };
    let CallerClaim::User { uid, gid, groups, group_count } = claim else { return nobody };
    if squash == Squash::All || *uid == NO_ONE || (*uid == ROOT && squash == Squash::Root) {
        return nobody;
    }
    let (gid, groups) = if has_host_groups {
        let own = find(*uid)?;
        // A user that the host does not know has its first group alone.
        (first_group(claim, *uid, &own).unwrap_or(*gid), own.further)
    } else {
        (*gid, groups[..usize::from(*group_count).min(groups.len())].to_vec())
    };
    let squashed = |group: u32| group == NO_ONE || (group == ROOT && squash == Squash::Root);
    let gid = if squashed(gid) { anonymous.1 } else { gid };
    Ok(Some((*uid, gid, groups.into_iter().filter(|group| !squashed(*group)).collect())))
}

/// The group of new objects of a user that the host knows: the claimed one if the user is in it, as after newgrp(1).
fn first_group(claim: &CallerClaim, user: u32, own: &UserGroups) -> Option<u32> {
    match claim {
        CallerClaim::User { uid, gid, .. } if *uid == user && own.further.contains(gid) => Some(*gid),
        _ => own.gid,
    }
}

#[cfg(test)]
mod tests;
