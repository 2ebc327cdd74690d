//! The text that Prometheus reads (exposition format 0.0.4).
//!
//! Owns: families, samples, the lines, their escapes and numbers.
//! Does not own: the list of families.
//! Invariants: a family without samples is omitted; the samples of a family come together. No text of a stranger ends a
//! line or a label.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// The kind of a family's figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FamilyKind {
    /// Only grows; its name ends with `_total`.
    Counter,
    /// Rises and falls.
    Gauge,
    /// A distribution of sizes.
    Histogram,
}

impl FamilyKind {
    /// Its name in the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Figures with the same name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Family {
    /// The name, with its unit, and `_total` for a counter.
    pub name: Cow<'static, str>,
    /// The kind of its figures.
    pub kind: FamilyKind,
    /// The description, on one line.
    pub help: Cow<'static, str>,
}

impl Family {
    /// A family whose text is constant.
    pub const fn new(name: &'static str, kind: FamilyKind, help: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), kind, help: Cow::Borrowed(help) }
    }
}

/// A value of a figure, in one of the forms that the text has.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// A number with a fraction.
    Number(f64),
    /// A distribution. Each count is of values up to its bound and above the bound before; the last bound is infinite.
    Histogram {
        /// Bounds and counts, in ascending order.
        buckets: Vec<(f64, u64)>,
        /// The sum of all.
        sum: f64,
    },
}

type Labels = Vec<(&'static str, String)>;

#[derive(Debug)]
struct Sample {
    labels: Labels,
    value: Value,
}

/// All figures at one moment.
#[derive(Debug, Default)]
pub struct Exposition {
    families: BTreeMap<Cow<'static, str>, (Family, Vec<Sample>)>,
}

impl Exposition {
    /// Adds a figure of the family.
    pub fn add(&mut self, family: &Family, labels: &[(&'static str, &str)], value: Value) {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let (_, samples) = self.families.entry(family.name.clone()).or_insert_with(|| (family.clone(), Vec::new()));
        samples.push(Sample { labels, value });
    }

    /// As text, sorted by name.
    pub fn text(self) -> String {
        let mut text = String::new();
        for (family, samples) in self.families.into_values() {
            let Family { name, kind, help } = &family;
            text.push_str(&format!("# HELP {name} {}\n# TYPE {name} {}\n", escaped(help), kind.name()));
            samples.iter().for_each(|sample| write(&mut text, &family, sample));
        }
        text
    }
}

/// Adds the lines of a sample.
fn write(text: &mut String, family: &Family, Sample { labels, value }: &Sample) {
    let mut line = |suffix: &str, bound: Option<f64>, value: String| {
        let bound = bound.map(|bound| format!("le=\"{}\"", number(bound)));
        let labels = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value).replace('"', "\\\"")));
        let labels = bound.into_iter().chain(labels).collect::<Vec<_>>().join(",");
        let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
        text.push_str(&format!("{}{suffix}{labels} {value}\n", family.name));
    };
    match (family.kind, value) {
        (FamilyKind::Counter, Value::Count(count)) => line("", None, count.to_string()),
        // Above 2^53 a gauge is rounded, as everywhere in Prometheus.
        (FamilyKind::Gauge, Value::Count(count)) => line("", None, number(*count as f64)),
        (FamilyKind::Counter | FamilyKind::Gauge, Value::Number(value)) => line("", None, number(*value)),
        (FamilyKind::Histogram, Value::Histogram { buckets, sum }) => {
            line("_sum", None, number(*sum));
            line("_count", None, buckets.iter().map(|(_, count)| count).sum::<u64>().to_string());
            let mut up_to = 0;
            for (bound, count) in buckets {
                up_to += count;
                line("_bucket", Some(*bound), up_to.to_string());
            }
        }
        // A value of the wrong kind writes no sample.
        (FamilyKind::Histogram, _) | (_, Value::Histogram { .. }) => {}
    }
}

/// A text on one line. In a label, quotes are escaped, too.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

fn number(value: f64) -> String {
    if value == f64::INFINITY { "+Inf".to_owned() } else { format!("{value:?}") }
}

#[cfg(test)]
mod tests;
