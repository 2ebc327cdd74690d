//! rule: no step holds a lock for longer because there are more pages or files

use super::super::*;

#[test]
fn a_look_at_very_many_files_that_fail_brings_few_of_them_back() {
    for files in [1_000, 100_000] {
        let mut lists = Lists::<()>::default();
        for at in 0..files {
            // Some files have the same instant, and none is in order.
            lists.push_later(Nanos(at * 7_919 % files / 3), Later::Retry(Weak::new()));
        }
        lists.push_later(Nanos(0), Later::Sync(Weak::new()));
        let (mut looks, mut back) = (0, 0);
        for now in (0..=files / 3).map(Nanos) {
            assert!(lists.next_later().is_none_or(|first| first >= now), "what was due before is back");
            while lists.next_later().is_some_and(|first| first <= now) {
                let brought = lists.requeue_due(now);
                assert!((1..=BACK_TOGETHER).contains(&brought), "{brought} files at one look");
                (looks, back) = (looks + 1, back + brought as u64);
            }
        }
        assert_eq!((back, lists.next_later()), (files + 1, None));
        assert_eq!((lists.retry.len() as u64, lists.sync.len()), (files, 1));
        assert!(looks <= files / 3 + 1, "{looks} looks for {files} files");
        // All files at once.
        (0..files).for_each(|_| lists.push_later(Nanos(5), Later::Retry(Weak::new())));
        assert_eq!(lists.requeue_due(Nanos(5)), BACK_TOGETHER);
        assert_eq!(lists.next_later(), Some(Nanos(5)), "the rest at the next looks");
        assert_eq!(lists.requeue_due(Nanos(4)), 0);
    }
}
