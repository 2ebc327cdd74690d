//! The messages of the control socket.
//!
//! Owns: requests, replies, the report that `stat` shows.
//! Does not own: sockets.
//! Invariants: byte and time values are whole numbers with the unit in the name.

use std::collections::BTreeMap;

use afflux_engine::gauges;
use afflux_engine::policy::KnobInForce;
use afflux_engine::{DelayTimes, DeviceStatus, EngineStatus, PerWait, WaitTimes};
use afflux_frontend::AnsweredSum;
use afflux_report::output;
use serde::{Deserialize, Serialize};

/// Longest line that either side sends or accepts.
pub(crate) const LINE_BYTES_MAX: u64 = 4 << 20;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ControlRequest {
    /// A report of the server's status.
    Stat,
    /// Each client's waits.
    Delays,
    /// The files with unwritten bytes.
    Files,
    /// Set knobs: all of them, or none if one is refused.
    Set {
        /// Each `KNOB=VALUE`.
        assignments: Vec<String>,
        /// Only for this device.
        device: Option<String>,
    },
    /// Write everything that is dirty now.
    Drain,
    /// The clients of version 4; with a number, an address or a user, those meant by it, and all that they have.
    Clients { client: Option<String> },
    /// End a client of version 4, by its number, its address or its user.
    Unlock { client: String },
    /// Report clients' calls from now on, until the connection closes or the time is over.
    Record { lasting_ns: Option<u64> },
    /// Report events from now on, until the connection closes or the time is over.
    Trace {
        /// Only this device's events, and those of all devices.
        device: Option<String>,
        lasting_ns: Option<u64>,
        /// Only events with these names; all if the list is empty.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        only: Vec<String>,
    },
}

/// The server's answer. A drain is answered by any number of `Progress`, then `Drained`. A trace is answered by any
/// number of `Events`, then, if it has an end, `TraceEnded`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum ControlReply {
    /// Answer to `Stat`.
    Report(Box<Report>),
    /// Answer to `Delays`: any number of these; each device has one or several in a row.
    Delays(DeviceDelayGauges),
    /// Answer to `Files`.
    Files(UnwrittenFiles),
    /// Ends the answer to `Delays`.
    DelaysEnded {
        /// Since the server was ready.
        uptime_ns: u64,
    },
    /// Answer to `Set`: one for each knob, in the same order.
    Set {
        knob: String,
        unit: String,
        /// The value in force now.
        value: u64,
        /// The device that it holds for; none if for all.
        device: Option<String>,
        /// Where the knob acts with another value.
        #[serde(default)]
        in_force: Vec<KnobGauge>,
    },
    /// Progress of a drain.
    Progress(Progress),
    /// A drain has ended.
    Drained(Drained),
    /// Answer to `Clients`: any number of these; each client that is asked for is followed by its `ClientStates`.
    Clients { clients: Vec<ClientGauges> },
    /// Opens and locks of the last client: any number of these.
    ClientStates { states: Vec<ClientStateGauges> },
    /// Ends the answer to `Clients`.
    ClientsEnded {
        /// Clients of an earlier server that others wait for.
        missing: u64,
    },
    /// Answer to `Unlock`: the clients that were ended, and what they had.
    Unlocked { clients: Vec<LockerGauges> },
    /// Events. Sent once at the beginning, and at least once a second.
    Events {
        /// In order.
        events: Vec<TraceEvent>,
        /// Events of all devices that were lost before these, since the connection was too slow.
        lost: u64,
    },
    /// Calls that clients made, in order. Sent at least once a second.
    Calls {
        /// Microseconds since the server was ready, operation (1 read, 2 write, 3 sync), file, offset, bytes.
        calls: Vec<[u64; 5]>,
        /// Calls that were lost before these, since the connection was too slow.
        lost: u64,
    },
    /// The time of a trace is over.
    TraceEnded,
    /// The server was ordered to end without writing. Printed only on its standard output.
    Abandoned { unwritten: Vec<DirtyFileReport> },
    /// The request was not carried out.
    Refused {
        reason: String,
        /// Whether the request made no sense (otherwise it failed).
        wrong_use: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Still dirty or under writeback.
    pub(crate) left_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) elapsed_ns: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Drained {
    pub(crate) written_bytes: u64,
    pub(crate) elapsed_ns: u64,
    pub(crate) failed: Vec<DirtyFileReport>,
    /// Files that clients of version 4 still have open.
    #[serde(default)]
    pub(crate) open_files: u64,
}

/// A file with bytes that did not reach its device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct DirtyFileReport {
    /// The file's path on the host, or its number if it has no name.
    pub(crate) file: String,
    pub(crate) bytes: u64,
    /// The reason, unless the file only waited for its flush.
    pub(crate) reason: Option<String>,
}

/// The files with unwritten bytes, those with most first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct UnwrittenFiles {
    /// At most [`DIRTY_FILES_MAX`].
    pub(crate) files: Vec<DirtyFileReport>,
    /// How many more there are.
    pub(crate) others: u64,
    pub(crate) others_bytes: u64,
}

/// Most files named in an answer.
pub(crate) const DIRTY_FILES_MAX: usize = 1000;

/// Everything about a server at one moment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Address and port, or the mount point of a mount alone.
    pub(crate) listen: String,
    /// The mount point, if there is a mount.
    #[serde(default)]
    pub(crate) mount: Option<String>,
    pub(crate) serving: Vec<ServedDirectory>,
    /// Since the server was ready.
    pub(crate) uptime_ns: u64,
    pub(crate) cache: CacheGauges,
    pub(crate) policy: String,
    #[serde(default)]
    pub(crate) eviction: String,
    /// Whether changes of names are answered once they are durable (no `--async-metadata`).
    #[serde(default)]
    pub(crate) names_durable: bool,
    pub(crate) devices: Vec<DeviceGauges>,
    pub(crate) nfs: NfsGauges,
    /// Calls of the programs on the mount.
    #[serde(default)]
    pub(crate) mount_answered: AnsweredCalls,
    /// Every counter by name (docs/reference/counters.md).
    pub(crate) counters: BTreeMap<String, u64>,
    /// Every knob's value in force for all devices, by name (docs/reference/knobs.md).
    pub(crate) knobs: BTreeMap<String, u64>,
}

impl Report {
    pub(crate) fn device(&self, name: &str) -> Option<&DeviceGauges> {
        self.devices.iter().find(|device| device.status.name == name)
    }

    /// Calls of clients and of programs on the mount.
    pub(crate) fn calls(&self) -> u64 {
        self.nfs.answered.calls + self.mount_answered.calls
    }

    /// The growth of a counter since an earlier report.
    pub(crate) fn counted_since(&self, before: &Self, counter: &str) -> u64 {
        let value = |report: &Self| report.counters.get(counter).copied().unwrap_or(0);
        value(self).saturating_sub(value(before))
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ServedDirectory {
    /// On the host.
    pub(crate) directory: String,
    /// The path that clients mount.
    pub(crate) export: String,
}

gauges! {
    /// Use of the cache's memory.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub(crate) struct CacheGauges in CACHE_FIGURES {
        resident_huge_bytes: u64 = Now "resident_huge_bytes" "bytes" "" "" "Memory in pages of 2 MiB, free memory included.";
        resident_base_bytes: u64 = Now "resident_base_bytes" "bytes" "" "" "Memory in pages of 4 KiB, free memory included.";
        #[serde(default)]
        longest_poll_ns: u64 = Now "longest_poll_ns" "ns" "" "longest_poll" "The longest time since the start that a task has kept one of the server's threads; the thread's other connections and devices have waited for it. A thread that the host does not run counts, too.";
        #[serde(default)]
        arena: Option<String> = Word "arena" "" "" "" "The holder of the memory after the server's death: a file, or `systemd`.";
    } own {
        #[serde(flatten)]
        status: EngineStatus,
    }
}

gauges! {
    /// The status of a device, with figures that the server adds.
    #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub(crate) struct DeviceGauges in SERVED_DEVICE_FIGURES {
        described: String = Word "described" "" "" "" "How the device is attached, read and written.";
        b_dirty: u64 = Now "b_dirty" "files" "b_dirty" "" "Dirty files that wait for their first turn.";
        b_io: u64 = Now "b_io" "files" "b_io" "" "Files of the current round of turns.";
        b_more_io: u64 = Now "b_more_io" "files" "b_more_io" "" "Files with more to write after their turn.";
        last_error: Option<String> = Word "last_error" "" "" "" "The last error of a write or flush, or null.";
        knobs: BTreeMap<String, u64> = Word "knobs" "" "" "" "Knobs with a value only for this device, by name.";
        #[serde(default)]
        knobs_in_force: Vec<KnobGauge> = Word "knobs_in_force" "" "" "" "Knobs that act with another value than they were given: `knob`, `value` (null: no effect), `unit`, and the reason (`because`).";
        #[serde(default)]
        store: Option<StoreGauges> = Word "store" "" "" "" "The object store behind the device: its requests since the start (`puts`, `gets`, `lists`, `deletes`), its words about a failed request (`trouble`), `is_read_only`, the time since its last answer (`silent_ns`), the requests that wait for it (`waiting`, the oldest for `waiting_ns`), and the dirty bytes that it has and no durable record names (`unsynced_bytes`). `disk_cache`: null, or its `size_bytes`, `written_bytes` and `read_bytes`, parts found (`hits`), fetched (`misses`), damaged (`dropped`), and how often its disk was too slow (`rests`).";
        in_force: BTreeMap<String, Option<FigureGauge>> = Word "in_force" "" "" "" "The policy's own figures, below.";
        pauses: Vec<PauseGauges> = Word "pauses" "" "" "" "Writers' pauses by `cause`: those that last (`waiting`), the ended ones (`count`), their sum (`ns`), the longest (`longest_ns`).";
        waits: PerWait<WaitTimes> = Word "waits" "" "" "" "Ended waits since the start: `throttle` (all pauses of a write, and its own writeback), `reclaim` (for a frame), `read` (for bytes), `pause` (single ones), `sync`, `commit`. Each has `count`, `ns`, `p50_ns`, `p99_ns`, `p999_ns` and `max_ns`; quantiles are at most 3.2 % off.";
        waiting: Vec<WaiterGauges> = Word "waiting" "" "" "" "The 16 longest waits that last: `file`, `client`, its reason (`waits_for`: a cause of pauses, or `sync`), the number of `calls`, and the time of the first (`ns`).";
        waiting_more: u64 = Now "waiting_more" "waits" "" "" "Number of further waits.";
        clients: Vec<DelayGauges> = Word "clients" "" "" "" "The 64 clients whose waits ended last: address (`client`), `uid`, calls that are `waiting`, and times as in `waits`. `afflux delays --json` has all of them.";
    } own {
        /// Its name is the one that `--device` takes.
        #[serde(flatten)]
        status: DeviceStatus,
    }
}

impl DeviceGauges {
    /// A number among the policy's figures.
    pub(crate) fn figure(&self, name: &str) -> Option<u64> {
        match self.in_force.get(name)? {
            Some(FigureGauge::Number(number)) => Some(*number),
            _ => None,
        }
    }
}

/// Requests to an object store since the start.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct StoreGauges {
    pub(crate) puts: u64,
    pub(crate) gets: u64,
    pub(crate) lists: u64,
    pub(crate) deletes: u64,
    /// The store's words about the oldest request that failed and is repeated.
    pub(crate) trouble: Option<String>,
    /// Whether the volume is only read here.
    pub(crate) is_read_only: bool,
    /// How long ago the store gave its last answer. A follower is behind by this time, and up to three seconds more.
    pub(crate) silent_ns: u64,
    /// Requests that wait for an answer: those of data, of records, of everything.
    #[serde(default)]
    pub(crate) waiting: u64,
    /// For how long the oldest of them.
    #[serde(default)]
    pub(crate) waiting_ns: u64,
    /// Bytes that were sent, and that no durable record names yet. They count as dirty.
    #[serde(default)]
    pub(crate) unsynced_bytes: u64,
    #[serde(default)]
    pub(crate) disk_cache: Option<DiskCacheGauges>,
}

/// Parts of the store's objects on a local disk, since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct DiskCacheGauges {
    pub(crate) size_bytes: u64,
    pub(crate) written_bytes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) dropped: u64,
    pub(crate) rests: u64,
}

impl DiskCacheGauges {
    /// The share of parts that readers found since an earlier report; none if nobody asked for a part.
    pub(crate) fn hit_percent(&self, earlier: &Self) -> Option<u64> {
        let hits = self.hits.saturating_sub(earlier.hits);
        (100 * hits).checked_div(hits + self.misses.saturating_sub(earlier.misses))
    }
}

impl StoreGauges {
    /// The time of the oldest request, if it waits for so long that a caller notices.
    pub(crate) fn slow_ns(&self) -> Option<u64> {
        Some(self.waiting_ns).filter(|ns| *ns >= 1_000_000_000)
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum FigureGauge {
    /// With the unit in the figure's name.
    Number(u64),
    Word(String),
}

/// A knob that acts with another value than it was given.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct KnobGauge {
    pub(crate) knob: String,
    /// The device; none if it is the whole server, or the device of the report.
    pub(crate) device: Option<String>,
    /// The value in force; none if the knob has no effect.
    pub(crate) value: Option<u64>,
    pub(crate) unit: String,
    pub(crate) because: String,
}

impl KnobGauge {
    pub(crate) fn of(knob: KnobInForce, device: Option<String>) -> Self {
        let KnobInForce { name, value, unit, because } = knob;
        Self { knob: name.to_owned(), device, value, unit: unit.to_owned(), because }
    }

    /// The value in force and the reason, as [`KnobInForce::told_with`].
    pub(crate) fn told_with(&self, number: impl Fn(u64) -> String) -> String {
        let (unit, because) = (output::shown(&self.unit), output::shown(&self.because));
        match self.value {
            Some(value) => format!("{} {unit} in force: {because}", number(value)),
            None => format!("no effect: {because}"),
        }
    }
}

/// Writers' pauses for one cause.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct PauseGauges {
    pub(crate) cause: String,
    /// Writers that are paused for it now.
    pub(crate) waiting: u64,
    /// Count of pauses that are over.
    pub(crate) count: u64,
    /// Sum of their times.
    pub(crate) ns: u64,
    pub(crate) longest_ns: u64,
}

/// A payer that waits: a file, on behalf of a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct WaiterGauges {
    /// The file's path on the host.
    pub(crate) file: String,
    pub(crate) client: Option<String>,
    /// The cause of a writer's pause, or `sync`.
    pub(crate) waits_for: String,
    pub(crate) calls: u64,
    /// Time that the first of these has waited.
    pub(crate) ns: u64,
}

/// Clients' waits for a device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct DeviceDelayGauges {
    pub(crate) name: String,
    pub(crate) clients: Vec<DelayGauges>,
    /// Sums of the clients that are no longer listed separately.
    pub(crate) others: DelayTimes,
    pub(crate) others_count: u64,
}

/// The waits of a client for a device; calls of no known client are counted for their file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct DelayGauges {
    pub(crate) client: Option<String>,
    /// The user that the client acted for.
    pub(crate) uid: Option<u32>,
    /// The file's path on the host.
    pub(crate) file: Option<String>,
    /// Calls that are paused or wait for a sync now.
    pub(crate) waiting: u64,
    #[serde(flatten)]
    pub(crate) times: DelayTimes,
}

impl DelayGauges {
    /// The name for people: a client's address and user, or a file's path.
    pub(crate) fn name(&self) -> String {
        let user = self.uid.map(|uid| format!(" uid {uid}")).unwrap_or_default();
        let name = self.client.as_ref().or(self.file.as_ref());
        format!("{}{user}", output::shown(name.map_or("nobody in particular", String::as_str)))
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct TraceEvent {
    /// Since the server was ready.
    pub(crate) at_ns: u64,
    /// The device; none if the event concerns all.
    pub(crate) device: Option<String>,
    /// The file's path on the host, if the event concerns a file that is still open.
    pub(crate) file: Option<String>,
    /// The client's address, if it is known.
    pub(crate) client: Option<String>,
    #[serde(flatten)]
    pub(crate) what: Happened,
}

/// An event with the fields that it has beside its location and time.
#[cfg(test)]
pub(crate) struct EventInfo {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [&'static str],
    pub(crate) doc: &'static str,
}

macro_rules! events {
    ($($variant:ident $({ $($field:ident: $type:ty),* })? $name:literal $doc:literal;)*) => {
        #[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
        #[serde(tag = "event")]
        pub(crate) enum Happened {
            $(#[doc = $doc] #[serde(rename = $name)] $variant $({ $($field: $type),* })?,)*
        }

        impl Happened {
            pub(crate) fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                }
            }
        }

        /// The events of `afflux trace --json`, for their page.
        #[cfg(test)]
        pub(crate) static EVENTS: &[EventInfo] = &[
            $(EventInfo { name: $name, fields: &[$($(stringify!($field)),*)?], doc: $doc },)*
            EventInfo { name: LOST, fields: &["events"], doc: "So many events are missing here, of all devices: they came faster than they were read." },
        ];
    };
}

/// The name of the line for lost events.
pub(crate) const LOST: &str = "lost";

events! {
    PauseBegins { wait: u64, cause: String } "pause_begins" "A writer begins to wait. `wait` is the same at the end; each device counts its own.";
    PauseEnds { wait: u64, cause: String, ns: u64 } "pause_ends" "The writer goes on, is asked about again, or has gone away.";
    SyncBegins { wait: u64 } "sync_begins" "A caller begins to wait for a sync of the file.";
    SyncEnds { wait: u64, ns: u64 } "sync_ends" "The sync is over, or its caller has gone away.";
    Commit { ns: u64 } "commit" "A COMMIT is over, or its client has gone away.";
    Turn { reason: String, pages: u64, ns: u64 } "turn" "The file had a turn of the flusher, for `sync`, `retry`, `background`, `expired` or `idle`; so many pages were submitted.";
    Submitted { operation: String, offset: u64, bytes: u64 } "submitted" "A request goes to the device: `read`, `write`, `flush`, `set size`, `punch`, `reserve`.";
    Completed { operation: String, offset: u64, bytes: u64, ns: u64, error: Option<String> } "completed" "A request has ended, so long after it was submitted.";
    SetAside { ns: u64 } "set_aside" "A request of the file has not ended for so long. Other files get its place in the device, and the file waits.";
    KnobChanged { knob: String, value: u64 } "knob_changed" "A knob was set, for the device or for all.";
    DeviceAdded "device_added" "The first file of a device was opened.";
    DeviceFailing { error: Option<String> } "device_failing" "Writes keep failing, and writers are told; null once one has succeeded.";
    DeviceHangs { ns: u64, refuses: bool } "device_hangs" "The device has requests and has completed none for so long; whether its writers and syncs are refused.";
    DeviceGoesOn { ns: u64 } "device_goes_on" "The device has completed something after so long, or has no request left.";
}

gauges! {
    /// The NFS front end.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub(crate) struct NfsGauges in NFS_FIGURES {
        connections: u64 = Now "connections" "connections" "" "connections" "Open connections.";
        connections_max: u64 = Now "connections_max" "connections" "" "connections_max" "Most connections at a time: 1,024, or fewer with a low limit on descriptors.";
        #[serde(default)]
        accepted: u64 = Total "accepted" "connections" "" "accepted_connections" "Connections accepted.";
        closed_silent: u64 = Total "closed_silent" "connections" "" "" "Connections closed because they were silent for `nfs_idle_centisecs`.";
        closed_for_room: u64 = Total "closed_for_room" "connections" "" "" "Connections closed to make room for new ones.";
        refused: u64 = Total "refused" "connections" "" "refused_connections" "Connections refused because all that could have made room had calls in progress (`nfs_peer_connections_max`).";
        request_bytes: u64 = Now "request_bytes" "bytes" "" "request_bytes" "Memory that connections hold, at most `nfs_request_bytes_max`: requests in progress or being received, replies not sent yet, empty buffers.";
        #[serde(default)]
        connections_at_work: u64 = Now "connections_at_work" "connections" "" "connections_at_work" "Connections with a part of a request, a call in progress or an unsent reply.";
        waiting_for_room: u64 = Now "waiting_for_room" "connections" "" "waiting_connections" "Connections that wait until others hold less memory.";
        closed_stalled: u64 = Total "closed_stalled" "connections" "" "" "Connections closed because others waited for their memory, while their peers made no progress.";
        closed_unread: u64 = Total "closed_unread" "connections" "" "" "Connections reset because there was no room for 15 s to receive their peers' data.";
        #[serde(default)]
        calls_in_progress: u64 = Now "calls_in_progress" "calls" "" "calls_in_progress" "Calls received and not answered yet.";
        #[serde(default)]
        received_bytes: u64 = Total "received_bytes" "bytes" "" "received_bytes" "Bytes received.";
        #[serde(default)]
        sent_bytes: u64 = Total "sent_bytes" "bytes" "" "sent_bytes" "Bytes sent.";
        #[serde(default)]
        known_clients: u64 = Now "known_clients" "clients" "" "known_clients" "Clients of version 4, silent ones too.";
        #[serde(default)]
        sessions: u64 = Now "sessions" "sessions" "" "sessions" "Sessions of version 4.";
        #[serde(default)]
        open_files: u64 = Now "open_files" "files" "" "open_files" "Files that clients of version 4 have open.";
        #[serde(default)]
        locked_ranges: u64 = Now "locked_ranges" "ranges" "" "locked_ranges" "Ranges of bytes that clients of version 4 and programs on a mount have locked.";
        #[serde(default)]
        delegations: u64 = Now "delegations" "delegations" "" "delegations" "Delegations of clients of version 4.";
        #[serde(default)]
        delegations_recalled: u64 = Total "delegations_recalled" "delegations" "" "delegations_recalled" "Recalled ones.";
        #[serde(default)]
        delegations_revoked: u64 = Total "delegations_revoked" "delegations" "" "delegations_revoked" "Ones that clients lost.";
        #[serde(default)]
        lock_waiters: u64 = Now "lock_waiters" "programs" "" "lock_waiters" "Programs that wait for a lock.";
        #[serde(default)]
        tls_certificate_ns: Option<u64> = Now "tls_certificate_ns" "ns" "" "tls_certificate" "Time until the first certificate of `--tls` expires; null without TLS.";
        #[serde(default)]
        answered: AnsweredCalls = Word "answered" "" "" "" "Calls answered since the start, of all versions: all (`calls`; a compound is one), and those that read, write and sync (`reads`, `writes`, `syncs`), of callers not admitted (`unauthorized`). `mount_answered` beside `nfs` has the same of programs on the mount.";
        calls: BTreeMap<String, u64> = Word "calls" "" "" "" "Numbers of calls of each procedure, of refusals, and of each status other than OK.";
        #[serde(default)]
        clients: BTreeMap<String, PeerGauges> = Word "clients" "" "" "" "Clients with open connections, by address: `connections`, `received_bytes`, `sent_bytes`, connections with TLS (`tls_connections`), names in their `certificates`.";
        #[serde(default)]
        lockers: Vec<LockerGauges> = Word "lockers" "" "" "" "Clients and mounts with open files or locks, or with programs that wait for a lock: `number` (for `afflux unlock`; null for a mount), `name`, open files (`opens`), those that they deny to others (`denying`), locked `ranges`, programs that wait (`waiting`). `afflux clients --json` has all clients.";
    } own {}
}

/// Calls that were answered since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AnsweredCalls {
    /// All calls, also those that neither read nor write.
    pub(crate) calls: u64,
    /// Those that read.
    pub(crate) reads: u64,
    /// Those that write.
    pub(crate) writes: u64,
    /// Those that make bytes durable.
    pub(crate) syncs: u64,
    /// Calls of callers that are not admitted.
    #[serde(default)]
    pub(crate) unauthorized: u64,
}

impl From<AnsweredSum> for AnsweredCalls {
    fn from(AnsweredSum { calls, reads, writes, syncs, unauthorized }: AnsweredSum) -> Self {
        Self { calls, reads, writes, syncs, unauthorized }
    }
}

/// The opens and locks of a client, or the locks of the programs on a mount.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LockerGauges {
    /// The number of a client, for `afflux unlock`. None for a mount, and for a client whose end is being written to
    /// the disk.
    pub(crate) number: Option<u32>,
    /// Its address or user, and its own name.
    pub(crate) name: String,
    /// Its open files; those of a mount are not counted.
    #[serde(default)]
    pub(crate) opens: u64,
    /// Ranges of bytes that it has locked.
    pub(crate) ranges: u64,
    /// Its open files that others may not read, or not write.
    pub(crate) denying: u64,
    /// Its programs that wait for a lock.
    pub(crate) waiting: u64,
}

/// A client of version 4.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ClientGauges {
    /// Its number, for `afflux unlock`.
    pub(crate) number: u32,
    /// The printable part of its own name.
    pub(crate) name: String,
    /// Its machine; none for a program of this host.
    pub(crate) address: Option<String>,
    /// The user of a program of this host, or the user that another machine has named.
    pub(crate) user: Option<u32>,
    /// The names in the certificates of its machine.
    pub(crate) certificates: Vec<String>,
    /// The version of its sessions, such as 4.2; none without a session.
    pub(crate) version: Option<String>,
    /// `unconfirmed`, `confirmed`, `courtesy` or `expired`.
    pub(crate) status: String,
    /// The time until its lease ends; 0 after that.
    pub(crate) lease_left_ns: u64,
    pub(crate) sessions: u64,
    /// The slots of all its sessions, and those with a call in progress.
    pub(crate) slots: u64,
    pub(crate) slots_in_use: u64,
    /// It has asked for calls from the server, and no connection carries any.
    pub(crate) is_back_channel_down: bool,
    /// Its open files.
    pub(crate) opens: u64,
    /// Its open files that others may not read, or not write.
    pub(crate) denying: u64,
    /// Ranges of bytes that it has locked.
    pub(crate) ranges: u64,
    /// Its programs that wait for a lock.
    pub(crate) waiting: u64,
    /// Its delegations. Revoked ones count until the client frees them.
    #[serde(default)]
    pub(crate) delegations: u64,
}

/// An open, a lock or a delegation of a client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ClientStateGauges {
    /// The file's path on the host, or its number.
    pub(crate) file: String,
    /// The printable part of the name of the program.
    pub(crate) owner: String,
    #[serde(flatten)]
    pub(crate) what: OpenOrLock,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum OpenOrLock {
    /// Uses of the file, and the uses that others may not make of it: `-`, `r`, `w` or `rw`.
    Open { access: String, deny: String },
    /// Bytes `first` to `last` of the file, both included.
    Lock { first: u64, last: u64, is_exclusive: bool },
    /// A delegation for reading.
    Delegation { is_recalled: bool, is_revoked: bool },
    /// Opens, locks and delegations that are not shown.
    Others { count: u64 },
}

/// Traffic of a client over its open connections.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PeerGauges {
    pub(crate) connections: u64,
    /// Bytes received over them, calls and data.
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    #[serde(default)]
    pub(crate) tls_connections: u64,
    /// The names in its certificates, each once.
    #[serde(default)]
    pub(crate) certificates: Vec<String>,
}
