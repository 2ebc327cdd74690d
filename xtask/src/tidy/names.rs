//! Names that mislead: questions that read as commands, commands that read as questions, and types of the product that
//! share a name.
//!
//! A question is a function with `-> bool` that changes nothing. Its name begins with one of [`PREFIXES`]. A function
//! with `&mut self`, one that waits and one without a bool in its result is a command, and has the name of one:
//! `try_lend`, `take_mark`, `check_name`. The name of a type is used once in the product; its twin is private to one
//! file.
//!
//! Owns: the three rules, the list of names that are not there yet.
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

/// First words of [`PREFIXES`] that commands have, too.
const VERBS: &[&str] = &["do", "try"];

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
const COMMANDS_AS_QUESTIONS: &str = "commands";
const SHARED: &str = "shared";

const HEADER: &str = "# Names that are not there yet. `questions`: a crate, and its functions with `-> bool` whose name does not begin with is_,\n# has_, may_, needs_ or the like.\n# `commands`: those that are named so and take `&mut self`, wait, or return no bool. `shared`: a name, the types of the product that have it and are not private to a file, and the reason.\n# `cargo xtask tidy` fails when a figure grows. `cargo xtask tidy --renew` writes lower ones.\n";

/// The violations in these files, given the text of the list.
pub(super) fn check(files: &[TextFile], list: &str) -> Result<Vec<Violation>> {
    let (found, listed) = (figures(files), read(list)?);
    let more = found.iter().filter(|(key, count)| **count > listed.get(key).map_or(0, |listed| listed.0));
    Ok(more.map(|((kind, key), count)| Violation::new(key.as_str(), RULE, message(files, kind, key, *count))).collect())
}

fn message(files: &[TextFile], kind: &str, key: &str, count: usize) -> String {
    if kind == SHARED {
        let paths: Vec<&str> = paths(files, key).collect();
        return format!(
            "{count} types of the product have this name: rename one, or make it private ({})",
            paths.join(", ")
        );
    }
    let of_crate = || files.iter().filter(|file| folder(&file.path) == Some(key));
    if kind == COMMANDS_AS_QUESTIONS {
        let names: Vec<&str> = of_crate().flat_map(misleading).collect();
        return format!(
            "{count} functions change something, wait or return no bool, and begin with is_, has_, may_ or the like: {}",
            names.join(", ")
        );
    }
    let names: Vec<&str> = of_crate().flat_map(misnamed).collect();
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
        for (kind, count) in [(QUESTIONS, misnamed(file).len()), (COMMANDS_AS_QUESTIONS, misleading(file).len())] {
            *figures.entry((kind.to_owned(), folder.to_owned())).or_default() += count;
        }
        for name in types(file).into_iter().filter(|_| folder.starts_with("product/")) {
            *figures.entry((SHARED.to_owned(), name.to_owned())).or_default() += 1;
        }
    }
    figures.retain(|(kind, _), count| *count > usize::from(kind == SHARED));
    figures
}

fn paths<'a>(files: &'a [TextFile], name: &'a str) -> impl Iterator<Item = &'a str> {
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

/// The names of functions of a file that return a `bool`, change nothing and are not called as a question.
fn misnamed(file: &TextFile) -> Vec<&str> {
    let tokens = lexer::tokens(&file.text);
    let questions = functions(&tokens).filter(|it| it.is_bool() && !it.is_async && !it.has_argument("mut"));
    questions.map(|it| it.name).filter(|name| !has_prefix(name) && !FOREIGN.contains(name)).collect()
}

/// The names of functions of a file that are called as a question, and change what they ask, wait or answer no yes or
/// no.
fn misleading(file: &TextFile) -> Vec<&str> {
    let tokens = lexer::tokens(&file.text);
    let named = functions(&tokens).filter(|it| {
        let first = first_word(it.name);
        PREFIXES.contains(&first) && !VERBS.contains(&first) && !FOREIGN.contains(&it.name) && it.name != first
    });
    named.filter(Function::is_command).map(|it| it.name).collect()
}

fn first_word(name: &str) -> &str {
    name.split('_').next().unwrap_or(name)
}

fn has_prefix(name: &str) -> bool {
    let first = first_word(name);
    PREFIXES.contains(&first) || COMMANDS.contains(&first)
}

/// A function's declaration.
struct Function<'a> {
    name: &'a str,
    is_async: bool,
    /// What stands between the parentheses.
    arguments: Vec<&'a str>,
    /// What stands between the arrow and the body.
    result: Vec<&'a str>,
}

impl Function<'_> {
    fn is_bool(&self) -> bool {
        self.result == ["bool"]
    }

    fn has_argument(&self, word: &str) -> bool {
        self.arguments.contains(&word)
    }

    /// Whether it changes its object, waits, or returns something without a bool in it.
    fn is_command(&self) -> bool {
        let this = self.arguments.iter().position(|word| *word == "self").unwrap_or(0);
        let changes = self.arguments[..this].contains(&"&") && self.arguments[..this].contains(&"mut");
        changes || self.is_async || self.result.contains(&"Future") || !self.result.contains(&"bool")
    }
}

/// The functions that these tokens declare.
fn functions<'t, 'a>(tokens: &'t [Token<'a>]) -> impl Iterator<Item = Function<'a>> + use<'t, 'a> {
    let at = (0..tokens.len().saturating_sub(1)).filter(|at| tokens[*at].text == "fn");
    at.filter(|at| tokens[*at + 1].text.starts_with(|letter: char| letter == '_' || letter.is_alphabetic())).map(|at| {
        let before = tokens[..at].iter().rev().map(|token| token.text);
        let is_async =
            before.take_while(|word| matches!(*word, "async" | "unsafe" | "extern")).any(|word| word == "async");
        let (arguments, result) = signature(&tokens[at + 2..]);
        Function { name: tokens[at + 1].text, is_async, arguments, result }
    })
}

/// The words of a function's arguments and of its result, given the tokens behind its name.
fn signature<'a>(tokens: &[Token<'a>]) -> (Vec<&'a str>, Vec<&'a str>) {
    let (mut parens, mut angles) = (0_usize, 0_usize);
    let (mut arguments, mut result, mut has_arguments, mut has_arrow) = (Vec::new(), Vec::new(), false, false);
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "{" | ";" | "where" if parens == 0 => break,
            _ if has_arrow => result.push(token.text),
            "(" if angles == 0 && parens == 0 && !has_arguments => parens = 1,
            "(" => parens += 1,
            ")" => {
                parens = parens.saturating_sub(1);
                has_arguments |= parens == 0 && angles == 0;
            }
            "<" if parens == 0 => angles += 1,
            ">" if parens == 0 && at > 0 && tokens[at - 1].text == "-" => has_arrow = has_arguments,
            ">" if parens == 0 => angles = angles.saturating_sub(1),
            _ => {}
        }
        if parens > 0 && angles == 0 && !has_arguments {
            arguments.push(token.text);
        }
    }
    (arguments, result)
}

#[cfg(test)]
mod tests;
