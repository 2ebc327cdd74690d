//! POSIX access control lists (draft 17 of POSIX.1e) in the record of an inode.
//!
//! Owns: lists as values, their bytes, the number of their entries.
//! Does not own: the form in which callers have them, and their effects (`tree::acl`); which rights they give
//! (`tree::permission`).
//! Invariants: an access list is there only if it says more than the mode, so it has a mask. The rights of the owner
//! and of the others, and the mask, are the mode's, so that the two cannot disagree. Entries of users are before those
//! of groups; within a kind they have the order of their caller. A volume gets the feature `WITH_ACLS` before its first
//! list.

use std::sync::Arc;

use crate::format::{FieldBytes, FormatError, at_least, in_range};

/// Most entries of a list for users and groups. Many objects of one user are in memory with their lists.
pub(crate) const NAMED_MAX: usize = 128;

const NAMED_BYTES: usize = 5;
/// Beside the rights of an entry: it is a group's.
const OF_GROUP: u8 = 1 << 3;
/// In place of a mask that a list does not have.
const NO_MASK: u8 = 1 << 3;

/// The entry of a user or of a group that is not the object's own. Rights are the three bits of a mode's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedEntry {
    pub(crate) is_group: bool,
    pub(crate) id: u32,
    pub(crate) rights: u8,
}

/// A list of which only this is not in the mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AccessAcl {
    /// The rights of the object's own group. The mode has the mask in their place.
    pub(crate) group: u8,
    pub(crate) named: Vec<NamedEntry>,
}

/// A whole list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acl {
    pub(crate) owner: u8,
    pub(crate) group: u8,
    /// A bound on all groups and named users. A list without these may lack it.
    pub(crate) mask: Option<u8>,
    pub(crate) others: u8,
    pub(crate) named: Vec<NamedEntry>,
}

/// The lists of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acls {
    pub(crate) access: Option<Arc<AccessAcl>>,
    /// Of a directory: the list that its new objects get.
    pub(crate) default: Option<Arc<Acl>>,
}

impl Acls {
    /// Most bytes of both.
    pub(crate) const BYTES_MAX: usize = 1 + 4 + 2 * (2 + NAMED_MAX * NAMED_BYTES);

    pub(crate) fn encode(&self, value: &mut Vec<u8>) {
        if let Some(access) = &self.access {
            value.push(access.group);
            encode_named(&access.named, value);
        }
        if let Some(default) = &self.default {
            value.extend([default.owner, default.group, default.mask.unwrap_or(NO_MASK), default.others]);
            encode_named(&default.named, value);
        }
    }

    /// Takes the lists that are there.
    pub(crate) fn decode(
        fields: &mut FieldBytes<'_>,
        has_access: bool,
        has_default: bool,
    ) -> Result<Self, FormatError> {
        let mut acls = Self::default();
        if has_access {
            at_least("an access list", fields.rest().len(), 1)?;
            let group = rights(fields.u8())?;
            acls.access = Some(Arc::new(AccessAcl { group, named: decode_named(fields)? }));
        }
        if has_default {
            at_least("a default list", fields.rest().len(), 4)?;
            let (owner, group) = (rights(fields.u8())?, rights(fields.u8())?);
            let mask = Some(fields.u8()).filter(|mask| *mask != NO_MASK).map(rights).transpose()?;
            let (others, named) = (rights(fields.u8())?, decode_named(fields)?);
            acls.default = Some(Arc::new(Acl { owner, group, mask, others, named }));
        }
        Ok(acls)
    }
}

fn rights(byte: u8) -> Result<u8, FormatError> {
    in_range("the rights of an entry", byte.into(), 0, 7).map(|_| byte)
}

fn encode_named(named: &[NamedEntry], value: &mut Vec<u8>) {
    value.extend_from_slice(&(named.len() as u16).to_be_bytes());
    for entry in named {
        value.push(entry.rights | if entry.is_group { OF_GROUP } else { 0 });
        value.extend_from_slice(&entry.id.to_be_bytes());
    }
}

fn decode_named(fields: &mut FieldBytes<'_>) -> Result<Vec<NamedEntry>, FormatError> {
    at_least("the entries of a list", fields.rest().len(), 2)?;
    let count = u64::from(u16::from_be_bytes(fields.take()));
    let count = in_range("the number of a list's entries", count, 0, NAMED_MAX as u64)? as usize;
    at_least("the entries of a list", fields.rest().len(), count * NAMED_BYTES)?;
    let entry = |_| {
        let head = fields.u8();
        let is_group = head & OF_GROUP != 0;
        Ok(NamedEntry { is_group, id: fields.u32(), rights: rights(head & !OF_GROUP)? })
    };
    (0..count).map(entry).collect()
}

#[cfg(test)]
mod tests;
