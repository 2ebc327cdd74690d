use super::{BEGIN, END, placed, wanted};

#[test]
fn the_table_takes_the_place_of_the_one_before() {
    let document = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
    let text = placed(&document, "new").unwrap();
    assert_eq!(text, format!("before\n{BEGIN}\n\nnew\n{END}\nafter\n"));
    assert_eq!(placed(&text, "new").unwrap(), text);
    placed("no place", "new").unwrap_err();
}

#[test]
fn wrong_words_are_refused() {
    assert!(wanted(&["--quick"]).unwrap().quick);
    assert_eq!(wanted(&["--profile", "demo"]).unwrap().profile, "demo");
    assert!(wanted(&["--profile"]).is_err() && wanted(&["fast"]).is_err());
}
