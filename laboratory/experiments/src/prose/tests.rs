use super::*;

const TEXT: &str = "# A page\n\n## first\n\nSays a thing\nin two lines.\n\n## first again\n\nSays {what} of {whom}.\n";
const FIRST: &str = section(TEXT, "first");
const AGAIN: &str = section(TEXT, "first again");

#[test]
fn a_paragraph_is_the_lines_under_its_heading() {
    assert_eq!(paragraph(FIRST), "Says a thing in two lines.");
    assert_eq!(filled(AGAIN, &[("what", "much"), ("whom", "few")]), "Says much of few.");
}

#[test]
#[should_panic(expected = "no such heading")]
fn a_heading_that_is_missing_is_refused() {
    section(TEXT, "second");
}

#[test]
#[should_panic(expected = "no value for {whom}")]
fn a_name_without_a_value_is_never_printed() {
    filled(AGAIN, &[("what", "much")]);
}

#[test]
#[should_panic(expected = "no place for")]
fn a_value_without_a_place_is_refused() {
    filled(AGAIN, &[("what", "much"), ("whom", "few"), ("where", "here")]);
}

/// A value is plain text, even if it looks like a name.
#[test]
fn what_a_value_says_is_not_filled_in_again() {
    assert_eq!(filled(AGAIN, &[("what", "{whom}"), ("whom", "few")]), "Says {whom} of few.");
}
