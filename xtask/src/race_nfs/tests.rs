use super::wanted;

#[test]
fn wrong_words_are_refused() {
    assert!(wanted(&["--quick"]).unwrap().quick);
    assert_eq!(wanted(&["--profile", "demo"]).unwrap().profile, "demo");
    assert!(wanted(&["--profile"]).is_err() && wanted(&["fast"]).is_err());
}
