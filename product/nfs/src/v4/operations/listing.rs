//! READDIR.
//!
//! Owns: the number of entries that fit the client's limit, and the attributes told of each.
//! Does not own: the order of entries and their cookies (the volume), the directory of all exports (`pseudo_root`).
//! Invariants: a listing is never longer than requested, and never empty before the end: if not one entry fits, it is
//! an error. The entries "." and ".." are not listed, as the RFC has it. The cookie verifier is constant, since cookies
//! stay valid.

use std::sync::Arc;

use afflux_volume::{DirectoryEntry, FileHandle, Inode, Platform};

use super::super::attributes::{self, number as n};
use super::super::codec::{Bitmap, ReaddirArgs};
use super::super::compound::{Compound, Object};
use super::super::pseudo_root::{self, mounted_on};
use super::super::shown::{self, OfHost, Shown};
use super::attributes::of_host;
use super::objects::check_directory;
use crate::limits::LISTING_BYTES_MAX;
use crate::operations::{Ended, Task};
use crate::status::NfsStatus;
use crate::wire::reply::Draft;
use crate::wire::xdr::{Writer, opaque_bytes};

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
    let shown = listing.entries.iter().filter(|entry| !matches!(&*entry.name, b"." | b".."));
    for entry in shown {
        fits = entries.try_write(entry.cookie, &entry.name, |writer| {
            write_entry(writer, asked, entry, (of_host.as_ref(), unit), known);
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

fn write_entry(
    writer: &mut Writer,
    asked: &Bitmap,
    entry: &DirectoryEntry,
    (of_host, time_unit_ns): (Option<&OfHost>, u32),
    known: &Bitmap,
) {
    match &entry.object {
        Some((handle, found)) => {
            let handle: &FileHandle = handle;
            let shown =
                Shown { handle: handle.as_bytes(), attributes: found, mounted_on: entry.fileid, time_unit_ns, of_host };
            shown::write(writer, asked, &shown, known);
        }
        None => write_number(writer, asked, entry.fileid),
    }
}

/// Writes what a directory alone knows of an entry. If more was asked for, the entry's object is gone or cannot be
/// read.
fn write_number(writer: &mut Writer, asked: &Bitmap, fileid: u64) {
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
                let shown = Shown { handle, attributes: &found, mounted_on: number, time_unit_ns, of_host: None };
                entries.try_write(cookie, name, |writer| {
                    shown::write(writer, &arguments.attributes, &shown, &compound.known());
                })
            }
            // A disk that fails or is gone has no attributes. The others are there all the same.
            Err(_) => entries.try_write(cookie, name, |writer| write_number(writer, &arguments.attributes, number)),
        };
        if !fits {
            break;
        }
    }
    Ok(entries.end(fits)?)
}
