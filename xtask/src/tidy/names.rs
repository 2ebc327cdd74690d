//! Names that mislead: questions that read as commands, and types of the product that share a name.
//!
//! A question is a function with `-> bool`. Its name begins with one of [`PREFIXES`]. The name of a type is used once
//! in the product; its twin is private to one file.
//!
//! Owns: both rules, the list of names that are not there yet.
//! Does not own: the reading of Rust (`lexer`).
//! Invariants: a figure is at most the one in the list. Renewing the list raises none of its figures.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};

use super::lexer::{self, Token};
use super::sources::is_test;
use super::violation::Violation;
use crate::repository::TextFile;

/// The list of names that are not there yet.
pub(super) const LIST: &str = "xtask/names.txt";

const RULE: &str = "names";

/// The first words of a question.
const PREFIXES: &[&str] = &[
    "is", "are", "has", "have", "may", "can", "needs", "need", "was", "were", "should", "must", "does", "do", "will",
    "had", "try",
];

/// First words of commands that return a `bool` of the same meaning as in the standard library. A set's `insert` did
/// not have the thing before, its `remove` had it; a cell's `take` finds the mark set.
const COMMANDS: &[&str] = &["insert", "remove", "take"];

/// Questions that a trait of others names, or the standard library for the same question.
const FOREIGN: &[&str] = &["eq", "ne", "lt", "le", "gt", "ge", "enabled", "will_wake", "contains"];

/// The first word of a line of the list, and the key: a crate's folder, or a name.
type Figures = BTreeMap<(String, String), usize>;

/// Figures of the list, each with the reason for it, which may be empty.
type Listed = BTreeMap<(String, String), (usize, String)>;

const QUESTIONS: &str = "questions";
const SHARED: &str = "shared";

const HEADER: &str = "# Names that are not there yet. `questions`: a crate, and its functions with `-> bool` whose name does not begin with is_,\n# has_, may_, needs_ or the like. `shared`: a name, the types of the product that have it and are not private to a file, and the reason.\n# `cargo xtask tidy` fails when a figure grows. `cargo xtask tidy --renew` writes lower ones.\n";

/// The violations in these files, given the text of the list.
pub(super) fn check(files: &[TextFile], list: &str) -> Result<Vec<Violation>> {
    let (found, listed) = (figures(files), read(list)?);
    let more = found.iter().filter(|(key, count)| **count > listed.get(key).map_or(0, |listed| listed.0));
    Ok(more.map(|((kind, key), count)| Violation::new(key.as_str(), RULE, told(files, kind, key, *count))).collect())
}

fn told(files: &[TextFile], kind: &str, key: &str, count: usize) -> String {
    if kind == SHARED {
        let places: Vec<&str> = places(files, key).collect();
        return format!(
            "{count} types of the product have this name: rename one, or make it private ({})",
            places.join(", ")
        );
    }
    let names: Vec<&str> = files.iter().filter(|file| folder(&file.path) == Some(key)).flat_map(misnamed).collect();
    format!("{count} functions with `-> bool` do not begin with is_, has_, may_ or needs_: {}", names.join(", "))
}

/// The list with the lower figures of today. A figure that grew stays as it was, and [`check`] finds it.
pub(super) fn renewed(files: &[TextFile], list: &str) -> Result<String> {
    let (found, listed) = (figures(files), read(list)?);
    let mut text = HEADER.to_owned();
    for (key, (before, reason)) in listed {
        let now = found.get(&key).copied().unwrap_or(0).min(before);
        if now > 0 {
            let _ = writeln!(text, "{}", format!("{} {} {now} {reason}", key.0, key.1).trim_end());
        }
    }
    Ok(text)
}

fn read(list: &str) -> Result<Listed> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let wrong = || format!("{LIST}: '{line}' is not: questions CRATE COUNT, or shared NAME COUNT REASON");
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let [kind, key, count, ref reason @ ..] = words[..] else { anyhow::bail!(wrong()) };
            Ok(((kind.to_owned(), key.to_owned()), (count.parse().with_context(wrong)?, reason.concat())))
        })
        .collect()
}

/// The figures above none.
fn figures(files: &[TextFile]) -> Figures {
    let mut figures = Figures::new();
    for file in files {
        let Some(folder) = folder(&file.path) else { continue };
        let count = misnamed(file).len();
        if count > 0 {
            *figures.entry((QUESTIONS.to_owned(), folder.to_owned())).or_default() += count;
        }
        for name in types(file).into_iter().filter(|_| folder.starts_with("product/")) {
            *figures.entry((SHARED.to_owned(), name.to_owned())).or_default() += 1;
        }
    }
    figures.retain(|(kind, _), count| kind == QUESTIONS || *count > 1);
    figures
}

fn places<'a>(files: &'a [TextFile], name: &'a str) -> impl Iterator<Item = &'a str> {
    let of_product =
        files.iter().filter(|file| folder(&file.path).is_some_and(|folder| folder.starts_with("product/")));
    of_product.filter(move |file| types(file).contains(&name)).map(|file| file.path.as_str())
}

/// The folder of the crate whose source the path is, unless it is a test.
fn folder(path: &str) -> Option<&str> {
    let at = path.find("/src/").filter(|_| !is_test(path))?;
    Some(&path[..at])
}

/// The names of types in a file that others see.
fn types(file: &TextFile) -> Vec<&str> {
    let tokens = lexer::tokens(&file.text);
    let is_type = |at: usize| matches!(tokens[at].text, "struct" | "enum" | "trait" | "union");
    let declared = (1..tokens.len().saturating_sub(1)).filter(|at| is_type(*at) && is_visible(&tokens[..*at]));
    declared.map(|at| tokens[at + 1].text).filter(|name| name.starts_with(char::is_uppercase)).collect()
}

/// Whether an item behind these tokens is `pub`, in whichever form.
fn is_visible(before: &[Token<'_>]) -> bool {
    let opened = before.iter().rposition(|token| token.text == "(").unwrap_or(0);
    let end = if before.last().is_some_and(|token| token.text == ")") { opened } else { before.len() };
    end > 0 && before[end - 1].text == "pub"
}

/// The names of functions of a file that return a `bool` and are not called as a question.
fn misnamed(file: &TextFile) -> Vec<&str> {
    let tokens = lexer::tokens(&file.text);
    let functions = (0..tokens.len().saturating_sub(1)).filter(|at| tokens[*at].text == "fn");
    let questions = functions.filter(|at| is_question(&tokens[at + 2..])).map(|at| tokens[at + 1].text);
    questions.filter(|name| !has_prefix(name) && !FOREIGN.contains(name)).collect()
}

fn has_prefix(name: &str) -> bool {
    let first = name.split('_').next().unwrap_or(name);
    PREFIXES.contains(&first) || COMMANDS.contains(&first)
}

/// Whether a function returns a `bool`, given the tokens behind its name.
fn is_question(tokens: &[Token<'_>]) -> bool {
    let (mut parens, mut angles, mut had_arguments) = (0_usize, 0_usize, false);
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" => parens += 1,
            ")" => {
                parens = parens.saturating_sub(1);
                had_arguments |= parens == 0 && angles == 0;
            }
            "<" if parens == 0 => angles += 1,
            ">" if parens == 0 && tokens[at.saturating_sub(1)].text != "-" => angles = angles.saturating_sub(1),
            ">" if parens == 0 && angles == 0 && had_arguments => {
                let next = |more: usize| tokens.get(at + more).map(|token| token.text);
                return next(1) == Some("bool") && matches!(next(2), Some("{" | ";" | "where"));
            }
            "{" | ";" if parens == 0 => return false,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests;
