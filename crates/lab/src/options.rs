//! Reading the values of options: numbers and amounts in a range, in one wording for all experiments.
//!
//! Owns: the words in which a value is refused, which name the value and the range.
//! Does not own: which options there are, and their ranges (the experiments).
//! Invariants: what a reader accepts is in its range.

use simulator::catalogue::Unit;

/// Reads a whole number from `min` to `max`.
pub(crate) fn number(min: u64, max: u64) -> impl Fn(&str) -> Result<u64, String> {
    in_range("a number", "", Unit::Count, min, max)
}

/// Reads bytes from `min` to `max`.
pub(crate) fn size(min: u64, max: u64) -> impl Fn(&str) -> Result<u64, String> {
    in_range("a size", ", as 65536, 64KiB or 1GB", Unit::Bytes, min, max)
}

/// Reads bytes a second from `min` to `max`.
pub(crate) fn rate(min: u64, max: u64) -> impl Fn(&str) -> Result<u64, String> {
    in_range("a rate", ", as 25MB or 5MiB", Unit::BytesPerSecond, min, max)
}

/// Reads by `read`, or nothing where the text is empty.
pub(crate) fn or_nothing<T>(read: impl Fn(&str) -> Result<T, String>) -> impl Fn(&str) -> Result<Option<T>, String> {
    move |text| if text.is_empty() { Ok(None) } else { read(text).map(Some) }
}

fn in_range(
    what: &'static str,
    examples: &'static str,
    unit: Unit,
    min: u64,
    max: u64,
) -> impl Fn(&str) -> Result<u64, String> {
    move |text| {
        let value = unit.parse(text).filter(|value| (min..=max).contains(value));
        value.ok_or_else(|| format!("'{text}' is not {what} from {} to {}{examples}", unit.show(min), unit.show(max)))
    }
}

#[cfg(test)]
mod tests;
