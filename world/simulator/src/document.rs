//! TOML documents: checks tables against known keys; every error has a file and a line.
//!
//! Owns: checking tables against lists of keys, the error.
//! Does not own: the meaning of keys (`catalogue`, `fault_script`).
//! Invariants: an unknown key is an error; a number out of its range is an error that names the range.

use std::fmt;
use std::ops::Range;

use afflux_engine::settings::did_you_mean;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

mod quantity;

pub use quantity::Unit;
pub(crate) use quantity::{exact, with_unit};

/// An error in a device or fault file, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The file, or the option on the command line.
    pub file: String,
    /// The line, from 1; 0 for an option.
    pub line: usize,
    /// The key, if the error is about one.
    pub key: Option<String>,
    /// The error, with the value found and the values allowed.
    pub what: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.file)?;
        if self.line > 0 {
            write!(out, ":{}", self.line)?;
        }
        if let Some(key) = &self.key {
            write!(out, ": {key}")?;
        }
        write!(out, ": {}", self.what)
    }
}

impl std::error::Error for InputError {}

/// A file's text and name, to locate errors.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl<'a> Source<'a> {
    pub(crate) fn line(&self, span: &Range<usize>) -> usize {
        self.text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1
    }

    pub(crate) fn error(&self, span: &Range<usize>, key: Option<&str>, what: impl Into<String>) -> InputError {
        let (file, key) = (self.file.to_owned(), key.map(ToOwned::to_owned));
        InputError { file, line: self.line(span), key, what: what.into() }
    }

    /// The whole document.
    pub(crate) fn parse(&self) -> Result<Spanned<DeTable<'a>>, InputError> {
        DeTable::parse(self.text).map_err(|error| {
            let what = format!("not TOML: {}", error.message());
            self.error(&error.span().unwrap_or(0..0), None, what)
        })
    }

    /// The text behind `#` on the line of `span`, or the comment lines right above it.
    pub(crate) fn comment(&self, span: &Range<usize>) -> String {
        let rest = self.text[span.end..].lines().next().unwrap_or_default();
        rest.split_once('#').map_or_else(String::new, |(_, comment)| comment.trim().to_owned())
    }
}

/// A value as an error shows it.
fn shown(source: &Source<'_>, value: &Spanned<DeValue<'_>>) -> String {
    let text: String = source.text[value.span()].chars().take(60).collect();
    text.replace('\n', " ")
}

/// A whole number, or a string with a number and a unit, within a range.
pub(crate) fn number(
    source: &Source<'_>,
    key: &str,
    value: &Spanned<DeValue<'_>>,
    unit: Unit,
    range: (u64, u64),
) -> Result<u64, InputError> {
    let parsed = match value.get_ref() {
        DeValue::Integer(integer) => u64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok(),
        DeValue::String(text) => unit.parse(text),
        _ => None,
    };
    let range_shown = || format!("{} to {}", unit.show(range.0), unit.show(range.1));
    match parsed {
        Some(number) if (range.0..=range.1).contains(&number) => Ok(number),
        Some(_) => {
            let what = format!("{} is not within {}", shown(source, value), range_shown());
            Err(source.error(&value.span(), Some(key), what))
        }
        None => {
            let what = format!("{} is not {} ({})", shown(source, value), unit.example(), range_shown());
            Err(source.error(&value.span(), Some(key), what))
        }
    }
}

/// One of a few words.
pub(crate) fn word(
    source: &Source<'_>,
    key: &str,
    value: &Spanned<DeValue<'_>>,
    words: &[&'static str],
) -> Result<&'static str, InputError> {
    let found = value.get_ref().as_str().and_then(|text| words.iter().find(|word| **word == text));
    found.copied().ok_or_else(|| {
        let near = value.get_ref().as_str().map(|text| did_you_mean(text, words.iter().copied())).unwrap_or_default();
        let what = format!("{}{near} is not one of {}", shown(source, value), words.join(", "));
        source.error(&value.span(), Some(key), what)
    })
}

/// Any text.
pub(crate) fn text(source: &Source<'_>, key: &str, value: &Spanned<DeValue<'_>>) -> Result<String, InputError> {
    let what = || format!("{} is not a text in quotes", shown(source, value));
    value.get_ref().as_str().map(ToOwned::to_owned).ok_or_else(|| source.error(&value.span(), Some(key), what()))
}

/// Checks that every key of a table is one of these.
pub(crate) fn known_keys(source: &Source<'_>, table: &DeTable<'_>, keys: &[&str]) -> Result<(), InputError> {
    for key in table.keys() {
        let name: &str = key.get_ref();
        if !keys.contains(&name) {
            let near = did_you_mean(name, keys.iter().copied());
            let what = format!("no such key{near}; there are {}", keys.join(", "));
            return Err(source.error(&key.span(), Some(name), what));
        }
    }
    Ok(())
}

/// The value of a key.
pub(crate) fn value<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Option<&'t Spanned<DeValue<'i>>> {
    table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
}
