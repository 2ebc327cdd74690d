use super::*;

#[test]
fn a_sentence_tells_only_facts_of_its_rows() {
    let facts: &[Fact] = &[("rows", |rows| Some(rows.len().to_string())), ("more", |_| None)];
    let text = "There are {{rows}} rows of 0.5 s. Nobody ran {{more}}. So much for {{rows}}.";
    assert_eq!(filled(text, facts, &[]), "There are 0 rows of 0.5 s. So much for 0.");
}
