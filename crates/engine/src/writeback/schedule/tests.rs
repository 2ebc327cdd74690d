use super::*;

const QUIET: FlusherView = FlusherView {
    now: Nanos(1_000),
    sync_waiting: false,
    retry_due: false,
    files_ready: false,
    draining: false,
    memory_short: false,
    next_retry: None,
    interval_ns: 5_000,
};

#[test]
fn choices_by_table() {
    use FlushChoice::{WaitUntil, Write};
    use FlushReason::{Background, Expired, Retry, Sync};
    let never = Next::WaitUntil(Nanos::NEVER);
    let dirty = FlusherView { files_ready: true, ..QUIET };
    let old = Next::Old { before: Nanos(500) };
    let table = [
        (QUIET, never, WaitUntil(Nanos(6_000))),
        (dirty, Next::WaitUntil(Nanos(1_400)), WaitUntil(Nanos(1_400))),
        (dirty, Next::WaitUntil(Nanos(900)), WaitUntil(Nanos(1_001))),
        (dirty, Next::InTurn, Write(Background)),
        (dirty, old, Write(Expired { before: Nanos(500) })),
        (FlusherView { draining: true, ..dirty }, never, Write(Background)),
        (FlusherView { memory_short: true, ..dirty }, old, Write(Background)),
        (FlusherView { memory_short: true, ..QUIET }, never, WaitUntil(Nanos(6_000))),
        (FlusherView { sync_waiting: true, ..dirty }, Next::InTurn, Write(Sync)),
        (FlusherView { retry_due: true, ..QUIET }, never, Write(Retry)),
        (FlusherView { retry_due: true, sync_waiting: true, ..QUIET }, never, Write(Sync)),
        (FlusherView { next_retry: Some(Nanos(1_200)), ..QUIET }, never, WaitUntil(Nanos(1_200))),
        (FlusherView { next_retry: Some(Nanos(10)), ..QUIET }, never, WaitUntil(Nanos(1_001))),
    ];
    for (view, policy, expected) in table {
        assert_eq!(choose(&view, || policy), expected, "{view:?} {policy:?}");
    }
}

#[test]
fn the_policy_is_not_asked_when_something_comes_first() {
    let view = FlusherView { sync_waiting: true, ..QUIET };
    assert_eq!(choose(&view, || unreachable!("not asked")), FlushChoice::Write(FlushReason::Sync));
}
