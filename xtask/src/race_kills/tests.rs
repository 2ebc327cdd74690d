use super::*;

#[test]
fn wrong_words_are_refused() {
    let options = wanted(&["--rounds", "3", "--json", "--profile", "demo"]).unwrap();
    assert!(options.rounds == 3 && options.json && options.profile == "demo");
    assert!(wanted(&["--rounds", "many"]).is_err() && wanted(&["--dir"]).is_err() && wanted(&["fast"]).is_err());
}
