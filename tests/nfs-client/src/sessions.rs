//! Calls of versions 4.1 and 4.2: compounds of operations in a session.
//!
//! Owns: the encoding of the operations that tests need, the session's numbers, the reading of results.
//! Does not own: the connection, which it shares with version 3.
//! Invariants: those of the crate. A compound is sent as built, valid or not; nothing is sent again by itself.

use crate::connection::{Client, Error};
use crate::wire::{Fields, Malformed, Results};

/// NFS version 4: program and version.
pub const NFS_4: (u32, u32) = (100_003, 4);

/// The program by which servers call this client.
pub const CALLBACK_PROGRAM: u32 = 0x4000_0000;

pub use crate::wire::Stateid;

/// A share reservation: access and denials, 1 for reading and 2 for writing.
pub type ShareReservation = (u32, u32);

/// The bytes of a lock: offset and length.
pub type LockRange = (u64, u64);

/// The stateid of nobody's open.
pub const ANONYMOUS: Stateid = (0, [0; 12]);
/// The stateid that an earlier operation of the compound has set.
pub const CURRENT: Stateid = (1, [0; 12]);

const NO_DELEGATION: u32 = 0;

/// Operations to be sent together.
#[derive(Clone, Debug, Default)]
pub struct Compound {
    fields: Fields,
    count: u32,
}

/// Operations: the arguments of each, its number, the fields that follow the number.
macro_rules! operations {
    ($($(#[$what:meta])* $name:ident($($argument:tt: $kind:ty),*) = $number:literal
        $(, $($field:ident($($value:expr),*)).+)?;)*) => {
        $($(#[$what])*
        #[must_use]
        pub fn $name(self $(, $argument: $kind)*) -> Self {
            self.operation($number, |fields| fields$($(.$field($($value),*))+)?)
        })*
    };
}

impl Compound {
    /// An operation with these arguments, whatever they are.
    #[must_use]
    pub fn raw(self, number: u32, arguments: &[u8]) -> Self {
        self.operation(number, |fields| fields.fixed(arguments))
    }

    fn operation(mut self, number: u32, arguments: impl FnOnce(Fields) -> Fields) -> Self {
        self.fields = arguments(self.fields.u32(number));
        self.count += 1;
        self
    }

    operations! {
        /// GETFH.
        get_handle() = 10;
        /// LOOKUPP.
        lookup_parent() = 16;
        /// PUTROOTFH.
        put_root() = 24;
        /// READLINK.
        read_link() = 27;
        /// RESTOREFH.
        restore() = 31;
        /// SAVEFH.
        save() = 32;
        /// PUTFH.
        put(handle: &[u8]) = 22, opaque(handle);
        /// LOOKUP.
        lookup(name: &[u8]) = 15, opaque(name);
        /// ACCESS.
        access(wanted: u32) = 3, u32(wanted);
        /// GETATTR of these words of a bitmap.
        attributes(words: &[u32]) = 9, bitmap(words);
        /// SETATTR of a size.
        set_size(stateid: Stateid, size: u64) = 34, stateid(stateid).bitmap(&[1 << 4]).opaque(&size.to_be_bytes());
        /// SETATTR of a mode.
        set_mode(mode: u32) = 34, stateid(ANONYMOUS).bitmap(&[0, 1 << 1]).opaque(&mode.to_be_bytes());
        /// CLOSE.
        close(stateid: Stateid) = 4, u32(0).stateid(stateid);
        /// OPEN_DOWNGRADE.
        downgrade(stateid: Stateid, access: u32, deny: u32) = 21, stateid(stateid).u32(0).u32(access).u32(deny);
        /// LOCK of more bytes by an owner that has some.
        lock_more(kind: u32, range: LockRange, stateid: Stateid) = 12,
            u32(kind).u32(0).range(range).u32(0).stateid(stateid).u32(0);
        /// LOCKT.
        test_lock(kind: u32, range: LockRange, owner: &[u8]) = 13, u32(kind).range(range).u64(0).opaque(owner);
        /// LOCKU.
        unlock(range: LockRange, stateid: Stateid) = 14, u32(1).u32(0).stateid(stateid).range(range);
        /// FREE_STATEID.
        free(stateid: Stateid) = 45, stateid(stateid);
        /// TEST_STATEID of one.
        test_stateid(stateid: Stateid) = 55, u32(1).stateid(stateid);
        /// READ.
        read(stateid: Stateid, offset: u64, count: u32) = 25, stateid(stateid).u64(offset).u32(count);
        /// WRITE, with the protocol's number of its stability.
        write(stateid: Stateid, offset: u64, stability: u32, data: &[u8]) = 38,
            stateid(stateid).u64(offset).u32(stability).opaque(data);
        /// COMMIT of all.
        commit() = 5, u64(0).u32(0);
        /// CREATE of a directory.
        make_directory(name: &[u8]) = 6, u32(2).opaque(name).bitmap(&[]).u32(0);
        /// CREATE of a symbolic link.
        make_link(name: &[u8], target: &[u8]) = 6, u32(5).opaque(target).opaque(name).bitmap(&[]).u32(0);
        /// REMOVE.
        remove(name: &[u8]) = 28, opaque(name);
        /// RENAME, from the saved directory to the current one.
        rename(from: &[u8], to: &[u8]) = 29, opaque(from).opaque(to);
        /// LINK of the saved file into the current directory.
        link(name: &[u8]) = 11, opaque(name);
        /// READDIR with these attributes of each entry.
        list(cookie: u64, bytes_max: u32, words: &[u32]) = 26,
            u64(cookie).u64(0).u32(bytes_max).u32(bytes_max).bitmap(words);
        /// RECLAIM_COMPLETE.
        reclaim_complete() = 58, u32(0);
        /// SEQUENCE.
        sequence(session: [u8; 16], sequence: u32, slot: u32, keeps: bool) = 53,
            fixed(&session).u32(sequence).u32(slot).u32(slot).u32(keeps.into());
        /// EXCHANGE_ID.
        exchange_id(owner: &[u8], verifier: [u8; 8], flags: u32) = 42,
            fixed(&verifier).opaque(owner).u32(flags).u32(0).u32(0);
        /// OPEN of the current file, which the client had open before the server's last end.
        reclaim_open(share: ShareReservation, owner: &[u8]) = 18,
            opening(share, owner).u32(0).u32(1).u32(NO_DELEGATION);
        /// As [`Compound::open`] of a file that may be there: it is empty afterwards.
        open_empty(share: ShareReservation, owner: &[u8], name: &[u8]) = 18,
            opening(share, owner).u32(1).u32(0).bitmap(&[1 << 4]).opaque(&0_u64.to_be_bytes()).u32(0).opaque(name);
        /// LOCK of bytes by a new owner, with its open. Kinds: 1 shared, 2 exclusive, 3 and 4 for a program that waits.
        lock(kind: u32, range: LockRange, open: Stateid, owner: &[u8]) = 12, new_lock(kind, 0, range, open, owner);
        /// LOCK by a new owner of bytes that it had locked before the server's last end.
        reclaim_lock(kind: u32, range: LockRange, open: Stateid, owner: &[u8]) = 12, new_lock(kind, 1, range, open, owner);
    }

    /// OPEN of a name by an owner. Makes the file with mode 0644 if `makes`.
    #[must_use]
    pub fn open(self, share: ShareReservation, owner: &[u8], name: &[u8], makes: bool) -> Self {
        self.operation(18, |fields| {
            let fields = fields.opening(share, owner);
            let fields = match makes {
                true => fields.u32(1).u32(0).bitmap(&[0, 1 << 1]).opaque(&0o644_u32.to_be_bytes()),
                false => fields.u32(0),
            };
            fields.u32(0).opaque(name)
        })
    }

    /// OPEN of a file that it makes; the name must be free.
    #[must_use]
    pub fn open_new(self, access: u32, deny: u32, owner: &[u8], name: &[u8]) -> Self {
        self.operation(18, |fields| {
            let fields = fields.opening((access, deny), owner).u32(1).u32(1);
            fields.bitmap(&[0, 1 << 1]).opaque(&0o644_u32.to_be_bytes()).u32(0).opaque(name)
        })
    }

    /// CREATE_SESSION.
    #[must_use]
    pub fn create_session(self, client: u64, sequence: u32, operations_max: u32, slots: u32) -> Self {
        self.create_session_with(client, sequence, operations_max, slots, 0)
    }

    /// As [`Compound::create_session`], with flags; 2 asks for a back channel.
    #[must_use]
    pub fn create_session_with(self, client: u64, sequence: u32, operations_max: u32, slots: u32, flags: u32) -> Self {
        self.operation(43, |fields| {
            let fields = fields.u64(client).u32(sequence).u32(flags);
            let channel = |fields: Fields, operations: u32| {
                fields.u32(0).u32(1 << 21).u32(1 << 21).u32(4096).u32(operations).u32(slots).u32(0)
            };
            channel(channel(fields, operations_max), 8).u32(CALLBACK_PROGRAM).u32(1).u32(0)
        })
    }

    /// These operations, and then others.
    #[must_use]
    pub fn followed_by(self, others: &Self) -> Self {
        Self { fields: self.fields.fixed(&others.fields.0), count: self.count + others.count }
    }

    /// The arguments of the call, for a minor version.
    pub fn arguments(&self, minor: u32) -> Vec<u8> {
        Fields::default().opaque(b"").u32(minor).u32(self.count).fixed(&self.fields.0).0
    }
}

impl Fields {
    fn bitmap(self, words: &[u32]) -> Self {
        words.iter().fold(self.u32(words.len() as u32), |fields, word| fields.u32(*word))
    }

    fn range(self, range: LockRange) -> Self {
        self.u64(range.0).u64(range.1)
    }

    fn stateid(self, (sequence, other): Stateid) -> Self {
        self.u32(sequence).fixed(&other)
    }

    /// The first fields of OPEN.
    fn opening(self, share: ShareReservation, owner: &[u8]) -> Self {
        self.u32(0).u32(share.0).u32(share.1).u64(0).opaque(owner)
    }

    /// LOCK by a new owner; `reclaims` is 1 for bytes that it had before the server's last end.
    fn new_lock(self, kind: u32, reclaims: u32, range: LockRange, open: Stateid, owner: &[u8]) -> Self {
        let fields = self.u32(kind).u32(reclaims).range(range);
        fields.u32(1).u32(0).stateid(open).u32(0).u64(0).opaque(owner)
    }
}

/// The results of a compound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status of the last operation that was carried out.
    pub status: u32,
    /// Number of operations with results.
    pub count: u32,
    /// The results of all operations, one after the other.
    pub results: Vec<u8>,
}

/// Reads results one after the other.
pub struct OutcomeReader<'a>(Results<'a>);

impl Outcome {
    /// Reads the results of a call.
    pub fn read(results: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Results(results);
        let status = fields.u32()?;
        let _tag = fields.opaque()?;
        let count = fields.u32()?;
        Ok(Self { status, count, results: fields.0.to_vec() })
    }

    /// A reader at the first result.
    pub fn reader(&self) -> OutcomeReader<'_> {
        OutcomeReader(Results(&self.results))
    }
}

impl<'a> OutcomeReader<'a> {
    /// The operation and the status of the next result; an error at the end.
    pub fn next_result(&mut self) -> Result<(u32, u32), Malformed> {
        Ok((self.0.u32()?, self.0.u32()?))
    }

    /// Passes a SEQUENCE's result.
    pub fn skip_sequence(&mut self) -> Result<(), Malformed> {
        if self.next_result()? != (53, 0) {
            return Err(Malformed { what: "no successful SEQUENCE" });
        }
        self.skip(36)
    }

    /// Passes bytes.
    pub fn skip(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.0.take(bytes).map(drop)
    }

    /// A word.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.0.u32()
    }

    /// Two words.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.0.u64()
    }

    /// A counted run of bytes.
    pub fn opaque(&mut self) -> Result<&'a [u8], Malformed> {
        self.0.opaque()
    }

    /// A stateid.
    pub fn stateid(&mut self) -> Result<Stateid, Malformed> {
        Ok((self.0.u32()?, self.0.fixed()?))
    }

    /// Passes the rest of an OPEN's result behind its stateid.
    pub fn skip_open(&mut self) -> Result<(), Malformed> {
        self.skip(4 + 8 + 8 + 4)?;
        let words = self.u32()?;
        self.skip(words as usize * 4)?;
        match self.u32()? {
            0 => Ok(()),
            _ => Err(Malformed { what: "a delegation" }),
        }
    }

    /// A set of attributes and their values.
    pub fn attributes(&mut self) -> Result<(Vec<u32>, &'a [u8]), Malformed> {
        let count = self.u32()?;
        let words = (0..count).map(|_| self.u32()).collect::<Result<_, _>>()?;
        Ok((words, self.opaque()?))
    }

    /// Checks that everything has been read.
    pub fn end(&self) -> Result<(), Malformed> {
        self.0.end()
    }
}

/// A session of a client over one connection.
pub struct Session {
    /// The connection.
    pub client: Client,
    /// The client's number.
    pub number: u64,
    /// The session's.
    pub id: [u8; 16],
    /// The last number of the only slot that [`Session::call`] uses.
    pub sequence: u32,
    /// Whether the server is to keep replies for a repetition.
    pub keeps: bool,
    pub(crate) minor: u32,
}

impl Session {
    /// A new client of this name with a session, which has nothing to reclaim.
    pub fn begin(client: Client, owner: &[u8], minor: u32) -> Result<Self, Error> {
        let mut session = Self::begin_reclaiming(client, owner, minor)?;
        let complete = session.call(Compound::default().reclaim_complete())?;
        expect(&complete, "RECLAIM_COMPLETE")?;
        Ok(session)
    }

    /// As [`Session::begin`], for a client that has not said yet what it had before the server's last end.
    pub fn begin_reclaiming(client: Client, owner: &[u8], minor: u32) -> Result<Self, Error> {
        Self::begin_with_slots(client, owner, minor, 8)
    }

    /// As [`Session::begin`], with a back channel: the client answers calls of the server.
    pub fn begin_with_back_channel(client: Client, owner: &[u8], minor: u32) -> Result<Self, Error> {
        const BACK_CHANNEL: u32 = 2;
        let mut session = Self::begin_with(client, owner, minor, 8, BACK_CHANNEL)?;
        expect(&session.call(Compound::default().reclaim_complete())?, "RECLAIM_COMPLETE")?;
        Ok(session)
    }

    /// As [`Session::begin_reclaiming`], with this number of slots.
    pub fn begin_with_slots(client: Client, owner: &[u8], minor: u32, slots: u32) -> Result<Self, Error> {
        Self::begin_with(client, owner, minor, slots, 0)
    }

    fn begin_with(mut client: Client, owner: &[u8], minor: u32, slots: u32, flags: u32) -> Result<Self, Error> {
        let known = compound(&mut client, minor, &Compound::default().exchange_id(owner, *b"verifier", 0))?;
        let mut reader = expect(&known, "EXCHANGE_ID")?;
        reader.next_result()?;
        let (number, sequence) = (reader.u64()?, reader.u32()?);
        let wanted = Compound::default().create_session_with(number, sequence, 16, slots, flags);
        let made = compound(&mut client, minor, &wanted)?;
        let mut reader = expect(&made, "CREATE_SESSION")?;
        reader.next_result()?;
        let id = reader.0.fixed()?;
        Ok(Self { client, number, id, sequence: 0, keeps: true, minor })
    }

    /// Carries out operations on the first slot. The SEQUENCE before them is this function's.
    pub fn call(&mut self, operations: Compound) -> Result<Outcome, Error> {
        self.sequence += 1;
        self.again(operations)
    }

    /// As [`Session::call`], with the number of the last call.
    pub fn again(&mut self, operations: Compound) -> Result<Outcome, Error> {
        let first = Compound::default().sequence(self.id, self.sequence, 0, self.keeps);
        compound(&mut self.client, self.minor, &first.followed_by(&operations))
    }

    /// The number and the record of a call on this slot, whose SEQUENCE has the number 0.
    pub(crate) fn record(&mut self, operations: &Compound, slot: u32) -> (u32, Vec<u8>) {
        let compound = Compound::default().sequence(self.id, 0, slot, false).followed_by(operations);
        self.client.record(NFS_4, 1, &compound.arguments(self.minor))
    }

    /// The handle to which operations without results lead.
    pub fn walk(&mut self, operations: Compound) -> Result<Vec<u8>, Error> {
        let outcome = self.must(operations.get_handle())?;
        let mut reader = outcome.reader();
        while reader.next_result()?.0 != 10 {}
        Ok(reader.opaque()?.to_vec())
    }

    /// Carries out operations that all succeed. Returns their results behind the SEQUENCE's.
    pub fn must(&mut self, operations: Compound) -> Result<Outcome, Error> {
        let outcome = self.call(operations)?;
        expect(&outcome, "COMPOUND")?;
        let mut reader = outcome.reader();
        reader.skip_sequence()?;
        let results = reader.0.0.to_vec();
        Ok(Outcome { results, ..outcome })
    }
}

/// Sends a compound by itself.
pub fn compound(client: &mut Client, minor: u32, operations: &Compound) -> Result<Outcome, Error> {
    Ok(Outcome::read(&client.call(NFS_4, 1, &operations.arguments(minor))?)?)
}

fn expect<'a>(outcome: &'a Outcome, procedure: &'static str) -> Result<OutcomeReader<'a>, Error> {
    match outcome.status {
        0 => Ok(outcome.reader()),
        status => Err(Error::Status { procedure, status }),
    }
}
