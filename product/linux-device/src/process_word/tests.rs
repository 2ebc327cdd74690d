use std::num::NonZeroU32;

use super::ProcessWord;

const ONE: NonZeroU32 = NonZeroU32::MIN;
const TWO: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

#[test]
fn it_changes_from_what_it_is() {
    let word = ProcessWord::new(ONE).unwrap();
    assert_eq!(word.load(), 1);
    assert!(word.try_change(ONE, TWO));
    assert!(!word.try_change(ONE, TWO));
    assert_eq!(word.load_in_order(), 2);
}

#[test]
fn a_forked_child_finds_it_wiped() {
    let word = ProcessWord::new(TWO).unwrap();
    // SAFETY: the child makes one load and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if word.load() == 0 { 7 } else { 8 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(libc::WEXITSTATUS(status), 7);
    assert_eq!(word.load(), 2);
}
