use std::fs;

use afflux_scratch::Scratch;

use super::with_built;

#[test]
fn a_run_that_cannot_be_is_a_skipped_test_on_one_line() {
    let scratch = Scratch::new(&std::env::temp_dir(), "own").unwrap();
    let skipped = scratch.path().join("skipped");
    fs::write(&skipped, "a\tt\tearlier\n").unwrap();
    assert!(
        with_built("cases", Some("no Debian:\n\tthe log".to_owned()), &skipped, &["guest"], &[]).unwrap().is_none()
    );
    assert_eq!(fs::read_to_string(&skipped).unwrap(), "a\tt\tearlier\nxtask\tcases\tno Debian:  the log\n");
}
