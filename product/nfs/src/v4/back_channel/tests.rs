use std::task::Waker;

use super::*;

fn notice(file: u8) -> LockNotice {
    LockNotice { file: vec![file; 8], client: 7, owner: Box::from(*b"owner") }
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

#[test]
fn one_call_is_under_way_and_comes_again_over_a_new_connection() {
    let back = BackChannel::new([9; 16]);
    back.call_by(Calling { program: 0x4000_0000, names_user: false }, 1);
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
    assert!(!outbox.try_answer(9) && outbox.try_answer(1) && !outbox.try_answer(1));
    assert_eq!(outbox.take(Waker::noop()).iter().map(|it| seen(it)).collect::<Vec<_>>(), [(2, 2, 2)]);
}

#[test]
fn a_client_that_never_answers_has_the_last_notices_only() {
    let (back, outbox) = (BackChannel::new([9; 16]), Arc::new(Outbox::default()));
    back.bind(&outbox);
    (0..200).for_each(|file| back.notify(notice(file)));
    assert_eq!(outbox.take(Waker::noop()).len(), 1);
    assert_eq!(back.lock().waiting.len(), WAITING_MAX);
    assert!(outbox.try_answer(1));
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
    assert!(outbox.try_answer(1));
    assert_eq!(outbox.take(Waker::noop()).iter().map(|it| seen(it)).collect::<Vec<_>>(), [(2, 2, 2)]);
}
