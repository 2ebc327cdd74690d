mod advice;

use std::io;

use afflux_object::ObjectError;
use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};
use rustix::io::Errno;

use super::{RequestFailure, words};

fn generic(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: "test", source: Box::new(source) }
}

fn kind(error: &Error) -> ObjectError {
    match RequestFailure::of(error).seen() {
        ObjectError::Refused(_) => ObjectError::Refused(String::new()),
        ObjectError::Full(_) => ObjectError::Full(String::new()),
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

// rule: Each error of a directory as a store has a name.
#[test]
fn failures_of_a_directory_have_their_names() {
    for (errno, expected) in [
        (Errno::NOENT, ObjectError::Missing),
        (Errno::ACCESS, ObjectError::Denied),
        (Errno::PERM, ObjectError::Denied),
        (Errno::ROFS, ObjectError::Denied),
        (Errno::IO, ObjectError::Denied),
        (Errno::NAMETOOLONG, ObjectError::Denied),
        (Errno::NOTDIR, ObjectError::Denied),
        (Errno::ISDIR, ObjectError::Denied),
        (Errno::LOOP, ObjectError::Denied),
        (Errno::NOSPC, ObjectError::Full(String::new())),
        (Errno::DQUOT, ObjectError::Full(String::new())),
        (Errno::MFILE, ObjectError::Unknown),
        (Errno::NOMEM, ObjectError::Unknown),
        (Errno::TIMEDOUT, ObjectError::Unknown),
    ] {
        assert_eq!(kind(&generic(io::Error::from(errno))), expected, "{errno}");
    }
    let directory = |text: &str| Error::Generic { store: "LocalFileSystem", source: text.into() };
    assert_eq!(kind(&directory("something new")), ObjectError::Denied, "it is not repeated without end");
    let beyond = "Out of range of file /d/x, expected: 9, actual: 4";
    assert!(matches!(RequestFailure::of(&directory(beyond)), RequestFailure::Refused(_) | RequestFailure::Beyond(_)));
}

#[test]
fn the_words_are_the_stores() {
    let body = "Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>\
                <Message>Access\n Denied.</Message></Error>";
    assert_eq!(words(body), "AccessDenied: Access Denied.");
    assert_eq!(words("<Code>NoSuchKey</Code>"), "NoSuchKey");
    assert_eq!(words(&"ä".repeat(400)).chars().count(), 301);
}

// rule: The words about a failure have all its sources, and neither a secret nor an escape sequence.
#[test]
fn the_words_have_the_whole_chain_and_no_secret() {
    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);
    let words_of = |text: &str| RequestFailure::of(&generic(Outer(io::Error::other(text.to_owned())))).words();
    assert!(words_of("connection refused").ends_with("outer: connection refused"));
    assert_eq!(words_of("\u{1b}[31mred\u{7}\u{9b}x"), "outer: [31mred x");
    let said = words_of("GET https://me:pass@host/a?X-Amz-Signature=abc&sig=def failed");
    assert!(said.ends_with("GET https://host/a failed"), "{said}");
}
