use std::cell::Cell;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use super::*;

fn filled(lent_max: usize) -> DescriptorReserve {
    let reserve = DescriptorReserve::new(lent_max);
    reserve.fill();
    assert_eq!(reserve.lock().len(), lent_max + 1);
    reserve
}

fn numbers(reserve: &DescriptorReserve) -> Vec<i32> {
    reserve.lock().iter().map(AsRawFd::as_raw_fd).collect()
}

/// Stands for a process without a free number: it takes those that the reserve frees.
fn leave_only_the_first(reserve: &DescriptorReserve) {
    reserve.lock().truncate(1);
}

#[test]
fn a_call_gets_a_number_while_none_is_free_and_the_calls_are_bounded() {
    let reserve = filled(3);
    let calls = Cell::new(0);
    let is_free = || {
        calls.set(calls.get() + 1);
        if reserve.lock().len() == 4 { Err(Errno::NFILE) } else { Ok(calls.get()) }
    };
    // The first two calls find all numbers in the reserve: before and after the pools are closed.
    assert_eq!(reserve.open(is_free), Ok(3));
    assert_eq!(reserve.lock().len(), 4, "it takes free numbers back at once");
    calls.set(0);
    let others_are_faster = || {
        calls.set(calls.get() + 1);
        Err::<(), _>(Errno::MFILE)
    };
    assert_eq!((reserve.open(others_are_faster), calls.get()), (Err(Errno::MFILE), 5));
    calls.set(0);
    assert_eq!(reserve.lend(|| Err::<(), _>(Errno::AGAIN)), Err(Errno::AGAIN));
    leave_only_the_first(&reserve);
    assert_eq!((reserve.lend(others_are_faster), calls.get()), (Err(Errno::MFILE), 0), "the first is never lent");
}

#[test]
fn a_number_that_the_reserve_lacks_is_kept_at_the_end_of_its_descriptor_and_the_file_is_closed() {
    let reserve = Arc::new(filled(2));
    leave_only_the_first(&reserve);
    let mut ends = Vec::new();
    for is_kept in [true, true, false] {
        let (mut one, other) = UnixStream::pair().unwrap();
        let number = other.as_raw_fd();
        drop(Returning::new(other, &reserve));
        assert_eq!(numbers(&reserve).contains(&number), is_kept);
        assert_eq!(one.read(&mut [0; 1]).unwrap(), 0, "its peer sees the end");
        ends.push(one);
    }
    assert_eq!(numbers(&reserve).len(), 3);
}

#[test]
fn a_call_may_last_while_others_lend_and_close() {
    let reserve = filled(2);
    let inner = || reserve.lend(|| Ok(reserve.lock().len()));
    assert_eq!(reserve.lend(inner), Ok(1));
}
