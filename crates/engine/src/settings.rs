//! Every knob once: name, unit, default, range, what it does. docs/knobs.md is generated from it.
//!
//! Owns: the table, the values in force for the engine and, where set, for one device.
//! Does not own: what a value leads to; policies and mechanisms read it where they need it.
//! Invariants: a value in force is inside its range; a change acts at once and without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Whether a knob can be set for one device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// One value for everything.
    Engine,
    /// One value, and another for each device where it is set.
    Device,
}

/// One row of the knob table.
#[derive(Clone, Copy, Debug)]
pub struct KnobInfo {
    /// The name, as `--set` takes it.
    pub name: &'static str,
    /// The unit of the value.
    pub unit: &'static str,
    /// Whether a device may have its own value.
    pub scope: Scope,
    /// The value unless set.
    pub default: u64,
    /// Smallest value allowed.
    pub min: u64,
    /// Largest value allowed.
    pub max: u64,
    /// What it does.
    pub doc: &'static str,
}

macro_rules! knobs {
    ($($variant:ident $name:literal $unit:literal $scope:ident $default:literal $min:literal $max:literal $doc:literal;)*) => {
        /// A knob.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(usize)]
        pub enum Knob {
            $(#[doc = $doc] $variant,)*
        }

        impl Knob {
            /// All knobs, in the order of [`KNOBS`].
            pub const ALL: &[Knob] = &[$(Knob::$variant,)*];
        }

        /// The knob table, in the order of [`Knob`].
        pub const KNOBS: &[KnobInfo] = &[
            $(KnobInfo {
                name: $name, unit: $unit, scope: Scope::$scope,
                default: $default, min: $min, max: $max, doc: $doc,
            },)*
        ];

        $(const _: () = {
            let (min, default, max): (u64, u64, u64) = ($min, $default, $max);
            assert!(min <= default && default <= max && max < UNSET);
        };)*
    };
}

knobs! {
    DirtyRatio "dirty_ratio" "percent" Engine 50 1 90
        "Share of the cache that may be dirty, all devices together. Each device gets an equal part of it; a writer waits when its own device's part is used up.";
    BackgroundRatio "dirty_background_ratio" "percent" Device 10 0 100
        "Share of a device's part of the dirty limit at which its flusher starts to write. Under a kernel's law: of the memory that may be dirty, and refused unless below dirty_ratio; Linux takes it and uses half the limit without saying so.";
    DirtyBytes "dirty_bytes" "bytes" Engine 0 0 1099511627776
        "The dirty limit of all devices together in bytes, in place of dirty_ratio; a kernel's law takes less than two pages as two. 0 leaves it to the ratio.";
    BackgroundBytes "dirty_background_bytes" "bytes" Device 0 0 1099511627776
        "What a device's flusher leaves unwritten before it starts to write, in place of dirty_background_ratio. 0 leaves it to the ratio. Under a kernel's law: of all devices together. One that is not below the dirty limit is refused; Linux takes it and uses half the limit without saying so.";
    BackgroundCentisecs "dirty_background_centisecs" "centiseconds" Device 0 0 360000
        "What the device writes in so much time is what its flusher leaves unwritten before it starts to write: measured bandwidth x centiseconds / 100, beside the other thresholds; at once while nothing has been measured. By a kernel's law: in linux-3.6 alone. 0 is off.";
    ExpireCentisecs "dirty_expire_centisecs" "centiseconds" Device 3000 1 360000
        "Age at which dirty data is written whatever its amount.";
    WritebackCentisecs "dirty_writeback_centisecs" "centiseconds" Engine 500 1 360000
        "How often a flusher looks for data that has expired.";
    SliceBytes "writeback_slice_bytes" "bytes" Device 67108864 4096 1099511627776
        "Most that a flusher writes of one file before it turns to the next.";
    WriteDepth "writeback_depth" "requests" Device 16 1 65536
        "Most write requests in flight; a device's own limit applies too. Also called nr_requests.";
    RequestBatch "writeback_request_batch" "requests" Device 1 1 1024
        "Write requests that a flusher, or a writer that writes back itself, takes in a row once it had to wait for one, as far as there are no more than half as many again as writeback_depth. Linux: 32.";
    MinRatio "min_ratio" "percent" Device 0 0 99
        "Under a kernel's law: share of the dirty limit that the device has whatever it wrote lately.";
    MaxRatio "max_ratio" "percent" Device 100 0 100
        "Under a kernel's law: largest share of the dirty limit that the device may have.";
    MinBytes "min_bytes" "bytes" Device 0 0 1099511627776
        "Under linux-6.1: min_ratio in bytes. 0 leaves it to the ratio.";
    MaxBytes "max_bytes" "bytes" Device 0 0 1099511627776
        "Under linux-6.1: max_ratio in bytes. 0 leaves it to the ratio.";
    StrictLimit "strict_limit" "0 or 1" Device 0 0 1
        "Under linux-6.1: hold the device to its own share even while the others leave room.";
    ReadaheadBytes "readahead_bytes_max" "bytes" Device 1048576 0 16777216
        "Most that is read ahead of a sequential reader. 0 turns readahead off.";
    RetryMinMs "write_retry_ms_min" "milliseconds" Device 100 1 60000
        "Pause before a failed write is tried again; doubles with each failure in a row.";
    RetryMaxMs "write_retry_ms_max" "milliseconds" Device 30000 1 3600000
        "Longest pause before a failed write is tried again.";
    ReserveBytes "reserve_below_bytes" "bytes" Device 67108864 0 1099511627776
        "Free space of a device below which writers reserve what they write before it is accepted.";
    PinnedRatio "pinned_ratio" "percent" Engine 25 1 50
        "Share of the cache that replies on their way to clients may hold; above it they are copied.";
    AttributesIdleCentisecs "attributes_idle_centisecs" "centiseconds" Engine 100 0 360000
        "How long a file must be unused before a lookup asks the host whether it was changed there, and how long a name that was looked up is remembered.";
    NfsInflightBytes "nfs_inflight_bytes_max" "bytes" Engine 16777216 1048576 1073741824
        "Most request and reply bytes in progress on one connection before it is read no further.";
    NfsRequestBytes "nfs_request_bytes_max" "bytes" Engine 268435456 134217728 1099511627776
        "Most bytes of requests and replies, of all connections together: records being received or that wait, data of calls in progress, replies not sent yet. 64 KiB of it are kept for each of the 1,024 connections that there can be; beyond that a connection may take at most as much as it leaves free. One that gets no more waits, and others go on; one that waits for its peer with more than its own while others wait for memory is closed after a few seconds.";
    NfsIdleCentisecs "nfs_idle_centisecs" "centiseconds" Engine 36000 0 360000
        "How long a connection without calls in progress may be silent before it is closed. 0 is for ever. Clients connect again by themselves.";
    NfsPeerConnections "nfs_peer_connections_max" "connections" Engine 768 1 1024
        "Most connections from one address (of IPv6, from one network of 64 bits); of all together there are at most 1,024. For a further one the address's oldest idle connection is closed; if all have calls in progress it is refused.";
}

/// How many knobs there are.
pub const KNOB_COUNT: usize = KNOBS.len();

const UNSET: u64 = u64::MAX;

/// The unit of a knob that is on or off.
const SWITCH: &str = "0 or 1";

/// What the kernel's tools put in front of a knob's name.
const SYSCTL_PREFIX: &str = "vm.";

/// The kernel's names for knobs of ours.
const ALIASES: &[(&str, Knob)] = &[("nr_requests", Knob::WriteDepth)];

/// Why a value was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KnobError {
    /// There is no such knob.
    #[error("there is no knob '{name}'; there are: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// The text is not KNOB=VALUE.
    #[error("'{text}' is not KNOB=VALUE")]
    Form {
        /// What was given.
        text: String,
    },
    /// The value is no number.
    #[error("{name}: '{value}' is not a number ({}; now {now})", range(unit, *min, *max))]
    NotANumber {
        /// The knob.
        name: &'static str,
        /// What was given.
        value: String,
        /// Its unit.
        unit: &'static str,
        /// Smallest value allowed.
        min: u64,
        /// Largest value allowed.
        max: u64,
        /// The value in force.
        now: u64,
    },
    /// The value is out of range.
    #[error("{name}: {value} is out of range ({}; now {now})", range(unit, *min, *max))]
    OutOfRange {
        /// The knob.
        name: &'static str,
        /// What was given.
        value: u64,
        /// Its unit.
        unit: &'static str,
        /// Smallest value allowed.
        min: u64,
        /// Largest value allowed.
        max: u64,
        /// The value in force.
        now: u64,
    },
    /// The flusher would start above the limit, that is never. (The kernel takes such a pair and starts
    /// it at half the limit without saying so.)
    #[error("{background} is not below {limit}: writers would wait before the flusher starts")]
    BackgroundAboveLimit {
        /// The background threshold.
        background: Threshold,
        /// The limit.
        limit: Threshold,
    },
    /// The knob has one value for all devices.
    #[error("{name} is one value for all devices; set it without naming one")]
    NotPerDevice {
        /// The knob.
        name: &'static str,
    },
}

/// A threshold as it was set, with what that comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Which knob is in force: the one in bytes, or the ratio.
    pub knob: Knob,
    /// Its value.
    pub value: u64,
    /// What that is in bytes; `None` where the memory is not known yet.
    pub bytes: Option<u64>,
}

impl std::fmt::Display for Threshold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let KnobInfo { name, unit, .. } = self.knob.info();
        write!(f, "{name}={}", self.value)?;
        match self.bytes {
            Some(bytes) if *unit != "bytes" => write!(f, " ({bytes} bytes)"),
            _ => Ok(()),
        }
    }
}

fn range(unit: &str, min: u64, max: u64) -> String {
    if unit == SWITCH { SWITCH.to_owned() } else { format!("{min} to {max} {unit}") }
}

/// What ratios are shares of.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// Of all memory for pages.
    pub memory_bytes: u64,
    /// What the background ratio is a share of.
    pub background: BackgroundShare,
}

/// What `dirty_background_ratio` is a share of: the policy in force says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackgroundShare {
    /// The dirty limit: below it whatever its value.
    OfLimit,
    /// Memory, as `dirty_ratio`.
    OfMemory,
}

impl Knob {
    /// The knob's row.
    pub fn info(self) -> &'static KnobInfo {
        &KNOBS[self as usize]
    }

    /// The knob called `name`, or by the kernel's name for it where that is another, or as sysctl has it
    /// (`vm.dirty_ratio`).
    pub fn named(name: &str) -> Result<Self, KnobError> {
        let name = name.strip_prefix(SYSCTL_PREFIX).unwrap_or(name);
        if let Some((_, knob)) = ALIASES.iter().find(|(alias, _)| *alias == name) {
            return Ok(*knob);
        }
        Self::ALL.iter().copied().find(|knob| knob.info().name == name).ok_or_else(|| KnobError::Unknown {
            name: name.to_owned(),
            known: KNOBS.iter().map(|info| info.name).collect::<Vec<_>>().join(", "),
        })
    }
}

/// The values in force.
pub struct Settings {
    values: [AtomicU64; KNOB_COUNT],
}

impl Default for Settings {
    fn default() -> Self {
        Self { values: std::array::from_fn(|at| AtomicU64::new(KNOBS[at].default)) }
    }
}

impl Settings {
    /// Every knob at its default.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value in force.
    #[inline]
    pub fn get(&self, knob: Knob) -> u64 {
        self.values[knob as usize].load(Ordering::Relaxed)
    }

    /// Sets a knob of an engine that is still to be made; one that runs has
    /// [`Engine::set_knob`](crate::Engine::set_knob). Rejects a value outside the range and leaves the
    /// old one.
    pub fn set(&mut self, knob: Knob, value: u64) -> Result<(), KnobError> {
        self.change(knob, value)
    }

    /// Sets a knob while others read it.
    pub(crate) fn change(&self, knob: Knob, value: u64) -> Result<(), KnobError> {
        checked(knob, value, self.get(knob))?;
        self.values[knob as usize].store(value, Ordering::Relaxed);
        Ok(())
    }

    /// Refuses a value out of range, or a background threshold that is not below the limit, with this knob at `value` and the
    /// others as `get` says.
    pub(crate) fn would_fit(
        knob: Knob,
        value: u64,
        shares: Option<Shares>,
        get: &dyn Fn(Knob) -> u64,
    ) -> Result<(), KnobError> {
        use Knob::{BackgroundBytes, BackgroundRatio, DirtyBytes, DirtyRatio};
        checked(knob, value, get(knob))?;
        if !matches!(knob, BackgroundBytes | BackgroundRatio | DirtyBytes | DirtyRatio) {
            return Ok(());
        }
        let with = |other: Knob| if other == knob { value } else { get(other) };
        below_limit(shares, &with)
    }

    /// Refuses settings whose background threshold is not below the limit, for an engine that is still to
    /// be made.
    pub fn background_is_below_limit(&self, shares: Shares) -> Result<(), KnobError> {
        below_limit(Some(shares), &|knob| self.get(knob))
    }

    /// Takes `KNOB=VALUE`, as [`Settings::set`], unless the background threshold in bytes would not be
    /// below the limit in bytes. Byte values may have a unit (`64MiB`, `1GB`).
    pub fn set_text(&mut self, text: &str) -> Result<Knob, KnobError> {
        let (knob, value) = self.parse(text)?;
        Self::would_fit(knob, value, None, &|knob| self.get(knob))?;
        self.set(knob, value)?;
        Ok(knob)
    }

    /// Reads `KNOB=VALUE` without setting it; the error names the value in force.
    pub fn parse(&self, text: &str) -> Result<(Knob, u64), KnobError> {
        let (name, value) = text.split_once('=').ok_or_else(|| KnobError::Form { text: text.to_owned() })?;
        let knob = Knob::named(name.trim())?;
        let info = knob.info();
        let value = value.trim();
        let number = if info.unit == "bytes" {
            value.parse::<bytesize::ByteSize>().ok().map(|size| size.as_u64())
        } else {
            value.parse::<u64>().ok()
        };
        let number = number.ok_or_else(|| KnobError::NotANumber {
            name: info.name,
            value: value.to_owned(),
            unit: info.unit,
            min: info.min,
            max: info.max,
            now: self.get(knob),
        })?;
        Ok((knob, number))
    }
}

/// One device's own values, where it has any.
pub struct DeviceSettings {
    values: [AtomicU64; KNOB_COUNT],
}

impl Default for DeviceSettings {
    fn default() -> Self {
        Self { values: std::array::from_fn(|_| AtomicU64::new(UNSET)) }
    }
}

impl DeviceSettings {
    /// The device's value, or the engine's where it has none of its own.
    pub fn get(&self, engine: &Settings, knob: Knob) -> u64 {
        match self.values[knob as usize].load(Ordering::Relaxed) {
            UNSET => engine.get(knob),
            own => own,
        }
    }

    /// The knobs that have a value of their own.
    pub fn own(&self) -> Vec<(Knob, u64)> {
        let values = Knob::ALL.iter().map(|knob| (*knob, self.values[*knob as usize].load(Ordering::Relaxed)));
        values.filter(|(_, value)| *value != UNSET).collect()
    }

    /// Sets a knob for this device alone.
    pub fn set(&self, engine: &Settings, knob: Knob, value: u64) -> Result<(), KnobError> {
        if knob.info().scope != Scope::Device {
            return Err(KnobError::NotPerDevice { name: knob.info().name });
        }
        checked(knob, value, self.get(engine, knob))?;
        self.values[knob as usize].store(value, Ordering::Relaxed);
        Ok(())
    }
}

/// The thresholds in force, compared as far as they can be: in bytes, or, where the memory is not known,
/// if both are set in bytes. A background ratio beside a limit in bytes is let through: who set the one
/// need not know of the other, and laws start at half the limit then, as the kernel does.
fn below_limit(shares: Option<Shares>, get: &dyn Fn(Knob) -> u64) -> Result<(), KnobError> {
    let threshold = |in_bytes: Knob, ratio: Knob| match get(in_bytes) {
        0 => {
            let value = get(ratio);
            // In 128 bits: a percentage of anything fits.
            let part = |all: Shares| (u128::from(all.memory_bytes) * u128::from(value) / 100) as u64;
            Threshold { knob: ratio, value, bytes: shares.map(part) }
        }
        value => Threshold { knob: in_bytes, value, bytes: Some(value) },
    };
    let background = threshold(Knob::BackgroundBytes, Knob::BackgroundRatio);
    let limit = threshold(Knob::DirtyBytes, Knob::DirtyRatio);
    let compared = match (background.knob, limit.knob) {
        (Knob::BackgroundBytes, _) => true,
        (_, Knob::DirtyRatio) => shares.is_some_and(|shares| shares.background == BackgroundShare::OfMemory),
        _ => false,
    };
    let below = background.bytes.zip(limit.bytes).is_none_or(|(background, limit)| background < limit);
    if !compared || below { Ok(()) } else { Err(KnobError::BackgroundAboveLimit { background, limit }) }
}

fn checked(knob: Knob, value: u64, now: u64) -> Result<(), KnobError> {
    let KnobInfo { name, unit, min, max, .. } = *knob.info();
    if (min..=max).contains(&value) { Ok(()) } else { Err(KnobError::OutOfRange { name, value, unit, min, max, now }) }
}

#[cfg(test)]
mod tests;
