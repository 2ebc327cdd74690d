use super::*;

#[test]
fn who_is_alone_holds_up_those_behind_and_nobody_of_another_file() {
    let mut gates = Gates::default();
    assert!(gates.enter(1, 10, false) && gates.enter(1, 11, false), "together");
    assert!(gates.enter(1, 12, true), "those before it go on");
    assert!(!gates.enter(1, 13, false) && !gates.enter(1, 14, true));
    assert!(gates.enter(2, 15, true));
    assert!(gates.left(1, 10).is_empty());
    assert_eq!(gates.left(1, 12), [13, 14]);
    assert!(gates.enter(1, 13, false) && gates.enter(1, 14, true));
    assert_eq!(gates.left(1, 14), []);
    assert!(gates.enter(1, 16, false));
}
