use super::super::*;
use crate::failure::TransientFailure;

/// How long a failure lasts until it is final, in seconds; nothing if it is repeated without end.
fn end(patience: &Patience, failure: &RequestFailure, path: &str) -> Option<u64> {
    (0..100).find(|seconds| patience.is_over(failure, &Path::from(path), seconds * S))
}

const DATA: &str = "home/data/01/x";
const RECORD: &str = "home/records/wal/1.sst";
const HOST: &str = "home/holder";

fn failures() -> [RequestFailure; 6] {
    let words = String::new;
    [
        RequestFailure::Busy(TransientFailure::ByStore(words())),
        RequestFailure::Unknown(TransientFailure::ByConnection(words())),
        RequestFailure::NoBucket,
        RequestFailure::Denied(words()),
        RequestFailure::Region(words()),
        RequestFailure::Refused(words()),
    ]
}

// rule: A server waits without end for its store and for records. A refusal ends a call for data in half a minute.
#[test]
fn each_failure_has_its_end() {
    let patience = |place| {
        let patience = Patience::of(&place);
        patience.serve();
        patience
    };
    let ends = |patience: &Patience, path| failures().map(|failure| end(patience, &failure, path));
    let bucket = patience(StoreAddress::S3 { bucket: "b".to_owned() });
    assert_eq!(ends(&bucket, DATA), [None, None, None, Some(30), Some(30), Some(30)]);
    assert_eq!(ends(&bucket, RECORD), [None; 6]);
    assert_eq!(ends(&bucket, HOST), ends(&bucket, RECORD), "other hosts look for it");
    let directory = patience(StoreAddress::Directory("/d".into()));
    assert_eq!(ends(&directory, DATA), [None, None, None, Some(0), Some(0), Some(0)]);
    assert_eq!(ends(&directory, RECORD), [None; 6]);
    let doubts = |patience: &Patience, path| {
        [NameAnswer::Absent, NameAnswer::Wrong].map(|answer| patience.doubt_ns(&Path::from(path), answer) / S)
    };
    assert_eq!((doubts(&bucket, DATA), doubts(&bucket, RECORD)), ([5, 5], [60, 60]));
    assert_eq!((doubts(&directory, DATA), doubts(&directory, RECORD)), ([0, 0], [0, 0]));
    let opening = Patience::of(&StoreAddress::S3 { bucket: "b".to_owned() });
    assert_eq!((doubts(&opening, DATA), doubts(&opening, RECORD)), ([0, 5], [10, 10]));
}

// rule: While a program opens or checks a volume, each repeat of a request ends in ten seconds.
#[test]
fn an_opening_has_an_end() {
    let opening = Patience::of(&StoreAddress::S3 { bucket: "b".to_owned() });
    for path in [DATA, RECORD, HOST] {
        for failure in failures() {
            assert!(end(&opening, &failure, path).is_some_and(|seconds| seconds <= 10), "{path} {failure:?}");
        }
    }
    assert_eq!(opening.limit_ns(), Some(LIMIT_NS));
    opening.serve();
    assert_eq!(opening.limit_ns(), None);
}
