//! The attributes of version 4: sets of them, their values on the wire, their changes.
//!
//! Owns: which attributes there are, which a client may set, the form of each value.
//! Does not own: the values (the volume), access lists: they are not offered, so that no client asks for them.
//! Invariants: a reply has exactly the known ones of those that were asked for, in the order of their numbers. A change
//! takes each value that it names, or none.

use std::convert::Infallible;

use afflux_volume::{AttributeChange, Attributes, FILE_BYTES_MAX, PathLimits, SetTime, Space, Timestamp};

use super::codec::{AttributeValues, BITMAP_WORDS, Bitmap};
use super::state::leases::LEASE_SECONDS;
use crate::limits::{READ_BYTES_MAX, WRITE_BYTES_MAX};
use crate::status::Status;
use crate::wire::file_type;
use crate::wire::xdr::{Reader, Writer, XdrError, opaque_bytes};

/// The numbers of attributes.
pub(super) mod number {
    pub(in super::super) const SUPPORTED: u32 = 0;
    pub(in super::super) const CHANGE: u32 = 3;
    pub(in super::super) const SIZE: u32 = 4;
    pub(in super::super) const RDATTR_ERROR: u32 = 11;
    pub(in super::super) const FILEHANDLE: u32 = 19;
    pub(in super::super) const FILEID: u32 = 20;
    pub(in super::super) const FILES_AVAILABLE: u32 = 21;
    pub(in super::super) const FILES_TOTAL: u32 = 23;
    pub(in super::super) const MODE: u32 = 33;
    pub(in super::super) const OWNER: u32 = 36;
    pub(in super::super) const GROUP: u32 = 37;
    pub(in super::super) const SPACE_AVAILABLE: u32 = 42;
    pub(in super::super) const ACCESS_TIME: u32 = 47;
    pub(in super::super) const SET_ACCESS_TIME: u32 = 48;
    pub(in super::super) const MODIFY_TIME: u32 = 53;
    pub(in super::super) const SET_MODIFY_TIME: u32 = 54;
    pub(in super::super) const MOUNTED_ON: u32 = 55;
    pub(in super::super) const EXCLUSIVE: u32 = 75;
    pub(in super::super) const CHANGE_TYPE: u32 = 79;
    pub(in super::super) const XATTRS: u32 = 82;
}

use number as n;

const fn set(numbers: &[u32]) -> [u32; BITMAP_WORDS] {
    let mut words = [0; BITMAP_WORDS];
    let mut at = 0;
    while at < numbers.len() {
        words[(numbers[at] / 32) as usize] |= 1 << (numbers[at] % 32);
        at += 1;
    }
    words
}

/// All that a server of 4.1 knows.
const KNOWN: [u32; BITMAP_WORDS] = set(&[
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 17, 18, 19, 20, 21, 22, 23, 26, 27, 28, 29, 30, 31, 33, 34, 35, 36,
    37, 41, 42, 43, 44, 45, 47, 48, 51, 52, 53, 54, 55, 75,
]);
/// Attributes that a client may set, alone.
const ONLY_SET: [u32; BITMAP_WORDS] = set(&[n::SET_ACCESS_TIME, n::SET_MODIFY_TIME]);
/// Attributes that a client may set.
const SETTABLE: [u32; BITMAP_WORDS] =
    set(&[n::SIZE, n::MODE, n::OWNER, n::GROUP, n::SET_ACCESS_TIME, n::SET_MODIFY_TIME]);
/// Those that a client may set with an exclusive creation, whose verifier takes the times.
const SETTABLE_EXCLUSIVELY: [u32; BITMAP_WORDS] = set(&[n::SIZE, n::MODE, n::OWNER, n::GROUP]);
/// Attributes that only the host knows.
const OF_HOST: [u32; BITMAP_WORDS] = set(&[16, 17, 21, 22, 23, 27, 28, 29, 34, 42, 43, 44]);
/// Those of an entry that its directory has.
const OF_ENTRY: [u32; BITMAP_WORDS] = set(&[n::RDATTR_ERROR, n::FILEID, n::MOUNTED_ON]);

impl Bitmap {
    /// These attributes.
    pub(super) const fn of(numbers: &[u32]) -> Self {
        Self { words: set(numbers), has_more: false }
    }

    /// Whether it has an attribute.
    pub(super) fn has(&self, number: u32) -> bool {
        self.words[(number / 32) as usize] & 1 << (number % 32) != 0
    }

    /// Whether it has any of these.
    fn has_any(&self, words: [u32; BITMAP_WORDS]) -> bool {
        self.words.iter().zip(words).any(|(own, other)| own & other != 0)
    }

    /// Whether it has any beside these.
    fn has_beside(&self, words: [u32; BITMAP_WORDS]) -> bool {
        self.has_more || self.words.iter().zip(words).any(|(own, other)| own & !other != 0)
    }

    /// Both sets.
    pub(super) fn with(mut self, other: Self) -> Self {
        self.words.iter_mut().zip(other.words).for_each(|(word, more)| *word |= more);
        self
    }

    /// Whether the host must be asked for one of them.
    pub(super) fn needs_host(&self) -> bool {
        self.has_any(OF_HOST)
    }

    /// Whether a directory's entry alone does not have all of them.
    pub(super) fn needs_objects(&self) -> bool {
        self.has_beside(OF_ENTRY)
    }

    /// Goes over the numbers, ascending, until one fails.
    #[inline]
    fn try_each<E>(&self, mut each: impl FnMut(u32) -> Result<(), E>) -> Result<(), E> {
        for (at, mut word) in (0..).zip(self.words) {
            while word != 0 {
                each(at * 32 + word.trailing_zeros())?;
                word &= word - 1;
            }
        }
        Ok(())
    }

    /// Writes it without zeros at its end.
    pub(super) fn write(&self, writer: &mut Writer) {
        let count = BITMAP_WORDS - self.words.iter().rev().take_while(|word| **word == 0).count();
        writer.u32(count as u32);
        self.words[..count].iter().for_each(|word| writer.u32(*word));
    }
}

/// All attributes of a minor version. From 4.2 on a server may offer extended attributes.
pub(super) fn known(minor: u32, has_xattrs: bool) -> Bitmap {
    const NEWER: Bitmap = Bitmap::of(&[n::CHANGE_TYPE]);
    const WITH_XATTRS: Bitmap = Bitmap::of(&[n::CHANGE_TYPE, n::XATTRS]);
    let known = Bitmap { words: KNOWN, has_more: false };
    match minor {
        ..=1 => known,
        _ if has_xattrs => known.with(WITH_XATTRS),
        _ => known.with(NEWER),
    }
}

/// Refuses a question for attributes that can only be set.
pub(super) fn check_asked(asked: &Bitmap) -> Result<(), Status> {
    if asked.has_any(ONLY_SET) { Err(Status::Invalid) } else { Ok(()) }
}

/// The host's knowledge of an object's file system.
#[derive(Clone, Copy)]
pub(super) struct OfHost {
    pub(super) space: Space,
    pub(super) limits: PathLimits,
    pub(super) file_bytes_max: u64,
}

/// An object for its attributes.
pub(super) struct Shown<'a> {
    pub(super) handle: &'a [u8],
    pub(super) attributes: Attributes,
    /// The number of the directory that it stands on, where another file system begins.
    pub(super) mounted_on: u64,
    pub(super) time_unit_ns: u32,
    /// None if nothing of it was asked for.
    pub(super) of_host: Option<OfHost>,
}

/// The change attribute: the change time never goes back, and grows with each change.
pub(super) fn change_of(time: Timestamp) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or_default()
}

/// Writes those known attributes of an object that were asked for.
pub(super) fn write(writer: &mut Writer, asked: &Bitmap, shown: &Shown<'_>, known: &Bitmap) {
    let mut given = *asked;
    given.words.iter_mut().zip(known.words).for_each(|(word, known)| *word &= known);
    given.words.iter_mut().zip(ONLY_SET).for_each(|(word, set)| *word &= !set);
    if shown.of_host.is_none() {
        given.words.iter_mut().zip(OF_HOST).for_each(|(word, host)| *word &= !host);
    }
    given.write(writer);
    let at = writer.len();
    writer.u32(0);
    let Ok(()) = given.try_each(|number| {
        write_one(writer, number, shown, known);
        Ok::<(), Infallible>(())
    });
    let bytes = writer.len() - at - 4;
    writer.patch_u32(at, bytes as u32);
}

fn write_time(writer: &mut Writer, time: Timestamp) {
    writer.words([(time.seconds as u64 >> 32) as u32, time.seconds as u32, time.nanos]);
}

/// Writes a number as a name: clients and servers of one host agree on numbers.
fn write_user(writer: &mut Writer, number: u32) {
    let (mut digits, mut at, mut rest) = ([0; 10], 10, number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    // The length, the digits and the padding at once.
    let (mut bytes, len) = ([0; 16], digits.len() - at);
    bytes[..4].copy_from_slice(&(len as u32).to_be_bytes());
    bytes[4..4 + len].copy_from_slice(&digits[at..]);
    writer.raw(&bytes[..opaque_bytes(len)]);
}

fn write_one(writer: &mut Writer, number: u32, shown: &Shown<'_>, known: &Bitmap) {
    const SECOND_NS: u32 = 1_000_000_000;
    let it = &shown.attributes;
    match number {
        n::SUPPORTED => known.write(writer),
        1 => writer.u32(file_type(it.kind)),
        // Handles outlive restarts and renames.
        2 => writer.u32(0),
        n::CHANGE => writer.u64(change_of(it.ctime)),
        n::SIZE => writer.u64(it.size),
        // Links, symbolic links; no named attributes.
        5 | 6 => writer.bool(true),
        7 => writer.bool(false),
        8 => {
            writer.u64(it.fsid);
            writer.u64(0);
        }
        // One handle an object.
        9 | n::XATTRS => writer.bool(true),
        10 => writer.u32(LEASE_SECONDS),
        n::RDATTR_ERROR => writer.u32(Status::Ok.code()),
        // Times can be set. Files cannot be given away, but by root.
        15 | 18 => writer.bool(true),
        n::FILEHANDLE => writer.opaque(shown.handle),
        n::FILEID => writer.u64(it.fileid),
        // All objects have these attributes.
        26 => writer.bool(true),
        30 => writer.u64(READ_BYTES_MAX.into()),
        31 => writer.u64(WRITE_BYTES_MAX.into()),
        n::MODE => writer.u32(it.mode),
        35 => writer.u32(it.links),
        n::OWNER => write_user(writer, it.uid),
        n::GROUP => write_user(writer, it.gid),
        41 => {
            writer.words([it.device_major, it.device_minor]);
        }
        45 => writer.u64(it.used),
        n::ACCESS_TIME => write_time(writer, it.atime),
        51 => {
            writer.u64((shown.time_unit_ns / SECOND_NS).into());
            writer.u32(shown.time_unit_ns % SECOND_NS);
        }
        52 => write_time(writer, it.ctime),
        n::MODIFY_TIME => write_time(writer, it.mtime),
        n::MOUNTED_ON => writer.u64(shown.mounted_on),
        n::EXCLUSIVE => Bitmap { words: SETTABLE_EXCLUSIVELY, has_more: false }.write(writer),
        // It is a time.
        n::CHANGE_TYPE => writer.u32(3),
        _ => write_of_host(writer, number, shown),
    }
}

fn write_of_host(writer: &mut Writer, number: u32, shown: &Shown<'_>) {
    let Some(OfHost { space, limits, file_bytes_max }) = &shown.of_host else { return };
    match number {
        16 => writer.bool(limits.case_insensitive),
        17 => writer.bool(limits.case_preserving),
        n::FILES_AVAILABLE => writer.u64(space.available_files),
        22 => writer.u64(space.free_files),
        n::FILES_TOTAL => writer.u64(space.total_files),
        27 => writer.u64(*file_bytes_max),
        28 => writer.u32(limits.links_max),
        29 => writer.u32(limits.name_max),
        34 => writer.bool(limits.no_trunc),
        n::SPACE_AVAILABLE => writer.u64(space.available_bytes),
        43 => writer.u64(space.free_bytes),
        _ => writer.u64(space.total_bytes),
    }
}

/// Reads the changes in a client's values, of attributes that may be set `exclusively` or at all.
pub(super) fn change(values: &AttributeValues, record: &[u8], exclusively: bool) -> Result<AttributeChange, Status> {
    if values.which.has_beside(known(2, true).words) {
        return Err(Status::AttributeNotSupported);
    }
    let settable = if exclusively { SETTABLE_EXCLUSIVELY } else { SETTABLE };
    if values.which.has_beside(settable) {
        return Err(Status::Invalid);
    }
    let bytes = &record[values.values.range()];
    let mut reader = Reader::new(bytes);
    let mut change = AttributeChange::default();
    values.which.try_each(|number| read_one(&mut reader, number, &mut change))?;
    if reader.position() == bytes.len() { Ok(change) } else { Err(Status::BadXdr) }
}

fn read_one(reader: &mut Reader<'_>, number: u32, change: &mut AttributeChange) -> Result<(), Status> {
    let bad = |_: XdrError| Status::BadXdr;
    match number {
        n::SIZE => {
            let size = reader.u64().map_err(bad)?;
            if size > FILE_BYTES_MAX {
                return Err(Status::TooLarge);
            }
            change.size = Some(size);
        }
        n::MODE => {
            let mode = reader.u32().map_err(bad)?;
            if mode > 0o7777 {
                return Err(Status::Invalid);
            }
            change.mode = Some(mode);
        }
        n::OWNER => change.uid = Some(read_user(reader.opaque(usize::MAX).map_err(bad)?)?),
        n::GROUP => change.gid = Some(read_user(reader.opaque(usize::MAX).map_err(bad)?)?),
        n::SET_ACCESS_TIME => change.atime = read_time(reader)?,
        _ => change.mtime = read_time(reader)?,
    }
    Ok(())
}

/// A user's number in digits, with a domain or without.
fn read_user(name: &[u8]) -> Result<u32, Status> {
    let digits = name.split(|byte| *byte == b'@').next().unwrap_or_default();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(digits).ok().filter(|_| is_number).and_then(|digits| digits.parse().ok());
    number.filter(|number| *number != u32::MAX).ok_or(Status::BadOwner)
}

fn read_time(reader: &mut Reader<'_>) -> Result<SetTime, Status> {
    const SECOND_NS: u32 = 1_000_000_000;
    let bad = |_: XdrError| Status::BadXdr;
    match reader.u32().map_err(bad)? {
        0 => Ok(SetTime::ServerNow),
        1 => {
            let (seconds, nanos) = (reader.u64().map_err(bad)? as i64, reader.u32().map_err(bad)?);
            if nanos >= SECOND_NS { Err(Status::Invalid) } else { Ok(SetTime::To(Timestamp { seconds, nanos })) }
        }
        _ => Err(Status::BadXdr),
    }
}

/// Whether a client's values are those of an object: an error for attributes that cannot be compared.
pub(super) fn are_same(
    values: &AttributeValues,
    record: &[u8],
    shown: &Shown<'_>,
    known: &Bitmap,
) -> Result<bool, Status> {
    if values.which.has_beside(known.words) {
        return Err(Status::AttributeNotSupported);
    }
    if values.which.has_any(ONLY_SET) || values.which.has(n::RDATTR_ERROR) {
        return Err(Status::Invalid);
    }
    let mut writer = Writer::default();
    write(&mut writer, &values.which, shown, known);
    let own = writer.into_bytes();
    let (at, sent) = (own.len() - sent_bytes(&own), &record[values.values.range()]);
    Ok(own[at..] == *sent)
}

/// The number of bytes behind a set of attributes.
fn sent_bytes(written: &[u8]) -> usize {
    let mut reader = Reader::new(written);
    let skipped = super::codec::bitmap(&mut reader).and_then(|_| reader.u32());
    skipped.map_or(0, |bytes| bytes as usize)
}

#[cfg(test)]
mod tests;
