use super::*;

#[test]
fn a_test_is_running_from_the_line_that_says_so_until_the_line_that_ends_it() {
    let mut running = Running::default();
    running
        .note(b"running 4 tests\ntest a::fast ... ok\ntest a::slow has been running for over 60 seconds\ntest b::ha");
    assert_eq!(running.said(), "  test a::slow was running\n");
    running.note(b"ngs has been running for over 60 seconds\ntest a::slow ... FAILED\n");
    assert_eq!(running.said(), "  test b::hangs was running\n");
    running.note(b"test b::hangs ... ok");
    assert_eq!(running.said(), "  test b::hangs was running\n", "the line has not ended");
    running.note(b"\n\xff\n");
    assert_eq!(running.said(), "");
}
