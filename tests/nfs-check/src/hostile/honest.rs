//! Honest clients: usual calls one after the other, each timed, each answer checked.
//!
//! Owns: the calls, the times of their answers, the directories of a run.
//! Does not own: hostile clients (`attack`), changes of files that others may have delegated (`conflicts`).
//! Invariants: DELAY is no answer: the call is sent again, and its time goes on. Every other status but OK is an error.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use afflux_nfs_client::sessions::{ANONYMOUS, CURRENT, Compound, Outcome, Session};
use afflux_nfs_client::{Client, Error, User};

const DELAY: u32 = 10_008;
const DELAY_PAUSE: Duration = Duration::from_millis(1);
/// Between two calls, so that the honest client is no load itself.
const PAUSE: Duration = Duration::from_millis(2);
/// A server keeps a client for its lease: the honest ones are few.
const NEW_SESSION_TURNS: u64 = 64;
const BLOCK: usize = 4096;
pub(super) const OTHER_BYTES: Error =
    Error::Status { procedure: "READ of other bytes than the last WRITE's", status: 0 };
/// Attributes: type, change, size, fileid.
const USUAL: u32 = 1 << 1 | 1 << 3 | 1 << 4 | 1 << 20;

/// A kind of call of honest clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AskedKind {
    /// GETATTR.
    Attributes,
    /// READ of a cached block.
    Read,
    /// WRITE of a block, UNSTABLE.
    Write,
    /// OPEN and CLOSE.
    OpenClose,
    /// OPEN, LOCK, LOCKU and CLOSE.
    Lock,
    /// A new client with a session.
    NewSession,
    /// WRITE of a file that hostile clients may have delegated. It waits for the end of a dead client's lease.
    Conflict,
}

impl AskedKind {
    /// The kinds that nobody may delay.
    const OWN: [Self; 6] = [Self::Attributes, Self::Read, Self::Write, Self::OpenClose, Self::Lock, Self::NewSession];

    /// The word for people and programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Attributes => "getattr",
            Self::Read => "read",
            Self::Write => "write",
            Self::OpenClose => "open-close",
            Self::Lock => "lock",
            Self::NewSession => "new-session",
            Self::Conflict => "conflict",
        }
    }
}

/// The times of one kind's answers.
#[derive(Debug)]
pub struct Asked {
    /// The kind.
    pub kind: AskedKind,
    pub(super) times: Vec<Duration>,
}

impl Asked {
    /// Number of answers.
    pub fn count(&self) -> usize {
        self.times.len()
    }

    /// The longest time.
    pub fn longest(&self) -> Duration {
        self.times.iter().copied().max().unwrap_or_default()
    }

    /// The bound on the times of the fastest `thousandths` of all answers.
    pub fn per_mille(&self, thousandths: usize) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() * thousandths / 1000).copied().unwrap_or_default()
    }
}

/// Makes the honest user's directory, and one of each of these names. Returns the handle of the first.
pub(super) fn prepare(nfs: SocketAddr, names: impl Iterator<Item = &'static str>) -> Result<Vec<u8>, Error> {
    let mut session =
        Session::begin(Client::connect(nfs)?, format!("preparation {}", std::process::id()).as_bytes(), 2)?;
    for name in names.chain(["honest"]) {
        session.must(Compound::default().put_root().make_directory(name.as_bytes()))?;
        session.must(Compound::default().put_root().lookup(name.as_bytes()).set_mode(0o777))?;
    }
    session.walk(Compound::default().put_root().lookup(b"honest"))
}

/// Asks until `goes_on` says no.
pub(super) fn ask(
    nfs: SocketAddr,
    user: u32,
    directory: &[u8],
    goes_on: &dyn Fn() -> bool,
) -> Result<Vec<Asked>, Error> {
    let mut asks = Honest::begin(nfs, user, directory, b"0")?;
    asks.make()?;
    let mut asked = AskedKind::OWN.map(|kind| Asked { kind, times: Vec::new() });
    while goes_on() {
        let has_new_session = asks.turns.is_multiple_of(NEW_SESSION_TURNS);
        let is_due = |kind| kind != AskedKind::NewSession || has_new_session;
        for of_kind in asked.iter_mut().filter(|of_kind| is_due(of_kind.kind)) {
            let began = Instant::now();
            asks.one(of_kind.kind)?;
            of_kind.times.push(began.elapsed());
            thread::sleep(PAUSE);
        }
        asks.turns += 1;
    }
    Ok(asked.into())
}

fn begin(nfs: SocketAddr, user: u32, name: &[u8]) -> Result<Session, Error> {
    let mut client = Client::connect(nfs)?;
    client.set_user(Some(User { uid: user, gid: user }));
    let name = [format!("honest {} ", std::process::id()).as_bytes(), name].concat();
    loop {
        match Session::begin(client, &name, 2) {
            Err(Error::Status { status: DELAY, .. }) => thread::sleep(DELAY_PAUSE),
            Err(error) => return Err(error),
            Ok(mut session) => {
                session.keeps = false;
                return Ok(session);
            }
        }
        client = Client::connect(nfs)?;
        client.set_user(Some(User { uid: user, gid: user }));
    }
}

pub(super) struct Honest<'a> {
    nfs: SocketAddr,
    user: u32,
    directory: &'a [u8],
    session: Session,
    file: Vec<u8>,
    turns: u64,
}

impl<'a> Honest<'a> {
    /// A client of this name.
    pub(super) fn begin(nfs: SocketAddr, user: u32, directory: &'a [u8], name: &[u8]) -> Result<Self, Error> {
        Ok(Self { nfs, user, directory, session: begin(nfs, user, name)?, file: Vec::new(), turns: 0 })
    }

    fn make(&mut self) -> Result<(), Error> {
        let opened = Compound::default().put(self.directory).open((3, 0), b"maker", b"file", true).get_handle();
        let made = self.call(&opened)?;
        let mut reader = made.reader();
        reader.skip_sequence()?;
        reader.next_result()?;
        reader.next_result()?;
        reader.stateid()?;
        reader.skip_open()?;
        reader.next_result()?;
        self.file = reader.opaque()?.to_vec();
        self.one(AskedKind::Write)
    }

    /// A compound that succeeds, and is sent again after each DELAY.
    pub(super) fn call(&mut self, operations: &Compound) -> Result<Outcome, Error> {
        loop {
            let outcome = self.session.call(operations.clone())?;
            if outcome.status != DELAY {
                return expect(&outcome, "an honest compound").map(|()| outcome);
            }
            thread::sleep(DELAY_PAUSE);
        }
    }

    fn one(&mut self, kind: AskedKind) -> Result<(), Error> {
        let byte = self.turns as u8;
        let on_file = Compound::default().put(&self.file);
        let opened = Compound::default().put(self.directory).open((3, 0), b"owner", b"file", false);
        match kind {
            AskedKind::Attributes => self.call(&on_file.attributes(&[USUAL])).map(drop),
            AskedKind::Read => {
                let read = self.call(&on_file.read(ANONYMOUS, 0, BLOCK as u32))?;
                match read.results.ends_with(&[byte.wrapping_sub(1); BLOCK]) || self.turns == 0 {
                    true => Ok(()),
                    false => Err(OTHER_BYTES),
                }
            }
            AskedKind::Write => {
                let stateid = ANONYMOUS;
                self.call(&on_file.write(stateid, 0, 0, &[byte; BLOCK])).map(drop)
            }
            AskedKind::OpenClose => self.call(&opened.close(CURRENT)).map(drop),
            AskedKind::Lock => {
                let locked = opened.lock(2, (0, 10), CURRENT, b"locker").unlock((0, 10), CURRENT);
                self.call(&locked)?;
                // The open's stateid is known to nobody now: a second OPEN by its owner gets the same open.
                let again = Compound::default().put(self.directory).open((3, 0), b"owner", b"file", false);
                self.call(&again.close(CURRENT)).map(drop)
            }
            AskedKind::NewSession => {
                self.session = begin(self.nfs, self.user, (1 + self.turns).to_string().as_bytes())?;
                Ok(())
            }
            AskedKind::Conflict => unreachable!("`conflicts` makes these"),
        }
    }
}

fn expect(outcome: &Outcome, procedure: &'static str) -> Result<(), Error> {
    match outcome.status {
        0 => Ok(()),
        status => Err(Error::Status { procedure, status }),
    }
}
