use super::*;

const KEY: CallKey = [1, 2, 3];
const ENTRY_WORDS: usize = 64;

fn memory(entries: usize) -> PersistedWords {
    Arc::new((0..entries * ENTRY_WORDS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>())
}

fn journal(words: &PersistedWords) -> Arc<CallJournal> {
    CallJournal::new(Arc::clone(words), 0..(**words).as_ref().len(), FORM)
}

/// A key's last word has the party, the user and, if it is not zero, the slot, a byte each.
const FORM: EntryForm = EntryForm {
    words: ENTRY_WORDS,
    age: |_, value| value,
    owner: |&[_, _, owner]| {
        let slot = Some(owner & 0xff).filter(|slot| *slot != 0);
        EntryOwner { party: owner >> 16, user: owner >> 8 & 0xff, slot }
    },
};

fn of(party: u64, user: u64, slot: u64) -> u64 {
    party << 16 | (user & 0xff) << 8 | slot
}

fn begin(calls: &Arc<CallJournal>, key: CallKey, value: u64, object: u64) -> (JournalCall, EarlierProgress) {
    calls.begin(key, value, object)
}

/// Makes a call with a number, and has it answered.
fn ask(calls: &Arc<CallJournal>, number: u64, owner: u64) {
    note(&begin(calls, [number, 0, owner], number, 0).0, 8);
}

fn is_answered(calls: &Arc<CallJournal>, number: u64, owner: u64) -> bool {
    calls.earlier(&[number, 0, owner]) == answer(8)
}

fn answer(bytes: usize) -> EarlierProgress {
    EarlierProgress::Answered { code: 17, bytes: vec![7; bytes], done: None }
}

fn note(call: &JournalCall, bytes: usize) {
    call.answered(17, &vec![7; bytes], 1);
}

#[test]
fn a_successor_finds_calls_and_their_answers() {
    let words = memory(4);
    let calls = journal(&words);
    note(&begin(&calls, KEY, 1, 2).0, 308);
    drop(begin(&calls, [4, 5, 6], 8, 9));
    let renamed = begin(&calls, [7, 8, 9], 1, 0).0;
    renamed.note(1, 5);
    begin(&calls, [6, 6, 1], 1, 0).0.forget();
    let next = journal(&words);
    assert_eq!(next.earlier(&KEY), answer(308));
    assert_eq!(begin(&next, KEY, 5, 6).1, answer(308));
    assert_eq!(
        begin(&next, [4, 5, 6], 10, 11).1,
        EarlierProgress::Begun { value: 8, object: 9 },
        "its own beginning counts"
    );
    assert_eq!(next.earlier(&[7, 8, 9]), EarlierProgress::Begun { value: 1, object: 5 });
    assert_eq!(begin(&next, [7, 7, 7], 0, 0).1, EarlierProgress::Nothing);
    assert_eq!(begin(&journal(&words), [6, 6, 1], 0, 0).1, EarlierProgress::Nothing, "it has failed");
    // A second kill.
    assert_eq!(begin(&journal(&words), KEY, 5, 6).1, answer(308));
}

/// A change here is one of the form of the cache's memory, of which these entries are a part, and of a mount's.
// rule: the form of a stored reply changes with its number alone
// kept in: `product/frontend/src/journal.rs`
#[test]
fn an_entry_of_this_form_is_found() {
    let words = memory(1);
    let sample = [
        0x47dd_fce1_fa1d_f6a2,
        1,
        2,
        3,
        8,
        9,
        0x2b12_c9c2_95ea_b7ec,
        0x0000_0011_0000_000c,
        0x0707_0707_0707_0707,
        0x0707_0707_u64,
    ];
    sample.iter().zip((*words).as_ref()).for_each(|(value, word)| word.store(*value, Ordering::Relaxed));
    assert_eq!(begin(&journal(&words), KEY, 5, 6).1, answer(12));
}

#[test]
fn the_oldest_call_is_forgotten_first_and_a_long_answer_is_not_kept() {
    let words = memory(2);
    let calls = journal(&words);
    (0..3).for_each(|number| ask(&calls, number, 0));
    begin(&calls, [3, 0, 0], 3, 0).0.answered(0, &vec![7; calls.answer_bytes_max() + 1], 1);
    let next = journal(&words);
    assert_eq!([2, 3, 0, 1].map(|number| is_answered(&next, number, 0)), [true, false, false, false]);
    // An ended call goes in the order of coming, with its answer or without it.
    (4..6).for_each(|number| ask(&next, number, 0));
    assert_eq!(next.earlier(&[3, 0, 0]), EarlierProgress::Nothing);
}

// rule: a client that calls often evicts no other client's cached reply, before a kill or after it
// kept in: `product/frontend/src/journal.rs`, `product/frontend/src/owned_queues.rs`
#[test]
fn who_calls_often_takes_no_others_reply() {
    let words = memory(16);
    let (quiet, neighbour) = (of(1, 1, 0), of(2, 9, 0));
    let calls = journal(&words);
    ask(&calls, 1, quiet);
    ask(&calls, 2, neighbour);
    // One of the neighbour's party calls often, and so do many users of a third one.
    let flood = |calls: &Arc<CallJournal>, from: u64| {
        (from..from + 100).for_each(|number| {
            ask(calls, number, of(2, 1, 0));
            ask(calls, number, of(3, number, 0));
        });
    };
    flood(&calls, 100);
    drop(calls);
    for kill in 1..4 {
        let next = journal(&words);
        flood(&next, kill * 1000);
        assert!(is_answered(&next, 1, quiet) && is_answered(&next, 2, neighbour), "after kill {kill}");
    }
    assert!(is_answered(&journal(&words), 3099, of(3, 3099, 0)), "one that calls often has its last reply");
}

#[test]
fn a_slot_has_its_last_call_and_takes_no_other_slots() {
    let words = memory(8);
    let waits = of(1, 1, 7);
    let calls = journal(&words);
    ask(&calls, 1, waits);
    (2..100).for_each(|number| ask(&calls, number, of(1, 1, 1 + number % 3)));
    let next = journal(&words);
    (100..200).for_each(|number| ask(&next, number, of(1, 1, 1 + number % 3)));
    assert!(is_answered(&journal(&words), 1, waits));
    let last = journal(&words);
    let found: Vec<u64> = (2..200).filter(|&number| is_answered(&last, number, of(1, 1, 1 + number % 3))).collect();
    assert_eq!(found, [197, 198, 199]);
}

// rule: the status of each call that has ended outlives the server, however long its reply was
#[test]
fn the_status_of_a_call_stays_if_its_reply_is_too_long() {
    let words = memory(4);
    let calls = journal(&words);
    let long = vec![7; calls.answer_bytes_max() + 1];
    for (key, code) in [([1, 0, 0], 17), ([2, 0, 0], 0)] {
        let call = begin(&calls, key, 5, 0).0;
        call.note_done(DoneStep { step: 2, object: 9 });
        call.answered(code, &long, 4);
    }
    let next = journal(&words);
    let done = Some(DoneStep { step: 2, object: 9 });
    let refused = begin(&next, [1, 0, 0], 9, 0).1;
    assert_eq!(refused, EarlierProgress::TooLong { code: 17, steps: 4, done });
    assert_eq!([2, 3, 4].map(|step| refused.refused(step)), [None, Some(17), None]);
    let befores = [1, 2, 3].map(|step| refused.before(step));
    let [done_before, made, after] =
        [Before::Done { object: 0 }, Before::Done { object: 9 }, Before::Begun { value: 0, object: 0 }];
    assert_eq!(befores, [done_before, made, after]);
    let ended = begin(&next, [2, 0, 0], 9, 0).1;
    assert_eq!(ended, EarlierProgress::TooLong { code: 0, steps: 4, done });
    assert_eq!([1, 2, 3].map(|step| ended.before(step)), [done_before, made, done_before], "all steps are done");
    assert_eq!(ended.refused(3), None);
}

// rule: a step that the host has carried out is known after a kill, with the object that it made
#[test]
fn a_done_step_outlives_the_process_before_and_after_the_answer() {
    let words = memory(2);
    let call = begin(&journal(&words), KEY, 0xffff_ffff, 7).0;
    assert_eq!(journal(&words).earlier(&KEY).before(3), Before::Begun { value: 0xffff_ffff, object: 7 });
    call.step(3, Before::Nothing).note_done(11);
    let done = DoneStep { step: 3, object: 11 };
    assert_eq!(journal(&words).earlier(&KEY), EarlierProgress::Done(done));
    call.answered(0, &[7; 8], 4);
    let answered = EarlierProgress::Answered { code: 0, bytes: vec![7; 8], done: Some(done) };
    assert_eq!(journal(&words).earlier(&KEY), answered);
    // A later step counts from then on.
    let (again, _) = begin(&journal(&words), KEY, 0, 0);
    again.note_done(DoneStep { step: 5, object: 0 });
    assert_eq!(journal(&words).earlier(&KEY), EarlierProgress::Done(DoneStep { step: 5, object: 0 }));
}

#[test]
fn the_host_may_note_a_step_after_its_call_was_given_up() {
    let words = memory(1);
    let calls = journal(&words);
    let call = begin(&calls, KEY, 5, 0).0;
    let step = call.step(0, Before::Nothing);
    drop(call);
    // The only slot is not given to another call, whose entry the note would change.
    drop(begin(&calls, [4, 5, 6], 6, 0));
    step.note_done(11);
    drop(step);
    assert_eq!(journal(&words).earlier(&KEY), EarlierProgress::Done(DoneStep { step: 0, object: 11 }));
    ask(&calls, 7, 0);
    assert!(is_answered(&journal(&words), 7, 0), "it is now");
}

#[test]
fn a_call_that_ran_at_the_kill_outlasts_those_that_had_ended() {
    let words = memory(8);
    let calls = journal(&words);
    let long = begin(&calls, [1, 0, 0], 1, 5).0;
    let append = begin(&calls, [2, 0, 0], 2, 0).0;
    append.ended();
    drop(append);
    (3..40).for_each(|number| ask(&calls, number, 0));
    std::mem::forget(long);
    let next = journal(&words);
    assert_eq!(next.earlier(&[2, 0, 0]), EarlierProgress::Nothing, "it had ended before the others");
    (40..80).for_each(|number| ask(&next, number, 0));
    let (again, earlier) = begin(&next, [1, 0, 0], 9, 9);
    assert_eq!(earlier, EarlierProgress::Begun { value: 1, object: 5 });
    drop(again);
    // Clients that never come back leave half of the slots.
    for number in 100..120 {
        let next = journal(&words);
        std::mem::forget(begin(&next, [number, 0, 0], number, 0).0);
    }
    let next = journal(&words);
    (200..203).for_each(|number| ask(&next, number, 0));
    assert!((200..203).all(|number| is_answered(&journal(&words), number, 0)));
}

#[test]
fn calls_of_one_party_that_run_leave_places_for_others() {
    let words = memory(8);
    let calls = journal(&words);
    let running: Vec<JournalCall> = (0..20).map(|number| begin(&calls, [number, 0, of(1, 1, 0)], 0, 0).0).collect();
    ask(&calls, 50, of(2, 1, 0));
    ask(&calls, 51, of(3, 1, 0));
    assert!(is_answered(&journal(&words), 50, of(2, 1, 0)) && is_answered(&journal(&words), 51, of(3, 1, 0)));
    drop(running);
    ask(&calls, 52, of(1, 1, 0));
    assert!(is_answered(&journal(&words), 52, of(1, 1, 0)));
}

#[test]
fn a_damaged_entry_is_never_used() {
    let words = memory(1);
    note(&begin(&journal(&words), KEY, 1, 2).0, 16);
    for at in 0..at::BYTES + 2 {
        let word = &(*words).as_ref()[at];
        let right = word.fetch_xor(1 << (at * 7 % 64), Ordering::Relaxed);
        let earlier = begin(&journal(&words), KEY, 1, 2).1;
        assert!(!matches!(earlier, EarlierProgress::Answered { .. }), "word {at}");
        assert!(at >= at::ANSWERED || earlier == EarlierProgress::Nothing, "word {at}");
        // The begin has written the entry anew.
        note(&begin(&journal(&words), KEY, 1, 2).0, 16);
        assert!(word.load(Ordering::Relaxed) == right || at == at::BEGUN || at >= at::ANSWERED);
    }
}
