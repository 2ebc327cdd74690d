//! Values of options, by kind of text.
//!
//! Owns: lists, names of things, their ranges.
//! Does not own: numbers and times (`numbers`), the effect of a value on a job (`draft`).
//! Invariants: an error names the value and the allowed values.

use super::numbers::{KbBase, number, range};
use crate::job::{Amount, BlockSizes, Distribution, Ends, Pattern, Service};

/// The largest block. Its buffer is real.
const BLOCK_BYTES_MAX: u64 = 1 << 30;
/// Most percentiles, as in fio.
const PERCENTILES_MAX: usize = 20;

pub(super) fn kb_base(value: &str) -> Result<KbBase, String> {
    match value {
        "1024" => Ok(KbBase::Binary),
        "1000" => Ok(KbBase::Decimal),
        _ => Err(format!("'{value}' is neither 1000 nor 1024")),
    }
}

pub(super) fn truth(value: &str) -> Result<bool, String> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("'{value}' is neither 0 nor 1")),
    }
}

pub(super) fn bounded(value: &str, base: KbBase, min: u64, max: u64) -> Result<u64, String> {
    let number = number(value, base)?;
    let inside = (min..=max).contains(&number);
    if inside { Ok(number) } else { Err(format!("{number} is not within {min} to {max}")) }
}

/// The pattern, the number of calls of which one is random, and the stride of sequential calls.
pub(super) fn pattern(value: &str, base: KbBase) -> Result<(Pattern, u64, i64), String> {
    let (name, modifier) = value.split_once(':').map_or((value, None), |(name, rest)| (name, Some(rest)));
    let (reads, writes, trims) = match name {
        "read" | "randread" => (true, false, false),
        "write" | "randwrite" => (false, true, false),
        "rw" | "readwrite" | "randrw" => (true, true, false),
        "trim" | "randtrim" => (false, false, true),
        "trimwrite" | "randtrimwrite" => (false, true, true),
        _ => {
            return Err(format!(
                "'{name}' is not supported; supported are read, write, rw, trim and trimwrite, and with rand before them"
            ));
        }
    };
    let random = name.starts_with("rand");
    let pattern = Pattern { reads, writes, trims, random };
    match modifier {
        None => Ok((pattern, 1, 0)),
        Some(every) if random => Ok((pattern, bounded(every, base, 1, 1 << 32)?, 0)),
        Some(stride) => {
            let (sign, bytes) = stride.strip_prefix('-').map_or((1, stride), |bytes| (-1, bytes));
            let bytes = i64::try_from(number(bytes, base)?).unwrap_or(i64::MAX);
            Ok((pattern, 1, sign * bytes))
        }
    }
}

fn checked(sizes: (u64, u64)) -> Result<BlockSizes, String> {
    let (min, max) = sizes;
    if min == 0 || max > BLOCK_BYTES_MAX {
        return Err(format!("blocks of {min} to {max} bytes are not within 1 to {BLOCK_BYTES_MAX}"));
    }
    Ok(BlockSizes { min, max })
}

pub(super) fn block_sizes(part: &str, base: KbBase) -> Result<BlockSizes, String> {
    number(part, base).and_then(|bytes| checked((bytes, bytes)))
}

pub(super) fn block_range(part: &str, base: KbBase) -> Result<BlockSizes, String> {
    range(part, base).and_then(checked)
}

/// `SIZE/PERCENT:SIZE/PERCENT`: sizes without a percentage share the rest.
pub(super) fn split(list: &str, base: KbBase) -> Result<Vec<(u64, u64)>, String> {
    let mut all = Vec::new();
    for part in list.split(':') {
        let (bytes, percent) = part.split_once('/').map_or((part, ""), |(bytes, percent)| (bytes, percent));
        let bytes = block_sizes(bytes, base)?.min;
        all.push((bytes, if percent.is_empty() { None } else { Some(bounded(percent, base, 0, 100)?) }));
    }
    shared(all, list)
}

/// Divides the rest among the entries without a percentage.
fn shared(all: Vec<(u64, Option<u64>)>, list: &str) -> Result<Vec<(u64, u64)>, String> {
    let said: u64 = all.iter().filter_map(|part| part.1).sum();
    let open = all.iter().filter(|part| part.1.is_none()).count() as u64;
    if said > 100 || open == 0 && said < 100 {
        return Err(format!("'{list}': the percentages add up to {said}, not to 100"));
    }
    let each = (100 - said).checked_div(open).unwrap_or(0);
    let mut left = (100 - said).checked_rem(open).unwrap_or(0);
    let share = |(amount, percent): (u64, Option<u64>)| {
        let more = u64::from(percent.is_none() && left > 0);
        left -= more;
        (amount, percent.unwrap_or(each + more))
    };
    Ok(all.into_iter().map(share).collect())
}

/// Bytes, or a percentage from `percent_min` on.
pub(super) fn amount(value: &str, base: KbBase, percent_min: u64) -> Result<Amount, String> {
    match value.strip_suffix('%') {
        Some(percent) => Ok(Amount::Percent(bounded(percent, base, percent_min, 100)?)),
        None => Ok(Amount::Bytes(number(value, base)?)),
    }
}

pub(super) fn file_bytes(value: &str, base: KbBase) -> Result<(u64, u64), String> {
    let (min, max) = match value.contains(['-', ':']) {
        true => range(value, base)?,
        false => number(value, base).map(|bytes| (bytes, bytes))?,
    };
    if min == 0 { Err("0 is not within 1 and the device's size".to_owned()) } else { Ok((min, max)) }
}

pub(super) fn between(text: &str, name: &str, low: f64, high: f64) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (low..=high).contains(value));
    value.ok_or_else(|| format!("{name} '{text}' is not within {low} to {high}"))
}

pub(super) fn distribution(value: &str, base: KbBase) -> Result<Distribution, String> {
    let (kind, parameter) = value.split_once(':').map_or((value, None), |(kind, rest)| (kind, Some(rest)));
    match (kind, parameter) {
        ("random", None) => Ok(Distribution::Uniform),
        ("zipf", None) => Ok(Distribution::Zipf(1.1)),
        ("zipf", Some(text)) => {
            let theta = text.parse::<f64>().ok().filter(|theta| (0.01..=10.0).contains(theta) && *theta != 1.0);
            let theta = theta.ok_or_else(|| format!("theta '{text}' is not within 0.01 to 10, without 1"))?;
            Ok(Distribution::Zipf(theta))
        }
        ("pareto", None) => Ok(Distribution::Pareto(0.2)),
        ("pareto", Some(text)) => Ok(Distribution::Pareto(between(text, "the share", 0.01, 0.99)?)),
        ("normal" | "gauss", None) => Ok(Distribution::Normal(0.0)),
        ("normal" | "gauss", Some(text)) => Ok(Distribution::Normal(between(text, "the deviation", 0.0, 100.0)?)),
        ("zoned", Some(list)) => Ok(Distribution::Zoned(zoned(list, base, true)?)),
        ("zoned_abs", Some(list)) => Ok(Distribution::ZonedBytes(zoned(list, base, false)?)),
        _ => Err(format!(
            "'{value}' is not supported; supported are random, zipf[:THETA], pareto[:SHARE], normal[:DEVIATION], \
             zoned:ACCESS/SIZE:... and zoned_abs:ACCESS/BYTES:..."
        )),
    }
}

/// `ACCESS/SIZE:ACCESS/SIZE`: sizes are in bytes, or in percent, where entries without a size share the rest.
fn zoned(list: &str, base: KbBase, percent: bool) -> Result<Vec<(u64, u64)>, String> {
    let list = list.split(',').next().unwrap_or(list);
    let mut all = Vec::new();
    for part in list.split(':') {
        let (access, size) = part.split_once('/').map_or((part, ""), |(access, size)| (access, size));
        let size = match percent {
            _ if size.is_empty() => None,
            true => Some(bounded(size, base, 0, 100)?),
            false => Some(number(size, base)?),
        };
        all.push((bounded(access, base, 0, 100)?, size));
    }
    let accesses: u64 = all.iter().map(|part| part.0).sum();
    if accesses != 100 {
        return Err(format!("'{list}': the accesses add up to {accesses} percent, not to 100"));
    }
    match percent {
        true => shared(all, list),
        false => {
            let whole = |(access, size): (u64, Option<u64>)| size.map(|size| (access, size));
            all.into_iter().map(whole).collect::<Option<_>>().ok_or_else(|| format!("'{list}': a size is missing"))
        }
    }
}

/// The choice of the next file, and the number of calls that it gets.
pub(super) fn service(value: &str, base: KbBase) -> Result<(Service, u64), String> {
    let (kind, calls) = value.split_once(':').map_or((value, None), |(kind, calls)| (kind, Some(calls)));
    let kind = match kind {
        "roundrobin" => Service::RoundRobin,
        "sequential" => Service::Sequential,
        "random" => Service::Random,
        _ => return Err(format!("'{kind}' is not supported; supported are roundrobin, sequential and random")),
    };
    let calls = calls.map_or(Ok(1), |calls| bounded(calls, base, 1, 1 << 32))?;
    Ok((kind, calls))
}

pub(super) fn ends(value: &str) -> Result<Ends, String> {
    match value {
        "group" => Ok(Ends::Group),
        "stonewall" => Ok(Ends::Running),
        "all" => Ok(Ends::All),
        _ => Err(format!("'{value}' is none of group, stonewall and all")),
    }
}

/// Whether reads and writes may fail.
pub(super) fn continues(value: &str) -> Result<[bool; 2], String> {
    match value {
        "none" | "verify" | "0" => Ok([false, false]),
        "read" => Ok([true, false]),
        "write" => Ok([false, true]),
        "io" | "all" | "1" => Ok([true, true]),
        _ => Err(format!("'{value}' is none of none, read, write, io, verify and all")),
    }
}

pub(super) fn percentiles(value: &str) -> Result<Vec<f64>, String> {
    let all = value.split(':').map(|text| between(text, "percentile", 0.0, 100.0)).collect::<Result<Vec<_>, _>>()?;
    if all.len() > PERCENTILES_MAX {
        return Err(format!("{} percentiles are more than {PERCENTILES_MAX}", all.len()));
    }
    Ok(all)
}

/// As a number; 0 if it is not given.
pub(super) fn zone_mode(value: &str) -> Result<u8, String> {
    match value {
        "none" => Ok(1),
        "strided" => Ok(2),
        "zbd" => Ok(3),
        _ => Err(format!("'{value}' is none of none, strided and zbd")),
    }
}

/// A list separated by colons; `\:` is a colon in a name.
pub(super) fn names(value: &str) -> Vec<String> {
    // No file name has a NUL, so it stands for the colons that do not separate.
    value.replace("\\:", "\0").split(':').map(|name| name.replace('\0', ":")).collect()
}
