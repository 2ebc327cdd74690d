//! The claim of one process of this host to a volume in a store.
//!
//! Owns: a name of the kernel that the process holds until its end, however it ends.
//! Does not own: other hosts (`afflux_object::Holder`), fencing, which alone keeps the volume safe.
//! Invariants: two processes of a host never have the claim to one volume at a time. A claim leaves nothing behind.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A name of the kernel may have 107 bytes.
const NAME_BYTES_MAX: usize = 90;

pub(crate) struct StoreClaim {
    _name: UnixDatagram,
}

impl StoreClaim {
    /// Takes the claim, unless another process has it. The end of a long address stands for the whole: a claim too many
    /// only makes a start need the user's word.
    pub(crate) fn take(url: &str, endpoint: Option<&str>) -> io::Result<Option<Self>> {
        let location = format!("{} {url}", endpoint.unwrap_or_default());
        let end = &location.as_bytes()[location.len().saturating_sub(NAME_BYTES_MAX)..];
        let address = SocketAddr::from_abstract_name([b"afflux volume ", end].concat())?;
        match UnixDatagram::bind_addr(&address) {
            Ok(name) => Ok(Some(Self { _name: name })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
