//! The keys of a device file, each with its unit, range and meaning.
//!
//! Owns: the list of keys of each kind of device.
//! Does not own: values (`devices/`), reading (`parse`), their effect on a model (`disk::timing`).
//! Invariants: a key's name ends in its unit unless it counts things.

use crate::document::Unit;

/// The kind of model behind a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Arms over platters.
    Rotating,
    /// Flash that is erased in whole blocks: sticks and cards.
    Card,
    /// Flash dies that work in parallel: solid-state drives.
    Flash,
    /// Calls to a store of objects.
    Store,
    /// A byte rate, as a throttle enforces it.
    Throttled,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name in the file.
    pub name: &'static str,
    /// The unit of its number.
    pub unit: Unit,
    /// The smallest number allowed.
    pub first: u64,
    /// The largest number allowed.
    pub last: u64,
    /// The number used if the file has none; without it the key is required.
    pub default: Option<u64>,
    /// Its meaning, for the user.
    pub doc: &'static str,
}

const SECOND: u64 = 1_000_000_000;
/// From 1 kB/s to 1 TB/s.
const RATES: (u64, u64) = (1000, 1_000_000_000_000);

const fn key(name: &'static str, unit: Unit, range: (u64, u64), doc: &'static str) -> Key {
    Key { name, unit, first: range.0, last: range.1, default: None, doc }
}

const fn or(key: Key, default: u64) -> Key {
    Key { default: Some(default), ..key }
}

use Unit::{Bytes, BytesPerSecond, Count, Nanoseconds, PerMille};

/// Keys of every device.
const ALL: &[Key] = &[
    key("capacity_bytes", Bytes, (1 << 20, 1 << 50), "space for files"),
    key("block_bytes", Bytes, (512, 4096), "the unit of requests: 512 or 4096"),
    key("request_bytes_max", Bytes, (4096, 64 << 20), "largest request, merged ones too; a multiple of 4096"),
    key("nr_requests", Count, (1, 65_536), "requests in flight that the engine may have"),
    key("device_depth", Count, (1, 65_536), "commands inside the device at a time"),
    or(
        key("allocation_chunk_bytes", Bytes, (4096, 1 << 40), "the piece of the medium that a file gets at a time"),
        8 << 20,
    ),
    or(key("read_expire_ns", Nanoseconds, (0, 600 * SECOND), "deadline: when a read's time is up"), SECOND / 2),
    or(key("write_expire_ns", Nanoseconds, (0, 600 * SECOND), "deadline: when a write's time is up"), 5 * SECOND),
    or(key("batch_commands", Count, (1, 65_536), "deadline: commands of one direction in a row"), 16),
    or(key("writes_starved", Count, (0, 65_536), "deadline: batches of reads before writes that wait"), 2),
];

const ROTATING: &[Key] = &[
    or(key("disks", Count, (1, 64), "disks in the stripe set; each has the whole of these numbers"), 1),
    or(key("stripe_bytes", Bytes, (4096, 1 << 30), "bytes on one disk before the next"), 64 << 10),
    key("rotations_per_minute", Count, (1000, 20_000), "speed of rotation"),
    key("heads", Count, (1, 64), "tracks in a cylinder"),
    key("seek_settle_ns", Nanoseconds, (0, SECOND), "seek: the time of the shortest"),
    key("seek_sqrt_ns", Nanoseconds, (0, SECOND / 1000), "seek: times the root of the cylinders"),
    key("seek_linear_from_cylinders", Count, (0, u32::MAX as u64), "seek: where the curve turns linear"),
    key("seek_linear_ns", Nanoseconds, (0, SECOND / 1000), "seek: for each cylinder from there on"),
    key("command_ns", Nanoseconds, (0, SECOND), "overhead of each command on the interface"),
    key("interface_bytes_per_second", BytesPerSecond, RATES, "rate of the interface"),
    or(key("lookahead_bytes", Bytes, (0, 1 << 30), "how far the disk reads on by itself"), 0),
    or(key("write_cache_bytes", Bytes, (0, 1 << 40), "volatile write cache; 0 for none"), 0),
    or(key("flush_ns", Nanoseconds, (0, SECOND), "the time of a flush once the cache is empty"), 0),
    or(
        key(
            "shingle_cache_bytes",
            Bytes,
            (0, 1 << 50),
            "shingled: cache zone for writes out of order; 0: not shingled",
        ),
        0,
    ),
    or(key("shingle_cleaning_factor", Count, (1, 1000), "shingled: how much longer writes take once it is full"), 10),
    or(
        key("shingle_idle_ns", Nanoseconds, (0, 3600 * SECOND), "shingled: idle time before the zone is emptied"),
        SECOND,
    ),
];

const CARD: &[Key] = &[
    key("erase_block_bytes", Bytes, (4096, 1 << 30), "flash block that is written as a whole"),
    key("open_blocks", Count, (1, 1024), "blocks that can be written side by side"),
    key("page_bytes", Bytes, (512, 1 << 20), "smallest amount programmed"),
    key("read_bytes_per_second", BytesPerSecond, RATES, "sequential read"),
    key("write_bytes_per_second", BytesPerSecond, RATES, "sequential write"),
    key("copy_bytes_per_second", BytesPerSecond, RATES, "copying inside the card"),
    key("erase_ns", Nanoseconds, (0, 10 * SECOND), "erasing a block"),
    key("command_ns", Nanoseconds, (0, SECOND), "overhead of each command"),
];

const FLASH: &[Key] = &[
    key("dies", Count, (1, 4096), "flash dies that work side by side"),
    key("page_bytes", Bytes, (512, 1 << 20), "the unit that a die reads or programs at a time, all planes"),
    key("pages_per_block", Count, (1, 65_536), "pages that are erased together"),
    key("read_ns", Nanoseconds, (0, SECOND), "reading a page"),
    key("program_ns", Nanoseconds, (0, SECOND), "programming a page"),
    key("erase_ns", Nanoseconds, (0, SECOND), "erasing a block"),
    key("copies_per_mille", PerMille, (0, 20_000), "old pages copied for each page written at random"),
    key("fresh_bytes", Bytes, (0, 1 << 50), "bytes written before the first garbage collection"),
    key("interface_bytes_per_second", BytesPerSecond, RATES, "rate of the interface"),
    key("command_ns", Nanoseconds, (0, SECOND), "overhead of each command"),
    or(key("memory_bytes", Bytes, (0, 1 << 40), "write buffer of the controller"), 0),
    or(key("volatile", Count, (0, 1), "1 if the buffer is lost with the power"), 0),
    or(key("flush_ns", Nanoseconds, (0, SECOND), "the time of a flush once the buffer is empty"), 0),
];

const STORE: &[Key] = &[
    key("read_latency_ns", Nanoseconds, (0, 600 * SECOND), "time to the first byte of a read"),
    key("write_latency_ns", Nanoseconds, (0, 600 * SECOND), "time that a write takes besides its bytes"),
    or(key("latency_spread_per_mille", PerMille, (0, 1000), "by how much of it each may differ"), 0),
    or(key("tail_per_mille", PerMille, (0, 1000), "of 1,000 calls, how many take ten times as long"), 0),
    key("connection_bytes_per_second", BytesPerSecond, RATES, "rate of one call"),
    key("link_bytes_per_second", BytesPerSecond, RATES, "rate of all together"),
];

const THROTTLED: &[Key] = &[
    key("read_bytes_per_second", BytesPerSecond, RATES, "budget of reads"),
    key("write_bytes_per_second", BytesPerSecond, RATES, "budget of writes"),
    or(key("tick_ns", Nanoseconds, (1000, SECOND), "between two ticks of the kernel's timer"), SECOND / 250),
    or(key("slice_ns", Nanoseconds, (1000, 10 * SECOND), "the slices that a budget is kept in"), SECOND / 10),
    key("latency_ns", Nanoseconds, (0, 10 * SECOND), "the time of a request once it has passed, besides its bytes"),
    or(key("below_bytes_per_second", BytesPerSecond, RATES, "rate of the device below"), RATES.1),
    or(key("volatile", Count, (0, 1), "1 if the device below has a volatile cache"), 0),
    or(key("flush_ns", Nanoseconds, (0, 10 * SECOND), "what a flush takes"), 0),
    or(key("longer_alone", Count, (0, 1), "1 if a write that makes its file longer holds up those behind it"), 0),
    or(key("journal_bytes", Bytes, (0, 1 << 30), "logged before a flush if a file grew; 0: no journal"), 0),
    or(key("commit_bytes", Bytes, (0, 1 << 30), "the journal's commit block"), 0),
];

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Rotating, Self::Card, Self::Flash, Self::Store, Self::Throttled];

    /// Its name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rotating => "rotating",
            Self::Card => "card",
            Self::Flash => "flash",
            Self::Store => "store",
            Self::Throttled => "throttled",
        }
    }

    /// The keys of this kind, including those that every device has.
    pub fn keys(self) -> impl Iterator<Item = &'static Key> {
        let own = match self {
            Self::Rotating => ROTATING,
            Self::Card => CARD,
            Self::Flash => FLASH,
            Self::Store => STORE,
            Self::Throttled => THROTTLED,
        };
        ALL.iter().chain(own)
    }

    /// The keys that `rate` on the command line stands for.
    pub(crate) const fn rate_keys(self) -> &'static [&'static str] {
        match self {
            Self::Rotating | Self::Flash => &["interface_bytes_per_second"],
            Self::Card | Self::Throttled => &["read_bytes_per_second", "write_bytes_per_second"],
            Self::Store => &["link_bytes_per_second"],
        }
    }
}
