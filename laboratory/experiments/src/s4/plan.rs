//! The options of s4, read and checked.
//!
//! Owns: the variants, the options with their ranges and defaults, the short form of a quick run.
//! Does not own: the runs.
//! Invariants: a plan that was read can be run.

use afflux_engine::settings::{Knob, TableKnob, did_you_mean};
use afflux_simulator::LinkOptions;
use afflux_simulator::catalogue::{DeviceChoice, Model};

use crate::experiment::{LabError, Request};
use crate::options::{List, list, number, rate, size};

/// The records of the thread.
const RECORDS: &str = "10485760,1048576,524288,262144,131072,65536,32768,16384,8192,4096";

/// The law of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Law {
    /// Linux 3.6 with the seed's patch.
    Linux,
    /// As [`Law::Linux`], but with the bandwidth estimate of later kernels.
    LinuxByCompletions,
    /// The engine's own law.
    Afflux,
}

/// The law of a variant, and the life of its servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) law: Law,
    /// Whether one server has all copies of a column, one after the other, instead of a new server for each.
    pub(super) keeps: bool,
}

/// The name of the engine under its own policy.
pub(super) const OWN: &str = "afflux";

const SERVERS: [Variant; 5] = [
    Variant { name: "linux-3.6", law: Law::Linux, keeps: false },
    Variant { name: "linux-3.6-kept", law: Law::Linux, keeps: true },
    Variant { name: "linux-3.6-completions", law: Law::LinuxByCompletions, keeps: false },
    Variant { name: "linux-3.6-completions-kept", law: Law::LinuxByCompletions, keeps: true },
    Variant { name: OWN, law: Law::Afflux, keeps: false },
];

/// The default of the option: all of them.
const ALL_VARIANTS: &str = "linux-3.6,linux-3.6-kept,linux-3.6-completions,linux-3.6-completions-kept,afflux";

impl Variant {
    /// The variant of this name; the error lists the names.
    pub(super) fn read(name: &str) -> Result<Self, String> {
        let found = SERVERS.into_iter().find(|variant| variant.name == name);
        found.ok_or_else(|| {
            let meant = did_you_mean(name, SERVERS.iter().map(|variant| variant.name));
            format!("there is no variant '{name}'{meant}; there are {ALL_VARIANTS}")
        })
    }
}

/// The model disk: bytes of one command, and the fixed time of a command.
const DISK: &str = "usb2-disk";

/// A column: the threshold from which the server writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Threshold {
    /// `dirty_background_centisecs`; 0: off.
    Centisecs(u64),
    /// `dirty_background_bytes`.
    Bytes(u64),
    /// None, but the machine's knobs tuned by hand: [`Threshold::TUNED`].
    Tuned,
}

impl Threshold {
    pub(super) const OFF: Self = Self::Centisecs(0);

    /// The knobs of [`Threshold::Tuned`], as the thread's reviewer (Dave Chinner) asked for them.
    const TUNED: [(&str, u64); 4] = [
        ("dirty_background_ratio", 5),
        ("dirty_ratio", 10),
        ("dirty_expire_centisecs", 1000),
        ("dirty_writeback_centisecs", 1),
    ];

    /// The knobs of a server with this threshold, by name.
    pub(super) fn knobs(self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Centisecs(centisecs) => vec![("dirty_background_centisecs", centisecs)],
            Self::Bytes(bytes) => vec![("dirty_background_bytes", bytes)],
            Self::Tuned => Self::TUNED.to_vec(),
        }
    }

    /// The bytes; none for other thresholds.
    pub(super) fn bytes(self) -> Option<u64> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// The centiseconds; 0 for other thresholds.
    pub(super) fn centisecs(self) -> u64 {
        match self {
            Self::Centisecs(centisecs) => centisecs,
            Self::Bytes(_) | Self::Tuned => 0,
        }
    }
}

/// A whole number of frames.
fn in_frames(bytes: u64) -> u64 {
    let frame = afflux_frames::FRAME_BYTES as u64;
    bytes / frame * frame
}

/// Bytes of a WRITE on the wire; `None`: as large as the record.
type WriteSize = Option<u32>;

/// The plan of a run.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Plan {
    /// rate of the network, Ethernet's overhead included; delay=, loss= and others behind a comma
    #[arg(long, value_name = "RATE", default_value = "100Mbit", value_parser = link)]
    pub(super) link: LinkOptions,
    /// bytes a second of the server's disk
    #[arg(long = "disk-rate", value_name = "RATE", default_value = "25MB", value_parser = rate(1_000_000..=500_000_000))]
    pub(super) disk_bytes_per_s: u64,
    /// bytes of the file
    #[arg(long = "size", value_name = "SIZE", default_value = "1GB", value_parser = size(4_096..=100_000_000_000))]
    pub(super) file_bytes: u64,
    /// bytes that the client sends before it commits
    #[arg(id = "client-window", long, value_name = "SIZE", default_value = "100MB")]
    #[arg(value_parser = size(1_000_000..=100_000_000_000))]
    pub(super) window_bytes: u64,
    /// values of dirty_background_centisecs
    #[arg(long, value_name = "LIST", default_value = "0,300,200,100", value_parser = list(centisecs))]
    pub(super) centisecs: List<u64>,
    /// values of dirty_background_bytes in place of a time, a column each; simulated only
    #[arg(long, value_name = "LIST", default_value = "25MB", value_parser = list(size(4_096..=100_000_000_000)))]
    background_bytes: List<u64>,
    /// a column more: background 5 %, limit 10 %, expiry 1,000 cs, interval 1 cs; simulated only
    #[arg(long)]
    tuned: bool,
    /// clients that copy at once, each its part of the size to a file of its own, with a window of its own
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = number(1..=100))]
    pub(super) clients: u64,
    /// an innocent second disk of this rate, half loaded by a program; simulated only
    #[arg(long, value_name = "RATE", value_parser = rate(1_000_000..=500_000_000))]
    pub(super) beside: Option<u64>,
    /// bytes of one write of the client's program
    #[arg(id = "record", long, value_name = "LIST", default_value = RECORDS, value_parser = list(record))]
    pub(super) records: List<u32>,
    /// bytes of one WRITE on the wire, or 'record': no gathering, a record a WRITE, up to 1 MiB
    #[arg(long = "write-size", value_name = "SIZE", default_value = "32KiB", value_parser = write_size)]
    pub(super) write_bytes: WriteSize,
    /// memory of the server that may become dirty: its thresholds are 20 and 10 percent of it
    #[arg(long = "memory", value_name = "SIZE", default_value = "900MB", value_parser = memory)]
    pub(super) memory_bytes: u64,
    /// servers that are simulated
    #[arg(long, value_name = "LIST", default_value = ALL_VARIANTS, value_parser = list(Variant::read))]
    pub(super) variants: List<Variant>,
    /// measured copies of each server; one with --quick
    #[arg(long, value_name = "NUMBER", default_value = "3", value_parser = number(1..=20))]
    pub(super) samples: u64,
    /// Thresholds to simulate: those to measure, and thresholds in bytes.
    #[arg(skip)]
    pub(super) columns: Vec<Threshold>,
    /// Whether the parameters are the seed's, so that its figures can be compared.
    #[arg(skip)]
    pub(super) is_published: bool,
}

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        let mut plan: Self = request.read()?;
        // The file stays whole, because the estimate needs its length; so do enough copies that a stored estimate has
        // come down.
        request.shorten("variants", &mut plan.variants, vec![SERVERS[1], SERVERS[4]]);
        request.shorten("record", &mut plan.records, vec![65_536, 32_768, 16_384, 8192]);
        request.shorten("samples", &mut plan.samples, 1);
        let bytes = plan.background_bytes.iter().copied().map(Threshold::Bytes);
        let tuned = plan.tuned.then_some(Threshold::Tuned);
        plan.columns = plan.centisecs.iter().copied().map(Threshold::Centisecs).chain(bytes).chain(tuned).collect();
        plan.is_published = plan.link == LinkOptions::default()
            && (plan.disk_bytes_per_s, plan.file_bytes, plan.window_bytes) == (25_000_000, 1_000_000_000, 100_000_000)
            && (plan.memory_bytes, plan.write_bytes) == (in_frames(900_000_000), Some(32 << 10))
            && (plan.clients, plan.beside) == (1, None);
        plan.check(request)?;
        Ok(plan)
    }

    /// Refuses combinations of values.
    fn check(&self, request: &Request) -> Result<(), LabError> {
        if request.measured && self.beside.is_some() {
            return Err(request.refused("beside", "a measured run has one disk".to_owned()));
        }
        if request.measured && self.clients > 1 {
            return Err(request.refused("clients", "a measured run has one client".to_owned()));
        }
        if self.window_bytes > self.file_bytes_each() {
            let (window, file) =
                (afflux_report::units::data(self.window_bytes), afflux_report::units::data(self.file_bytes_each()));
            let why = format!("a window of {window} is more than a client's file has ({file}, --size and --clients)");
            return Err(request.refused("client-window", why));
        }
        let rate_alone = LinkOptions { bits_per_second: self.link.bits_per_second, ..LinkOptions::default() };
        if request.measured && self.link != rate_alone {
            return Err(request.refused("link", "where it is measured a link has a rate and nothing else".to_owned()));
        }
        Ok(())
    }

    /// The server's disk.
    pub(super) fn disk(&self) -> Result<Model, LabError> {
        disk_of(self.disk_bytes_per_s).map_err(LabError::Failed)
    }

    /// Bytes of each client's file.
    pub(super) fn file_bytes_each(&self) -> u64 {
        self.file_bytes / self.clients
    }

    /// Bytes of a WRITE on the wire, for a program that writes records of this size.
    pub(super) fn write_bytes_for(&self, record_bytes: u32) -> u32 {
        self.write_bytes.unwrap_or(record_bytes.min(1 << 20))
    }
}

fn link(text: &str) -> Result<LinkOptions, String> {
    // The error already begins with the option's name.
    LinkOptions::parse(&format!("rate={text}")).map_err(|error| error.to_string().replacen("link: ", "", 1))
}

/// The range is the knob's own.
fn centisecs(text: &str) -> Result<u64, String> {
    let knob = Knob::BackgroundCentisecs.info();
    number(knob.min..=knob.max)(text)
}

fn record(text: &str) -> Result<u32, String> {
    size(512..=1 << 30)(text).map(|bytes| bytes as u32)
}

fn memory(text: &str) -> Result<u64, String> {
    size(16_000_000..=64_000_000_000)(text).map(in_frames)
}

fn write_size(text: &str) -> Result<WriteSize, String> {
    match text {
        "record" => Ok(None),
        text => {
            let bytes = size(4_096..=1 << 20)(text);
            bytes.map(|bytes| Some(bytes as u32)).map_err(|why| why + ", or 'record'")
        }
    }
}

/// The seed's disk at another rate: the fixed time of a command stays the same, and the platter stays faster than the
/// interface.
pub(super) fn disk_of(bytes_per_s: u64) -> Result<Model, String> {
    let choice = DeviceChoice { name: DISK.to_owned(), overrides: Vec::new() };
    let mut model = choice.model(None).map_err(|error| error.to_string())?;
    let (command, extra_ns) = (model.get("request_bytes_max"), model.get("command_ns"));
    let bytes_ns = (command * 1_000_000_000 / bytes_per_s).saturating_sub(extra_ns).max(1);
    let interface = command * 1_000_000_000 / bytes_ns;
    model.set("interface_bytes_per_second", &interface.to_string()).map_err(|error| error.to_string())?;
    let slowest = model.zones.iter().map(|(_, rate)| *rate).min().unwrap_or(u64::MAX);
    if interface > slowest {
        model.zones.iter_mut().for_each(|(_, rate)| *rate = (*rate * interface).div_ceil(slowest));
    }
    Ok(model)
}

#[cfg(test)]
mod tests;
