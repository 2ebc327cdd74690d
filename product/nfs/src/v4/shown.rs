//! The attributes of an object as a reply has them.
//!
//! Owns: the form of each value, the place of each in a reply; the comparison with a client's values.
//! Does not own: which attributes there are (`attributes`), the values (the volume).
//! Invariants: a reply has exactly the known ones of those that were asked for, in the order of their numbers
//! (`values_stand_in_the_order_of_their_numbers`). The bytes of all attributes together have a bound.

use afflux_volume::{Attributes, PathLimits, Space, Timestamp};

use super::attributes::{OF_HOST, ONLY_SET, SETTABLE_EXCLUSIVELY, change_of, number as n, set, shown_numbers};
use super::codec::{BITMAP_WORDS, Bitmap, Fattr, bitmap};
use super::pseudo_root;
use super::state::leases::LEASE_SECONDS;
use crate::limits::{READ_BYTES_MAX, WRITE_BYTES_MAX};
use crate::status::NfsStatus;
use crate::wire::file_type;
use crate::wire::xdr::{Reader, Writer, opaque_bytes};

/// Most bytes of the set of attributes and the values of all of them, with a handle of 128 bytes.
const BYTES_MAX: usize = 512;
/// The attributes that Linux's client asks for with most calls.
const USUAL: [u32; BITMAP_WORDS] = [0x0010_011a, 0x00b0_a23a, 0];
/// Most bytes of that set and its values.
const USUAL_BYTES_MAX: usize = 160;
const SECOND_NS: u32 = 1_000_000_000;

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
    pub(super) attributes: &'a Attributes,
    /// The number of the directory that it stands on, where another file system begins.
    pub(super) mounted_on: u64,
    pub(super) time_unit_ns: u32,
    /// None if nothing of it was asked for.
    pub(super) of_host: Option<&'a OfHost>,
}

impl<'a> Shown<'a> {
    /// The directory of all exports.
    pub(super) fn above(attributes: &'a Attributes) -> Self {
        Self { handle: pseudo_root::HANDLE, attributes, mounted_on: attributes.fileid, time_unit_ns: 1, of_host: None }
    }
}

/// Writes those known attributes of an object that were asked for.
pub(super) fn write(writer: &mut Writer, asked: &Bitmap, shown: &Shown<'_>, known: &Bitmap) {
    let of_host = if shown.of_host.is_none() { OF_HOST } else { [0; BITMAP_WORDS] };
    let words = std::array::from_fn(|at| asked.words[at] & known.words[at] & !ONLY_SET[at] & !of_host[at]);
    // The compiler knows the place of most values in the usual set.
    match words {
        USUAL => write_given::<USUAL_BYTES_MAX>(writer, USUAL, shown, known),
        _ => write_given::<BYTES_MAX>(writer, words, shown, known),
    }
}

/// Writes these attributes, which take `MAX` bytes at most.
#[inline(always)]
fn write_given<const MAX: usize>(writer: &mut Writer, words: [u32; BITMAP_WORDS], shown: &Shown<'_>, known: &Bitmap) {
    let given = Bitmap { words, has_more: false };
    let (mut bytes, count) = ([0; MAX], given.len());
    // Words of zeros at the end have no place in the set.
    let head = [count as u32, words[0], words[1], words[2]];
    bytes[..16].copy_from_slice(head.map(u32::to_be_bytes).as_flattened());
    let values_at = 8 + 4 * count;
    let mut values = Values(&mut bytes[values_at..]);
    // Each attribute is tested for: a jump by number costs more, and is hard to foresee.
    macro_rules! write_each {
        ($([$($number:literal)*])*; [$($added:literal)*]) => {
            $(if given.has_any(const { set(&[$($number),*]) }) {
                $(if given.has($number) { values.attribute($number, shown, known) })*
            })*
            $(if given.has($added) { values.attribute($added, shown, known) })*
        };
    }
    shown_numbers!(write_each);
    let end = MAX - values.0.len();
    bytes[values_at - 4..values_at].copy_from_slice(&((end - values_at) as u32).to_be_bytes());
    writer.raw(&bytes[..end]);
}

/// The room for further values, which is zero.
struct Values<'a>(&'a mut [u8]);

impl Values<'_> {
    #[inline]
    fn raw<const N: usize>(&mut self, bytes: [u8; N]) {
        let Some((place, rest)) = std::mem::take(&mut self.0).split_first_chunk_mut() else {
            unreachable!("all attributes have room")
        };
        *place = bytes;
        self.0 = rest;
    }

    #[inline]
    fn u32(&mut self, value: u32) {
        self.raw(value.to_be_bytes());
    }

    #[inline]
    fn u64(&mut self, value: u64) {
        self.raw(value.to_be_bytes());
    }

    #[inline]
    fn words(&mut self, words: [u32; 3]) {
        let mut bytes = [0; 12];
        bytes.copy_from_slice(words.map(u32::to_be_bytes).as_flattened());
        self.raw(bytes);
    }

    fn set(&mut self, of: &Bitmap) {
        let count = of.len();
        self.u32(count as u32);
        of.words[..count].iter().for_each(|word| self.u32(*word));
    }

    fn time(&mut self, time: Timestamp) {
        let seconds = time.seconds as u64;
        self.words([(seconds >> 32) as u32, seconds as u32, time.nanos]);
    }

    /// A number as a name: clients and servers of one host agree on numbers.
    fn user(&mut self, number: u32) {
        let len = number.checked_ilog10().unwrap_or_default() as usize + 1;
        self.u32(len as u32);
        let (place, rest) = std::mem::take(&mut self.0).split_at_mut(opaque_bytes(len) - 4);
        let mut left = number;
        for digit in place[..len].iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
        self.0 = rest;
    }

    fn opaque(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        let (place, rest) = std::mem::take(&mut self.0).split_at_mut(opaque_bytes(bytes.len()) - 4);
        place[..bytes.len()].copy_from_slice(bytes);
        self.0 = rest;
    }

    /// The attribute with this number, which each caller knows in advance.
    #[inline(always)]
    fn attribute(&mut self, number: u32, shown: &Shown<'_>, known: &Bitmap) {
        let it = shown.attributes;
        match number {
            n::SUPPORTED_ATTRS => self.set(known),
            1 => self.u32(file_type(it.kind)),
            // Handles outlive restarts and renames.
            2 => self.u32(0),
            n::CHANGE => self.u64(change_of(it.ctime)),
            n::SIZE => self.u64(it.size),
            // Links, symbolic links; no named attributes.
            5 | 6 => self.u32(1),
            7 => self.u32(0),
            8 => {
                self.u64(it.fsid);
                self.u64(0);
            }
            // One handle an object.
            9 | n::XATTR_SUPPORT => self.u32(1),
            10 => self.u32(LEASE_SECONDS),
            n::RDATTR_ERROR => self.u32(NfsStatus::Ok.code()),
            // Times can be set. Files cannot be given away, but by root.
            15 | 18 => self.u32(1),
            n::FILEHANDLE => self.opaque(shown.handle),
            n::FILEID => self.u64(it.fileid),
            // All objects have these attributes.
            26 => self.u32(1),
            30 => self.u64(READ_BYTES_MAX.into()),
            31 => self.u64(WRITE_BYTES_MAX.into()),
            n::MODE => self.u32(it.mode),
            35 => self.u32(it.links),
            n::OWNER => self.user(it.uid),
            n::OWNER_GROUP => self.user(it.gid),
            41 => {
                self.u32(it.device_major);
                self.u32(it.device_minor);
            }
            45 => self.u64(it.used),
            n::TIME_ACCESS => self.time(it.atime),
            51 => {
                self.u64((shown.time_unit_ns / SECOND_NS).into());
                self.u32(shown.time_unit_ns % SECOND_NS);
            }
            52 => self.time(it.ctime),
            n::TIME_MODIFY => self.time(it.mtime),
            n::MOUNTED_ON_FILEID => self.u64(shown.mounted_on),
            n::SUPPATTR_EXCLCREAT => self.set(&known.only(SETTABLE_EXCLUSIVELY)),
            // It is a time.
            n::CHANGE_ATTR_TYPE => self.u32(3),
            _ => self.of_host(number, shown.of_host),
        }
    }

    fn of_host(&mut self, number: u32, of_host: Option<&OfHost>) {
        let Some(OfHost { space, limits, file_bytes_max }) = of_host else { return };
        match number {
            16 => self.u32(limits.case_insensitive.into()),
            17 => self.u32(limits.case_preserving.into()),
            n::FILES_AVAIL => self.u64(space.available_files),
            22 => self.u64(space.free_files),
            n::FILES_TOTAL => self.u64(space.total_files),
            27 => self.u64(*file_bytes_max),
            28 => self.u32(limits.links_max),
            29 => self.u32(limits.name_max),
            34 => self.u32(limits.no_trunc.into()),
            n::SPACE_AVAIL => self.u64(space.available_bytes),
            43 => self.u64(space.free_bytes),
            _ => self.u64(space.total_bytes),
        }
    }
}

/// Whether a client's values are those of an object: an error for attributes that cannot be compared.
pub(super) fn are_same(values: &Fattr, record: &[u8], shown: &Shown<'_>, known: &Bitmap) -> Result<bool, NfsStatus> {
    if values.which.has_beside(known.words) {
        return Err(NfsStatus::Attrnotsupp);
    }
    if values.which.has_any(ONLY_SET) || values.which.has(n::RDATTR_ERROR) {
        return Err(NfsStatus::Inval);
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
    let skipped = bitmap(&mut reader).and_then(|_| reader.u32());
    skipped.map_or(0, |bytes| bytes as usize)
}

#[cfg(test)]
mod tests;
