//! The changes of attributes that clients request with SETATTR, CREATE and OPEN.
//!
//! Owns: the numbers of owners that a client names, the setting of access control lists.
//! Does not own: the form of the values (`v4::attributes`, `posix_acls`), rights and the change itself (the volume).
//! Invariants: a change takes the numbers of all its names, or it is refused
//! (`a_change_of_owners_by_name_waits_for_the_host_and_takes_both_or_none`).

use std::sync::Arc;

use afflux_frontend::OwnerKind;
use afflux_volume::{AttributeChange, Caller, Inode, Platform, VolumeError, XattrChange};

use crate::operations::Task;
use crate::status::NfsStatus;
use crate::v4::attributes::{self, RequestedChange, number as n};
use crate::v4::codec::{BITMAP_WORDS, Bitmap, Fattr};
use crate::v4::compound::Compound;
use crate::v4::owners::Principal;
use crate::v4::posix_acls::{self, RequestedEntry};
use crate::v4::service::Service;

/// The change that a client's values ask for, of attributes that are `settable` here. Waits for the host's answer about
/// owners that have names.
pub(super) async fn requested_change<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    values: &Fattr,
    settable: [u32; BITMAP_WORDS],
) -> Result<(AttributeChange, HostAcls), NfsStatus> {
    let RequestedChange { mut change, owner, owner_group, default_acl, access_acl } =
        attributes::change(values, on.record, &compound.known(), settable)?;
    let service = &compound.service;
    if let Some(name) = owner {
        change.uid = Some(service.owner_of(OwnerKind::User, name).await?);
    }
    if let Some(name) = owner_group {
        change.gid = Some(service.owner_of(OwnerKind::Group, name).await?);
    }
    let mut acls = HostAcls::default();
    for (number, name, list) in [
        (n::POSIX_DEFAULT_ACL, afflux_volume::DEFAULT_ACL, default_acl),
        (n::POSIX_ACCESS_ACL, afflux_volume::ACCESS_ACL, access_acl),
    ] {
        if let Some(list) = list {
            acls.push((number, name, to_host(service, &list).await?));
        }
    }
    Ok((change, acls))
}

/// The access control lists that a client sets: the number of the attribute, its name on the host, and its value there,
/// which is empty for a list that goes.
pub(super) type HostAcls = Vec<(u32, &'static [u8], Vec<u8>)>;

/// The host's form of a list. Waits for the host's answer about owners that have names.
async fn to_host<P: Platform>(service: &Service<P>, list: &[RequestedEntry<'_>]) -> Result<Vec<u8>, NfsStatus> {
    let mut ids = Vec::new();
    for (is_user, who) in list.iter().filter_map(RequestedEntry::who) {
        ids.push(match who {
            Principal::Number(id) => *id,
            Principal::Name(name) if is_user => service.owner_of(OwnerKind::User, name).await?,
            Principal::Name(name) => service.owner_of(OwnerKind::Group, name).await?,
        });
    }
    Ok(posix_acls::to_host(list, &ids))
}

/// Sets access control lists, the last of them as `last`. Returns the attributes that were set, and the failure of the
/// first that was not.
pub(super) async fn set_acls<P: Platform>(
    on: &Task<'_, P>,
    last: &Caller,
    inode: &Arc<Inode<P>>,
    acls: HostAcls,
) -> (Bitmap, Result<(), NfsStatus>) {
    let (mut set, count) = (Bitmap::default(), acls.len());
    for (at, (number, name, list)) in acls.into_iter().enumerate() {
        let change = if list.is_empty() { XattrChange::Remove } else { XattrChange::Set(list.into()) };
        let caller = if at + 1 == count { last } else { on.caller };
        match on.volume.change_xattr_by(caller, inode, name, change).await.result {
            // A list that is not there need not go.
            Ok(()) | Err(VolumeError::NoAttribute) => set = set.with(Bitmap::of(&[number])),
            Err(error) => return (set, Err(error.into())),
        }
    }
    (set, Ok(()))
}
