//! The attributes of version 4: sets of them, their changes, their form in a reply.
//!
//! Owns: which attributes there are, which a client may set, the change that values ask for; the form of each value,
//! the position of each in a reply, the comparison with a client's values.
//! Does not own: the values (the volume), the form of access control lists (`posix_acls`): they are offered by a knob
//! alone, since clients ask for them with each file.
//! Invariants: a change takes each value that it names, or none. A reply has exactly the known ones of those that were
//! asked for, in the order of their numbers (`values_stand_in_the_order_of_their_numbers`). The bytes of all attributes
//! together have a bound.

use afflux_volume::{
    AttributeChange, Attributes, CLONE_BLOCK_BYTES, FILE_BYTES_MAX, PathLimits, SetTime, Space, Timestamp,
};
use number as n;

use crate::limits::{READ_BYTES_MAX, WRITE_BYTES_MAX};
use crate::status::NfsStatus;
use crate::v4::codec::{BITMAP_WORDS, Bitmap, Fattr, bitmap};
use crate::v4::owners::Principal;
use crate::v4::posix_acls::{self, RequestedEntry};
use crate::v4::pseudo_root;
use crate::v4::state::leases::LEASE_SECONDS;
use crate::wire::file_type;
use crate::wire::xdr::{Reader, Writer, XdrError, opaque_bytes};

/// The numbers of attributes.
pub(super) mod number {
    pub(in super::super) const SUPPORTED_ATTRS: u32 = 0;
    pub(in super::super) const CHANGE: u32 = 3;
    pub(in super::super) const SIZE: u32 = 4;
    pub(in super::super) const RDATTR_ERROR: u32 = 11;
    pub(in super::super) const FILEHANDLE: u32 = 19;
    pub(in super::super) const FILEID: u32 = 20;
    pub(in super::super) const FILES_AVAIL: u32 = 21;
    pub(in super::super) const FILES_TOTAL: u32 = 23;
    pub(in super::super) const MODE: u32 = 33;
    pub(in super::super) const OWNER: u32 = 36;
    pub(in super::super) const OWNER_GROUP: u32 = 37;
    pub(in super::super) const SPACE_AVAIL: u32 = 42;
    pub(in super::super) const TIME_ACCESS: u32 = 47;
    pub(in super::super) const TIME_ACCESS_SET: u32 = 48;
    pub(in super::super) const TIME_MODIFY: u32 = 53;
    pub(in super::super) const TIME_MODIFY_SET: u32 = 54;
    pub(in super::super) const MOUNTED_ON_FILEID: u32 = 55;
    pub(in super::super) const SUPPATTR_EXCLCREAT: u32 = 75;
    pub(in super::super) const CLONE_BLKSIZE: u32 = 77;
    pub(in super::super) const CHANGE_ATTR_TYPE: u32 = 79;
    pub(in super::super) const MODE_UMASK: u32 = 81;
    pub(in super::super) const XATTR_SUPPORT: u32 = 82;
    pub(in super::super) const ACL_TRUEFORM: u32 = 89;
    pub(in super::super) const ACL_TRUEFORM_SCOPE: u32 = 90;
    pub(in super::super) const POSIX_DEFAULT_ACL: u32 = 91;
    pub(in super::super) const POSIX_ACCESS_ACL: u32 = 92;
}

pub(super) const fn set(numbers: &[u32]) -> [u32; BITMAP_WORDS] {
    let mut words = [0; BITMAP_WORDS];
    let mut at = 0;
    while at < numbers.len() {
        words[(numbers[at] / 32) as usize] |= 1 << (numbers[at] % 32);
        at += 1;
    }
    words
}

/// Passes to a macro the numbers of all attributes of 4.1 that can be shown, ascending and in groups, and then those
/// that 4.2 adds, but for lists, which are behind all others.
macro_rules! shown_numbers {
    ($to:ident) => {
        $to!([0 1 2 3 4 5 6 7] [8 9 10 11 15] [16 17 18 19 20 21 22 23] [26 27 28 29 30 31] [33 34 35 36 37]
            [41 42 43 44 45 47] [51 52 53 55] [75]; [77 79 82 89 90])
    };
}

macro_rules! set_of_1 {
    ($([$($number:literal)*])*; [$($added:literal)*]) => { set(&[$($($number),*),*]) };
}

/// All attributes that a server of 4.1 knows. The server shows them all but for two times, which clients only set.
const KNOWN: Bitmap = Bitmap { words: shown_numbers!(set_of_1), has_more: false }
    .with(Bitmap::of(&[n::TIME_ACCESS_SET, n::TIME_MODIFY_SET]));
/// Attributes that a client may set, alone.
pub(super) const ONLY_SET: [u32; BITMAP_WORDS] = set(&[n::TIME_ACCESS_SET, n::TIME_MODIFY_SET, n::MODE_UMASK]);
/// Attributes that a client may set.
pub(super) const SETTABLE: [u32; BITMAP_WORDS] =
    set(&[n::SIZE, n::MODE, n::OWNER, n::OWNER_GROUP, n::TIME_ACCESS_SET, n::TIME_MODIFY_SET, ACLS[0], ACLS[1]]);
/// Those that a client may set when it makes an object.
pub(super) const SETTABLE_NEW: [u32; BITMAP_WORDS] = with(SETTABLE, set(&[n::MODE_UMASK]));
/// Those that a client may set with an exclusive creation, whose verifier takes the times.
pub(super) const SETTABLE_EXCLUSIVELY: [u32; BITMAP_WORDS] =
    set(&[n::SIZE, n::MODE, n::OWNER, n::OWNER_GROUP, n::MODE_UMASK, ACLS[0], ACLS[1]]);
/// The access control lists, in the order of their numbers.
const ACLS: [u32; 2] = [n::POSIX_DEFAULT_ACL, n::POSIX_ACCESS_ACL];
/// These lists.
pub(super) const OF_ACLS: [u32; BITMAP_WORDS] = set(&ACLS);
/// The attributes that need a look for lists.
pub(super) const NEEDS_ACLS: [u32; BITMAP_WORDS] = set(&[n::ACL_TRUEFORM, ACLS[0], ACLS[1]]);
/// All attributes about lists.
const ABOUT_ACLS: [u32; BITMAP_WORDS] = set(&[n::ACL_TRUEFORM, n::ACL_TRUEFORM_SCOPE, ACLS[0], ACLS[1]]);
/// Attributes that only the host knows.
pub(super) const OF_HOST: [u32; BITMAP_WORDS] = set(&[16, 17, 21, 22, 23, 27, 28, 29, 34, 42, 43, 44]);
/// Those of an entry that its directory has.
const OF_ENTRY: [u32; BITMAP_WORDS] = set(&[n::RDATTR_ERROR, n::FILEID, n::MOUNTED_ON_FILEID]);

const fn with([a, b, c]: [u32; BITMAP_WORDS], [d, e, f]: [u32; BITMAP_WORDS]) -> [u32; BITMAP_WORDS] {
    [a | d, b | e, c | f]
}

impl Bitmap {
    pub(super) const fn of(numbers: &[u32]) -> Self {
        Self { words: set(numbers), has_more: false }
    }

    /// Whether it has an attribute.
    pub(super) fn has(&self, number: u32) -> bool {
        self.words[(number / 32) as usize] & 1 << (number % 32) != 0
    }

    /// Whether it has any of these.
    pub(super) fn has_any(&self, words: [u32; BITMAP_WORDS]) -> bool {
        self.words.iter().zip(words).any(|(own, other)| own & other != 0)
    }

    /// Whether it has any other than these.
    pub(super) fn has_beside(&self, words: [u32; BITMAP_WORDS]) -> bool {
        self.has_more || self.words.iter().zip(words).any(|(own, other)| own & !other != 0)
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self { words: with(self.words, other.words), ..self }
    }

    /// Whether the host must be asked for one of them.
    pub(super) fn needs_host(&self) -> bool {
        self.has_any(const { with(OF_HOST, NEEDS_ACLS) })
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

    /// All its attributes but these.
    pub(super) fn without(&self, words: [u32; BITMAP_WORDS]) -> Self {
        self.only(words.map(|word| !word))
    }

    /// Those of its attributes that are among these.
    pub(super) fn only(&self, words: [u32; BITMAP_WORDS]) -> Self {
        Self { words: std::array::from_fn(|at| self.words[at] & words[at]), has_more: false }
    }

    /// The number of its words without zeros at its end.
    pub(super) fn len(&self) -> usize {
        match self.words {
            [0, 0, 0] => 0,
            [_, 0, 0] => 1,
            [_, _, 0] => 2,
            _ => BITMAP_WORDS,
        }
    }

    /// Writes it without zeros at its end.
    pub(super) fn write(&self, writer: &mut Writer) {
        let count = self.len();
        writer.u32(count as u32);
        self.words[..count].iter().for_each(|word| writer.u32(*word));
    }
}

/// All attributes of a minor version. From 4.2 on a server may offer extended attributes and access control lists.
pub(super) fn known(minor: u32, has_xattrs: bool, has_acls: bool) -> Bitmap {
    const OF_4_2: Bitmap = KNOWN.with(Bitmap::of(&[n::CLONE_BLKSIZE, n::CHANGE_ATTR_TYPE, n::MODE_UMASK]));
    const XATTRS: [u32; BITMAP_WORDS] = set(&[n::XATTR_SUPPORT]);
    let if_offered = |words, is_offered| if is_offered { words } else { [0; BITMAP_WORDS] };
    match minor {
        ..=1 => KNOWN,
        _ => {
            let offered = with(if_offered(XATTRS, has_xattrs), if_offered(ABOUT_ACLS, has_acls));
            Bitmap { words: with(OF_4_2.words, offered), ..OF_4_2 }
        }
    }
}

/// Refuses a question for attributes that can only be set.
pub(super) fn check_asked(asked: &Bitmap) -> Result<(), NfsStatus> {
    if asked.has_any(ONLY_SET) { Err(NfsStatus::Inval) } else { Ok(()) }
}

/// The change attribute: the change time never goes back, and grows with each change.
pub(super) fn change_of(time: Timestamp) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or_default()
}

/// The changes that a client's values ask for.
#[derive(Default)]
pub(super) struct RequestedChange<'a> {
    /// All of them but for owners whose names are no numbers.
    pub(super) change: AttributeChange,
    /// The name of the new owner, which only the host knows.
    pub(super) owner: Option<&'a str>,
    /// The name of the new group.
    pub(super) owner_group: Option<&'a str>,
    /// The new default list of a directory.
    pub(super) default_acl: Option<Vec<RequestedEntry<'a>>>,
    /// The new list of who may use the object.
    pub(super) access_acl: Option<Vec<RequestedEntry<'a>>>,
}

/// Reads the changes in a client's values, of `known` attributes that are `settable` here. A client gives a mode with
/// its umask or a mode without one.
pub(super) fn change<'a>(
    values: &Fattr,
    record: &'a [u8],
    known: &Bitmap,
    settable: [u32; BITMAP_WORDS],
) -> Result<RequestedChange<'a>, NfsStatus> {
    if values.which.has_beside(known.words) {
        return Err(NfsStatus::Attrnotsupp);
    }
    if values.which.has_beside(settable) || values.which.has(n::MODE) && values.which.has(n::MODE_UMASK) {
        return Err(NfsStatus::Inval);
    }
    let bytes = &record[values.values.range()];
    let mut reader = Reader::new(bytes);
    let mut requested = RequestedChange::default();
    values.which.try_each(|number| read_one(&mut reader, number, &mut requested))?;
    if reader.position() == bytes.len() { Ok(requested) } else { Err(NfsStatus::Badxdr) }
}

fn read_one<'a>(reader: &mut Reader<'a>, number: u32, requested: &mut RequestedChange<'a>) -> Result<(), NfsStatus> {
    let bad = |_: XdrError| NfsStatus::Badxdr;
    let change = &mut requested.change;
    match number {
        n::SIZE => {
            let size = reader.u64().map_err(bad)?;
            if size > FILE_BYTES_MAX {
                return Err(NfsStatus::Fbig);
            }
            change.size = Some(size);
        }
        n::MODE | n::MODE_UMASK => {
            let mode = reader.u32().map_err(bad)?;
            let umask = if number == n::MODE_UMASK { reader.u32().map_err(bad)? } else { 0 };
            if mode > 0o7777 || umask > 0o777 {
                return Err(NfsStatus::Inval);
            }
            (change.mode, change.umask) = (Some(mode), umask);
        }
        n::OWNER => match Principal::read(reader.opaque(usize::MAX).map_err(bad)?)? {
            Principal::Number(uid) => change.uid = Some(uid),
            Principal::Name(name) => requested.owner = Some(name),
        },
        n::OWNER_GROUP => match Principal::read(reader.opaque(usize::MAX).map_err(bad)?)? {
            Principal::Number(gid) => change.gid = Some(gid),
            Principal::Name(name) => requested.owner_group = Some(name),
        },
        n::POSIX_DEFAULT_ACL => requested.default_acl = Some(posix_acls::read(reader)?),
        n::POSIX_ACCESS_ACL => requested.access_acl = Some(posix_acls::read(reader)?),
        n::TIME_ACCESS_SET => change.atime = read_time(reader)?,
        _ => change.mtime = read_time(reader)?,
    }
    Ok(())
}

fn read_time(reader: &mut Reader<'_>) -> Result<SetTime, NfsStatus> {
    const SECOND_NS: u32 = 1_000_000_000;
    let bad = |_: XdrError| NfsStatus::Badxdr;
    match reader.u32().map_err(bad)? {
        0 => Ok(SetTime::ServerNow),
        1 => {
            let (seconds, nanos) = (reader.u64().map_err(bad)? as i64, reader.u32().map_err(bad)?);
            if nanos >= SECOND_NS { Err(NfsStatus::Inval) } else { Ok(SetTime::To(Timestamp { seconds, nanos })) }
        }
        _ => Err(NfsStatus::Badxdr),
    }
}

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

/// The access control lists of an object, as attributes.
#[derive(Default)]
pub(super) struct ShownAcls {
    /// Whether the object's file system has lists.
    pub(super) are_supported: bool,
    pub(super) default: Vec<u8>,
    pub(super) access: Vec<u8>,
}

/// An object for its attributes.
pub(super) struct Shown<'a> {
    pub(super) handle: &'a [u8],
    pub(super) attributes: &'a Attributes,
    /// The number of the directory that it is mounted on, where another file system begins.
    pub(super) mounted_on: u64,
    pub(super) time_unit_ns: u32,
    /// None if nothing of it was asked for.
    pub(super) of_host: Option<&'a OfHost>,
    /// None if nothing of them was asked for.
    pub(super) acls: Option<&'a ShownAcls>,
}

impl<'a> Shown<'a> {
    /// The directory of all exports.
    pub(super) fn above(attributes: &'a Attributes) -> Self {
        let mounted_on = attributes.fileid;
        Self { handle: pseudo_root::HANDLE, attributes, mounted_on, time_unit_ns: 1, of_host: None, acls: None }
    }
}

/// Writes those known attributes of an object that were asked for.
pub(super) fn write(writer: &mut Writer, asked: &Bitmap, shown: &Shown<'_>, known: &Bitmap) {
    let of_host = if shown.of_host.is_none() { OF_HOST } else { [0; BITMAP_WORDS] };
    let of_acls = match shown.acls {
        None => ABOUT_ACLS,
        Some(acls) if !acls.are_supported => OF_ACLS,
        Some(_) => [0; BITMAP_WORDS],
    };
    let missing = |at: usize| ONLY_SET[at] | of_host[at] | of_acls[at];
    let words = std::array::from_fn(|at| asked.words[at] & known.words[at] & !missing(at));
    // The compiler knows the offset of most values in the usual set.
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
    // The set has no words of zeros at the end.
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
    let list = |number, list: fn(&ShownAcls) -> &[u8]| shown.acls.filter(|_| given.has(number)).map_or(&[][..], list);
    // Their numbers are the highest.
    let lists = [list(n::POSIX_DEFAULT_ACL, |acls| &acls.default), list(n::POSIX_ACCESS_ACL, |acls| &acls.access)];
    let value_bytes = end - values_at + lists[0].len() + lists[1].len();
    bytes[values_at - 4..values_at].copy_from_slice(&(value_bytes as u32).to_be_bytes());
    writer.raw(&bytes[..end]);
    lists.iter().for_each(|list| writer.raw(list));
}

/// The space for further values, which is zero.
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
            n::CLONE_BLKSIZE => self.u32(CLONE_BLOCK_BYTES),
            // It is a time.
            n::CHANGE_ATTR_TYPE => self.u32(3),
            // POSIX lists, or none. All objects of a file system have the same.
            n::ACL_TRUEFORM => self.u32(if shown.acls.is_some_and(|acls| acls.are_supported) { 2 } else { 3 }),
            n::ACL_TRUEFORM_SCOPE => self.u32(2),
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
    // Equal lists may have another order.
    if values.which.has_any(ONLY_SET) || values.which.has_any(OF_ACLS) || values.which.has(n::RDATTR_ERROR) {
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
