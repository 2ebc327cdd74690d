mod patience;

use futures_util::FutureExt;

use super::*;
use crate::address::StoreAddress;
use crate::failure::TransientFailure;
use crate::waits::WaitKind;

fn now_ns() -> u64 {
    0
}

fn generic(text: &str) -> Error {
    said(text.to_owned())
}

fn is_repeated(error: &Error) -> bool {
    slatedb_common::retry::should_retry(error)
}

#[test]
fn what_is_over_is_repeated_by_no_layer() {
    let judge = Judge::new(now_ns, Patience::of(&StoreAddress::Memory));
    let (data, record) = (Path::from("data/00/x"), Path::from("records/compacted/x.sst"));
    let judged = |path: &Path, error: Error| {
        let sent = judge.waiting.begin(WaitKind::Get, path);
        let judged = judge.judge::<()>(&sent, path, Err(error)).unwrap_err();
        (is_repeated(&judged), RequestFailure::of(&judged))
    };
    // The database repeats everything that is not marked.
    let beyond = "Wanted range starting at 9, but object was only 4 bytes long";
    assert!(is_repeated(&generic(beyond)));
    assert_eq!(
        judged(&record, generic(beyond)),
        (false, RequestFailure::Over(Box::new(RequestFailure::Beyond(beyond.to_owned()))))
    );
    assert_eq!(judged(&data, generic(beyond)).1, RequestFailure::Beyond(beyond.to_owned()));
    assert_eq!(
        judged(&record, generic("other words")),
        (true, RequestFailure::Unknown(TransientFailure::ByStore("other words".to_owned())))
    );
    let absent = || Error::NotFound { path: "x".to_owned(), source: "absent".into() };
    assert_eq!(judged(&data, absent()), (false, RequestFailure::Missing));
    assert_eq!(judged(&record, absent()), (false, RequestFailure::Missing), "a directory is believed");
    let remote = Judge::new(now_ns, Patience::served());
    let sent = remote.waiting.begin(WaitKind::Get, &record);
    let judged = remote.judge::<()>(&sent, &record, Err(absent())).unwrap_err();
    assert!(is_repeated(&judged), "{judged}");
    assert!(remote.waiting.trouble().unwrap().why.contains("must be there"));
}

#[test]
fn a_server_sets_no_time_for_a_single_request() {
    let judge = Judge::new(now_ns, Patience::served());
    // Without a runtime, a timer would panic.
    assert_eq!(judge.timed(async { Ok(1) }).now_or_never().unwrap().unwrap(), 1);
}
