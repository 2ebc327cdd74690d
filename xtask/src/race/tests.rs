use super::*;

#[test]
fn a_part_of_the_race_changes_no_document_and_wrong_words_are_refused() {
    assert!(wanted(&["--rounds", "3"]).unwrap().whole);
    assert!(!wanted(&["--quick"]).unwrap().whole);
    assert!(!wanted(&["--half", "fio"]).unwrap().whole);
    let needs_fio = |half| wanted(&["--half", half]).unwrap().needs_fio;
    assert_eq!(["fio", "redb", "memory"].map(needs_fio), [true, false, false]);
    assert_eq!(wanted(&["--only", "append"]).unwrap().passed_on, ["--only", "append"]);
    assert!(wanted(&["--rounds"]).is_err() && wanted(&["fast"]).is_err());
}

#[test]
fn whatever_else_is_in_the_named_directory_survives_a_race() {
    let top = Scratch::new(&std::env::temp_dir(), "race-test").unwrap();
    let named = top.path().join("disk");
    fs::create_dir(&named).unwrap();
    fs::write(named.join("photos"), "dear").unwrap();
    let wanted = wanted(&["--dir", named.to_str().unwrap()]).unwrap();
    tables(Path::new("true"), &wanted, top.path()).unwrap();
    assert!(tables(Path::new("false"), &wanted, top.path()).is_err());
    assert!(tables(Path::new("/no/such/program"), &wanted, top.path()).is_err());
    assert_eq!(fs::read_to_string(named.join("photos")).unwrap(), "dear");
    assert_eq!(fs::read_dir(&named).unwrap().count(), 1, "the race's own files are gone");
}
