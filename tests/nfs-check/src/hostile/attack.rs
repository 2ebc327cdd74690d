//! Hostile clients.
//!
//! Owns: the kinds of hostile clients, their calls.
//! Does not own: the verdict on a server: the answers to hostile clients are only counted.
//! Invariants: a hostile client whose connection ends, or whose session is refused, begins again as another client.

use std::net::SocketAddr;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use afflux_nfs_client::sessions::{ANONYMOUS, CURRENT, Compound, NFS_4, Session};
use afflux_nfs_client::{Client, Error, User};

use super::conflicts;
use crate::random::Random;

/// The longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(2);
const COPY: u32 = 60;
const DELAY: u32 = 10_008;
const BAD_STATEID: u32 = 10_025;
/// OPEN for reading, with a wish for a delegation.
const WANTS_READ: (u32, u32) = (0x101, 0);
const OWN_FILES: u64 = 500;
const MIB: usize = 1 << 20;
const BIG_MIB: usize = 16;

/// A kind of hostile client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attack {
    /// Operations of any number, with any bytes, behind valid ones.
    Garbage,
    /// Each lock owner locks a byte of one file; some owners wait for the same byte.
    LockOwners,
    /// Opens of many files, which deny others.
    Opens,
    /// New clients and sessions without an end.
    Clients,
    /// Copies of large ranges.
    Copies,
    /// Large files that are removed as soon as they are cached.
    Removals,
    /// Large writes whose connection is reset before an answer.
    Resets,
    /// Listings of a large directory.
    Listings,
    /// Read delegations of an honest user's files and of many own ones, of which none is returned.
    Delegations,
}

impl Attack {
    /// Each kind.
    pub const ALL: [Self; 9] = [
        Self::Garbage,
        Self::LockOwners,
        Self::Opens,
        Self::Clients,
        Self::Copies,
        Self::Removals,
        Self::Resets,
        Self::Listings,
        Self::Delegations,
    ];

    /// The word for people and programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Garbage => "garbage",
            Self::LockOwners => "lock-owners",
            Self::Opens => "opens",
            Self::Clients => "clients",
            Self::Copies => "copies",
            Self::Removals => "removals",
            Self::Resets => "resets",
            Self::Listings => "listings",
            Self::Delegations => "delegations",
        }
    }

    pub(super) fn run(self, nfs: SocketAddr, seed: u64, user: u32, goes_on: &dyn Fn() -> bool, answered: &dyn Fn()) {
        let mut random = Random::new(seed ^ u64::from(user));
        while goes_on() {
            let mut hostile = match Hostile::begin(nfs, user, self, &mut random, answered) {
                Ok(hostile) => hostile,
                Err(_) => {
                    thread::sleep(Duration::from_millis(10));
                    continue;
                }
            };
            // After an error the next client begins.
            let _ = hostile.attack(&mut random, goes_on);
        }
    }
}

impl FromStr for Attack {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let words = || Self::ALL.map(Self::word).join(", ");
        Self::ALL.into_iter().find(|kind| kind.word() == word).ok_or_else(|| format!("'{word}' is none of {}", words()))
    }
}

struct Hostile<'a> {
    kind: Attack,
    session: Session,
    directory: Compound,
    nfs: SocketAddr,
    user: u32,
    answered: &'a dyn Fn(),
}

fn connect(nfs: SocketAddr, user: u32) -> Result<Client, Error> {
    let mut client = Client::connect(nfs)?;
    client.set_user(Some(User { uid: user, gid: user }));
    client.set_timeout(Some(PATIENCE))?;
    Ok(client)
}

impl<'a> Hostile<'a> {
    fn begin(
        nfs: SocketAddr,
        user: u32,
        kind: Attack,
        random: &mut Random,
        answered: &'a dyn Fn(),
    ) -> Result<Self, Error> {
        let name = random.next().to_be_bytes();
        let mut session = Session::begin(connect(nfs, user)?, &name, 2)?;
        session.keeps = random.below(2) == 0;
        let directory = Compound::default().put_root().lookup(kind.word().as_bytes());
        Ok(Self { kind, session, directory, nfs, user, answered })
    }

    /// Sends a compound. Returns the status of the answer, which may be an error.
    fn call(&mut self, operations: &Compound) -> Result<u32, Error> {
        let outcome = self.session.call(operations.clone())?;
        (self.answered)();
        Ok(outcome.status)
    }

    fn attack(&mut self, random: &mut Random, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        match self.kind {
            Attack::Garbage => self.send_garbage(random, goes_on),
            Attack::LockOwners => self.fill_locks(random, goes_on),
            Attack::Opens => self.fill_opens(random, goes_on),
            Attack::Clients => self.begin_clients(random, goes_on),
            Attack::Copies => self.copy(goes_on),
            Attack::Removals => self.remove(goes_on),
            Attack::Resets => self.reset(goes_on),
            Attack::Listings => self.list(goes_on),
            Attack::Delegations => self.hold(random, goes_on),
        }
    }

    fn send_garbage(&mut self, random: &mut Random, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        while goes_on() {
            let mut operations = self.directory.clone();
            for _ in 0..random.below(6) {
                let bytes: Vec<u8> = (0..random.below(64)).map(|_| (random.next() & random.next()) as u8).collect();
                operations = match random.below(4) {
                    0 => operations.open((random.below(4) as u32, random.below(4) as u32), &bytes, b"any", true),
                    1 => operations.lock(random.below(6) as u32, (random.next(), random.next()), CURRENT, &bytes),
                    2 => operations.list(random.next(), random.next() as u32, &[u32::MAX, u32::MAX]),
                    _ => operations.raw(random.below(80) as u32, &bytes),
                };
            }
            self.call(&operations)?;
        }
        Ok(())
    }

    fn fill_locks(&mut self, random: &mut Random, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        while goes_on() {
            let opened = self.directory.clone().open((3, 0), b"opener", b"file", true);
            let owner = random.next().to_be_bytes();
            // Most owners lock a byte each; some wait for a byte that is locked.
            let (kind, at) = if random.below(8) == 0 { (4, 0) } else { (2, random.below(1 << 20)) };
            self.call(&opened.lock(kind, (at, 1), CURRENT, &owner))?;
            if random.below(4) == 0 {
                let held = self.directory.clone().open((3, 0), b"opener", b"file", true);
                let at = random.below(1 << 20);
                self.call(&held.lock(2, (at, 1), CURRENT, &owner).unlock((at, 1), CURRENT))?;
            }
        }
        Ok(())
    }

    fn fill_opens(&mut self, random: &mut Random, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        while goes_on() {
            let (owner, name) = (random.next().to_be_bytes(), format!("file-{}", random.below(2_000)));
            let deny = if random.below(16) == 0 { 3 } else { 0 };
            self.call(&self.directory.clone().open((3, deny), &owner, name.as_bytes(), true))?;
        }
        Ok(())
    }

    fn begin_clients(&mut self, random: &mut Random, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        let mut sessions = Vec::new();
        while goes_on() {
            sessions.push(Session::begin(connect(self.nfs, self.user)?, &random.next().to_be_bytes(), 2)?);
            (self.answered)();
            // The server knows the clients for their lease, while their connections are gone.
            sessions.truncate(64);
        }
        Ok(())
    }

    fn write_big(&mut self, name: &[u8]) -> Result<(), Error> {
        for at in 0..BIG_MIB {
            let written = self.directory.clone().open((3, 0), b"writer", name, true);
            self.call(&written.write(CURRENT, (at * MIB) as u64, 0, &vec![at as u8; MIB]).close(CURRENT))?;
        }
        Ok(())
    }

    fn copy(&mut self, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        self.write_big(b"from")?;
        self.write_big(b"to")?;
        let (sequence, other) = ANONYMOUS;
        let stateid = [&sequence.to_be_bytes()[..], &other].concat();
        let count = ((BIG_MIB * MIB) as u64).to_be_bytes();
        // Consecutive and synchronous, within this server.
        let words = [1_u32, 1, 0].map(u32::to_be_bytes).concat();
        let arguments = [&stateid[..], &stateid, &[0; 16], &count, &words].concat();
        let both = self.directory.clone().lookup(b"from").save();
        let both = both.followed_by(&self.directory.clone().lookup(b"to"));
        let copies = (0..7).fold(both, |operations, _| operations.raw(COPY, &arguments));
        while goes_on() {
            self.call(&copies)?;
        }
        Ok(())
    }

    fn remove(&mut self, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        while goes_on() {
            self.write_big(b"big")?;
            self.call(&self.directory.clone().remove(b"big"))?;
        }
        Ok(())
    }

    fn reset(&mut self, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        let data = vec![7; MIB];
        while goes_on() {
            let mut client = connect(self.nfs, self.user)?;
            let name = self.session.number.to_be_bytes();
            let mut session = Session::begin(client, &[&name[..], b"reset"].concat(), 2)?;
            (self.answered)();
            let opened = self.directory.clone().open((3, 0), b"writer", b"file", true);
            let written = opened.write(CURRENT, 0, 2, &data);
            let first = Compound::default().sequence(session.id, session.sequence + 1, 0, false);
            session.client.send(NFS_4, 1, &first.followed_by(&written).arguments(2))?;
            rustix::net::sockopt::set_socket_linger(session.client.socket(), Some(Duration::ZERO))
                .map_err(std::io::Error::from)?;
            client = session.client;
            drop(client);
        }
        Ok(())
    }

    fn list(&mut self, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        for number in 0..5_000 {
            let name = format!("name-{number}");
            self.call(&self.directory.clone().make_link(name.as_bytes(), b"nowhere"))?;
        }
        while goes_on() {
            self.call(&self.directory.clone().list(0, 1 << 20, &[!(1 << 11), 0xffff]))?;
        }
        Ok(())
    }

    /// A client that answers a recall with success, with a refusal or not at all, and returns nothing. It ends without
    /// a word.
    fn hold(&mut self, random: &mut Random, goes_on: &dyn Fn() -> bool) -> Result<(), Error> {
        let (life, mut draws) = (Instant::now() + Duration::from_secs(random.below(60)), Random::new(random.next()));
        let mut client = connect(self.nfs, self.user)?;
        client.answer_calls(Box::new(move |call| match call.recalled {
            None => Some(0),
            Some(_) => [Some(0), Some(DELAY), Some(BAD_STATEID), None][draws.below(4) as usize],
        }));
        let name = random.next().to_be_bytes();
        self.session = Session::begin_with_back_channel(client, &name, 2)?;
        for number in 0..OWN_FILES {
            let made = self.directory.clone().open((3, 0), b"maker", format!("own-{number}").as_bytes(), true);
            self.call(&made.close(CURRENT))?;
        }
        while goes_on() && Instant::now() < life {
            let shared = conflicts::name(random.below(conflicts::SHARED));
            let honest = Compound::default().put_root().lookup(b"honest");
            self.call(&honest.open(WANTS_READ, b"holder", shared.as_bytes(), false).close(CURRENT))?;
            let own = format!("own-{}", random.below(OWN_FILES));
            self.call(&self.directory.clone().open(WANTS_READ, b"holder", own.as_bytes(), false).close(CURRENT))?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
