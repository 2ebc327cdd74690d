//! The sentences of a file: of its comments, or of its paragraphs and points if it is a document. Beside them the texts
//! that users read: string literals, and cells of tables.
//!
//! Owns: which lines are prose, which literals are texts, where a sentence ends.
//! Does not own: which sentence is hard (`hard`).
//! Invariants: code, headings and figures are no prose. Code within a sentence counts as the word `X`.

use super::hard;
use crate::repository::TextFile;
use crate::tidy::lexer;

/// A shorter one is a label.
const WORDS_MIN: usize = 3;

/// The sentences of a file, in their order.
pub(super) fn of(file: &TextFile) -> Vec<String> {
    let paragraphs = if file.path.ends_with(".md") { document(&file.text) } else { comments(&file.text) };
    paragraphs.iter().flat_map(|paragraph| split(&plain(paragraph))).collect()
}

/// A shorter literal or cell is a label.
const TEXT_WORDS_MIN: usize = 5;

/// The sentences of a file's string literals, or of the cells of its tables if it is a document.
pub(super) fn of_texts(file: &TextFile) -> Vec<String> {
    let texts = if file.path.ends_with(".md") { cells(&file.text) } else { literals(&file.text) };
    let paragraphs = texts.iter().flat_map(|text| text.split("\n\n"));
    let texts = paragraphs.map(plain).filter(|text| hard::word_count(text) >= TEXT_WORDS_MIN);
    texts.flat_map(|text| split(&text)).collect()
}

fn cells(text: &str) -> Vec<String> {
    let mut is_code = false;
    let rows = text.lines().filter(|line| {
        is_code ^= line.trim_start().starts_with("```");
        !is_code && line.starts_with('|')
    });
    rows.flat_map(|row| row.split('|')).map(|cell| cell.trim().to_owned()).collect()
}

fn literals(text: &str) -> Vec<String> {
    lexer::strings(text).into_iter().map(as_shown).collect()
}

/// The text of a literal as its reader sees it: lines that go on are joined, and a value is the word `X`.
fn as_shown(literal: &str) -> String {
    let mut lines = literal.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let joined = lines.fold(first, |text, line| text + line.trim_start());
    let mut shown = String::new();
    let mut rest = joined.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        shown.push_str(before);
        shown.push('X');
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    (shown + rest).replace("\\n", "\n").replace("\\\"", "\"")
}

/// Lines of prose that belong together, joined.
#[derive(Default)]
struct Paragraphs {
    done: Vec<String>,
    open: String,
}

impl Paragraphs {
    fn push(&mut self, line: &str) {
        if !self.open.is_empty() {
            self.open.push(' ');
        }
        self.open.push_str(line);
    }

    fn end(&mut self) {
        if !self.open.is_empty() {
            self.done.push(std::mem::take(&mut self.open));
        }
    }
}

fn document(text: &str) -> Vec<String> {
    let mut paragraphs = Paragraphs::default();
    let mut is_code = false;
    for line in text.lines() {
        let mut prose = line.trim();
        if prose.starts_with("```") {
            is_code = !is_code;
            prose = "";
        }
        let is_left_out = ["#", "|", "<", "!", "http"].iter().any(|start| prose.starts_with(start));
        if is_code || line.starts_with("    ") || is_left_out || prose.is_empty() {
            paragraphs.end();
            continue;
        }
        if let Some(point) = point(prose, &["- ", "* ", "> "]) {
            paragraphs.end();
            prose = point;
        }
        paragraphs.push(prose);
    }
    paragraphs.end();
    paragraphs.done
}

fn comments(text: &str) -> Vec<String> {
    let mut paragraphs = Paragraphs::default();
    let mut is_code = false;
    for line in text.lines() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            is_code = false;
            paragraphs.end();
            continue;
        };
        let prose = comment.strip_prefix(['/', '!']).unwrap_or(comment).trim();
        let is_fence = prose.starts_with("```");
        if is_fence {
            is_code = !is_code;
        }
        if is_fence || is_code || prose.is_empty() || prose == "-" || prose.starts_with(['#', '|']) {
            paragraphs.end();
            continue;
        }
        if point(prose, &["- ", "* "]).is_some() {
            paragraphs.end();
        }
        paragraphs.push(prose);
    }
    paragraphs.end();
    paragraphs.done
}

/// The text of a point of a list, after its mark or number.
fn point<'a>(line: &'a str, marks: &[&str]) -> Option<&'a str> {
    let numbered = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let number = (numbered.len() < line.len()).then(|| numbered.strip_prefix(". ")).flatten();
    number.or_else(|| marks.iter().find_map(|mark| line.strip_prefix(mark))).map(str::trim_start)
}

/// The text with code as a word, and links as their texts.
fn plain(text: &str) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '[']) {
        found.push_str(&rest[..at]);
        let (mark, inside) = (&rest[at..=at], &rest[at + 1..]);
        let close = if mark == "`" { '`' } else { ']' };
        let Some(end) = inside.find(close) else {
            found.push_str(mark);
            rest = inside;
            continue;
        };
        rest = &inside[end + 1..];
        if mark == "`" {
            found.push('X');
            continue;
        }
        found.push_str(&plain(&inside[..end]));
        let target = rest.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(rest, |(_, after)| after);
    }
    found + rest
}

/// The sentences: each ends with a mark, before a word that begins one.
fn split(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut begin = 0;
    for (at, _) in text.match_indices(['.', '!', '?']) {
        let after = &text[at + 1..];
        let next = after.trim_start();
        let begins = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || "(`".contains(letter);
        if next.len() < after.len() && next.starts_with(begins) {
            found.push(text[begin..=at].trim().to_owned());
            begin = text.len() - next.len();
        }
    }
    found.push(text[begin..].to_owned());
    found.retain(|sentence| hard::word_count(sentence) >= WORDS_MIN);
    found
}
