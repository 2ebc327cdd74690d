//! The arguments of the 22 procedures of NFSv3 (RFC 1813, section 3.3), as received.
//!
//! Owns: the check that bytes are arguments of a procedure at all; others are refused as garbage.
//! Does not own: the meaning of a well-formed call (the procedures).
//! Invariants: a call is decoded once. Fields, names and data stay in the received record, and the arguments hold their
//! positions there ([`Field`]). So the arguments go along with the record of a waiting call. Bytes after the last
//! argument are ignored, as in other servers. A WRITE that was too long to be received whole has only the received part
//! of its data.

use afflux_frontend::trace::TracedOperation;
use afflux_volume::{AttributeChange, SetTime, SpecialKind, Timestamp};

use crate::limits::{HANDLE_BYTES_MAX, LISTING_BYTES_MAX, READ_BYTES_MAX};
use crate::operations::Stability;
use crate::wire::record::RECORD_BYTES_MAX;
use crate::wire::xdr::{Field, Reader, XdrError};

/// The names of the procedures by number, as counters.
pub(crate) const PROCEDURES: [&str; 22] = [
    "nfs_null",
    "nfs_getattr",
    "nfs_setattr",
    "nfs_lookup",
    "nfs_access",
    "nfs_readlink",
    "nfs_read",
    "nfs_write",
    "nfs_create",
    "nfs_mkdir",
    "nfs_symlink",
    "nfs_mknod",
    "nfs_remove",
    "nfs_rmdir",
    "nfs_rename",
    "nfs_link",
    "nfs_readdir",
    "nfs_readdirplus",
    "nfs_fsstat",
    "nfs_fsinfo",
    "nfs_pathconf",
    "nfs_commit",
];

/// How a procedure uses a file's bytes.
pub(crate) fn traced(procedure: usize) -> Option<TracedOperation> {
    match procedure {
        6 => Some(TracedOperation::Read),
        7 => Some(TracedOperation::Write),
        21 => Some(TracedOperation::Sync),
        _ => None,
    }
}

/// A name in a directory.
#[derive(Clone, Copy)]
pub(crate) struct DirOpArgs {
    pub(crate) directory: Field,
    pub(crate) name: Field,
}

/// How CREATE treats an existing file.
pub(crate) enum Creation {
    Unchecked(AttributeChange),
    Guarded(AttributeChange),
    Exclusive([u8; 8]),
}

/// The node that MKNOD makes.
pub(crate) enum MadeNode {
    Special(SpecialKind, AttributeChange),
    /// A kind that another procedure makes.
    OtherKind,
}

/// The range of bytes of a READ, WRITE or COMMIT.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) offset: u64,
    pub(crate) count: u32,
}

/// The request for a listing. Sizes are bytes.
#[derive(Clone, Copy)]
pub(crate) struct ListingRequest {
    pub(crate) cookie: u64,
    /// Most bytes of names, file numbers and cookies.
    pub(crate) directory_bytes_max: u32,
    /// Most bytes of the results, status not counted.
    pub(crate) result_bytes_max: u32,
    /// Whether the procedure is READDIRPLUS.
    pub(crate) with_attributes: bool,
}

/// A call of NFS.
pub(crate) struct NfsCall {
    /// The first argument; NULL alone has none.
    pub(crate) handle: Option<Field>,
    pub(crate) arguments: Arguments,
}

/// The arguments of a call behind the first handle.
pub(crate) enum Arguments {
    Null,
    GetAttributes,
    SetAttributes { change: AttributeChange, guard: Option<Timestamp> },
    Lookup { name: Field },
    Access { wanted: u32 },
    ReadLink,
    Read(Extent),
    Write { extent: Extent, stability: Stability, data: Field },
    Create { name: Field, creation: Creation },
    MakeDirectory { name: Field, change: AttributeChange },
    Symlink { name: Field, change: AttributeChange, target: Field },
    MakeNode { name: Field, node: MadeNode },
    Remove { name: Field },
    RemoveDirectory { name: Field },
    Rename { name: Field, to: DirOpArgs },
    Link(DirOpArgs),
    List(ListingRequest),
    FileSystemSpace,
    FileSystemInformation,
    PathLimits,
    Commit(Extent),
}

impl Arguments {
    /// Whether a second run of the call could have another effect or answer than the first, so that the server must
    /// cache its reply for a client that sends the call again. Every SETATTR and every CREATE but the exclusive one
    /// counts, not only the guarded ones: a late repetition of a truncation would cut off newer data.
    pub(crate) fn needs_cached_reply(&self) -> bool {
        match self {
            Self::Create { creation, .. } => !matches!(creation, Creation::Exclusive(_)),
            Self::SetAttributes { .. }
            | Self::MakeDirectory { .. }
            | Self::Symlink { .. }
            | Self::MakeNode { .. }
            | Self::Remove { .. }
            | Self::RemoveDirectory { .. }
            | Self::Rename { .. }
            | Self::Link(_) => true,
            _ => false,
        }
    }

    /// The number of the procedure.
    pub(crate) fn procedure(&self) -> u32 {
        match self {
            Self::Null => 0,
            Self::GetAttributes => 1,
            Self::SetAttributes { .. } => 2,
            Self::Lookup { .. } => 3,
            Self::Access { .. } => 4,
            Self::ReadLink => 5,
            Self::Read(_) => 6,
            Self::Write { .. } => 7,
            Self::Create { .. } => 8,
            Self::MakeDirectory { .. } => 9,
            Self::Symlink { .. } => 10,
            Self::MakeNode { .. } => 11,
            Self::Remove { .. } => 12,
            Self::RemoveDirectory { .. } => 13,
            Self::Rename { .. } => 14,
            Self::Link(_) => 15,
            Self::List(request) => 16 + u32::from(request.with_attributes),
            Self::FileSystemSpace => 18,
            Self::FileSystemInformation => 19,
            Self::PathLimits => 20,
            Self::Commit(_) => 21,
        }
    }

    /// The number of optional attributes in the results of a call that failed before it read any.
    pub(crate) fn absent_attributes(&self) -> usize {
        match self {
            Self::Null | Self::GetAttributes => 0,
            Self::Lookup { .. } | Self::Access { .. } | Self::ReadLink | Self::Read(_) | Self::List(_) => 1,
            Self::FileSystemSpace | Self::FileSystemInformation | Self::PathLimits => 1,
            Self::Link(_) => 3,
            Self::Rename { .. } => 4,
            _ => 2,
        }
    }

    /// Limits the data in the reply to `bytes_max` bytes.
    pub(crate) fn shorten(&mut self, bytes_max: u32) {
        match self {
            Self::Read(extent) => extent.count = extent.count.min(bytes_max),
            Self::List(request) => {
                request.result_bytes_max = request.result_bytes_max.min(bytes_max);
                request.directory_bytes_max = request.directory_bytes_max.min(bytes_max);
            }
            _ => {}
        }
    }

    /// Most bytes of data that the reply will have.
    pub(crate) fn reply_bytes_max(&self) -> u32 {
        match self {
            Self::Read(extent) => extent.count.min(READ_BYTES_MAX),
            Self::List(request) => request.result_bytes_max,
            _ => 0,
        }
    }

    /// Reads the arguments of `procedure`, a number below 22, which start at `at` of `record`.
    ///
    /// # Panics
    /// When there is no such procedure; the caller must have refused such a call.
    pub(crate) fn decode(procedure: u32, record: &[u8], at: usize) -> Result<NfsCall, XdrError> {
        let fields = &mut Fields { reader: Reader::starting_at(record, at), is_whole: record.len() < RECORD_BYTES_MAX };
        if procedure == 0 {
            return Ok(NfsCall { handle: None, arguments: Self::Null });
        }
        let handle = Some(fields.handle()?);
        Ok(NfsCall {
            handle,
            arguments: match procedure {
                1 => Self::GetAttributes,
                2 => fields.set_attributes()?,
                3 => Self::Lookup { name: fields.remaining()? },
                4 => Self::Access { wanted: fields.reader.u32()? },
                5 => Self::ReadLink,
                6 => Self::Read(fields.extent()?),
                7 => fields.write()?,
                8 => Self::Create { name: fields.remaining()?, creation: fields.creation()? },
                9 => Self::MakeDirectory { name: fields.remaining()?, change: fields.change()? },
                10 => {
                    Self::Symlink { name: fields.remaining()?, change: fields.change()?, target: fields.remaining()? }
                }
                11 => Self::MakeNode { name: fields.remaining()?, node: fields.node()? },
                12 => Self::Remove { name: fields.remaining()? },
                13 => Self::RemoveDirectory { name: fields.remaining()? },
                14 => Self::Rename { name: fields.remaining()?, to: fields.diropargs()? },
                15 => Self::Link(fields.diropargs()?),
                16 => fields.listing(false)?,
                17 => fields.listing(true)?,
                18 => Self::FileSystemSpace,
                19 => Self::FileSystemInformation,
                20 => Self::PathLimits,
                21 => Self::Commit(fields.extent()?),
                _ => unreachable!("procedure {procedure} of NFS, which has 22"),
            },
        })
    }
}

/// Reads the fields of arguments.
struct Fields<'a> {
    reader: Reader<'a>,
    /// The record was received whole.
    is_whole: bool,
}

impl Fields<'_> {
    fn handle(&mut self) -> Result<Field, XdrError> {
        Ok(self.reader.opaque_range(HANDLE_BYTES_MAX)?.into())
    }

    /// A counted run of bytes, limited here only by the record; its use may have a lower limit.
    fn remaining(&mut self) -> Result<Field, XdrError> {
        Ok(self.reader.opaque_range(usize::MAX)?.into())
    }

    fn diropargs(&mut self) -> Result<DirOpArgs, XdrError> {
        Ok(DirOpArgs { directory: self.handle()?, name: self.remaining()? })
    }

    fn extent(&mut self) -> Result<Extent, XdrError> {
        Ok(Extent { offset: self.reader.u64()?, count: self.reader.u32()? })
    }

    fn time(&mut self) -> Result<Timestamp, XdrError> {
        let (seconds, nanos) = (self.reader.u32()?, self.reader.u32()?);
        Ok(Timestamp { seconds: seconds.into(), nanos })
    }

    fn set_time(&mut self) -> Result<SetTime, XdrError> {
        Ok(match self.reader.u32()? {
            0 => SetTime::Keep,
            1 => SetTime::ServerNow,
            2 => SetTime::To(self.time()?),
            value => return Err(XdrError::Value { field: "time_how", value }),
        })
    }

    fn optional_u32(&mut self, field: &'static str) -> Result<Option<u32>, XdrError> {
        Ok(if self.reader.bool(field)? { Some(self.reader.u32()?) } else { None })
    }

    fn change(&mut self) -> Result<AttributeChange, XdrError> {
        const PERMISSION_BITS: u32 = 0o7777;
        Ok(AttributeChange {
            mode: self.optional_u32("set_mode")?.map(|mode| mode & PERMISSION_BITS),
            umask: 0,
            uid: self.optional_u32("set_uid")?,
            gid: self.optional_u32("set_gid")?,
            size: if self.reader.bool("set_size")? { Some(self.reader.u64()?) } else { None },
            atime: self.set_time()?,
            mtime: self.set_time()?,
        })
    }

    fn set_attributes(&mut self) -> Result<Arguments, XdrError> {
        let change = self.change()?;
        let guard = if self.reader.bool("sattrguard")? { Some(self.time()?) } else { None };
        Ok(Arguments::SetAttributes { change, guard })
    }

    fn write(&mut self) -> Result<Arguments, XdrError> {
        let extent = self.extent()?;
        let stability = match self.reader.u32()? {
            0 => Stability::Unstable,
            1 => Stability::DataSync,
            2 => Stability::FileSync,
            value => return Err(XdrError::Value { field: "stable_how", value }),
        };
        let data = if self.is_whole { self.remaining()? } else { self.reader.opaque_beginning()?.into() };
        Ok(Arguments::Write { extent, stability, data })
    }

    fn creation(&mut self) -> Result<Creation, XdrError> {
        Ok(match self.reader.u32()? {
            0 => Creation::Unchecked(self.change()?),
            1 => Creation::Guarded(self.change()?),
            2 => Creation::Exclusive(self.reader.fixed()?),
            value => return Err(XdrError::Value { field: "createmode", value }),
        })
    }

    fn node(&mut self) -> Result<MadeNode, XdrError> {
        const FIRST: u32 = 1;
        const BLOCK: u32 = 3;
        const CHARACTER: u32 = 4;
        const SOCKET: u32 = 6;
        const FIFO: u32 = 7;
        let kind = self.reader.u32()?;
        if !(FIRST..=FIFO).contains(&kind) {
            return Err(XdrError::Value { field: "ftype", value: kind });
        }
        if !matches!(kind, BLOCK | CHARACTER | SOCKET | FIFO) {
            return Ok(MadeNode::OtherKind);
        }
        let change = self.change()?;
        Ok(match kind {
            SOCKET => MadeNode::Special(SpecialKind::Socket, change),
            FIFO => MadeNode::Special(SpecialKind::Fifo, change),
            _ => {
                let (major, minor) = (self.reader.u32()?, self.reader.u32()?);
                let kind = if kind == BLOCK {
                    SpecialKind::BlockDevice { major, minor }
                } else {
                    SpecialKind::CharDevice { major, minor }
                };
                MadeNode::Special(kind, change)
            }
        })
    }

    fn listing(&mut self, with_attributes: bool) -> Result<Arguments, XdrError> {
        let cookie = self.reader.u64()?;
        // The client's copy of the verifier is ignored: cookies stay valid while entries come and go.
        let _verifier: [u8; 8] = self.reader.fixed()?;
        let first = self.reader.u32()?;
        let second = if with_attributes { self.reader.u32()? } else { first };
        Ok(Arguments::List(ListingRequest {
            cookie,
            directory_bytes_max: if with_attributes { first } else { u32::MAX },
            result_bytes_max: second.min(LISTING_BYTES_MAX),
            with_attributes,
        }))
    }
}

#[cfg(test)]
mod tests;
