use super::*;

const KEY: CallKey = [1, 2, 3];
const ENTRY_WORDS: usize = 64;

fn memory(entries: usize) -> KeptWords {
    Arc::new((0..entries * ENTRY_WORDS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>())
}

fn journal(words: &KeptWords) -> Arc<CallJournal> {
    CallJournal::new(Arc::clone(words), 0..(**words).as_ref().len(), ENTRY_WORDS, |_, value| value)
}

fn answer(bytes: usize) -> Left {
    Left::Answered { code: 17, bytes: vec![7; bytes] }
}

fn note(call: &JournalCall, bytes: usize) {
    call.answered(17, &vec![7; bytes]);
}

#[test]
fn a_successor_finds_calls_and_their_answers() {
    let words = memory(4);
    let calls = journal(&words);
    note(&calls.begin(KEY, 1, 2).0, 308);
    drop(calls.begin([4, 5, 6], 8, 9));
    let renamed = calls.begin([7, 8, 9], 1, 0).0;
    renamed.note(1, 5);
    calls.begin([6, 6, 6], 1, 0).0.forget();
    let next = journal(&words);
    assert_eq!(next.left(&KEY), answer(308));
    assert_eq!(next.begin(KEY, 5, 6).1, answer(308));
    assert_eq!(next.begin([4, 5, 6], 10, 11).1, Left::Begun { value: 8, object: 9 }, "its own beginning counts");
    assert_eq!(next.left(&[7, 8, 9]), Left::Begun { value: 1, object: 5 });
    assert_eq!(next.begin([7, 7, 7], 0, 0).1, Left::Nothing);
    assert_eq!(journal(&words).begin([6, 6, 6], 0, 0).1, Left::Nothing, "it has failed");
    // A second kill.
    assert_eq!(journal(&words).begin(KEY, 5, 6).1, answer(308));
}

/// A sample of form 3 of the cache's memory, of which these entries are a part. A new form gets a reader of this one.
// rule: each version reads the replies that a killed server of any form since the first release left
// kept in: `product/frontend/src/journal.rs`
#[test]
fn a_reply_of_the_first_release_is_found() {
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
    assert_eq!(journal(&words).begin(KEY, 5, 6).1, answer(12));
}

#[test]
fn the_oldest_call_is_forgotten_first_and_a_long_answer_is_not_kept() {
    let words = memory(2);
    let calls = journal(&words);
    (0..3).for_each(|number| note(&calls.begin([number, 0, 0], 0, 0).0, 8));
    let running = calls.begin([3, 0, 0], 0, 0).0;
    note(&running, calls.answer_bytes_max() + 1);
    let next = journal(&words);
    let is_answered = |number| next.begin([number, 0, 0], 5, 6).1 == answer(8);
    assert_eq!([2, 3, 0, 1].map(is_answered), [true, false, false, false]);
}

#[test]
fn a_damaged_entry_is_never_used() {
    let words = memory(1);
    note(&journal(&words).begin(KEY, 1, 2).0, 16);
    for at in 0..at::BYTES + 2 {
        let word = &(*words).as_ref()[at];
        let right = word.fetch_xor(1 << (at * 7 % 64), Ordering::Relaxed);
        let left = journal(&words).begin(KEY, 1, 2).1;
        assert!(!matches!(left, Left::Answered { .. }), "word {at}");
        assert!(at >= at::ANSWERED || left == Left::Nothing, "word {at}");
        // The begin has written the entry anew.
        note(&journal(&words).begin(KEY, 1, 2).0, 16);
        assert!(word.load(Ordering::Relaxed) == right || at == at::BEGUN || at >= at::ANSWERED);
    }
}
