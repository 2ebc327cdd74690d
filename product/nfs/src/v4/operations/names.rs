//! CREATE, REMOVE, RENAME, LINK, READLINK and READDIR.
//!
//! Owns: their results, the refusal of device nodes; the number of entries that fit the client's limit, and the
//! attributes reported of each, with their access control lists.
//! Does not own: the directory, its rules for names, atomicity, the order of entries and their cookies (the volume);
//! regular files, which OPEN makes; the directory of all exports (`pseudo_root`).
//! Invariants: a directory's change is the volume's own, with before and after taken under one lock, or it is said not
//! to be. A listing is never longer than requested, and never empty before the end: if not one entry fits, it is an
//! error. The entries "." and ".." are not listed, as the RFC has it. The cookie verifier is constant, since cookies
//! stay valid.

use std::sync::Arc;

use afflux_volume::{
    AttributeChange, Attributes, Before, Caller, FileHandle, Inode, Kind, Outcome, Platform, SpecialKind,
    TARGET_BYTES_MAX, VolumeError,
};

use crate::limits::LISTING_BYTES_MAX;
use crate::operations::{Ended, Operations, Task, consistency_now};
use crate::status::NfsStatus;
use crate::v4::attributes::{self, NEEDS_ACLS, Shown, ShownAcls, number as n};
use crate::v4::codec::{Bitmap, CreateType, Fattr, ReaddirArgs};
use crate::v4::compound::{Compound, Object, check_directory, check_name, write_change};
use crate::v4::operations::attributes::{of_host, shown_acls};
use crate::v4::operations::opens::unchanged;
use crate::v4::operations::requested::{requested_change, set_acls};
use crate::v4::pseudo_root::{self, mounted_on};
use crate::wire::reply::Draft;
use crate::wire::xdr::{Field, Writer, opaque_bytes};

pub(super) async fn create<P: Platform>(
    on: &Task<'_, P>,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    kind: CreateType,
    name: Field,
    values: Fattr,
) -> Ended {
    let directory = compound.directory()?;
    check_name(on.bytes(name))?;
    let (change, acls) = requested_change(on, compound, &values, attributes::SETTABLE_NEW).await?;
    let (caller, name) = (&compound.changing(on.caller), on.bytes(name));
    let Outcome { result, consistency } = match kind {
        CreateType::Dir => on.volume.make_directory_by(caller, &directory, name, change).await,
        CreateType::Lnk(target) => {
            let target = on.bytes(target);
            check_target(target)?;
            on.volume.symlink_by(caller, &directory, name, target, change).await
        }
        CreateType::Sock => special(on, caller, &directory, name, SpecialKind::Socket, change).await?,
        CreateType::Fifo => special(on, caller, &directory, name, SpecialKind::Fifo, change).await?,
        CreateType::Blk(major, minor) => {
            special(on, caller, &directory, name, SpecialKind::BlockDevice { major, minor }, change).await?
        }
        CreateType::Chr(major, minor) => {
            special(on, caller, &directory, name, SpecialKind::CharDevice { major, minor }, change).await?
        }
        CreateType::Other => return Err(NfsStatus::Badtype.into()),
    };
    let (inode, _) = result?;
    let set = values.which.without(attributes::OF_ACLS).with(set_acls(on, on.caller, &inode, acls).await.0);
    let consistency = consistency_now(on, &directory, consistency).await?;
    write_change(&mut draft.writer, &consistency);
    set.write(&mut draft.writer);
    compound.enter(Object::Inode(inode));
    Ok(())
}

fn check_target(target: &[u8]) -> Result<(), NfsStatus> {
    match target.len() {
        0 => Err(NfsStatus::Inval),
        len if len > TARGET_BYTES_MAX => Err(NfsStatus::Nametoolong),
        _ => Ok(()),
    }
}

type Made<P> = Outcome<(Arc<Inode<P>>, afflux_volume::Attributes)>;

async fn special<P: Platform>(
    on: &Task<'_, P>,
    caller: &Caller,
    directory: &Arc<Inode<P>>,
    name: &[u8],
    kind: SpecialKind,
    change: AttributeChange,
) -> Result<Made<P>, NfsStatus> {
    let is_device = matches!(kind, SpecialKind::BlockDevice { .. } | SpecialKind::CharDevice { .. });
    // A node of the host's disk, made by a server that root runs, would bypass every permission for users who can open
    // files on the host. If the caller is known, the host checks its rights.
    if is_device && on.caller.credentials().is_none() {
        return Err(NfsStatus::Perm);
    }
    Ok(on.volume.make_special_by(caller, directory, name, kind, change).await)
}

pub(super) async fn readlink<P: Platform>(on: &Task<'_, P>, compound: &mut Compound<P>, draft: &mut Draft) -> Ended {
    let inode = match compound.object()? {
        Object::Above => return Err(NfsStatus::Inval.into()),
        Object::Inode(inode) => inode,
    };
    let read = on.volume.read_link(inode).await;
    match read {
        Ok((target, _)) => {
            // The target counts among the bytes of data that the reply may have.
            compound.data_remaining =
                compound.data_remaining.checked_sub(target.len() as u32).ok_or(NfsStatus::Delay)?;
            draft.writer.opaque(&target);
        }
        Err(VolumeError::Invalid { .. }) => return Err(NfsStatus::WrongType.into()),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

pub(super) async fn remove<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    name: Field,
) -> Ended {
    let directory = compound.directory()?;
    check_name(on.bytes(name))?;
    let (caller, name) = (&compound.changing(on.caller), on.bytes(name));
    let removed = on.volume.remove_by(caller, &directory, name).await;
    // One operation removes both, and the host reports which it is.
    let Outcome { result, consistency } = match removed.result {
        Err(VolumeError::IsDirectory | VolumeError::NotPermitted) if find_directory(on, &directory, name).await => {
            on.volume.remove_directory_by(caller, &directory, name).await
        }
        _ => removed,
    };
    result?;
    let consistency = consistency_now(on, &directory, consistency).await?;
    write_change(&mut draft.writer, &consistency);
    Ok(())
}

async fn find_directory<P: Platform>(on: &Task<'_, P>, directory: &Arc<Inode<P>>, name: &[u8]) -> bool {
    let found = on.volume.lookup_by(on.caller, directory, name).await;
    found.is_ok_and(|(inode, _)| inode.kind() == Kind::Directory)
}

pub(super) async fn rename<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    from: Field,
    to: Field,
) -> Ended {
    let target = compound.directory()?;
    let source = saved_directory(compound)?;
    check_name(on.bytes(from))?;
    check_name(on.bytes(to))?;
    let is_done = matches!(compound.before(), Before::Done { .. });
    if !is_done && check_same(on, (&source, on.bytes(from)), (&target, on.bytes(to))).await {
        // Both names are the object's: nothing is done.
        for directory in [&source, &target] {
            let present = consistency_now(on, directory, Default::default()).await?;
            write_change(&mut draft.writer, &unchanged(present));
        }
        return Ok(());
    }
    let caller = compound.changing(on.caller);
    let (Outcome { result, consistency }, of_target) =
        on.volume.rename_by(&caller, &source, on.bytes(from), &target, on.bytes(to)).await;
    match result {
        // A directory in place of a file, or the reverse.
        Err(VolumeError::IsDirectory | VolumeError::NotDirectory) => return Err(NfsStatus::Exist.into()),
        Err(VolumeError::NotEmpty) => return Err(NfsStatus::Exist.into()),
        result => result?,
    }
    let of_source = consistency_now(on, &source, consistency).await?;
    let of_target = consistency_now(on, &target, of_target).await?;
    write_change(&mut draft.writer, &of_source);
    write_change(&mut draft.writer, &of_target);
    Ok(())
}

/// Whether two names are one object's.
async fn check_same<P: Platform>(
    on: &Task<'_, P>,
    one: (&Arc<Inode<P>>, &[u8]),
    other: (&Arc<Inode<P>>, &[u8]),
) -> bool {
    let found = async |(directory, name)| on.volume.lookup_by(on.caller, directory, name).await.ok();
    match (found(one).await, found(other).await) {
        (Some((one, _)), Some((other, _))) => one.fileid() == other.fileid(),
        _ => false,
    }
}

fn saved_directory<P: Platform>(compound: &Compound<P>) -> Result<Arc<Inode<P>>, NfsStatus> {
    match compound.saved()? {
        Object::Above => Err(NfsStatus::Rofs),
        Object::Inode(inode) => check_directory(inode.kind()).map(|()| Arc::clone(inode)),
    }
}

pub(super) async fn link<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    name: Field,
) -> Ended {
    let directory = compound.directory()?;
    let inode = match compound.saved()? {
        Object::Above => return Err(NfsStatus::Isdir.into()),
        Object::Inode(inode) => Arc::clone(inode),
    };
    if inode.kind() == Kind::Directory {
        return Err(NfsStatus::Isdir.into());
    }
    check_name(on.bytes(name))?;
    let caller = compound.changing(on.caller);
    let Outcome { result, consistency } = on.volume.link_by(&caller, &inode, &directory, on.bytes(name)).await;
    result?;
    let consistency = consistency_now(on, &directory, consistency).await?;
    write_change(&mut draft.writer, &consistency);
    Ok(())
}

const VERIFIER: [u8; 8] = [0; 8];
/// The words after the last entry, and the verifier.
const FRAME_BYTES: usize = VERIFIER.len() + 8;
/// Cookies of version 4 that have a meaning of their own: the start, and two that are never used.
const RESERVED_COOKIES: std::ops::RangeInclusive<u64> = 1..=2;
/// Assumed length of an entry, to guess how many fit.
const ENTRY_BYTES_USUAL: usize = 32;
const ATTRIBUTES_BYTES_USUAL: usize = 160;

/// The bounds of one listing.
struct ListingBounds {
    bytes: usize,
    names: usize,
}

pub(super) async fn readdir<P: Platform>(
    on: &Task<'_, P>,
    compound: &mut Compound<P>,
    draft: &mut Draft,
    arguments: &ReaddirArgs,
) -> Ended {
    attributes::check_asked(&arguments.attributes)?;
    if RESERVED_COOKIES.contains(&arguments.cookie) {
        return Err(NfsStatus::BadCookie.into());
    }
    if arguments.cookie != 0 && arguments.verifier != VERIFIER {
        return Err(NfsStatus::NotSame.into());
    }
    let bytes = arguments.bytes_max.min(LISTING_BYTES_MAX).min(compound.data_remaining) as usize;
    let names = if arguments.names_max == 0 { usize::MAX } else { arguments.names_max as usize };
    let bounds = ListingBounds { bytes: bytes.checked_sub(FRAME_BYTES).ok_or(NfsStatus::Toosmall)?, names };
    match compound.object()?.clone() {
        Object::Above => list_above(on, compound, draft, arguments, bounds).await?,
        Object::Inode(directory) => {
            check_directory(directory.kind())?;
            list_inode(on, &compound.known(), draft, &directory, arguments, bounds).await?;
        }
    }
    compound.data_remaining = compound.data_remaining.saturating_sub(bytes as u32);
    // A compound may have many of these.
    on.volume.engine().platform().preemption_point().await;
    Ok(())
}

/// Writes entries while they fit.
struct Entries<'a> {
    writer: &'a mut Writer,
    bounds: ListingBounds,
    written: usize,
}

impl<'a> Entries<'a> {
    fn begin(writer: &'a mut Writer, bounds: ListingBounds) -> Self {
        writer.raw(&VERIFIER);
        Self { writer, bounds, written: 0 }
    }

    /// Writes an entry. False if it does not fit.
    fn try_write(&mut self, cookie: u64, name: &[u8], write_attributes: impl FnOnce(&mut Writer)) -> bool {
        let start = self.writer.len();
        self.writer.bool(true);
        self.writer.u64(cookie);
        self.writer.opaque(name);
        write_attributes(self.writer);
        let (bytes, names) = (self.writer.len() - start, 8 + opaque_bytes(name.len()));
        if bytes > self.bounds.bytes || (names > self.bounds.names && self.written > 0) {
            self.writer.truncate(start);
            return false;
        }
        self.bounds.bytes -= bytes;
        self.bounds.names = self.bounds.names.saturating_sub(names);
        self.written += 1;
        true
    }

    fn end(self, is_end: bool) -> Result<(), NfsStatus> {
        if self.written == 0 && !is_end {
            return Err(NfsStatus::Toosmall);
        }
        self.writer.bool(false);
        self.writer.bool(is_end);
        Ok(())
    }
}

async fn list_inode<P: Platform>(
    on: &Task<'_, P>,
    known: &Bitmap,
    draft: &mut Draft,
    directory: &Arc<Inode<P>>,
    arguments: &ReaddirArgs,
    bounds: ListingBounds,
) -> Ended {
    /// The entries "." and "..", which are the first ones.
    const OWN: usize = 2;
    let asked = &arguments.attributes;
    let with_objects = asked.needs_objects();
    let entry_bytes = ENTRY_BYTES_USUAL + if with_objects { ATTRIBUTES_BYTES_USUAL } else { 24 };
    let most = (bounds.bytes / entry_bytes).max(1) + if arguments.cookie == 0 { OWN } else { 0 };
    let listing = on.volume.list_by(on.caller, directory, arguments.cookie, most, with_objects).await?;
    let of_host = if asked.needs_host() { Some(of_host(on, directory).await?) } else { None };
    let mut entries = Entries::begin(&mut draft.writer, bounds);
    let (mut fits, unit) = (true, directory.time_unit_ns());
    let with_acls = asked.has_any(NEEDS_ACLS) && known.has(n::ACL_TRUEFORM);
    let shown = listing.entries.iter().filter(|entry| !matches!(&*entry.name, b"." | b".."));
    for entry in shown {
        let (object, acls) = match &entry.object {
            Some((handle, found)) if with_acls => match acls_of_entry(on, handle, asked, found).await {
                Err(NfsStatus::Stale) => (None, None),
                acls => (entry.object.as_ref(), Some(acls?)),
            },
            object => (object.as_ref(), None),
        };
        fits = entries.try_write(entry.cookie, &entry.name, |writer| match object {
            Some((handle, attributes)) => {
                let (handle, mounted_on, of_host) = (handle.as_bytes(), entry.fileid, of_host.as_ref());
                let acls = acls.as_ref();
                let shown = Shown { handle, attributes, mounted_on, time_unit_ns: unit, of_host, acls };
                attributes::write(writer, asked, &shown, known);
            }
            None => write_fileid(writer, asked, entry.fileid),
        });
        if !fits {
            break;
        }
    }
    if entries.written == 0 && fits && !listing.end {
        // Nothing but "." and ".." was read.
        return Err(NfsStatus::Toosmall.into());
    }
    Ok(entries.end(fits && listing.end)?)
}

/// The access control lists of an entry's object. The host is asked for each entry.
async fn acls_of_entry<P: Platform>(
    on: &Task<'_, P>,
    handle: &FileHandle,
    asked: &Bitmap,
    attributes: &Attributes,
) -> Result<ShownAcls, NfsStatus> {
    let inode = on.volume.resolve(handle.as_bytes()).await?;
    shown_acls(on, &inode, asked, attributes).await
}

/// Writes what a directory alone knows of an entry. If more was asked for, the entry's object is gone or cannot be
/// read.
fn write_fileid(writer: &mut Writer, asked: &Bitmap, fileid: u64) {
    let is_missing = asked.needs_objects();
    let told: Vec<u32> =
        [n::RDATTR_ERROR, n::FILEID, n::MOUNTED_ON_FILEID].into_iter().filter(|number| asked.has(*number)).collect();
    Bitmap::of(&told).write(writer);
    let at = writer.len();
    writer.u32(0);
    for number in told {
        match number {
            n::RDATTR_ERROR => writer.u32(if is_missing { NfsStatus::Stale.code() } else { NfsStatus::Ok.code() }),
            _ => writer.u64(fileid),
        }
    }
    let bytes = writer.len() - at - 4;
    writer.patch_u32(at, bytes as u32);
}

/// Lists the exports. The cookies are their numbers, after the reserved ones.
async fn list_above<P: Platform>(
    on: &Task<'_, P>,
    compound: &Compound<P>,
    draft: &mut Draft,
    arguments: &ReaddirArgs,
    bounds: ListingBounds,
) -> Ended {
    let first = *RESERVED_COOKIES.end() + 1;
    let exports = compound.service.root.exports();
    let known = first..first + exports.len() as u64;
    if arguments.cookie != 0 && !known.contains(&arguments.cookie) {
        return Err(NfsStatus::BadCookie.into());
    }
    let mut entries = Entries::begin(&mut draft.writer, bounds);
    let mut fits = true;
    for (place, path) in (0..).zip(exports) {
        let cookie = first + place;
        if cookie <= arguments.cookie {
            continue;
        }
        let (name, number) = (pseudo_root::name_of(path), mounted_on(place));
        let Some(root) = on.volume.export_root(path) else { continue };
        fits = match on.volume.attributes(root).await {
            Ok(found) => {
                let (handle, time_unit_ns) = (root.handle_bytes(), root.time_unit_ns());
                let shown =
                    Shown { handle, attributes: &found, mounted_on: number, time_unit_ns, of_host: None, acls: None };
                entries.try_write(cookie, name, |writer| {
                    attributes::write(writer, &arguments.attributes, &shown, &compound.known());
                })
            }
            // A disk that fails or is gone has no attributes. The others are there all the same.
            Err(_) => entries.try_write(cookie, name, |writer| write_fileid(writer, &arguments.attributes, number)),
        };
        if !fits {
            break;
        }
    }
    Ok(entries.end(fits)?)
}
