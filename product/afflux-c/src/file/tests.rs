#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use super::{options, range};

#[test]
fn flags_that_are_not_known_are_refused() {
    assert!(options(libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC, 0o600).is_ok());
    for flags in [libc::O_APPEND, libc::O_DIRECT, libc::O_SYNC, libc::O_PATH, libc::O_TMPFILE, libc::O_ACCMODE, 1 << 30]
    {
        assert!(options(libc::O_RDWR | flags, 0).is_err(), "{flags:#o}");
    }
    for flags in [libc::O_CREAT, libc::O_TRUNC] {
        assert!(options(libc::O_RDONLY | flags, 0o600).is_err(), "{flags:#o}");
    }
}

#[test]
fn a_range_that_overflows_is_none() {
    assert_eq!(range(5, 10).unwrap(), 5..15);
    assert!(range(5, u64::MAX).is_err());
}
