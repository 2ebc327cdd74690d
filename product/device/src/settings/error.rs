//! Why a value or a name was rejected.
//!
//! Owns: the errors and their words; which names are near an unknown one, and the question that offers them. Does not
//! own: the checks (`values`).
//! Invariants: each error names the knob and the rejected text; an error about a value also gives the allowed values
//! and the value in force. Of near names the nearest comes first; equally near ones are in alphabetical order.

use crate::settings::table::KnobInfo;

/// A threshold as set, with its value in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// The knob in force: the one in bytes, or the ratio.
    pub knob: &'static KnobInfo,
    /// Value of the knob in its own unit.
    pub value: u64,
    /// The value in bytes; `None` if the memory is not known yet.
    pub bytes: Option<u64>,
}

impl std::fmt::Display for Threshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let KnobInfo { name, unit, .. } = self.knob;
        write!(f, "{name}={}", self.value)?;
        match self.bytes {
            Some(bytes) if *unit != "bytes" => write!(f, " ({bytes} bytes)"),
            _ => Ok(()),
        }
    }
}

/// Why a value was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KnobError {
    /// There is no such knob.
    #[error("there is no knob '{name}'{}", offered(name, known))]
    Unknown {
        /// The requested name.
        name: String,
        /// Names of all knobs, in the order of the table.
        known: Vec<&'static str>,
    },
    /// The text is not KNOB=VALUE.
    #[error("'{text}' is not KNOB=VALUE")]
    Form {
        /// The rejected text.
        text: String,
    },
    /// The value has none of the knob's forms.
    #[error("{}: '{value}' is not {} ({}; now {now})", knob.name, knob.forms(), knob.range())]
    NotANumber {
        /// Knob that the value was meant for.
        knob: &'static KnobInfo,
        /// The rejected value.
        value: String,
        /// The value in force.
        now: u64,
    },
    /// The unit could mean powers of 1,000 or of 1,024.
    #[error(
        "{}: '{value}' is ambiguous: write {large}iB (powers of 1024) or {large}B (powers of 1000)",
        knob.name, large = value.to_uppercase()
    )]
    Ambiguous {
        /// Knob that the value was meant for.
        knob: &'static KnobInfo,
        /// The rejected value.
        value: String,
    },
    /// The value is out of range.
    #[error("{}: {value} is out of range ({}; now {now})", knob.name, knob.range())]
    OutOfRange {
        /// Knob that the value was meant for.
        knob: &'static KnobInfo,
        /// The rejected value.
        value: u64,
        /// The value in force.
        now: u64,
    },
    /// The flusher would start above the limit, which is never. (The kernel accepts such a pair, and starts the flusher
    /// at half the limit without a word.)
    #[error("{background} is not below {limit}: writers would wait before the flusher starts")]
    BackgroundAboveLimit {
        /// The background threshold.
        background: Threshold,
        /// Limit on dirty bytes, in the form that the caller chose.
        limit: Threshold,
    },
    /// The policy in force ignores the knob.
    #[error("{name} changes nothing under {policy}: {instead}")]
    Ignored {
        /// Name of the knob.
        name: &'static str,
        /// Name of the policy in force.
        policy: &'static str,
        /// What the caller can do instead.
        instead: String,
    },
    /// The knob has one value for all devices.
    #[error("{name} is one value for all devices; set it without naming one")]
    NotPerDevice {
        /// Name of the knob.
        name: &'static str,
    },
}

/// The known names near `name`; all if none is near.
fn offered(name: &str, known: &[&str]) -> String {
    let near = did_you_mean(name, known.iter().copied());
    if near.is_empty() { format!("; there are: {}", known.join(", ")) } else { near }
}

/// The most names that are offered.
const OFFERED_MAX: usize = 4;

/// The known names that `name` may stand for: a few letters away, or with it inside.
pub fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    // Many short names are a letter or two apart.
    let far = match name.len() {
        0..=2 => 0,
        3..=5 => 1,
        length => 2.max(length / 3),
    };
    let inside = |known: &str| name.len() > 2 && known.contains(name);
    let distances = known.map(|known| (distance(name, known), known));
    let mut near: Vec<_> = distances.filter(|(letters, known)| *letters <= far || inside(known)).collect();
    near.sort_unstable();
    near.truncate(OFFERED_MAX);
    near.into_iter().map(|(_, known)| known).collect()
}

/// A question to append to the unknown name in an error, or nothing if no known name is near.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let offered: Vec<String> = near(name, known).iter().map(|name| format!("'{name}'")).collect();
    match offered.split_last() {
        None => String::new(),
        Some((only, [])) => format!(" (did you mean {only}?)"),
        Some((last, others)) => format!(" (did you mean {} or {last}?)", others.join(", ")),
    }
}

/// The number of letters to insert, delete, replace or swap with a neighbour to turn one word into the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for at in 0..from.len() {
        let mut next = vec![at + 1];
        for column in 0..to.len() {
            let replaced = row[column] + usize::from(from[at] != to[column]);
            let mut least = replaced.min(row[column + 1] + 1).min(next[column] + 1);
            if at > 0 && column > 0 && from[at] == to[column - 1] && from[at - 1] == to[column] {
                least = least.min(before[column - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[to.len()]
}
