//! Lines on standard output and standard error.
//!
//! Owns: writing them; making text of foreign origin harmless to a terminal.
//! Does not own: their words.
//! Invariants: a reader that is gone (`afflux serve DIR 2>&1 | tee log`, a closed terminal) is no reason to stop: its
//! lines are dropped, and a server still writes everything. A full disk is a failure of the command, which goes on. No
//! name of a file or a device, nor any other text that strangers can choose, controls a terminal; the meaning of JSON
//! stays the same.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{ErrorKind, Write, stderr, stdout};
use std::sync::OnceLock;

/// The sequences with which `terminal` highlights text; no others may pass.
pub const PAINTS: [&str; 3] = ["\x1b[0m", "\x1b[1m", "\x1b[2m"];

/// The first failure to write standard output, but for a reader that is gone.
static FAILURE: OnceLock<String> = OnceLock::new();

/// Writes lines to standard output. A reader that is gone is no error; [`failure`] tells another one.
pub fn say(lines: impl Display) {
    try_write(format!("{}\n", harmless(&lines.to_string(), &PAINTS)).as_bytes());
}

/// Writes bytes to standard output. False if the reader is gone, or for a reason that [`failure`] tells.
pub fn try_write(bytes: &[u8]) -> bool {
    let mut output = stdout().lock();
    let written = output.write_all(bytes).and_then(|()| output.flush());
    if let Err(error) = &written
        && error.kind() != ErrorKind::BrokenPipe
    {
        FAILURE.get_or_init(|| error.to_string());
    }
    written.is_ok()
}

/// Why standard output has lost lines, such as a full disk: then a command has not done its work. None if it has all
/// lines, or its reader is gone.
pub fn failure() -> Option<&'static str> {
    FAILURE.get().map(String::as_str)
}

/// Writes lines to standard error. A reader that is gone is no error.
pub fn remark(lines: impl Display) {
    let _ = writeln!(stderr().lock(), "{}", harmless(&lines.to_string(), &[]));
}

/// A name or a text of foreign origin as a part of one line: line ends are escaped, too.
pub fn shown(text: impl Display) -> String {
    let text = text.to_string();
    escaped(&text, |_| None, is_control).into_owned()
}

/// A reason, in brackets behind a blank; nothing without one.
pub fn bracketed(reason: Option<impl Display>) -> String {
    reason.map(|reason| format!(" ({})", shown(reason))).unwrap_or_default()
}

/// Escapes all letters that control a terminal, except line ends and the sequences in `let_through`. Escapes are those
/// of JSON (`\u001b`): JSON has such letters only in strings, so that a line of JSON retains its meaning. Text that is
/// already escaped stays as it is.
pub fn harmless<'a>(lines: &'a str, let_through: &[&str]) -> Cow<'a, str> {
    let passes = |rest: &str| let_through.iter().find(|sequence| rest.starts_with(**sequence)).map(|it| it.len());
    escaped(lines, passes, |letter| letter != '\n' && is_control(letter))
}

/// Escapes each `unwanted` letter of `text`, except within the bytes that `passes` counts.
fn escaped(text: &str, passes: impl Fn(&str) -> Option<usize>, unwanted: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&unwanted) {
        return Cow::Borrowed(text);
    }
    let mut made = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(&unwanted) {
        made.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(len) = passes(rest) {
            made.push_str(&rest[..len]);
            rest = &rest[len..];
            continue;
        }
        let mut letters = rest.chars();
        match letters.next() {
            Some('\n') => made.push_str("\\n"),
            Some('\r') => made.push_str("\\r"),
            Some('\t') => made.push_str("\\t"),
            // All unwanted letters lie below U+10000: one escape each.
            Some(letter) => write!(made, "\\u{:04x}", u32::from(letter)).unwrap_or_default(),
            None => {}
        }
        rest = letters.as_str();
    }
    made.push_str(rest);
    Cow::Owned(made)
}

/// Whether a terminal obeys the letter instead of showing it: controls, ends of lines and paragraphs, and marks that
/// change the direction of the following text.
fn is_control(letter: char) -> bool {
    let turns =
        matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || turns || matches!(letter, '\u{2028}' | '\u{2029}')
}
