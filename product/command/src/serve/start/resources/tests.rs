use super::told;

#[test]
fn a_low_limit_is_a_note_that_names_the_files_the_limit_and_the_remedy() {
    let note = told(1_176, 4_096).unwrap();
    assert!(note.starts_with("the limit of 4,096 descriptors allows 1,176 files open at a time"), "{note}");
    assert!(note.contains("LimitNOFILE="), "{note}");
    assert_eq!((told(6_872, 20_000), told(65_536, 1 << 19)), (None, None));
}
