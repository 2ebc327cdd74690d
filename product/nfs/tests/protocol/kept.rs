//! The state of clients in memory that a later server finds, for kills between any two stores. A later server is one
//! over a copy of the words, with nothing else of the first.
//!
//! rule: after a kill, clients of version 4 go on with each open, lock and session, and a repeated call is done once
//! kept in: `product/nfs/src/v4/recovery.rs`, `product/nfs/src/v4/state/persisted.rs`

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afflux_frontend::{PersistedWords, words_checksum};
use afflux_linux_device::LinuxPlatform;
use afflux_nfs::{AdmittedPeers, ClientMemory, Server};
use afflux_nfs_client::sessions::{Compound, NFS_4, Outcome, Stateid};
use afflux_volume::{Nanos, Volume, VolumeError};

use crate::compounds::{BOTH, READ, ops, root, status};
use crate::peer::Peer;
use crate::world::{CLIENT, World};

const NOENT: u32 = 2;
const EXIST: u32 = 17;
/// The word of a call's entry that says that it has its reply.
const ANSWERED: usize = 6;
const EXCLUSIVE: u32 = 2;
const SHARE_DENIED: u32 = 10_015;
const BAD_STATEID: u32 = 10_025;
pub(crate) const WORDS: usize = 8192;

/// Words that are copied before each use while a log is wanted: each store is a use of its own.
pub(crate) struct Logged {
    words: Vec<AtomicU64>,
    log: Mutex<Option<BTreeSet<Vec<u64>>>>,
    uses: AtomicU64,
}

impl Logged {
    pub(crate) fn copy(&self) -> Vec<u64> {
        self.words.iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }
}

impl AsRef<[AtomicU64]> for Logged {
    fn as_ref(&self) -> &[AtomicU64] {
        self.uses.fetch_add(1, Ordering::Relaxed);
        if let Some(log) = &mut *self.log.lock().unwrap() {
            log.insert(self.copy());
        }
        &self.words
    }
}

pub(crate) fn memory(words: impl IntoIterator<Item = u64>) -> Arc<Logged> {
    Arc::new(Logged {
        words: words.into_iter().map(AtomicU64::new).collect(),
        log: Mutex::default(),
        uses: AtomicU64::new(0),
    })
}

/// A client with one slot.
pub(crate) struct Session {
    pub(crate) peer: Peer,
    pub(crate) id: [u8; 16],
    sequence: u32,
}

impl Session {
    pub(crate) fn begin(world: &World, name: &[u8]) -> Self {
        let mut session = Self::reclaiming(world, name);
        assert_eq!(session.call(&ops().reclaim_complete()).status, 0);
        session
    }

    /// As [`Session::begin`], with a back channel.
    pub(crate) fn begin_called(world: &World, name: &[u8]) -> Self {
        const BACK_CHANNEL: u32 = 2;
        let mut session = Self::with(world, name, BACK_CHANNEL);
        assert_eq!(session.call(&ops().reclaim_complete()).status, 0);
        session
    }

    /// One more of a client that has reclaimed, without a back channel.
    pub(crate) fn another(world: &World, name: &[u8]) -> Self {
        Self::with(world, name, 0)
    }

    fn reclaiming(world: &World, name: &[u8]) -> Self {
        Self::with(world, name, 0)
    }

    fn with(world: &World, name: &[u8], flags: u32) -> Self {
        let mut session = Self { peer: Peer::new(world, CLIENT), id: [0; 16], sequence: 0 };
        let known = session.send(&ops().exchange_id(name, *b"verifier", 0));
        let mut reader = known.reader();
        reader.next_result().unwrap();
        let (number, sequence) = (reader.u64().unwrap(), reader.u32().unwrap());
        let made = session.send(&ops().create_session_with(number, sequence, 16, 4, flags));
        session.id = *made.results[8..].first_chunk().unwrap();
        session
    }

    pub(crate) fn send(&mut self, call: &Compound) -> Outcome {
        Outcome::read(&self.peer.call(NFS_4, 1, &call.arguments(1))).unwrap()
    }

    pub(crate) fn call(&mut self, call: &Compound) -> Outcome {
        self.sequence += 1;
        self.again(call)
    }

    fn again(&mut self, call: &Compound) -> Outcome {
        self.send(&ops().sequence(self.id, self.sequence, 0, true).followed_by(call))
    }

    /// Opens the file. Returns the stateid and the handle.
    pub(crate) fn open(&mut self) -> (Stateid, Vec<u8>) {
        let opened = self.call(&root().open((BOTH, 0), b"program", b"file", false).get_handle());
        let (stateid, mut reader) = (stateid(&opened), opened.reader());
        reader.skip_sequence().unwrap();
        (0..2).for_each(|_| assert_eq!(reader.next_result().unwrap().1, 0));
        reader.stateid().unwrap();
        reader.skip_open().unwrap();
        reader.next_result().unwrap();
        (stateid, reader.opaque().unwrap().to_vec())
    }
}

/// The stateid in the third result.
pub(crate) fn stateid(outcome: &Outcome) -> Stateid {
    assert_eq!(outcome.status, 0);
    let mut reader = outcome.reader();
    reader.skip_sequence().unwrap();
    (0..2).for_each(|_| assert_eq!(reader.next_result().unwrap().1, 0));
    reader.stateid().unwrap()
}

/// The next server of the same directory, with these words and without the locks.
pub(crate) fn next(world: &mut World, words: PersistedWords, left: Vec<u64>) {
    let locks = world.volume.locks();
    locks.held().iter().for_each(|it| locks.release_holder(it.holder, Nanos(0)));
    world.server = Server::new(Arc::clone(&world.volume), AdmittedPeers::AnyPeer);
    world.server.offer_version_4(ClientMemory { previous_names: left, words: Some(words), ..ClientMemory::default() });
}

/// Two clients of a server over these words. The other one has a lock.
struct Clients {
    world: World,
    words: Arc<Logged>,
    one: Session,
    other: Session,
    file: Vec<u8>,
}

const OTHERS: (u64, u64) = (1000, 100);

fn begun() -> Clients {
    let mut world = World::over(|path| std::fs::write(path.join("file"), "").unwrap());
    let words = memory((0..WORDS).map(|_| 0));
    next(&mut world, words.clone(), Vec::new());
    let (one, mut other) = (Session::begin(&world, b"one"), Session::begin(&world, b"other"));
    let (opened, file) = other.open();
    assert_eq!(other.call(&ops().put(&file).lock(EXCLUSIVE, OTHERS, opened, b"other owner")).status, 0);
    Clients { world, words, one, other, file }
}

impl Clients {
    /// The server is killed with this memory, and both clients connect to the next one. The other one has not lost its
    /// lock.
    fn kill(&mut self, words: impl IntoIterator<Item = u64>) {
        self.words = memory(words);
        next(&mut self.world, self.words.clone(), Vec::new());
        self.one.peer = Peer::new(&self.world, CLIENT);
        self.other.peer = Peer::new(&self.world, CLIENT);
        let own = self.other.call(&ops().put(&self.file).test_lock(EXCLUSIVE, OTHERS, b"other owner"));
        assert_eq!(own.status, 0, "the other client's session goes on");
        let free = self.other.call(&ops().put(&self.file).test_lock(EXCLUSIVE, OTHERS, b"its next owner"));
        assert_eq!(free.status, status::DENIED, "its lock is there");
    }

    /// Carries out a call that changes state alone. A kill at each of its stores, and the call again, is as the call.
    fn step(&mut self, makes: bool, call: impl Fn() -> Compound) -> Outcome {
        *self.words.log.lock().unwrap() = Some(BTreeSet::new());
        let first = self.one.call(&call());
        let left = self.words.log.lock().unwrap().take().unwrap();
        assert_eq!(first.status, 0);
        assert!(left.len() > 10, "{} stores", left.len());
        let after = self.words.copy();
        // The copies lack the later calls of the other client, which starts anew with each copy.
        let others = self.other.sequence;
        for words in left.into_iter().chain([after.clone()]) {
            self.other.sequence = others;
            self.kill(words);
            let again = self.one.again(&call());
            assert_eq!(self.one.again(&call()), again, "once more");
            // A call that was not done yet may get a new stateid.
            let is_first = makes && stateid(&again).0 == stateid(&first).0;
            assert!(again == first || is_first, "{again:?}");
            let held = self.one.call(&ops().put(&self.file).test_lock(EXCLUSIVE, OTHERS, b"owner"));
            assert_eq!(held.status, status::DENIED, "the other's lock");
            self.one.sequence -= 1;
        }
        self.other.sequence = others;
        self.kill(after);
        first
    }
}

#[test]
fn a_kill_at_any_store_of_a_call_loses_no_state_and_the_call_is_done_once() {
    let mut clients = begun();
    let file = clients.file.clone();
    let opened = stateid(&clients.step(true, || root().open((READ, 0), b"program", b"file", false)));
    let opened_more = stateid(&clients.step(false, || root().open((BOTH, 0), b"program", b"file", false)));
    assert_eq!((opened.0, opened_more), (1, (2, opened.1)));
    let locked = stateid(&clients.step(true, || ops().put(&file).lock(EXCLUSIVE, (0, 100), opened_more, b"owner")));
    let hole = stateid(&clients.step(false, || ops().put(&file).unlock((40, 20), locked)));
    let shared = stateid(&clients.step(false, || ops().put(&file).lock_more(1, (10, 10), hole)));
    assert_eq!((locked.0, hole, shared), (1, (2, locked.1), (3, locked.1)));
    let less = stateid(&clients.step(false, || ops().put(&file).downgrade(opened_more, READ, 0)));
    assert_eq!(less.0, 3);
    // The ranges are as they would be without a kill.
    let test = |clients: &mut Clients, range| {
        clients.other.call(&ops().put(&file).test_lock(1, range, b"other owner")).status == 0
    };
    let free = [(0, 10), (10, 10), (20, 20), (40, 20), (60, 40)].map(|range| test(&mut clients, range));
    assert_eq!(free, [false, true, false, true, false]);
    let all = stateid(&clients.step(false, || ops().put(&file).unlock((0, u64::MAX), shared)));
    clients.step(false, || ops().put(&file).free(all));
    clients.step(false, || ops().put(&file).close(less));
    assert_eq!(clients.world.server.held_by_version_4().unwrap().0, 2);
}

#[test]
fn a_client_that_has_reclaimed_all_may_say_so_again_after_a_kill() {
    let mut clients = begun();
    clients.one = Session::reclaiming(&clients.world, b"new");
    let call = || ops().reclaim_complete();
    *clients.words.log.lock().unwrap() = Some(BTreeSet::new());
    assert_eq!(clients.one.call(&call()).status, 0);
    let left = clients.words.log.lock().unwrap().take().unwrap();
    assert!(left.len() > 10, "{} stores", left.len());
    let others = clients.other.sequence;
    for words in left {
        clients.other.sequence = others;
        clients.kill(words);
        assert_eq!(clients.one.again(&call()).status, 0);
        assert_eq!(clients.one.call(&call()).status, 10_054, "but not twice");
        clients.one.sequence -= 1;
    }
}

#[test]
fn an_owner_with_many_ranges_loses_none_by_a_kill_at_any_store_of_a_change() {
    let mut clients = begun();
    let file = clients.file.clone();
    let (opened, _) = clients.one.open();
    let lock = |at: u64, held| ops().put(&file).lock_more(EXCLUSIVE, (at * 2, 1), held);
    let mut held = stateid(&clients.one.call(&ops().put(&file).lock(EXCLUSIVE, (0, 1), opened, b"owner")));
    for at in 1..30 {
        held = stateid(&clients.one.call(&lock(at, held)));
    }
    // Some of these are kept as steps, and some with all ranges.
    for at in 30..40 {
        held = stateid(&clients.step(false, || lock(at, held)));
    }
    let mut model: Vec<bool> = (0..80).map(|byte| byte % 2 == 0).collect();
    let changes: [(u64, u64, bool); 5] =
        [(20, 1, false), (10, 21, true), (15, 3, false), (60, 20, false), (1, 79, true)];
    for (offset, len, locks) in changes {
        held = stateid(&clients.step(false, || match locks {
            true => ops().put(&file).lock_more(EXCLUSIVE, (offset, len), held),
            false => ops().put(&file).unlock((offset, len), held),
        }));
        model[offset as usize..(offset + len) as usize].fill(locks);
        let found = (0..80).map(|byte| {
            let tested = clients.other.call(&ops().put(&file).test_lock(1, (byte, 1), b"other owner"));
            tested.status == status::DENIED
        });
        assert_eq!(found.collect::<Vec<_>>(), model, "after {offset}, {len}, {locks}");
    }
    let all = stateid(&clients.step(false, || ops().put(&file).unlock((0, u64::MAX), held)));
    clients.step(false, || ops().put(&file).free(all));
}

#[test]
fn a_lock_costs_the_same_however_many_its_owner_has() {
    const A_COMPOUND: u64 = 12;
    let mut world = World::over(|path| std::fs::write(path.join("file"), "").unwrap());
    let words = memory((0..1 << 17).map(|_| 0));
    next(&mut world, words.clone(), Vec::new());
    let mut session = Session::begin(&world, b"one");
    let (opened, file) = session.open();
    let mut held = stateid(&session.call(&ops().put(&file).lock(EXCLUSIVE, (0, 1), opened, b"owner")));
    let mut locks = 1;
    let mut uses_for = |count: u64| {
        let before = words.uses.load(Ordering::Relaxed);
        for _ in 0..count / A_COMPOUND {
            let more = (0..A_COMPOUND).fold(ops().put(&file), |ops, at| {
                ops.lock_more(EXCLUSIVE, ((locks + at) * 2, 1), (held.0 + at as u32, held.1))
            });
            assert_eq!(session.call(&more).status, 0);
            (locks, held.0) = (locks + A_COMPOUND, held.0 + A_COMPOUND as u32);
        }
        words.uses.load(Ordering::Relaxed) - before
    };
    uses_for(240);
    let few = uses_for(600);
    uses_for(3000);
    let many = uses_for(600);
    assert!(many < 2 * few, "600 locks took {few} uses of the memory with 240 before, and {many} with 3,840");
}

#[test]
fn an_open_that_cuts_a_file_off_does_so_when_it_comes_again_after_a_kill() {
    let mut clients = begun();
    let file = clients.file.clone();
    let call = || root().open_empty((BOTH, 0), b"program", b"file");
    let size = |clients: &mut Clients| {
        let told = clients.other.call(&ops().put(&file).attributes(&[1 << 4]));
        u64::from_be_bytes(*told.results.last_chunk().unwrap())
    };
    let fill = |clients: &mut Clients| {
        let written = ops().put(&file).write((0, [0; 12]), 0, 2, b"data");
        assert_eq!(clients.other.call(&written).status, 0);
    };
    fill(&mut clients);
    let first = clients.one.call(&call());
    assert_eq!((first.status, size(&mut clients)), (0, 0));
    // As if the kill had come between the open, which is kept, and the cut.
    let unanswered = clients.words.copy().into_iter().enumerate();
    let unanswered = unanswered.map(|(word, value)| if word < WORDS / 4 && word % 128 == 6 { 0 } else { value });
    let unanswered: Vec<u64> = unanswered.collect();
    fill(&mut clients);
    clients.kill(unanswered);
    assert_eq!(size(&mut clients), 4);
    assert_eq!(clients.one.again(&call()), first);
    assert_eq!(size(&mut clients), 0);
}

/// Opens that the next server tells of as ended.
type Lost = Arc<Mutex<Vec<(u64, String, VolumeError)>>>;

/// The next server over these words, and what it tells. It has no locks of its own.
fn next_telling(volume: &Arc<Volume<LinuxPlatform>>, words: Vec<u64>) -> (Arc<Server<LinuxPlatform>>, Lost) {
    let locks = volume.locks();
    locks.held().iter().for_each(|it| locks.release_holder(it.holder, Nanos(0)));
    let heard = Lost::default();
    let hears = Arc::clone(&heard);
    let told: afflux_nfs::TellLost = Arc::new(move |lost| {
        hears.lock().unwrap().extend(lost.iter().map(|it| (it.file, it.client.clone(), it.error.clone())));
    });
    let server = Server::new(Arc::clone(volume), AdmittedPeers::AnyPeer);
    server.offer_version_4(ClientMemory { words: Some(memory(words)), told: Some(told), ..ClientMemory::default() });
    (server, heard)
}

/// What each holder of locks has: ranges, and opens that deny something.
fn locked(volume: &Volume<LinuxPlatform>) -> (usize, usize) {
    let held = volume.locks().held();
    (held.iter().map(|it| it.ranges).sum(), held.iter().map(|it| it.denying).sum())
}

// rule: after a restart an open whose file is gone has ended, with its locks and denials, before the first call is
// answered
// kept in: `product/nfs/src/v4/recovery.rs`, `product/nfs/src/call_gate.rs`
#[test]
fn a_file_that_is_gone_ends_its_opens_before_the_first_answer() {
    const DENIES_WRITING: u32 = 2;
    let mut clients = begun();
    let (opened, _) = clients.one.open();
    let denying = clients.one.call(&root().open((READ, DENIES_WRITING), b"denier", b"stays", true));
    let stays = stateid(&denying);
    let number = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(clients.world.path.join("file")).unwrap());
    assert_eq!(clients.other.call(&root().remove(b"file")).status, 0);
    let words = clients.words.copy();
    // The host keeps no removed file of a server that has gone.
    clients.world.server = Server::new(Arc::clone(&clients.world.volume), AdmittedPeers::AnyPeer);
    for session in [&mut clients.one, &mut clients.other] {
        session.peer = Peer::new(&clients.world, CLIENT);
    }
    let (server, heard) = next_telling(&clients.world.volume, words);
    clients.world.server = server;
    // The first call of all is a new client's. It finds the locks as they are to be from now on.
    let mut new = Session::begin(&clients.world, b"new");
    assert_eq!(locked(&clients.world.volume), (0, 1), "the lock has ended, and the other file's denial has not");
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 2);
    assert!(heard.iter().all(|it| it.0 == number && it.2 == VolumeError::Stale), "{heard:?}");
    let named = |name: &str| heard.iter().any(|it| it.1.contains(name));
    assert!(named("one") && named("other"), "{heard:?}");
    // The old stateids are of no file that has the name or the number now.
    let made = new.call(&root().open((BOTH, 0), b"program", b"file", true).get_handle());
    assert_eq!(made.status, 0);
    clients.one.peer = Peer::new(&clients.world, CLIENT);
    let (again, file) = clients.one.open();
    assert_ne!(again.1, opened.1, "the owner's next open is a new one");
    for call in [ops().put(&file).read(opened, 0, 10), ops().put(&file).close(opened)] {
        assert_eq!(clients.one.call(&call).status, BAD_STATEID);
    }
    let wanted = ops().put(&file).lock(EXCLUSIVE, OTHERS, stateid(&made), b"owner");
    assert_eq!(new.call(&wanted).status, 0, "nobody has locked the new file");
    assert_eq!(new.call(&root().open((BOTH, 0), b"program", b"stays", false)).status, SHARE_DENIED);
    let (_, stays_at) = (stays, clients.one.call(&root().open((READ, 0), b"denier", b"stays", false)));
    assert_eq!(stateid(&stays_at).1, stays.1, "the same owner has it open");
}

#[test]
fn a_server_of_other_directories_has_no_open_file_of_the_one_before() {
    let mut clients = begun();
    clients.one.open();
    // The same key, as with the same state; and a file of the same name.
    let mut others = World::over(|path| std::fs::write(path.join("file"), "another's").unwrap());
    let (server, heard) = next_telling(&others.volume, clients.words.copy());
    others.server = server;
    let mut new = Session::begin(&others, b"new");
    assert_eq!((locked(&others.volume), heard.lock().unwrap().len()), ((0, 0), 2));
    let (opened, file) = new.open();
    assert_eq!(new.call(&ops().put(&file).lock(EXCLUSIVE, OTHERS, opened, b"owner")).status, 0);
    assert_eq!(others.server.held_by_version_4().unwrap().2, 1);
    // With the first directories all is there.
    let words = clients.words.copy();
    clients.kill(words);
}

#[test]
fn a_change_of_names_is_done_once_over_a_kill_and_gets_its_reply() {
    let mut clients = begun();
    let calls: [fn() -> Compound; 4] = [
        || root().make_directory(b"made").get_handle(),
        || root().open_new(BOTH, 1, b"program", b"new").get_handle(),
        || root().save().rename(b"new", b"renamed"),
        || root().remove(b"renamed"),
    ];
    for (at, call) in calls.iter().enumerate() {
        // Keep the memory as it is once the host has been asked: the last copy before the answer, and the one after it.
        *clients.words.log.lock().unwrap() = Some(BTreeSet::new());
        let first = clients.one.call(&call());
        clients.words.log.lock().unwrap().take();
        assert_eq!(first.status, 0, "call {at}");
        let answered = clients.words.copy();
        clients.kill(unanswered(&answered));
        assert_eq!(clients.one.again(&call()).status, 0, "call {at}, done");
        clients.kill(unnoted(&answered));
        let unknown = clients.one.again(&call()).status;
        assert!([NOENT, EXIST].contains(&unknown), "call {at}, begun: {unknown}");
        clients.kill(answered);
        assert_eq!(clients.one.again(&call()), first, "call {at}, answered");
    }
}

/// The entries of calls, as words.
fn with_entries(words: &[u64], change: impl Fn(&mut [u64])) -> Vec<u64> {
    let mut words = words.to_vec();
    words[..WORDS / 4].chunks_mut(128).filter(|entry| entry[0] != 0).for_each(change);
    words
}

/// The words of a kill before any answer was noted.
fn unanswered(words: &[u64]) -> Vec<u64> {
    with_entries(words, |entry| entry[ANSWERED] = 0)
}

/// The words of a kill before anything was noted but the beginning.
fn unnoted(words: &[u64]) -> Vec<u64> {
    with_entries(&unanswered(words), |entry| {
        entry[ANSWERED - 1] = 0;
        entry[0] = words_checksum(entry[1..ANSWERED].iter().copied());
    })
}

// rule: the status of each call that has ended outlives the server, however long its reply was
// kept in: `product/frontend/src/journal.rs`, `product/nfs/src/v4/compound.rs`
#[test]
fn a_refused_open_with_a_long_reply_stays_refused_and_opens_no_file_of_others() {
    let mut clients = begun();
    let long = || (0..8).fold(root(), |call, _| call.attributes(&[0x0018_091a, 0x00b0_a23a]));
    let call = || long().followed_by(&ops().open_new(BOTH, 0, b"program", b"file").get_handle());
    let refused = clients.one.call(&call());
    assert!(refused.status == EXIST && refused.results.len() > 960, "{} bytes", refused.results.len());
    let left = clients.words.copy();
    for words in [left.clone(), unanswered(&left), unnoted(&left)] {
        clients.kill(words);
        std::fs::write(clients.world.path.join("another name"), "").unwrap();
        let again = clients.one.again(&call());
        assert_eq!((again.status, again.results.len()), (EXIST, refused.results.len()));
    }
    // Of a call that is known to have ended, the name that is free now is not made either.
    std::fs::remove_file(clients.world.path.join("file")).unwrap();
    clients.world.server = Server::new(Arc::clone(&clients.world.volume), AdmittedPeers::AnyPeer);
    next(&mut clients.world, memory(left), Vec::new());
    clients.one.peer = Peer::new(&clients.world, CLIENT);
    assert_eq!(clients.one.again(&call()).status, EXIST);
    assert!(!clients.world.path.join("file").exists());
}

#[test]
fn a_call_with_several_changes_does_none_of_them_again() {
    let mut clients = begun();
    let call = || root().remove(b"one").save().rename(b"two", b"moved").make_directory(b"made");
    let paths = ["one", "two", "made"].map(|name| clients.world.path.join(name));
    paths[..2].iter().for_each(|path| std::fs::write(path, "").unwrap());
    assert_eq!(clients.one.call(&call()).status, 0);
    let left = clients.words.copy();
    // Others use the names again.
    paths[..2].iter().for_each(|path| std::fs::write(path, "theirs").unwrap());
    clients.kill(unanswered(&left));
    assert_eq!(clients.one.again(&call()).status, 0);
    assert!(paths[..2].iter().all(|path| std::fs::read(path).unwrap() == b"theirs"));
    std::fs::rename(&paths[2], clients.world.path.join("elsewhere")).unwrap();
    std::fs::create_dir(&paths[2]).unwrap();
    clients.kill(unanswered(&left));
    assert_eq!(clients.one.again(&call()).status, EXIST, "another one's directory");
}

// rule: attributes that an earlier server has set for the same call are not set again
// kept in: `product/nfs/src/v4/operations/attributes.rs`
#[test]
fn attributes_are_set_once_over_a_kill() {
    const OTHERS_VALUES: (u64, u32) = (4, 0o600);
    let mut clients = begun();
    let (opened, file) = clients.one.open();
    // SETATTR of a size and a mode by an open.
    let words = [2_u32, 1 << 4, 1 << 1, 12, 0, 0, 0o640];
    let both: Vec<u8> = opened
        .0
        .to_be_bytes()
        .into_iter()
        .chain(opened.1)
        .chain(words.into_iter().flat_map(u32::to_be_bytes))
        .collect();
    let calls = [
        ops().put(&file).set_size(opened, 0),
        ops().put(&file).set_size((0, [0; 12]), 0),
        ops().put(&file).set_mode(0o640),
        ops().put(&file).raw(34, &both),
    ];
    let told = |clients: &mut Clients| {
        let told = clients.other.call(&ops().put(&file).attributes(&[1 << 4, 1 << 1]));
        let [size @ .., a, b, c, d]: [u8; 12] = *told.results.last_chunk().unwrap();
        (u64::from_be_bytes(size), u32::from_be_bytes([a, b, c, d]))
    };
    for (at, call) in calls.iter().enumerate() {
        assert_eq!(clients.one.call(call).status, 0, "call {at}");
        let others = ops().put(&file).write((0, [0; 12]), 0, 2, b"data").set_mode(OTHERS_VALUES.1);
        assert_eq!(clients.other.call(&others).status, 0);
        assert_eq!(told(&mut clients), OTHERS_VALUES);
        let (left, sequence) = (clients.words.copy(), clients.other.sequence);
        clients.kill(unanswered(&left));
        assert_eq!(clients.one.again(call).status, 0, "call {at}, done");
        assert_eq!(told(&mut clients), OTHERS_VALUES, "call {at}, done");
        clients.other.sequence = sequence;
        clients.kill(unnoted(&left));
        assert_eq!(clients.one.again(call).status, 0, "call {at}, begun");
        assert_ne!(told(&mut clients), OTHERS_VALUES, "call {at}, begun");
    }
}

#[test]
fn a_file_that_another_client_makes_after_a_kill_is_not_this_ones() {
    let mut clients = begun();
    let call = || root().open_new(BOTH, 0, b"program", b"lock").get_handle();
    // The call has begun and found the name taken, and then all is as if it had not ended.
    std::fs::write(clients.world.path.join("lock"), "").unwrap();
    assert_eq!(clients.one.call(&call()).status, EXIST);
    std::fs::remove_file(clients.world.path.join("lock")).unwrap();
    let left = unnoted(&clients.words.copy());
    clients.kill(left);
    let made = clients.other.call(&root().open_new(BOTH, 0, b"program", b"lock").get_handle());
    assert_eq!(made.status, 0);
    assert_eq!(clients.one.again(&call()).status, EXIST, "it is the other's");
}

// rule: a client that calls often evicts no other client's cached reply, before a kill or after it
// kept in: `product/frontend/src/journal.rs`, `product/nfs/src/v4/state/persisted.rs`
#[test]
fn a_busy_client_or_slot_takes_no_reply_of_another_over_a_kill() {
    let mut clients = begun();
    let call = || root().make_directory(b"made").get_handle();
    let first = clients.one.call(&call());
    assert_eq!(first.status, 0);
    // The first client's other slot is busy, too.
    let mut other_slot = 0;
    for kill in 0..2 {
        for number in 0..50 {
            let make = root().make_directory(format!("{kill}.{number}").as_bytes());
            assert_eq!(clients.other.call(&make).status, 0);
            other_slot += 1;
            let make = root().make_directory(format!("slot.{other_slot}").as_bytes());
            let sequence = ops().sequence(clients.one.id, other_slot, 1, true);
            assert_eq!(clients.one.send(&sequence.followed_by(&make)).status, 0);
        }
        clients.kill(clients.words.copy());
    }
    assert_eq!(clients.one.again(&call()), first);
}

#[test]
fn damaged_memory_gives_no_state_to_anybody_and_all_ask_again() {
    const GRACE: u32 = 10_013;
    let mut clients = begun();
    let right = clients.words.copy();
    let used: Vec<usize> = (WORDS / 4..WORDS).filter(|at| right[*at] != 0).collect();
    assert!(used.len() > 40);
    let (mut lost, mut whole) = (0, 0);
    for at in used {
        let damaged =
            right.iter().enumerate().map(|(word, value)| if word == at { value ^ 1 << (at % 64) } else { *value });
        next(&mut clients.world, memory(damaged), vec![77]);
        clients.other.peer = Peer::new(&clients.world, CLIENT);
        let sequence = clients.other.sequence;
        let goes_on = clients.other.call(&root());
        clients.other.sequence = sequence;
        let mut new = Session::begin(&clients.world, b"new");
        if goes_on.status == 0 {
            // A word that counts no more: all is there.
            let (opened, file) = new.open();
            let wanted = new.call(&ops().put(&file).lock(EXCLUSIVE, OTHERS, opened, b"owner"));
            assert_eq!(wanted.status, status::DENIED, "word {at}");
            whole += 1;
        } else {
            assert_eq!(goes_on.status, status::BADSESSION, "word {at}");
            let opens = new.call(&root().open((BOTH, 0), b"program", b"file", false));
            assert_eq!(opens.status, GRACE, "word {at}: others wait for those on the list");
            lost += 1;
        }
    }
    assert!(lost > 40 && whole < lost, "{lost} {whole}");
}

#[test]
fn a_client_that_is_away_after_a_kill_makes_nobody_wait() {
    let mut clients = begun();
    let words = clients.words.copy();
    // The list has a name whose removal came too late.
    next(&mut clients.world, memory(words), vec![77]);
    let mut new = Session::begin(&clients.world, b"new");
    let (opened, file) = new.open();
    let wanted = ops().put(&file).lock(EXCLUSIVE, OTHERS, opened, b"owner");
    assert_eq!(new.call(&wanted).status, status::DENIED);
    clients.other.peer = Peer::new(&clients.world, CLIENT);
    let (opened_again, _) = clients.other.open();
    assert_eq!(clients.other.call(&ops().put(&file).close(opened_again)).status, 0);
    assert_eq!(new.call(&wanted).status, 0);
}
