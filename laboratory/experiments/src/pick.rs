//! Rows by their parameters, and values as a person reads them.
//!
//! Owns: which rows fit, a parameter's text with its unit.
//! Does not own: the rows, the tables and labels that pick from them.
//! Invariants: a parameter of a row, or else a figure of that name, tells rows apart.

use afflux_report::{Row, units};
use serde_json::Value;

/// Parameters, and the value that each has; `|` stands between several, and an empty value stands for any. `variant` is
/// a parameter, too.
pub(crate) type Pick = &'static [(&'static str, &'static str)];

/// A value as text: nothing for `null` and for `false`.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(false) => String::new(),
        Value::Bool(true) => "yes".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.as_u64().map_or_else(|| other.to_string(), |count| count.to_string()),
    }
}

fn value<'a>(row: &'a Row, name: &str) -> Option<&'a Value> {
    row.params.get(name).or_else(|| row.metrics.get(name))
}

/// Whether the row has all of these values.
pub(crate) fn fits(row: &Row, pick: &[(&str, &str)]) -> bool {
    let of = |name: &str| if name == "variant" { Some(row.variant.clone()) } else { value(row, name).map(text) };
    let is = |(name, wanted): &(&str, &str)| {
        of(name).is_some_and(|own| wanted.is_empty() || wanted.split('|').any(|wanted| own == wanted))
    };
    pick.iter().all(is)
}

/// A figure of the first row that fits and has it.
pub(crate) fn figure(rows: &[Row], pick: Pick, name: &str) -> Option<f64> {
    rows.iter().filter(|row| fits(row, pick)).find_map(|row| row.metrics.get(name)?.as_f64())
}

/// The value of a parameter for a reader; nothing if the row has none.
pub(crate) fn shown(row: &Row, name: &str) -> String {
    if name == "variant" {
        return row.variant.clone();
    }
    let Some(value) = value(row, name) else { return String::new() };
    match (value.as_u64(), unit_of(name)) {
        (Some(count), Some((_, of))) => of(count),
        _ => text(value),
    }
}

/// The title of a parameter: its name without the unit that its values have.
pub(crate) fn title_of(name: &str) -> String {
    unit_of(name).map_or(name, |(unit, _)| name.trim_end_matches(unit)).replace('_', " ")
}

/// The end of a name that is a unit, and how a value with it is shown.
type Unit = (&'static str, fn(u64) -> String);

fn unit_of(name: &str) -> Option<Unit> {
    let units: [Unit; 6] = [
        ("_bits_per_s", |bits| format!("{} Mbit/s", bits / 1_000_000)),
        ("_bytes_per_s", |bytes| format!("{}/s", units::data(bytes))),
        ("centisecs", |count| if count == 0 { "off".to_owned() } else { format!("{count} cs") }),
        ("_mib", |mib| units::memory(mib << 20)),
        ("_kib", |kib| units::memory(kib << 10)),
        ("_bytes", |bytes| if bytes % 4096 == 0 { units::memory(bytes) } else { units::data(bytes) }),
    ];
    let found = units.into_iter().find(|(unit, _)| name.ends_with(unit))?;
    // A name that is nothing but a unit stays a name.
    Some(if found.0 == name { ("\0", found.1) } else { found })
}

#[cfg(test)]
mod tests;
