use super::*;

const TEXT: &str = "# A page\n\n## first\n\nSays a thing\nin two lines.\n\n## first again\n\nSays more.\n";
const FIRST: &str = section(TEXT, "first");
const AGAIN: &str = section(TEXT, "first again");

#[test]
fn a_paragraph_is_the_lines_under_its_heading() {
    assert_eq!(paragraph(FIRST), "Says a thing in two lines.");
    assert_eq!(paragraph(AGAIN), "Says more.");
}

#[test]
#[should_panic(expected = "no such heading")]
fn a_heading_that_is_missing_is_refused() {
    section(TEXT, "second");
}

#[test]
fn a_sentence_tells_only_facts_of_its_rows() {
    let facts: &[Fact] = &[("rows", |rows| Some(rows.len().to_string())), ("more", |_| None)];
    let text = "There are {{rows}} rows of 0.5 s. Nobody ran {{more}}. So much for {{rows}}.";
    assert_eq!(filled(text, facts, &[]), "There are 0 rows of 0.5 s. So much for 0.");
}
