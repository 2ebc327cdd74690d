//! The processes of threads, and their end.

use rustix::thread::gettid;

use super::{has_id, has_sigkill, is_killed, is_over, process_of, rights_in, rights_of};

fn own_number() -> u32 {
    gettid().as_raw_pid() as u32
}

#[test]
fn each_thread_of_a_process_has_its_number() {
    let process = Some(std::process::id());
    assert_eq!(process_of(std::process::id()), process, "the main thread");
    let other = std::thread::spawn(|| (own_number(), process_of(own_number()))).join().unwrap();
    assert_ne!(Some(other.0), process, "another thread has a number of its own");
    assert_eq!(other.1, process);
}

#[test]
fn a_thread_that_is_gone_has_no_process() {
    let gone = std::thread::spawn(own_number);
    let number = gone.join().unwrap();
    // The kernel may take a moment to end it.
    while process_of(number).is_some() {
        std::thread::yield_now();
    }
    assert_eq!(process_of(0), None, "in no process namespace of ours");
}

#[test]
fn a_thread_is_killed_once_sigkill_waits_for_it_or_it_is_gone() {
    assert!(!is_killed(std::process::id()) && !is_killed(own_number()));
    assert!(is_killed(0), "in no process namespace of ours");
    for (pending, killed) in [("0000000000000100", true), ("0000000000002100", true), ("0000000000002000", false)] {
        let status = format!("Name:\tx\nThreads:\t1\nSigPnd:\t{pending}\nShdPnd:\t0000000000000100\n");
        assert_eq!(has_sigkill(status.as_bytes()), killed, "{pending}");
    }
}

#[test]
fn the_groups_of_a_thread_count_while_it_acts_as_the_user() {
    let status = |groups: &str, capabilities: &str| {
        format!(
            "Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t5\t5\t5\t5\nGroups:\t{groups}\nCapInh:\t0\nCapEff:\t{capabilities}\n"
        )
    };
    assert_eq!(rights_in(status("6 4294967294 ", "0000000000000000").as_bytes(), 4), Some((vec![6, 4294967294], 0)));
    assert_eq!(rights_in(status("", "00000000a80425fb").as_bytes(), 4), Some((vec![], 0xa804_25fb)));
    assert_eq!(rights_in(status("6", "0").as_bytes(), 1), None, "it acts as another user");
    assert_eq!(rights_in(b"Name:\tx\n", 4), None);
    let own = rustix::process::geteuid().as_raw();
    assert!(rights_of(own_number(), own).is_some() && rights_of(0, own).is_none());
}

#[test]
fn capabilities_count_for_the_objects_of_users_in_the_threads_namespace() {
    let rootless = b"         0       1000          1\n         1     100000      65536\n";
    let inside = [1000, 100_000, 165_535].map(|id| has_id(rootless, id));
    assert_eq!(inside, [true; 3]);
    let outside = [0, 1, 999, 1001, 165_536, u32::MAX].map(|id| has_id(rootless, id));
    assert_eq!(outside, [false; 6]);
    assert!(has_id(b"0 0 4294967295\n", 4_294_967_294) && !has_id(b"", 0) && !has_id(b"0 0\n", 0));
    assert!(is_over(own_number(), 0, 0) && !is_over(0, 0, 0));
}
