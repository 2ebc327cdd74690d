//! What a run of s4 is asked for: its options, read and checked.
//!
//! Owns: the options with their ranges and defaults, what less a quick run does.
//! Does not own: running anything.
//! Invariants: a plan that was read can be run.

use engine::settings::Knob;
use simulator::LinkOptions;
use simulator::catalogue::{DeviceChoice, Model};

use crate::experiment::{LabError, OptionInfo, Request};
use crate::options;

const LINK: OptionInfo = OptionInfo {
    name: "link",
    value: "RATE",
    default: "100Mbit",
    doc: "rate of the network, Ethernet's overhead included; delay=, loss= and others behind a comma",
};
const DISK_RATE: OptionInfo =
    OptionInfo { name: "disk-rate", value: "RATE", default: "25MB", doc: "bytes a second of the server's disk" };
const SIZE: OptionInfo = OptionInfo { name: "size", value: "SIZE", default: "1GB", doc: "bytes of the file" };
const WINDOW: OptionInfo = OptionInfo {
    name: "client-window",
    value: "SIZE",
    default: "100MB",
    doc: "what the client keeps dirty before it commits",
};
const CENTISECS: OptionInfo = OptionInfo {
    name: "centisecs",
    value: "LIST",
    default: "0,300,200,100",
    doc: "values of dirty_background_centisecs",
};
const RECORD: OptionInfo = OptionInfo {
    name: "record",
    value: "LIST",
    default: "10485760,1048576,524288,262144,131072,65536,32768,16384,8192,4096",
    doc: "bytes of one write of the client's program",
};
const WRITE_SIZE: OptionInfo = OptionInfo {
    name: "write-size",
    value: "SIZE",
    default: "32KiB",
    doc: "bytes of one WRITE on the wire, or 'record': no gathering, a record a WRITE, up to 1 MiB",
};
const MEMORY: OptionInfo = OptionInfo {
    name: "memory",
    value: "SIZE",
    default: "900MB",
    doc: "memory of the server that may become dirty: its thresholds are 20 and 10 percent of it",
};

const SAMPLES: OptionInfo = OptionInfo {
    name: "samples",
    value: "NUMBER",
    default: "3",
    doc: "measured copies of each server; one with --quick",
};
const LIMITERS: OptionInfo = OptionInfo {
    name: "limiters",
    value: "auto|kernel|process",
    default: "auto",
    doc: "who slows disk and network down where it is measured: the kernel (needs root) or this process",
};

pub(super) const OPTIONS: &[OptionInfo] =
    &[LINK, DISK_RATE, SIZE, WINDOW, CENTISECS, RECORD, WRITE_SIZE, MEMORY, SAMPLES, LIMITERS];

/// Who slows disk and network down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Limiters {
    /// The kernel, or this process where that cannot be had.
    Auto,
    Kernel,
    Process,
}

/// Bytes that the model disk takes in one command, and what a command costs beside them.
const DISK: &str = "usb2-disk";

/// What is run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) link: LinkOptions,
    pub(super) disk: Model,
    pub(super) disk_bytes_per_s: u64,
    pub(super) file_bytes: u64,
    pub(super) window_bytes: u64,
    pub(super) centisecs: Vec<u64>,
    pub(super) records: Vec<u32>,
    /// `None`: as large as the record.
    pub(super) write_bytes: Option<u32>,
    pub(super) memory_bytes: u64,
    /// Measured copies of each server.
    pub(super) samples: u64,
    pub(super) limiters: Limiters,
    /// What was measured for the seed, so that its figures may stand beside ours.
    pub(super) is_published: bool,
}

/// A quick run writes less, with one size of record.
const QUICK: [(&OptionInfo, &str); 3] = [(&SIZE, "300MB"), (&RECORD, "32768"), (&SAMPLES, "1")];

impl Plan {
    pub(super) fn read(request: &Request) -> Result<Self, LabError> {
        let mut request = request.clone();
        if request.quick {
            let quick = QUICK.iter().map(|(option, value)| (option.name.to_owned(), (*value).to_owned()));
            // What was given stands behind it, and counts.
            request.given.splice(0..0, quick);
        }
        let centisecs = Knob::BackgroundCentisecs.info();
        let disk_bytes_per_s = request.value(&DISK_RATE, options::rate(1_000_000, 50_000_000))?;
        let disk = request.value(&DISK_RATE, |_| disk_of(disk_bytes_per_s))?;
        let plan = Self {
            link: request.value(&LINK, link)?,
            disk,
            disk_bytes_per_s,
            file_bytes: request.value(&SIZE, options::size(4_096, 100_000_000_000))?,
            window_bytes: request.value(&WINDOW, options::size(1_000_000, 100_000_000_000))?,
            centisecs: request.list(&CENTISECS, options::number(centisecs.min, centisecs.max))?,
            records: request.list(&RECORD, |text| options::size(512, 1 << 30)(text).map(|bytes| bytes as u32))?,
            write_bytes: request.value(&WRITE_SIZE, |text| match text {
                "record" => Ok(None),
                text => {
                    let bytes = options::size(4_096, 1 << 20)(text).map_err(|why| why + ", or 'record'")?;
                    Ok(Some(bytes as u32))
                }
            })?,
            memory_bytes: request.value(&MEMORY, |text| {
                // In whole frames.
                let frame = frames::FRAME_BYTES as u64;
                options::size(16_000_000, 64_000_000_000)(text).map(|bytes| bytes / frame * frame)
            })?,
            samples: request.value(&SAMPLES, options::number(1, 20))?,
            limiters: request.value(&LIMITERS, limiters)?,
            is_published: false,
        };
        plan.check(&request)?;
        let seed = LinkOptions::default();
        let is_published = plan.link == seed
            && (plan.disk_bytes_per_s, plan.file_bytes, plan.window_bytes) == (25_000_000, 1_000_000_000, 100_000_000);
        Ok(Self { is_published, ..plan })
    }

    /// Refuses what single values cannot be refused for.
    fn check(&self, request: &Request) -> Result<(), LabError> {
        if self.window_bytes > self.file_bytes {
            let (window, file) = (report::units::data(self.window_bytes), report::units::data(self.file_bytes));
            let why = format!("a window of {window} is more than the file has ({file}, --{})", SIZE.name);
            return request.value(&WINDOW, |_| Err(why.clone()));
        }
        let rate_alone = LinkOptions { bits_per_second: self.link.bits_per_second, ..LinkOptions::default() };
        if request.measured && self.link != rate_alone {
            return request.value(&LINK, |_| Err("where it is measured a link has a rate and nothing else".to_owned()));
        }
        Ok(())
    }

    /// Bytes of a WRITE on the wire for a program that writes such records.
    pub(super) fn write_bytes_for(&self, record_bytes: u32) -> u32 {
        self.write_bytes.unwrap_or(record_bytes.min(1 << 20))
    }
}

fn link(text: &str) -> Result<LinkOptions, String> {
    // The option's name stands before it already.
    LinkOptions::parse(&format!("rate={text}")).map_err(|error| error.to_string().replacen("link: ", "", 1))
}

fn limiters(text: &str) -> Result<Limiters, String> {
    match text {
        "auto" => Ok(Limiters::Auto),
        "kernel" => Ok(Limiters::Kernel),
        "process" => Ok(Limiters::Process),
        _ => Err(format!("'{text}' is none of auto, kernel, process")),
    }
}

/// The seed's disk at another rate: what a command costs beside its bytes is the same.
fn disk_of(bytes_per_s: u64) -> Result<Model, String> {
    let choice = DeviceChoice { name: DISK.to_owned(), overrides: Vec::new() };
    let mut model = choice.model(None).map_err(|error| error.to_string())?;
    let (command, extra_ns) = (model.get("request_bytes_max"), model.get("command_ns"));
    let bytes_ns = (command * 1_000_000_000 / bytes_per_s).saturating_sub(extra_ns).max(1);
    let interface = command * 1_000_000_000 / bytes_ns;
    model.set("interface_bytes_per_second", &interface.to_string()).map_err(|error| error.to_string())?;
    Ok(model)
}

#[cfg(test)]
mod tests;
