//! Models of waiting for loom, which reports a waiter that nobody wakes as a deadlock.
//!
//! Owns: the models. Does not own: the queues.
//! Invariants: no model needs a second wake-up to end.

use std::sync::Arc;

use loom::future::block_on;
use loom::thread;

use super::*;
use crate::sync::atomic::AtomicU64;

#[test]
fn loom_no_wake_up_is_lost() {
    sync::model(|| {
        let world = Arc::new((WaitQueue::new(), AtomicBool::new(false)));
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let world = Arc::clone(&world);
                // Relaxed is enough: the queue's fences order the change and the check.
                thread::spawn(move || block_on(world.0.until(|| world.1.load(Ordering::Relaxed).then_some(()))))
            })
            .collect();
        world.1.store(true, Ordering::Relaxed);
        world.0.wake_all();
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

#[test]
fn loom_one_change_wakes_the_waiters_of_two_queues() {
    sync::model(|| {
        let world = Arc::new(([WaitQueue::new(), WaitQueue::new()], AtomicBool::new(false)));
        let waiters: Vec<_> = (0..2)
            .map(|queue| {
                let world = Arc::clone(&world);
                thread::spawn(move || block_on(world.0[queue].until(|| world.1.load(Ordering::Relaxed).then_some(()))))
            })
            .collect();
        world.1.store(true, Ordering::Relaxed);
        let changed = Changed::now();
        world.0.iter().for_each(|queue| queue.wake_for(&changed));
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

#[test]
fn loom_a_waiter_who_leaves_takes_nobodys_wake_up() {
    sync::model(|| {
        let world = Arc::new((WaitQueue::new(), AtomicBool::new(false)));
        let ready = |world: &(WaitQueue, AtomicBool)| world.1.load(Ordering::Relaxed).then_some(());
        let leaver = Arc::clone(&world);
        let leaver = thread::spawn(move || {
            let mut until = Box::pin(leaver.0.until(|| ready(&leaver)));
            let _ = until.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        });
        let stayer = Arc::clone(&world);
        let stayer = thread::spawn(move || block_on(stayer.0.until(|| ready(&stayer))));
        world.1.store(true, Ordering::Relaxed);
        world.0.wake_all();
        leaver.join().unwrap();
        stayer.join().unwrap();
        assert_eq!((world.0.waiting.load(Ordering::Relaxed), sync::lock(&world.0.wakers).len()), (0, 0));
    });
}

#[test]
fn loom_a_raised_signal_is_seen() {
    sync::model(|| {
        let world = Arc::new((Signal::new(), AtomicU64::new(0)));
        let owner = Arc::clone(&world);
        let owner = thread::spawn(move || {
            // Two raises may be one signal; its owner sees the values stored before either.
            while owner.1.load(Ordering::Acquire) != 2 {
                block_on(owner.0.wait_or(std::future::pending()));
            }
        });
        for _ in 0..2 {
            world.1.fetch_add(1, Ordering::AcqRel);
            world.0.raise();
        }
        owner.join().unwrap();
    });
}

#[test]
fn loom_an_answer_reaches_everybody() {
    sync::model(|| {
        let answer = Answer::new();
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let answer = Arc::clone(&answer);
                thread::spawn(move || assert_eq!(block_on(answer.wait()), 7))
            })
            .collect();
        answer.give(7);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

#[test]
fn loom_no_permit_is_lost() {
    sync::model(|| {
        let world = Arc::new((Permits::new(1), AtomicU64::new(0)));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    block_on(world.0.take(1));
                    assert_eq!(world.1.fetch_add(1, Ordering::Relaxed), 0, "one at a time");
                    world.1.fetch_sub(1, Ordering::Relaxed);
                    world.0.give_back(1);
                })
            })
            .collect();
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        assert_eq!((world.0.used(), world.0.waiting()), (0, 0));
    });
}

#[test]
fn loom_a_permit_granted_to_one_who_leaves_goes_to_the_next() {
    sync::model(|| {
        let permits = Arc::new(Permits::new(1));
        assert!(permits.try_take(1));
        let leaver = Arc::clone(&permits);
        let leaver = thread::spawn(move || {
            // Asks once and leaves, granted or not.
            let mut take = Box::pin(leaver.take(1));
            let asked = take.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            drop(take);
            if asked.is_ready() {
                leaver.give_back(1);
            }
        });
        let stayer = Arc::clone(&permits);
        let stayer = thread::spawn(move || {
            block_on(stayer.take(1));
            stayer.give_back(1);
        });
        permits.give_back(1);
        leaver.join().unwrap();
        stayer.join().unwrap();
        assert_eq!((permits.used(), permits.waiting()), (0, 0));
    });
}
