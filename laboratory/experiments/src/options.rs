//! The forms of options' values: experiments refuse a value in the same words, with the values that are allowed.
//!
//! Owns: parsers for clap.
//! Does not own: the options with their ranges and defaults (the experiments).
//! Invariants: a value that was read is in its range.

use std::ops::RangeInclusive;

use afflux_engine::settings::did_you_mean;
use afflux_simulator::catalogue::Unit;
use clap::ValueEnum;

/// Most values in a list.
const LIST_MAX: usize = 32;

/// The values of a list. For clap this is one value, so a later list replaces an earlier one.
pub(crate) type List<T> = Vec<T>;

/// A type whose values have words, in options and in rows.
pub(crate) trait Named: ValueEnum {
    /// The word for a value.
    fn name(&self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl<T: ValueEnum> Named for T {}

/// The value that a text names.
pub(crate) fn named<T: ValueEnum>(text: &str) -> Result<T, String> {
    let found = T::value_variants().iter().find(|value| value.name() == text);
    found.cloned().ok_or_else(|| {
        let names: Vec<String> = T::value_variants().iter().map(Named::name).collect();
        let near = did_you_mean(text, names.iter().map(String::as_str));
        format!("'{text}'{near} is none of {}", names.join(", "))
    })
}

/// A whole number in a range.
pub(crate) fn number(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    amount("a number", "", Unit::Count, range)
}

/// Bytes in a range.
pub(crate) fn size(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    amount("a size", ", as 65536, 64KiB or 1GB", Unit::Bytes, range)
}

/// Bytes a second in a range.
pub(crate) fn rate(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    amount("a rate", ", as 25MB or 5MiB", Unit::BytesPerSecond, range)
}

fn amount(
    what: &'static str,
    examples: &'static str,
    unit: Unit,
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| {
        let (min, max) = (unit.show(*range.start()), unit.show(*range.end()));
        let value = unit.parse(text).filter(|value| range.contains(value));
        value.ok_or_else(|| format!("'{text}' is not {what} from {min} to {max}{examples}"))
    }
}

/// Values with commas between them, each once.
pub(crate) fn list<T>(
    read: impl Fn(&str) -> Result<T, String> + Clone,
) -> impl Fn(&str) -> Result<List<T>, String> + Clone {
    move |text| {
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        let repeats = (1..parts.len()).any(|at| parts[..at].contains(&parts[at]));
        if parts.len() > LIST_MAX || repeats {
            return Err(format!("at most {LIST_MAX} values, each once"));
        }
        parts.into_iter().map(&read).collect()
    }
}

#[cfg(test)]
mod tests;
