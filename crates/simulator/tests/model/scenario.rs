//! A scenario: a cache, disks, files, and what each task does, as text that can be kept.

use std::fmt::Write as _;

macro_rules! operations {
    ($($variant:ident $name:literal { $($field:ident),* };)*) => {
        /// What a task does next. All fields are numbers, so that text and shrinking are uniform.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Op {
            $($variant { $($field: u64),* },)*
        }

        impl Op {
            pub(crate) fn to_text(self) -> String {
                match self {
                    $(Self::$variant { $($field),* } => {
                        #[allow(unused_mut)]
                        let mut text = $name.to_owned();
                        $(let _ = write!(text, concat!(" ", stringify!($field), "={}"), $field);)*
                        text
                    })*
                }
            }

            pub(crate) fn parse(name: &str, fields: &Fields<'_>) -> Result<Self, String> {
                match name {
                    $($name => Ok(Self::$variant { $($field: fields.number(stringify!($field))?),* }),)*
                    _ => Err(format!("no operation is called '{name}'")),
                }
            }

            /// The numbers, to be made smaller one by one.
            pub(crate) fn numbers(&mut self) -> Vec<(&'static str, &mut u64)> {
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
pub(crate) struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl Fields<'_> {
    pub(crate) fn number(&self, name: &str) -> Result<u64, String> {
        let (_, text) = self.0.iter().find(|(own, _)| *own == name).ok_or_else(|| format!("'{name}=' is missing"))?;
        text.parse().map_err(|_| format!("'{name}={text}' is no number"))
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DeviceSpec {
    pub(crate) block: u64,
    pub(crate) request_max: u64,
    pub(crate) depth: u64,
    pub(crate) volatile: u64,
    pub(crate) latency_ns: u64,
    pub(crate) rate: u64,
    pub(crate) capacity: u64,
    pub(crate) inline_per_mille: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FileSpec {
    pub(crate) device: u64,
    pub(crate) size: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) frames: u64,
    pub(crate) step_ns: u64,
    /// Power is lost at this time; 0 is never.
    pub(crate) crash_us: u64,
    pub(crate) knobs: Vec<(String, u64)>,
    pub(crate) devices: Vec<DeviceSpec>,
    pub(crate) files: Vec<FileSpec>,
    pub(crate) tasks: Vec<Vec<Op>>,
}

impl Scenario {
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "world seed={} frames={} step_ns={} crash_us={}\n",
            self.seed, self.frames, self.step_ns, self.crash_us
        );
        for (name, value) in &self.knobs {
            let _ = writeln!(text, "knob_at_start {name} value={value}");
        }
        for device in &self.devices {
            let DeviceSpec { block, request_max, depth, volatile, latency_ns, rate, capacity, inline_per_mille } =
                device;
            let _ = writeln!(
                text,
                "device block={block} request_max={request_max} depth={depth} volatile={volatile} \
                 latency_ns={latency_ns} rate={rate} capacity={capacity} inline_per_mille={inline_per_mille}"
            );
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

    /// Reads what [`Scenario::to_text`] wrote; lines that begin with '#' are comments.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut scenario = Self::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                scenario.parse_line(line).map_err(|error| format!("line {}: {error}", at + 1))?;
            }
        }
        Ok(scenario)
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
            "device" => self.devices.push(DeviceSpec {
                block: number("block")?,
                request_max: number("request_max")?,
                depth: number("depth")?,
                volatile: number("volatile")?,
                latency_ns: number("latency_ns")?,
                rate: number("rate")?,
                capacity: number("capacity")?,
                inline_per_mille: number("inline_per_mille")?,
            }),
            "file" => self.files.push(FileSpec { device: number("device")?, size: number("size")? }),
            "task" => self.tasks.push(Vec::new()),
            _ => {
                let op = Op::parse(name, &fields)?;
                self.tasks.last_mut().ok_or("an operation before the first task")?.push(op);
            }
        }
        Ok(())
    }

    /// Whether a failing sync may take data with it.
    pub(crate) fn loses_data(&self) -> bool {
        self.tasks.iter().flatten().any(|op| matches!(op, Op::Fault { what: 5, .. }))
    }

    pub(crate) fn operations(&self) -> usize {
        self.tasks.iter().map(Vec::len).sum()
    }
}
