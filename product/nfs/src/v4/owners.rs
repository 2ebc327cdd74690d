//! Users and groups, as version 4 names them in attributes and access control lists.
//!
//! Owns: the form of such a name (RFC 8881 5.9): digits or a name, each with a domain or without.
//! Does not own: the number of a name (the host, by the service).
//! Invariants: a domain does not count (`an_owner_is_a_number_or_a_name_at_any_domain`). No principal has the number
//! that means no change to the host.

use crate::status::NfsStatus;

/// Most bytes of a user's or group's name.
const NAME_BYTES_MAX: usize = 256;

/// A user or a group in a client's words.
pub(super) enum Principal<'a> {
    Number(u32),
    Name(&'a str),
}

impl<'a> Principal<'a> {
    /// Reads a number in digits or a name, each with a domain or without. The domain does not count.
    pub(super) fn read(owner: &'a [u8]) -> Result<Self, NfsStatus> {
        let owner = std::str::from_utf8(owner).map_err(|_| NfsStatus::Badowner)?;
        let name = owner.split('@').next().unwrap_or_default();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(NfsStatus::Badowner);
        }
        if !name.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Self::Name(name));
        }
        let number = name.parse().ok().filter(|number| *number != u32::MAX);
        number.map(Self::Number).ok_or(NfsStatus::Badowner)
    }
}
