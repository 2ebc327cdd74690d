#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::ffi::CStr;
use std::io;

use super::{Code, NAMED, afflux_strerror, code_of, text_of};

#[test]
fn the_named_codes_are_the_hosts_numbers() {
    let pairs = [
        (Code::Io, libc::EIO),
        (Code::BadHandle, libc::EBADF),
        (Code::WouldBlock, libc::EAGAIN),
        (Code::NoMemory, libc::ENOMEM),
        (Code::NotPermitted, libc::EACCES),
        (Code::BadAddress, libc::EFAULT),
        (Code::Busy, libc::EBUSY),
        (Code::Invalid, libc::EINVAL),
        (Code::NoDescriptors, libc::EMFILE),
        (Code::TooLarge, libc::EFBIG),
        (Code::NoSpace, libc::ENOSPC),
        (Code::ReadOnly, libc::EROFS),
        (Code::Unsupported, libc::EOPNOTSUPP),
        (Code::Closed, libc::ESHUTDOWN),
        (Code::TimedOut, libc::ETIMEDOUT),
        (Code::Gone, libc::ESTALE),
        (Code::Quota, libc::EDQUOT),
        (Code::Forked, libc::EOWNERDEAD),
        (Code::Poisoned, libc::ENOTRECOVERABLE),
    ];
    assert_eq!(pairs.len(), NAMED.len());
    for ((code, errno), (named, _)) in pairs.iter().zip(NAMED) {
        assert_eq!((*code as i32, code), (-errno, named));
    }
}

#[test]
fn every_number_has_a_text() {
    assert_eq!(text_of(0), c"no error");
    assert_eq!(text_of(5), c"no error");
    assert!(text_of(Code::Forked as i64).to_str().unwrap().contains("parent process"));
    assert_eq!(text_of(-i64::from(libc::ENOENT)), c"No such file or directory");
    assert_eq!(text_of(-99_999), c"unknown error");
    assert_eq!(text_of(i64::MIN), c"no error");
    // SAFETY: the text is valid for ever.
    assert_eq!(unsafe { CStr::from_ptr(afflux_strerror(-2)) }, c"No such file or directory");
}

#[test]
fn the_hosts_errors_keep_their_numbers() {
    assert_eq!(code_of(&io::Error::from_raw_os_error(libc::EXDEV)), -libc::EXDEV);
    assert_eq!(code_of(&io::Error::new(io::ErrorKind::NotFound, "named")), -libc::ENOENT);
    assert_eq!(code_of(&io::Error::other("anything")), -libc::EIO);
    for errno in [libc::ELOOP, libc::EPERM, libc::ENXIO] {
        let refused = afflux::Error::Host { path: "a".into(), errno };
        assert_eq!(code_of(&refused.into()), -errno);
    }
    let not_started = |errno| code_of(&afflux::Error::Start { what: "a".into(), errno }.into());
    assert_eq!(not_started(Some(libc::EMFILE)), Code::NoDescriptors as i32);
    assert_eq!(not_started(Some(libc::EAGAIN)), Code::NoMemory as i32);
    assert_eq!(not_started(Some(libc::EPERM)), -libc::EPERM);
    assert_eq!(not_started(None), Code::Unsupported as i32);
    let gone = afflux::Error::Gone { path: "a".into() };
    assert_eq!(code_of(&gone.into()), Code::Gone as i32);
}
