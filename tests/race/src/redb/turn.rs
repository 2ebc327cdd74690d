//! One turn of a contender, in a process of its own: a database is opened, a load runs on it.
//!
//! Owns: the loads, the shares of the memory, the figures of a turn.
//! Does not own: the storage on a cache (the library's example), the order of turns and the limit of memory (the
//! parent).
//! Invariants: all contenders do the same operations on the same rows in the same order. The first pass is not counted.

#[path = "../../../../product/afflux/examples/redb/backend.rs"]
mod backend;

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use afflux::{Cache, Knob};
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use rustix::time::{ClockId, clock_gettime};

use self::backend::CacheBackend;

pub(super) type Result<T> = std::result::Result<T, Box<dyn Error>>;

const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");
const VALUE: [u8; 100] = [7; 100];
/// The smaller share of the memory, where it is divided.
pub(super) const SMALL_PART: u64 = 16;
const DIRTY_RATIO: u64 = 90;
const ROWS_OF_TRANSACTION: u64 = 10_000;
const CHANGED_ROWS: u64 = 10;
const READS_OF_COMMIT: u64 = 100;
/// Operations between two looks at the clock.
const BETWEEN_LOOKS: u64 = 16;

/// Most time of the first pass over all rows. A set that fits takes less.
const WARMING: Duration = Duration::from_secs(6);

/// The holder of the memory, and the storage below redb.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Contender {
    /// The library's cache; redb has most of the memory.
    OnAfflux,
    /// The library's cache has most of the memory.
    InAfflux,
    /// redb's own storage. redb's cache has all memory.
    Redb,
    /// redb's own storage. The kernel's page cache has most of the memory.
    PageCache,
}

pub(super) const CONTENDERS: [(&str, Contender); 4] = [
    ("afflux", Contender::OnAfflux),
    ("redb", Contender::Redb),
    ("pages in afflux", Contender::InAfflux),
    ("pages in kernel", Contender::PageCache),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Load {
    Rows,
    Reads,
    Scans,
    Commits,
}

pub(super) const LOADS: [(&str, Load); 4] =
    [("rows", Load::Rows), ("reads", Load::Reads), ("scans", Load::Scans), ("commits", Load::Commits)];

/// The figures of a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    /// Operations a second.
    pub(super) rate: f64,
    /// Processor time of the process for an operation, in microseconds.
    pub(super) cpu_us: f64,
}

/// The key of a row; the order of keys is not that of their numbers.
fn key(row: u64) -> u64 {
    let mixed = (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 32
}

/// A database, with the cache below it.
struct Opened {
    database: Database,
    cache: Option<Cache>,
}

impl Opened {
    fn new(contender: Contender, path: &Path, memory: u64) -> Result<Self> {
        let small = memory / SMALL_PART;
        // The kernel's page cache has as much beside the memory of the others.
        let (redb, below) = match contender {
            Contender::OnAfflux => (memory - small, Some(2 * small)),
            Contender::InAfflux => (small, Some(memory)),
            Contender::Redb => (memory, None),
            Contender::PageCache => (small, None),
        };
        let mut builder = Database::builder();
        builder.set_cache_size(redb as usize);
        let Some(below) = below else { return Ok(Self { database: builder.create(path)?, cache: None }) };
        // redb's own cache keeps what is read, so most of a small cache below it may be dirty.
        let cache = Cache::builder().memory(below).knob(Knob::DirtyRatio, DIRTY_RATIO).build()?;
        let database = builder.create_with_backend(CacheBackend::create(&cache, path)?)?;
        Ok(Self { database, cache: Some(cache) })
    }

    fn close(self) -> Result<()> {
        drop(self.database);
        Ok(self.cache.map_or(Ok(()), Cache::close)?)
    }

    fn put(&self, rows: impl Iterator<Item = u64>, durability: Durability) -> Result<()> {
        let mut change = self.database.begin_write()?;
        change.set_durability(durability)?;
        let mut table = change.open_table(ROWS)?;
        rows.map(key).try_for_each(|key| table.insert(key, &VALUE[..]).map(drop))?;
        drop(table);
        Ok(change.commit()?)
    }

    /// Adds rows, many in a transaction.
    fn add(&self, rows: u64, durability: Durability) -> Result<u64> {
        for first in (0..rows).step_by(ROWS_OF_TRANSACTION as usize) {
            self.put(first..(first + ROWS_OF_TRANSACTION).min(rows), durability)?;
        }
        Ok(rows)
    }

    /// Reads random rows for a time; `from` is the place in the sequence.
    fn read(&self, rows: u64, from: u64, time: Duration) -> Result<u64> {
        let table = self.database.begin_read()?.open_table(ROWS)?;
        until(time, |number| {
            let row = key(from + number) % rows;
            let value = table.get(key(row))?.ok_or("a row is missing")?;
            black_box(value.value()[0]);
            Ok(1)
        })
    }

    /// Reads all rows in their order once, so that the cache has what fits; at most for a time.
    fn warm(&self, time: Duration) -> Result<()> {
        let began = Instant::now();
        let table = self.database.begin_read()?.open_table(ROWS)?;
        for (number, row) in table.iter()?.enumerate() {
            row?;
            if number.is_multiple_of(BETWEEN_LOOKS as usize) && began.elapsed() > time {
                break;
            }
        }
        Ok(())
    }

    /// Goes over all rows, again and again.
    fn scan(&self, time: Duration) -> Result<u64> {
        let table = self.database.begin_read()?.open_table(ROWS)?;
        let mut rows = table.iter()?;
        until(time, |_| {
            let Some(row) = rows.next() else {
                rows = table.iter()?;
                return Ok(0);
            };
            black_box(row?.1.value()[0]);
            Ok(1)
        })
    }

    /// Commits some changed rows durably, then reads some, for a time; `from` is the place in the sequence.
    fn commit(&self, rows: u64, from: u64, time: Duration) -> Result<u64> {
        let began = Instant::now();
        let mut commits = 0;
        while began.elapsed() < time {
            let from = (from + commits) * (CHANGED_ROWS + READS_OF_COMMIT);
            self.put((from..from + CHANGED_ROWS).map(|number| key(number) % rows), Durability::Immediate)?;
            let table = self.database.begin_read()?.open_table(ROWS)?;
            for number in from + CHANGED_ROWS..from + CHANGED_ROWS + READS_OF_COMMIT {
                black_box(table.get(key(key(number) % rows))?.ok_or("a row is missing")?.value()[0]);
            }
            commits += 1;
        }
        Ok(commits)
    }
}

/// Repeats an operation for a time; returns the sum of its counts.
fn until(time: Duration, mut operation: impl FnMut(u64) -> Result<u64>) -> Result<u64> {
    let began = Instant::now();
    let (mut number, mut sum) = (0_u64, 0);
    while !number.is_multiple_of(BETWEEN_LOOKS) || began.elapsed() < time {
        sum += operation(number)?;
        number += 1;
    }
    Ok(sum)
}

/// Makes a database with this many rows.
pub(super) fn make(path: &Path, rows: u64, memory: u64) -> Result<()> {
    let made = Opened::new(Contender::Redb, path, memory)?;
    made.add(rows, Durability::None)?;
    made.put(0..1, Durability::Immediate)?;
    made.close()
}

fn cpu_us() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
}

/// A turn: an uncounted pass, then the counted one.
pub(super) fn run(
    contender: Contender,
    load: Load,
    path: &Path,
    memory: u64,
    rows: u64,
    time: Duration,
) -> Result<Figures> {
    let opened = Opened::new(contender, path, memory)?;
    // The first pass has numbers of its own.
    let second = 1 << 40;
    if load != Load::Rows {
        opened.warm(WARMING)?;
    }
    match load {
        Load::Rows | Load::Scans => {}
        Load::Reads => drop(opened.read(rows, 0, time / 2)?),
        Load::Commits => drop(opened.commit(rows, 0, time / 2)?),
    }
    let (began, cpu) = (Instant::now(), cpu_us());
    let count = match load {
        Load::Rows => opened.add(rows, Durability::Immediate)?,
        Load::Reads => opened.read(rows, second, time)?,
        Load::Scans => opened.scan(time)?,
        Load::Commits => opened.commit(rows, second, time)?,
    };
    let (took, cpu) = (began.elapsed().as_secs_f64(), cpu_us() - cpu);
    opened.close()?;
    Ok(Figures { rate: count as f64 / took, cpu_us: cpu / count as f64 })
}
