use super::hard::{kinds, word_count};
use super::*;

fn file(path: &str, text: &str) -> TextFile {
    TextFile { path: path.to_owned(), text: text.to_owned() }
}

fn sentences(path: &str, text: &str) -> Vec<String> {
    sentences::of(&file(path, text))
}

#[test]
fn comments_are_prose_and_code_is_not() {
    let text = "//! One `x` is here. Two is there.\n\nfn f() {\n    // Three goes\n    // on (4 is none). 5 begins one more.\n\
                }\n/// ```\n/// let it be code;\n/// ```\n/// | no | table | is |\nconst A: &str = \"// no string\";\n";
    let expected = ["One X is here.", "Two is there.", "Three goes on (4 is none).", "5 begins one more."];
    assert_eq!(sentences("a.rs", text), expected);
    assert_eq!(sentences("a.rs", "// - one point is here\n// - two points are there").len(), 2);
}

#[test]
fn paragraphs_and_points_are_prose_and_tables_are_not() {
    let text = "# A heading of four\n\nOne [link to](x.md) is\nhere. It has [two].\n- a point goes\n  on\n1. a point of numbers\n\n\
                | a | table | is | none |\n    indented code is none\n```\nfenced code is none\n```\n";
    let expected = ["One link to is here.", "It has two.", "a point goes on", "a point of numbers"];
    assert_eq!(sentences("a.md", text), expected);
}

#[test]
fn words_are_counted_as_a_reader_does() {
    assert_eq!(word_count("it's a read-ahead of 4 KiB, isn't it?"), 7);
}

#[test]
fn a_clause_without_a_noun_is_found_where_a_noun_is_due() {
    let headless = |text| kinds(text).is_headless;
    for text in [
        "Who writes waits for the disk.",
        "It waits for what is dirty.",
        "It counts, whoever came first of them.",
        "The page (what it has) goes.",
        "That is what they ask for.",
    ] {
        assert!(headless(text), "{text}");
    }
    for text in [
        "The caller who writes waits.",
        "Somehow, what?",
        "It is of what kind of page.",
        "It says what, and when.",
        "The flusher decides what goes.",
        "What is it that waits here?",
    ] {
        assert!(!headless(text), "{text}");
    }
}

#[test]
fn a_stack_has_four_pronouns_in_fewer_than_twenty_words() {
    assert!(kinds("It gives them to those that want it.").is_stack);
    assert!(kinds("There so many of the same take another.").is_stack);
    assert!(!kinds("It gives them to those callers.").is_stack);
    let long =
        "It gives them to those that want pages of files on devices with queues of requests from many of the tasks";
    assert!(!kinds(long).is_stack);
}

#[test]
fn a_sentence_of_more_than_thirty_words_is_long() {
    assert!(!kinds(&"word ".repeat(30)).is_long);
    assert!(kinds(&"word ".repeat(31)).is_long);
}

/// A tree of so many sentences, of which the first are hard in one way.
fn tree_of(sentences: usize, headless: usize) -> [TextFile; 1] {
    let text =
        (0..sentences).map(|at| if at < headless { "// Who writes waits.\n\n" } else { "// The page goes.\n\n" });
    [file("product/x/src/a.rs", &text.collect::<String>())]
}

#[test]
fn a_tree_may_not_be_above_its_goals() {
    assert_eq!(check(&tree_of(1000, 15)).len(), 0);
    assert_eq!(check(&tree_of(1000, 16)).len(), 1);
}

#[test]
fn a_small_tree_may_have_two_hard_sentences() {
    assert!(check(&tree_of(99, 2)).is_empty());
    assert_eq!(check(&tree_of(99, 3)).len(), 1);
}

#[test]
fn a_file_is_of_its_crate_or_of_the_documents() {
    for (path, expected) in [
        ("product/engine/src/lib.rs", Some("product/engine")),
        ("product/afflux-c/fio/README.md", Some("product/afflux-c")),
        ("tests/race/src/main.rs", Some("tests/race")),
        ("xtask/src/main.rs", Some("xtask")),
        ("docs/develop/decisions/names.md", Some("documents")),
        ("README.md", Some("documents")),
        ("notebook/nfs.md", None),
    ] {
        assert_eq!(tree(path).as_deref(), expected, "{path}");
    }
}

#[test]
fn string_literals_and_cells_of_tables_are_texts() {
    let rust = r##"fn f() {
    // "no text of five words is here"
    g("a label", "one {value:>4} goes on \
       in this line. Two is \"here\" now", 'x');
    h(r#"a raw text of five words"#);
}"##;
    let texts = sentences::of_texts(&file("product/x/src/a.rs", rust));
    assert_eq!(texts, ["one X goes on in this line.", "Two is \"here\" now", "a raw text of five words"]);
    let table = "No cell of a table is here.\n| head | of it |\n|-|-|\n| one `x` of five words | no |\n```\n| a cell of fenced code here |\n```\n";
    assert_eq!(sentences::of_texts(&file("docs/a.md", table)), ["one X of five words"]);
}

/// A file of so many texts, of which the first are hard.
fn texts_of(texts: usize, headless: usize) -> [TextFile; 1] {
    let noun = |at| if at < headless { "what is dirty" } else { "the dirty page" };
    let text = (0..texts).map(|at| format!("f(\"It waits for {}.\");\n", noun(at)));
    [file("product/x/src/a.rs", &text.collect::<String>())]
}

#[test]
fn texts_may_have_ten_headless_clauses_among_a_thousand_wherever_they_stand() {
    let found = |files: &[TextFile]| check(files);
    assert_eq!(found(&texts_of(1000, 10)), []);
    let violations = found(&texts_of(1000, 11));
    assert_eq!(violations.len(), 1);
    assert!(
        violations[0].place == TEXTS && violations[0].text.contains("product/x/src/a.rs: It waits for what is dirty.")
    );
    // Samples of tests and the records are no texts.
    for path in ["product/x/tests/a.rs", "product/x/src/a/tests.rs", "notebook/a.md"] {
        let text = texts_of(1000, 11)[0].text.clone();
        assert_eq!(found(&[file(path, &text)]), [], "{path}");
    }
}
