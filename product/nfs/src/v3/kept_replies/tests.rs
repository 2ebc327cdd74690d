use super::*;

const KEY: KeptKey = [1, 2, 3];

fn memory(entries: usize) -> ReplyWords {
    Arc::new((0..entries * ENTRY_WORDS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>())
}

fn reply(bytes: usize) -> KeptReply {
    KeptReply { record: vec![7; bytes].into(), status: Status::Exists }
}

fn answered(replies: &KeptReplies, key: KeptKey) -> Option<KeptReply> {
    match replies.begin(key, 5, 6).1 {
        Left::Answered(reply) => Some(reply),
        Left::Unanswered(_) => None,
    }
}

#[test]
fn a_successor_finds_calls_and_their_replies() {
    let words = memory(4);
    let replies = KeptReplies::new(Arc::clone(&words));
    replies.begin(KEY, 1, 2).0.answered(&reply(308));
    drop(replies.begin([4, 5, 6], 8, 9));
    let next = KeptReplies::new(Arc::clone(&words));
    assert_eq!(answered(&next, KEY), Some(reply(308)));
    let before = next.begin([4, 5, 6], 10, 11).1;
    assert!(matches!(before, Left::Unanswered(Before::Begun { value: 8, object: 9 })), "its own beginning counts");
    assert!(matches!(next.begin([7, 7, 7], 0, 0).1, Left::Unanswered(Before::Nothing)));
    // A second kill.
    assert_eq!(answered(&KeptReplies::new(words), KEY), Some(reply(308)));
}

/// A sample of form 3 of the cache's memory, of which these entries are a part. A new form gets a reader of this one.
// rule: each version reads the replies that a killed server of any form since the first release left
// kept in: `product/nfs/src/v3/kept_replies.rs`
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
    assert_eq!(answered(&KeptReplies::new(words), KEY), Some(reply(12)));
}

#[test]
fn the_oldest_call_is_forgotten_first_and_a_long_reply_is_not_kept() {
    let words = memory(2);
    let replies = KeptReplies::new(Arc::clone(&words));
    for number in 0..3 {
        replies.begin([number, 0, 0], 0, 0).0.answered(&reply(8));
    }
    let running = replies.begin([3, 0, 0], 0, 0).0;
    running.answered(&reply(REPLY_BYTES_MAX + 1));
    let next = KeptReplies::new(words);
    assert_eq!([2, 3, 0, 1].map(|number| answered(&next, [number, 0, 0]).is_some()), [true, false, false, false]);
}

#[test]
fn a_damaged_entry_is_never_used() {
    let words = memory(1);
    KeptReplies::new(Arc::clone(&words)).begin(KEY, 1, 2).0.answered(&reply(16));
    for at in 0..at::BYTES + 2 {
        let word = &(*words).as_ref()[at];
        let right = word.fetch_xor(1 << (at * 7 % 64), Ordering::Relaxed);
        let left = KeptReplies::new(Arc::clone(&words)).begin(KEY, 1, 2).1;
        assert!(!matches!(left, Left::Answered(_)), "word {at}");
        assert!(at >= at::ANSWERED || matches!(left, Left::Unanswered(Before::Nothing)), "word {at}");
        // The begin has written the entry anew.
        KeptReplies::new(Arc::clone(&words)).begin(KEY, 1, 2).0.answered(&reply(16));
        assert!(word.load(Ordering::Relaxed) == right || at == at::BEGUN || at >= at::ANSWERED);
    }
}
