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

/// A stateid: its sequence number and its other bytes.
pub type Stateid = (u32, [u8; 12]);

/// The stateid of nobody's open.
pub const ANONYMOUS: Stateid = (0, [0; 12]);
/// The stateid that an earlier operation of the compound has set.
pub const CURRENT: Stateid = (1, [0; 12]);

/// Operations to be sent together.
#[derive(Clone, Debug, Default)]
pub struct Compound {
    fields: Fields,
    count: u32,
}

macro_rules! plain {
    ($($(#[$what:meta])* $name:ident = $number:literal;)*) => {
        $($(#[$what])*
        #[must_use]
        pub fn $name(self) -> Self {
            self.operation($number, |fields| fields)
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

    plain! {
        /// GETFH.
        get_handle = 10;
        /// LOOKUPP.
        lookup_parent = 16;
        /// PUTROOTFH.
        put_root = 24;
        /// READLINK.
        read_link = 27;
        /// RESTOREFH.
        restore = 31;
        /// SAVEFH.
        save = 32;
    }

    /// PUTFH.
    #[must_use]
    pub fn put(self, handle: &[u8]) -> Self {
        self.operation(22, |fields| fields.opaque(handle))
    }

    /// LOOKUP.
    #[must_use]
    pub fn lookup(self, name: &[u8]) -> Self {
        self.operation(15, |fields| fields.opaque(name))
    }

    /// ACCESS.
    #[must_use]
    pub fn access(self, wanted: u32) -> Self {
        self.operation(3, |fields| fields.u32(wanted))
    }

    /// GETATTR of these words of a bitmap.
    #[must_use]
    pub fn attributes(self, words: &[u32]) -> Self {
        self.operation(9, |fields| bitmap(fields, words))
    }

    /// SETATTR of a size.
    #[must_use]
    pub fn set_size(self, stateid: Stateid, size: u64) -> Self {
        self.operation(34, |fields| bitmap(write_stateid(fields, stateid), &[1 << 4]).opaque(&size.to_be_bytes()))
    }

    /// SETATTR of a mode.
    #[must_use]
    pub fn set_mode(self, mode: u32) -> Self {
        self.operation(34, |fields| bitmap(write_stateid(fields, ANONYMOUS), &[0, 1 << 1]).opaque(&mode.to_be_bytes()))
    }

    /// OPEN of a name, with rights and denials (1 read, 2 write), by an owner. Makes the file with mode 0644 if
    /// `makes`.
    #[must_use]
    pub fn open(self, (access, deny): (u32, u32), owner: &[u8], name: &[u8], makes: bool) -> Self {
        self.operation(18, |fields| {
            let fields = fields.u32(0).u32(access).u32(deny).u64(0).opaque(owner);
            let fields = match makes {
                true => bitmap(fields.u32(1).u32(0), &[0, 1 << 1]).opaque(&0o644_u32.to_be_bytes()),
                false => fields.u32(0),
            };
            fields.u32(0).opaque(name)
        })
    }

    /// As [`Compound::open`] of a file that may be there: it is empty afterwards.
    #[must_use]
    pub fn open_empty(self, (access, deny): (u32, u32), owner: &[u8], name: &[u8]) -> Self {
        self.operation(18, |fields| {
            let fields = fields.u32(0).u32(access).u32(deny).u64(0).opaque(owner);
            let fields = bitmap(fields.u32(1).u32(0), &[1 << 4]).opaque(&0_u64.to_be_bytes());
            fields.u32(0).opaque(name)
        })
    }

    /// OPEN of the current file, which the client had open before the server's last end.
    #[must_use]
    pub fn reclaim_open(self, (access, deny): (u32, u32), owner: &[u8]) -> Self {
        const NO_DELEGATION: u32 = 0;
        self.operation(18, |fields| {
            let fields = fields.u32(0).u32(access).u32(deny).u64(0).opaque(owner).u32(0);
            fields.u32(1).u32(NO_DELEGATION)
        })
    }

    /// LOCK by a new owner of bytes that it had locked before the server's last end.
    #[must_use]
    pub fn reclaim_lock(self, kind: u32, (offset, len): (u64, u64), open: Stateid, owner: &[u8]) -> Self {
        self.operation(12, |fields| {
            let fields = fields.u32(kind).u32(1).u64(offset).u64(len).u32(1).u32(0);
            write_stateid(fields, open).u32(0).u64(0).opaque(owner)
        })
    }

    /// CLOSE.
    #[must_use]
    pub fn close(self, stateid: Stateid) -> Self {
        self.operation(4, |fields| write_stateid(fields.u32(0), stateid))
    }

    /// OPEN_DOWNGRADE.
    #[must_use]
    pub fn downgrade(self, stateid: Stateid, access: u32, deny: u32) -> Self {
        self.operation(21, |fields| write_stateid(fields, stateid).u32(0).u32(access).u32(deny))
    }

    /// LOCK of bytes by a new owner, with its open. Kinds: 1 shared, 2 exclusive, 3 and 4 for a program that waits.
    #[must_use]
    pub fn lock(self, kind: u32, (offset, len): (u64, u64), open: Stateid, owner: &[u8]) -> Self {
        self.operation(12, |fields| {
            let fields = fields.u32(kind).u32(0).u64(offset).u64(len).u32(1).u32(0);
            write_stateid(fields, open).u32(0).u64(0).opaque(owner)
        })
    }

    /// LOCK of more bytes by an owner that has some.
    #[must_use]
    pub fn lock_more(self, kind: u32, (offset, len): (u64, u64), stateid: Stateid) -> Self {
        self.operation(12, |fields| write_stateid(fields.u32(kind).u32(0).u64(offset).u64(len).u32(0), stateid).u32(0))
    }

    /// LOCKT.
    #[must_use]
    pub fn test_lock(self, kind: u32, (offset, len): (u64, u64), owner: &[u8]) -> Self {
        self.operation(13, |fields| fields.u32(kind).u64(offset).u64(len).u64(0).opaque(owner))
    }

    /// LOCKU.
    #[must_use]
    pub fn unlock(self, (offset, len): (u64, u64), stateid: Stateid) -> Self {
        self.operation(14, |fields| write_stateid(fields.u32(1).u32(0), stateid).u64(offset).u64(len))
    }

    /// FREE_STATEID.
    #[must_use]
    pub fn free(self, stateid: Stateid) -> Self {
        self.operation(45, |fields| write_stateid(fields, stateid))
    }

    /// TEST_STATEID of one.
    #[must_use]
    pub fn test_stateid(self, stateid: Stateid) -> Self {
        self.operation(55, |fields| write_stateid(fields.u32(1), stateid))
    }

    /// READ.
    #[must_use]
    pub fn read(self, stateid: Stateid, offset: u64, count: u32) -> Self {
        self.operation(25, |fields| write_stateid(fields, stateid).u64(offset).u32(count))
    }

    /// WRITE, with the protocol's number of its stability.
    #[must_use]
    pub fn write(self, stateid: Stateid, offset: u64, stability: u32, data: &[u8]) -> Self {
        self.operation(38, |fields| write_stateid(fields, stateid).u64(offset).u32(stability).opaque(data))
    }

    /// COMMIT of all.
    #[must_use]
    pub fn commit(self) -> Self {
        self.operation(5, |fields| fields.u64(0).u32(0))
    }

    /// CREATE of a directory.
    #[must_use]
    pub fn make_directory(self, name: &[u8]) -> Self {
        self.operation(6, |fields| bitmap(fields.u32(2).opaque(name), &[]).u32(0))
    }

    /// CREATE of a symbolic link.
    #[must_use]
    pub fn make_link(self, name: &[u8], target: &[u8]) -> Self {
        self.operation(6, |fields| bitmap(fields.u32(5).opaque(target).opaque(name), &[]).u32(0))
    }

    /// REMOVE.
    #[must_use]
    pub fn remove(self, name: &[u8]) -> Self {
        self.operation(28, |fields| fields.opaque(name))
    }

    /// RENAME, from the saved directory to the current one.
    #[must_use]
    pub fn rename(self, from: &[u8], to: &[u8]) -> Self {
        self.operation(29, |fields| fields.opaque(from).opaque(to))
    }

    /// LINK of the saved file into the current directory.
    #[must_use]
    pub fn link(self, name: &[u8]) -> Self {
        self.operation(11, |fields| fields.opaque(name))
    }

    /// READDIR with these attributes of each entry.
    #[must_use]
    pub fn list(self, cookie: u64, bytes_max: u32, words: &[u32]) -> Self {
        self.operation(26, |fields| bitmap(fields.u64(cookie).u64(0).u32(bytes_max).u32(bytes_max), words))
    }

    /// RECLAIM_COMPLETE.
    #[must_use]
    pub fn reclaim_complete(self) -> Self {
        self.operation(58, |fields| fields.u32(0))
    }

    /// SEQUENCE.
    #[must_use]
    pub fn sequence(self, session: [u8; 16], sequence: u32, slot: u32, keeps: bool) -> Self {
        self.operation(53, |fields| fields.fixed(&session).u32(sequence).u32(slot).u32(slot).u32(keeps.into()))
    }

    /// EXCHANGE_ID.
    #[must_use]
    pub fn exchange_id(self, owner: &[u8], verifier: [u8; 8], flags: u32) -> Self {
        self.operation(42, |fields| fields.fixed(&verifier).opaque(owner).u32(flags).u32(0).u32(0))
    }

    /// CREATE_SESSION.
    #[must_use]
    pub fn create_session(self, client: u64, sequence: u32, operations_max: u32, slots: u32) -> Self {
        self.create_session_with(client, sequence, operations_max, (slots, 0))
    }

    /// As [`Compound::create_session`], with flags; 2 asks for a back channel.
    #[must_use]
    pub fn create_session_with(
        self,
        client: u64,
        sequence: u32,
        operations_max: u32,
        (slots, flags): (u32, u32),
    ) -> Self {
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

fn bitmap(fields: Fields, words: &[u32]) -> Fields {
    words.iter().fold(fields.u32(words.len() as u32), |fields, word| fields.u32(*word))
}

fn write_stateid(fields: Fields, (sequence, other): Stateid) -> Fields {
    fields.u32(sequence).fixed(&other)
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
    ///
    /// # Errors
    /// When they have no head.
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
    /// The operation and the status of the next result.
    ///
    /// # Errors
    /// At the end.
    pub fn next_result(&mut self) -> Result<(u32, u32), Malformed> {
        Ok((self.0.u32()?, self.0.u32()?))
    }

    /// Passes a SEQUENCE's result.
    ///
    /// # Errors
    /// When the next one is none.
    pub fn skip_sequence(&mut self) -> Result<(), Malformed> {
        if self.next_result()? != (53, 0) {
            return Err(Malformed { what: "no successful SEQUENCE" });
        }
        self.skip(36)
    }

    /// Passes bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn skip(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.0.take(bytes).map(drop)
    }

    /// A word.
    ///
    /// # Errors
    /// When there is none.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.0.u32()
    }

    /// Two words.
    ///
    /// # Errors
    /// When there are not so many.
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.0.u64()
    }

    /// A counted run of bytes.
    ///
    /// # Errors
    /// When it does not end before the results.
    pub fn opaque(&mut self) -> Result<&'a [u8], Malformed> {
        self.0.opaque()
    }

    /// A stateid.
    ///
    /// # Errors
    /// When there is none.
    pub fn stateid(&mut self) -> Result<Stateid, Malformed> {
        Ok((self.0.u32()?, self.0.fixed()?))
    }

    /// Passes the rest of an OPEN's result behind its stateid.
    ///
    /// # Errors
    /// When it is none.
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
    ///
    /// # Errors
    /// When there is none.
    pub fn attributes(&mut self) -> Result<(Vec<u32>, &'a [u8]), Malformed> {
        let count = self.u32()?;
        let words = (0..count).map(|_| self.u32()).collect::<Result<_, _>>()?;
        Ok((words, self.opaque()?))
    }

    /// Checks that everything has been read.
    ///
    /// # Errors
    /// When there is more.
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
    ///
    /// # Errors
    /// As [`Client::call`], and the status of the first failure.
    pub fn begin(client: Client, owner: &[u8], minor: u32) -> Result<Self, Error> {
        let mut session = Self::begin_reclaiming(client, owner, minor)?;
        let complete = session.call(Compound::default().reclaim_complete())?;
        expect(&complete, "RECLAIM_COMPLETE")?;
        Ok(session)
    }

    /// As [`Session::begin`], for a client that has not said yet what it had before the server's last end.
    ///
    /// # Errors
    /// As [`Session::begin`].
    pub fn begin_reclaiming(client: Client, owner: &[u8], minor: u32) -> Result<Self, Error> {
        Self::begin_with_slots(client, owner, minor, 8)
    }

    /// As [`Session::begin_reclaiming`], with this number of slots.
    ///
    /// # Errors
    /// As [`Session::begin`].
    pub fn begin_with_slots(mut client: Client, owner: &[u8], minor: u32, slots: u32) -> Result<Self, Error> {
        let known = compound(&mut client, minor, &Compound::default().exchange_id(owner, *b"verifier", 0))?;
        let mut reader = expect(&known, "EXCHANGE_ID")?;
        reader.next_result()?;
        let (number, sequence) = (reader.u64()?, reader.u32()?);
        let wanted = Compound::default().create_session(number, sequence, 16, slots);
        let made = compound(&mut client, minor, &wanted)?;
        let mut reader = expect(&made, "CREATE_SESSION")?;
        reader.next_result()?;
        let id = reader.0.fixed()?;
        Ok(Self { client, number, id, sequence: 0, keeps: true, minor })
    }

    /// Carries out operations on the first slot. The SEQUENCE before them is this function's.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn call(&mut self, operations: Compound) -> Result<Outcome, Error> {
        self.sequence += 1;
        self.again(operations)
    }

    /// As [`Session::call`], with the number of the last call.
    ///
    /// # Errors
    /// As [`Client::call`].
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
    ///
    /// # Errors
    /// As [`Session::must`].
    pub fn walk(&mut self, operations: Compound) -> Result<Vec<u8>, Error> {
        let outcome = self.must(operations.get_handle())?;
        let mut reader = outcome.reader();
        while reader.next_result()?.0 != 10 {}
        Ok(reader.opaque()?.to_vec())
    }

    /// Carries out operations that all succeed. Returns their results behind the SEQUENCE's.
    ///
    /// # Errors
    /// As [`Client::call`], and the status of the first failure.
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
///
/// # Errors
/// As [`Client::call`].
pub fn compound(client: &mut Client, minor: u32, operations: &Compound) -> Result<Outcome, Error> {
    Ok(Outcome::read(&client.call(NFS_4, 1, &operations.arguments(minor))?)?)
}

fn expect<'a>(outcome: &'a Outcome, procedure: &'static str) -> Result<OutcomeReader<'a>, Error> {
    match outcome.status {
        0 => Ok(outcome.reader()),
        status => Err(Error::Status { procedure, status }),
    }
}
