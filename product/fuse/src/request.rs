//! Messages of the kernel, decoded.
//!
//! Owns: the layout of each operation's message.
//! Does not own: the outcome of an operation (`operations`), the ranges of values.
//! Invariants: decoding copies no name and no data, and refuses a message that ends early. Bytes after the last field
//! are ignored: a newer kernel may have more fields.

use crate::abi::{self, FieldReader, WireError, o, op};

/// Bytes of the header.
pub(crate) const HEADER_BYTES: usize = 40;

/// The beginning of each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestHeader {
    /// Bytes of the message.
    pub(crate) len: u32,
    pub(crate) opcode: u32,
    /// The number of the request.
    pub(crate) unique: u64,
    pub(crate) node: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) thread: u32,
    /// Bytes of extensions at the end of the message.
    pub(crate) extension_bytes: usize,
}

impl RequestHeader {
    pub(crate) fn decode(message: &[u8]) -> Result<Self, WireError> {
        let mut reader = FieldReader::new(message);
        Ok(Self {
            len: reader.u32()?,
            opcode: reader.u32()?,
            unique: reader.u64()?,
            node: reader.u64()?,
            uid: reader.u32()?,
            gid: reader.u32()?,
            thread: reader.u32()?,
            extension_bytes: {
                let words = reader.u16()?;
                reader.u16()?;
                usize::from(words) * 8
            },
        })
    }
}

/// The attributes that SETATTR sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SetAttributes {
    /// Bits of [`abi::set`].
    pub(crate) valid: u32,
    pub(crate) fh: u64,
    pub(crate) size: u64,
    /// Seconds and nanoseconds.
    pub(crate) atime: (u64, u32),
    pub(crate) mtime: (u64, u32),
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// The mode of a new object, and the bits that its maker's umask takes away unless a default list decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) mode: u32,
    pub(crate) umask: u32,
}

/// A range of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenExtent {
    pub(crate) fh: u64,
    pub(crate) offset: u64,
    pub(crate) size: u32,
}

/// A lock of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Locking {
    pub(crate) fh: u64,
    /// The kernel's number for its owner.
    pub(crate) owner: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// One of [`abi::lock`].
    pub(crate) kind: u32,
    pub(crate) process: u32,
    pub(crate) is_of_flock: bool,
}

/// An operation with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FuseOperation<'a> {
    Lookup {
        name: &'a [u8],
    },
    Forget {
        lookups: u64,
    },
    /// Pairs of a node's number and its lookups.
    BatchForget {
        count: u32,
        pairs: &'a [u8],
    },
    GetAttributes {
        fh: Option<u64>,
    },
    SetAttributes(SetAttributes),
    ReadLink,
    Symlink {
        name: &'a [u8],
        target: &'a [u8],
    },
    MakeNode {
        mode: Mode,
        device: u32,
        name: &'a [u8],
    },
    MakeDirectory {
        mode: Mode,
        name: &'a [u8],
    },
    Unlink {
        name: &'a [u8],
    },
    RemoveDirectory {
        name: &'a [u8],
    },
    Rename {
        to: u64,
        flags: u32,
        name: &'a [u8],
        new_name: &'a [u8],
    },
    Link {
        target: u64,
        name: &'a [u8],
    },
    Open {
        flags: u32,
    },
    OpenDirectory,
    Create {
        flags: u32,
        mode: Mode,
        name: &'a [u8],
    },
    Read(OpenExtent),
    Write {
        extent: OpenExtent,
        data: &'a [u8],
        /// At the file's end, wherever the kernel takes that to be.
        append: bool,
        /// The bytes are durable before the answer.
        synchronous: bool,
        /// The kernel's own, of pages that a program has mapped.
        is_kernels: bool,
    },
    Copy {
        from: (u64, u64),
        to: (u64, u64),
        len: u64,
    },
    Flush {
        fh: u64,
        /// The owner whose locks by `fcntl` end.
        owner: u64,
    },
    Release {
        fh: u64,
        /// The owner whose lock by `flock` ends, if it has one.
        owner: Option<u64>,
    },
    TestLock(Locking),
    Lock {
        locking: Locking,
        waits: bool,
    },
    Sync {
        fh: u64,
        data_only: bool,
    },
    SyncDirectory {
        fh: u64,
    },
    List {
        extent: OpenExtent,
        with_attributes: bool,
    },
    Space,
    Init(Init),
    Interrupt {
        unique: u64,
    },
    Destroy,
    MakeUnnamed {
        flags: u32,
        mode: Mode,
    },
    SetXattr {
        size: u32,
        flags: u32,
        /// The fields of newer kernels, the name and the value.
        rest: &'a [u8],
    },
    GetXattr {
        size: u32,
        name: &'a [u8],
    },
    ListXattrs {
        size: u32,
    },
    RemoveXattr {
        name: &'a [u8],
    },
    Seek {
        fh: u64,
        offset: u64,
        whence: u32,
    },
    Allocate {
        fh: u64,
        offset: u64,
        len: u64,
        mode: u32,
    },
    InputOutputControl,
    /// An operation that the machine does not have.
    Unknown,
}

impl FuseOperation<'_> {
    /// Whether its answer is an open file or directory.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. } | Self::OpenDirectory | Self::Create { .. } | Self::MakeUnnamed { .. })
    }

    /// Whether it changes something, or opens a file for changes. Changes by a file that is open already do not count.
    pub(crate) fn may_change(&self) -> bool {
        match self {
            Self::Open { flags } => is_write(*flags),
            Self::SetAttributes(_) | Self::SetXattr { .. } | Self::RemoveXattr { .. } => true,
            Self::Symlink { .. } | Self::MakeNode { .. } | Self::MakeDirectory { .. } => true,
            Self::Create { .. } | Self::MakeUnnamed { .. } | Self::Link { .. } => true,
            Self::Unlink { .. } | Self::RemoveDirectory { .. } | Self::Rename { .. } => true,
            _ => false,
        }
    }
}

/// Whether an open with these flags may change the file.
pub(crate) fn is_write(flags: u32) -> bool {
    flags & o::ACCMODE != o::RDONLY || flags & o::TRUNC != 0
}

/// The kernel's offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Init {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) readahead_bytes: u32,
    pub(crate) flags: u64,
}

/// Whether flags of open(2) have changes of the file wait until they are durable.
pub(crate) fn is_synchronous(flags: u32) -> bool {
    flags & abi::o::SYNC != 0
}

/// The arguments of a message with this header.
pub(crate) fn decode<'a>(header: &RequestHeader, message: &'a [u8]) -> Result<FuseOperation<'a>, WireError> {
    let body = message.get(HEADER_BYTES..).ok_or(WireError::Truncated)?;
    let body_bytes = body.len().checked_sub(header.extension_bytes).ok_or(WireError::Truncated)?;
    let mut reader = FieldReader::new(&body[..body_bytes]);
    let it = &mut reader;
    Ok(match header.opcode {
        op::LOOKUP => FuseOperation::Lookup { name: it.name()? },
        op::FORGET => FuseOperation::Forget { lookups: it.u64()? },
        op::BATCH_FORGET => batch_forget(it)?,
        op::GETATTR => {
            let (flags, _, fh) = (it.u32()?, it.u32()?, it.u64()?);
            FuseOperation::GetAttributes { fh: (flags & abi::GETATTR_FH != 0).then_some(fh) }
        }
        op::SETATTR => FuseOperation::SetAttributes(set_attributes(it)?),
        op::READLINK => FuseOperation::ReadLink,
        op::SYMLINK => FuseOperation::Symlink { name: it.name()?, target: it.name()? },
        op::MKNOD => {
            let (mode, device, umask) = (it.u32()?, it.u32()?, it.u32()?);
            skip_words(it, 1)?;
            FuseOperation::MakeNode { mode: Mode { mode, umask }, device, name: it.name()? }
        }
        op::MKDIR => FuseOperation::MakeDirectory { mode: mode(it)?, name: it.name()? },
        op::UNLINK => FuseOperation::Unlink { name: it.name()? },
        op::RMDIR => FuseOperation::RemoveDirectory { name: it.name()? },
        op::RENAME => FuseOperation::Rename { to: it.u64()?, flags: 0, name: it.name()?, new_name: it.name()? },
        op::RENAME2 => {
            let (to, flags) = (it.u64()?, it.u32()?);
            skip_words(it, 1)?;
            FuseOperation::Rename { to, flags, name: it.name()?, new_name: it.name()? }
        }
        op::LINK => FuseOperation::Link { target: it.u64()?, name: it.name()? },
        op::OPEN => FuseOperation::Open { flags: it.u32()? },
        op::OPENDIR => FuseOperation::OpenDirectory,
        op::CREATE => {
            let (flags, mode) = (it.u32()?, mode(it)?);
            skip_words(it, 1)?;
            FuseOperation::Create { flags, mode, name: it.name()? }
        }
        op::TMPFILE => FuseOperation::MakeUnnamed { flags: it.u32()?, mode: mode(it)? },
        op::SETXATTR => FuseOperation::SetXattr { size: it.u32()?, flags: it.u32()?, rest: it.rest() },
        op::GETXATTR => {
            let size = it.u32()?;
            skip_words(it, 1)?;
            FuseOperation::GetXattr { size, name: it.name()? }
        }
        op::LISTXATTR => FuseOperation::ListXattrs { size: it.u32()? },
        op::REMOVEXATTR => FuseOperation::RemoveXattr { name: it.name()? },
        op::LSEEK => FuseOperation::Seek { fh: it.u64()?, offset: it.u64()?, whence: it.u32()? },
        op::COPY_FILE_RANGE => {
            let (from, _node) = ((it.u64()?, it.u64()?), it.u64()?);
            FuseOperation::Copy { from, to: (it.u64()?, it.u64()?), len: it.u64()? }
        }
        op::READ => FuseOperation::Read(extent(it)?),
        op::WRITE => write(it)?,
        op::FLUSH => {
            let fh = it.u64()?;
            skip_words(it, 2)?;
            FuseOperation::Flush { fh, owner: it.u64()? }
        }
        op::RELEASE | op::RELEASEDIR => {
            let (fh, _flags, what, owner) = (it.u64()?, it.u32()?, it.u32()?, it.u64()?);
            FuseOperation::Release { fh, owner: (what & abi::lock::RELEASED != 0).then_some(owner) }
        }
        op::GETLK => FuseOperation::TestLock(locking(it)?),
        op::SETLK => FuseOperation::Lock { locking: locking(it)?, waits: false },
        op::SETLKW => FuseOperation::Lock { locking: locking(it)?, waits: true },
        op::FSYNC => FuseOperation::Sync { fh: it.u64()?, data_only: it.u32()? & abi::FSYNC_DATA_ONLY != 0 },
        op::FSYNCDIR => FuseOperation::SyncDirectory { fh: it.u64()? },
        op::READDIR => FuseOperation::List { extent: extent(it)?, with_attributes: false },
        op::READDIRPLUS => FuseOperation::List { extent: extent(it)?, with_attributes: true },
        op::STATFS => FuseOperation::Space,
        op::INIT => FuseOperation::Init(init(it)?),
        op::INTERRUPT => FuseOperation::Interrupt { unique: it.u64()? },
        op::DESTROY => FuseOperation::Destroy,
        op::FALLOCATE => {
            let (fh, offset, len) = (it.u64()?, it.u64()?, it.u64()?);
            FuseOperation::Allocate { fh, offset, len, mode: it.u32()? }
        }
        op::IOCTL => FuseOperation::InputOutputControl,
        _ => FuseOperation::Unknown,
    })
}

fn skip_words(reader: &mut FieldReader<'_>, words: usize) -> Result<(), WireError> {
    (0..words).try_for_each(|_| reader.u32().map(drop))
}

fn batch_forget<'a>(it: &mut FieldReader<'a>) -> Result<FuseOperation<'a>, WireError> {
    let count = it.u32()?;
    skip_words(it, 1)?;
    Ok(FuseOperation::BatchForget { count, pairs: it.rest() })
}

/// The first fields of READ, WRITE and the listings.
fn extent_begun(it: &mut FieldReader<'_>) -> Result<OpenExtent, WireError> {
    Ok(OpenExtent { fh: it.u64()?, offset: it.u64()?, size: it.u32()? })
}

fn extent(it: &mut FieldReader<'_>) -> Result<OpenExtent, WireError> {
    let extent = extent_begun(it)?;
    // Flags of the call, the owner of a lock, flags of the file, padding.
    skip_words(it, 5)?;
    Ok(extent)
}

fn locking(it: &mut FieldReader<'_>) -> Result<Locking, WireError> {
    let (fh, owner, first, last) = (it.u64()?, it.u64()?, it.u64()?, it.u64()?);
    let (kind, process, flags) = (it.u32()?, it.u32()?, it.u32()?);
    Ok(Locking { fh, owner, first, last, kind, process, is_of_flock: flags & abi::lock::OF_FLOCK != 0 })
}

fn mode(it: &mut FieldReader<'_>) -> Result<Mode, WireError> {
    Ok(Mode { mode: it.u32()?, umask: it.u32()? })
}

fn write<'a>(it: &mut FieldReader<'a>) -> Result<FuseOperation<'a>, WireError> {
    let (extent, kind) = (extent_begun(it)?, it.u32()?);
    // The owner of a lock, then the file's flags and padding.
    skip_words(it, 2)?;
    let flags = it.u32()?;
    skip_words(it, 1)?;
    let is_kernels = kind & abi::WRITE_CACHE != 0;
    let append = flags & abi::o::APPEND != 0 && !is_kernels;
    // The kernel syncs mapped pages by a request of its own.
    let synchronous = is_synchronous(flags) && !is_kernels;
    let data = it.rest().get(..extent.size as usize).ok_or(WireError::Truncated)?;
    Ok(FuseOperation::Write { extent, data, append, synchronous, is_kernels })
}

fn set_attributes(it: &mut FieldReader<'_>) -> Result<SetAttributes, WireError> {
    let valid = it.u32()?;
    skip_words(it, 1)?;
    let (fh, size, _lock_owner) = (it.u64()?, it.u64()?, it.u64()?);
    let seconds = (it.u64()?, it.u64()?, it.u64()?);
    let nanos = (it.u32()?, it.u32()?, it.u32()?);
    let mode = it.u32()?;
    skip_words(it, 1)?;
    let (uid, gid) = (it.u32()?, it.u32()?);
    Ok(SetAttributes { valid, fh, size, atime: (seconds.0, nanos.0), mtime: (seconds.1, nanos.1), mode, uid, gid })
}

fn init(it: &mut FieldReader<'_>) -> Result<Init, WireError> {
    let (major, minor, readahead_bytes) = (it.u32()?, it.u32()?, it.u32()?);
    let low = u64::from(it.u32()?);
    // Kernels before 5.17 end here.
    let high = if low & abi::init::INIT_EXT != 0 { u64::from(it.u32()?) } else { 0 };
    Ok(Init { major, minor, readahead_bytes, flags: low | high << 32 })
}

/// The flags, the name and the value of a SETXATTR, from its bytes behind the size and the first flags. `extended` says
/// whether the kernel sends further flags.
pub(crate) fn xattr_value(rest: &[u8], size: u32, extended: bool) -> Result<(u32, &[u8], &[u8]), WireError> {
    let it = &mut FieldReader::new(rest);
    let flags = if extended { it.u32()? } else { 0 };
    skip_words(it, usize::from(extended))?;
    let name = it.name()?;
    Ok((flags, name, it.rest().get(..size as usize).ok_or(WireError::Truncated)?))
}

/// The node and the lookups of each pair of a BATCH_FORGET: no more than the message has.
pub(crate) fn forgotten(count: u32, pairs: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    pairs.chunks_exact(16).take(count as usize).filter_map(|pair| {
        let mut reader = FieldReader::new(pair);
        Some((reader.u64().ok()?, reader.u64().ok()?))
    })
}

/// The caller's further groups, as far as the request's extensions name them: the group of the directory, if the
/// caller is in it.
pub(crate) fn groups(header: &RequestHeader, message: &[u8]) -> Vec<u32> {
    let extensions = message.len().checked_sub(header.extension_bytes).and_then(|at| message.get(at..));
    let mut rest = extensions.unwrap_or_default();
    let mut groups = Vec::new();
    loop {
        let mut it = FieldReader::new(rest);
        let (Ok(len), Ok(kind)) = (it.u32(), it.u32()) else { return groups };
        let len = len as usize;
        if kind == abi::EXTENSION_GROUPS
            && let Ok(count) = it.u32()
        {
            let named = (0..count.min(32)).map_while(|_| it.u32().ok());
            groups.extend(named);
        }
        // An extension without a length would be read for ever.
        match rest.get(len.next_multiple_of(8)..) {
            Some(next) if len > 0 => rest = next,
            _ => return groups,
        }
    }
}

#[cfg(test)]
mod tests;
