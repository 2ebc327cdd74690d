//! Parses and writes a table of costs.
//!
//! Owns: the file's syntax, errors with their line.
//! Does not own: the table (`costs`).
//! Invariants: a table that is written and parsed again is the same.

use std::fmt::Write;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{COST_NS_MAX, Cost, CostOf, CostTable};

/// An error in a table of costs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct CostError {
    /// The file's name, as given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The text found and the values allowed.
    pub what: String,
}

/// A file that is being parsed.
struct Reading<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reading<'_> {
    fn error(&self, at: Range<usize>, what: String) -> CostError {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        CostError { file: self.file.to_owned(), line: before.matches('\n').count() + 1, what }
    }

    fn text<'a>(&self, key: &str, value: &'a Spanned<DeValue<'_>>) -> Result<&'a str, CostError> {
        let found = value.get_ref().as_str();
        found.ok_or_else(|| self.error(value.span(), format!("{key} is a text in quotes")))
    }

    /// A number of nanoseconds as picoseconds.
    fn picoseconds(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<u64, CostError> {
        let digits = match value.get_ref() {
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
            DeValue::Float(float) => float.as_str(),
            _ => "",
        };
        picoseconds(digits).ok_or_else(|| {
            let found = &self.text[value.span()];
            let allowed = format!("a number of nanoseconds from 0 to {COST_NS_MAX}, with up to 3 decimals");
            self.error(value.span(), format!("{key} = {found}: it is {allowed}"))
        })
    }

    fn cost(&self, key: &Spanned<impl AsRef<str>>, value: &Spanned<DeValue<'_>>) -> Result<Cost, CostError> {
        let name = key.get_ref().as_ref();
        let of = CostOf::all().find(|of| of.name() == name).ok_or_else(|| {
            let known: Vec<&str> = CostOf::all().map(CostOf::name).collect();
            self.error(key.span(), format!("nothing called '{name}' costs anything; there are: {}", known.join(", ")))
        })?;
        let fields = value.get_ref().as_table();
        let fields = fields.ok_or_else(|| self.error(value.span(), format!("{name} is a table: [{name}]")))?;
        let (mut ps, mut unit, mut source) = (None, None, None);
        for (field, value) in fields {
            let path = format!("{name}.{}", field.get_ref());
            match field.get_ref().as_ref() {
                "value" => ps = Some(self.picoseconds(&path, value)?),
                "unit" => unit = Some((self.text(&path, value)?, value.span())),
                "source" => source = Some(self.text(&path, value)?.to_owned()),
                _ => return Err(self.error(field.span(), format!("{path}: there are value, unit and source"))),
            }
        }
        let lacks = |what: &str| self.error(key.span(), format!("{name} has no {what}"));
        let (unit, at) = unit.ok_or_else(|| lacks("unit"))?;
        let expected = of.unit().unwrap_or_default();
        if unit != expected {
            return Err(self.error(at, format!("{name}.unit = \"{unit}\": it is \"{expected}\"")));
        }
        let source = source.filter(|source| !source.trim().is_empty()).ok_or_else(|| lacks("source"))?;
        Ok(Cost { of, ps: ps.ok_or_else(|| lacks("value"))?, source })
    }
}

/// Parses decimal digits with at most three after the point; `None` if the value is more than allowed.
fn picoseconds(digits: &str) -> Option<u64> {
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let thousandths: u64 = format!("{decimals:0<3}").parse().ok()?;
    let ns: u64 = whole.parse().ok()?;
    let ps = ns.checked_mul(1000)?.checked_add(thousandths)?;
    (ps <= COST_NS_MAX * 1000).then_some(ps)
}

pub(super) fn table(file: &str, text: &str) -> Result<CostTable, CostError> {
    let reading = Reading { file, text };
    let root = DeTable::parse(text).map_err(|error| {
        let what = error.message().to_owned();
        reading.error(error.span().unwrap_or(0..0), what)
    })?;
    let (mut machine, mut costs) = (None, Vec::new());
    for (key, value) in root.get_ref() {
        if key.get_ref() == "machine" {
            machine = Some(reading.text("machine", value)?);
        } else {
            costs.push(reading.cost(key, value)?);
        }
    }
    let machine =
        machine.ok_or_else(|| reading.error(0..0, "machine: a file says which machine it is of".to_owned()))?;
    Ok(CostTable::new(machine, costs))
}

/// A text in TOML's quotes.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

pub(super) fn text(table: &CostTable) -> String {
    let mut text = format!("machine = {}\n", quoted(table.machine()));
    for cost in table.costs() {
        let value = match cost.ps % 1000 {
            0 => (cost.ps / 1000).to_string(),
            rest => format!("{}.{rest:03}", cost.ps / 1000),
        };
        let (name, unit, source) = (cost.of.name(), cost.of.unit().unwrap_or_default(), quoted(&cost.source));
        // Writing to a string does not fail.
        let _ = write!(text, "\n[{name}]\nvalue = {value}\nunit = \"{unit}\"\nsource = {source}\n");
    }
    text
}
