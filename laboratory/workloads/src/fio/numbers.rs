//! Sizes, counts, times and ranges, as in fio 3.33.
//!
//! fio silently drops text after a number that it does not understand (`1.5m` is one byte); a time with an unknown unit
//! is in microseconds (`10sec`). Here that is an error. As in fio 3.33, and contrary to its manual, `1ki` is `1k`.
//!
//! Owns: the text forms of numbers.
//! Does not own: the choice of a form for an option.
//! Invariants: an accepted number has fio's value.

use super::arithmetic;

/// fio's largest value.
const VALUE_MAX: u64 = i64::MAX as u64;

/// The meaning of unit prefixes: `kb_base`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KbBase {
    /// `k` is 1024 and `kib` 1000, for compatibility with old scripts.
    Binary,
    /// `k` is 1000 and `kib` 1024.
    Decimal,
}

/// Splits off the digits: their value, and the rest. `0x` makes them hexadecimal.
fn digits(text: &str) -> Result<(u64, &str), String> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let hex = unsigned.strip_prefix("0x").or(unsigned.strip_prefix("0X"));
    let (radix, rest) = hex.map_or((10, unsigned), |rest| (16, rest));
    let end = rest.find(|letter: char| !letter.is_digit(radix)).unwrap_or(rest.len());
    if end == 0 {
        return Err(format!("'{text}' does not begin with a digit"));
    }
    let value = u64::from_str_radix(&rest[..end], radix).ok().filter(|value| *value <= VALUE_MAX);
    Ok((value.ok_or_else(|| format!("'{text}' is above {VALUE_MAX}"))?, &rest[end..]))
}

/// A number, or arithmetic that evaluates to one.
pub(super) fn number(text: &str, base: KbBase) -> Result<u64, String> {
    arithmetic::worked_out(text, &mut |text| plain_number(text, base))
}

/// A number of bytes or of anything else: digits and `k`, `m`, `g`, `t`, `p`, with or without a `b`.
fn plain_number(text: &str, base: KbBase) -> Result<u64, String> {
    let (value, suffix) = digits(text)?;
    let hex = text.contains(['x', 'X']);
    let lower = suffix.to_ascii_lowercase();
    let (other_way, prefix) = match lower.strip_suffix("ib") {
        Some(prefix) if !prefix.is_empty() => (true, prefix),
        _ => (false, lower.strip_suffix('b').or(lower.strip_suffix('i')).unwrap_or(&lower)),
    };
    let power = match prefix {
        _ if hex && !suffix.is_empty() => return Err(format!("'{text}': a hexadecimal number has no unit")),
        "" if lower != "i" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ if suffix.contains('-') => {
            return Err(format!("'{text}': a range has no place here (fio would take a part of it)"));
        }
        _ => {
            return Err(format!(
                "'{text}': '{suffix}' is no unit; known are k, m, g, t and p, each alone or with b or ib \
                 (fio would drop what it does not know)"
            ));
        }
    };
    let unit: u64 = if (base == KbBase::Binary) != other_way { 1024 } else { 1000 };
    let product = value.checked_mul(unit.pow(power)).filter(|product| *product <= VALUE_MAX);
    product.ok_or_else(|| format!("'{text}' is above {VALUE_MAX}"))
}

/// A time in nanoseconds; digits alone count `plain_ns` each.
pub(super) fn time(text: &str, plain_ns: u64) -> Result<u64, String> {
    arithmetic::worked_out(text, &mut |text| plain_time(text, plain_ns))
}

/// A time, or a range of two.
pub(super) fn time_range(text: &str, plain_ns: u64) -> Result<(u64, u64), String> {
    let Some((one, other)) = text.split_once(['-', ':']).filter(|_| !text.starts_with('(')) else {
        return time(text, plain_ns).map(|ns| (ns, ns));
    };
    let (least, most) = (time(one, plain_ns)?, time(other, plain_ns)?);
    if least > most { Err(format!("'{text}' is a range whose end is before its beginning")) } else { Ok((least, most)) }
}

fn plain_time(text: &str, plain_ns: u64) -> Result<u64, String> {
    let (value, suffix) = digits(text)?;
    let unit = match suffix.to_ascii_lowercase().as_str() {
        "" => plain_ns,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => {
            return Err(format!(
                "'{text}': '{suffix}' is no unit of time; known are us, usec, ms, msec, s, m, h and d \
                 (fio would take it for microseconds)"
            ));
        }
    };
    value.checked_mul(unit).ok_or_else(|| format!("'{text}' is above {} seconds", u64::MAX / 1_000_000_000))
}

/// `LOW-HIGH` or `LOW:HIGH`; the smaller one comes first in any order.
pub(super) fn range(text: &str, base: KbBase) -> Result<(u64, u64), String> {
    let (one, other) = text.split_once(['-', ':']).ok_or_else(|| format!("'{text}' is no range like 4k-64k"))?;
    let (one, other) = (number(one, base)?, number(other, base)?);
    Ok((one.min(other), one.max(other)))
}

/// `READ[,WRITE[,TRIM]]`: an empty part retains its old value; a single value sets both.
pub(super) fn pair<T: Copy>(
    text: &str,
    now: [T; 2],
    mut value: impl FnMut(&str) -> Result<T, String>,
) -> Result<[T; 2], String> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(format!("'{text}' has {} values; at most 3, for reads, writes and trims", parts.len()));
    }
    if let [both] = parts[..] {
        return value(both).map(|both| [both; 2]);
    }
    let mut result = now;
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let value = value(part)?;
        if let Some(slot) = result.get_mut(at) {
            *slot = value;
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests;
