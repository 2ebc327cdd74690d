//! The operations of a compound (RFC 8881, RFC 7862), as received.
//!
//! Owns: the check that bytes are the arguments of an operation; the numbers and names of operations.
//! Does not own: the meaning of an operation (`operations`), of attributes (`attributes`) and of stateids (`state`).
//! Invariants: an operation is read when its turn comes, and reading allocates nothing. Names, owners and data stay in
//! the record, and operations hold their places there ([`Field`]). A list is bounded by the record that it is in.

use super::state::agreed::{Calling, Channel, SessionId};
use super::state::stateids::Stateid;
use crate::limits::OWNER_BYTES_MAX;
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
pub(super) struct AttributeValues {
    pub(super) which: Bitmap,
    pub(super) values: Field,
}

/// How OPEN treats a file that is there or not.
#[derive(Clone, Copy, Debug)]
pub(super) enum OpenHow {
    NoCreate,
    Unchecked(AttributeValues),
    Guarded(AttributeValues),
    Exclusive { verifier: [u8; 8], attributes: Option<AttributeValues> },
}

/// The object of an OPEN.
#[derive(Clone, Copy, Debug)]
pub(super) enum Claim {
    /// A name in the current directory.
    Name(Field),
    /// The current file.
    Current,
    /// The current file, which the client had open before the server's last end.
    Previous,
    /// A right that only a delegation gives.
    OfDelegation,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OpenArguments {
    pub(super) access: u32,
    pub(super) deny: u32,
    pub(super) owner: Field,
    pub(super) how: OpenHow,
    pub(super) claim: Claim,
}

/// The object that CREATE makes.
#[derive(Clone, Copy, Debug)]
pub(super) enum NewKind {
    Link(Field),
    Block(u32, u32),
    Character(u32, u32),
    Socket,
    Fifo,
    Directory,
    /// A kind that CREATE does not make.
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ListArguments {
    pub(super) cookie: u64,
    pub(super) verifier: [u8; 8],
    pub(super) names_max: u32,
    pub(super) bytes_max: u32,
    pub(super) attributes: Bitmap,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct IntroductionArguments {
    pub(super) verifier: [u8; 8],
    pub(super) owner: Field,
    pub(super) flags: u32,
    /// 0 is no protection of state, the only kind here.
    pub(super) protection: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SessionArguments {
    pub(super) client: u64,
    pub(super) sequence: u32,
    pub(super) flags: u32,
    pub(super) fore: Channel,
    pub(super) back: Channel,
    /// None if the client takes no credential that this server has.
    pub(super) calling: Option<Calling>,
}

/// The lock of LOCK, LOCKT and LOCKU.
#[derive(Clone, Copy, Debug)]
pub(super) struct LockArguments {
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
    New { open: Stateid, owner: Field },
    /// One that has a lock of the file already.
    Known(Stateid),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CopyArguments {
    pub(super) from: Stateid,
    pub(super) to: Stateid,
    pub(super) from_offset: u64,
    pub(super) to_offset: u64,
    /// 0 means all to the end.
    pub(super) count: u64,
    pub(super) is_between_servers: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SequenceArguments {
    pub(super) session: SessionId,
    pub(super) sequence: u32,
    pub(super) slot: u32,
    pub(super) highest: u32,
    pub(super) keeps: bool,
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum CompoundOperation {
    Access(u32),
    Close(Stateid),
    Commit {
        offset: u64,
        count: u32,
    },
    Create {
        kind: NewKind,
        name: Field,
        attributes: AttributeValues,
    },
    GetAttributes(Bitmap),
    GetHandle,
    Link(Field),
    Lock {
        lock: LockArguments,
        reclaims: bool,
        locker: Locker,
    },
    TestLock {
        lock: LockArguments,
        owner: Field,
    },
    Unlock {
        stateid: Stateid,
        offset: u64,
        len: u64,
    },
    Lookup(Field),
    LookupParent,
    Verify {
        values: AttributeValues,
        are_same: bool,
    },
    Open(OpenArguments),
    Downgrade {
        stateid: Stateid,
        access: u32,
        deny: u32,
    },
    PutHandle(Field),
    PutRoot,
    Read {
        stateid: Stateid,
        offset: u64,
        count: u32,
        /// It is a READ_PLUS, whose result is a list of segments.
        in_segments: bool,
    },
    List(ListArguments),
    ReadLink,
    Remove(Field),
    Rename {
        from: Field,
        to: Field,
    },
    Restore,
    Save,
    Security(Field),
    SecurityOfCurrent {
        of_parent: bool,
    },
    SetAttributes {
        stateid: Stateid,
        values: AttributeValues,
    },
    Write {
        stateid: Stateid,
        offset: u64,
        stability: u32,
        data: Field,
    },
    BackChannel(Option<Calling>),
    Bind {
        session: SessionId,
        direction: u32,
    },
    Introduce(IntroductionArguments),
    CreateSession(SessionArguments),
    DestroySession(SessionId),
    FreeStateid(Stateid),
    /// Not the first of a compound.
    Sequence,
    /// The stateids start at this place of the record.
    TestStateids {
        count: u32,
        at: usize,
    },
    DestroyClient(u64),
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
    Copy(CopyArguments),
    Seek {
        stateid: Stateid,
        offset: u64,
        what: u32,
    },
    GetXattr(Field),
    SetXattr {
        /// 0: in any case; 1: only a new attribute; 2: only a present one.
        how: u32,
        name: Field,
        value: Field,
    },
    ListXattrs {
        cookie: u64,
        bytes_max: u32,
    },
    RemoveXattr(Field),
    /// An operation that this server does not have.
    Unsupported,
    /// No operation of this minor version.
    Illegal,
}

/// The numbers of operations that are told apart by number.
pub(super) mod number {
    pub(super) const PUTFH: u32 = 22;
    pub(super) const WRITE: u32 = 38;
    pub(in super::super) const BIND: u32 = 41;
    pub(in super::super) const EXCHANGE_ID: u32 = 42;
    pub(in super::super) const CREATE_SESSION: u32 = 43;
    pub(in super::super) const DESTROY_SESSION: u32 = 44;
    pub(in super::super) const SEQUENCE: u32 = 53;
    pub(in super::super) const DESTROY_CLIENTID: u32 = 57;
    pub(in super::super) const ILLEGAL: u32 = 10_044;
    /// The first and the last of 4.0 and 4.1, and the last of 4.2 with extended attributes.
    pub(super) const FIRST: u32 = 3;
    pub(super) const LAST_OF_1: u32 = 58;
    pub(super) const LAST_OF_2: u32 = 75;
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
    let tag = reader.opaque_place(TAG_BYTES_MAX)?.into();
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
    operation: &mut CompoundOperation,
) -> Result<(u32, Next), XdrError> {
    let mut fields = Fields { reader: Reader::starting_at(record, at) };
    let number = fields.reader.u32()?;
    let read = fields.operation(number, minor, operation);
    Ok((number, read.map(|()| fields.reader.position())))
}

/// Reads a SEQUENCE that starts at `at`, and where the next operation starts. None for another operation, and for a
/// SEQUENCE that is none.
#[inline]
pub(super) fn sequence(record: &[u8], at: usize) -> Option<(SequenceArguments, usize)> {
    let mut fields = Fields { reader: Reader::starting_at(record, at) };
    let Ok(number::SEQUENCE) = fields.reader.u32() else { return None };
    let arguments = fields.sequence().ok()?;
    Some((arguments, fields.reader.position()))
}

/// Passes the operations with which most compounds begin, and which have no data in their results: a SEQUENCE, a PUTFH
/// and a WRITE. Tells how many of them are there, and where the next operation starts.
#[inline]
pub(super) fn behind_usual(record: &[u8], at: usize) -> (u32, usize) {
    const SEQUENCE_BYTES: usize = 36;
    /// With the length of its data.
    const WRITE_BYTES: usize = 36;
    let mut reader = Reader::starting_at(record, at);
    let is_sequence = reader.fixed::<SEQUENCE_BYTES>().is_ok_and(|it| it[..4] == number::SEQUENCE.to_be_bytes());
    if !is_sequence {
        return (0, at);
    }
    let at = reader.position();
    let Ok([number::PUTFH, len]) = reader.words() else { return (1, at) };
    if len as usize > HANDLE_BYTES_MAX || reader.skip_opaque(len as usize).is_err() {
        return (1, at);
    }
    let at = reader.position();
    let Ok(write) = reader.words::<{ WRITE_BYTES / 4 }>() else { return (2, at) };
    let [number::WRITE, .., len] = write else { return (2, at) };
    if reader.skip_opaque(len as usize).is_ok() { (3, reader.position()) } else { (2, at) }
}

/// How much data the operation that starts at `at` asks for, if that is known without reading all of it.
#[inline]
pub(super) fn data_asked(record: &[u8], at: usize) -> Option<u32> {
    const BEFORE_COUNT: usize = 24;
    let mut reader = Reader::starting_at(record, at);
    match reader.u32().ok()? {
        25 | 68 => reader.fixed::<BEFORE_COUNT>().and_then(|_| reader.u32()).ok(),
        // READDIR, READLINK, GETXATTR, LISTXATTRS.
        26 | 27 | 72 | 74 => None,
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
    fn operation(&mut self, number: u32, minor: u32, operation: &mut CompoundOperation) -> Result<(), XdrError> {
        let last = if minor >= 2 { number::LAST_OF_2 } else { number::LAST_OF_1 };
        if !(number::FIRST..=last).contains(&number) {
            *operation = CompoundOperation::Illegal;
            return Ok(());
        }
        match number {
            // The usual ones are written in place: a copy of the whole type costs as much as reading one.
            9 => *operation = CompoundOperation::GetAttributes(bitmap(&mut self.reader)?),
            12 => {
                let (kind, reclaims) = (self.lock_kind()?, self.reader.bool("reclaim")?);
                let (lock, locker) = (self.lock(kind)?, self.locker()?);
                *operation = CompoundOperation::Lock { lock, reclaims, locker };
            }
            14 => {
                let (_kind, _sequence, stateid) = (self.lock_kind()?, self.reader.u32()?, self.stateid()?);
                let (offset, len) = (self.reader.u64()?, self.reader.u64()?);
                *operation = CompoundOperation::Unlock { stateid, offset, len };
            }
            22 => *operation = CompoundOperation::PutHandle(self.reader.opaque_place(HANDLE_BYTES_MAX)?.into()),
            25 | 68 => {
                let (stateid, [high, low, count]) = (self.stateid()?, self.reader.words()?);
                let offset = u64::from(high) << 32 | u64::from(low);
                *operation = CompoundOperation::Read { stateid, offset, count, in_segments: number != 25 };
            }
            38 => {
                let (stateid, offset) = (self.stateid()?, self.reader.u64()?);
                let (stability, data) = (self.one_of("stable_how4", 2)?, self.counted()?);
                *operation = CompoundOperation::Write { stateid, offset, stability, data };
            }
            53 => {
                self.sequence()?;
                *operation = CompoundOperation::Sequence;
            }
            _ => return self.other(number, operation),
        }
        Ok(())
    }

    #[inline]
    fn sequence(&mut self) -> Result<SequenceArguments, XdrError> {
        let (session, [sequence, slot, highest]) = (self.reader.fixed()?, self.reader.words()?);
        let keeps = self.reader.bool("sa_cachethis")?;
        Ok(SequenceArguments { session, sequence, slot, highest, keeps })
    }

    // Apart, since it needs many registers, and the usual ones do not.
    #[inline(never)]
    fn other(&mut self, number: u32, operation: &mut CompoundOperation) -> Result<(), XdrError> {
        *operation = match number {
            3 => CompoundOperation::Access(self.reader.u32()?),
            4 => {
                let _sequence = self.reader.u32()?;
                CompoundOperation::Close(self.stateid()?)
            }
            5 => CompoundOperation::Commit { offset: self.reader.u64()?, count: self.reader.u32()? },
            6 => {
                CompoundOperation::Create { kind: self.new_kind()?, name: self.counted()?, attributes: self.values()? }
            }
            10 => CompoundOperation::GetHandle,
            11 => CompoundOperation::Link(self.counted()?),
            13 => {
                let kind = self.lock_kind()?;
                let lock = self.lock(kind)?;
                let _client = self.reader.u64()?;
                CompoundOperation::TestLock { lock, owner: self.reader.opaque_place(OWNER_BYTES_MAX)?.into() }
            }
            15 => CompoundOperation::Lookup(self.counted()?),
            16 => CompoundOperation::LookupParent,
            17 => CompoundOperation::Verify { values: self.values()?, are_same: false },
            18 => CompoundOperation::Open(self.open()?),
            21 => {
                let stateid = self.stateid()?;
                let _sequence = self.reader.u32()?;
                CompoundOperation::Downgrade { stateid, access: self.reader.u32()?, deny: self.reader.u32()? }
            }
            23 | 24 => CompoundOperation::PutRoot,
            26 => CompoundOperation::List(self.list()?),
            27 => CompoundOperation::ReadLink,
            28 => CompoundOperation::Remove(self.counted()?),
            29 => CompoundOperation::Rename { from: self.counted()?, to: self.counted()? },
            31 => CompoundOperation::Restore,
            32 => CompoundOperation::Save,
            33 => CompoundOperation::Security(self.counted()?),
            34 => CompoundOperation::SetAttributes { stateid: self.stateid()?, values: self.values()? },
            37 => CompoundOperation::Verify { values: self.values()?, are_same: true },
            40 => CompoundOperation::BackChannel(self.calling()?),
            41 => {
                let session = self.reader.fixed()?;
                let direction = self.reader.u32()?;
                let _uses_rdma = self.reader.bool("bctsa_use_conn_in_rdma_mode")?;
                CompoundOperation::Bind { session, direction }
            }
            42 => CompoundOperation::Introduce(self.introduction()?),
            43 => CompoundOperation::CreateSession(self.session()?),
            44 => CompoundOperation::DestroySession(self.reader.fixed()?),
            45 => CompoundOperation::FreeStateid(self.stateid()?),
            52 => CompoundOperation::SecurityOfCurrent { of_parent: self.one_of("secinfo_style4", 1)? == 1 },
            55 => self.stateids()?,
            57 => CompoundOperation::DestroyClient(self.reader.u64()?),
            58 => CompoundOperation::ReclaimComplete { one_file_system: self.reader.bool("rca_one_fs")? },
            59 => CompoundOperation::Allocate {
                stateid: self.stateid()?,
                offset: self.reader.u64()?,
                len: self.reader.u64()?,
            },
            60 => CompoundOperation::Copy(self.copy()?),
            62 => CompoundOperation::Deallocate {
                stateid: self.stateid()?,
                offset: self.reader.u64()?,
                len: self.reader.u64()?,
            },
            69 => CompoundOperation::Seek {
                stateid: self.stateid()?,
                offset: self.reader.u64()?,
                what: self.reader.u32()?,
            },
            72 => CompoundOperation::GetXattr(self.counted()?),
            73 => {
                let how = self.one_of("setxattr_option4", 2)?;
                CompoundOperation::SetXattr { how, name: self.counted()?, value: self.counted()? }
            }
            74 => CompoundOperation::ListXattrs { cookie: self.reader.u64()?, bytes_max: self.reader.u32()? },
            75 => CompoundOperation::RemoveXattr(self.counted()?),
            _ => CompoundOperation::Unsupported,
        };
        Ok(())
    }

    fn copy(&mut self) -> Result<CopyArguments, XdrError> {
        let (from, to) = (self.stateid()?, self.stateid()?);
        let (from_offset, to_offset, count) = (self.reader.u64()?, self.reader.u64()?, self.reader.u64()?);
        let (_in_order, _waits) = (self.reader.bool("ca_consecutive")?, self.reader.bool("ca_synchronous")?);
        // Where the source is on another server, its places do not matter, nor what comes after them.
        let is_between_servers = self.reader.u32()? > 0;
        Ok(CopyArguments { from, to, from_offset, to_offset, count, is_between_servers })
    }

    /// A counted run of bytes, limited here only by the record; its use may have a lower limit.
    fn counted(&mut self) -> Result<Field, XdrError> {
        Ok(self.reader.opaque_place(usize::MAX)?.into())
    }

    /// A value of an enumeration from 0 to `last`.
    fn one_of(&mut self, field: &'static str, last: u32) -> Result<u32, XdrError> {
        let value = self.reader.u32()?;
        if value <= last { Ok(value) } else { Err(XdrError::Value { field, value }) }
    }

    fn stateid(&mut self) -> Result<Stateid, XdrError> {
        let bytes: [u8; 16] = self.reader.fixed()?;
        let [s0, s1, s2, s3, other @ ..] = bytes;
        Ok(Stateid { sequence: u32::from_be_bytes([s0, s1, s2, s3]), other })
    }

    fn values(&mut self) -> Result<AttributeValues, XdrError> {
        Ok(AttributeValues { which: bitmap(&mut self.reader)?, values: self.counted()? })
    }

    fn new_kind(&mut self) -> Result<NewKind, XdrError> {
        let kind = self.reader.u32()?;
        Ok(match kind {
            2 => NewKind::Directory,
            3 => NewKind::Block(self.reader.u32()?, self.reader.u32()?),
            4 => NewKind::Character(self.reader.u32()?, self.reader.u32()?),
            5 => NewKind::Link(self.counted()?),
            6 => NewKind::Socket,
            7 => NewKind::Fifo,
            1 | 8 | 9 => NewKind::Other,
            value => return Err(XdrError::Value { field: "nfs_ftype4", value }),
        })
    }

    fn open(&mut self) -> Result<OpenArguments, XdrError> {
        let _sequence = self.reader.u32()?;
        let (access, deny) = (self.reader.u32()?, self.reader.u32()?);
        let _client = self.reader.u64()?;
        let owner = self.reader.opaque_place(OWNER_BYTES_MAX)?.into();
        let how = match self.one_of("opentype4", 1)? {
            0 => OpenHow::NoCreate,
            _ => self.creation()?,
        };
        let claim = match self.one_of("open_claim_type4", 6)? {
            0 => Claim::Name(self.counted()?),
            1 => {
                let _delegation = self.reader.u32()?;
                Claim::Previous
            }
            2 => {
                let (_stateid, _name) = (self.stateid()?, self.counted()?);
                Claim::OfDelegation
            }
            3 => {
                let _name = self.counted()?;
                Claim::OfDelegation
            }
            4 => Claim::Current,
            5 => {
                let _stateid = self.stateid()?;
                Claim::OfDelegation
            }
            _ => Claim::OfDelegation,
        };
        Ok(OpenArguments { access, deny, owner, how, claim })
    }

    fn creation(&mut self) -> Result<OpenHow, XdrError> {
        Ok(match self.one_of("createmode4", 3)? {
            0 => OpenHow::Unchecked(self.values()?),
            1 => OpenHow::Guarded(self.values()?),
            2 => OpenHow::Exclusive { verifier: self.reader.fixed()?, attributes: None },
            _ => OpenHow::Exclusive { verifier: self.reader.fixed()?, attributes: Some(self.values()?) },
        })
    }

    fn lock_kind(&mut self) -> Result<u32, XdrError> {
        match self.reader.u32()? {
            kind @ 1..=4 => Ok(kind),
            value => Err(XdrError::Value { field: "nfs_lock_type4", value }),
        }
    }

    /// Kinds are reading and writing, and then the same for a program that waits.
    fn lock(&mut self, kind: u32) -> Result<LockArguments, XdrError> {
        let (offset, len) = (self.reader.u64()?, self.reader.u64()?);
        Ok(LockArguments { is_exclusive: kind.is_multiple_of(2), waits: kind > 2, offset, len })
    }

    fn locker(&mut self) -> Result<Locker, XdrError> {
        if !self.reader.bool("new_lock_owner")? {
            let stateid = self.stateid()?;
            let _sequence = self.reader.u32()?;
            return Ok(Locker::Known(stateid));
        }
        let _sequence = self.reader.u32()?;
        let open = self.stateid()?;
        let (_sequence, _client) = (self.reader.u32()?, self.reader.u64()?);
        Ok(Locker::New { open, owner: self.reader.opaque_place(OWNER_BYTES_MAX)?.into() })
    }

    fn list(&mut self) -> Result<ListArguments, XdrError> {
        Ok(ListArguments {
            cookie: self.reader.u64()?,
            verifier: self.reader.fixed()?,
            names_max: self.reader.u32()?,
            bytes_max: self.reader.u32()?,
            attributes: bitmap(&mut self.reader)?,
        })
    }

    fn introduction(&mut self) -> Result<IntroductionArguments, XdrError> {
        let verifier = self.reader.fixed()?;
        let owner = self.reader.opaque_place(OWNER_BYTES_MAX)?.into();
        let flags = self.reader.u32()?;
        let protection = self.one_of("state_protect_how4", 2)?;
        // A stronger protection is refused, so that its arguments do not matter, nor what comes after them.
        if protection == 0 {
            let implementations = self.reader.u32()?;
            if implementations > 1 {
                return Err(XdrError::Value { field: "eia_client_impl_id", value: implementations });
            }
            for _ in 0..implementations {
                let (_domain, _name) = (self.counted()?, self.counted()?);
                let (_seconds, _nanos) = (self.reader.u64()?, self.reader.u32()?);
            }
        }
        Ok(IntroductionArguments { verifier, owner, flags, protection })
    }

    fn channel(&mut self) -> Result<Channel, XdrError> {
        let _header_padding = self.reader.u32()?;
        let channel = Channel {
            request_bytes_max: self.reader.u32()?,
            reply_bytes_max: self.reader.u32()?,
            kept_bytes_max: self.reader.u32()?,
            operations_max: self.reader.u32()?,
            calls_max: self.reader.u32()?,
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

    fn session(&mut self) -> Result<SessionArguments, XdrError> {
        let (client, sequence, flags) = (self.reader.u64()?, self.reader.u32()?, self.reader.u32()?);
        let (fore, back) = (self.channel()?, self.channel()?);
        let calling = self.calling()?;
        Ok(SessionArguments { client, sequence, flags, fore, back, calling })
    }

    /// The client's program, and its first credential by which this server can call it.
    fn calling(&mut self) -> Result<Option<Calling>, XdrError> {
        const GSS: u32 = 6;
        let program = self.reader.u32()?;
        let mut calling = None;
        for _ in 0..self.reader.u32()? {
            match self.reader.u32()? {
                0 => {
                    calling.get_or_insert(Calling { program, names_user: false });
                }
                1 => {
                    let _stamp = self.reader.u32()?;
                    let _machine = self.counted()?;
                    let (_uid, _gid) = (self.reader.u32()?, self.reader.u32()?);
                    for _ in 0..self.reader.u32()? {
                        self.reader.u32()?;
                    }
                    calling.get_or_insert(Calling { program, names_user: true });
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

    fn stateids(&mut self) -> Result<CompoundOperation, XdrError> {
        let count = self.reader.u32()?;
        let at = self.reader.position();
        for _ in 0..count {
            self.stateid()?;
        }
        Ok(CompoundOperation::TestStateids { count, at })
    }
}

#[cfg(test)]
mod tests;
