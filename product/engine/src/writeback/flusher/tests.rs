use afflux_device::platform::Nanos;

use super::*;

const QUIET: FlusherView = FlusherView {
    now: Nanos(1_000),
    sync_waiting: false,
    sync_ahead: false,
    retry_due: false,
    files_ready: false,
    draining: false,
    memory_short: false,
    next_retry: None,
    interval_ns: 5_000,
    listed: 0,
};

#[test]
fn choices_by_table() {
    use FlushSlice::{Idle, InOrder, Largest, Old, Oldest, Retry, Sync};
    use Next::WaitUntil;
    let never = Next::WaitUntil(Nanos::NEVER);
    let dirty = FlusherView { files_ready: true, ..QUIET };
    let old = Next::FlushSlice(Old { before: Nanos(500) });
    let table = [
        (QUIET, never, WaitUntil(Nanos(6_000))),
        (dirty, Next::WaitUntil(Nanos(1_400)), WaitUntil(Nanos(1_400))),
        (dirty, Next::WaitUntil(Nanos(900)), WaitUntil(Nanos(1_001))),
        (dirty, Next::FlushSlice(FlushSlice::InOrder), Next::FlushSlice(InOrder)),
        (dirty, old, old),
        (FlusherView { draining: true, ..dirty }, never, Next::FlushSlice(InOrder)),
        (dirty, Next::FlushSlice(Largest { hot: true }), Next::FlushSlice(Largest { hot: true })),
        (
            dirty,
            Next::FlushSlice(Oldest { before: Nanos(7), hot: false }),
            Next::FlushSlice(Oldest { before: Nanos(7), hot: false }),
        ),
        (dirty, Next::FlushSlice(Idle { now: Nanos(1_000) }), Next::FlushSlice(Idle { now: Nanos(1_000) })),
        (
            FlusherView { sync_waiting: true, ..dirty },
            Next::FlushSlice(Idle { now: Nanos(1_000) }),
            Next::FlushSlice(Sync),
        ),
        (FlusherView { memory_short: true, ..dirty }, Next::FlushSlice(FlushSlice::InOrder), Next::FlushSlice(InOrder)),
        (
            FlusherView { memory_short: true, ..dirty },
            Next::FlushSlice(Largest { hot: true }),
            Next::FlushSlice(Largest { hot: true }),
        ),
        (FlusherView { memory_short: true, ..dirty }, never, Next::FlushSlice(InOrder)),
        (FlusherView { memory_short: true, ..QUIET }, never, WaitUntil(Nanos(6_000))),
        (FlusherView { sync_waiting: true, ..dirty }, Next::FlushSlice(FlushSlice::InOrder), Next::FlushSlice(Sync)),
        (FlusherView { retry_due: true, ..QUIET }, never, Next::FlushSlice(Retry)),
        (FlusherView { retry_due: true, sync_waiting: true, ..QUIET }, never, Next::FlushSlice(Sync)),
        (FlusherView { next_retry: Some(Nanos(1_200)), ..QUIET }, never, WaitUntil(Nanos(1_200))),
        (FlusherView { next_retry: Some(Nanos(10)), ..QUIET }, never, WaitUntil(Nanos(1_001))),
    ];
    for (view, policy, expected) in table {
        assert_eq!(choose(&view, |_| policy), expected, "{view:?} {policy:?}");
    }
}

#[test]
fn the_policy_is_not_asked_when_something_comes_first() {
    let view = FlusherView { sync_waiting: true, ..QUIET };
    assert_eq!(choose(&view, |_| unreachable!("not asked")), Next::FlushSlice(FlushSlice::Sync));
}

#[test]
fn syncs_that_have_used_their_lead_wait_for_what_is_due_and_for_nothing_else() {
    use FlushSlice::{InOrder, Largest, Retry, Sync};
    let ahead = FlusherView { sync_waiting: true, sync_ahead: true, files_ready: true, ..QUIET };
    let (never, soon) = (Next::WaitUntil(Nanos::NEVER), Next::WaitUntil(Nanos(1_001)));
    let table = [
        (ahead, never, Sync),
        (ahead, soon, Sync),
        (ahead, Next::FlushSlice(FlushSlice::InOrder), InOrder),
        (ahead, Next::FlushSlice(Largest { hot: true }), Largest { hot: true }),
        (FlusherView { retry_due: true, ..ahead }, never, Retry),
        (FlusherView { draining: true, ..ahead }, never, InOrder),
        (FlusherView { draining: true, files_ready: false, ..ahead }, never, Sync),
        (FlusherView { sync_ahead: false, ..ahead }, Next::FlushSlice(FlushSlice::InOrder), Sync),
    ];
    for (view, policy, expected) in table {
        assert_eq!(choose(&view, |_| policy), Next::FlushSlice(expected), "{view:?} {policy:?}");
    }
}

#[test]
fn the_policy_is_told_whether_anything_has_to_be_written() {
    let asked = |view: FlusherView| {
        let mut asked = None;
        choose(&view, |pressed| {
            asked = Some(pressed);
            Next::FlushSlice(FlushSlice::InOrder)
        });
        asked.unwrap()
    };
    let dirty = FlusherView { files_ready: true, ..QUIET };
    assert!(!asked(dirty));
    assert!(asked(FlusherView { memory_short: true, ..dirty }));
    assert!(asked(FlusherView { draining: true, ..dirty }));
    assert!(!asked(FlusherView { draining: true, ..QUIET }), "there is nothing to write");
}
