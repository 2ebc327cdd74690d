//! The processes of threads.

use rustix::thread::gettid;

use super::process_of;

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
