//! The options of s4, read and checked.
//!
//! Owns: the variants, the options with their ranges and defaults, the short form of a quick run.
//! Does not own: the runs.
//! Invariants: a plan that was read can be run.

use afflux_engine::settings::{Knob, TableKnob, did_you_mean};
use afflux_simulator::LinkOptions;
use afflux_simulator::catalogue::{DeviceChoice, Model};

use crate::experiment::{LabError, OptionInfo, Request};
use crate::options::{self, options, values};

/// The records of the thread.
const RECORDS: &str = "10485760,1048576,524288,262144,131072,65536,32768,16384,8192,4096";

options! {
    pub(super) OPTIONS {
        /// rate of the network, Ethernet's overhead included; delay=, loss= and others behind a comma
        LINK: LinkOptions = parsed("link", "RATE", "100Mbit", link);
        /// bytes a second of the server's disk
        DISK_RATE: u64 = rate("disk-rate", "RATE", "25MB", 1_000_000..=500_000_000);
        /// bytes of the file
        SIZE: u64 = size("size", "SIZE", "1GB", 4_096..=100_000_000_000);
        /// bytes that the client sends before it commits
        WINDOW: u64 = size("client-window", "SIZE", "100MB", 1_000_000..=100_000_000_000);
        /// values of dirty_background_centisecs
        CENTISECS: u64 = parsed("centisecs", "LIST", "0,300,200,100", centisecs);
        /// values of dirty_background_bytes in place of a time, a column each; simulated only
        BACKGROUND_BYTES: u64 = size("background-bytes", "LIST", "25MB", 4_096..=100_000_000_000);
        /// a column more: background 5 %, limit 10 %, expiry 1,000 cs, interval 1 cs; simulated only
        TUNED: bool = switch("tuned", "", "");
        /// clients that copy at once, each its part of the size to a file of its own, with a window of its own
        CLIENTS: u64 = number("clients", "NUMBER", "1", 1..=100);
        /// an innocent second disk of this rate, half loaded by a program; simulated only
        BESIDE: u64 = rate("beside", "RATE", "", 1_000_000..=500_000_000);
        /// bytes of one write of the client's program
        RECORD: u64 = size("record", "LIST", RECORDS, 512..=1 << 30);
        /// bytes of one WRITE on the wire, or 'record': no gathering, a record a WRITE, up to 1 MiB
        WRITE_SIZE: Option<u32> = parsed("write-size", "SIZE", "32KiB", write_size);
        /// memory of the server that may become dirty: its thresholds are 20 and 10 percent of it
        MEMORY: u64 = size("memory", "SIZE", "900MB", 16_000_000..=64_000_000_000);
        /// servers that are simulated
        VARIANTS: Variant = parsed("variants", "LIST", ALL_VARIANTS, Variant::read);
        /// measured copies of each server; one with --quick
        SAMPLES: u64 = number("samples", "NUMBER", "3", 1..=20);
    }
}

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

values! {
    /// The plan of a run.
    #[derive(Clone, Debug)]
    pub(super) struct Plan = unchecked(request) {
        pub(super) link: LinkOptions = LINK.value(request)?,
        pub(super) disk_bytes_per_s: u64 = DISK_RATE.value(request)?,
        pub(super) disk: Model = disk_of(disk_bytes_per_s).map_err(|why| DISK_RATE.refused(request, why))?,
        pub(super) file_bytes: u64 = SIZE.value(request)?,
        pub(super) window_bytes: u64 = WINDOW.value(request)?,
        /// Thresholds to measure.
        pub(super) centisecs: Vec<u64> = CENTISECS.list(request)?,
        /// Thresholds to simulate: those to measure, and thresholds in bytes.
        pub(super) columns: Vec<Threshold> = columns(request, &centisecs)?,
        pub(super) clients: u64 = CLIENTS.value(request)?,
        /// The rate of an innocent disk beside the copies.
        pub(super) beside: Option<u64> = BESIDE.value_if_given(request)?,
        pub(super) records: Vec<u32> = RECORD.list(request)?.into_iter().map(|bytes| bytes as u32).collect(),
        /// `None`: as large as the record.
        pub(super) write_bytes: Option<u32> = WRITE_SIZE.value(request)?,
        pub(super) memory_bytes: u64 = in_frames(MEMORY.value(request)?),
        /// Servers to simulate.
        pub(super) variants: Vec<Variant> = VARIANTS.list(request)?,
        /// Measured copies of each server.
        pub(super) samples: u64 = SAMPLES.value(request)?,
        /// Whether the parameters are the seed's, so that its figures can be compared.
        pub(super) is_published: bool = link == LinkOptions::default()
            && (disk_bytes_per_s, file_bytes, window_bytes) == (25_000_000, 1_000_000_000, 100_000_000)
            && Ok(memory_bytes) == MEMORY.read(MEMORY.info.default).map(in_frames)
            && (write_bytes, clients, beside) == (Some(32 << 10), 1, None),
    }
}

/// A quick run leaves out variants and copies. The file stays whole, because the estimate needs its length; so do
/// enough copies that a stored estimate has come down.
const QUICK: [(OptionInfo, &str); 3] =
    [(VARIANTS.info, "linux-3.6-kept,afflux"), (RECORD.info, "65536,32768,16384,8192"), (SAMPLES.info, "1")];

fn columns(request: &Request, centisecs: &[u64]) -> Result<Vec<Threshold>, LabError> {
    let bytes = BACKGROUND_BYTES.list(request)?.into_iter().map(Threshold::Bytes);
    let tuned = TUNED.value(request)?.then_some(Threshold::Tuned);
    Ok(centisecs.iter().copied().map(Threshold::Centisecs).chain(bytes).chain(tuned).collect())
}

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        let mut request = request.clone();
        if request.quick {
            let quick = QUICK.iter().map(|(option, value)| (option.name.to_owned(), (*value).to_owned()));
            // The given options follow, so they override these.
            request.given.splice(0..0, quick);
        }
        let plan = Self::unchecked(&request)?;
        plan.check(&request)?;
        Ok(plan)
    }

    /// Refuses combinations of values.
    fn check(&self, request: &Request) -> Result<(), LabError> {
        if request.measured && self.beside.is_some() {
            return Err(BESIDE.refused(request, "a measured run has one disk".to_owned()));
        }
        if request.measured && self.clients > 1 {
            return Err(CLIENTS.refused(request, "a measured run has one client".to_owned()));
        }
        if self.window_bytes > self.file_bytes_each() {
            let (window, file) =
                (afflux_report::units::data(self.window_bytes), afflux_report::units::data(self.file_bytes_each()));
            let why = format!(
                "a window of {window} is more than a client's file has ({file}, --{} and --{})",
                SIZE.info.name, CLIENTS.info.name
            );
            return Err(WINDOW.refused(request, why));
        }
        let rate_alone = LinkOptions { bits_per_second: self.link.bits_per_second, ..LinkOptions::default() };
        if request.measured && self.link != rate_alone {
            return Err(LINK.refused(request, "where it is measured a link has a rate and nothing else".to_owned()));
        }
        Ok(())
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
    options::number(CENTISECS.info, knob.min..=knob.max).read(text)
}

/// `None`: as large as the record.
fn write_size(text: &str) -> Result<Option<u32>, String> {
    match text {
        "record" => Ok(None),
        text => {
            let bytes = options::size(WRITE_SIZE.info, 4_096..=1 << 20).read(text);
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
