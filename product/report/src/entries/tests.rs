use super::entries;

#[test]
fn headings_are_words_and_paragraphs_their_meanings() {
    let text = "# Words\n\n## 300 cs\n\nThree seconds,\nin centiseconds.\n\n## seed, trace\n\nA `number`.\n\nAnother.\n## last";
    let expected = [("300 cs", "Three seconds, in centiseconds."), ("seed, trace", "A number. Another."), ("last", "")];
    assert_eq!(entries(text), expected.map(|(word, meaning)| (word, meaning.to_owned())));
    assert!(entries("").is_empty());
}
