//! Which threads rest, and when they come back.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::{CROWDED, LONELY, LOOKS, MESSAGES_PER_LOOK, MessageHistory, SessionThread, SessionThreads};
use afflux_linux_device::in_place::Leave;

fn present(threads: &SessionThreads) -> usize {
    threads.lock().present
}

fn resting(threads: &SessionThreads) -> usize {
    threads.lock().resting.len()
}

/// A member that rests on a thread of its own, and ends once it is called back.
fn rester(threads: &Arc<SessionThreads>) -> JoinHandle<SessionThread> {
    let (member, before) = (threads.join(), resting(threads));
    let thread = thread::spawn(move || {
        member.rest(&mut MessageHistory::default());
        member
    });
    afflux_scratch::eventually("it rests", || resting(threads) > before);
    thread
}

/// Whether a member may rest after a check.
fn look_and_ask(member: &SessionThread, history: &mut MessageHistory, others_wait: bool) -> bool {
    member.note_look(history, others_wait);
    member.may_rest(history)
}

/// Whether a member may rest after quiet checks, each with so many permissions before it.
fn may_rest(threads: &SessionThreads, member: &SessionThread, permissions: usize) -> bool {
    let mut history = MessageHistory::default();
    let look = |_| {
        (0..permissions).for_each(|_| {
            assert!(threads.try_permit());
            threads.end();
        });
        look_and_ask(member, &mut history, false)
    };
    (0..=LOOKS).map(look).last().unwrap()
}

#[test]
fn a_look_is_due_after_some_messages() {
    let mut history = MessageHistory::default();
    let is_due = |_: &u32| {
        history.count_message();
        history.is_time_to_look()
    };
    let due = (0..4 * MESSAGES_PER_LOOK).filter(is_due).count();
    assert_eq!(due, 4);
}

#[test]
fn the_last_thread_for_the_device_never_rests() {
    let threads = SessionThreads::new();
    let only = threads.join();
    assert!(!may_rest(&threads, &only, 0));
    only.rest(&mut MessageHistory::default());
    assert_eq!((present(&threads), resting(&threads)), (1, 0));
}

#[test]
fn a_thread_comes_back_when_messages_often_wait() {
    let threads = SessionThreads::new();
    let one = threads.join();
    let other = rester(&threads);
    let mut history = MessageHistory::default();
    for _ in 1..CROWDED {
        assert!(!look_and_ask(&one, &mut history, true));
        assert_eq!(resting(&threads), 1, "now and then is not often");
    }
    assert!(!look_and_ask(&one, &mut history, true));
    let other = other.join().unwrap();
    assert_eq!((present(&threads), resting(&threads)), (2, 0));
    drop(other);
}

#[test]
fn a_thread_may_rest_once_messages_seldom_wait() {
    let threads = SessionThreads::new();
    let (one, other) = (threads.join(), threads.join());
    let mut history = MessageHistory::default();
    let mut look = |others_wait| look_and_ask(&one, &mut history, others_wait);
    assert!((1..LOOKS).all(|_| !look(false)), "not before it has looked often");
    assert!(look(false));
    assert!((0..LONELY).all(|_| look(true)), "a few may wait");
    assert!(!look(true));
    drop(other);
}

#[test]
fn two_threads_stay_while_calls_block_and_a_third_rests() {
    let threads = SessionThreads::new();
    let (one, two) = (threads.join(), threads.join());
    assert!(!may_rest(&threads, &one, 1));
    assert!(may_rest(&threads, &one, 0));
    let three = threads.join();
    assert!(may_rest(&threads, &one, 1));
    drop((two, three));
}

#[test]
fn a_thread_blocks_only_if_another_is_there_or_comes_back() {
    let threads = SessionThreads::new();
    let only = threads.join();
    assert!(!threads.try_permit(), "nobody else");
    let other = rester(&threads);
    assert!(threads.try_permit());
    let other = other.join().unwrap();
    assert_eq!(present(&threads), 1, "the one that came back");
    assert!(!threads.try_permit(), "it is the last one");
    threads.end();
    assert!(threads.try_permit());
    threads.end();
    drop((only, other));
}

#[test]
fn all_come_back_when_a_thread_ends() {
    let threads = SessionThreads::new();
    let one = threads.join();
    let others = [rester(&threads), rester(&threads)];
    drop(one);
    let others = others.map(|other| other.join().unwrap());
    assert_eq!(present(&threads), 2);
    drop(others);
    assert_eq!(present(&threads), 0);
}
