//! Typed options: name, unit, range and default are in one place, and all experiments refuse a value in the same words.
//!
//! Owns: the wording of a refusal, which names the value and the range.
//! Does not own: the options and their ranges (the experiments).
//! Invariants: the value of an option is in its range.

use std::ops::RangeInclusive;

use afflux_engine::settings::did_you_mean;
use afflux_simulator::catalogue::Unit;

use crate::experiment::{LabError, OptionInfo, Request};

/// The name, kind of value, default and help of an option.
pub(crate) const fn info(
    name: &'static str,
    value: &'static str,
    default: &'static str,
    doc: &'static str,
) -> OptionInfo {
    OptionInfo { name, value, default, doc }
}

/// An option, and how to read its value.
pub(crate) struct TypedOption<T: 'static> {
    pub(crate) info: OptionInfo,
    reader: Reader<T>,
}

enum Reader<T: 'static> {
    Amount { what: &'static str, examples: &'static str, unit: Unit, range: RangeInclusive<u64>, of: fn(u64) -> T },
    Choice { known: &'static [(&'static str, T)], refusal: &'static str },
    Parsed(fn(&str) -> Result<T, String>),
}

/// A whole number in a range.
pub(crate) const fn number(info: OptionInfo, range: RangeInclusive<u64>) -> TypedOption<u64> {
    amount(info, "a number", "", Unit::Count, range)
}

/// Bytes in a range.
pub(crate) const fn size(info: OptionInfo, range: RangeInclusive<u64>) -> TypedOption<u64> {
    amount(info, "a size", ", as 65536, 64KiB or 1GB", Unit::Bytes, range)
}

/// Bytes a second in a range.
pub(crate) const fn rate(info: OptionInfo, range: RangeInclusive<u64>) -> TypedOption<u64> {
    amount(info, "a rate", ", as 25MB or 5MiB", Unit::BytesPerSecond, range)
}

const fn amount(
    info: OptionInfo,
    what: &'static str,
    examples: &'static str,
    unit: Unit,
    range: RangeInclusive<u64>,
) -> TypedOption<u64> {
    TypedOption { info, reader: Reader::Amount { what, examples, unit, range, of: std::convert::identity } }
}

/// One of the known values. The refusal may name `{value}`, the `{known}` ones and the `{default}`.
pub(crate) const fn choice<T>(
    info: OptionInfo,
    known: &'static [(&'static str, T)],
    refusal: &'static str,
) -> TypedOption<T> {
    TypedOption { info, reader: Reader::Choice { known, refusal } }
}

/// A value with a syntax of its own.
pub(crate) const fn parsed<T>(info: OptionInfo, read: fn(&str) -> Result<T, String>) -> TypedOption<T> {
    TypedOption { info, reader: Reader::Parsed(read) }
}

impl<T: Clone> TypedOption<T> {
    /// The value given, or the default.
    ///
    /// # Errors
    /// [`LabError::Value`] when it is not in the range.
    pub(crate) fn value(&self, request: &Request) -> Result<T, LabError> {
        request.value(&self.info, |text| self.read(text))
    }

    /// The given value, or `None` if the text is empty.
    ///
    /// # Errors
    /// [`LabError::Value`] when it is not in the range.
    pub(crate) fn value_if_given(&self, request: &Request) -> Result<Option<T>, LabError> {
        self.has_text(request).then(|| self.value(request)).transpose()
    }

    /// The given value. If there is none, the default, or `quick` in a quick run.
    ///
    /// # Errors
    /// [`LabError::Value`] when it is not in the range.
    pub(crate) fn value_or_quick(&self, request: &Request, quick: T) -> Result<T, LabError> {
        if request.quick && !request.gives(&self.info) { Ok(quick) } else { self.value(request) }
    }

    /// The given values, or the defaults, each once.
    ///
    /// # Errors
    /// [`LabError::Value`] when one is not in the range.
    pub(crate) fn list(&self, request: &Request) -> Result<Vec<T>, LabError> {
        request.list(&self.info, |text| self.read(text))
    }

    /// The given values. If there are none, the defaults, or in a quick run those of the text `quick`.
    ///
    /// # Errors
    /// [`LabError::Value`] when one is not in the range.
    pub(crate) fn list_or_quick(&self, request: &Request, quick: &str) -> Result<Vec<T>, LabError> {
        let is_quick = request.quick && !request.gives(&self.info);
        let read =
            |text: &str| self.list(&Request { given: vec![(self.info.name.to_owned(), text.to_owned())], ..*request });
        if is_quick { read(quick) } else { self.list(request) }
    }

    /// The given values, or `None` if the text is empty.
    ///
    /// # Errors
    /// [`LabError::Value`] when one is not in the range.
    pub(crate) fn list_if_given(&self, request: &Request) -> Result<Option<Vec<T>>, LabError> {
        self.has_text(request).then(|| self.list(request)).transpose()
    }

    /// Refuses the value for a reason that the option alone does not know.
    pub(crate) fn refused(&self, request: &Request, why: String) -> LabError {
        LabError::Value { name: self.info.name, value: request.text(&self.info).to_owned(), why }
    }

    fn has_text(&self, request: &Request) -> bool {
        !request.text(&self.info).is_empty()
    }

    /// Reads one value; an error names the values that are allowed.
    pub(crate) fn read(&self, text: &str) -> Result<T, String> {
        match &self.reader {
            Reader::Amount { what, examples, unit, range, of } => {
                let value = unit.parse(text).filter(|value| range.contains(value));
                let (min, max) = (unit.show(*range.start()), unit.show(*range.end()));
                value.map(of).ok_or_else(|| format!("'{text}' is not {what} from {min} to {max}{examples}"))
            }
            Reader::Choice { known, refusal } => {
                let found = known.iter().find(|(name, _)| *name == text);
                found.map(|(_, value)| value.clone()).ok_or_else(|| {
                    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                    let said = refusal.replace("{known}", &names.join(", ")).replace("{default}", self.info.default);
                    said.replace("'{value}'", &format!("'{text}'{}", did_you_mean(text, names.into_iter())))
                })
            }
            Reader::Parsed(read) => read(text),
        }
    }
}

#[cfg(test)]
mod tests;
