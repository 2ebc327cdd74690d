use super::*;

#[test]
fn wrong_words_are_refused_and_a_part_writes_no_table() {
    assert!(wanted(&[]).unwrap().whole && wanted(&["--minutes", "4"]).unwrap().whole);
    assert!(!wanted(&["--quick"]).unwrap().whole && !wanted(&["--only", "raw"]).unwrap().whole);
    assert_eq!(wanted(&["--profile", "demo"]).unwrap().profile, "demo");
    for words in [&["--profile"][..], &["fast"], &["--only"]] {
        assert!(wanted(words).is_err(), "{words:?}");
    }
}
