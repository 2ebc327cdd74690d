use std::task::Waker;

use super::super::state::kept::ServerMemory;
use super::super::state::kept_waits::KeptWaits;
use super::*;
use crate::wire::outbox::Answered;

fn notice(file: u8) -> LockNotice {
    let waits = KeptWaits::new(&ServerMemory::new(3, 0, None));
    LockNotice { file: vec![file; 8], client: 7, owner: Box::from(*b"owner"), wait: waits.begin(Party::User(7)) }
}

/// The number of the record's call, its number on the slot, and the file.
fn seen(record: &[u8]) -> (u32, u32, u8) {
    let word = |at: usize| u32::from_be_bytes(*record[at..].first_chunk().unwrap());
    assert_eq!(word(0), 1 << 31 | (record.len() as u32 - 4));
    // Behind the mark: 6 words, two empty authentications, the head of the compound, CB_SEQUENCE's number and session.
    let sequence_at = 4 + 6 * 4 + 4 * 4 + 5 * 4 + 16;
    assert_eq!((word(4 + 4), word(sequence_at - 20)), (0, 11));
    assert_eq!(word(sequence_at + 20), 13);
    (word(4), word(sequence_at), record[sequence_at + 28])
}

/// The reply to a CB_COMPOUND with this status: accepted, without a verifier, executed; an empty tag and no results.
fn reply(status: u32) -> Vec<u8> {
    [1, 1, 0, 0, 0, 0, status, 0, 0].iter().flat_map(|word: &u32| word.to_be_bytes()).collect()
}

#[test]
fn one_call_is_under_way_and_comes_again_over_a_new_connection() {
    let back = BackChannel::new([9; 16]);
    back.call_by(CallbackSecurity { program: 0x4000_0000, names_user: false }, 1);
    assert!(!back.is_up() && !back.is_down());
    let outbox = Arc::new(Outbox::default());
    back.bind(&outbox);
    back.notify(notice(1));
    back.notify(notice(2));
    let sent = outbox.take(Waker::noop());
    assert_eq!(sent.iter().map(|it| seen(it)).collect::<Vec<_>>(), [(1, 1, 1)]);
    drop(outbox);
    assert!(back.is_down());
    let outbox = Arc::new(Outbox::default());
    back.bind(&outbox);
    assert_eq!(outbox.take(Waker::noop()).iter().map(|it| seen(it)).collect::<Vec<_>>(), [(1, 1, 1)]);
    let answer = |number| outbox.answer(number, &reply(0));
    assert!(matches!((answer(9), answer(1), answer(1)), (Answered::Stray, Answered::Settled, Answered::Stray)));
    assert_eq!(outbox.take(Waker::noop()).iter().map(|it| seen(it)).collect::<Vec<_>>(), [(2, 2, 2)]);
}

#[test]
fn a_client_that_never_answers_has_the_last_notices_only() {
    let (back, outbox) = (BackChannel::new([9; 16]), Arc::new(Outbox::default()));
    back.bind(&outbox);
    (0..200).for_each(|file| back.notify(notice(file)));
    assert_eq!(outbox.take(Waker::noop()).len(), 1);
    assert_eq!(back.lock().waiting.len(), WAITING_MAX);
    assert!(matches!(outbox.answer(1, &reply(0)), Answered::Settled));
    let next = outbox.take(Waker::noop());
    assert_eq!(seen(&next[0]), (2, 2, 200 - WAITING_MAX as u8));
}

// rule: a notice of a free lock waits for a connection to the client
#[test]
fn a_notice_without_a_connection_goes_over_the_next_one() {
    let (back, outbox) = (BackChannel::new([9; 16]), Arc::new(Outbox::default()));
    assert!(!back.is_wanted());
    back.bind(&outbox);
    drop(outbox);
    back.notify(notice(1));
    back.notify(notice(2));
    assert!(back.is_wanted() && back.is_down());
    let outbox = Arc::new(Outbox::default());
    back.bind(&outbox);
    assert_eq!(outbox.take(Waker::noop()).iter().map(|it| seen(it)).collect::<Vec<_>>(), [(1, 1, 1)]);
    assert!(matches!(outbox.answer(1, &reply(0)), Answered::Settled));
    assert_eq!(outbox.take(Waker::noop()).iter().map(|it| seen(it)).collect::<Vec<_>>(), [(2, 2, 2)]);
}

// rule: a notice that a busy client puts off comes again with its number
#[test]
fn a_call_that_a_busy_client_puts_off_comes_again_with_its_number() {
    const DELAY: u32 = 10_008;
    let (back, outbox) = (BackChannel::new([9; 16]), Arc::new(Outbox::default()));
    back.bind(&outbox);
    back.notify(notice(1));
    back.notify(notice(2));
    let sent = || outbox.take(Waker::noop()).iter().map(|it| seen(it)).collect::<Vec<_>>();
    assert_eq!(sent(), [(1, 1, 1)]);
    for number in 1..4 {
        assert!(matches!(outbox.answer(number, &reply(DELAY)), Answered::Postponed(_)));
        assert_eq!(sent(), [], "not at once");
        Arc::clone(&back).call_again();
        assert_eq!(sent(), [(number + 1, 1, 1)]);
    }
    // One timer runs at a time, however often the call has gone.
    back.bind(&outbox);
    assert_eq!(sent(), [(5, 1, 1)]);
    assert!(matches!(outbox.answer(4, &reply(DELAY)), Answered::Postponed(_)));
    assert!(matches!(outbox.answer(5, &reply(DELAY)), Answered::Settled));
    Arc::clone(&back).call_again();
    assert_eq!(sent(), [(6, 1, 1)]);
    assert!(matches!(outbox.answer(6, &reply(0)), Answered::Settled));
    assert_eq!(sent(), [(7, 2, 2)]);
    Arc::clone(&back).call_again();
    assert_eq!(sent(), [(8, 2, 2)]);
    assert!(matches!(outbox.answer(7, &[]), Answered::Settled));
    Arc::clone(&back).call_again();
    assert_eq!(sent(), []);
}
