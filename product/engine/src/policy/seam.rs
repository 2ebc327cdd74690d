//! What a device's policy decides: the trait that policies implement, its questions and its answers.
//!
//! A policy is asked four things. *Admission*: what a payer does whose allowance is used up. *Room*: what may be
//! charged to the device before its writers queue, and the prices at which it is charged. *Next*: what the flusher
//! writes, or when it looks again. *Limits*, and what explains them: what is shown. It is told of every write request that ends, and of reads
//! if it asks for that.
//!
//! Owns: the trait, questions, answers and their causes.
//! Does not own: any policy; asking (`throttle`, `writeback`); the admission queue (`dirty`).
//! Invariants: a policy is pure: same view, same memory, same answer. It sees no clock but the view's. There is one
//! answer to whether a device is over its background threshold, for the flusher, for drivers and for who wakes them.

use super::figures::{Figure, Remembered};
use super::view::View;
use crate::platform::Nanos;
use crate::settings::{BackgroundShare, KnobTable};

/// Why a writer waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum PauseCause {
    /// Its device's equal part of the dirty limit is used up.
    DevicePart,
    /// Its device has more than its share of the limit.
    DeviceShare,
    /// All devices together have more than the limit allows.
    GlobalLimit,
    /// The device is held to its own share.
    StrictLimit,
    /// It dirties faster than its part of the device's bandwidth.
    Rate,
    /// It wrote what it could, and waits for a request queue to have room.
    Congestion,
    /// Dirty pages would leave too few frames to readers, whatever the policy says.
    MemoryGuard,
    /// What is dirty would take the device longer to write than it may.
    DeviceTime,
    /// The device has completed nothing for too long.
    Hung,
}

impl PauseCause {
    /// All causes, by number.
    pub const ALL: [Self; 9] = [
        Self::DevicePart,
        Self::DeviceShare,
        Self::GlobalLimit,
        Self::StrictLimit,
        Self::Rate,
        Self::Congestion,
        Self::MemoryGuard,
        Self::DeviceTime,
        Self::Hung,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::DevicePart => "device's part of the dirty limit",
            Self::DeviceShare => "device's share of the dirty limit",
            Self::GlobalLimit => "dirty limit",
            Self::StrictLimit => "strict limit of the device",
            Self::Rate => "dirty rate",
            Self::Congestion => "congested queue",
            Self::MemoryGuard => "memory guard",
            Self::DeviceTime => "device time",
            Self::Hung => "device that hangs",
        }
    }
}

/// What ends a pause before its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WokenBy {
    /// Nothing.
    Time,
    /// Any device's queue that stops being congested.
    CongestionClears,
}

/// What follows a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// The writer goes on.
    Return,
    /// Another snapshot and decision.
    Decide,
}

/// A writer waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    /// At most so long.
    pub ns: u64,
    /// Why.
    pub cause: PauseCause,
    /// What may end it early.
    pub woken_by: WokenBy,
    /// What follows.
    pub then: Then,
}

/// What a payer does whose allowance is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It goes on.
    Enter,
    /// It waits in the device's admission queue, in order of asking, until what it dirties fits in the device's
    /// room. An answer for [`Asked::Before`] only: afterwards there is nothing to queue for.
    Wait,
    /// It waits for a time.
    Pause(Pause),
    /// It writes so many pages of the device itself; another decision follows.
    WriteBack {
        /// Most pages.
        pages: u64,
    },
}

/// When a payer is asked about whose allowance is used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Never: the admission queue is all there is.
    Never,
    /// Before it dirties more than its allowance, or more than its device has room for. The answer alone lets it in;
    /// the queue is for those who are told to wait.
    Before,
    /// After it has dirtied what it is asked about; it was let in by the queue.
    After,
}

/// What a policy declares once, so that nothing is computed or asked in vain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// When a payer is asked about.
    pub asked: Asked,
    /// It looks at counters that all devices share. They are read once a snapshot, or not at all.
    pub shared_counters: bool,
    /// It leaves it to the memory guard that frames are left to readers: dirty pages may have what lies half-way
    /// between the dirty limit and all frames, and of several devices each two thirds of what the others leave.
    pub memory_guard: bool,
    /// It is told of read requests that end, too.
    pub reads: bool,
    /// What `dirty_background_ratio` is a share of.
    pub background_share: BackgroundShare,
    /// The knobs that it brings, at most [`POLICY_KNOBS_MAX`](super::POLICY_KNOBS_MAX): a view has their values.
    pub knobs: Option<&'static KnobTable>,
}

impl Needs {
    /// It is never asked about payers, looks at its own device and the knobs alone, and leaves nothing to others.
    pub const NONE: Self = Self {
        asked: Asked::Never,
        shared_counters: false,
        memory_guard: false,
        reads: false,
        background_share: BackgroundShare::OfLimit,
        knobs: None,
    };
}

/// What the mechanism itself has to know until the next decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Pages the payer may dirty before it is asked about again.
    pub payer_pages: u64,
    /// Runs of dirty pages that it may begin before it is asked about again.
    pub payer_runs: u64,
    /// Pages all payers of a CPU may dirty before one of them is asked about.
    pub cpu_pages: u64,
    /// The device is over: its payers are asked about after [`EXCEEDED_PAGES`] at most.
    pub exceeded: bool,
    /// Pages of the payer that are not yet taken into account.
    pub unpaid_pages: u64,
    /// Runs that it began and that are not yet taken into account.
    pub unpaid_runs: u64,
    /// Background writeback has to start.
    pub start_background: bool,
}

impl Pace {
    /// Nobody is ever asked about.
    pub const UNASKED: Self = Self {
        payer_pages: u64::MAX,
        payer_runs: u64::MAX,
        cpu_pages: u64::MAX,
        exceeded: false,
        unpaid_pages: 0,
        unpaid_runs: 0,
        start_background: false,
    };
}

/// Pages between decisions about payers to a device that is over (kernel: 32 KiB).
pub const EXCEEDED_PAGES: u64 = 8;

/// An amount in a policy's own unit, which nobody else understands: pages, or the device's time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Cost(pub u64);

impl Cost {
    /// More than anything costs.
    pub const MAX: Self = Self(u64::MAX);

    /// So many times as much; stops at the largest.
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// Both together; stops at the largest.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// What is charged to a device, in a unit that is the policy's own. The mechanism counts pages and runs, and
/// multiplies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prices {
    /// For a page that is dirty or being written.
    pub page: Cost,
    /// For a run: dirty pages that follow each other in a file, or a write request in flight that does not continue
    /// the one before.
    pub run: Cost,
}

impl Prices {
    /// The unit is the page.
    pub const PAGES: Self = Self { page: Cost(1), run: Cost(0) };

    /// What so many pages in so many runs cost.
    pub const fn of(&self, pages: u64, runs: u64) -> Cost {
        self.page.times(pages).and(self.run.times(runs))
    }
}

/// What may be charged to a device before its writers queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// In the unit of the prices.
    pub cost_max: Cost,
    /// What is charged.
    pub prices: Prices,
    /// Why those wait who find no room.
    pub cause: PauseCause,
    /// Cost of what is dirty and not in flight above which the flusher is woken by a writer that dirties more.
    /// [`Cost::MAX`] if payers that are asked about wake it ([`Pace::start_background`]).
    pub wake_above: Cost,
}

impl Room {
    /// Nobody queues but for the memory guard, and nobody wakes the flusher but payers that are asked about.
    pub const UNLIMITED: Self =
        Self { cost_max: Cost::MAX, prices: Prices::PAGES, cause: PauseCause::MemoryGuard, wake_above: Cost::MAX };
}

/// What may be on its way to a device, how large a request is, and how long syncs go first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flight {
    /// Most write requests in flight, as far as the device takes so many; `None`: `writeback_depth`.
    pub requests_max: Option<u32>,
    /// So many may be in flight whatever they cost; one always.
    pub requests: u32,
    /// Beyond them another follows while what is in flight costs less than that, at the prices of [`Room`].
    pub cost_max: Cost,
    /// Most bytes of a request, as far as the device takes so many; at least a page.
    pub request_bytes: u64,
    /// A turn that has written its slice goes on to the end of the run that it is in, if no more than that is left.
    pub run_tail_bytes: u64,
    /// A slice of so much or more ends in its file at a multiple of this; 0: wherever it does. Where a device writes
    /// whole blocks of its own, slices that end with them cost no block twice.
    pub slice_align_bytes: u64,
    /// What syncs may use of the device more than the rest before the two have their turns by cost. A sync pays
    /// twice for a run: there and back again. [`Cost::MAX`]: syncs always go first.
    pub sync_lead: Cost,
    /// How files are written behind in idle time; `None`: they never are ([`Next::Idle`]).
    pub idle: Option<Idle>,
}

/// How files are written behind while a device would idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// How soon after a file has become dirty it is looked at first.
    pub look_ns: u64,
    /// Most bytes of a request: what somebody waits behind who comes meanwhile.
    pub request_bytes: u64,
}

impl Flight {
    /// As knobs say, in requests as large as the device takes. Syncs go first.
    pub const BY_KNOBS: Self = Self {
        requests_max: None,
        requests: u32::MAX,
        cost_max: Cost::MAX,
        request_bytes: u64::MAX,
        run_tail_bytes: 0,
        slice_align_bytes: 0,
        sync_lead: Cost::MAX,
        idle: None,
    };
}

/// The device's files that may be written, as a policy sees them.
pub trait DirtyFiles {
    /// Whether there are any.
    fn any(&self) -> bool;

    /// Since when the file that has been dirty longest is so; of those that are not hot, unless `hot`.
    fn dirty_since(&self, hot: bool) -> Option<Nanos>;

    /// When the first is to be looked at whether it has been left alone.
    fn look_at(&self) -> Option<Nanos>;
}

/// How a file has to be treated that is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quiet {
    /// So long it has to be left alone before it is written behind in idle time.
    pub ns: u64,
    /// It is rewritten over and over: to write it early is wasted.
    pub hot: bool,
}

/// What was seen of a file's being written to since the policy answered last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rewrites {
    /// Pages that became dirty and had not been written lately.
    pub fresh: u64,
    /// Pages that were overwritten for nothing, had they been written meanwhile, or were: dirty ones between two looks
    /// (as many as some of them let expect), and written ones that no flush has followed yet.
    pub again: u64,
    /// In how long.
    pub over_ns: u64,
}

/// What the flusher does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// It gives the device's files their turns, for there is too much dirty.
    InTurn,
    /// It gives a turn to a file with the most that is dirty: no other has twice as much. Equals take turns.
    MostDirty {
        /// Hot files, too ([`Quiet::hot`]).
        hot: bool,
    },
    /// It gives a turn to a file that has been dirty since `before` or longer: the first in turn.
    Old {
        /// The instant.
        before: Nanos,
    },
    /// The same, to the file that has been dirty longest. One that is left with more has its next turn after those
    /// that were old by then. It stays old until nothing of it that was there when a pass over it began is left.
    Oldest {
        /// The instant.
        before: Nanos,
        /// Hot files, too ([`Quiet::hot`]).
        hot: bool,
    },
    /// It looks at the files that it is time to look at, and writes one request of one that has been left alone for
    /// long enough. An answer for those only who said how ([`Flight::idle`]).
    Idle,
    /// Nothing is due before then, unless it is woken.
    WaitUntil(Nanos),
}

impl Next {
    /// What is older than `dirty_expire_centisecs` is written; otherwise the flusher looks again when something
    /// will be.
    pub fn what_is_old(view: &View, files: &dyn DirtyFiles) -> Self {
        let (now, expire_ns) = (view.now, view.knobs.expire_ns);
        match files.dirty_since(true).map(|since| since.after(expire_ns)) {
            Some(at) if at <= now => Self::Old { before: Nanos(now.0.saturating_sub(expire_ns)) },
            Some(at) => Self::WaitUntil(at),
            None => Self::WaitUntil(Nanos::NEVER),
        }
    }
}

/// In which direction a request moved bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    #[default]
    Write,
}

/// A request that ended. The view that comes with it has the device's busy time up to this end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Completed {
    /// Whether it read or wrote.
    pub direction: Direction,
    /// 1, or 0 if it continued: a write where its file's write before it had ended, a read where the device had read
    /// last.
    pub runs: u64,
    /// Pages that are the device's now, or were read; none if it failed.
    pub pages: u64,
    /// Bytes that it moved; none if it failed.
    pub bytes: u64,
    /// From its submission to its end.
    pub latency_ns: u64,
    /// Write requests in flight when this one was submitted, itself included; 0 for reads.
    pub in_flight: u64,
    /// Somebody waits to submit another write: what may be in flight is.
    pub held_back: bool,
    /// For how long before it was noticed nobody had looked whether it had ended: see
    /// [`Platform::unwatched_ns`](crate::Platform::unwatched_ns). Not more than its latency.
    pub unwatched_ns: u64,
}

/// What a policy remembers, lent for a decision.
pub struct Memory<'a, L: DevicePolicy + ?Sized> {
    /// About the payer.
    pub payer: &'a mut L::Payer,
    /// About the device.
    pub device: &'a mut L::Device,
    /// About everything.
    pub shared: &'a mut L::Shared,
    /// What the mechanism is to know. Comes in as the last decision left it, except that `unpaid_pages` and
    /// `unpaid_runs` are what the payer dirtied by now and `start_background` is false.
    pub pace: &'a mut Pace,
}

/// How long a device may complete nothing while it has requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Silence {
    /// Then it counts as hung: those who wait for it are told so.
    pub stalled_ns: u64,
    /// Then its writers and syncs are refused until it completes something.
    pub refused_ns: u64,
}

impl Silence {
    /// As long as it likes.
    pub const UNNOTICED: Self = Self { stalled_ns: u64::MAX, refused_ns: u64::MAX };
}

/// A policy's limits, for those who ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LimitPages {
    /// The device's dirty limit.
    pub dirty: u64,
    /// Above it background writeback starts: what the policy's own estimate makes of a threshold in time
    /// included.
    pub background: u64,
    /// Pages a second that the device writes, by the policy's own estimate; `None` if it makes none.
    pub bandwidth: Option<u64>,
}

/// How writers to a device are throttled, and when and how much of it is written in the background.
pub trait DevicePolicy: Send + Sync + 'static {
    /// What it remembers of a payer: an open file.
    type Payer: Default + Send + 'static;
    /// What it remembers of a device.
    type Device: Default + Send + 'static;
    /// What it remembers of all together.
    type Shared: Default + Send + 'static;

    /// Its name.
    fn name(&self) -> &'static str;

    /// What it needs, for its whole life.
    fn needs(&self) -> Needs;

    /// The longest pause in nanoseconds that it ever asks for at once.
    fn pause_ns_max(&self) -> u64;

    /// The pace before the first decision, on a machine of so many pages and CPUs.
    fn start(&self, memory_pages: u64, cpus: u64) -> Pace;

    /// What may be charged to the device. Asked when a knob or the number of devices has changed and when a write
    /// request has ended, possibly with a file's lock held: it may look at nothing that devices share.
    fn room(&self, view: &View, device: &mut Self::Device) -> Room;

    /// What may be in flight. Asked together with [`DevicePolicy::room`], and after it.
    fn flight(&self, _: &View, _: &mut Self::Device) -> Flight {
        Flight::BY_KNOBS
    }

    /// What the payer does.
    fn admit(&self, view: &View, memory: Memory<'_, Self>) -> Admission;

    /// A write request has ended, or a read request where [`Needs::reads`] asks for that.
    fn completed(&self, view: &View, done: &Completed, device: &mut Self::Device, shared: &mut Self::Shared);

    /// Whether background writeback of the device goes on, or starts.
    fn over_background(&self, view: &View, device: &mut Self::Device, shared: &mut Self::Shared) -> bool;

    /// What the flusher does next, if no sync, second try, drain or want of frames comes first.
    fn next(&self, view: &View, files: &dyn DirtyFiles, device: &mut Self::Device, shared: &mut Self::Shared) -> Next {
        if files.any() && self.over_background(view, device, shared) {
            Next::InTurn
        } else {
            Next::what_is_old(view, files)
        }
    }

    /// What the flusher writes next of all that there is, since everything is to be written, somebody found no frame,
    /// or somebody waits in the admission queue.
    fn next_if_pressed(&self, _: &View, _: &dyn DirtyFiles, _: &mut Self::Device, _: &mut Self::Shared) -> Next {
        Next::InTurn
    }

    /// How a file is treated from now on that was treated so `before`, after what was seen; `None`: as before, and it
    /// is too early to tell. Asked when a dirty file is looked at, where there is a [`Flight::idle`].
    fn quiet(&self, _: &View, _before: Quiet, _: &Rewrites) -> Option<Quiet> {
        None
    }

    /// Most bytes of one file that a flusher writes before it turns to the next, whatever it writes it for.
    fn slice_bytes(&self, view: &View, device: &mut Self::Device, shared: &mut Self::Shared) -> u64;

    /// The limits in force.
    fn limits(&self, view: &View, device: &mut Self::Device, shared: &mut Self::Shared) -> LimitPages;

    /// How long the device may complete nothing, with what is in flight now. A policy that says
    /// [`Silence::UNNOTICED`] of a device that comes new is not asked again.
    fn silence(&self, _: &View, _: &mut Self::Device) -> Silence {
        Silence::UNNOTICED
    }

    /// What is in force for the device and why, in the policy's own figures, in the order of their importance.
    fn explain(&self, _: &View, _: &mut Self::Device) -> Vec<Figure> {
        Vec::new()
    }

    /// What is to be kept of the device until the next start: nothing while too little is known.
    fn remember(&self, _: &View, _: &mut Self::Device) -> Remembered {
        Remembered::new()
    }

    /// The memory of a new device, of which that was kept: by this policy, by another one or by nobody. What makes no
    /// sense to it is passed over.
    fn recall(&self, _: &Remembered) -> Self::Device {
        Self::Device::default()
    }
}
