//! Owners of version 4 that wait for a lock: over a kill, over a busy client, and after their ends.
//!
//! rule: the server tells a waiting owner that its lock is free: over a kill, after the end of the session, and again
//! after a busy client
//! kept in: `product/nfs/src/v4/back_channel.rs`,
//! `product/nfs/src/v4/state/persisted.rs`

use std::sync::Arc;

use afflux_nfs_client::sessions::{NFS_4, Outcome, Stateid};

use crate::compounds::{BOTH, ops, root, status};
use crate::kept::{Logged, Session, WORDS, memory, next, stateid};
use crate::peer::{Peer, accepted, call_record, marked};
use crate::world::{CLIENT, World};

const EXCLUSIVE: u32 = 2;
const EXCLUSIVE_WAITING: u32 = 4;
const WHOLE: (u64, u64) = (0, u64::MAX);
const DELAY: u32 = 10_008;

/// A holder of all bytes of a file, and a client that waits for some.
struct Waiting {
    world: World,
    words: Arc<Logged>,
    holder: Session,
    held: Stateid,
    waiter: Session,
    opened: Stateid,
    file: Vec<u8>,
    /// Calls of the server that came with a reply.
    calls: Vec<Vec<u8>>,
}

impl Waiting {
    fn begin() -> Self {
        let mut world = World::over(|path| std::fs::write(path.join("file"), "").unwrap());
        let words = memory((0..WORDS).map(|_| 0));
        next(&mut world, words.clone(), Vec::new());
        let mut holder = Session::begin(&world, b"holder");
        let (by_holder, file) = holder.open();
        let held = stateid(&holder.call(&ops().put(&file).lock(EXCLUSIVE, WHOLE, by_holder, b"owner")));
        let mut waiter = Session::begin_called(&world, b"waiter");
        let (opened, _) = waiter.open();
        let mut waiting = Self { world, words, holder, held, waiter, opened, file, calls: Vec::new() };
        assert_eq!(waiting.ask(), status::DENIED);
        waiting
    }

    /// The waiter asks for its lock, and waits if it is refused.
    fn ask(&mut self) -> u32 {
        let wanted = ops().put(&self.file).lock(EXCLUSIVE_WAITING, (3, 3), self.opened, b"waiting owner");
        self.waiter.call(&wanted).status
    }

    fn unlock(&mut self) {
        let unlocked = self.holder.call(&ops().put(&self.file).unlock(WHOLE, self.held));
        self.held = stateid(&unlocked);
    }

    /// The server is killed, and both clients connect to the next one.
    fn kill(&mut self) {
        self.words = memory(self.words.copy());
        next(&mut self.world, self.words.clone(), Vec::new());
        self.holder.peer = Peer::new(&self.world, CLIENT);
        self.waiter.peer = Peer::new(&self.world, CLIENT);
        // Calls wait until the state is back.
        assert_eq!(self.holder.call(&root()).status, 0);
    }

    /// The waiter binds its connection to its session. So many calls of the server come with the reply.
    fn bind(&mut self, calls: usize) {
        const BIND: u32 = 41;
        const BOTH_CHANNELS: u32 = 7;
        let arguments = [&self.waiter.id[..], &BOTH_CHANNELS.to_be_bytes(), &[0; 4]].concat();
        let bind = call_record(77, NFS_4, 1, &ops().raw(BIND, &arguments).arguments(1));
        self.waiter.peer.send(&marked(&bind)).unwrap();
        let mut records = self.waiter.peer.replies(1 + calls);
        let is_call = |record: &mut Vec<u8>| record[4..8] == [0; 4];
        self.calls.extend(records.extract_if(.., is_call));
        assert_eq!((Outcome::read(&accepted(&records[0]).1).unwrap().status, self.calls.len()), (0, calls));
    }

    /// The server's next call, and the waiter's answer. Returns the call's number on its slot, and whether it has a
    /// notice.
    fn told(&mut self, answer: u32) -> (u32, bool) {
        let call = self.calls.pop().unwrap_or_else(|| self.waiter.peer.replies(1).remove(0));
        let word = |at: usize| u32::from_be_bytes(*call[at..].first_chunk().unwrap());
        let notice = call.ends_with(b"waiting owner\0\0\0");
        let reply = [word(0), 1, 0, 0, 0, 0, answer, 0, 0].map(u32::to_be_bytes).concat();
        self.waiter.peer.send(&marked(&reply)).unwrap();
        (word(76), notice)
    }

    /// The waiter's client ends its session, and goes on with another one.
    fn change_session(&mut self) {
        const DESTROY: u32 = 44;
        let id = self.waiter.id;
        assert_eq!(self.waiter.send(&ops().raw(DESTROY, &id)).status, 0);
        self.waiter = Session::another(&self.world, b"waiter");
    }

    /// The flags in the answer to a SEQUENCE of the waiter.
    fn flags(&mut self) -> u32 {
        let answer = self.waiter.call(&root());
        // Operation and status, the session, four more words.
        u32::from_be_bytes(*answer.results[8 + 16 + 16..].first_chunk().unwrap())
    }

    fn waiters(&self) -> usize {
        self.world.volume.locks().held().iter().map(|row| row.waiting).sum()
    }
}

#[test]
fn a_waiter_is_told_though_the_server_was_killed_before_the_lock_was_free() {
    let mut waiting = Waiting::begin();
    waiting.kill();
    waiting.bind(0);
    waiting.kill();
    waiting.bind(0);
    assert_eq!(waiting.waiters(), 1);
    waiting.unlock();
    assert_eq!(waiting.told(0), (1, true));
    assert_eq!((waiting.ask(), waiting.waiters()), (0, 0));
    // Nothing of it is left for a later server.
    waiting.kill();
    assert_eq!(waiting.waiters(), 0);
}

#[test]
fn a_notice_that_a_kill_cut_off_comes_again_once_the_client_is_back_and_has_time() {
    let mut waiting = Waiting::begin();
    waiting.unlock();
    assert_eq!(waiting.waiter.peer.replies(1).len(), 1);
    waiting.kill();
    waiting.bind(1);
    // First comes the number that the client may know already, without a notice. The client is busy with its session.
    for answer in [DELAY, DELAY, 0] {
        assert_eq!(waiting.told(answer), (1, false));
    }
    for answer in [DELAY, 0] {
        assert_eq!(waiting.told(answer), (2, true));
    }
    assert_eq!(waiting.ask(), 0);
}

#[test]
fn an_open_that_is_closed_waits_no_more() {
    let mut waiting = Waiting::begin();
    let other = stateid(&waiting.waiter.call(&root().open((BOTH, 0), b"another program", b"file", false)));
    let wanted = ops().put(&waiting.file).lock(EXCLUSIVE_WAITING, (3, 3), other, b"another owner");
    assert_eq!((waiting.waiter.call(&wanted).status, waiting.waiters()), (status::DENIED, 2));
    let close = ops().put(&waiting.file).close(waiting.opened);
    assert_eq!((waiting.waiter.call(&close).status, waiting.waiters()), (0, 1));
    waiting.kill();
    assert_eq!(waiting.waiters(), 1);
}

#[test]
fn an_owner_whose_stateid_is_freed_waits_no_more() {
    let mut waiting = Waiting::begin();
    waiting.unlock();
    waiting.told(0);
    let wanted = ops().put(&waiting.file).lock(EXCLUSIVE, (100, 1), waiting.opened, b"waiting owner");
    let own = stateid(&waiting.waiter.call(&wanted));
    let again = ops().put(&waiting.file).lock_more(EXCLUSIVE, (0, 1), waiting.held);
    waiting.held = stateid(&waiting.holder.call(&again));
    let own = stateid(&waiting.waiter.call(&ops().put(&waiting.file).unlock((100, 1), own)));
    let wanted = ops().put(&waiting.file).lock_more(EXCLUSIVE_WAITING, (0, 1), own);
    assert_eq!(waiting.waiter.call(&wanted).status, status::DENIED);
    assert!(waiting.waiters() > 0);
    assert_eq!((waiting.waiter.call(&ops().free(own)).status, waiting.waiters()), (0, 0));
}

#[test]
fn a_waiter_whose_session_ended_is_told_over_the_next_one() {
    let mut waiting = Waiting::begin();
    waiting.unlock();
    assert_eq!(waiting.waiter.peer.replies(1).len(), 1, "the client ends its session in the middle of the call");
    waiting.change_session();
    waiting.bind(1);
    assert_eq!(waiting.told(0), (1, true));
    assert_eq!(waiting.ask(), 0);
}

#[test]
fn a_waiter_whose_session_ended_waits_on_over_a_kill() {
    let mut waiting = Waiting::begin();
    waiting.change_session();
    waiting.kill();
    waiting.bind(0);
    assert_eq!(waiting.waiters(), 1);
    waiting.unlock();
    assert_eq!(waiting.told(0), (1, true));
    assert_eq!(waiting.ask(), 0);
}

// rule: a client that refuses CB_SEQUENCE is told that its session's back channel is at fault
#[test]
fn a_client_that_has_lost_the_number_of_the_calls_is_told_to_make_another_session() {
    const FAULT: u32 = 0x400;
    const MISORDERED: u32 = 10_063;
    let mut waiting = Waiting::begin();
    assert_eq!(waiting.flags(), 0);
    waiting.unlock();
    assert_eq!(waiting.told(MISORDERED), (1, true));
    assert_eq!(waiting.flags(), FAULT);
    waiting.change_session();
    assert_eq!(waiting.flags(), 0);
    waiting.bind(1);
    assert_eq!(waiting.told(0), (1, true));
    assert_eq!(waiting.ask(), 0);
}
