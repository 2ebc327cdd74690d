#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

#[test]
fn fields_of_proc() {
    let text = "cpu: 0\njiffies: 4300836980\n  nr_written 12\nnr_dirty_threshold 7\n";
    assert_eq!(field(text, "jiffies:"), Some(4_300_836_980));
    assert_eq!((field(text, "nr_written "), field(text, "nr_dirty ")), (Some(12), None));
}

#[test]
fn a_device_that_debugfs_does_not_have_is_the_machine_less_what_was_dirty_before() {
    assert!(matches!(Dirty::of("7:999999", None), Dirty::Machine(_)));
    assert_eq!(Dirty::Machine(u64::MAX).bytes(), 0);
}

#[test]
fn a_busy_machine_is_said() {
    assert_eq!(busy(None), None);
    assert!(busy(Some((5.23, 2))).unwrap().contains("5.2 tasks on 2 CPUs"));
}
