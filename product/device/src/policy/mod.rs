//! Policies: the decisions about a device's writers and its flusher, as questions and answers behind one trait.
//!
//! A policy answers four questions. The *admission*: the next step of a payer with a used-up allowance. The *charge
//! bounds*: the most that may be charged to the device before its writers queue, and the prices of a charge. The *next*
//! step: the flusher's next write, or when it chooses again. The *limits*, and their explanation: figures to show. The
//! engine reports every write request that ends to the policy, and reads if the policy wants that.
//!
//! Owns: the trait, the view for decisions, the answers: slices of files, causes of pauses, figures to show, data to
//! persist until the next start; the engine's own policy.
//! Does not own: asking, a policy's memory, carrying answers out (the engine); the budget; kernels' policies
//! (`linux-policies`).
//! Invariants: a policy is pure: same view, same memory, same answer. It sees no clock except the view's. The flusher
//! and writers that wake it use the same answer to whether a device is over its background threshold. Code that shows
//! or stores figures interprets none.

mod equal_parts;
mod erased;
mod view;

use std::collections::BTreeMap;
use std::fmt;

use afflux_pages::named;

use crate::platform::Nanos;
use crate::settings::{BackgroundBase, KnobTable};

pub use equal_parts::{EQUAL_PARTS_FIGURES, EQUAL_PARTS_POLICY, EqualParts};
pub use erased::{AnyPolicy, PolicyMemory};
pub use view::{BusyTimes, DeviceCounts, KnobValues, POLICY_KNOBS_MAX, PayerCounts, PolicyKnobs, SharedCounts, View};

/// A writer's pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// The longest time to wait.
    pub ns: u64,
    /// Cause of the pause, for figures and traces.
    pub cause: PauseCause,
}

/// The decision about a payer with a used-up allowance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It goes on.
    Enter,
    /// It waits in the device's admission queue, in order of asking, until its pages fit in the device's limit.
    Wait,
    /// It waits for a time; another decision follows.
    Pause(Pause),
    /// It waits for a time, and goes on.
    EnterAfter(Pause),
}

/// A payer that dirties pages, and the CPU where it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dirtier {
    /// Pages that it has dirtied just now; 0 if it is about to dirty some.
    pub pages: u64,
    /// The number of its CPU or thread, from 0.
    pub cpu: u64,
    /// CPUs or threads that payers run on.
    pub cpus: u64,
    /// All memory, in pages.
    pub memory_pages: u64,
}

/// A policy's declaration, so that nothing is computed or asked in vain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// Whether it decides about a payer before that dirties more than its allowance, or more than its device's limit
    /// admits. The decision alone admits the payer; the queue is for payers that the policy makes wait. Otherwise only
    /// the admission queue admits payers.
    pub admits: bool,
    /// Whether it decides about a payer after that has dirtied pages: [`DevicePolicy::allowance_pages`].
    pub paces: bool,
    /// Whether it reads counters that all devices share. The engine reads them once a snapshot, or not at all.
    pub shared_counters: bool,
    /// Whether it relies on the memory guard to leave frames to readers. The limit on dirty pages is then halfway
    /// between the dirty limit and all frames. Of several devices each may have two thirds of the others' remainder.
    pub memory_guard: bool,
    /// Whether the engine reports ends of read requests to it, too.
    pub reads: bool,
    /// Whether the engine may report short requests together: up to 16, or a millisecond of the device's time. The
    /// engine reports before any question, and at once while a writer waits in the admission queue.
    pub ends_together: bool,
    /// The base of `dirty_background_ratio`.
    pub background_base: BackgroundBase,
    /// Knobs of the engine, or of its own table, that the policy does not read.
    pub ignores: &'static [IgnoredKnob],
    /// The policy's knobs, at most [`POLICY_KNOBS_MAX`](crate::policy::POLICY_KNOBS_MAX): a view has their values.
    pub knobs: Option<&'static KnobTable>,
}

impl Needs {
    /// Never asked about payers, reads only its own device and the knobs, and relies on no guard.
    pub const NONE: Self = Self {
        admits: false,
        paces: false,
        shared_counters: false,
        memory_guard: false,
        reads: false,
        ends_together: false,
        background_base: BackgroundBase::OfLimit,
        ignores: &[],
        knobs: None,
    };
}

/// A knob that a policy does not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IgnoredKnob {
    /// The knob's name.
    pub name: &'static str,
    /// The knob to set instead.
    pub instead: &'static str,
}

/// The mechanism's instructions until the next decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Pages that the payer may dirty before the next decision about it.
    pub payer_pages: u64,
    /// Runs of dirty pages that it may begin before the next decision about it.
    pub payer_runs: u64,
    /// Pages of the payer that no decision covers yet.
    pub unpaid_pages: u64,
    /// Runs of the payer that no decision covers yet.
    pub unpaid_runs: u64,
    /// Whether to wake the device's flusher, which asks for its next step.
    pub wakes_flusher: bool,
}

impl Pace {
    /// No decisions about payers.
    pub const UNASKED: Self =
        Self { payer_pages: u64::MAX, payer_runs: u64::MAX, unpaid_pages: 0, unpaid_runs: 0, wakes_flusher: false };
}

/// An amount in a policy's own unit, which only the policy understands: pages, or the device's time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Cost(pub u64);

impl Cost {
    /// More than anything costs.
    pub const MAX: Self = Self(u64::MAX);

    /// `count` times as much; saturates.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// The sum; saturates.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Prices of a charge to a device, in the policy's own unit. The mechanism counts pages and runs, and multiplies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prices {
    /// The price of a page that is dirty or being written.
    pub page: Cost,
    /// The price of a run: consecutive dirty pages of a file, or a write request in flight that does not continue the
    /// one before.
    pub run: Cost,
}

impl Prices {
    /// The unit is the page.
    pub const PAGES: Self = Self { page: Cost(1), run: Cost(0) };

    /// The cost of `pages` pages in `runs` runs.
    pub const fn of(&self, pages: u64, runs: u64) -> Cost {
        self.page.times(pages).and(self.run.times(runs))
    }
}

/// The most that may be charged to a device before its writers queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChargeBounds {
    /// The limit, in the unit of the prices.
    pub cost_max: Cost,
    /// The prices of a charge.
    pub prices: Prices,
    /// The cause of a wait in the admission queue.
    pub cause: PauseCause,
    /// A payer goes on unasked while all charged pages, with its next ones, cost no more than this.
    pub unasked_max: Cost,
    /// And while no more pages than this are charged.
    pub unasked_pages_max: u64,
    /// The cost of dirty pages not in flight above which a writer that dirties more wakes the flusher. [`Cost::MAX`] if
    /// payers wake it at their decisions ([`Pace::wakes_flusher`]).
    pub wake_above: Cost,
}

impl ChargeBounds {
    /// Writers queue only for the memory guard, and payers wake the flusher only at their decisions.
    pub const UNLIMITED: Self = Self {
        cost_max: Cost::MAX,
        prices: Prices::PAGES,
        cause: PauseCause::MemoryGuard,
        unasked_max: Cost(0),
        unasked_pages_max: 0,
        wake_above: Cost::MAX,
    };
}

/// Limits on a device's requests in flight, the size of a request, and how long syncs go first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flight {
    /// The most write requests in flight, if the device takes as many; `None`: `writeback_depth`.
    pub requests_max: Option<u32>,
    /// The number of requests that may be in flight at any cost; one is always allowed.
    pub requests: u32,
    /// Beyond them another may follow while the cost in flight, at the prices of [`ChargeBounds`], is below this.
    pub cost_max: Cost,
    /// The most bytes of a request, if the device takes as many; at least a page.
    pub request_bytes: u64,
    /// A slice that has written its bytes continues to the end of its run, if at most this many bytes remain.
    pub run_tail_bytes: u64,
    /// Whether a slice that is not for a sync does not write the rest of a run that fills no request: more may follow
    /// it.
    pub fills_requests: bool,
    /// A slice of at least this many bytes ends at a multiple of it in the file; 0: anywhere. If a device writes whole
    /// blocks of its own, slices that end with a block write none twice.
    pub slice_align_bytes: u64,
    /// How much more of the device syncs may use than other writes before the two alternate by cost. A sync pays twice
    /// for a run: for the seek there and back. [`Cost::MAX`]: syncs always go first.
    pub sync_lead: Cost,
    /// How files are written behind in idle time; `None`: never ([`FlushSlice::Idle`]).
    pub idle: Option<Idle>,
    /// Whether twice as many requests may be in flight for a sync: calls overlap, and small ones take no time of
    /// others.
    pub syncs_pass: bool,
}

/// How files are written behind while a device would idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// The time from a file's becoming dirty to the first check of it.
    pub look_ns: u64,
    /// The most bytes of a request: a new reader or writer waits behind that.
    pub request_bytes: u64,
}

impl Flight {
    /// The knobs' limits, in requests as large as the device takes. Syncs go first.
    pub const BY_KNOBS: Self = Self {
        requests_max: None,
        requests: u32::MAX,
        cost_max: Cost::MAX,
        request_bytes: u64::MAX,
        run_tail_bytes: 0,
        fills_requests: false,
        slice_align_bytes: 0,
        sync_lead: Cost::MAX,
        idle: None,
        syncs_pass: false,
    };
}

/// The device's files that may be written, as a policy sees them.
pub trait DirtyFiles {
    /// Whether there are any files.
    fn has_any(&self) -> bool;

    /// When the oldest dirty file became dirty; hot files count only if `hot`.
    fn dirty_since(&self, hot: bool) -> Option<Nanos>;

    /// Whether a round has begun and is not over: a file of it waits for its slice, or had one and has more.
    fn has_round(&self) -> bool;

    /// When the next check for a file left alone is due.
    fn look_at(&self) -> Option<Nanos>;
}

/// How to treat a file that is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IdleWriteRule {
    /// How long the file must be left alone before it is written behind in idle time.
    pub ns: u64,
    /// Whether the file is rewritten over and over: early writes are wasted.
    pub hot: bool,
}

/// Observations of writes to a file since the policy's last answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rewrites {
    /// Pages that became dirty and had not been written lately.
    pub fresh: u64,
    /// Pages that were, or would have been, written for nothing and then overwritten. They are dirty pages overwritten
    /// between two checks, estimated from a sample, and written pages overwritten before a flush.
    pub again: u64,
    /// The time of the observations.
    pub over_ns: u64,
}

/// The flusher's next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// It gives a file its slice.
    FlushSlice(FlushSlice),
    /// Nothing is due before then, unless it is woken.
    WaitUntil(Nanos),
}

impl Next {
    /// Writes data older than `dirty_expire_centisecs`; otherwise the flusher chooses again when some data expires.
    pub fn write_expired(view: &View, files: &dyn DirtyFiles) -> Self {
        let (now, expire_ns) = (view.now, view.knobs.expire_ns);
        match files.dirty_since(true).map(|since| since.after(expire_ns)) {
            Some(at) if at <= now => {
                Self::FlushSlice(FlushSlice::Old { before: Nanos(now.0.saturating_sub(expire_ns)) })
            }
            Some(at) => Self::WaitUntil(at),
            None => Self::WaitUntil(Nanos::NEVER),
        }
    }
}

/// The direction in which a request moved bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    #[default]
    Write,
}

/// A device when a request of it ended; the request is no longer in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AtEnd {
    /// How long the device had requests of each kind in flight.
    pub busy: BusyTimes,
    /// When the oldest of the reads and writes in flight was submitted.
    pub oldest_in_flight: Option<Nanos>,
    /// Bytes of write requests in flight.
    pub bytes_in_flight: u64,
}

/// A request that ended. The view passed with it is of the moment of telling: see [`Needs::ends_together`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Completed {
    /// Whether it read or wrote.
    pub direction: Direction,
    /// When it ended.
    pub at: Nanos,
    /// The device at that instant.
    pub device: AtEnd,
    /// Whether the device had dirty pages then that were not in flight; false for reads.
    pub more_to_write: bool,
    /// 1, or 0 if it continued: a write, the file's last write; a read, the device's last read.
    pub runs: u64,
    /// Pages now on the device, or read; none if it failed.
    pub pages: u64,
    /// Bytes moved; none if it failed.
    pub bytes: u64,
    /// From its submission to its end.
    pub latency_ns: u64,
    /// Write requests in flight when this one was submitted, itself included; 0 for reads.
    pub in_flight: u64,
    /// Whether a task waits to submit another write: the limit in flight is reached.
    pub held_back: bool,
    /// How long before the end was noticed nobody had looked for it: see
    /// [`Platform::unwatched_ns`](crate::platform::Platform::unwatched_ns). Not more than its latency.
    pub unwatched_ns: u64,
    /// Whether the device has been refused a request since the last write ended, because its store gets too many.
    pub too_many: bool,
}

/// A policy's memory, lent for a decision.
pub struct LentMemory<'a, L: DevicePolicy + ?Sized> {
    /// About the payer.
    pub payer: &'a mut L::Payer,
    /// About the device.
    pub device: &'a mut L::Device,
    /// State of the policy that all devices share.
    pub shared: &'a mut L::Shared,
    /// Instructions for the mechanism. Set to the last decision's values at first, except that `unpaid_pages` and
    /// `unpaid_runs` count the pages and runs dirtied by now.
    pub pace: &'a mut Pace,
}

/// How long a device may complete nothing while it has requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HangLimits {
    /// After this time the device counts as hung, and waits for it have that cause.
    pub stalled_ns: u64,
    /// After this time writers and syncs are refused until the device completes a request.
    pub refused_ns: u64,
}

impl HangLimits {
    /// A device that hangs is never noticed, and its writers are never refused.
    pub const UNNOTICED: Self = Self { stalled_ns: u64::MAX, refused_ns: u64::MAX };
}

/// A policy's limits, for display.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LimitPages {
    /// The device's dirty limit.
    pub dirty: u64,
    /// The threshold of background writeback, including the policy's own estimate for a threshold in time.
    pub background: u64,
    /// Pages a second that the device writes, by the policy's own estimate; `None` if it makes none.
    pub bandwidth: Option<u64>,
}

/// Throttles writers to a device, and decides when and how much of its data is written in the background.
pub trait DevicePolicy: Send + Sync + 'static {
    /// Memory of a payer: an open file.
    type Payer: Default + Send + 'static;
    /// Memory of a device.
    type Device: Default + Send + 'static;
    /// Memory of all devices together.
    type Shared: Default + Send + 'static;

    /// Name of the policy, as `--policy` takes it.
    fn name(&self) -> &'static str;

    /// The policy's needs, for its whole life.
    fn needs(&self) -> Needs;

    /// The longest single pause that it ever asks for, in nanoseconds.
    fn pause_ns_max(&self) -> u64;

    /// The pace before the first decision, on a machine with so many pages and CPUs.
    fn start(&self, memory_pages: u64, cpus: u64) -> Pace;

    /// The device's charge bounds. Called after a change of a knob or of the number of devices, and whenever the engine
    /// has reported writes that ended. The caller may hold a file's lock: the policy must not read anything that
    /// devices share.
    fn charge_bounds(&self, view: &View, device: &mut Self::Device) -> ChargeBounds;

    /// The limits in flight. Called together with [`DevicePolicy::charge_bounds`], and after it.
    fn flight(&self, _: &View, _: &mut Self::Device) -> Flight {
        Flight::BY_KNOBS
    }

    /// How many more pages a payer may dirty before a decision about it. Asked before and after it dirties some, if
    /// [`Needs::paces`] is set. After some, 0 means that the decision is due now.
    fn allowance_pages(&self, _: &Dirtier, _: &mut Self::Payer, _: &mut Self::Device, _: &mut Self::Shared) -> u64 {
        u64::MAX
    }

    /// The decision about a payer.
    fn admit(&self, view: &View, memory: LentMemory<'_, Self>) -> Admission;

    /// Write requests have ended, and read requests if [`Needs::reads`] is set: each once, in the order of reporting.
    /// Without [`Needs::ends_together`] the engine reports one at a time.
    fn completed(&self, view: &View, ends: &[Completed], device: &mut Self::Device, shared: &mut Self::Shared);

    /// Whether background writeback of the device continues, or starts.
    fn is_over_background(&self, view: &View, device: &mut Self::Device, shared: &mut Self::Shared) -> bool;

    /// The flusher's next step, unless a sync, retry, drain or shortage of frames comes first.
    fn next(&self, view: &View, files: &dyn DirtyFiles, device: &mut Self::Device, shared: &mut Self::Shared) -> Next {
        if files.has_any() && self.is_over_background(view, device, shared) {
            Next::FlushSlice(FlushSlice::InOrder)
        } else {
            Next::write_expired(view, files)
        }
    }

    /// The flusher's next step among all dirty files: everything is to be written, a task found no frame, or a writer
    /// waits in the admission queue.
    fn next_if_pressed(&self, _: &View, _: &dyn DirtyFiles, _: &mut Self::Device, _: &mut Self::Shared) -> Next {
        Next::FlushSlice(FlushSlice::InOrder)
    }

    /// How to treat a file from now on, given its last treatment and the observations since; `None`: no change, as it
    /// is too early to decide. Called at a check of a dirty file, if there is a [`Flight::idle`].
    fn idle_write_rule(&self, _: &View, _before: IdleWriteRule, _: &Rewrites) -> Option<IdleWriteRule> {
        None
    }

    /// The most bytes of one file that a flusher writes before it goes to the next, for any reason.
    fn slice_bytes(&self, view: &View, device: &mut Self::Device, shared: &mut Self::Shared) -> u64;

    /// The limits in force.
    fn limits(&self, view: &View, device: &mut Self::Device, shared: &mut Self::Shared) -> LimitPages;

    /// How long the device may complete nothing, with its present requests in flight. A policy that returns
    /// [`HangLimits::UNNOTICED`] for a new device is not asked again.
    fn hang_limits(&self, _: &View, _: &mut Self::Device) -> HangLimits {
        HangLimits::UNNOTICED
    }

    /// The figures in force for the device and their reasons, most important first.
    fn explain(&self, _: &View, _: &mut Self::Device) -> Vec<Figure> {
        Vec::new()
    }

    /// The knobs that act on the device with other values than they were given, and why.
    fn knobs_in_force(&self, _: &View, _: &mut Self::Device) -> Vec<KnobInForce> {
        Vec::new()
    }

    /// The data to persist of the device until the next start: empty while too little is known.
    fn remember(&self, _: &View, _: &mut Self::Device) -> Remembered {
        Remembered::new()
    }

    /// The memory of a new device, from data persisted earlier by this policy, by another or by nobody. Unknown data is
    /// ignored.
    fn recall(&self, _: &Remembered) -> Self::Device {
        Self::Device::default()
    }
}

/// A slice: what the flusher writes of which file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlushSlice {
    /// A sync waits for the file. The flusher's own choice, never a policy's.
    Sync,
    /// The file's last write failed, or the file was busy, and the pause is over. The flusher's own choice.
    Retry,
    /// The next file in the order of slices: too much is dirty, or a task waits for frames.
    InOrder,
    /// A file with the most dirty pages: no other has twice as many. Equals follow in order of listing.
    Largest {
        /// Whether to take hot files, too ([`IdleWriteRule::hot`](crate::policy::IdleWriteRule::hot)).
        hot: bool,
    },
    /// The first file in the order of slices that has been dirty since `before` or longer.
    Old {
        /// The latest instant that counts.
        before: Nanos,
    },
    /// The next file of the round. A new round has the files that had their slice and have more, of any age, and of the
    /// others those that have been dirty since `before` or longer, up to the first younger one.
    Queued {
        /// The latest instant that counts.
        before: Nanos,
    },
    /// As [`FlushSlice::Old`], but the file that has been dirty longest. A file with more to write has its next slice
    /// after the files that were old by then. It stays old until a pass has written all its pages that were dirty when
    /// the pass began.
    Oldest {
        /// The latest instant that counts.
        before: Nanos,
        /// Whether to take hot files, too.
        hot: bool,
    },
    /// A file left alone for long enough: one request, while the device would idle. Files due for a check are checked
    /// first. Only for policies that set [`Flight::idle`](crate::policy::Flight::idle).
    Idle {
        /// The present instant.
        now: Nanos,
    },
}

impl FlushSlice {
    /// The reason in a word.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Retry => "retry",
            Self::InOrder | Self::Largest { .. } => "background",
            Self::Old { .. } | Self::Oldest { .. } | Self::Queued { .. } => "expired",
            Self::Idle { .. } => "idle",
        }
    }

    /// Whether the file is written in passes of its own, independent of the pages that a sync wrote meanwhile.
    pub fn is_by_passes(self) -> bool {
        matches!(self, Self::Largest { .. } | Self::Oldest { .. } | Self::Idle { .. })
    }
}

named! {
    /// Why a writer waits.
    PauseCause:

    /// The device's equal part of the dirty limit is used up.
    DevicePart "device's part of the dirty limit";
    /// All devices together have more than the limit allows.
    GlobalLimit "dirty limit";
    /// The device is held to its own share.
    StrictLimit "strict limit of the device";
    /// The writer dirties faster than its part of the device's bandwidth.
    Rate "dirty rate";
    /// Dirty pages would leave too few frames to readers, by the memory guard.
    MemoryGuard "memory guard";
    /// The device would need longer than it may to write its dirty data.
    DeviceTime "device time";
    /// The file cannot be written: its writes fail, or one of them does not end.
    File "file that cannot be written";
    /// The device has completed nothing for too long.
    Hung "device that hangs";
}

/// A row of a policy's table of figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FigureInfo {
    /// The name, with the unit last.
    pub name: &'static str,
    /// The unit; empty for a word.
    pub unit: &'static str,
    /// One sentence on the meaning, for help texts and pages.
    pub doc: &'static str,
}

/// The value of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FigureValue {
    /// A number in the figure's unit.
    Number(u64),
    /// One of a few words.
    Word(&'static str),
    /// Not known yet, or without meaning now.
    Unknown,
}

impl From<u64> for FigureValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<Option<u64>> for FigureValue {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Self::Unknown, Self::Number)
    }
}

impl From<&'static str> for FigureValue {
    fn from(word: &'static str) -> Self {
        Self::Word(word)
    }
}

/// A figure of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Figure {
    /// The row in the table.
    pub info: &'static FigureInfo,
    /// Value at the moment of the call.
    pub value: FigureValue,
}

/// A knob that does not act on a device with the value that it was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnobInForce {
    /// The knob's name.
    pub name: &'static str,
    /// The value in force on the device now; `None` if the knob has no effect there.
    pub value: Option<u64>,
    /// The unit of `value`. It differs from the knob's where the knob's unit cannot express it.
    pub unit: &'static str,
    /// Why the policy decided so, as a sentence.
    pub because: String,
}

impl KnobInForce {
    /// The value in force and the reason, with this format of numbers.
    pub fn told_with(&self, number: impl Fn(u64) -> String) -> String {
        let Self { value, unit, because, .. } = self;
        match value {
            Some(value) => format!("{} {unit} in force: {because}", number(*value)),
            None => format!("no effect: {because}"),
        }
    }
}

impl fmt::Display for KnobInForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.told_with(|number| number.to_string()))
    }
}

/// The data of a device that a policy wants persisted until the next start, by the policy's own names.
pub type Remembered = BTreeMap<String, u64>;
