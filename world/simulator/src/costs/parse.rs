//! Parses and writes a table of costs.
//!
//! Owns: the file's syntax, errors with their line.
//! Does not own: the table (`table`).
//! Invariants: a table that is written and parsed again is the same.

use std::fmt::Write;
use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use super::table::{COST_NS_MAX, Cost, CostOf, CostTable};
use crate::document::{InputError, Source, exact};

/// A file that is being parsed.
struct Reading<'a>(Source<'a>);

impl Reading<'_> {
    fn error(&self, at: &Range<usize>, what: String) -> InputError {
        self.0.error(at, None, what)
    }

    fn text<'a>(&self, key: &str, value: &'a Spanned<DeValue<'_>>) -> Result<&'a str, InputError> {
        let found = value.get_ref().as_str();
        found.ok_or_else(|| self.error(&value.span(), format!("{key} is a text in quotes")))
    }

    /// A number of nanoseconds as picoseconds.
    fn picoseconds(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<u64, InputError> {
        let digits = match value.get_ref() {
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
            DeValue::Float(float) => float.as_str(),
            _ => "",
        };
        exact(digits, 1000).filter(|ps| *ps <= COST_NS_MAX * 1000).ok_or_else(|| {
            let found = &self.0.text[value.span()];
            let allowed = format!("a number of nanoseconds from 0 to {COST_NS_MAX}, with up to 3 decimals");
            self.error(&value.span(), format!("{key} = {found}: it is {allowed}"))
        })
    }

    fn cost(&self, key: &Spanned<impl AsRef<str>>, value: &Spanned<DeValue<'_>>) -> Result<Cost, InputError> {
        let name = key.get_ref().as_ref();
        let of = CostOf::all().find(|of| of.name() == name).ok_or_else(|| {
            let known: Vec<&str> = CostOf::all().map(CostOf::name).collect();
            self.error(&key.span(), format!("nothing called '{name}' costs anything; there are: {}", known.join(", ")))
        })?;
        let fields = value.get_ref().as_table();
        let fields = fields.ok_or_else(|| self.error(&value.span(), format!("{name} is a table: [{name}]")))?;
        let (mut ps, mut unit, mut source) = (None, None, None);
        for (field, value) in fields {
            let path = format!("{name}.{}", field.get_ref());
            match field.get_ref().as_ref() {
                "value" => ps = Some(self.picoseconds(&path, value)?),
                "unit" => unit = Some((self.text(&path, value)?, value.span())),
                "source" => source = Some(self.text(&path, value)?.to_owned()),
                _ => return Err(self.error(&field.span(), format!("{path}: there are value, unit and source"))),
            }
        }
        let lacks = |what: &str| self.error(&key.span(), format!("{name} has no {what}"));
        let (unit, at) = unit.ok_or_else(|| lacks("unit"))?;
        let expected = of.unit().unwrap_or_default();
        if unit != expected {
            return Err(self.error(&at, format!("{name}.unit = \"{unit}\": it is \"{expected}\"")));
        }
        let source = source.filter(|source| !source.trim().is_empty()).ok_or_else(|| lacks("source"))?;
        Ok(Cost { of, ps: ps.ok_or_else(|| lacks("value"))?, source })
    }
}

pub(super) fn table(file: &str, text: &str) -> Result<CostTable, InputError> {
    let reading = Reading(Source { file, text });
    let root = reading.0.parse()?;
    let (mut machine, mut costs) = (None, Vec::new());
    for (key, value) in root.get_ref() {
        if key.get_ref() == "machine" {
            machine = Some(reading.text("machine", value)?);
        } else {
            costs.push(reading.cost(key, value)?);
        }
    }
    let machine =
        machine.ok_or_else(|| reading.error(&(0..0), "machine: a file says which machine it is of".to_owned()))?;
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
