//! What is said over the control socket.
//!
//! Owns: requests, replies, the report that `stat` shows.
//! Does not own: sockets.
//! Invariants: byte and time values are whole numbers with the unit in the name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Longest line either side sends or takes.
pub(crate) const LINE_BYTES_MAX: u64 = 4 << 20;

/// What a client asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// A report.
    Stat,
    /// What each client waited for.
    Delays,
    /// Set a knob.
    Set {
        /// `KNOB=VALUE`.
        assignment: String,
        /// For this device alone.
        device: Option<String>,
    },
    /// Write everything that is dirty now.
    Drain,
    /// Tell which calls clients make from now on, until the connection closes or the time is over.
    Record {
        /// Only for so long.
        lasting_ns: Option<u64>,
    },
    /// Tell what happens from now on, until the connection closes or the time is over.
    Trace {
        /// On this device alone, or to all.
        device: Option<String>,
        /// Only for so long.
        lasting_ns: Option<u64>,
        /// Only events that are called this; all if none are named.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        only: Vec<String>,
    },
}

/// What the server answers. A drain is answered by any number of `Progress`, then `Drained`; a trace by any
/// number of `Events`, then, if it was to end, `TraceEnded`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum Reply {
    /// Answer to `Stat`.
    Report(Box<Report>),
    /// Answer to `Delays`: any number, a device in one or several that follow each other.
    Delays {
        /// The device's name.
        device: String,
        /// Who waited for it.
        clients: Vec<DelayGauges>,
        /// What those waited that are not told apart any more.
        others: DelayTimeGauges,
        /// How many these are.
        others_count: u64,
    },
    /// No more of these.
    DelaysEnded {
        /// Since the server was ready.
        uptime_ns: u64,
    },
    /// Answer to `Set`.
    Set {
        /// The knob.
        knob: String,
        /// Its unit.
        unit: String,
        /// The value in force now.
        value: u64,
        /// The device it holds for, or all.
        device: Option<String>,
    },
    /// How far a drain is.
    Progress(Progress),
    /// A drain has ended.
    Drained(Drained),
    /// What has happened. Sent once at the beginning, and at least once a second.
    Events {
        /// In order.
        events: Vec<TraceEvent>,
        /// Events of all devices that are lost, since they were not taken in time: before these.
        lost: u64,
    },
    /// Calls that clients made, in order. Sent at least once a second.
    Calls {
        /// Since the server was ready in microseconds, operation (1 read, 2 write, 3 sync), file, offset, bytes.
        calls: Vec<[u64; 5]>,
        /// Calls that are lost, since they were not taken in time: before these.
        lost: u64,
    },
    /// The time of a trace is over.
    TraceEnded,
    /// The server was told to end without writing. Said on its standard output alone.
    Abandoned {
        /// What was lost.
        unwritten: Vec<Unwritten>,
    },
    /// The request was not carried out.
    Refused {
        /// Why.
        reason: String,
        /// Whether the request made no sense (rather than failed).
        wrong_use: bool,
    },
}

/// How far a drain is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Still dirty or on the way to a device.
    pub(crate) left_bytes: u64,
    /// Written since the drain started.
    pub(crate) written_bytes: u64,
    /// Since the drain started.
    pub(crate) elapsed_ns: u64,
}

/// How a drain ended.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Drained {
    /// Written while it ran.
    pub(crate) written_bytes: u64,
    /// How long it took.
    pub(crate) elapsed_ns: u64,
    /// What could not be written.
    pub(crate) failed: Vec<Unwritten>,
}

/// A file with bytes that are not on its device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Unwritten {
    /// The file's path on the host, or its number if it has no name.
    pub(crate) file: String,
    /// How much of it is unwritten.
    pub(crate) bytes: u64,
    /// Why, if a write was tried and failed.
    pub(crate) reason: Option<String>,
}

/// Everything about a server at one moment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Address and port.
    pub(crate) listen: String,
    /// The directories and what each is exported as.
    pub(crate) serving: Vec<Served>,
    /// Since the server was ready.
    pub(crate) uptime_ns: u64,
    /// The cache's gauges.
    pub(crate) cache: CacheGauges,
    /// How writers are throttled.
    pub(crate) policy: String,
    /// By which policy clean pages are evicted.
    #[serde(default)]
    pub(crate) eviction: String,
    /// The devices.
    pub(crate) devices: Vec<DeviceGauges>,
    /// The protocol.
    pub(crate) nfs: NfsGauges,
    /// Every counter by name (docs/counters.md).
    pub(crate) counters: BTreeMap<String, u64>,
    /// Every knob's value in force for all devices, by name (docs/knobs.md).
    pub(crate) knobs: BTreeMap<String, u64>,
}

/// One directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Served {
    /// On the host.
    pub(crate) directory: String,
    /// What clients mount.
    pub(crate) export: String,
}

/// Where the cache's memory is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct CacheGauges {
    /// All of it.
    pub(crate) cache_bytes: u64,
    /// Holding nothing.
    pub(crate) free_bytes: u64,
    /// Not yet written, on the way included.
    pub(crate) dirty_bytes: u64,
    /// On the way to a device.
    pub(crate) writeback_bytes: u64,
    /// What all devices together may have dirty.
    pub(crate) dirty_limit_bytes: u64,
    /// Held by replies on their way to clients.
    pub(crate) pinned_bytes: u64,
    /// What describes the cache.
    pub(crate) metadata_bytes: u64,
    /// With memory behind it in 2 MiB pages, whether free or not.
    pub(crate) resident_huge_bytes: u64,
    /// The same in 4 KiB pages.
    pub(crate) resident_base_bytes: u64,
    /// Files the cache knows.
    pub(crate) files: u64,
}

/// One device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct DeviceGauges {
    /// Its name, as `--device` takes it.
    pub(crate) name: String,
    /// How it is read and written.
    pub(crate) described: String,
    /// Not yet written.
    pub(crate) dirty_bytes: u64,
    /// In how many runs.
    pub(crate) dirty_runs: u64,
    /// On the way.
    pub(crate) writeback_bytes: u64,
    /// Where its writers are made to wait.
    pub(crate) dirty_limit_bytes: u64,
    /// Where its flusher starts to write.
    pub(crate) background_threshold_bytes: u64,
    /// How fast it writes while it has something to write; none until that has been measured.
    pub(crate) write_bandwidth_bytes_per_s: Option<u64>,
    /// Dirtied since the start.
    pub(crate) dirtied_bytes: u64,
    /// Written since the start.
    pub(crate) written_bytes: u64,
    /// Read since the start.
    #[serde(default)]
    pub(crate) read_bytes: u64,
    /// Files that have had no turn to be written, those of the round under way, those that have more after theirs.
    pub(crate) b_dirty: u64,
    pub(crate) b_io: u64,
    pub(crate) b_more_io: u64,
    /// Time that it had work.
    pub(crate) busy_ns: u64,
    /// Requests in flight.
    pub(crate) in_flight_requests: u32,
    /// Writers waiting for it now.
    pub(crate) writers_waiting: u32,
    /// Files with unwritten bytes.
    pub(crate) files_dirty: u32,
    /// Files whose last write failed.
    pub(crate) files_failed: u32,
    /// What failed last.
    pub(crate) last_error: Option<String>,
    /// Knobs that have a value of their own for this device, by name.
    pub(crate) knobs: BTreeMap<String, u64>,
    /// It counts as hung: for so long it has completed nothing.
    pub(crate) stalled_ns: Option<u64>,
    /// Its writers and syncs are refused until it completes something.
    pub(crate) refuses: bool,
    /// What the policy has to say, by its own names.
    pub(crate) in_force: BTreeMap<String, Option<FigureGauge>>,
    /// Writers' pauses by cause, as far as there were any.
    pub(crate) pauses: Vec<PauseGauges>,
    /// How long waits took since the start.
    pub(crate) waits: WaitGauges,
    /// Who waits now, longest first, as many as are told by name.
    pub(crate) waiting: Vec<WaiterGauges>,
    /// How many more wait.
    pub(crate) waiting_more: u64,
    /// What clients waited for since the start: the 64 that ended a wait last.
    pub(crate) clients: Vec<DelayGauges>,
}

/// A figure of a policy's; none where that is not known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum FigureGauge {
    /// So much, of the unit in its name.
    Number(u64),
    /// In a word.
    Word(String),
}

/// Writers' pauses for one cause.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct PauseGauges {
    /// Why.
    pub(crate) cause: String,
    /// Writers that wait for it now.
    pub(crate) waiting: u64,
    /// Pauses that ended.
    pub(crate) count: u64,
    /// Their sum.
    pub(crate) ns: u64,
    /// The longest.
    pub(crate) longest_ns: u64,
}

/// How long waits took, by what was waited for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WaitGauges {
    /// Writes that had to wait: all pauses of one call together, and what it wrote itself.
    pub(crate) throttle: TimeGauges,
    /// Calls that had to wait for a frame.
    pub(crate) reclaim: TimeGauges,
    /// Calls that had to wait for bytes to be read.
    pub(crate) read: TimeGauges,
    /// Single pauses.
    pub(crate) pause: TimeGauges,
    /// Syncs.
    pub(crate) sync: TimeGauges,
    /// COMMITs.
    pub(crate) commit: TimeGauges,
}

/// How long waits of one kind took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TimeGauges {
    /// How many.
    pub(crate) count: u64,
    /// Their sum.
    pub(crate) ns: u64,
    /// Half of them took at most this.
    pub(crate) p50_ns: u64,
    /// 99 of 100.
    pub(crate) p99_ns: u64,
    /// 999 of 1,000.
    pub(crate) p999_ns: u64,
    /// The longest.
    pub(crate) max_ns: u64,
}

/// A payer that waits: a file, for a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct WaiterGauges {
    /// The file's path on the host.
    pub(crate) file: String,
    /// The client's address.
    pub(crate) client: Option<String>,
    /// The cause of a writer's pause, or `sync`.
    pub(crate) waits_for: String,
    /// How many of its calls do.
    pub(crate) calls: u64,
    /// For how long the first of these has.
    pub(crate) ns: u64,
}

/// What somebody waited for a device: a client, or of calls for nobody in particular, those to a file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct DelayGauges {
    /// The client's address.
    pub(crate) client: Option<String>,
    /// The user that it acted for.
    pub(crate) uid: Option<u32>,
    /// The file's path on the host.
    pub(crate) file: Option<String>,
    /// Calls that wait now, for room or a sync.
    pub(crate) waiting: u64,
    /// What those waited that have ended.
    #[serde(flatten)]
    pub(crate) times: DelayTimeGauges,
}

/// How long calls waited, by what for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct DelayTimeGauges {
    /// Writes, for their device.
    pub(crate) throttle: TimeGauges,
    /// For a frame.
    pub(crate) reclaim: TimeGauges,
    /// For bytes to be read.
    pub(crate) read: TimeGauges,
    /// For what was written to be durable.
    pub(crate) sync: TimeGauges,
}

impl DelayTimeGauges {
    /// Each with its name.
    pub(crate) fn all(&self) -> [(&'static str, &TimeGauges); 4] {
        let Self { throttle, reclaim, read, sync } = self;
        [("throttle", throttle), ("reclaim", reclaim), ("read", read), ("sync", sync)]
    }

    /// All together.
    pub(crate) fn ns(&self) -> u64 {
        self.all().iter().map(|(_, times)| times.ns).sum()
    }
}

/// One thing that happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct TraceEvent {
    /// Since the server was ready.
    pub(crate) at_ns: u64,
    /// The device; none if it is about all.
    pub(crate) device: Option<String>,
    /// The file's path on the host, if it is about one that is still open.
    pub(crate) file: Option<String>,
    /// The client's address, if it is known.
    pub(crate) client: Option<String>,
    /// What.
    #[serde(flatten)]
    pub(crate) what: Happened,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Happened {
    PauseBegins { wait: u64, cause: String },
    PauseEnds { wait: u64, cause: String, ns: u64 },
    SyncBegins { wait: u64 },
    SyncEnds { wait: u64, ns: u64 },
    Commit { ns: u64 },
    Turn { reason: String, pages: u64, ns: u64 },
    Submitted { operation: String, offset: u64, bytes: u64 },
    Completed { operation: String, offset: u64, bytes: u64, ns: u64, error: Option<String> },
    KnobChanged { knob: String, value: u64 },
    DeviceAdded,
    DeviceOver { over: bool },
    DeviceFailing { error: Option<String> },
    DeviceHangs { ns: u64, refuses: bool },
    DeviceGoesOn { ns: u64 },
}

impl Happened {
    /// As JSON calls it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::PauseBegins { .. } => "pause_begins",
            Self::PauseEnds { .. } => "pause_ends",
            Self::SyncBegins { .. } => "sync_begins",
            Self::SyncEnds { .. } => "sync_ends",
            Self::Commit { .. } => "commit",
            Self::Turn { .. } => "turn",
            Self::Submitted { .. } => "submitted",
            Self::Completed { .. } => "completed",
            Self::KnobChanged { .. } => "knob_changed",
            Self::DeviceAdded => "device_added",
            Self::DeviceOver { .. } => "device_over",
            Self::DeviceFailing { .. } => "device_failing",
            Self::DeviceHangs { .. } => "device_hangs",
            Self::DeviceGoesOn { .. } => "device_goes_on",
        }
    }
}

/// The NFS front end.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct NfsGauges {
    /// Open connections.
    pub(crate) connections: u64,
    /// How many there may be.
    pub(crate) connections_max: u64,
    /// Closed because they were silent for too long.
    pub(crate) closed_silent: u64,
    /// Closed to make room for new ones.
    pub(crate) closed_for_room: u64,
    /// Refused because all that could have made room had calls in progress.
    pub(crate) refused: u64,
    /// Bytes that connections hold: requests in progress or on their way in, replies not sent yet.
    pub(crate) request_bytes: u64,
    /// Connections that wait until others hold less.
    pub(crate) waiting_for_room: u64,
    /// Closed because they held what others waited for and their peers did nothing about it.
    pub(crate) closed_stalled: u64,
    /// Reset because there was no room to receive what their peers had sent, for 15 s.
    pub(crate) closed_unread: u64,
    /// How many there were of each procedure, refusal and status other than OK, by name.
    pub(crate) calls: BTreeMap<String, u64>,
    /// What is served to each client that has connections, by address.
    #[serde(default)]
    pub(crate) clients: BTreeMap<String, PeerGauges>,
}

/// What is served to a client over the connections that it has now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PeerGauges {
    /// How many it has.
    pub(crate) connections: u64,
    /// What came over these, calls and data.
    pub(crate) received_bytes: u64,
    /// What went back.
    pub(crate) sent_bytes: u64,
}
