use super::{end, listed, not_excused};

const LIST: &str = "a\tt\tfio is not installed\na\tt\tfio is not installed\nb\tu\tfio is not installed\n\
                    a\tv\troot reads every directory\n";

#[test]
fn each_reason_is_said_once_with_its_tests_and_its_excuse() {
    assert_eq!(listed(""), "");
    let expected = "Skipped: fio is not installed\n  a: t\n  b: u\n\
                    Skipped: root reads every directory (excused: the other tests need root)\n  a: v\n";
    assert_eq!(listed(LIST), expected);
}

#[test]
fn a_gate_fails_for_a_skipped_test_unless_its_reason_is_excused() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "skips").unwrap();
    let outcome = |lines: &str, is_gate| {
        let file = scratch.path().join("list");
        std::fs::write(&file, lines).unwrap();
        end(&file, is_gate).is_ok()
    };
    let excused = "a\tv\troot reads every directory\n";
    assert!(outcome("", true) && outcome(excused, true) && outcome(LIST, false));
    assert!(!outcome(LIST, true));
    assert!(!outcome("half a line", true));
    assert!(end(&scratch.path().join("none"), true).is_ok());
    assert_eq!(not_excused(LIST), 3);
}
