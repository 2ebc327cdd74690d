use std::io;

use afflux_object::ObjectError;
use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

use super::{Failure, words};

fn generic(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: "test", source: Box::new(source) }
}

fn kind(error: &Error) -> ObjectError {
    match Failure::of(error).seen() {
        ObjectError::Refused(_) => ObjectError::Refused(String::new()),
        kind => kind,
    }
}

#[test]
fn only_a_request_that_was_not_sent_is_busy() {
    let http = |kind| generic(HttpError::new(kind, io::Error::other("x")));
    assert_eq!(kind(&http(HttpErrorKind::Connect)), ObjectError::Busy);
    for sent in [HttpErrorKind::Timeout, HttpErrorKind::Interrupted, HttpErrorKind::Request, HttpErrorKind::Decode] {
        assert_eq!(kind(&http(sent)), ObjectError::Unknown, "{sent:?}");
    }
}

#[test]
fn failures_of_a_directory_keep_their_kind() {
    for (error, expected) in [
        (io::ErrorKind::NotFound, ObjectError::Missing),
        (io::ErrorKind::PermissionDenied, ObjectError::Refused(String::new())),
        (io::ErrorKind::StorageFull, ObjectError::Unknown),
    ] {
        assert_eq!(kind(&generic(io::Error::from(error))), expected);
    }
}

#[test]
fn the_words_are_the_stores() {
    let body = "Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>\
                <Message>Access\n Denied.</Message></Error>";
    assert_eq!(words(body), "AccessDenied: Access Denied.");
    assert_eq!(words("<Code>NoSuchKey</Code>"), "NoSuchKey");
    assert_eq!(words(&"ä".repeat(400)).chars().count(), 301);
}
