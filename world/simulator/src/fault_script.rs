//! Fault scripts: a list of faults in TOML, for `--faults FILE`.
//!
//! ```toml
//! [[fault]]
//! do = "error"            # error, lost, delay, hang, bad-sectors, no-space, power-loss, kill, link-cut
//! device = "disk"         # all devices if it is left out
//! target = "write"        # read, write, data (either), sync, layout, any
//! file = "data.0"
//! offset = "1 MiB"
//! len = "64 KiB"
//! medium = "3 GiB"        # instead of a file's range: where on the medium
//! skip = 10
//! times = 3
//! probability_per_mille = 500
//! from = "2 s"
//! until = "10 s"
//! every = "1 s"           # periods: in each, it holds for `lasting`
//! lasting = "50 ms"
//! delay = "200 ms"
//! at = "5 s"              # of what happens once: power-loss, kill
//! ```
//!
//! Owns: the grammar, the combinations of keys that are allowed, the meaning of each entry.
//! Does not own: carrying faults out: a disk carries out a device's faults (`disk`), the run those of the machine or a
//! link.
//! Invariants: every parsed entry can be carried out.

use afflux_engine::DeviceError;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::disk::{Fault, FaultTarget, FaultWhat, FaultWindow};
use crate::document::{InputError, Source, Unit, known_keys, number, text, value, word};

/// Most entries of a script.
const ENTRIES_MAX: usize = 10_000;
/// Linux's errno of an I/O error.
const EIO: i32 = 5;

/// A whole script.
#[derive(Clone, Debug, Default)]
pub struct FaultScript {
    /// Its name, for messages.
    pub file: String,
    /// Its entries, in the order of the file.
    pub entries: Vec<ScriptedFault>,
}

/// One entry.
#[derive(Clone, Debug)]
pub struct ScriptedFault {
    /// The line it begins on, for messages.
    pub line: usize,
    /// The device that it affects; all devices if `None`. Unused for faults of the machine.
    pub device: Option<String>,
    /// The file that it affects, by its path on the device; all files if `None`.
    pub file: Option<String>,
    /// When it begins, in virtual nanoseconds.
    pub from_ns: u64,
    /// When it ends; [`u64::MAX`] is never.
    pub until_ns: u64,
    /// The fault.
    pub what: ScriptedWhat,
}

/// A fault of a script.
#[derive(Clone, Debug)]
pub enum ScriptedWhat {
    /// Requests of a device meet faults.
    Requests {
        /// The requests and their fate; the file is the entry's.
        fault: Fault,
        /// When and where.
        window: FaultWindow,
    },
    /// The device completes nothing.
    Hang,
    /// Files get no more space.
    NoSpace,
    /// The machine and its devices lose power once, at `from_ns`. Memory is lost. Each sector that is not durable
    /// survives or not, at random.
    PowerLoss,
    /// The process is killed once, at `from_ns`. Memory is lost. Its devices continue and carry out the submitted
    /// requests.
    ProcessKill,
    /// Links carry nothing.
    LinkCut,
}

const WHATS: [&str; 9] =
    ["error", "lost", "delay", "hang", "bad-sectors", "no-space", "power-loss", "kill", "link-cut"];
const KEYS: [&str; 16] = [
    "do",
    "device",
    "target",
    "file",
    "offset",
    "len",
    "medium",
    "skip",
    "times",
    "probability_per_mille",
    "from",
    "until",
    "every",
    "lasting",
    "delay",
    "at",
];
const TIMES: [&str; 2] = ["from", "until"];
const REQUESTS: [&str; 9] =
    ["target", "file", "offset", "len", "medium", "skip", "times", "probability_per_mille", "every"];

impl FaultScript {
    /// Parses a script. `file` is used in messages.
    ///
    /// # Errors
    /// When the text is not TOML, or a key is unknown, unused by its entry, missing, or out of its range.
    pub fn parse(file: &str, text: &str) -> Result<Self, InputError> {
        let source = Source { file, text };
        let document = source.parse()?;
        let table = document.get_ref();
        known_keys(&source, table, &["fault"])?;
        let Some(list) = value(table, "fault") else { return Ok(Self::default()) };
        let error = |what: &str| source.error(&list.span(), Some("fault"), what);
        let DeValue::Array(entries) = list.get_ref() else { return Err(error("is written [[fault]]")) };
        if entries.len() > ENTRIES_MAX {
            return Err(error(&format!("{} entries are more than {ENTRIES_MAX}", entries.len())));
        }
        let entries = entries.iter().map(|entry| match entry.get_ref() {
            DeValue::Table(table) => FaultEntry { source: &source, table, span: entry.span() }.parse(),
            _ => Err(source.error(&entry.span(), Some("fault"), "is written [[fault]]")),
        });
        Ok(Self { file: file.to_owned(), entries: entries.collect::<Result<_, _>>()? })
    }
}

/// An entry that is being parsed.
struct FaultEntry<'a, 'i> {
    source: &'a Source<'i>,
    table: &'a DeTable<'i>,
    span: std::ops::Range<usize>,
}

impl FaultEntry<'_, '_> {
    fn error(&self, key: &str, what: impl Into<String>) -> InputError {
        let span = value(self.table, key).map_or(self.span.clone(), toml::Spanned::span);
        self.source.error(&span, Some(key), what)
    }

    fn number(&self, key: &str, unit: Unit, first: u64, last: u64) -> Result<Option<u64>, InputError> {
        value(self.table, key).map(|value| number(self.source, key, value, unit, (first, last))).transpose()
    }

    fn time_ns(&self, key: &str) -> Result<Option<u64>, InputError> {
        // A reader would take a bare number for seconds, but it would mean nanoseconds. Only 0 is the same in both.
        let is_number = |text: &&str| text.trim().replace('_', "").parse::<f64>().is_ok();
        let bare = match value(self.table, key).map(Spanned::get_ref) {
            Some(DeValue::Integer(integer)) => Some(integer.as_str()),
            Some(DeValue::Float(float)) => Some(float.as_str()),
            Some(DeValue::String(text)) => Some(text.as_ref()).filter(is_number),
            _ => None,
        };
        if let Some(text) = bare.filter(|text| *text != "0") {
            return Err(self.error(key, format!("{text} has no unit; write \"{text} s\", or min, ms, us or ns")));
        }
        self.number(key, Unit::Nanoseconds, 0, 1_000_000_000_000_000)
    }

    fn text(&self, key: &str) -> Result<Option<String>, InputError> {
        value(self.table, key).map(|value| text(self.source, key, value)).transpose()
    }

    fn word(&self, key: &str, words: &[&'static str]) -> Result<Option<&'static str>, InputError> {
        value(self.table, key).map(|value| word(self.source, key, value, words)).transpose()
    }

    /// Checks that all keys are used by this kind of entry and that the required ones are present.
    fn check_keys(&self, what: &str, useful: &[&str], required: &[&str]) -> Result<(), InputError> {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if name != "do" && !useful.contains(&name) && !required.contains(&name) {
                let known: Vec<&str> = required.iter().chain(useful).copied().collect();
                return Err(self.error(name, format!("is of no use to {what}, which has {}", known.join(", "))));
            }
        }
        match required.iter().find(|key| value(self.table, key).is_none()) {
            Some(key) => Err(self.error(key, format!("is missing: {what} needs it"))),
            None => Ok(()),
        }
    }

    fn parse(&self) -> Result<ScriptedFault, InputError> {
        known_keys(self.source, self.table, &KEYS)?;
        let Some(what) = self.word("do", &WHATS)? else {
            return Err(self.error("do", format!("is missing: one of {}", WHATS.join(", "))));
        };
        let mut requests = vec!["device", "lasting"];
        requests.extend(TIMES.iter().chain(&REQUESTS));
        match what {
            "error" | "lost" => self.check_keys(what, &requests, &[])?,
            "delay" => self.check_keys(what, &requests, &["delay"])?,
            "bad-sectors" => {
                self.check_keys(what, &["device", "target", "from", "until", "file", "offset", "medium"], &["len"])?
            }
            "power-loss" | "kill" => self.check_keys(what, &[], &["at"])?,
            "link-cut" => self.check_keys(what, &TIMES, &[])?,
            _ => self.check_keys(what, &["device", "from", "until"], &[])?,
        }
        let from_ns = self.time_ns("at")?.or(self.time_ns("from")?).unwrap_or(0);
        let until_ns = self.time_ns("until")?.unwrap_or(u64::MAX);
        if until_ns <= from_ns {
            let from = Unit::Nanoseconds.show(from_ns);
            return Err(self.error("until", format!("{} is not after from, {from}", Unit::Nanoseconds.show(until_ns))));
        }
        let what = match what {
            "hang" => ScriptedWhat::Hang,
            "no-space" => ScriptedWhat::NoSpace,
            "power-loss" => ScriptedWhat::PowerLoss,
            "kill" => ScriptedWhat::ProcessKill,
            "link-cut" => ScriptedWhat::LinkCut,
            _ => self.requests(what, from_ns, until_ns)?,
        };
        let line = self.source.line(&self.span);
        Ok(ScriptedFault { line, device: self.text("device")?, file: self.text("file")?, from_ns, until_ns, what })
    }

    fn requests(&self, what: &str, from_ns: u64, until_ns: u64) -> Result<ScriptedWhat, InputError> {
        let io = DeviceError::Io { errno: EIO };
        let delay_ns = self.time_ns("delay")?.unwrap_or(0);
        let fault_what = match what {
            "lost" => FaultWhat::Lost,
            "delay" => FaultWhat::Delay { ns: delay_ns },
            _ => FaultWhat::Error(io),
        };
        let target = match self.word("target", &["any", "read", "write", "data", "sync", "layout"])? {
            Some("read") => FaultTarget::Read,
            Some("write") => FaultTarget::Write,
            Some("data") => FaultTarget::Data,
            Some("sync") => FaultTarget::Sync,
            Some("layout") => FaultTarget::Layout,
            // Bad sectors affect data only; a request without a range has none.
            None if what == "bad-sectors" => FaultTarget::Data,
            _ => FaultTarget::Any,
        };
        let offset = self.number("offset", Unit::Bytes, 0, i64::MAX as u64)?;
        let len = self.number("len", Unit::Bytes, 1, i64::MAX as u64)?;
        let start = self.number("medium", Unit::Bytes, 0, i64::MAX as u64)?;
        if start.is_some() && offset.is_some() {
            return Err(self.error("medium", "and offset exclude each other: a range is of the medium or of a file"));
        }
        let mut fault = Fault::always(target, fault_what);
        fault.skip = self.number("skip", Unit::Count, 0, i64::MAX as u64)?.unwrap_or(0);
        fault.times = self.number("times", Unit::Count, 1, i64::MAX as u64)?;
        fault.per_mille = self.number("probability_per_mille", Unit::PerMille, 1, 1000)?.unwrap_or(1000);
        let every_ns = self.time_ns("every")?.unwrap_or(0);
        let lasting_ns = self.time_ns("lasting")?;
        if (every_ns > 0) != lasting_ns.is_some() || lasting_ns.is_some_and(|lasting_ns| lasting_ns > every_ns) {
            return Err(self.error("lasting", "goes with every, and is at most as long"));
        }
        let mut medium = None;
        match start {
            Some(start) => medium = Some((start, len.unwrap_or(u64::MAX))),
            None => (fault.offset, fault.len) = (offset.unwrap_or(0), len.unwrap_or(u64::MAX)),
        }
        let lasting_ns = lasting_ns.unwrap_or(0);
        let window = FaultWindow { from_ns, until_ns, every_ns, lasting_ns, medium };
        Ok(ScriptedWhat::Requests { fault, window })
    }
}

#[cfg(test)]
mod tests;
