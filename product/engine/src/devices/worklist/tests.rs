mod lists;

use super::*;
use crate::devices::Size;

fn entry(file: &Arc<u32>, look_at: Nanos) -> ReadyEntry<u32> {
    let size = Size::of(8);
    ReadyEntry { file: Arc::downgrade(file), slot: **file, dirtied_at: Nanos(5), size, hot: false, look_at }
}

#[test]
fn dropped_files_are_passed_over_and_kept_ones_live_until_they_are_clean() {
    let worklist = Worklist::new();
    let [gone, kept] = [1, 2].map(Arc::new);
    for file in [&gone, &kept] {
        worklist.list_dirty(entry(file, Nanos::NEVER));
        worklist.list_sync(Arc::downgrade(file));
    }
    worklist.keep(2, kept);
    drop(gone);
    let next = |turn| worklist.next(turn).map(|(file, listed)| (*file, listed.size));
    assert_eq!(next(FlushSlice::Sync), Some((2, Size::default())));
    assert_eq!(next(FlushSlice::InOrder), Some((2, Size::of(8))));
    assert_eq!((next(FlushSlice::Sync), next(FlushSlice::InOrder)), (None, None));
    assert_eq!((worklist.unclean_count(), worklist.unlist_clean(2).map(Arc::into_inner)), (1, Some(Some(2))));
}

#[test]
fn a_flush_is_owed_since_the_first_change_and_dirty_files_are_left_to_their_flusher() {
    let worklist = Worklist::new();
    for (slot, now) in [(0, 10), (1, 20), (0, 30), (2, 10)] {
        worklist.keep_unflushed(slot, &Arc::new(slot), Nanos(now));
    }
    worklist.keep(2, Arc::new(2));
    let take = |before, count| worklist.take_unflushed(Nanos(before), count).0.into_iter().map(|file| *file);
    assert_eq!(take(9, 8).count(), 0);
    assert_eq!(take(20, 1).collect::<Vec<u32>>(), [0]);
    assert_eq!(take(20, 8).collect::<Vec<u32>>(), [1]);
    assert_eq!(take(99, 8).count(), 0, "each flush is tried once");
}

#[test]
fn a_look_at_many_files_with_flushes_owed_is_done_in_pieces() {
    let (worklist, file) = (Worklist::new(), Arc::new(0));
    let count = 3 * UNFLUSHED_LOOKED_AT as u32;
    (0..count).for_each(|slot| worklist.keep_unflushed(slot, &file, Nanos(20)));
    worklist.keep_unflushed(count, &Arc::new(7), Nanos(10));
    let looks = [(0, true), (0, true), (0, true), (1, false)];
    for found in looks {
        let (files, more) = worklist.take_unflushed(Nanos(10), 8);
        assert_eq!((files.len(), more), found);
        assert!(files.iter().all(|file| **file == 7));
    }
    assert_eq!(worklist.take_unflushed(Nanos(20), 8).0.len(), 8, "and then from the first on");
}

#[test]
fn a_file_awaits_its_flush_until_one_succeeds() {
    let worklist = Worklist::new();
    worklist.keep_unflushed(0, &Arc::new(0), Nanos(10));
    assert_eq!(worklist.take_unflushed(Nanos(10), 8).0.len(), 1);
    assert!(worklist.has_unflushed(0), "the flush may fail");
    assert_eq!(worklist.files_to_drain().len(), 1, "a drain waits for the flush");
    worklist.keep_unflushed(0, &Arc::new(0), Nanos(20));
    assert_eq!(worklist.take_unflushed(Nanos(20), 8).0.len(), 1, "the flush failed, or did not cover a later change");
    worklist.forget_unflushed(0);
    assert!(!worklist.has_unflushed(0));
}

#[test]
fn the_flusher_sleeps_only_if_no_file_was_listed_since_its_look() {
    let (worklist, file) = (Worklist::new(), Arc::new(0));
    let listed = || worklist.view(Nanos(0), u64::MAX, false, false).listed;
    let before = listed();
    worklist.list_dirty(entry(&file, Nanos(70)));
    assert!(!worklist.may_sleep(Nanos(50), before));
    assert!(worklist.may_sleep(Nanos(50), listed()));
    worklist.list_dirty(entry(&file, Nanos(50)));
    assert_eq!(lock(&worklist.lists).sleeps_until, Some(Nanos(50)), "nothing to look at before that");
    worklist.list_dirty(entry(&file, Nanos(49)));
    assert_eq!(lock(&worklist.lists).sleeps_until, None, "the flusher is awake");
}

#[test]
fn others_are_due_until_the_flusher_finds_nothing_but_syncs() {
    let worklist = Worklist::<u32>::new();
    let (sync, other, rest) =
        (Next::FlushSlice(FlushSlice::Sync), Next::FlushSlice(FlushSlice::InOrder), Next::WaitUntil(Nanos::NEVER));
    let mut dues = Vec::new();
    for (choice, sync_ahead) in
        [(other, true), (sync, false), (sync, true), (sync, false), (other, false), (rest, false)]
    {
        worklist.note_choice(choice, sync_ahead);
        dues.push(worklist.are_others_due());
    }
    assert_eq!(dues, [true, true, false, false, true, false]);
}
