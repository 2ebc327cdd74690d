//! The operations of a compound (RFC 8881, RFC 7862), as received.
//!
//! Owns: the check that bytes are the arguments of an operation.
//! Does not own: the numbers of operations (`opnum`); the meaning of an operation (`operations`), of attributes
//! (`attributes`) and of stateids (`state`).
//! Invariants: an operation is read when it is about to run, and reading allocates nothing. Names, owners and data stay
//! in the record, and operations hold their positions there ([`Field`]). A list is bounded by the record that it is in.

use super::opnum;
use super::state::stateids::Stateid;
use crate::limits::OWNER_BYTES_MAX;
use crate::v4::state::slots::{CallbackSecurity, ChannelAttrs, SessionId};
use crate::wire::xdr::{Field, Reader, XdrError};

/// The words of a set of attributes that have a meaning here.
pub(super) const BITMAP_WORDS: usize = 3;
/// Most bytes of a handle.
const HANDLE_BYTES_MAX: usize = 128;
/// Most bytes of the tag that a client gives to a compound.
const TAG_BYTES_MAX: usize = 1024;

/// A set of attributes by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Bitmap {
    pub(super) words: [u32; BITMAP_WORDS],
    /// It has an attribute beyond these words.
    pub(super) has_more: bool,
}

/// New values of attributes, or values to compare with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fattr {
    pub(super) which: Bitmap,
    pub(super) values: Field,
}

/// How OPEN treats a file that is there or not.
#[derive(Clone, Copy, Debug)]
pub(super) enum OpenFlag {
    NoCreate,
    Unchecked(Fattr),
    Guarded(Fattr),
    Exclusive { verifier: [u8; 8], attributes: Option<Fattr> },
}

/// The object of an OPEN.
#[derive(Clone, Copy, Debug)]
pub(super) enum OpenClaim {
    /// A name in the current directory.
    Null(Field),
    /// The current file.
    Fh,
    /// The current file, which the client had open before the server's last end, and the kind of its delegation then: 0
    /// for none, 1 for reading.
    Previous(u32),
    /// A name in the current directory, of a file that the client opens by its delegation.
    DelegateCur(Stateid, Field),
    /// The current file, which the client opens by its delegation.
    DelegCurFh(Stateid),
    /// A right that a delegation of an earlier run of the client gave.
    DelegatePrev,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OpenArgs {
    pub(super) share_access: u32,
    pub(super) share_deny: u32,
    pub(super) open_owner: Field,
    pub(super) how: OpenFlag,
    pub(super) claim: OpenClaim,
}

/// The object that CREATE makes.
#[derive(Clone, Copy, Debug)]
pub(super) enum CreateType {
    Lnk(Field),
    Blk(u32, u32),
    Chr(u32, u32),
    Sock,
    Fifo,
    Dir,
    /// A kind that CREATE does not make.
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ReaddirArgs {
    pub(super) cookie: u64,
    pub(super) verifier: [u8; 8],
    pub(super) names_max: u32,
    pub(super) bytes_max: u32,
    pub(super) attributes: Bitmap,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangeIdArgs {
    pub(super) verifier: [u8; 8],
    pub(super) client_owner: Field,
    pub(super) flags: u32,
    /// 0 is no protection of state, the only kind here.
    pub(super) state_protect: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CreateSessionArgs {
    pub(super) clientid: u64,
    pub(super) sequenceid: u32,
    pub(super) flags: u32,
    pub(super) fore: ChannelAttrs,
    pub(super) back: ChannelAttrs,
    /// None if the client takes no credential that this server has.
    pub(super) calling: Option<CallbackSecurity>,
}

/// The lock of LOCK, LOCKT and LOCKU.
#[derive(Clone, Copy, Debug)]
pub(super) struct LockArgs {
    pub(super) is_exclusive: bool,
    /// The client's program waits for it.
    pub(super) waits: bool,
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// The owner of a LOCK.
#[derive(Clone, Copy, Debug)]
pub(super) enum Locker {
    /// A new one, with its open.
    OpenToLockOwner { open_stateid: Stateid, lock_owner: Field },
    /// One that has a lock of the file already.
    ExistLockOwner(Stateid),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CopyArgs {
    pub(super) from: Stateid,
    pub(super) to: Stateid,
    pub(super) from_offset: u64,
    pub(super) to_offset: u64,
    /// 0 means all to the end.
    pub(super) count: u64,
    pub(super) is_between_servers: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CloneArgs {
    pub(super) from: Stateid,
    pub(super) to: Stateid,
    pub(super) from_offset: u64,
    pub(super) to_offset: u64,
    /// 0 means all to the end.
    pub(super) count: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SequenceArgs {
    pub(super) sessionid: SessionId,
    pub(super) sequenceid: u32,
    pub(super) slotid: u32,
    pub(super) highest_slotid: u32,
    pub(super) cachethis: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ArgOp {
    Access(u32),
    Close(Stateid),
    Commit {
        offset: u64,
        count: u32,
    },
    Create {
        kind: CreateType,
        name: Field,
        attributes: Fattr,
    },
    Delegreturn(Stateid),
    Getattr(Bitmap),
    Getfh,
    Link(Field),
    Lock {
        lock: LockArgs,
        reclaims: bool,
        locker: Locker,
    },
    Lockt {
        lock: LockArgs,
        owner: Field,
    },
    Locku {
        stateid: Stateid,
        offset: u64,
        len: u64,
    },
    Lookup(Field),
    Lookupp,
    Verify {
        values: Fattr,
        are_same: bool,
    },
    Open(OpenArgs),
    OpenDowngrade {
        stateid: Stateid,
        access: u32,
        deny: u32,
    },
    Putfh(Field),
    Putrootfh,
    Read {
        stateid: Stateid,
        offset: u64,
        count: u32,
        /// It is a READ_PLUS, whose result is a list of segments.
        in_segments: bool,
    },
    Readdir(ReaddirArgs),
    Readlink,
    Remove(Field),
    Rename {
        from: Field,
        to: Field,
    },
    Restorefh,
    Savefh,
    Secinfo(Field),
    SecinfoNoName {
        of_parent: bool,
    },
    Setattr {
        stateid: Stateid,
        values: Fattr,
    },
    Write {
        stateid: Stateid,
        offset: u64,
        stability: u32,
        data: Field,
    },
    BackchannelCtl(Option<CallbackSecurity>),
    BindConnToSession {
        session: SessionId,
        direction: u32,
    },
    ExchangeId(ExchangeIdArgs),
    CreateSession(CreateSessionArgs),
    DestroySession(SessionId),
    FreeStateid(Stateid),
    /// Not the first of a compound.
    Sequence,
    /// The stateids start at this offset of the record.
    TestStateid {
        count: u32,
        at: usize,
    },
    DestroyClientid(u64),
    ReclaimComplete {
        one_file_system: bool,
    },
    Allocate {
        stateid: Stateid,
        offset: u64,
        len: u64,
    },
    Deallocate {
        stateid: Stateid,
        offset: u64,
        len: u64,
    },
    Copy(CopyArgs),
    Clone(CloneArgs),
    Seek {
        stateid: Stateid,
        offset: u64,
        what: u32,
    },
    Getxattr(Field),
    Setxattr {
        /// 0: in any case; 1: only a new attribute; 2: only a present one.
        how: u32,
        name: Field,
        value: Field,
    },
    Listxattrs {
        cookie: u64,
        bytes_max: u32,
    },
    Removexattr(Field),
    /// An operation that this server does not have.
    Unsupported,
    /// No operation of this minor version.
    Illegal,
}

/// The beginning of a compound.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) tag: Field,
    pub(super) minor: u32,
    pub(super) count: u32,
    /// Where the first operation starts.
    pub(super) at: usize,
}

/// Reads the beginning of a compound whose arguments start at `at`.
#[inline]
pub(super) fn head(record: &[u8], at: usize) -> Result<Head, XdrError> {
    let mut reader = Reader::starting_at(record, at);
    let tag = reader.opaque_range(TAG_BYTES_MAX)?.into();
    let [minor, count] = reader.words()?;
    Ok(Head { tag, minor, count, at: reader.position() })
}

/// Where the next operation starts, or the error in the arguments of this one.
type Next = Result<usize, XdrError>;

/// Reads the operation that starts at `at` into `operation`, which is large: its number, and where the next one starts.
#[inline]
pub(super) fn read_operation(
    record: &[u8],
    at: usize,
    minor: u32,
    operation: &mut ArgOp,
) -> Result<(u32, Next), XdrError> {
    let mut fields = Fields { reader: Reader::starting_at(record, at) };
    let number = fields.reader.u32()?;
    let read = fields.operation(number, minor, operation);
    Ok((number, read.map(|()| fields.reader.position())))
}

/// Reads a SEQUENCE that starts at `at`, and where the next operation starts. None for another operation, and for a
/// SEQUENCE that is none.
#[inline]
pub(super) fn sequence(record: &[u8], at: usize) -> Option<(SequenceArgs, usize)> {
    let mut fields = Fields { reader: Reader::starting_at(record, at) };
    let Ok(opnum::SEQUENCE) = fields.reader.u32() else { return None };
    let arguments = fields.sequence().ok()?;
    Some((arguments, fields.reader.position()))
}

/// Passes the operations with which most compounds begin, and which have no data in their results: a SEQUENCE, a PUTFH
/// and a WRITE. Returns how many of them are there, and where the next operation starts.
#[inline]
pub(super) fn behind_usual(record: &[u8], at: usize) -> (u32, usize) {
    const SEQUENCE_BYTES: usize = 36;
    /// With the length of its data.
    const WRITE_BYTES: usize = 36;
    let mut reader = Reader::starting_at(record, at);
    let is_sequence = reader.fixed::<SEQUENCE_BYTES>().is_ok_and(|it| it[..4] == opnum::SEQUENCE.to_be_bytes());
    if !is_sequence {
        return (0, at);
    }
    let at = reader.position();
    let Ok([opnum::PUTFH, len]) = reader.words() else { return (1, at) };
    if len as usize > HANDLE_BYTES_MAX || reader.skip_opaque(len as usize).is_err() {
        return (1, at);
    }
    let at = reader.position();
    let Ok(write) = reader.words::<{ WRITE_BYTES / 4 }>() else { return (2, at) };
    let [opnum::WRITE, .., len] = write else { return (2, at) };
    if reader.skip_opaque(len as usize).is_ok() { (3, reader.position()) } else { (2, at) }
}

/// How much data the operation that starts at `at` asks for, if that is known without reading all of it.
#[inline]
pub(super) fn data_asked(record: &[u8], at: usize) -> Option<u32> {
    const BEFORE_COUNT: usize = 24;
    let mut reader = Reader::starting_at(record, at);
    match reader.u32().ok()? {
        opnum::READ | opnum::READ_PLUS => reader.fixed::<BEFORE_COUNT>().and_then(|_| reader.u32()).ok(),
        opnum::READDIR | opnum::READLINK | opnum::GETXATTR | opnum::LISTXATTRS => None,
        _ => Some(0),
    }
}

/// Reads one more stateid of a list.
pub(super) fn stateid_at(record: &[u8], at: usize) -> Result<(Stateid, usize), XdrError> {
    let mut fields = Fields { reader: Reader::starting_at(record, at) };
    Ok((fields.stateid()?, fields.reader.position()))
}

/// Reads a set of attributes. For the values of attributes, too.
#[inline]
pub(super) fn bitmap(reader: &mut Reader<'_>) -> Result<Bitmap, XdrError> {
    match reader.u32()? {
        // As most are.
        2 => {
            let [first, second] = reader.words()?;
            Ok(Bitmap { words: [first, second, 0], has_more: false })
        }
        count => bitmap_of(reader, count),
    }
}

/// Reads a set of attributes of so many words.
#[inline(never)]
fn bitmap_of(reader: &mut Reader<'_>, count: u32) -> Result<Bitmap, XdrError> {
    let mut bitmap = Bitmap::default();
    for word in bitmap.words.iter_mut().take(count as usize) {
        *word = reader.u32()?;
    }
    for _ in BITMAP_WORDS as u32..count {
        bitmap.has_more |= reader.u32()? != 0;
    }
    Ok(bitmap)
}

struct Fields<'a> {
    reader: Reader<'a>,
}

impl Fields<'_> {
    fn operation(&mut self, number: u32, minor: u32, operation: &mut ArgOp) -> Result<(), XdrError> {
        if !opnum::is_known(number, minor) {
            *operation = ArgOp::Illegal;
            return Ok(());
        }
        match number {
            // The usual ones are written in place: a copy of the whole type costs as much as reading one.
            opnum::GETATTR => *operation = ArgOp::Getattr(bitmap(&mut self.reader)?),
            opnum::LOCK => {
                let (kind, reclaims) = (self.lock_kind()?, self.reader.bool("reclaim")?);
                let (lock, locker) = (self.lock(kind)?, self.locker()?);
                *operation = ArgOp::Lock { lock, reclaims, locker };
            }
            opnum::LOCKU => {
                let (_kind, _seqid, stateid) = (self.lock_kind()?, self.reader.u32()?, self.stateid()?);
                let (offset, len) = (self.reader.u64()?, self.reader.u64()?);
                *operation = ArgOp::Locku { stateid, offset, len };
            }
            opnum::PUTFH => *operation = ArgOp::Putfh(self.reader.opaque_range(HANDLE_BYTES_MAX)?.into()),
            opnum::READ | opnum::READ_PLUS => {
                let (stateid, [high, low, count]) = (self.stateid()?, self.reader.words()?);
                let offset = u64::from(high) << 32 | u64::from(low);
                *operation = ArgOp::Read { stateid, offset, count, in_segments: number == opnum::READ_PLUS };
            }
            opnum::WRITE => {
                let (stateid, offset) = (self.stateid()?, self.reader.u64()?);
                let (stability, data) = (self.one_of("stable_how4", 2)?, self.counted()?);
                *operation = ArgOp::Write { stateid, offset, stability, data };
            }
            opnum::SEQUENCE => {
                self.sequence()?;
                *operation = ArgOp::Sequence;
            }
            _ => return self.other(number, operation),
        }
        Ok(())
    }

    #[inline]
    fn sequence(&mut self) -> Result<SequenceArgs, XdrError> {
        let (sessionid, [sequenceid, slotid, highest_slotid]) = (self.reader.fixed()?, self.reader.words()?);
        let cachethis = self.reader.bool("sa_cachethis")?;
        Ok(SequenceArgs { sessionid, sequenceid, slotid, highest_slotid, cachethis })
    }

    // Apart, since it needs many registers, and the usual ones do not.
    #[inline(never)]
    fn other(&mut self, number: u32, operation: &mut ArgOp) -> Result<(), XdrError> {
        *operation = match number {
            opnum::ACCESS => ArgOp::Access(self.reader.u32()?),
            opnum::CLOSE => {
                let _seqid = self.reader.u32()?;
                ArgOp::Close(self.stateid()?)
            }
            opnum::COMMIT => ArgOp::Commit { offset: self.reader.u64()?, count: self.reader.u32()? },
            opnum::CREATE => {
                ArgOp::Create { kind: self.new_kind()?, name: self.counted()?, attributes: self.values()? }
            }
            opnum::DELEGRETURN => ArgOp::Delegreturn(self.stateid()?),
            opnum::GETFH => ArgOp::Getfh,
            opnum::LINK => ArgOp::Link(self.counted()?),
            opnum::LOCKT => {
                let kind = self.lock_kind()?;
                let lock = self.lock(kind)?;
                let _client = self.reader.u64()?;
                ArgOp::Lockt { lock, owner: self.reader.opaque_range(OWNER_BYTES_MAX)?.into() }
            }
            opnum::LOOKUP => ArgOp::Lookup(self.counted()?),
            opnum::LOOKUPP => ArgOp::Lookupp,
            opnum::NVERIFY => ArgOp::Verify { values: self.values()?, are_same: false },
            opnum::OPEN => ArgOp::Open(self.open()?),
            opnum::OPEN_DOWNGRADE => {
                let stateid = self.stateid()?;
                let _seqid = self.reader.u32()?;
                ArgOp::OpenDowngrade { stateid, access: self.reader.u32()?, deny: self.reader.u32()? }
            }
            opnum::PUTPUBFH | opnum::PUTROOTFH => ArgOp::Putrootfh,
            opnum::READDIR => ArgOp::Readdir(self.readdir()?),
            opnum::READLINK => ArgOp::Readlink,
            opnum::REMOVE => ArgOp::Remove(self.counted()?),
            opnum::RENAME => ArgOp::Rename { from: self.counted()?, to: self.counted()? },
            opnum::RESTOREFH => ArgOp::Restorefh,
            opnum::SAVEFH => ArgOp::Savefh,
            opnum::SECINFO => ArgOp::Secinfo(self.counted()?),
            opnum::SETATTR => ArgOp::Setattr { stateid: self.stateid()?, values: self.values()? },
            opnum::VERIFY => ArgOp::Verify { values: self.values()?, are_same: true },
            opnum::BACKCHANNEL_CTL => ArgOp::BackchannelCtl(self.calling()?),
            opnum::BIND_CONN_TO_SESSION => {
                let session = self.reader.fixed()?;
                let direction = self.reader.u32()?;
                let _uses_rdma = self.reader.bool("bctsa_use_conn_in_rdma_mode")?;
                ArgOp::BindConnToSession { session, direction }
            }
            opnum::EXCHANGE_ID => ArgOp::ExchangeId(self.exchange_id()?),
            opnum::CREATE_SESSION => ArgOp::CreateSession(self.create_session()?),
            opnum::DESTROY_SESSION => ArgOp::DestroySession(self.reader.fixed()?),
            opnum::FREE_STATEID => ArgOp::FreeStateid(self.stateid()?),
            opnum::SECINFO_NO_NAME => ArgOp::SecinfoNoName { of_parent: self.one_of("secinfo_style4", 1)? == 1 },
            opnum::TEST_STATEID => self.stateids()?,
            opnum::DESTROY_CLIENTID => ArgOp::DestroyClientid(self.reader.u64()?),
            opnum::RECLAIM_COMPLETE => ArgOp::ReclaimComplete { one_file_system: self.reader.bool("rca_one_fs")? },
            opnum::ALLOCATE => {
                ArgOp::Allocate { stateid: self.stateid()?, offset: self.reader.u64()?, len: self.reader.u64()? }
            }
            opnum::COPY => ArgOp::Copy(self.copy()?),
            opnum::CLONE => {
                let (from, to) = (self.stateid()?, self.stateid()?);
                let (from_offset, to_offset, count) = (self.reader.u64()?, self.reader.u64()?, self.reader.u64()?);
                ArgOp::Clone(CloneArgs { from, to, from_offset, to_offset, count })
            }
            opnum::DEALLOCATE => {
                ArgOp::Deallocate { stateid: self.stateid()?, offset: self.reader.u64()?, len: self.reader.u64()? }
            }
            opnum::SEEK => {
                ArgOp::Seek { stateid: self.stateid()?, offset: self.reader.u64()?, what: self.reader.u32()? }
            }
            opnum::GETXATTR => ArgOp::Getxattr(self.counted()?),
            opnum::SETXATTR => {
                let how = self.one_of("setxattr_option4", 2)?;
                ArgOp::Setxattr { how, name: self.counted()?, value: self.counted()? }
            }
            opnum::LISTXATTRS => ArgOp::Listxattrs { cookie: self.reader.u64()?, bytes_max: self.reader.u32()? },
            opnum::REMOVEXATTR => ArgOp::Removexattr(self.counted()?),
            _ => ArgOp::Unsupported,
        };
        Ok(())
    }

    fn copy(&mut self) -> Result<CopyArgs, XdrError> {
        let (from, to) = (self.stateid()?, self.stateid()?);
        let (from_offset, to_offset, count) = (self.reader.u64()?, self.reader.u64()?, self.reader.u64()?);
        let (_in_order, _waits) = (self.reader.bool("ca_consecutive")?, self.reader.bool("ca_synchronous")?);
        // Where the source is on another server, its offsets do not matter, nor what comes after them.
        let is_between_servers = self.reader.u32()? > 0;
        Ok(CopyArgs { from, to, from_offset, to_offset, count, is_between_servers })
    }

    /// A counted run of bytes, limited here only by the record; its use may have a lower limit.
    fn counted(&mut self) -> Result<Field, XdrError> {
        Ok(self.reader.opaque_range(usize::MAX)?.into())
    }

    /// A value of an enumeration from 0 to `last`.
    fn one_of(&mut self, field: &'static str, last: u32) -> Result<u32, XdrError> {
        let value = self.reader.u32()?;
        if value <= last { Ok(value) } else { Err(XdrError::Value { field, value }) }
    }

    fn stateid(&mut self) -> Result<Stateid, XdrError> {
        let bytes: [u8; 16] = self.reader.fixed()?;
        let [s0, s1, s2, s3, other @ ..] = bytes;
        Ok(Stateid { seqid: u32::from_be_bytes([s0, s1, s2, s3]), other })
    }

    fn values(&mut self) -> Result<Fattr, XdrError> {
        Ok(Fattr { which: bitmap(&mut self.reader)?, values: self.counted()? })
    }

    fn new_kind(&mut self) -> Result<CreateType, XdrError> {
        let kind = self.reader.u32()?;
        Ok(match kind {
            2 => CreateType::Dir,
            3 => CreateType::Blk(self.reader.u32()?, self.reader.u32()?),
            4 => CreateType::Chr(self.reader.u32()?, self.reader.u32()?),
            5 => CreateType::Lnk(self.counted()?),
            6 => CreateType::Sock,
            7 => CreateType::Fifo,
            1 | 8 | 9 => CreateType::Other,
            value => return Err(XdrError::Value { field: "nfs_ftype4", value }),
        })
    }

    fn open(&mut self) -> Result<OpenArgs, XdrError> {
        let _seqid = self.reader.u32()?;
        let (share_access, share_deny) = (self.reader.u32()?, self.reader.u32()?);
        let _client = self.reader.u64()?;
        let open_owner = self.reader.opaque_range(OWNER_BYTES_MAX)?.into();
        let how = match self.one_of("opentype4", 1)? {
            0 => OpenFlag::NoCreate,
            _ => self.creation()?,
        };
        let claim = match self.one_of("open_claim_type4", 6)? {
            0 => OpenClaim::Null(self.counted()?),
            1 => OpenClaim::Previous(self.reader.u32()?),
            2 => OpenClaim::DelegateCur(self.stateid()?, self.counted()?),
            3 => {
                let _name = self.counted()?;
                OpenClaim::DelegatePrev
            }
            4 => OpenClaim::Fh,
            5 => OpenClaim::DelegCurFh(self.stateid()?),
            _ => OpenClaim::DelegatePrev,
        };
        Ok(OpenArgs { share_access, share_deny, open_owner, how, claim })
    }

    fn creation(&mut self) -> Result<OpenFlag, XdrError> {
        Ok(match self.one_of("createmode4", 3)? {
            0 => OpenFlag::Unchecked(self.values()?),
            1 => OpenFlag::Guarded(self.values()?),
            2 => OpenFlag::Exclusive { verifier: self.reader.fixed()?, attributes: None },
            _ => OpenFlag::Exclusive { verifier: self.reader.fixed()?, attributes: Some(self.values()?) },
        })
    }

    fn lock_kind(&mut self) -> Result<u32, XdrError> {
        match self.reader.u32()? {
            kind @ 1..=4 => Ok(kind),
            value => Err(XdrError::Value { field: "nfs_lock_type4", value }),
        }
    }

    /// Kinds are reading and writing, and then the same for a program that waits.
    fn lock(&mut self, kind: u32) -> Result<LockArgs, XdrError> {
        let (offset, len) = (self.reader.u64()?, self.reader.u64()?);
        Ok(LockArgs { is_exclusive: kind.is_multiple_of(2), waits: kind > 2, offset, len })
    }

    fn locker(&mut self) -> Result<Locker, XdrError> {
        if !self.reader.bool("new_lock_owner")? {
            let stateid = self.stateid()?;
            let _seqid = self.reader.u32()?;
            return Ok(Locker::ExistLockOwner(stateid));
        }
        let _seqid = self.reader.u32()?;
        let open_stateid = self.stateid()?;
        let (_seqid, _client) = (self.reader.u32()?, self.reader.u64()?);
        Ok(Locker::OpenToLockOwner { open_stateid, lock_owner: self.reader.opaque_range(OWNER_BYTES_MAX)?.into() })
    }

    fn readdir(&mut self) -> Result<ReaddirArgs, XdrError> {
        Ok(ReaddirArgs {
            cookie: self.reader.u64()?,
            verifier: self.reader.fixed()?,
            names_max: self.reader.u32()?,
            bytes_max: self.reader.u32()?,
            attributes: bitmap(&mut self.reader)?,
        })
    }

    fn exchange_id(&mut self) -> Result<ExchangeIdArgs, XdrError> {
        let verifier = self.reader.fixed()?;
        let client_owner = self.reader.opaque_range(OWNER_BYTES_MAX)?.into();
        let flags = self.reader.u32()?;
        let state_protect = self.one_of("state_protect_how4", 2)?;
        // A stronger protection is refused, so that its arguments do not matter, nor what comes after them.
        if state_protect == 0 {
            let implementations = self.reader.u32()?;
            if implementations > 1 {
                return Err(XdrError::Value { field: "eia_client_impl_id", value: implementations });
            }
            for _ in 0..implementations {
                let (_domain, _name) = (self.counted()?, self.counted()?);
                let (_seconds, _nanos) = (self.reader.u64()?, self.reader.u32()?);
            }
        }
        Ok(ExchangeIdArgs { verifier, client_owner, flags, state_protect })
    }

    fn channel(&mut self) -> Result<ChannelAttrs, XdrError> {
        let _header_padding = self.reader.u32()?;
        let channel = ChannelAttrs {
            maxrequestsize: self.reader.u32()?,
            maxresponsesize: self.reader.u32()?,
            maxresponsesize_cached: self.reader.u32()?,
            maxoperations: self.reader.u32()?,
            maxrequests: self.reader.u32()?,
        };
        let rdma = self.reader.u32()?;
        if rdma > 1 {
            return Err(XdrError::Value { field: "ca_rdma_ird", value: rdma });
        }
        for _ in 0..rdma {
            self.reader.u32()?;
        }
        Ok(channel)
    }

    fn create_session(&mut self) -> Result<CreateSessionArgs, XdrError> {
        let (clientid, sequenceid, flags) = (self.reader.u64()?, self.reader.u32()?, self.reader.u32()?);
        let (fore, back) = (self.channel()?, self.channel()?);
        let calling = self.calling()?;
        Ok(CreateSessionArgs { clientid, sequenceid, flags, fore, back, calling })
    }

    /// The client's program, and its first credential by which this server can call it.
    fn calling(&mut self) -> Result<Option<CallbackSecurity>, XdrError> {
        const GSS: u32 = 6;
        let program = self.reader.u32()?;
        let mut calling = None;
        for _ in 0..self.reader.u32()? {
            match self.reader.u32()? {
                0 => {
                    calling.get_or_insert(CallbackSecurity { program, user: None });
                }
                1 => {
                    let _stamp = self.reader.u32()?;
                    let _machine = self.counted()?;
                    let user = (self.reader.u32()?, self.reader.u32()?);
                    for _ in 0..self.reader.u32()? {
                        self.reader.u32()?;
                    }
                    calling.get_or_insert(CallbackSecurity { program, user: Some(user) });
                }
                GSS => {
                    let _service = self.reader.u32()?;
                    let (_of_server, _of_client) = (self.counted()?, self.counted()?);
                }
                value => return Err(XdrError::Value { field: "callback_sec_parms4", value }),
            }
        }
        Ok(calling)
    }

    fn stateids(&mut self) -> Result<ArgOp, XdrError> {
        let count = self.reader.u32()?;
        let at = self.reader.position();
        for _ in 0..count {
            self.stateid()?;
        }
        Ok(ArgOp::TestStateid { count, at })
    }
}

#[cfg(test)]
mod tests;
