use std::cell::Cell;

use super::*;

#[test]
fn a_call_that_finds_no_descriptor_is_made_again_and_another_error_is_not() {
    let calls = Cell::new(0);
    let second = || {
        calls.set(calls.get() + 1);
        if calls.get() < 2 { Err(Errno::MFILE) } else { Ok(7) }
    };
    assert_eq!((open_or_close_spare(second), calls.get()), (Ok(7), 2));
    calls.set(0);
    let refused = || {
        calls.set(calls.get() + 1);
        Err::<(), _>(Errno::ACCESS)
    };
    assert_eq!((open_or_close_spare(refused), calls.get()), (Err(Errno::ACCESS), 1));
}

#[test]
fn a_call_that_closes_what_it_opens_gets_a_kept_descriptor() {
    keep_descriptors();
    // The call finds one only while none is reserved.
    let is_free = || if RESERVE.try_lock().is_ok() { Err(Errno::NFILE) } else { Ok(()) };
    assert_eq!(open_with_reserve(is_free), Ok(()));
    assert_eq!(lock(&RESERVE).len(), RESERVE_COUNT, "the next call finds it again");
    assert_eq!(open_with_reserve(|| Err::<(), _>(Errno::NFILE)), Err(Errno::NFILE), "the tries are bounded");
}
