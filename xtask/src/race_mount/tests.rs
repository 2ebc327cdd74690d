use super::*;

#[test]
fn a_part_of_the_race_keeps_no_tables_and_wrong_words_are_refused() {
    assert!(wanted(&["--all-cpus", "--rounds", "3"]).unwrap().whole);
    assert!(!wanted(&["--only", "untar"]).unwrap().whole && !wanted(&["--quick"]).unwrap().whole);
    assert!(wanted(&["--only"]).is_err() && wanted(&["fast"]).is_err());
}

#[test]
fn a_peer_without_its_source_is_named() {
    let error = example(Path::new("/nowhere/passthrough_hp.cc")).unwrap_err().to_string();
    assert!(error.contains("/nowhere/passthrough_hp.cc"), "{error}");
}
