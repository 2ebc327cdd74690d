#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

#[test]
fn a_busy_machine_is_said() {
    assert_eq!(busy(None), None);
    assert!(busy(Some((5.23, 2))).unwrap().contains("5.2 tasks on 2 CPUs"));
}
