use super::*;

const MS: u64 = Nanos::MILLISECOND;

fn at(ms: u64) -> Nanos {
    Nanos(ms * MS)
}

/// A file that has to be left alone for 200 ms, with `pages` pages dirtied at the beginning.
fn dirtied(pages: u64) -> RewriteWatch {
    let mut watch = RewriteWatch::default();
    watch.wakes(at(0), 50 * MS);
    (0..pages).for_each(|_| watch.note_dirtied(false));
    let seen = watch.look(at(0), pages, 0);
    assert_eq!(seen, Rewrites { fresh: pages, again: 0, over_ns: 0 });
    watch.judge(at(0), IdleWriteRule { ns: 200 * MS, hot: false });
    watch
}

#[test]
fn a_file_is_left_alone_when_nothing_changed_for_long_enough() {
    let mut watch = dirtied(3);
    for ms in [50, 100, 150, 199] {
        watch.look(at(ms), 3, 0);
        assert!(!watch.check_idle(at(ms)), "at {ms} ms");
        assert_eq!(watch.look_at(), at((ms + 50).min(200)));
    }
    watch.look(at(200), 3, 0);
    assert!(watch.check_idle(at(200)));
}

#[test]
fn what_changes_or_is_overwritten_begins_the_wait_anew() {
    let mut watch = dirtied(3);
    watch.note_changed();
    watch.look(at(150), 3, 0);
    watch.look(at(250), 3, 1);
    watch.look(at(449), 3, 0);
    assert!(!watch.check_idle(at(449)));
    assert_eq!(watch.look_at(), at(450));
    assert!(watch.check_idle(at(450)));
}

#[test]
fn a_small_part_that_changes_keeps_nobody_from_writing_the_rest() {
    let mut watch = dirtied(1000);
    for ms in [50, 100, 150, 200] {
        (0..7).for_each(|_| watch.note_changed());
        watch.look(at(ms), 1000, 0);
    }
    assert!(watch.check_idle(at(200)));
    (0..8).for_each(|_| watch.note_dirtied(true));
    watch.look(at(250), 1000, 0);
    assert!(!watch.check_idle(at(250)));
}

#[test]
fn what_is_seen_is_told_until_it_was_judged() {
    let mut watch = dirtied(2);
    watch.note_dirtied(true);
    watch.look(at(100), 2, 5);
    assert_eq!(watch.look(at(300), 2, 1), Rewrites { fresh: 0, again: 7, over_ns: 300 * MS });
    watch.judge(at(300), IdleWriteRule { ns: 2000 * MS, hot: true });
    assert!(watch.is_hot() && !watch.check_idle(at(2299)), "a longer wait begins anew");
    assert_eq!(watch.look(at(400), 2, 0), Rewrites { fresh: 0, again: 0, over_ns: 100 * MS });
    assert!(!watch.check_idle(at(500)));
    assert_eq!(watch.look_at(), at(1000), "a quarter of the wait");
}

#[test]
fn a_file_that_was_left_alone_while_others_are_written_is_looked_at_again_later() {
    let mut watch = dirtied(3);
    assert!(watch.check_idle(at(200)));
    watch.looks_again(at(200));
    assert_eq!(watch.look_at(), at(250));
}
