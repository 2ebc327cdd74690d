//! Splits Rust text into the words and marks that rules examine.
//!
//! Owns: skipping comments, strings and character literals; the paths in a text.
//! Does not own: any rule.
//! Invariants: every token keeps its line; text that is not Rust gives tokens, too.

/// A word (identifier, keyword, number) or one mark, with its line from 1. `::` is one mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

/// A path such as `std::time::Instant`, expanded from a `use` tree or as written in the code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CodePath<'a> {
    pub(crate) parts: Vec<&'a str>,
    pub(crate) line: usize,
}

/// The tokens of a Rust text.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < text.len() {
        let rest = &text[at..];
        let taken = skipped(rest).unwrap_or_else(|| {
            let len = token_len(rest);
            if !rest.starts_with(char::is_whitespace) {
                found.push(Token { text: &rest[..len], line });
            }
            len
        });
        line += rest[..taken].matches('\n').count();
        at += taken;
    }
    found
}

/// The texts of the string literals, as they are written: with escapes, without quotes.
pub(crate) fn strings(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let taken = skipped(rest).unwrap_or_else(|| token_len(rest));
        let bare = rest[..taken].trim_start_matches(['b', 'c', 'r']).trim_matches('#');
        if bare.len() > 1 && bare.starts_with('"') && bare.ends_with('"') {
            found.push(&bare[1..bare.len() - 1]);
        }
        at += taken;
    }
    found
}

/// The length in bytes of the comment, string or character literal at the start of the text, if there is one.
fn skipped(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(rest.find("*/").map_or(rest.len(), |end| end + 2));
    }
    let prefix = rest.len() - rest.trim_start_matches(['b', 'c', 'r']).len();
    let quoted = &rest[prefix..];
    if prefix <= 2 && rest[..prefix].contains('r') && quoted.starts_with(['"', '#']) {
        let hashes = quoted.len() - quoted.trim_start_matches('#').len();
        if quoted[hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            let body = prefix + hashes + 1;
            return Some(rest[body..].find(&close).map_or(rest.len(), |end| body + end + close.len()));
        }
    }
    if prefix <= 1 && quoted.starts_with('"') {
        return Some(prefix + literal_len(quoted, '"'));
    }
    if prefix <= 1 && quoted.starts_with('\'') {
        let mut inside = quoted.chars().skip(1);
        let first = inside.next()?;
        if first == '\\' || inside.next() == Some('\'') {
            return Some(prefix + literal_len(quoted, '\''));
        }
    }
    None
}

/// The length of a literal that starts and ends with `quote`, including escapes.
fn literal_len(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn token_len(rest: &str) -> usize {
    let word = rest.find(|letter: char| !is_word(letter)).unwrap_or(rest.len());
    match word {
        0 if rest.starts_with("::") => 2,
        0 => rest.chars().next().map_or(1, char::len_utf8),
        len => len,
    }
}

fn is_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

/// Keywords that may precede a path that starts with `::`.
const BEFORE_ROOT: &[&str] = &["use", "as", "dyn", "else", "impl", "in", "match", "mut", "return"];

/// Every path in the tokens, with groups (`a::{b, c}`) expanded.
pub(crate) fn paths<'a>(tokens: &[Token<'a>]) -> Vec<CodePath<'a>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let starts = is_name(tokens[at].text)
            && !BEFORE_ROOT.contains(&tokens[at].text)
            && tokens.get(at + 1).is_some_and(|next| next.text == "::");
        at = if starts { tree(tokens, at, &[], &mut found) } else { at + 1 };
    }
    found
}

/// Reads one path or tree that starts at `at`; returns its end.
fn tree<'a>(tokens: &[Token<'a>], mut at: usize, before: &[&'a str], found: &mut Vec<CodePath<'a>>) -> usize {
    let mut parts = before.to_vec();
    let line = tokens.get(at).map_or(0, |token| token.line);
    while let Some(token) = tokens.get(at) {
        match token.text {
            "{" if parts.len() > before.len() => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    at = tree(tokens, at, &parts, found).max(at + 1);
                }
                return at + 1;
            }
            "::" => at += 1,
            text if is_name(text) || text == "*" => {
                parts.push(text);
                at += 1;
                if tokens.get(at).is_none_or(|next| next.text != "::") {
                    break;
                }
            }
            _ => break,
        }
    }
    if parts.len() > before.len() {
        found.push(CodePath { parts, line });
    }
    at
}

fn is_name(text: &str) -> bool {
    text.starts_with(|letter: char| letter == '_' || letter.is_alphabetic())
}
