mod lock_notices;

use std::task::Waker;

use super::super::state::persisted::ServerMemory;
use super::*;
use crate::v4::back_channel::WAITING_MAX;
use crate::v4::state::persisted::PersistedWaits;
use crate::wire::outbox::Answered;

fn notice(file: u8) -> LockNotice {
    let waits = PersistedWaits::new(&ServerMemory::new(3, 0, None));
    LockNotice { file: vec![file; 8], clientid: 7, owner: Box::from(*b"owner"), wait: waits.begin(Party::User(7)) }
}

fn channel(session: u8, notices: &Arc<LockNotices>) -> Arc<BackChannel> {
    BackChannel::new([session; 16], notices)
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
    let notices = Arc::default();
    let back = channel(9, &notices);
    back.call_by(CallbackSecurity { program: 0x4000_0000, user: None }, 1);
    assert!(!back.is_up() && !back.is_down());
    let outbox = Arc::new(Outbox::default());
    back.bind(&outbox);
    notices.notify(notice(1));
    notices.notify(notice(2));
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
    let notices = Arc::default();
    let (back, outbox) = (channel(9, &notices), Arc::new(Outbox::default()));
    back.bind(&outbox);
    (0..200).for_each(|file| notices.notify(notice(file)));
    assert_eq!(outbox.take(Waker::noop()).len(), 1);
    assert_eq!(notices.waiting(), WAITING_MAX);
    assert!(matches!(outbox.answer(1, &reply(0)), Answered::Settled));
    let next = outbox.take(Waker::noop());
    assert_eq!(seen(&next[0]), (2, 2, 200 - WAITING_MAX as u8));
}

// rule: a notice of a free lock waits for a connection to the client
#[test]
fn a_notice_without_a_connection_goes_over_the_next_one() {
    let notices = Arc::default();
    let (back, outbox) = (channel(9, &notices), Arc::new(Outbox::default()));
    assert!(!back.is_wanted());
    back.bind(&outbox);
    drop(outbox);
    notices.notify(notice(1));
    notices.notify(notice(2));
    assert!(back.is_wanted() && back.is_down());
    let outbox = Arc::new(Outbox::default());
    back.bind(&outbox);
    assert_eq!(outbox.take(Waker::noop()).iter().map(|it| seen(it)).collect::<Vec<_>>(), [(1, 1, 1)]);
    assert!(matches!(outbox.answer(1, &reply(0)), Answered::Settled));
    assert_eq!(outbox.take(Waker::noop()).iter().map(|it| seen(it)).collect::<Vec<_>>(), [(2, 2, 2)]);
}

// rule: a notice that a busy client postpones is sent again with its sequenceid
#[test]
fn a_call_that_a_busy_client_puts_off_comes_again_with_its_number() {
    const DELAY: u32 = 10_008;
    let notices = Arc::default();
    let (back, outbox) = (channel(9, &notices), Arc::new(Outbox::default()));
    back.bind(&outbox);
    notices.notify(notice(1));
    notices.notify(notice(2));
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

/// What the connection sends now.
fn sent(outbox: &Outbox) -> Vec<(u32, u32, u8)> {
    outbox.take(Waker::noop()).iter().map(|it| seen(it)).collect()
}

// rule: a notice of a free lock goes over another session of its client, or the next one, if its own session ends
#[test]
fn a_notice_of_a_session_that_ends_goes_over_another_one_or_the_next() {
    let notices = Arc::default();
    let (first, second) = (channel(1, &notices), channel(2, &notices));
    let outboxes = [(); 2].map(|()| Arc::new(Outbox::default()));
    first.bind(&outboxes[0]);
    notices.notify(notice(1));
    notices.notify(notice(2));
    assert_eq!((sent(&outboxes[0]), notices.waiting()), (vec![(1, 1, 1)], 1));
    // The second session takes over the notice that is under way, and the one that waits.
    first.end();
    assert_eq!(notices.waiting(), 2);
    second.bind(&outboxes[1]);
    assert_eq!(sent(&outboxes[1]), [(1, 1, 1)]);
    assert!(matches!(outboxes[1].answer(1, &reply(0)), Answered::Settled));
    assert_eq!(sent(&outboxes[1]), [(2, 2, 2)]);
    second.end();
    notices.notify(notice(3));
    assert_eq!((sent(&outboxes[0]), sent(&outboxes[1])), (vec![], vec![]), "an ended session calls no more");
    let (third, outbox) = (channel(3, &notices), Arc::new(Outbox::default()));
    third.bind(&outbox);
    assert_eq!(sent(&outbox), [(1, 1, 2)]);
    // One that is bound after its end has the client's notices no more.
    first.bind(&outboxes[0]);
    assert_eq!(sent(&outboxes[0]), []);
}

/// The reply to a CB_COMPOUND whose results are these: an operation with its status each.
fn reply_of(status: u32, results: &[(u32, u32)]) -> Vec<u8> {
    let head = [1, 1, 0, 0, 0, 0, status, 0, results.len() as u32];
    let results = results.iter().flat_map(|(operation, status)| [*operation, *status]);
    head.into_iter().chain(results).flat_map(u32::to_be_bytes).collect()
}

// rule: a notice counts as delivered if its client has carried out CB_SEQUENCE, and else goes over another session
#[test]
fn a_refused_sequence_is_no_answer_to_a_notice() {
    const SEQUENCE: u32 = 11;
    const NOTIFY: u32 = 13;
    let retry_uncached = NfsStatus::RetryUncachedRep.code();
    let refused = [
        NfsStatus::SeqMisordered,
        NfsStatus::SeqFalseRetry,
        NfsStatus::Badsession,
        NfsStatus::Badslot,
        NfsStatus::BadHighSlot,
        NfsStatus::ReqTooBig,
        NfsStatus::TooManyOps,
    ];
    let refused = refused.map(|status| reply_of(status.code(), &[(SEQUENCE, status.code())]));
    let minor = reply_of(NfsStatus::MinorVersMismatch.code(), &[]);
    // The call was denied, the client has no such program, the reply is cut.
    let without = [vec![1, 1, 1, 1, 1], vec![1, 1, 0, 0, 0, 1], vec![1, 1, 0]];
    let without = without.map(|words: Vec<u32>| words.into_iter().flat_map(u32::to_be_bytes).collect());
    for reply in refused.into_iter().chain([minor]).chain(without) {
        let notices = Arc::default();
        let (other, back) = (channel(1, &notices), channel(2, &notices));
        let (outbox, others) = (Arc::new(Outbox::default()), Arc::new(Outbox::default()));
        back.bind(&outbox);
        notices.notify(notice(1));
        assert_eq!(sent(&outbox), [(1, 1, 1)]);
        assert!(matches!(outbox.answer(1, &reply), Answered::Settled));
        assert!(back.is_faulty() && !back.is_up() && !back.is_down(), "{reply:?}");
        notices.notify(notice(2));
        assert_eq!((sent(&outbox), notices.waiting()), (vec![], 2), "{reply:?}");
        other.bind(&others);
        assert_eq!(sent(&others), [(1, 1, 1)], "{reply:?}");
        // The client has not counted the call. A new connection is another try.
        back.bind(&outbox);
        assert_eq!(sent(&outbox), [(2, 1, 2)], "{reply:?}");
        assert!(!back.is_faulty());
    }
    let known = [
        reply_of(0, &[(SEQUENCE, 0), (NOTIFY, 0)]),
        reply_of(NfsStatus::Notsupp.code(), &[(SEQUENCE, 0), (NOTIFY, NfsStatus::Notsupp.code())]),
        reply_of(retry_uncached, &[(SEQUENCE, retry_uncached)]),
    ];
    for reply in known {
        let notices = Arc::default();
        let (back, outbox) = (channel(1, &notices), Arc::new(Outbox::default()));
        back.bind(&outbox);
        notices.notify(notice(1));
        notices.notify(notice(2));
        assert_eq!(sent(&outbox), [(1, 1, 1)]);
        assert!(matches!(outbox.answer(1, &reply), Answered::Settled));
        assert_eq!((sent(&outbox), back.is_faulty()), (vec![(2, 2, 2)], false), "{reply:?}");
    }
}

/// A recalled delegation, and what its client has answered.
#[derive(Default)]
struct Recalled(Mutex<Vec<bool>>);

impl RecallCall for Recalled {
    fn write(&self, writer: &mut Writer) {
        writer.u32(77);
    }

    fn answered(&self, is_known: bool) {
        self.0.lock().unwrap().push(is_known);
    }
}

/// The reply to CB_SEQUENCE and CB_RECALL with this status of the second.
fn reply_to_recall(status: u32) -> Vec<u8> {
    let head = [1, 1, 0, 0, 0, 0, status, 0, 2, 11, 0];
    head.iter().chain(&[0; 8]).chain(&[4, status]).flat_map(|word: &u32| word.to_be_bytes()).collect()
}

// rule: a recall goes before notices of locks, and again over another session if the first does not carry it out
#[test]
fn a_recall_goes_first_and_hears_whether_the_client_knows_the_delegation() {
    let notices = Arc::default();
    let (back, outbox) = (channel(9, &notices), Arc::new(Outbox::default()));
    back.bind(&outbox);
    let recalls: Vec<Arc<Recalled>> = (0..3).map(|_| Arc::default()).collect();
    let heard = || recalls.iter().map(|it| it.0.lock().unwrap().clone()).collect::<Vec<_>>();
    notices.notify(notice(1));
    notices.notify(notice(2));
    recalls.iter().for_each(|it| notices.recall(Arc::clone(it) as _));
    let next = || {
        let sent = outbox.take(Waker::noop());
        let [record] = &sent[..] else { panic!("{} calls", sent.len()) };
        u32::from_be_bytes(*record[record.len() - 8..].first_chunk().unwrap())
    };
    assert_ne!(next(), 4, "the notice was under way");
    for (number, status) in [(1, 0), (2, 10_025), (3, 0)] {
        let answer = if number == 1 { reply(0) } else { reply_to_recall(status) };
        assert!(matches!(outbox.answer(number, &answer), Answered::Settled));
        assert_eq!(next(), 4, "CB_RECALL");
    }
    assert_eq!(heard(), [vec![false], vec![true], vec![]]);
    // The client does not carry out the last one: it waits for another session.
    outbox.answer(4, &reply(10_052));
    assert!(back.is_faulty());
    let (second, outbox) = (channel(8, &notices), Arc::new(Outbox::default()));
    second.bind(&outbox);
    assert_eq!(outbox.take(Waker::noop()).len(), 1);
    outbox.answer(1, &reply_to_recall(0));
    assert_eq!(heard(), [vec![false], vec![true], vec![true]]);
    assert_eq!(outbox.take(Waker::noop()).iter().map(|it| seen(it)).collect::<Vec<_>>(), [(2, 2, 2)]);
}

#[test]
fn a_back_channel_is_proven_by_an_answer_over_the_connection_that_there_is() {
    let notices = Arc::default();
    let (back, outbox) = (channel(9, &notices), Arc::new(Outbox::default()));
    assert!(!back.try_prove());
    back.bind(&outbox);
    assert!(!back.try_prove() && !back.try_prove());
    assert_eq!(outbox.take(Waker::noop()).len(), 1, "it is asked once");
    outbox.answer(1, &reply(0));
    assert!(back.try_prove());
    drop(outbox);
    assert!(!back.try_prove(), "the connection is gone");
    let outbox = Arc::new(Outbox::default());
    back.bind(&outbox);
    assert!(!back.try_prove());
    outbox.answer(1, &reply(10_052));
    assert!(!back.try_prove() && back.is_faulty());
}
