//! Times as people write them: `500ms`, `30s`, `2h`.

/// The longest time: a year.
const TIME_S_MAX: f64 = 365.0 * 86_400.0;

/// A time such as `30s`, in nanoseconds; a bare number is seconds.
///
/// # Errors
/// When it is none, or out of range; the error has the text and the range.
pub fn nanoseconds(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 6] =
        [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("min", 60.0), ("h", 3600.0), ("s", 1.0)];
    let trimmed = text.trim();
    let (number, unit_s) = UNITS
        .iter()
        .find_map(|&(unit, seconds)| Some((trimmed.strip_suffix(unit)?, seconds)))
        .unwrap_or((trimmed, 1.0));
    let seconds = number.trim().parse::<f64>().ok().map(|number| number * unit_s);
    match seconds {
        Some(seconds) if seconds > 0.0 && seconds <= TIME_S_MAX => Ok((seconds * 1e9).round() as u64),
        Some(_) => Err(format!("'{text}' is out of range (above 0, up to 8,760h)")),
        None => Err(format!("'{text}' is not a time such as 500ms, 30s, 5min or 2h")),
    }
}

#[cfg(test)]
mod tests;
