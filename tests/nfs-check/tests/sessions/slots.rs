//! Clients of version 4 with several slots in flight over two connections. Replies are lost for short and for long
//! times, calls come twice at once, connections go, and servers are killed. A model of each slot's names and stateids
//! knows how often each call was carried out.

//! rule: each call on a slot is carried out once, whatever the other slots and other clients do, and whenever the
//! server is killed kept in: `product/nfs/src/v4/state/slots.rs`, `product/frontend/src/journal.rs`,
//! `product/volume/src/names/repeated.rs`

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use afflux_engine::Nanos;
use afflux_nfs_client::sessions::{Compound, NFS_4, Outcome, OutcomeReader, Stateid};
use afflux_nfs_client::{Envelope, read_reply, take_record};
use afflux_simulator::LinkEnd;
use bytes::Bytes;
use futures_util::future::{join_all, select};

use crate::mortal::{PATIENCE_NS, Random, Site};

const CLIENTS: usize = 2;
const SLOTS: u32 = 6;
const NOT_FOUND: u32 = 2;
const EXISTS: u32 = 17;
const DELAY: u32 = 10_008;
const RETRY_UNCACHED: u32 = 10_068;
const EXCLUSIVE: u32 = 2;
/// Most time for which a slot does not hear its reply.
const DEAF_NS: u64 = 4 * Nanos::SECOND;

#[derive(Default, Debug)]
struct Counts {
    calls: u64,
    /// Calls that were sent again.
    repeated: u64,
    /// Further replies to a call that had one.
    further: u64,
}

/// The connections of a client, which all its slots use.
struct Lines {
    site: Arc<Site>,
    at: usize,
    state: Mutex<LineState>,
    counts: Mutex<Counts>,
}

struct LineState {
    ends: [(LinkEnd, Vec<u8>); 2],
    envelope: Envelope,
    /// The replies to calls that are under way.
    replies: BTreeMap<u32, Vec<Outcome>>,
}

impl LineState {
    /// Takes what has arrived.
    fn receive(&mut self) {
        for (end, received) in &mut self.ends {
            let mut cx = Context::from_waker(Waker::noop());
            while let Poll::Ready(Some(piece)) = end.poll_receive(&mut cx) {
                received.extend(piece);
            }
            while let Some(record) = take_record(received) {
                let Ok(reply) = read_reply(&record) else { continue };
                if let Some(replies) = self.replies.get_mut(&reply.xid) {
                    replies.push(Outcome::read(&reply.results).unwrap());
                }
            }
        }
    }
}

impl Lines {
    fn new(site: &Arc<Site>, at: usize) -> Arc<Self> {
        let state = LineState {
            ends: [site.connect(at), site.connect(at)],
            envelope: Envelope::new(1 + at as u32 * 1_000_000),
            replies: BTreeMap::new(),
        };
        Arc::new(Self { site: Arc::clone(site), at, state: Mutex::new(state), counts: Mutex::default() })
    }

    async fn send(&self, over: usize, record: &[u8]) {
        let mut bytes = Bytes::copy_from_slice(record);
        loop {
            let polled =
                self.state.lock().unwrap().ends[over].0.poll_send(&mut Context::from_waker(Waker::noop()), &mut bytes);
            if polled.is_ready() {
                return;
            }
            self.site.sleep(Nanos::MILLISECOND).await;
        }
    }

    /// The answer, if it is there. All answers to a call whose answer is kept are the same.
    fn arrived(&self, xid: u32, keeps: bool) -> Option<Outcome> {
        let mut state = self.state.lock().unwrap();
        state.receive();
        let mut replies = state.replies[&xid].iter().filter(|it| it.status != DELAY);
        let first = replies.next()?;
        for further in replies {
            assert!(!keeps || further == first, "two replies: {first:?} and {further:?}");
            self.counts.lock().unwrap().further += 1;
        }
        Some(first.clone())
    }

    /// The answer within some time.
    async fn answer(&self, xid: u32, wait_ns: u64, keeps: bool) -> Option<Outcome> {
        let until_ns = self.site.now_ns() + wait_ns;
        while self.site.now_ns() < until_ns {
            if let Some(answer) = self.arrived(xid, keeps) {
                return Some(answer);
            }
            self.site.sleep(Nanos::MILLISECOND).await;
        }
        None
    }

    /// Sends a call until it is answered.
    async fn call(&self, ops: &Compound, keeps: bool, random: &mut Random) -> Outcome {
        let (xid, record) = {
            let mut state = self.state.lock().unwrap();
            let (xid, record) = state.envelope.record(NFS_4, 1, &ops.arguments(1));
            state.replies.insert(xid, Vec::new());
            (xid, record)
        };
        self.counts.lock().unwrap().calls += 1;
        loop {
            let over = random.below(2) as usize;
            self.send(over, &record).await;
            if random.below(8) == 0 {
                self.send(1 - over, &record).await;
            }
            match random.below(16) {
                // The reply, and perhaps others, are lost.
                0 => self.state.lock().unwrap().ends[over] = self.site.connect(self.at),
                // It is not heard for a while, and the call comes again.
                1 => self.site.sleep(random.below(DEAF_NS)).await,
                2 => self.site.sleep(random.below(PATIENCE_NS)).await,
                _ => {
                    if let Some(answer) = self.answer(xid, PATIENCE_NS, keeps).await {
                        self.state.lock().unwrap().replies.remove(&xid);
                        return answer;
                    }
                    if random.below(2) == 0 {
                        self.state.lock().unwrap().ends[over] = self.site.connect(self.at);
                    }
                }
            }
            self.counts.lock().unwrap().repeated += 1;
        }
    }
}

struct Slot {
    lines: Arc<Lines>,
    random: Random,
    session: [u8; 16],
    slot: u32,
    sequence: u32,
    /// Its directory, and the names there.
    directory: Vec<u8>,
    names: BTreeSet<String>,
    /// Names that were there.
    gone: Vec<String>,
    made: u64,
    /// The file that all slots of the client have open, with this slot's open and locks.
    file: Vec<u8>,
    open: Stateid,
    locks: Option<Stateid>,
}

/// A reader behind the SEQUENCE and some operations without results.
fn behind<'a>(outcome: &'a Outcome, operations: &[u32]) -> OutcomeReader<'a> {
    let mut reader = outcome.reader();
    reader.skip_sequence().unwrap();
    operations.iter().for_each(|number| assert_eq!(reader.next_result(), Ok((*number, 0))));
    reader
}

fn ops() -> Compound {
    Compound::default()
}

impl Slot {
    async fn call(&mut self, ops: &Compound, keeps: bool) -> Outcome {
        self.sequence += 1;
        let first = Compound::default().sequence(self.session, self.sequence, self.slot, keeps);
        self.lines.call(&first.followed_by(ops), keeps, &mut self.random).await
    }

    /// A change, which succeeds.
    async fn change(&mut self, ops: &Compound) -> Outcome {
        let outcome = self.call(ops, true).await;
        assert_eq!(outcome.status, 0, "client {}, slot {}, call {}", self.lines.at, self.slot, self.sequence);
        outcome
    }

    /// A change of names. A kill between the host's change and its note leaves a change of which no server knows: its
    /// repetition hears a status of `after_kill`, which is returned.
    async fn change_names(&mut self, ops: &Compound, after_kill: &[u32]) -> Option<u32> {
        let kills = self.lines.site.kills();
        let status = self.call(ops, true).await.status;
        let is_known = status == 0 || self.lines.site.kills() > kills && after_kill.contains(&status);
        assert!(is_known, "status {status}: client {}, slot {}, call {}", self.lines.at, self.slot, self.sequence);
        (status != 0).then_some(status)
    }

    fn here(&self) -> Compound {
        ops().put(&self.directory)
    }

    fn new_name(&mut self) -> String {
        self.made += 1;
        format!("{}.{}", self.slot, self.made)
    }

    /// A name that is there, which is not from now on.
    fn take_name(&mut self) -> Option<String> {
        let at = self.random.below(self.names.len().max(1) as u64) as usize;
        let name = self.names.iter().nth(at).cloned()?;
        self.names.remove(&name);
        self.gone.push(name.clone());
        Some(name)
    }

    /// Whether a name is there, as the server says.
    async fn has(&mut self, name: &str) -> bool {
        loop {
            match self.call(&self.here().lookup(name.as_bytes()), false).await.status {
                0 => return true,
                NOT_FOUND => return false,
                status => assert_eq!(status, RETRY_UNCACHED, "its reply is not kept"),
            }
        }
    }

    async fn check_all(&mut self) {
        for name in self.names.clone() {
            assert!(self.has(&name).await, "{name} is gone");
        }
        for name in self.gone.clone() {
            assert!(!self.has(&name).await, "{name} is back");
        }
    }

    async fn make(&mut self) {
        let name = self.new_name();
        self.change_names(&self.here().make_directory(name.as_bytes()), &[EXISTS]).await;
        self.names.insert(name);
    }

    async fn rename(&mut self) {
        let Some(old) = self.take_name() else { return };
        let new = self.new_name();
        self.change_names(&self.here().save().rename(old.as_bytes(), new.as_bytes()), &[NOT_FOUND]).await;
        self.names.insert(new);
    }

    async fn remove(&mut self) {
        let Some(name) = self.take_name() else { return };
        self.change_names(&self.here().remove(name.as_bytes()), &[NOT_FOUND]).await;
    }

    /// Two changes in one call.
    async fn change_twice(&mut self) {
        let new = self.new_name();
        let mut both = self.here().make_directory(new.as_bytes());
        let removes = self.take_name().map(|old| self.here().remove(old.as_bytes()));
        both = removes.iter().fold(both, |both, removes| both.followed_by(removes));
        // The first refusal ends a compound.
        if let (Some(EXISTS), Some(removes)) = (self.change_names(&both, &[EXISTS, NOT_FOUND]).await, removes) {
            self.change_names(&removes, &[NOT_FOUND]).await;
        }
        self.names.insert(new);
    }

    /// Opens a new file, twice, and closes it.
    async fn open_and_close(&mut self) {
        let (name, owner) = (self.new_name(), format!("owner {}", self.slot));
        let mut last = (0, [0; 12]);
        for sequence in 1..3 {
            let opened = self.change(&self.here().open((3, 0), owner.as_bytes(), name.as_bytes(), true)).await;
            last = behind(&opened, &[22, 18]).stateid().unwrap();
            assert_eq!(last.0, sequence, "opened once by each call");
        }
        self.change(&self.here().lookup(name.as_bytes()).close(last)).await;
        self.names.insert(name);
    }

    /// A LOCK or LOCKU of its own bytes. The stateid tells how often it was carried out.
    async fn lock(&mut self) {
        let from = u64::from(self.slot) * 100 + self.random.below(50);
        let (range, file) = ((from, 1 + self.random.below(50)), ops().put(&self.file));
        let (call, number) = match self.locks {
            None => (file.lock(EXCLUSIVE, range, self.open, format!("locks {}", self.slot).as_bytes()), 12),
            Some(locks) if self.random.below(3) == 0 => (file.unlock(range, locks), 14),
            Some(locks) => (file.lock_more(EXCLUSIVE, range, locks), 12),
        };
        let stateid = behind(&self.change(&call).await, &[22, number]).stateid().unwrap();
        assert_eq!(stateid.0, self.locks.map_or(1, |it| it.0 + 1), "carried out once");
        self.locks = Some(stateid);
    }

    async fn run(mut self, steps: usize) {
        for _ in 0..steps {
            match self.random.below(10) {
                0..=2 => self.make().await,
                3 => self.rename().await,
                4 => self.remove().await,
                5 => self.change_twice().await,
                6 => self.open_and_close().await,
                7 => self.lock().await,
                8 => {
                    let (there, gone) = (self.names.first().cloned(), self.gone.last().cloned());
                    for (name, is_there) in there.map(|it| (it, true)).into_iter().chain(gone.map(|it| (it, false))) {
                        assert_eq!(self.has(&name).await, is_there, "{name}");
                    }
                }
                _ => self.lines.site.sleep(self.random.below(DEAF_NS)).await,
            }
        }
        self.check_all().await;
    }
}

/// A client, and its slots.
async fn begin(lines: &Arc<Lines>, seed: u64) -> Vec<Slot> {
    let (site, at) = (&lines.site, lines.at);
    let mut random = Random(seed ^ (at as u64 + 1) << 32);
    let made = loop {
        let known = lines.call(&ops().exchange_id(&[at as u8], *b"verifier", 0), false, &mut random).await;
        let mut reader = known.reader();
        assert_eq!(reader.next_result(), Ok((42, 0)));
        let (number, sequence) = (reader.u64().unwrap(), reader.u32().unwrap());
        let made = lines.call(&ops().create_session(number, sequence, 16, SLOTS), false, &mut random).await;
        if made.status == 0 {
            break made;
        }
        // A repetition of the first call has come late.
        site.sleep(PATIENCE_NS).await;
    };
    let session = *made.results[8..].first_chunk().unwrap();
    let slot = |slot: u32, random: Random| Slot {
        lines: Arc::clone(lines),
        random,
        session,
        slot,
        sequence: 0,
        directory: Vec::new(),
        names: BTreeSet::new(),
        gone: Vec::new(),
        made: 0,
        file: Vec::new(),
        open: (0, [0; 12]),
        locks: None,
    };
    let mut first = slot(0, random);
    first.change(&ops().reclaim_complete()).await;
    let mut slots = vec![first];
    slots.extend((1..SLOTS).map(|number| slot(number, Random(seed ^ (at as u64 + 1) << 32 ^ u64::from(number) << 40))));
    for slot in &mut slots {
        let (name, owner) = (format!("{at}.{}", slot.slot), format!("shared {}", slot.slot));
        slot.change_names(&ops().put_root().make_directory(name.as_bytes()), &[EXISTS]).await;
        let made = slot.change(&ops().put_root().lookup(name.as_bytes()).get_handle()).await;
        let mut reader = behind(&made, &[24, 15]);
        assert_eq!(reader.next_result(), Ok((10, 0)));
        slot.directory = reader.opaque().unwrap().to_vec();
        let file = format!("file of {at}");
        let opened =
            slot.change(&ops().put_root().open((3, 0), owner.as_bytes(), file.as_bytes(), true).get_handle()).await;
        let mut reader = behind(&opened, &[24, 18]);
        slot.open = reader.stateid().unwrap();
        reader.skip_open().unwrap();
        assert_eq!(reader.next_result(), Ok((10, 0)));
        slot.file = reader.opaque().unwrap().to_vec();
    }
    slots
}

fn run(seed: u64, steps: usize, kills: bool) -> (Counts, u64) {
    let mut random = Random(seed);
    let site = Site::new(seed, &mut random, kills);
    let lines: Vec<Arc<Lines>> = (0..CLIENTS).map(|at| Lines::new(&site, at)).collect();
    let clients = lines.iter().cloned().map(|lines| async move {
        let slots = begin(&lines, seed).await;
        join_all(slots.into_iter().map(|slot| slot.run(steps))).await;
    });
    let clients = join_all(clients.collect::<Vec<_>>());
    let of_keeper = Arc::clone(&site);
    let all = async move {
        let succeed = of_keeper.succeed(random);
        drop(select(pin!(clients), pin!(succeed)).await);
    };
    site.world.run(all).unwrap();
    assert_eq!(site.held().1, CLIENTS, "no session has ended");
    let mut all = Counts::default();
    for lines in &lines {
        let counts = lines.counts.lock().unwrap();
        all.calls += counts.calls;
        all.repeated += counts.repeated;
        all.further += counts.further;
    }
    (all, site.kills())
}

#[test]
fn calls_on_slots_with_lost_replies_are_carried_out_once() {
    let (counts, _) = run(1, 60, false);
    assert!(counts.calls > 500 && counts.repeated > 100 && counts.further > 10, "{counts:?}");
}

#[test]
fn calls_on_slots_are_carried_out_once_over_kills() {
    let (counts, kills) = run(1, 100, true);
    assert!(counts.calls > 500 && counts.repeated > 100 && kills > 4, "{counts:?} {kills}");
}

/// `AFFLUX_SLOT_SEEDS` sets the first seed and the number of seeds.
#[test]
#[ignore = "a minute"]
fn many_calls_on_slots_are_carried_out_once_over_kills() {
    let wanted = std::env::var("AFFLUX_SLOT_SEEDS").unwrap_or_else(|_| "2,200".to_owned());
    let (first, count) = wanted.split_once(',').unwrap();
    let first: u64 = first.parse().unwrap();
    for seed in first..first + count.parse::<u64>().unwrap() {
        let run = std::panic::catch_unwind(|| run(seed, 30, !seed.is_multiple_of(4)));
        assert!(run.unwrap_or_else(|_| panic!("seed {seed}")).0.calls > 0, "seed {seed}");
    }
}
