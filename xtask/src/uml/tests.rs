use super::{SUITES, all, script};

/// A renamed case would fail the gate after all its tests.
#[test]
fn the_cases_of_a_gate_and_of_the_suites_are_there() {
    let cases = all().unwrap();
    assert!(cases.len() >= 5, "{cases:?}");
    for case in cases.iter().map(String::as_str).chain(SUITES.iter().map(|suite| suite.name)) {
        assert!(script(case).is_file(), "{}", script(case).display());
    }
}
