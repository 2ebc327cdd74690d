//! The rows, as values.
//!
//! Owns: the rows, their order, the filter.
//! Does not own: the source of the values (`model`), their layout (`table`, `screen`).
//! Invariants: plain values with the unit in the name, as in JSON.

use std::cmp::Reverse;

use afflux_engine::{Delay, DeviceStatus, PerDelay};
use serde::{Serialize, Serializer};

/// Everything at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Rows {
    pub(super) listen: String,
    pub(super) uptime_ns: u64,
    pub(super) policy: String,
    pub(super) cache: CacheRow,
    pub(super) connections: u64,
    pub(super) open_files: u64,
    pub(super) delegations: u64,
    pub(super) locked_ranges: u64,
    pub(super) calls_per_s: u64,
    pub(super) devices: Vec<DeviceRow>,
    pub(super) clients: Vec<ClientRow>,
    pub(super) files: Vec<FileRow>,
    /// Current waits, the longest first, then finished ones, the latest first.
    pub(super) waits: Vec<WaitRow>,
    /// Events lost since the beginning: files do more than the rows show.
    pub(super) lost_events: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct CacheRow {
    pub(super) cache_bytes: u64,
    pub(super) used_bytes: u64,
    pub(super) dirty_bytes: u64,
    /// Pages of reads in the last second that were in the cache.
    pub(super) hit_pages: u64,
    pub(super) miss_pages: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct DeviceRow {
    #[serde(flatten)]
    pub(super) status: DeviceStatus,
    /// None under a policy that does not count in time.
    pub(super) owed_ns: Option<u64>,
    pub(super) budget_ns: Option<u64>,
    pub(super) written_bytes_per_s: u64,
    pub(super) read_bytes_per_s: u64,
    /// Requests to the store behind it; none for a disk.
    pub(super) store_requests_per_s: Option<u64>,
    /// The share of parts that the disk cache had; none without reads, or without a disk cache.
    pub(super) disk_cache_percent: Option<u64>,
    /// The last two minutes, one value a second: the owed time as a fraction of the budget, in thousandths; without a
    /// time, the dirty bytes as a fraction of the limit.
    #[serde(skip)]
    pub(super) owed_per_mille: Vec<u64>,
    /// Bytes written, in the same seconds.
    #[serde(skip)]
    pub(super) written: Vec<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct ClientRow {
    pub(super) name: String,
    pub(super) connections: u64,
    pub(super) received_bytes_per_s: u64,
    pub(super) sent_bytes_per_s: u64,
    #[serde(serialize_with = "per_second")]
    pub(super) waited: WaitRates,
    pub(super) waiting: u64,
}

/// Waits of all calls together, in nanoseconds of each second, by cause.
pub(super) type WaitRates = PerDelay<u64>;

/// The sum over all causes.
pub(super) fn all(waited: &WaitRates) -> u64 {
    Delay::ALL.iter().fold(0, |sum, delay| sum.saturating_add(waited.of(*delay)))
}

/// With the unit in the names.
fn per_second<S: Serializer>(waited: &WaitRates, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(Delay::ALL.map(|delay| (format!("{}_ns_per_s", delay.name()), waited.of(delay))))
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct FileRow {
    pub(super) name: String,
    pub(super) device: String,
    pub(super) written_bytes_per_s: u64,
    pub(super) read_bytes_per_s: u64,
    pub(super) paused_ns_per_s: u64,
    pub(super) synced_ns_per_s: u64,
    pub(super) waiting: u64,
}

/// Waits of the same client for the same file and cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct WaitRow {
    /// Time since the last of them ended; none while they last.
    pub(super) ended_ns_ago: Option<u64>,
    pub(super) longest_ns: u64,
    /// Number of recent waits of this kind; for current ones, the number of calls.
    pub(super) times: u64,
    /// The cause of a pause, or `sync`.
    pub(super) waits_for: String,
    pub(super) device: String,
    pub(super) client: Option<String>,
    pub(super) file: Option<String>,
}

/// The sort order of clients and files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum SortOrder {
    #[default]
    Writes,
    Waits,
    Name,
}

impl SortOrder {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Writes => Self::Waits,
            Self::Waits => Self::Name,
            Self::Name => Self::Writes,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Writes => "writes",
            Self::Waits => "waits",
            Self::Name => "name",
        }
    }
}

impl WaitRow {
    /// Whether both are waits of the same client for the same file and cause.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        let key = |row: &Self| (row.waits_for.clone(), row.device.clone(), row.client.clone(), row.file.clone());
        key(self) == key(other)
    }
}

/// How much attention a row deserves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum Attention {
    #[default]
    Calm,
    /// Near a limit, or calls wait for a good part of the time.
    Busy,
    /// Over the budget, hung or failing, or calls wait all the time.
    Over,
}

impl Attention {
    /// Busy from one value on, over from another.
    fn of(value: u64, busy: u64, over: u64) -> Self {
        if value >= over {
            Self::Over
        } else if value >= busy {
            Self::Busy
        } else {
            Self::Calm
        }
    }
}

/// A second.
const S: u64 = 1_000_000_000;

impl DeviceRow {
    pub(super) fn load(&self) -> Attention {
        let (owed, full) = match (self.owed_ns, self.budget_ns) {
            (Some(owed), Some(budget)) => (owed, budget),
            _ => (self.status.dirty_bytes, self.status.dirty_limit_bytes),
        };
        let DeviceStatus { stalled_ns, names_stalled_ns, away_ns, files_failed, .. } = self.status;
        let hangs = stalled_ns.or(names_stalled_ns).is_some();
        let is_failing = hangs || away_ns.is_some() || files_failed > 0;
        // A device that is written at full speed owes about its budget. A tenth above the budget is too much.
        let by_debt =
            if full == 0 { Attention::Calm } else { Attention::of(owed, full / 2, full.saturating_add(full / 10)) };
        if is_failing { Attention::Over } else { by_debt }
    }
}

impl ClientRow {
    /// By the time that its calls waited in each second.
    pub(super) fn load(&self) -> Attention {
        Attention::of(all(&self.waited), S / 4, S)
    }
}

impl FileRow {
    /// As a client's.
    pub(super) fn load(&self) -> Attention {
        Attention::of(self.paused_ns_per_s.saturating_add(self.synced_ns_per_s), S / 4, S)
    }
}

impl WaitRow {
    /// By the time of a wait that lasts; one that ended is calm.
    pub(super) fn load(&self) -> Attention {
        if self.ended_ns_ago.is_some() { Attention::Calm } else { Attention::of(self.longest_ns, S, 10 * S) }
    }
}

impl Rows {
    /// Sorts by `order`: names in ascending order, figures in descending order.
    pub(super) fn sort(&mut self, order: SortOrder) {
        self.clients.sort_by(|one, other| one.name.cmp(&other.name));
        self.files.sort_by(|one, other| one.name.cmp(&other.name));
        match order {
            SortOrder::Name => {}
            SortOrder::Writes => {
                self.clients.sort_by_key(|row| Reverse((row.received_bytes_per_s, row.sent_bytes_per_s)));
                self.files.sort_by_key(|row| Reverse((row.written_bytes_per_s, row.read_bytes_per_s)));
            }
            SortOrder::Waits => {
                self.clients.sort_by_key(|row| Reverse((row.waiting, all(&row.waited))));
                self.files.sort_by_key(|row| Reverse((row.waiting, row.paused_ns_per_s + row.synced_ns_per_s)));
            }
        }
    }

    /// Retains only rows with these letters in a name, in upper or lower case.
    pub(super) fn keep(&mut self, letters: &str) {
        if letters.is_empty() {
            return;
        }
        let letters = letters.to_lowercase();
        let has = |name: &str| name.to_lowercase().contains(&letters);
        self.devices.retain(|row| has(&row.status.name));
        self.clients.retain(|row| has(&row.name));
        self.files.retain(|row| has(&row.name) || has(&row.device));
        self.waits.retain(|row| {
            has(&row.device)
                || has(&row.waits_for)
                || [&row.client, &row.file].into_iter().flatten().any(|name| has(name))
        });
    }
}
