//! The text that Prometheus reads (exposition format 0.0.4).
//!
//! The crate prometheus-client writes samples in the OpenMetrics format, where a counter's name ends with `_total` in
//! its samples but not in its description. In the older format, which every reader accepts, it does so in both. So this
//! module writes the two lines of a description itself.
//!
//! Owns: families, samples, the lines.
//! Does not own: escapes and numbers in samples (prometheus-client), the list of families.
//! Invariants: a family without samples is omitted; the samples of a family come together.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

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
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {}\n", kind.name()));
            let mut registry = Registry::default();
            registry.register_collector(Box::new(Samples { family, samples }));
            let mut described = String::new();
            // Writing to memory does not fail.
            let _ = encode_registry(&mut described, &registry);
            let samples = described.split_inclusive('\n').filter(|line| !line.starts_with('#'));
            samples.for_each(|line| text.push_str(line));
        }
        text
    }
}

/// The samples of one family.
#[derive(Debug)]
struct Samples {
    family: Family,
    samples: Vec<Sample>,
}

impl Collector for Samples {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let name = &*self.family.name;
        let (name, kind) = match self.family.kind {
            FamilyKind::Counter => (name.strip_suffix("_total").unwrap_or(name), MetricType::Counter),
            FamilyKind::Gauge => (name, MetricType::Gauge),
            FamilyKind::Histogram => (name, MetricType::Histogram),
        };
        let mut encoder = encoder.encode_descriptor(name, &self.family.help, None, kind)?;
        self.samples.iter().try_for_each(|Sample { labels, value }| match labels.is_empty() {
            true => sample(&mut encoder, self.family.kind, value),
            false => sample(&mut encoder.encode_family(labels)?, self.family.kind, value),
        })
    }
}

fn sample(encoder: &mut MetricEncoder<'_>, kind: FamilyKind, value: &Value) -> Result<(), fmt::Error> {
    const PLAIN_U64: Option<&Exemplar<NoLabelSet, u64>> = None;
    const PLAIN_F64: Option<&Exemplar<NoLabelSet, f64>> = None;
    match (kind, value) {
        (FamilyKind::Counter, Value::Count(count)) => encoder.encode_counter(count, PLAIN_U64),
        (FamilyKind::Counter, Value::Number(number)) => encoder.encode_counter(number, PLAIN_F64),
        // Above 2^53 a gauge is rounded, as everywhere in Prometheus.
        (FamilyKind::Gauge, Value::Count(count)) => encoder.encode_gauge(&(*count as f64)),
        (FamilyKind::Gauge, Value::Number(number)) => encoder.encode_gauge(number),
        (FamilyKind::Histogram, Value::Histogram { buckets, sum }) => {
            let count = buckets.iter().map(|(_, count)| count).sum();
            encoder.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
        }
        // A value of the wrong kind writes no sample.
        (FamilyKind::Histogram, _) | (_, Value::Histogram { .. }) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
