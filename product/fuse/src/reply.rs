//! Replies to the kernel.
//!
//! Owns: the layout of answers, the error number of each error.
//! Does not own: the content of answers (`operations`).
//! Invariants: a reply's length field covers all of it. An error has no data.

use afflux_frontend::{HEAD_BYTES_MAX, MessageReply, Segment};
use afflux_volume::{Attributes, Kind, ReadBytes, VolumeError};
use bytes::Bytes;

use crate::abi::{Put, kind, notify};
use crate::limits::PAGE_BYTES;
use crate::notices::NodeNotice;

/// Bytes of the header.
const HEADER_BYTES: usize = 16;
/// Bytes of a block in `st_blocks`.
const BLOCK_BYTES: u64 = 512;
/// The preferred size that the server reports to programs.
const PREFERRED_BYTES: u32 = 128 << 10;
const SECOND_NS: u64 = 1_000_000_000;

/// Error numbers of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Errno(pub(crate) i32);

impl Errno {
    pub(crate) const PERMISSION: Self = Self(1);
    pub(crate) const INTERRUPTED: Self = Self(4);
    pub(crate) const IO: Self = Self(5);
    pub(crate) const BAD_FILE: Self = Self(9);
    pub(crate) const TRY_AGAIN: Self = Self(11);
    pub(crate) const BUSY: Self = Self(16);
    pub(crate) const NOT_DIRECTORY: Self = Self(20);
    pub(crate) const INVALID: Self = Self(22);
    pub(crate) const TOO_MANY_FILES: Self = Self(23);
    pub(crate) const NO_TERMINAL: Self = Self(25);
    pub(crate) const READ_ONLY: Self = Self(30);
    pub(crate) const RANGE: Self = Self(34);
    pub(crate) const DEADLOCK: Self = Self(35);
    pub(crate) const NO_LOCKS: Self = Self(37);
    pub(crate) const NO_OPERATION: Self = Self(38);
    pub(crate) const NO_DATA: Self = Self(61);
    pub(crate) const PROTOCOL: Self = Self(71);
    pub(crate) const NOT_SUPPORTED: Self = Self(95);
    pub(crate) const NOT_CONNECTED: Self = Self(107);
    pub(crate) const STALE: Self = Self(116);
}

impl From<VolumeError> for Errno {
    fn from(error: VolumeError) -> Self {
        Self(match error {
            VolumeError::NotFound => 2,
            VolumeError::Exists => 17,
            VolumeError::NotDirectory => 20,
            VolumeError::IsDirectory => 21,
            VolumeError::NotEmpty => 39,
            VolumeError::Denied => 13,
            VolumeError::NotPermitted => 1,
            // The kernel never again sends an operation that ends with this number, and takes a sync for done.
            VolumeError::Io { errno: 38 } => return Self::IO,
            VolumeError::Io { errno: errno @ 1..=511 } => errno,
            VolumeError::NoSpace => 28,
            VolumeError::Quota => 122,
            VolumeError::TooLarge => 27,
            VolumeError::ReadOnly => 30,
            VolumeError::Stale | VolumeError::BadHandle => return Self::STALE,
            VolumeError::NameTooLong { .. } => 36,
            VolumeError::Invalid { .. } | VolumeError::BadCookie => return Self::INVALID,
            VolumeError::NoAttribute => return Self::NO_DATA,
            VolumeError::ValueTooLong { .. } => 7,
            VolumeError::PastData { .. } => 6,
            VolumeError::CrossDevice => 18,
            VolumeError::TooManyLinks => 31,
            VolumeError::NotSupported => return Self::NOT_SUPPORTED,
            VolumeError::Symlink => 40,
            VolumeError::Leased | VolumeError::Delayed => 11,
            VolumeError::NoMemory => 12,
            VolumeError::NoDescriptor => 23,
            // Errors of the host without a number, and errors that a volume may have in the future.
            _ => return Self::IO,
        })
    }
}

/// The fixed part of a reply.
pub(crate) struct ReplyHead {
    bytes: [u8; HEAD_BYTES_MAX],
    len: usize,
}

impl Put for ReplyHead {
    fn raw(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

/// Nodes and files that an answer gives to the kernel.
#[derive(Default)]
pub(crate) struct Granted {
    /// A node, looked up once.
    pub(crate) node: Option<u64>,
    /// Those of a listing.
    pub(crate) listed: Vec<u64>,
    /// An open file.
    pub(crate) file: Option<u64>,
}

/// A successful answer before its header is complete.
pub(crate) struct ReplyDraft {
    pub(crate) head: ReplyHead,
    pub(crate) granted: Granted,
    data: Option<Segment>,
}

impl ReplyDraft {
    /// Without content yet.
    pub(crate) fn empty() -> Self {
        Self {
            head: ReplyHead { bytes: [0; HEAD_BYTES_MAX], len: HEADER_BYTES },
            granted: Granted::default(),
            data: None,
        }
    }

    /// Of these bytes.
    pub(crate) fn bytes(bytes: impl Into<Bytes>) -> Self {
        Self { data: Some(Segment::Bytes(bytes.into())), ..Self::empty() }
    }

    /// Of the bytes that were read.
    pub(crate) fn read(bytes: ReadBytes) -> Self {
        let data = match bytes {
            ReadBytes::Pages(pages) => Segment::Pages(pages),
            ReadBytes::Copied(bytes) => Segment::Bytes(bytes),
        };
        Self { data: Some(data), ..Self::empty() }
    }

    /// The reply to the request `unique`.
    pub(crate) fn finish(mut self, unique: u64) -> MessageReply {
        let data_bytes = self.data.as_ref().map_or(0, Segment::len);
        write_header(&mut self.head.bytes, self.head.len + data_bytes, 0, unique);
        MessageReply::new(&self.head.bytes[..self.head.len], self.data)
    }
}

fn write_header(into: &mut [u8], len: usize, error: i32, unique: u64) {
    into[..4].copy_from_slice(&(len as u32).to_ne_bytes());
    into[4..8].copy_from_slice(&error.to_ne_bytes());
    into[8..HEADER_BYTES].copy_from_slice(&unique.to_ne_bytes());
}

/// The reply of an error.
pub(crate) fn failed(errno: Errno, unique: u64) -> MessageReply {
    let mut header = [0; HEADER_BYTES];
    write_header(&mut header, HEADER_BYTES, -errno.0, unique);
    MessageReply::new(&header, None)
}

/// The message of a notice.
pub(crate) fn notice(of: NodeNotice) -> MessageReply {
    let mut message = ReplyDraft::empty();
    let (code, data) = match of {
        NodeNotice::Attributes(node) => (inode_notice(&mut message.head, node, u64::MAX, 0), None),
        NodeNotice::Bytes(node) => (inode_notice(&mut message.head, node, 0, 0), None),
        NodeNotice::Page(node, offset) => (inode_notice(&mut message.head, node, offset, PAGE_BYTES as u64), None),
        NodeNotice::Name(directory, name) => {
            message.head.u64(directory);
            message.head.u32(name.len() as u32);
            message.head.u32(0);
            (notify::INVAL_ENTRY, Some(Segment::Bytes([&name[..], b"\0"].concat().into())))
        }
        NodeNotice::Unused(nodes) => {
            message.head.u32(nodes.len() as u32);
            message.head.u32(0);
            message.head.u64(0);
            let nodes: Vec<u8> = nodes.into_iter().flat_map(u64::to_ne_bytes).collect();
            (notify::PRUNE, Some(Segment::Bytes(nodes.into())))
        }
    };
    let len = message.head.len + data.as_ref().map_or(0, Segment::len);
    write_header(&mut message.head.bytes, len, code, 0);
    MessageReply::new(&message.head.bytes[..message.head.len], data)
}

/// The notice that has the kernel send unanswered requests again. It has no body.
pub(crate) fn resend() -> MessageReply {
    let mut header = [0; HEADER_BYTES];
    write_header(&mut header, HEADER_BYTES, notify::RESEND, 0);
    MessageReply::new(&header, None)
}

/// `struct fuse_notify_inval_inode_out`: an offset of -1 means the attributes alone, 0 and no length for all bytes.
fn inode_notice(head: &mut ReplyHead, node: u64, offset: u64, len: u64) -> i32 {
    head.u64(node);
    head.u64(offset);
    head.u64(len);
    notify::INVAL_INODE
}

/// How long the kernel may use names and attributes without asking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Validity {
    pub(crate) names_ns: u64,
    pub(crate) attributes_ns: u64,
}

/// `struct fuse_attr`.
fn attributes(into: &mut impl Put, of: &Attributes) {
    for value in [of.fileid, of.size, of.used.div_ceil(BLOCK_BYTES)] {
        into.u64(value);
    }
    let times = [of.atime, of.mtime, of.ctime];
    times.iter().for_each(|time| into.u64(time.seconds as u64));
    times.iter().for_each(|time| into.u32(time.nanos));
    let device = device_number(of.device_major, of.device_minor);
    for value in [of.mode | kind_bits(of.kind), of.links, of.uid, of.gid, device, PREFERRED_BYTES, 0] {
        into.u32(value);
    }
}

/// `struct fuse_attr_out`.
pub(crate) fn attributes_out(into: &mut impl Put, of: &Attributes, valid: Validity) {
    into.u64(valid.attributes_ns / SECOND_NS);
    into.u32((valid.attributes_ns % SECOND_NS) as u32);
    into.u32(0);
    attributes(into, of);
}

/// `struct fuse_entry_out`.
pub(crate) fn entry_out(into: &mut impl Put, node: u64, of: &Attributes, valid: Validity) {
    into.u64(node);
    // The node's number has its generation.
    into.u64(0);
    into.u64(valid.names_ns / SECOND_NS);
    into.u64(valid.attributes_ns / SECOND_NS);
    into.u32((valid.names_ns % SECOND_NS) as u32);
    into.u32((valid.attributes_ns % SECOND_NS) as u32);
    attributes(into, of);
}

/// `struct fuse_entry_out` of a name that is not there: the kernel need not ask again for that long.
pub(crate) fn absent_out(into: &mut impl Put, valid_ns: u64) {
    into.raw(&[0; 16]);
    into.u64(valid_ns / SECOND_NS);
    into.u64(0);
    into.u32((valid_ns % SECOND_NS) as u32);
    into.raw(&[0; ENTRY_OUT_BYTES - 36]);
}

/// Bytes of an entry's attributes in a listing.
pub(crate) const ENTRY_OUT_BYTES: usize = 128;
/// Bytes of an entry before its name.
const ENTRY_BYTES: usize = 24;

/// Bytes of an entry in a listing.
pub(crate) fn entry_bytes(name_bytes: usize, with_attributes: bool) -> usize {
    (ENTRY_BYTES + name_bytes).next_multiple_of(8) + if with_attributes { ENTRY_OUT_BYTES } else { 0 }
}

/// `struct fuse_dirent`.
pub(crate) fn directory_entry(into: &mut Vec<u8>, fileid: u64, cookie: u64, kind: Option<Kind>, name: &[u8]) {
    into.u64(fileid);
    into.u64(cookie);
    into.u32(name.len() as u32);
    into.u32(kind.map_or(0, kind_bits) >> 12);
    into.raw(name);
    into.resize(into.len().next_multiple_of(8), 0);
}

fn kind_bits(of: Kind) -> u32 {
    match of {
        Kind::Regular => kind::REGULAR,
        Kind::Directory => kind::DIRECTORY,
        Kind::Symlink => kind::LINK,
        Kind::BlockDevice => kind::BLOCK,
        Kind::CharDevice => kind::CHAR,
        Kind::Fifo => kind::FIFO,
        Kind::Socket => kind::SOCKET,
    }
}

/// The kernel's form of a device's number in 32 bits.
fn device_number(major: u32, minor: u32) -> u32 {
    (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12
}

/// Major and minor number of a device.
pub(crate) fn device_parts(number: u32) -> (u32, u32) {
    (number >> 8 & 0xfff, number & 0xff | number >> 12 & 0xfff00)
}

#[cfg(test)]
mod tests;
