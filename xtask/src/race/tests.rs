use super::wanted;

#[test]
fn a_part_of_the_race_changes_no_document_and_wrong_words_are_refused() {
    assert!(wanted(&["--rounds", "3"]).unwrap().whole);
    assert!(!wanted(&["--quick"]).unwrap().whole);
    assert!(!wanted(&["--half", "fio"]).unwrap().whole);
    assert_eq!(wanted(&["--only", "append"]).unwrap().passed_on, ["--only", "append"]);
    assert!(wanted(&["--rounds"]).is_err() && wanted(&["fast"]).is_err());
}
