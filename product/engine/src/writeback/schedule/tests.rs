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
    use Next::WaitUntil;
    use Turn::{Idle, InTurn, Largest, Old, Oldest, Retry, Sync};
    let never = Next::WaitUntil(Nanos::NEVER);
    let dirty = FlusherView { files_ready: true, ..QUIET };
    let old = Next::Turn(Old { before: Nanos(500) });
    let table = [
        (QUIET, never, WaitUntil(Nanos(6_000))),
        (dirty, Next::WaitUntil(Nanos(1_400)), WaitUntil(Nanos(1_400))),
        (dirty, Next::WaitUntil(Nanos(900)), WaitUntil(Nanos(1_001))),
        (dirty, Next::Turn(Turn::InTurn), Next::Turn(InTurn)),
        (dirty, old, old),
        (FlusherView { draining: true, ..dirty }, never, Next::Turn(InTurn)),
        (dirty, Next::Turn(Largest { hot: true }), Next::Turn(Largest { hot: true })),
        (
            dirty,
            Next::Turn(Oldest { before: Nanos(7), hot: false }),
            Next::Turn(Oldest { before: Nanos(7), hot: false }),
        ),
        (dirty, Next::Turn(Idle { now: Nanos(1_000) }), Next::Turn(Idle { now: Nanos(1_000) })),
        (FlusherView { sync_waiting: true, ..dirty }, Next::Turn(Idle { now: Nanos(1_000) }), Next::Turn(Sync)),
        (FlusherView { memory_short: true, ..dirty }, Next::Turn(Turn::InTurn), Next::Turn(InTurn)),
        (
            FlusherView { memory_short: true, ..dirty },
            Next::Turn(Largest { hot: true }),
            Next::Turn(Largest { hot: true }),
        ),
        (FlusherView { memory_short: true, ..dirty }, never, Next::Turn(InTurn)),
        (FlusherView { memory_short: true, ..QUIET }, never, WaitUntil(Nanos(6_000))),
        (FlusherView { sync_waiting: true, ..dirty }, Next::Turn(Turn::InTurn), Next::Turn(Sync)),
        (FlusherView { retry_due: true, ..QUIET }, never, Next::Turn(Retry)),
        (FlusherView { retry_due: true, sync_waiting: true, ..QUIET }, never, Next::Turn(Sync)),
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
    assert_eq!(choose(&view, |_| unreachable!("not asked")), Next::Turn(Turn::Sync));
}

#[test]
fn syncs_that_have_used_their_lead_wait_for_what_is_due_and_for_nothing_else() {
    use Turn::{InTurn, Largest, Retry, Sync};
    let ahead = FlusherView { sync_waiting: true, sync_ahead: true, files_ready: true, ..QUIET };
    let (never, soon) = (Next::WaitUntil(Nanos::NEVER), Next::WaitUntil(Nanos(1_001)));
    let table = [
        (ahead, never, Sync),
        (ahead, soon, Sync),
        (ahead, Next::Turn(Turn::InTurn), InTurn),
        (ahead, Next::Turn(Largest { hot: true }), Largest { hot: true }),
        (FlusherView { retry_due: true, ..ahead }, never, Retry),
        (FlusherView { draining: true, ..ahead }, never, InTurn),
        (FlusherView { draining: true, files_ready: false, ..ahead }, never, Sync),
        (FlusherView { sync_ahead: false, ..ahead }, Next::Turn(Turn::InTurn), Sync),
    ];
    for (view, policy, expected) in table {
        assert_eq!(choose(&view, |_| policy), Next::Turn(expected), "{view:?} {policy:?}");
    }
}

#[test]
fn the_policy_is_told_whether_anything_has_to_be_written() {
    let asked = |view: FlusherView| {
        let mut asked = None;
        choose(&view, |pressed| {
            asked = Some(pressed);
            Next::Turn(Turn::InTurn)
        });
        asked.unwrap()
    };
    let dirty = FlusherView { files_ready: true, ..QUIET };
    assert!(!asked(dirty));
    assert!(asked(FlusherView { memory_short: true, ..dirty }));
    assert!(asked(FlusherView { draining: true, ..dirty }));
    assert!(!asked(FlusherView { draining: true, ..QUIET }), "there is nothing to write");
}
