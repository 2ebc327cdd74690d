//! A scenario: a cache, disks, files and the operations of each task, as text that can be stored.
//!
//! Owns: the operations and their numbers, the text form, its errors.
//! Does not own: the effect of an operation (`ops`), the sources of scenarios (`generate`, `scopes`).
//! Invariants: a written scenario is read back equal. A line that cannot be read is an error that names it; no value is
//! guessed.

use std::fmt::Write as _;

use afflux_engine::DeviceError;
use afflux_engine::eviction::EvictionKind;
use afflux_engine::rare::Rare;
use afflux_simulator::{CPUS_MAX, FaultWhat, Setup, catalogue};

macro_rules! operations {
    ($($variant:ident $name:literal { $($field:ident),* };)*) => {
        /// An operation of a task. All fields are numbers, so that text and shrinking are uniform.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Op {
            $(
                #[allow(missing_docs, reason = "the names say it")]
                $variant { $($field: u64),* },
            )*
        }

        impl Op {
            /// The line of the operation.
            pub fn to_text(self) -> String {
                match self {
                    $(Self::$variant { $($field),* } => {
                        #[allow(unused_mut)]
                        let mut text = $name.to_owned();
                        $(let _ = write!(text, concat!(" ", stringify!($field), "={}"), $field);)*
                        text
                    })*
                }
            }

            pub(super) fn parse(name: &str, fields: &Fields<'_>) -> Result<Self, String> {
                match name {
                    $($name => Ok(Self::$variant { $($field: fields.number(stringify!($field))?),* }),)*
                    _ => Err(format!("no operation is called '{name}'")),
                }
            }

            /// The numbers, for shrinking one by one.
            pub(super) fn numbers(&mut self) -> Vec<(&'static str, &mut u64)> {
                match self {
                    $(Self::$variant { $($field),* } => vec![$((stringify!($field), $field)),*],)*
                }
            }
        }
    };
}

operations! {
    Read "read" { file, offset, len };
    TryRead "try_read" { file, offset, len };
    ReadPinned "read_pinned" { file, offset, len, hold_us };
    TryReadPinned "try_read_pinned" { file, offset, len, hold_us };
    Write "write" { file, offset, len };
    TryWrite "try_write" { file, offset, len };
    SetSize "set_size" { file, size };
    Punch "punch" { file, offset, len };
    Sync "sync" { file, offset, len };
    Drain "drain" { device };
    Discard "discard" { file, remove };
    Invalidate "invalidate" { file };
    HostChange "host_change" { file, size, offset, len };
    Reopen "reopen" { file };
    Rest "rest" {};
    CancelRead "cancel_read" { file, offset, len, after_us };
    CancelPinned "cancel_pinned" { file, offset, len, after_us };
    CancelWrite "cancel_write" { file, offset, len, after_us };
    CancelSync "cancel_sync" { file, offset, len, after_us };
    CancelSetSize "cancel_set_size" { file, size, after_us };
    Sleep "sleep" { us };
    Fault "fault" { device, target, file, offset, len, times, per_mille, what, arg };
    Hang "hang" { device };
    Release "release" { device };
    ClearFaults "clear_faults" { device };
    Capacity "capacity" { device, bytes };
    Knob "knob" { number, value };
}

/// The `name=number` words of a line.
pub(super) struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl Fields<'_> {
    fn optional(&self, name: &str) -> Result<u64, String> {
        if self.0.iter().any(|(own, _)| *own == name) { self.number(name) } else { Ok(0) }
    }

    fn within(&self, name: &str, first: u64, last: u64) -> Result<u64, String> {
        let number = self.number(name)?;
        let error = || format!("'{name}={number}' is out of range ({first} to {last})");
        (first..=last).contains(&number).then_some(number).ok_or_else(error)
    }

    pub(super) fn number(&self, name: &str) -> Result<u64, String> {
        let (_, text) = self.0.iter().find(|(own, _)| *own == name).ok_or_else(|| format!("'{name}=' is missing"))?;
        text.parse().map_err(|_| format!("'{name}={text}' is no number"))
    }
}

/// Virtual CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuSpec {
    /// The number of CPUs.
    pub count: u64,
    /// Time that a task may run while others wait.
    pub slice_ns: u64,
    /// Of 1,000 preemption points, how many switch the task out in any case.
    pub switch_per_mille: u64,
}

/// A disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceSpec {
    /// A device of the catalogue, which determines the time of requests and the volatile cache. Without one, the disk
    /// has a latency and a rate, and serves requests in any order.
    pub model: Option<String>,
    /// Bytes in a block: 512 or 4096.
    pub block: u64,
    /// Most bytes of a request.
    pub request_max: u64,
    /// Most data requests in flight.
    pub depth: u64,
    /// Whether completed writes wait for a sync to be durable: 0 or 1.
    pub volatile: u64,
    /// Nanoseconds before the bytes of a request are transferred.
    pub latency_ns: u64,
    /// Bytes a second.
    pub rate: u64,
    /// Most bytes of all files together.
    pub capacity: u64,
    /// Of 1,000 requests, how many end inside `submit`.
    pub inline_per_mille: u64,
}

impl Default for DeviceSpec {
    /// The defaults of a disk.
    fn default() -> Self {
        Self {
            model: None,
            block: 512,
            request_max: 65_536,
            depth: 4,
            volatile: 1,
            latency_ns: 100_000,
            rate: 20_000_000,
            capacity: 1 << 50,
            inline_per_mille: 0,
        }
    }
}

impl DeviceSpec {
    /// Whether the scenario says the disk's times. A throttled disk's flush takes the latency, and writes go on
    /// meanwhile.
    pub(crate) fn has_times(&self) -> bool {
        self.model.as_deref().is_none_or(|name| name == "throttled")
    }

    fn to_text(&self) -> String {
        let Self { model, block, request_max, depth, volatile, latency_ns, rate, capacity, inline_per_mille } = self;
        let mut text = "device".to_owned();
        if let Some(name) = model {
            let _ = write!(text, " {name}");
        }
        let _ = write!(text, " block={block} request_max={request_max} depth={depth}");
        if self.has_times() {
            let _ = write!(text, " volatile={volatile} latency_ns={latency_ns} rate={rate}");
        }
        let _ = write!(text, " capacity={capacity} inline_per_mille={inline_per_mille}");
        text.push('\n');
        text
    }

    fn parse(model: Option<&str>, fields: &Fields<'_>) -> Result<Self, String> {
        let number = |name| fields.number(name);
        let plain = Self::default();
        if let Some(name) = model.filter(|name| !catalogue::names().contains(name)) {
            return Err(format!("no device is called '{name}'; there are {}", catalogue::names().join(", ")));
        }
        let model = model.map(ToOwned::to_owned);
        let has_times = Self { model: model.clone(), ..Self::default() }.has_times();
        let timing = |name, value| if has_times { number(name) } else { Ok(value) };
        Ok(Self {
            model,
            block: number("block")?,
            request_max: number("request_max")?,
            depth: number("depth")?,
            volatile: timing("volatile", plain.volatile)?,
            latency_ns: timing("latency_ns", plain.latency_ns)?,
            rate: timing("rate", plain.rate)?,
            capacity: number("capacity")?,
            inline_per_mille: number("inline_per_mille")?,
        })
    }
}

/// A file that exists from the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSpec {
    /// The number of its disk.
    pub device: u64,
    /// Bytes at the start.
    pub size: u64,
}

/// One request of a disk that fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailRequest {
    /// The number of the disk.
    pub device: u64,
    /// The number of the request, from 1.
    pub nth: u64,
    /// The kind of failure, as in [`Op::Fault`].
    pub what: u64,
}

/// The complete input of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scenario {
    /// The seed of everything that the other fields leave open.
    pub seed: u64,
    /// Page frames of the cache.
    pub frames: u64,
    /// Virtual time of a step.
    pub step_ns: u64,
    /// The time of a power loss, in microseconds; 0 is never.
    pub crash_us: u64,
    /// The number of steps before a power loss; 0 is never.
    pub crash_step: u64,
    /// The request for frames that finds none, counted from 1; 0 is none of them.
    pub fail_allocation: u64,
    /// Virtual CPUs; without them, any ready task runs, in an order drawn from the seed.
    pub cpus: Option<CpuSpec>,
    /// A kernel's policies, by name; `None` for the engine's own.
    pub policy: Option<String>,
    /// The eviction policy; `None` for the policy's default.
    pub eviction: Option<EvictionKind>,
    /// Requests that fail.
    pub fail_requests: Vec<FailRequest>,
    /// Knobs set before the start.
    pub knobs: Vec<(String, u64)>,
    /// Rare paths of the engine, each with the number of cases in 1,000 that take it.
    pub rare: Vec<(String, u64)>,
    /// The disks.
    pub devices: Vec<DeviceSpec>,
    /// The files.
    pub files: Vec<FileSpec>,
    /// The operations of each task.
    pub tasks: Vec<Vec<Op>>,
}

impl Scenario {
    /// The text that [`Scenario::parse`] reads.
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "world seed={} frames={} step_ns={} crash_us={}\n",
            self.seed, self.frames, self.step_ns, self.crash_us
        );
        if let Some(CpuSpec { count, slice_ns, switch_per_mille }) = self.cpus {
            let _ = writeln!(text, "cpus count={count} slice_ns={slice_ns} switch_per_mille={switch_per_mille}");
        }
        if let Some(name) = &self.policy {
            let _ = writeln!(text, "policy {name}");
        }
        if let Some(kind) = self.eviction {
            let _ = writeln!(text, "eviction {}", kind.name);
        }
        self.write_failures(&mut text);
        for (name, value) in &self.knobs {
            let _ = writeln!(text, "knob_at_start {name} value={value}");
        }
        for (name, per_mille) in &self.rare {
            let _ = writeln!(text, "rare {name} per_mille={per_mille}");
        }
        for device in &self.devices {
            text.push_str(&device.to_text());
        }
        for file in &self.files {
            let _ = writeln!(text, "file device={} size={}", file.device, file.size);
        }
        for task in &self.tasks {
            text.push_str("task\n");
            for op in task {
                let _ = writeln!(text, "  {}", op.to_text());
            }
        }
        text
    }

    fn write_failures(&self, text: &mut String) {
        if self.crash_step > 0 {
            let _ = writeln!(text, "crash_at step={}", self.crash_step);
        }
        if self.fail_allocation > 0 {
            let _ = writeln!(text, "fail_allocation nth={}", self.fail_allocation);
        }
        for FailRequest { device, nth, what } in &self.fail_requests {
            let _ = writeln!(text, "fail_request device={device} nth={nth} what={what}");
        }
    }

    /// Reads what [`Scenario::to_text`] wrote; lines that begin with '#' are comments.
    ///
    /// # Errors
    /// The first line that cannot be read, with the reason; or the reason why the scenario cannot run.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut scenario = Self::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                scenario.parse_line(line).map_err(|error| format!("line {}: {error}", at + 1))?;
            }
        }
        scenario.check()?;
        Ok(scenario)
    }

    /// Refuses a scenario that cannot run.
    fn check(&self) -> Result<(), String> {
        if self.devices.is_empty() || self.files.is_empty() {
            return Err("a scenario has at least one device and one file".to_owned());
        }
        let frames = 64..=1 << 20;
        if !frames.contains(&self.frames) {
            return Err(format!("frames={} is out of range ({} to {})", self.frames, frames.start(), frames.end()));
        }
        Ok(())
    }

    fn parse_line(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let plain: Vec<&str> = words.clone().filter(|word| !word.contains('=')).collect();
        let fields = Fields(words.filter_map(|word| word.split_once('=')).collect());
        let number = |name| fields.number(name);
        match name {
            "world" => {
                self.seed = number("seed")?;
                self.frames = number("frames")?;
                self.step_ns = number("step_ns")?;
                self.crash_us = number("crash_us")?;
            }
            "knob_at_start" => {
                let name = plain.first().ok_or("which knob?")?;
                self.knobs.push(((*name).to_owned(), number("value")?));
            }
            "cpus" => {
                self.cpus = Some(CpuSpec {
                    count: fields.within("count", 1, CPUS_MAX as u64)?,
                    slice_ns: fields.within("slice_ns", 1, 1_000_000_000)?,
                    switch_per_mille: fields.within("switch_per_mille", 0, 1000)?,
                });
            }
            "policy" => {
                let name = plain.first().ok_or("which policy?")?;
                Setup::of(name).map_err(|error| error.to_string())?;
                self.policy = Some((*name).to_owned());
            }
            "eviction" => {
                let name = plain.first().ok_or("which eviction policy?")?;
                self.eviction = Some(afflux_linux_policies::eviction(name)?);
            }
            "crash_at" => self.crash_step = number("step")?,
            "fail_allocation" => self.fail_allocation = number("nth")?,
            "fail_request" => self.fail_requests.push(FailRequest {
                device: number("device")?,
                nth: number("nth")?.max(1),
                what: fields.optional("what")?,
            }),
            "rare" => {
                let name = plain.first().ok_or("which path?")?;
                if Rare::named(name).is_none() {
                    return Err(format!("no rare path is called '{name}'"));
                }
                self.rare.push(((*name).to_owned(), number("per_mille")?));
            }
            "device" => self.devices.push(DeviceSpec::parse(plain.first().copied(), &fields)?),
            "file" => self.files.push(FileSpec { device: number("device")?, size: number("size")? }),
            "task" => self.tasks.push(Vec::new()),
            _ => {
                let op = Op::parse(name, &fields)?;
                self.tasks.last_mut().ok_or("an operation before the first task")?.push(op);
            }
        }
        Ok(())
    }

    /// Whether a failing sync may lose data.
    pub(super) fn loses_data(&self) -> bool {
        let loses = |what: u64| matches!(fault_what(what, 0), FaultWhat::ErrorLosing(_));
        self.fail_requests.iter().any(|failure| loses(failure.what))
            || self.tasks.iter().flatten().any(|op| matches!(op, Op::Fault { what, .. } if loses(*what)))
    }

    /// The number of operations in all tasks.
    pub fn operations(&self) -> usize {
        self.tasks.iter().map(Vec::len).sum()
    }
}

/// The effect of a fault with this number.
pub(crate) fn fault_what(what: u64, delay_ns: u64) -> FaultWhat {
    match what % 6 {
        0 => FaultWhat::Error(DeviceError::Io { errno: 5 }),
        1 => FaultWhat::Error(DeviceError::NoSpace),
        2 => FaultWhat::Lost,
        3 => FaultWhat::Delay { ns: delay_ns },
        4 => FaultWhat::Hang,
        _ => FaultWhat::ErrorLosing(DeviceError::Io { errno: 5 }),
    }
}
