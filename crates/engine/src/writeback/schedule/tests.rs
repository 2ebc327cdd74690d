use super::*;

const QUIET: View = View {
    now: Nanos(1_000),
    sync_waiting: false,
    retry_due: false,
    files_ready: false,
    draining: false,
    memory_short: false,
    dirty_pages: 0,
    background_pages: 100,
    over_law: false,
    expires_here: true,
    oldest: None,
    expire_ns: 500,
    next_retry: None,
    interval_ns: 5_000,
};

#[test]
fn choices_by_table() {
    use FlushChoice::{WaitUntil, Write};
    use FlushReason::{Background, Expired, Retry, Sync};
    let dirty = View { files_ready: true, dirty_pages: 100, oldest: Some(Nanos(900)), ..QUIET };
    let table = [
        (QUIET, WaitUntil(Nanos(6_000))),
        (dirty, WaitUntil(Nanos(1_400))),
        (View { dirty_pages: 101, ..dirty }, Write(Background)),
        (View { dirty_pages: 101, files_ready: false, ..dirty }, WaitUntil(Nanos(6_000))),
        (View { over_law: true, ..dirty }, Write(Background)),
        (View { over_law: true, ..QUIET }, WaitUntil(Nanos(6_000))),
        (View { oldest: Some(Nanos(500)), expires_here: false, ..dirty }, WaitUntil(Nanos(6_000))),
        (View { draining: true, ..dirty }, Write(Background)),
        (View { memory_short: true, ..dirty }, Write(Background)),
        (View { oldest: Some(Nanos(500)), ..dirty }, Write(Expired)),
        (View { oldest: Some(Nanos(501)), ..dirty }, WaitUntil(Nanos(1_001))),
        (View { sync_waiting: true, dirty_pages: 101, ..dirty }, Write(Sync)),
        (View { sync_waiting: true, ..QUIET }, Write(Sync)),
        (View { retry_due: true, ..QUIET }, Write(Retry)),
        (View { retry_due: true, sync_waiting: true, ..QUIET }, Write(Sync)),
        (View { next_retry: Some(Nanos(1_200)), ..QUIET }, WaitUntil(Nanos(1_200))),
        (View { next_retry: Some(Nanos(10)), ..QUIET }, WaitUntil(Nanos(1_001))),
    ];
    for (view, expected) in table {
        assert_eq!(choose(&view), expected, "{view:?}");
    }
}
