//! Which peers are answered, and as whom their calls may be carried out.
//!
//! Owns: the rules, by what the world knows of a peer: its address and port, whose its socket is.
//! Does not own: finding that out, users' groups (worlds), the refusal's form (`rpc`), what single calls claim and
//! what becomes of that (`callers`).
//! Invariants: a peer of which too little is known is refused. A process of this host is itself, whatever its calls
//! claim, unless it is root's. Somebody on another host is whom that host says; so only hosts that are named are
//! believed, and only programs there that may use a port below 1,024, unless that is lifted.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;

use afflux_frontend::{Origin, Peer};

const ROOT: u32 = 0;
/// The first port that every program may use.
const UNRESERVED_PORT_MIN: u16 = 1024;
/// User and group of callers that are nobody on the host, as by custom.
const NOBODY: u32 = 65_534;

/// Which callers are made nobody in particular, whatever they claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Squash {
    /// Root of other hosts. Root of this one could do without the server whatever it does here.
    #[default]
    Root,
    /// Everybody.
    All,
    /// Nobody.
    None,
}

/// Some addresses that have their first bits in common.
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

/// `ADDRESS`, `ADDRESS/BITS`, and either with `=ro` behind it.
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
            // Those of an IPv4 address in IPv6's form are counted as they are written.
            Some(bits) => {
                let bits: u8 = bits.parse().map_err(|_| wrong())?;
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

/// The groups of a user of this host: the first one, and the further ones.
pub type GroupsOf = Arc<dyn Fn(u32) -> (u32, Vec<u32>) + Send + Sync>;

/// How peers are treated.
#[derive(Clone)]
pub struct Rules {
    /// As which user all calls are carried out, where the server cannot act as others; none where they are carried out
    /// as those who make them.
    pub serving_user: Option<u32>,
    /// Who is made nobody in particular.
    pub squash: Squash,
    /// User and group of whoever is nobody in particular.
    pub anonymous: (u32, u32),
    /// From where, beside this host, calls are answered.
    pub networks: Vec<Network>,
    /// Whether they are whatever port they come from.
    pub any_port: bool,
    /// Whether nobody may change anything.
    pub read_only: bool,
    /// Asked for processes of this host.
    pub groups_of: GroupsOf,
}

impl Rules {
    /// Calls carried out as those who make them, of this host's processes alone. Users have the groups that
    /// `groups_of` says.
    pub fn of_callers(groups_of: GroupsOf) -> Self {
        Self {
            serving_user: None,
            squash: Squash::default(),
            anonymous: (NOBODY, NOBODY),
            networks: Vec::new(),
            any_port: false,
            read_only: false,
            groups_of,
        }
    }

    /// All calls carried out as the serving user, of its own processes and root's on this host alone.
    pub fn of_serving_user(uid: u32) -> Self {
        Self { serving_user: Some(uid), ..Self::of_callers(Arc::new(|_| (NOBODY, Vec::new()))) }
    }

    fn standing(&self, peer: &Peer) -> Standing {
        match peer.origin {
            Origin::User(owner) => self.standing_here(owner),
            // It may have been a process of any user here.
            Origin::Orphan => Standing::Refused,
            Origin::Elsewhere => self.standing_elsewhere(peer),
        }
    }

    /// Of a process of this host.
    fn standing_here(&self, owner: u32) -> Standing {
        let acts = match (self.serving_user, self.squash) {
            // It gains nothing that it could not do without the server, or that was meant for everybody.
            (Some(uid), squash) if owner == uid || owner == ROOT || squash == Squash::All => Acts::AsServer,
            (Some(_), _) => return Standing::Refused,
            (None, Squash::All) => Acts::Anonymously,
            // A kernel's NFS client, or who could be anybody anyway.
            (None, _) if owner == ROOT => Acts::AsClaimed { squash: Squash::None },
            (None, _) => {
                let (gid, groups) = (self.groups_of)(owner);
                Acts::AsUser { uid: owner, gid, groups }
            }
        };
        Standing::Admitted { acts, read_only: self.read_only }
    }

    fn standing_elsewhere(&self, peer: &Peer) -> Standing {
        let address = peer.address.to_canonical();
        let allowing = self.networks.iter().filter(|network| network.has(address));
        // The narrowest counts; of two that say different things the one that allows less.
        let Some(network) = allowing.max_by_key(|network| (network.prefix_bits, network.read_only)) else {
            return Standing::Refused;
        };
        if !self.any_port && !(1..UNRESERVED_PORT_MIN).contains(&peer.port) {
            return Standing::Refused;
        }
        let acts = match (self.serving_user, self.squash) {
            (Some(_), _) => Acts::AsServer,
            (None, Squash::All) => Acts::Anonymously,
            (None, squash) => Acts::AsClaimed { squash },
        };
        Standing::Admitted { acts, read_only: self.read_only || network.read_only }
    }
}

/// Which peers are answered, and as whom.
#[derive(Clone)]
pub enum Admission {
    /// Everybody who reaches the server, with all that the serving user may do: where those who reach it are known.
    AnyPeer,
    /// As the rules say.
    Rules(Arc<Rules>),
}

impl From<Rules> for Admission {
    fn from(rules: Rules) -> Self {
        Self::Rules(Arc::new(rules))
    }
}

impl Admission {
    /// What a peer's calls may do.
    pub(crate) fn standing(&self, peer: &Peer) -> Standing {
        match self {
            Self::AnyPeer => Standing::Admitted { acts: Acts::AsServer, read_only: false },
            Self::Rules(rules) => rules.standing(peer),
        }
    }

    /// User and group of whoever is nobody in particular.
    pub(crate) fn anonymous(&self) -> (u32, u32) {
        match self {
            Self::AnyPeer => (NOBODY, NOBODY),
            Self::Rules(rules) => rules.anonymous,
        }
    }
}

/// What a peer's calls may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// They are not looked at.
    Refused,
    /// They are carried out.
    Admitted {
        /// As whom.
        acts: Acts,
        /// Unless they change something.
        read_only: bool,
    },
}

/// As whom calls are carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Acts {
    /// As the server's own user.
    AsServer,
    /// As nobody in particular.
    Anonymously,
    /// As this user, whatever they claim.
    AsUser {
        /// The user.
        uid: u32,
        /// Its first group.
        gid: u32,
        /// Its further groups.
        groups: Vec<u32>,
    },
    /// As whom they claim, but for these.
    AsClaimed {
        /// Who is made nobody in particular.
        squash: Squash,
    },
}

#[cfg(test)]
mod tests;
