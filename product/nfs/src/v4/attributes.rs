//! The attributes of version 4: sets of them, their changes.
//!
//! Owns: which attributes there are, which a client may set, the change that values ask for.
//! Does not own: the values (the volume), their form in a reply (`shown`), access lists: they are not offered, so that
//! no client asks for them.
//! Invariants: a change takes each value that it names, or none.

use afflux_volume::{AttributeChange, FILE_BYTES_MAX, SetTime, Timestamp};

use super::codec::{BITMAP_WORDS, Bitmap, Fattr};
use crate::status::NfsStatus;
use crate::wire::xdr::{Reader, Writer, XdrError};

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
    pub(in super::super) const CHANGE_ATTR_TYPE: u32 = 79;
    pub(in super::super) const MODE_UMASK: u32 = 81;
    pub(in super::super) const XATTR_SUPPORT: u32 = 82;
}

use number as n;

pub(super) const fn set(numbers: &[u32]) -> [u32; BITMAP_WORDS] {
    let mut words = [0; BITMAP_WORDS];
    let mut at = 0;
    while at < numbers.len() {
        words[(numbers[at] / 32) as usize] |= 1 << (numbers[at] % 32);
        at += 1;
    }
    words
}

/// Hands a macro the numbers of all attributes of 4.1 that can be shown, ascending and in groups, and then those that
/// 4.2 adds.
macro_rules! shown_numbers {
    ($to:ident) => {
        $to!([0 1 2 3 4 5 6 7] [8 9 10 11 15] [16 17 18 19 20 21 22 23] [26 27 28 29 30 31] [33 34 35 36 37]
            [41 42 43 44 45 47] [51 52 53 55] [75]; [79 82])
    };
}
pub(super) use shown_numbers;

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
    set(&[n::SIZE, n::MODE, n::OWNER, n::OWNER_GROUP, n::TIME_ACCESS_SET, n::TIME_MODIFY_SET]);
/// Those that a client may set when it makes an object.
pub(super) const SETTABLE_NEW: [u32; BITMAP_WORDS] =
    set(&[n::SIZE, n::MODE, n::OWNER, n::OWNER_GROUP, n::TIME_ACCESS_SET, n::TIME_MODIFY_SET, n::MODE_UMASK]);
/// Those that a client may set with an exclusive creation, whose verifier takes the times.
pub(super) const SETTABLE_EXCLUSIVELY: [u32; BITMAP_WORDS] =
    set(&[n::SIZE, n::MODE, n::OWNER, n::OWNER_GROUP, n::MODE_UMASK]);
/// Attributes that only the host knows.
pub(super) const OF_HOST: [u32; BITMAP_WORDS] = set(&[16, 17, 21, 22, 23, 27, 28, 29, 34, 42, 43, 44]);
/// Those of an entry that its directory has.
const OF_ENTRY: [u32; BITMAP_WORDS] = set(&[n::RDATTR_ERROR, n::FILEID, n::MOUNTED_ON_FILEID]);

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

    /// Whether it has any beside these.
    pub(super) fn has_beside(&self, words: [u32; BITMAP_WORDS]) -> bool {
        self.has_more || self.words.iter().zip(words).any(|(own, other)| own & !other != 0)
    }

    pub(super) const fn with(self, other: Self) -> Self {
        let ([a, b, c], [d, e, f]) = (self.words, other.words);
        Self { words: [a | d, b | e, c | f], ..self }
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

/// All attributes of a minor version. From 4.2 on a server may offer extended attributes.
pub(super) fn known(minor: u32, has_xattrs: bool) -> Bitmap {
    const NEWER: Bitmap = Bitmap::of(&[n::CHANGE_ATTR_TYPE, n::MODE_UMASK]);
    const WITH_XATTRS: Bitmap = NEWER.with(Bitmap::of(&[n::XATTR_SUPPORT]));
    match minor {
        ..=1 => KNOWN,
        _ if has_xattrs => KNOWN.with(WITH_XATTRS),
        _ => KNOWN.with(NEWER),
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

/// Reads the changes in a client's values, of `known` attributes that are `settable` here. A client gives a mode with
/// its umask or a mode without one.
pub(super) fn change(
    values: &Fattr,
    record: &[u8],
    known: &Bitmap,
    settable: [u32; BITMAP_WORDS],
) -> Result<AttributeChange, NfsStatus> {
    if values.which.has_beside(known.words) {
        return Err(NfsStatus::Attrnotsupp);
    }
    if values.which.has_beside(settable) || values.which.has(n::MODE) && values.which.has(n::MODE_UMASK) {
        return Err(NfsStatus::Inval);
    }
    let bytes = &record[values.values.range()];
    let mut reader = Reader::new(bytes);
    let mut change = AttributeChange::default();
    values.which.try_each(|number| read_one(&mut reader, number, &mut change))?;
    if reader.position() == bytes.len() { Ok(change) } else { Err(NfsStatus::Badxdr) }
}

fn read_one(reader: &mut Reader<'_>, number: u32, change: &mut AttributeChange) -> Result<(), NfsStatus> {
    let bad = |_: XdrError| NfsStatus::Badxdr;
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
        n::OWNER => change.uid = Some(read_user(reader.opaque(usize::MAX).map_err(bad)?)?),
        n::OWNER_GROUP => change.gid = Some(read_user(reader.opaque(usize::MAX).map_err(bad)?)?),
        n::TIME_ACCESS_SET => change.atime = read_time(reader)?,
        _ => change.mtime = read_time(reader)?,
    }
    Ok(())
}

/// A user's number in digits, with a domain or without.
fn read_user(name: &[u8]) -> Result<u32, NfsStatus> {
    let digits = name.split(|byte| *byte == b'@').next().unwrap_or_default();
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(digits).ok().filter(|_| is_number).and_then(|digits| digits.parse().ok());
    number.filter(|number| *number != u32::MAX).ok_or(NfsStatus::Badowner)
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

#[cfg(test)]
mod tests;
