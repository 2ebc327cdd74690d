//! OPEN, OPEN_DOWNGRADE, CLOSE and DELEGRETURN, and the rights that a stateid gives.
//!
//! Owns: the steps of an OPEN: the file, the caller's right to it, an entry in the table.
//! Does not own: the table and its rules (`state::opens`), making files (the volume).
//! Invariants: a user's right to a file is asked once, at its OPEN; from then on the mode of the open counts. A user
//! without the right to write denies and cuts nothing (`who_may_only_read_a_file_denies_and_cuts_nothing`). The maker
//! of a file may open it with any mode. A file is cut off only for an OPEN that was granted; one whose cut fails leaves
//! no open behind.

use std::sync::Arc;

use afflux_volume::{
    AttributeChange, Attributes, Before, Caller, Consistency, CreateHow, Inode, Outcome, Platform, Share, VolumeError,
};

use super::super::attributes::{self, number as n};
use super::super::codec::{Bitmap, Fattr, OpenArgs, OpenClaim, OpenFlag};
use super::super::compound::{Compound, Object};
use super::super::delegating::{DelegationWish, NoDelegation};
use super::super::service::{OpenGrant, OpenRefusal};
use super::super::state::delegations::Delegation;
use super::super::state::opens::Opener;
use super::super::state::stateids::{Stateid, StateidKind, StateidOther};
use super::delegations::write_delegation;
use super::requested::{HostAcls, requested_change, set_acls};
use crate::operations;
use crate::operations::{Ended, Operations, Stop, Task, consistency_now};
use crate::status::NfsStatus;
use crate::v4::compound::{check_name, check_regular, write_change};
use crate::wire::reply::Draft;
use crate::wire::xdr::{Field, Writer};

/// The right that counts for a READ or WRITE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Right {
    OfOpen,
    /// The user's, since nothing is open.
    OfUser,
}

/// The stateid that is meant: an operation may name the current one.
fn meant<P: Platform>(compound: &Compound<P>, stateid: Stateid) -> Result<(StateidKind, u32), NfsStatus> {
    match stateid.meaning()? {
        StateidKind::Current => Ok((compound.stateid().meaning()?, compound.stateid().seqid)),
        meaning => Ok((meaning, stateid.seqid)),
    }
}

/// The `other` and the seqid of a stateid that names state.
pub(super) fn other<P: Platform>(compound: &Compound<P>, stateid: Stateid) -> Result<(StateidOther, u32), NfsStatus> {
    match meant(compound, stateid)? {
        (StateidKind::State(other), seqid) => Ok((other, seqid)),
        _ => Err(NfsStatus::BadStateid),
    }
}

/// Checks that a stateid may be used for `access` to a file.
pub(super) fn right_of<P: Platform>(
    compound: &Compound<P>,
    stateid: Stateid,
    access: u8,
    file: u64,
) -> Result<Right, NfsStatus> {
    match meant(compound, stateid)? {
        (StateidKind::State(other), seqid) => {
            let (opened, share) = opened_by(compound, other, seqid)?;
            match () {
                () if opened != file => Err(NfsStatus::BadStateid),
                () if share.access & access == 0 => Err(NfsStatus::Openmode),
                () => Ok(Right::OfOpen),
            }
        }
        _ => {
            let service = &compound.service;
            if service.is_in_grace() {
                // An open may deny it that its client has not reclaimed.
                return Err(NfsStatus::Grace);
            }
            if service.locks().has_denials() {
                service.check_use(file, access, compound.now_ns)?;
            }
            Ok(Right::OfUser)
        }
    }
}

/// The file and the rights of an open, of the open that a lock owner belongs to, or of a delegation.
fn opened_by<P: Platform>(compound: &Compound<P>, other: StateidOther, seqid: u32) -> Result<(u64, Share), NfsStatus> {
    let (clientid, state) = (compound.clientid()?, compound.service.state());
    if other.is_of_delegations() {
        let file = state.delegations.find(clientid, other, seqid)?.file;
        return Ok((file, Share { access: Share::READ, deny: 0 }));
    }
    if !other.is_of_locks() {
        return state.opens.find(clientid, other, seqid);
    }
    let lock = state.lock_states.find(clientid, other, seqid)?;
    Ok((lock.file, state.opens.share_at(lock.open).ok_or(NfsStatus::BadStateid)?))
}

/// The rights in the arguments of OPEN and OPEN_DOWNGRADE, without wishes about delegations.
fn share(access: u32, deny: u32) -> Result<Share, NfsStatus> {
    const WANT_MASK: u32 = 0x0003_ff00;
    let rights = access & !WANT_MASK;
    if !(1..=3).contains(&rights) || deny > 3 {
        return Err(NfsStatus::Inval);
    }
    Ok(Share { access: rights as u8, deny: deny as u8 })
}

/// The file of an OPEN.
struct Opened<P: Platform> {
    inode: Arc<Inode<P>>,
    /// Of the directory.
    change: Consistency,
    /// The attributes that were set.
    set: Bitmap,
    /// This OPEN has made the file.
    is_new: bool,
    /// The size that a file which was there gets.
    size: Option<u64>,
}

impl<P: Platform> Opened<P> {
    fn existing(inode: Arc<Inode<P>>, change: Consistency) -> Self {
        Self { inode, change, set: Bitmap::default(), is_new: false, size: None }
    }
}

pub(super) async fn open<P: Platform, O: Operations<P>>(
    on: &O,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    arguments: &OpenArgs,
) -> Ended {
    let share = share(arguments.share_access, arguments.share_deny)?;
    let clientid = compound.clientid()?;
    check_claim(compound, clientid, arguments)?;
    // After a restart uses without an open wait for the clients that had delegations, as for those that denied uses.
    let denies = share.deny != 0 || compound.service.delegates();
    if !compound.service.is_listed(clientid, denies) {
        // The file of the list is written.
        on.task()?;
        let service = Arc::clone(&compound.service);
        Box::pin(async move { service.enlist(clientid, denies).await }).await;
    }
    let opened = match (arguments.claim, arguments.how) {
        (OpenClaim::Null(name) | OpenClaim::DelegateCur(_, name), OpenFlag::NoCreate) => {
            named(on, compound, name).await?
        }
        (OpenClaim::Null(name), how) => {
            let task = on.task()?;
            Box::pin(made(task, compound, name, how)).await?
        }
        // Only a name can be made.
        (_, how) if !matches!(how, OpenFlag::NoCreate) => return Err(NfsStatus::Inval.into()),
        _ => {
            compound.object()?;
            Opened::existing(compound.inode()?, Consistency::default())
        }
    };
    check_regular(opened.inode.kind())?;
    if !opened.is_new {
        check_rights(on, &opened.inode, share, opened.size.is_some()).await?;
    }
    let owner = on.bytes(arguments.open_owner);
    let file = opened.inode.fileid();
    check_delegation(compound, arguments, share, file)?;
    let volume = on.volume();
    let is_of_file = |stateid: &Stateid| match stateid.meaning() {
        Ok(StateidKind::State(other)) => opened_by(compound, other, stateid.seqid).is_ok_and(|(of, _)| of == file),
        _ => false,
    };
    let granted = match compound.changed_before().filter(is_of_file) {
        Some(stateid) => OpenGrant::earlier(stateid),
        None => {
            let handle = volume.handle(&opened.inode);
            let (party, mark) = (compound.speaker.0, compound.mark());
            let number = compound.service.owner_id(clientid, owner);
            let by = Opener { clientid, party, owner, number, handle: handle.as_bytes(), mark };
            let open = || {
                let hold = || volume.hold(&opened.inode).map(Some).map_err(NfsStatus::from);
                compound.service.open(by, file, share, opened.size.is_some(), compound.now_ns, hold)
            };
            let again = |refusal| match refusal {
                OpenRefusal::Status(status) => status,
                OpenRefusal::Ending(_) | OpenRefusal::Recalling => NfsStatus::Delay,
            };
            match open() {
                Ok(granted) => granted,
                Err(OpenRefusal::Status(status)) => return Err(status.into()),
                Err(OpenRefusal::Ending(holder)) => {
                    on.task()?.volume.wait_for_end(holder).await;
                    open().map_err(again)?
                }
                Err(OpenRefusal::Recalling) => {
                    let (task, caller) = (on.task()?, on.caller().clone().holding(clientid));
                    let _change = Box::pin(task.volume.begin_change(&caller, &opened.inode)).await?;
                    open().map_err(again)?
                }
            }
        }
    };
    if let Some(size) = opened.size
        && let Err(stop) = cut(on.task()?, clientid, &opened.inode, size).await
    {
        compound.service.take_back(clientid, file, granted, compound.now_ns);
        return Err(stop);
    }
    let stateid = granted.stateid;
    let writer = &mut draft.writer;
    write_stateid(stateid, writer);
    write_change(writer, &opened.change);
    writer.u32(result_flags(compound));
    opened.set.write(writer);
    let wish = DelegationWish::of(arguments.share_access);
    write_delegation(&delegation(compound, arguments, share, wish, &opened.inode), wish, writer);
    compound.enter(Object::Inode(opened.inode));
    compound.set_stateid(stateid);
    Ok(())
}

/// The file goes with its last name. Locks are those of POSIX, and a client that waits for one is notified if its back
/// channel works.
fn result_flags<P: Platform>(compound: &Compound<P>) -> u32 {
    const OPEN4_RESULT_LOCKTYPE_POSIX: u32 = 4;
    const OPEN4_RESULT_MAY_NOTIFY_LOCK: u32 = 0x20;
    let is_told = compound.session().is_some_and(|session| session.back.is_up());
    OPEN4_RESULT_LOCKTYPE_POSIX | if is_told { OPEN4_RESULT_MAY_NOTIFY_LOCK } else { 0 }
}

/// The delegation that a granted OPEN gets, or why it gets none. If an earlier server has carried out the OPEN, the
/// client gets the delegation of that time.
fn delegation<P: Platform>(
    compound: &Compound<P>,
    arguments: &OpenArgs,
    share: Share,
    wish: DelegationWish,
    inode: &Inode<P>,
) -> Result<Arc<Delegation>, NoDelegation> {
    const OPEN_DELEGATE_READ: u32 = 1;
    let (service, session) = (&compound.service, compound.session().ok_or(NoDelegation::Resource)?);
    match (arguments.claim, wish) {
        (OpenClaim::Previous(OPEN_DELEGATE_READ), _) => service.delegate(session, inode, true),
        (_, DelegationWish::NotWanted) => Err(NoDelegation::NotWanted),
        (_, DelegationWish::Cancelled) => Err(NoDelegation::Cancelled),
        (_, DelegationWish::Write) => Err(NoDelegation::WriteUnsupported),
        _ if !service.delegates() => Err(NoDelegation::Resource),
        _ if compound.changed_before().is_some() => {
            service.delegated(session.clientid, inode.fileid()).ok_or(NoDelegation::Resource)
        }
        (OpenClaim::Null(_) | OpenClaim::Fh, _) if share == (Share { access: Share::READ, deny: 0 }) => {
            service.delegate(session, inode, false)
        }
        _ => Err(NoDelegation::Contention),
    }
}

/// Checks that a client has the delegation by which it opens a file.
fn check_delegation<P: Platform>(
    compound: &Compound<P>,
    arguments: &OpenArgs,
    share: Share,
    file: u64,
) -> Result<(), NfsStatus> {
    let (OpenClaim::DelegateCur(stateid, _) | OpenClaim::DelegCurFh(stateid)) = arguments.claim else {
        return Ok(());
    };
    let (at, seqid) = other(compound, stateid)?;
    let (clientid, state) = (compound.clientid()?, compound.service.state());
    match state.delegations.find(clientid, at, seqid)?.file {
        of if of != file => Err(NfsStatus::BadStateid),
        _ if share.access & Share::WRITE != 0 => Err(NfsStatus::Openmode),
        _ => Ok(()),
    }
}

pub(super) fn write_stateid(stateid: Stateid, writer: &mut Writer) {
    writer.u32(stateid.seqid);
    writer.raw(&stateid.other);
}

/// Whether the claim fits the client's state.
fn check_claim<P: Platform>(compound: &Compound<P>, clientid: u64, arguments: &OpenArgs) -> Result<(), NfsStatus> {
    match arguments.claim {
        OpenClaim::DelegatePrev => Err(NfsStatus::Notsupp),
        OpenClaim::Previous(_) => check_reclaim(compound, clientid, true),
        _ => check_reclaim(compound, clientid, false),
    }
}

/// A client asks for what it had of an earlier server before it asks for new state; and new state waits for the clients
/// that have not done so yet.
pub(super) fn check_reclaim<P: Platform>(
    compound: &Compound<P>,
    clientid: u64,
    reclaims: bool,
) -> Result<(), NfsStatus> {
    let (service, now_ns) = (&compound.service, compound.now_ns);
    let has_reclaimed = service.state().clients.has_reclaimed(clientid);
    match reclaims {
        true if has_reclaimed || !service.may_reclaim(clientid, now_ns) => Err(NfsStatus::NoGrace),
        false if !has_reclaimed || service.is_in_grace() => Err(NfsStatus::Grace),
        _ => Ok(()),
    }
}

/// A file that is there.
async fn named<P: Platform>(on: &impl Operations<P>, compound: &Compound<P>, name: Field) -> Ended<Opened<P>> {
    let inode = match super::handles::found(on, compound, name).await? {
        Object::Inode(inode) => inode,
        Object::Above => return Err(NfsStatus::Isdir.into()),
    };
    let change = match compound.object()? {
        Object::Above => Consistency::default(),
        Object::Inode(directory) => consistency_now(on, directory, Consistency::default()).await?,
    };
    Ok(Opened::existing(inode, unchanged(change)))
}

/// A directory that an operation has not changed.
pub(super) fn unchanged(of: Consistency) -> Consistency {
    let before =
        of.after.map(|after| afflux_volume::WccAttributes { size: after.size, mtime: after.mtime, ctime: after.ctime });
    Consistency { before, ..of }
}

/// Refuses an open that the user's rights do not allow. A denial takes the right to write, as a cut does. The right to
/// execute a file is one to read it, since kernels read programs.
async fn check_rights<P: Platform>(on: &impl Operations<P>, inode: &Arc<Inode<P>>, share: Share, cuts: bool) -> Ended {
    let (granted, _) = on.access(inode).await?;
    let reads = share.access & Share::READ == 0 || granted & (operations::READ | operations::EXECUTE) != 0;
    let needs_write = share.access & Share::WRITE != 0 || share.deny != 0 || cuts;
    let writes = !needs_write || granted & operations::WRITE != 0;
    match () {
        () if !writes && on.caller().is_read_only() => Err(NfsStatus::Rofs.into()),
        () if reads && writes => Ok(()),
        () => Err(NfsStatus::Acces.into()),
    }
}

/// A file that is made, or was there if `how` allows.
async fn made<P: Platform>(on: &Task<'_, P>, compound: &Compound<P>, name: Field, how: OpenFlag) -> Ended<Opened<P>> {
    let directory = compound.directory()?;
    check_name(on.bytes(name))?;
    let caller = &compound.changing(on.caller);
    let of_new = async |values: &Fattr| requested_change(on, compound, values, attributes::SETTABLE_NEW).await;
    let (mut opened, acls) = match how {
        OpenFlag::Unchecked(values) => {
            let (change, acls) = of_new(&values).await?;
            (unchecked(on, caller, compound.before(), &directory, name, change, values.which).await?, acls)
        }
        OpenFlag::Guarded(values) => {
            let (change, acls) = of_new(&values).await?;
            (guarded(on, caller, &directory, name, change, values.which).await?, acls)
        }
        OpenFlag::Exclusive { verifier, attributes: values } => {
            let ((attributes, acls), set) = match values {
                Some(it) => (requested_change(on, compound, &it, attributes::SETTABLE_EXCLUSIVELY).await?, it.which),
                None => Default::default(),
            };
            let how = CreateHow::Exclusive { verifier, attributes };
            (exclusive(on, caller, &directory, name, how, set).await?, acls)
        }
        OpenFlag::NoCreate => (named(on, compound, name).await?, HostAcls::new()),
    };
    if opened.is_new {
        let (set, _) = set_acls(on, on.caller, &opened.inode, acls).await;
        opened.set = opened.set.without(attributes::OF_ACLS).with(set);
    }
    Ok(opened)
}

async fn guarded<P: Platform>(
    on: &Task<'_, P>,
    caller: &Caller,
    directory: &Arc<Inode<P>>,
    name: Field,
    change: AttributeChange,
    set: Bitmap,
) -> Result<Opened<P>, VolumeError> {
    let Outcome { result, consistency } =
        on.volume.create_by(caller, directory, on.bytes(name), CreateHow::Guarded(change)).await;
    let (inode, _) = result?;
    Ok(Opened { inode, change: consistency, set, is_new: true, size: None })
}

async fn unchecked<P: Platform>(
    on: &Task<'_, P>,
    caller: &Caller,
    before: Before,
    directory: &Arc<Inode<P>>,
    name: Field,
    change: AttributeChange,
    wanted: Bitmap,
) -> Ended<Opened<P>> {
    /// Others may make and remove the name repeatedly.
    const TRIES: usize = 3;
    if matches!(before, Before::Done { .. }) {
        match guarded(on, caller, directory, name, change, wanted).await {
            // It was there, or another file has the name now.
            Err(VolumeError::Exists) => {}
            made => return made.map_err(Stop::from),
        }
    }
    for _ in 0..TRIES {
        match on.volume.lookup_by(on.caller, directory, on.bytes(name)).await {
            Ok((inode, _)) => {
                let of_directory = consistency_now(on, directory, Consistency::default()).await?;
                // Of the attributes only an empty size acts on a file that is there.
                let size = change.size.filter(|size| *size == 0);
                let set = if size.is_some() { Bitmap::of(&[n::SIZE]) } else { Bitmap::default() };
                return Ok(Opened { size, set, ..Opened::existing(inode, unchanged(of_directory)) });
            }
            Err(VolumeError::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
        match guarded(on, caller, directory, name, change, wanted).await {
            Err(VolumeError::Exists) => {}
            made => return made.map_err(Stop::from),
        }
    }
    Err(NfsStatus::Delay.into())
}

async fn exclusive<P: Platform>(
    on: &Task<'_, P>,
    caller: &Caller,
    directory: &Arc<Inode<P>>,
    name: Field,
    how: CreateHow,
    set: Bitmap,
) -> Result<Opened<P>, VolumeError> {
    let Outcome { result, consistency } = on.volume.create_by(caller, directory, on.bytes(name), how).await;
    let (inode, _): (_, Attributes) = result?;
    // The verifier is in the times, so that the client sets them afterwards.
    let set = set.with(Bitmap::of(&[n::TIME_ACCESS, n::TIME_MODIFY]));
    Ok(Opened { inode, change: consistency, set, is_new: true, size: None })
}

/// Cuts off a file that was there.
async fn cut<P: Platform>(on: &Task<'_, P>, clientid: u64, inode: &Arc<Inode<P>>, size: u64) -> Ended {
    let change = AttributeChange { size: Some(size), ..AttributeChange::default() };
    Ok(on.volume.set_attributes_by(&on.caller.clone().holding(clientid), inode, change, None).await.result?)
}

/// The open that an operation on the current file names.
fn own_open<P: Platform>(compound: &Compound<P>, stateid: Stateid) -> Result<(StateidOther, u32), NfsStatus> {
    let (other, seqid) = other(compound, stateid)?;
    let (file, _) = compound.service.state().opens.find(compound.clientid()?, other, seqid)?;
    match compound.object()? {
        Object::Inode(inode) if inode.fileid() == file => Ok((other, seqid)),
        _ => Err(NfsStatus::BadStateid),
    }
}

pub(super) fn close<P: Platform>(
    compound: &mut Compound<P>,
    draft: &mut Draft,
    stateid: Stateid,
) -> Result<(), NfsStatus> {
    compound.object()?;
    let closed = own_open(compound, stateid).and_then(|(at, seqid)| {
        compound.note_end();
        compound.service.close(compound.clientid()?, at, seqid, compound.now_ns)
    });
    compound.ended_before(closed)?;
    // A stateid that is none: nothing is open.
    let none = Stateid { seqid: u32::MAX, other: [0; 12] };
    write_stateid(none, &mut draft.writer);
    compound.set_stateid(none);
    Ok(())
}

/// DELEGRETURN.
pub(super) fn delegreturn<P: Platform>(compound: &Compound<P>, stateid: Stateid) -> Result<(), NfsStatus> {
    let file = match compound.object()? {
        Object::Above => return Err(NfsStatus::BadStateid),
        Object::Inode(inode) => inode.fileid(),
    };
    let ((at, seqid), clientid) = (other(compound, stateid)?, compound.clientid()?);
    if compound.service.state().delegations.find(clientid, at, seqid).is_ok() {
        compound.note_end();
    }
    compound.ended_before(compound.service.return_delegation(clientid, at, seqid, file))
}

pub(super) fn open_downgrade<P: Platform>(
    compound: &mut Compound<P>,
    draft: &mut Draft,
    stateid: Stateid,
    access: u32,
    deny: u32,
) -> Result<(), NfsStatus> {
    compound.object()?;
    let (share, mark) = (share(access, deny)?, compound.mark());
    let clientid = compound.clientid()?;
    let stateid = match compound.changed_before() {
        Some(stateid) => stateid,
        None => {
            let (at, seqid) = own_open(compound, stateid)?;
            compound.service.downgrade(clientid, at, seqid, share, mark, compound.now_ns)?
        }
    };
    write_stateid(stateid, &mut draft.writer);
    compound.set_stateid(stateid);
    Ok(())
}
