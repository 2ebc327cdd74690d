//! The sentences of a file: of its comments, or of its paragraphs and points if it is a document.
//!
//! Owns: which lines are prose, where a sentence ends.
//! Does not own: which sentence is hard (`hard`).
//! Invariants: code, tables, headings and figures are no prose. Code within a sentence counts as the word `X`.

use super::hard;
use crate::repository::TextFile;

/// A shorter one is a label.
const WORDS_MIN: usize = 3;

/// The sentences of a file, in their order.
pub(super) fn of(file: &TextFile) -> Vec<String> {
    let paragraphs = if file.path.ends_with(".md") { document(&file.text) } else { comments(&file.text) };
    paragraphs.iter().flat_map(|paragraph| split(&plain(paragraph))).collect()
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
