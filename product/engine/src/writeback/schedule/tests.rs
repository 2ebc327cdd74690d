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
    use FlushChoice::{WaitUntil, Write};
    use FlushReason::{Background, Expired, Idle, Largest, Oldest, Retry, Sync};
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
        (dirty, Next::MostDirty { hot: true }, Write(Largest { hot: true })),
        (dirty, Next::Oldest { before: Nanos(7), hot: false }, Write(Oldest { before: Nanos(7), hot: false })),
        (dirty, Next::Idle, Write(Idle { now: Nanos(1_000) })),
        (FlusherView { sync_waiting: true, ..dirty }, Next::Idle, Write(Sync)),
        (FlusherView { memory_short: true, ..dirty }, Next::InTurn, Write(Background)),
        (FlusherView { memory_short: true, ..dirty }, Next::MostDirty { hot: true }, Write(Largest { hot: true })),
        (FlusherView { memory_short: true, ..dirty }, never, Write(Background)),
        (FlusherView { memory_short: true, ..QUIET }, never, WaitUntil(Nanos(6_000))),
        (FlusherView { sync_waiting: true, ..dirty }, Next::InTurn, Write(Sync)),
        (FlusherView { retry_due: true, ..QUIET }, never, Write(Retry)),
        (FlusherView { retry_due: true, sync_waiting: true, ..QUIET }, never, Write(Sync)),
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
    assert_eq!(choose(&view, |_| unreachable!("not asked")), FlushChoice::Write(FlushReason::Sync));
}

#[test]
fn syncs_that_have_used_their_lead_wait_for_what_is_due_and_for_nothing_else() {
    use FlushReason::{Background, Largest, Retry, Sync};
    let ahead = FlusherView { sync_waiting: true, sync_ahead: true, files_ready: true, ..QUIET };
    let (never, soon) = (Next::WaitUntil(Nanos::NEVER), Next::WaitUntil(Nanos(1_001)));
    let table = [
        (ahead, never, Sync),
        (ahead, soon, Sync),
        (ahead, Next::InTurn, Background),
        (ahead, Next::MostDirty { hot: true }, Largest { hot: true }),
        (FlusherView { retry_due: true, ..ahead }, never, Retry),
        (FlusherView { draining: true, ..ahead }, never, Background),
        (FlusherView { draining: true, files_ready: false, ..ahead }, never, Sync),
        (FlusherView { sync_ahead: false, ..ahead }, Next::InTurn, Sync),
    ];
    for (view, policy, expected) in table {
        assert_eq!(choose(&view, |_| policy), FlushChoice::Write(expected), "{view:?} {policy:?}");
    }
}

#[test]
fn the_policy_is_told_whether_anything_has_to_be_written() {
    let asked = |view: FlusherView| {
        let mut asked = None;
        choose(&view, |question| {
            asked = Some(question);
            Next::InTurn
        });
        asked.unwrap()
    };
    let dirty = FlusherView { files_ready: true, ..QUIET };
    assert_eq!(asked(dirty), Question::Due);
    assert_eq!(asked(FlusherView { memory_short: true, ..dirty }), Question::Pressed);
    assert_eq!(asked(FlusherView { draining: true, ..dirty }), Question::Pressed);
    assert_eq!(asked(FlusherView { draining: true, ..QUIET }), Question::Due, "there is nothing to write");
}
