//! POSIX access control lists, as 4.2's attributes `posix_access_acl` and `posix_default_acl` have them
//! (draft-ietf-nfsv4-posix-acls).
//!
//! Owns: the form of a list on the wire, its way to the host's form and back, the list that a mode alone means.
//! Does not own: the host's form and its names (`afflux_volume`), the rights by a list and its effect on the mode (the
//! host), the numbers of owners that a client names (`operations::attributes`).
//! Invariants: a list has at most [`ENTRIES_MAX`] entries. A list that comes from a client gets the host's order, so
//! that the order of its entries does not matter (`a_list_comes_back_as_it_was_set_in_any_order`). Whether a list is
//! valid, the host decides.

use afflux_volume::Attributes;
use afflux_volume::acl_form::{ENTRY_BYTES, NO_ID, VERSION, tag};

use super::owners::Principal;
use crate::status::NfsStatus;
use crate::wire::xdr::{Reader, Writer};

/// Most entries of a list.
const ENTRIES_MAX: usize = 1024;

/// The host's tags in the order of those on the wire, which are counted from 1 on.
const TAGS: [u16; 6] = [tag::USER_OBJ, tag::USER, tag::GROUP_OBJ, tag::GROUP, tag::MASK, tag::OTHER];

/// An entry of a list that a client sets.
pub(super) struct RequestedEntry<'a> {
    tag: u16,
    permissions: u16,
    who: Option<Principal<'a>>,
}

impl<'a> RequestedEntry<'a> {
    /// The user or the group that it is about.
    pub(super) fn who(&self) -> Option<(bool, &Principal<'a>)> {
        self.who.as_ref().map(|who| (self.tag == tag::USER, who))
    }
}

/// Reads a list.
pub(super) fn read<'a>(reader: &mut Reader<'a>) -> Result<Vec<RequestedEntry<'a>>, NfsStatus> {
    let count = reader.u32().map_err(|_| NfsStatus::Badxdr)? as usize;
    if count > ENTRIES_MAX {
        return Err(NfsStatus::Inval);
    }
    (0..count).map(|_| read_entry(reader)).collect()
}

fn read_entry<'a>(reader: &mut Reader<'a>) -> Result<RequestedEntry<'a>, NfsStatus> {
    let mut word = || reader.u32().map_err(|_| NfsStatus::Badxdr);
    let (number, permissions) = (word()?, word()?);
    let who = reader.opaque(usize::MAX).map_err(|_| NfsStatus::Badxdr)?;
    let index = (number as usize).checked_sub(1);
    let tag = index.and_then(|index| TAGS.get(index)).copied().ok_or(NfsStatus::Badxdr)?;
    if permissions > 7 {
        return Err(NfsStatus::Inval);
    }
    let who = if matches!(tag, tag::USER | tag::GROUP) { Some(Principal::read(who)?) } else { None };
    Ok(RequestedEntry { tag, permissions: permissions as u16, who })
}

/// The host's form of a list whose owners have these numbers, which `ids` has in the order of the entries that have
/// owners. Empty for a list without entries.
pub(super) fn to_host(entries: &[RequestedEntry<'_>], ids: &[u32]) -> Vec<u8> {
    if entries.is_empty() {
        return Vec::new();
    }
    let mut ids = ids.iter().copied();
    let mut rows: Vec<(u16, u32, u16)> = entries
        .iter()
        .map(|entry| (entry.tag, entry.who.as_ref().and_then(|_| ids.next()).unwrap_or(NO_ID), entry.permissions))
        .collect();
    rows.sort_unstable();
    let mut host = VERSION.to_le_bytes().to_vec();
    for (tag, id, permissions) in rows {
        host.extend_from_slice(&tag.to_le_bytes());
        host.extend_from_slice(&permissions.to_le_bytes());
        host.extend_from_slice(&id.to_le_bytes());
    }
    host
}

/// Writes a list in the host's form.
///
/// # Errors
/// It is none, or has too many entries.
pub(super) fn write_host(writer: &mut Writer, host: &[u8]) -> Result<(), NfsStatus> {
    let (version, entries) = host.split_first_chunk().ok_or(NfsStatus::Serverfault)?;
    let (entries, rest) = entries.as_chunks::<ENTRY_BYTES>();
    if u32::from_le_bytes(*version) != VERSION || !rest.is_empty() || entries.len() > ENTRIES_MAX {
        return Err(NfsStatus::Serverfault);
    }
    writer.u32(entries.len() as u32);
    for [tag_low, tag_high, low, high, id @ ..] in entries {
        let tag = u16::from_le_bytes([*tag_low, *tag_high]);
        let who = matches!(tag, tag::USER | tag::GROUP).then(|| u32::from_le_bytes(*id));
        write_entry(writer, tag, u16::from_le_bytes([*low, *high]), who)?;
    }
    Ok(())
}

/// Writes the list that the object's mode means.
pub(super) fn write_mode(writer: &mut Writer, attributes: &Attributes) -> Result<(), NfsStatus> {
    let rights = |shift: u32| (attributes.mode >> shift & 7) as u16;
    writer.u32(3);
    write_entry(writer, tag::USER_OBJ, rights(6), None)?;
    write_entry(writer, tag::GROUP_OBJ, rights(3), None)?;
    write_entry(writer, tag::OTHER, rights(0), None)
}

fn write_entry(writer: &mut Writer, tag: u16, permissions: u16, who: Option<u32>) -> Result<(), NfsStatus> {
    let index = TAGS.iter().position(|own| *own == tag).ok_or(NfsStatus::Serverfault)?;
    writer.words([index as u32 + 1, permissions.into()]);
    writer.opaque(who.map(|id| id.to_string()).unwrap_or_default().as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests;
