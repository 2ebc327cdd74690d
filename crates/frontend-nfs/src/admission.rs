//! Which peers are answered, as long as calls are carried out as the serving user and not as their callers.
//!
//! Owns: the rule, by what the world knows of a peer.
//! Does not own: finding out whose socket it is (worlds), the refusal's form (`rpc`), what callers claim
//! to be in their credentials: that proves nothing.
//! Invariants: a peer of which nothing is known is refused, unless everybody is admitted.

use frontend::Peer;

const ROOT: u32 = 0;

/// Which peers are answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Everybody who reaches the server, with all that the serving user may do.
    AnyPeer,
    /// Peers on loopback whose socket belongs to this user or to root: they could do all that the server
    /// does for them without it. A kernel's NFS client has its socket from root.
    OwnUserAndRoot {
        /// The serving user.
        uid: u32,
    },
}

impl Admission {
    /// Whether calls from `peer` are looked at.
    pub(crate) fn admits(self, peer: &Peer) -> bool {
        match self {
            Self::AnyPeer => true,
            Self::OwnUserAndRoot { uid } => {
                peer.address.to_canonical().is_loopback()
                    && peer.socket_owner.is_some_and(|owner| owner == uid || owner == ROOT)
            }
        }
    }
}

#[cfg(test)]
mod tests;
