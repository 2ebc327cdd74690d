//! Parses a device file into a model: every figure is checked and stored with its source.
//!
//! Owns: the model's values and their sources, overrides, contradictions between two values.
//! Does not own: the list of keys (`keys`), building disks from the values (`make`).
//! Invariants: a model has a value for each key of its kind, each in its range.

use afflux_engine::settings::did_you_mean;
use toml::de::{DeTable, DeValue};

use super::keys::{Key, Kind};
use crate::document::{self, InputError, Source, Unit};

/// Most zones that a rotating disk may have.
const ZONES_MAX: usize = 32;

/// One number of a model.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The key.
    pub key: &'static Key,
    /// The number.
    pub value: u64,
    /// Its source, as given in the file; `default` if the file has none.
    pub source: String,
}

/// A device's numbers.
#[derive(Clone, Debug)]
pub struct Model {
    /// The name that users give.
    pub name: String,
    /// The file that the model was read from.
    pub file: String,
    /// The device in one line.
    pub about: String,
    /// The kind of model.
    pub kind: Kind,
    /// Its numbers, in the order of the keys.
    pub parameters: Vec<Parameter>,
    /// Whether requests are sorted and merged before they go to the device.
    pub deadline: bool,
    /// Whether space is allocated in the order of submission rather than by the chunk.
    pub allocate_at_submission: bool,
    /// Zones of a rotating disk from the outer edge: share of the capacity in thousandths, and bytes per second.
    pub zones: Vec<(u64, u64)>,
    /// The source of the zones' figures.
    pub zones_source: String,
}

impl Model {
    /// Parses a device file. `file` is used in messages.
    ///
    /// # Errors
    /// When the text is not TOML, a key is unknown or missing, or a value is not allowed.
    pub fn parse(name: &str, file: &str, text: &str) -> Result<Self, InputError> {
        let source = Source { file, text };
        let document = source.parse()?;
        let table = document.get_ref();
        let missing = |key: &str, what: &str| source.error(&(0..0), Some(key), format!("is missing: {what}"));
        let kinds = Kind::ALL.map(Kind::name);
        let kind = document::value(table, "kind").ok_or_else(|| missing("kind", &kinds.join(", ")))?;
        let kind_name = document::word(&source, "kind", kind, &kinds)?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == kind_name).unwrap_or(Kind::Throttled);
        let mut names: Vec<&str> = vec!["about", "kind", "scheduler", "allocation"];
        names.extend((kind == Kind::Rotating).then_some("zones"));
        names.extend(kind.keys().map(|key| key.name));
        document::known_keys(&source, table, &names)?;
        let about = document::value(table, "about").ok_or_else(|| missing("about", "the device in a line"))?;
        let word = |key, words: [&'static str; 2]| {
            document::value(table, key).map_or(Ok(words[0]), |value| document::word(&source, key, value, &words))
        };
        let mut model = Self {
            name: name.to_owned(),
            file: file.to_owned(),
            about: document::text(&source, "about", about)?,
            kind,
            parameters: Vec::new(),
            deadline: word("scheduler", ["deadline", "none"])? == "deadline",
            allocate_at_submission: word("allocation", ["delayed", "at-submission"])? == "at-submission",
            zones: Vec::new(),
            zones_source: String::new(),
        };
        for key in kind.keys() {
            model.parameters.push(parameter(&source, table, key)?);
        }
        if kind == Kind::Rotating {
            model.read_zones(&source, table)?;
        }
        if let Some((key, what)) = model.contradiction() {
            let span = document::value(table, key).map_or(0..0, toml::Spanned::span);
            return Err(source.error(&span, Some(key), what));
        }
        Ok(model)
    }

    fn read_zones(&mut self, source: &Source<'_>, table: &DeTable<'_>) -> Result<(), InputError> {
        let shape = "zones are 1 to 32 pairs of a share in thousandths and bytes in a second, the shares 1000 together";
        let error = |span| source.error(&span, Some("zones"), shape);
        let Some(value) = document::value(table, "zones") else { return Err(error(0..0)) };
        let list = value.get_ref().as_array().ok_or_else(|| error(value.span()))?;
        for pair in list.iter() {
            let DeValue::Array(pair_values) = pair.get_ref() else { return Err(error(pair.span())) };
            let [share, rate] = &pair_values[..] else { return Err(error(pair.span())) };
            let share = document::number(source, "zones", share, Unit::PerMille, (1, 1000))?;
            let rate = document::number(source, "zones", rate, Unit::BytesPerSecond, (1_000_000, 10_000_000_000))?;
            self.zones.push((share, rate));
        }
        let sum: u64 = self.zones.iter().map(|zone| zone.0).sum();
        if self.zones.len() > ZONES_MAX || sum != 1000 {
            return Err(error(value.span()));
        }
        self.zones_source = source.comment(&value.span());
        Ok(())
    }

    /// The number of a key.
    ///
    /// # Panics
    /// When the model's kind has no such key.
    pub fn get(&self, key: &str) -> u64 {
        let found = self.parameters.iter().find(|parameter| parameter.key.name == key);
        found.unwrap_or_else(|| unreachable!("{} has no key {key}", self.kind.name())).value
    }

    /// The key and the reason, if two values contradict each other.
    fn contradiction(&self) -> Option<(&'static str, String)> {
        let block = self.get("block_bytes");
        if block != 512 && block != 4096 {
            return Some(("block_bytes", format!("{block} is not 512 or 4096")));
        }
        for key in ["request_bytes_max", "allocation_chunk_bytes"] {
            if !self.get(key).is_multiple_of(4096) {
                return Some((key, format!("{} is not a multiple of 4096", self.get(key))));
            }
        }
        if self.kind == Kind::Card && !self.get("erase_block_bytes").is_multiple_of(self.get("page_bytes")) {
            let page = self.get("page_bytes");
            return Some(("erase_block_bytes", format!("it is not a multiple of page_bytes, {page}")));
        }
        if self.kind == Kind::Flash && self.get("memory_bytes") == 0 && self.get("volatile") == 1 {
            return Some(("volatile", "there is no buffer to be lost: memory_bytes is 0".to_owned()));
        }
        None
    }

    /// Changes one value, as an override on the command line does. `rate` stands for the byte rate that limits the
    /// device as a whole.
    ///
    /// # Errors
    /// When the key does not exist, or the value is not allowed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), InputError> {
        let error = |what: String| InputError {
            file: format!("device {}", self.name),
            line: 0,
            key: Some(key.to_owned()),
            what,
        };
        match (key, value) {
            ("scheduler", "deadline" | "none") => self.deadline = value == "deadline",
            ("scheduler", _) => return Err(error(format!("{value} is not one of deadline, none"))),
            ("allocation", "delayed" | "at-submission") => self.allocate_at_submission = value == "at-submission",
            ("allocation", _) => return Err(error(format!("{value} is not one of delayed, at-submission"))),
            _ => {
                let keys: &[&str] = if key == "rate" { self.kind.rate_keys() } else { &[key] };
                let found = self.kind.keys().find(|known| known.name == keys[0]).ok_or_else(|| {
                    let known: Vec<&str> = self.kind.keys().map(|key| key.name).collect();
                    let near =
                        did_you_mean(key, ["rate", "scheduler", "allocation"].into_iter().chain(known.iter().copied()));
                    error(format!("no such key{near}; there are rate, scheduler, allocation, {}", known.join(", ")))
                })?;
                let (unit, first, last) = (found.unit, found.first, found.last);
                let range = || format!("{} to {}", unit.show(first), unit.show(last));
                let number = unit
                    .parse(value)
                    .ok_or_else(|| error(format!("{value} is not {} ({})", unit.example(), range())))?;
                if !(first..=last).contains(&number) {
                    return Err(error(format!("{value} is not within {}", range())));
                }
                for parameter in self.parameters.iter_mut().filter(|parameter| keys.contains(&parameter.key.name)) {
                    (parameter.value, parameter.source) = (number, "given".to_owned());
                }
            }
        }
        match self.contradiction() {
            Some((key, what)) => {
                Err(InputError { file: format!("device {}", self.name), line: 0, key: Some(key.to_owned()), what })
            }
            None => Ok(()),
        }
    }
}

fn parameter(source: &Source<'_>, table: &DeTable<'_>, key: &'static Key) -> Result<Parameter, InputError> {
    let range = (key.first, key.last);
    match (document::value(table, key.name), key.default) {
        (Some(value), _) => {
            let number = document::number(source, key.name, value, key.unit, range)?;
            Ok(Parameter { key, value: number, source: source.comment(&value.span()) })
        }
        (None, Some(default)) => Ok(Parameter { key, value: default, source: "default".to_owned() }),
        (None, None) => {
            let (first, last) = (key.unit.show(range.0), key.unit.show(range.1));
            let what = format!("is missing: {} ({first} to {last})", key.doc);
            Err(source.error(&(0..0), Some(key.name), what))
        }
    }
}
