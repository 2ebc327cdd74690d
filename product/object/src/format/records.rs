//! Records of the volume, of its segments, and of a file's bytes as a whole.
//!
//! Owns: the header `V`, the lineage `L`, live bytes `s`, dead segments `z`, bodies `i…b`, begun
//! cuts `t`.
//! Does not own: extents (`extent`), names and attributes.
//! Invariants: the first byte of a key is its kind. A reader refuses a header with features that it does not know.

use crate::format::extent::SegmentId;
use crate::format::{FieldBytes, FormatError, exactly, in_range};

/// The format that this version writes.
pub const VOLUME_FORMAT: u32 = 3;

const MAGIC: [u8; 8] = *b"AFXVOLUM";
/// The feature of a volume with access control lists (`acl`).
pub(crate) const WITH_ACLS: u64 = 1 << 0;
/// The feature of a volume with compressed runs (`compression`).
pub(crate) const COMPRESSED_RUNS: u64 = 1 << 1;
const FEATURES_KNOWN: u64 = WITH_ACLS | COMPRESSED_RUNS;
const HEADER_BYTES: usize = 96;
const LINEAGE_BYTES: usize = 9;
const SEGMENT_KEY_BYTES: usize = 13;
const BODY_BYTES: usize = 24;

/// Record `V`: the volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeHeader {
    /// The volume's identity.
    pub id: [u8; 16],
    /// The key of the handles.
    pub handle_key: [u8; 16],
}

impl VolumeHeader {
    pub(crate) const KEY: &'static [u8] = b"V";

    /// The header of a volume that uses these features.
    pub(crate) fn encode(&self, features: u64) -> Vec<u8> {
        let mut value = MAGIC.to_vec();
        value.extend_from_slice(&VOLUME_FORMAT.to_be_bytes());
        value.extend_from_slice(&features.to_be_bytes());
        value.extend_from_slice(&self.id);
        value.extend_from_slice(&self.handle_key);
        value.resize(HEADER_BYTES, 0);
        value
    }

    /// The header, and the features that the volume uses.
    pub(crate) fn decode(value: &[u8]) -> Result<(Self, u64), FormatError> {
        exactly("the header of a volume", value, HEADER_BYTES)?;
        let mut fields = FieldBytes(value);
        let found = fields.take::<8>();
        if found != MAGIC {
            return Err(FormatError::Magic { field: "the header of a volume", found, expected: MAGIC });
        }
        let format = u64::from(VOLUME_FORMAT);
        in_range("the format of a volume", u64::from(fields.u32()), format, format)?;
        let features = fields.u64();
        if features & !FEATURES_KNOWN != 0 {
            return Err(FormatError::Features { found: features, known: FEATURES_KNOWN });
        }
        Ok((Self { id: fields.take(), handle_key: fields.take() }, features))
    }
}

/// Record `L`: the write verifier, and the manner in which the last writer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// Changes at each opening that follows no clean end.
    pub verifier: u64,
    /// The last writer wrote all it had, and ended.
    pub is_clean: bool,
}

impl Lineage {
    pub(crate) const KEY: &'static [u8] = b"L";

    pub(crate) fn encode(self) -> Vec<u8> {
        let mut value = self.verifier.to_be_bytes().to_vec();
        value.push(u8::from(self.is_clean));
        value
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Self, FormatError> {
        exactly("the lineage", value, LINEAGE_BYTES)?;
        let mut fields = FieldBytes(value);
        let verifier = fields.u64();
        let is_clean = in_range("the state of the lineage", u64::from(fields.u8()), 0, 1)? == 1;
        Ok(Self { verifier, is_clean })
    }
}

/// Record `i` ino `b`: a file's bytes as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Body {
    /// The end of the file.
    pub size: u64,
    /// Bytes that are no holes.
    pub used: u64,
    /// The time of day of the last change of bytes or size.
    pub changed_ns: u64,
}

impl Body {
    /// The key sorts right behind the inode's.
    pub(crate) fn key(ino: u64) -> Vec<u8> {
        let mut key = file_key(b'i', ino);
        key.push(b'b');
        key
    }

    pub(crate) fn encode(self) -> Vec<u8> {
        [self.size, self.used, self.changed_ns].iter().flat_map(|number| number.to_be_bytes()).collect()
    }

    pub(crate) fn decode(value: &[u8]) -> Result<Self, FormatError> {
        exactly("a body", value, BODY_BYTES)?;
        let mut fields = FieldBytes(value);
        let size = in_range("the size of a file", fields.u64(), 0, i64::MAX as u64)?;
        let used = in_range("the used bytes of a file", fields.u64(), 0, i64::MAX as u64)?;
        Ok(Self { size, used, changed_ns: fields.u64() })
    }
}

/// The key of a file's only record of a kind: `i`, `o` or `t`.
pub(crate) fn file_key(kind: u8, ino: u64) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(&ino.to_be_bytes());
    key
}

/// Record `t`: a file that is being cut, and its new size.
pub(crate) fn decode_cut(key: &[u8], value: &[u8]) -> Result<(u64, u64), FormatError> {
    exactly("the key of a cut", key, 9)?;
    exactly("a cut", value, 8)?;
    Ok((FieldBytes(&key[1..]).u64(), in_range("the size after a cut", FieldBytes(value).u64(), 0, i64::MAX as u64)?))
}

/// Bits of a segment's live bytes.
const LIVE_BITS: u32 = 39;
/// Most live bytes of a segment. Files that share it count them several times.
pub(crate) const LIVE_BYTES_MAX: u64 = (1 << LIVE_BITS) - 1;
/// Most live bytes of a segment that is shared once more. One part of a share adds fewer bytes than are left.
pub(crate) const SHARED_BYTES_MAX: u64 = LIVE_BYTES_MAX / 2;

/// The value of record `s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct SegmentBytes {
    /// All bytes of its runs.
    pub(crate) all: u64,
    /// The bytes of extents in it.
    pub(crate) live: u64,
}

impl SegmentBytes {
    /// Both numbers in one sum, which batches add to. The runs of a segment have less than 2^24 bytes, and its extents
    /// at most [`LIVE_BYTES_MAX`], so neither touches the other.
    pub(crate) fn sum(all: u64, live: i64) -> i64 {
        ((all as i64) << LIVE_BITS) + live
    }

    pub(crate) fn of(sum: u64) -> Self {
        Self { all: sum >> LIVE_BITS, live: sum & LIVE_BYTES_MAX }
    }
}

/// The records of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentRecord {
    /// `s`: its bytes, see [`SegmentBytes`].
    Live,
    /// `z`: it is dead; the newest manifest then.
    Dead,
}

impl SegmentRecord {
    fn kind(self) -> u8 {
        match self {
            Self::Live => b's',
            Self::Dead => b'z',
        }
    }

    /// All keys of this kind.
    pub(crate) fn keys(self) -> (Vec<u8>, Vec<u8>) {
        (vec![self.kind()], vec![self.kind() + 1])
    }

    pub(crate) fn key(self, segment: SegmentId) -> Vec<u8> {
        let mut key = vec![self.kind()];
        key.extend_from_slice(&segment.epoch.to_be_bytes());
        key.extend_from_slice(&segment.number.to_be_bytes());
        key
    }

    pub(crate) fn decode(self, key: &[u8], value: &[u8]) -> Result<(SegmentId, u64), FormatError> {
        exactly("the key of a segment", key, SEGMENT_KEY_BYTES)?;
        in_range("the kind of a segment's record", u64::from(key[0]), self.kind().into(), self.kind().into())?;
        let mut fields = FieldBytes(&key[1..]);
        let segment = SegmentId::new(fields.u32(), fields.u64())?;
        exactly("the record of a segment", value, 8)?;
        Ok((segment, in_range("the record of a segment", FieldBytes(value).u64(), 0, i64::MAX as u64)?))
    }
}
