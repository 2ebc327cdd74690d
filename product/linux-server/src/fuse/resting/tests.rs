//! Which threads rest, and when they come back.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::{CROWDED, Crew, CrewMember, LONELY, LOOKS, MESSAGES_PER_LOOK, Rhythm};
use afflux_linux_device::in_place::Leave;

fn present(crew: &Crew) -> usize {
    crew.lock().present
}

fn resting(crew: &Crew) -> usize {
    crew.lock().resting.len()
}

/// A member that rests on a thread of its own, and ends once it is called back.
fn rester(crew: &Arc<Crew>) -> JoinHandle<CrewMember> {
    let (member, before) = (crew.join(), resting(crew));
    let thread = thread::spawn(move || {
        member.rest(&mut Rhythm::default());
        member
    });
    afflux_scratch::eventually("it rests", || resting(crew) > before);
    thread
}

/// Whether a member may rest after quiet looks, each with so many permissions before it.
fn may_rest(crew: &Crew, member: &CrewMember, permissions: usize) -> bool {
    let mut rhythm = Rhythm::default();
    let look = |_| {
        (0..permissions).for_each(|_| {
            assert!(crew.may_block());
            crew.end();
        });
        member.may_rest(&mut rhythm, false)
    };
    (0..=LOOKS).map(look).last().unwrap()
}

#[test]
fn a_look_is_due_after_some_messages() {
    let mut rhythm = Rhythm::default();
    let due = (0..4 * MESSAGES_PER_LOOK).filter(|_| rhythm.is_time_to_look()).count();
    assert_eq!(due, 4);
}

#[test]
fn the_last_thread_for_the_device_never_rests() {
    let crew = Crew::new();
    let only = crew.join();
    assert!(!may_rest(&crew, &only, 0));
    only.rest(&mut Rhythm::default());
    assert_eq!((present(&crew), resting(&crew)), (1, 0));
}

#[test]
fn a_thread_comes_back_when_messages_often_wait() {
    let crew = Crew::new();
    let one = crew.join();
    let other = rester(&crew);
    let mut rhythm = Rhythm::default();
    for _ in 1..CROWDED {
        assert!(!one.may_rest(&mut rhythm, true));
        assert_eq!(resting(&crew), 1, "now and then is not often");
    }
    assert!(!one.may_rest(&mut rhythm, true));
    let other = other.join().unwrap();
    assert_eq!((present(&crew), resting(&crew)), (2, 0));
    drop(other);
}

#[test]
fn a_thread_may_rest_once_messages_seldom_wait() {
    let crew = Crew::new();
    let (one, other) = (crew.join(), crew.join());
    let mut rhythm = Rhythm::default();
    let mut look = |others_wait| one.may_rest(&mut rhythm, others_wait);
    assert!((1..LOOKS).all(|_| !look(false)), "not before it has looked often");
    assert!(look(false));
    assert!((0..LONELY).all(|_| look(true)), "a few may wait");
    assert!(!look(true));
    drop(other);
}

#[test]
fn two_threads_stay_while_calls_block_and_a_third_rests() {
    let crew = Crew::new();
    let (one, two) = (crew.join(), crew.join());
    assert!(!may_rest(&crew, &one, 1));
    assert!(may_rest(&crew, &one, 0));
    let three = crew.join();
    assert!(may_rest(&crew, &one, 1));
    drop((two, three));
}

#[test]
fn a_thread_blocks_only_if_another_is_there_or_comes_back() {
    let crew = Crew::new();
    let only = crew.join();
    assert!(!crew.may_block(), "nobody else");
    let other = rester(&crew);
    assert!(crew.may_block());
    let other = other.join().unwrap();
    assert_eq!(present(&crew), 1, "the one that came back");
    assert!(!crew.may_block(), "it is the last one");
    crew.end();
    assert!(crew.may_block());
    crew.end();
    drop((only, other));
}

#[test]
fn all_come_back_when_a_thread_ends() {
    let crew = Crew::new();
    let one = crew.join();
    let others = [rester(&crew), rester(&crew)];
    drop(one);
    let others = others.map(|other| other.join().unwrap());
    assert_eq!(present(&crew), 2);
    drop(others);
    assert_eq!(present(&crew), 0);
}
