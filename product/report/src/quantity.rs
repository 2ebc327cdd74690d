//! Times and sizes as people write them: `500ms`, `2h`, `64KiB`, `1GB`.
//!
//! Owns: the units, the refusal of ambiguous numbers.
//! Does not own: ranges, the value and its flag in an error: the caller knows them.
//! Invariants: a time has a unit. A size without one is in bytes; a size in `m` or `g` could mean either kind of unit,
//! and is refused.

use bytesize::ByteSize;

/// The longest time: a year.
const TIME_S_MAX: f64 = 365.0 * 86_400.0;

/// Units of time, in seconds. `ns`, `us` and `ms` also end in `s`, so they come before it.
const TIMES: [(&str, f64); 6] = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("min", 60.0), ("h", 3600.0), ("s", 1.0)];

/// Reads a time such as `30s`, in nanoseconds.
///
/// # Errors
/// When it is none, or out of range; the error has the range.
pub fn nanoseconds(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (number, unit_s) = match TIMES.iter().find_map(|&(unit, seconds)| Some((text.strip_suffix(unit)?, seconds))) {
        Some((number, unit_s)) => (number.trim(), unit_s),
        None if text.parse::<f64>().is_ok_and(|number| number > 0.0) => {
            return Err(format!("without a unit: write {text}s, or min, h, ms, us or ns"));
        }
        None => (text, 1.0),
    };
    // No sign, exponent, infinity.
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let read = number.parse::<f64>().ok().filter(|_| is_plain);
    match read.map(|number| number * unit_s).ok_or(()) {
        Ok(seconds) if seconds > 0.0 && seconds <= TIME_S_MAX => Ok((seconds * 1e9).round() as u64),
        Ok(_) => Err("out of range (above 0, up to 8,760h)".to_owned()),
        Err(()) => Err("not a time such as 500ms, 30s, 5min or 2h".to_owned()),
    }
}

/// Reads a size such as `64MiB` or `1GB`, in bytes.
///
/// # Errors
/// When it is none, or ambiguous.
pub fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    if let unit @ ("k" | "m" | "g" | "t" | "p") = text[number.len()..].to_lowercase().as_str() {
        let (number, unit) = (number.trim(), unit.to_uppercase());
        return Err(format!("ambiguous: write {number}{unit}iB (powers of 1024) or {number}{unit}B (powers of 1000)"));
    }
    text.parse::<ByteSize>().map(|size| size.as_u64()).map_err(|_| "not a size such as 64KiB, 512MiB or 2GB".to_owned())
}

#[cfg(test)]
mod tests;
