//! Quantities as people write them: `25MB`, `4KiB`, `1.5s`, `16`.
//!
//! Owns: the units and their display.
//! Does not own: the units of keys (`keys`).
//! Invariants: a displayed number parses to the same number.

use bytesize::ByteSize;

/// The unit of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Nanoseconds.
    Nanoseconds,
    /// Thousandths.
    PerMille,
    /// A count without a unit.
    Count,
}

const TIMES: [(&str, u64); 5] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000)];
const BINARY: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
const DECIMAL: [(&str, u64); 4] = [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];

impl Unit {
    /// Parses a number of this unit. `None` if the text is not one, or the number is too large.
    pub fn parse(self, text: &str) -> Option<u64> {
        let plain = text.trim().replace('_', "");
        if let Ok(number) = plain.parse() {
            return Some(number);
        }
        match self {
            Self::Bytes | Self::BytesPerSecond => {
                let text = plain.strip_suffix("/s").unwrap_or(&plain);
                text.parse::<ByteSize>().ok().map(|size| size.as_u64())
            }
            Self::Nanoseconds => duration_ns(&plain),
            Self::PerMille | Self::Count => None,
        }
    }

    /// Formats a number of this unit, short and exact.
    pub fn show(self, number: u64) -> String {
        match self {
            Self::Bytes => scaled(number, &[&BINARY, &DECIMAL]).unwrap_or_else(|| format!("{number} bytes")),
            Self::BytesPerSecond => {
                scaled(number, &[&DECIMAL, &BINARY]).map_or_else(|| format!("{number} B/s"), |text| format!("{text}/s"))
            }
            Self::Nanoseconds => {
                let (name, ns) =
                    TIMES.into_iter().rev().skip(1).find(|unit| number.is_multiple_of(unit.1)).unwrap_or(("ns", 1));
                if number == 0 { "0 ns".to_owned() } else { format!("{} {name}", number / ns) }
            }
            Self::PerMille => format!("{number} per mille"),
            Self::Count => number.to_string(),
        }
    }

    /// An example, for messages.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::Bytes => "a number of bytes, as 65536 or \"64 KiB\"",
            Self::BytesPerSecond => "bytes in a second, as 25_000_000 or \"25 MB\"",
            Self::Nanoseconds => "a time, as 8_500_000 (nanoseconds) or \"8.5 ms\"",
            Self::PerMille | Self::Count => "a whole number",
        }
    }
}

fn scaled(number: u64, scales: &[&[(&str, u64)]]) -> Option<String> {
    let fits = |unit: &&(&str, u64)| number > 0 && number.is_multiple_of(unit.1);
    let best = scales.iter().filter_map(|scale| scale.iter().find(fits)).max_by_key(|unit| unit.1)?;
    Some(format!("{} {}", number / best.1, best.0))
}

/// A time with its unit, whole or decimal; exact to the nanosecond.
fn duration_ns(text: &str) -> Option<u64> {
    with_unit(text, &TIMES)
}

/// A number, with or without decimals, and one of these units, in the smallest of them. `None` if the text is anything
/// else, or not a whole number of the smallest unit.
pub(crate) fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, name) = text.split_at(digits);
    exact(number, units.iter().find(|unit| unit.0 == name.trim())?.1)
}

/// So many times `unit`; `None` if the text is no number, or the result is not whole.
pub(crate) fn exact(number: &str, unit: u64) -> Option<u64> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 9 {
        return None;
    }
    let scale = 10_u64.pow(decimals.len() as u32);
    let part = decimals.parse::<u64>().ok()?.checked_mul(unit)?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    if part.is_multiple_of(scale) { whole.checked_add(part / scale) } else { None }
}

#[cfg(test)]
mod tests;
