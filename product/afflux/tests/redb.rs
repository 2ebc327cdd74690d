//! The example storage of redb. A writer is killed again and again: each acknowledged commit is there, and the database
//! is intact.
//!
//! The child is this test's own program, controlled by its environment. It commits one transaction for each step, by a
//! rule that depends on the step's number, and reports each commit. The parent kills it at some moment. It opens the
//! database on a cache and by redb's own storage in turns. The contents must be the state after the last reported step,
//! or after the one that was being committed. Another test lets so many writes reach the disk and no more, for each
//! number.
//!
//! `AFFLUX_REDB_KILLS=500` sets the number of kills.
//!
//! rule: after a kill a redb on the cache has each acknowledged commit and passes its check
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a test")]

#[path = "../examples/redb/backend.rs"]
mod backend;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use afflux::{Cache, Faults};
use backend::CacheBackend;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

const CHILD: &str = "AFFLUX_REDB_KILLS_CHILD";
const KILLS: &str = "AFFLUX_REDB_KILLS";
const KILLS_DEFAULT: u64 = 12;
/// Most commits before a cut.
const COMMITS_MAX: u64 = 40;
const KEYS: u64 = 400;
/// The step that made the state.
const STEP: TableDefinition<'_, (), u64> = TableDefinition::new("step");
const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");

type Rows = BTreeMap<u64, Vec<u8>>;

fn mixed(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 17
}

/// The changes of a step: a key, and its new value; none if the key is deleted. Most steps are small. Some are larger
/// than the memory of redb's own cache, so that it spills pages before the commit.
fn changes(step: u64) -> impl Iterator<Item = (u64, Option<Vec<u8>>)> {
    let count = if mixed(step).is_multiple_of(16) { 300 } else { 1 + mixed(step) % 4 };
    (0..count).map(move |number| {
        let mixed = mixed(step * 1_000 + number);
        let value = step.to_le_bytes().into_iter().cycle().take(8 + (mixed / KEYS % 3_000) as usize).collect();
        (mixed % KEYS, (!mixed.is_multiple_of(7)).then_some(value))
    })
}

fn apply(rows: &mut Rows, step: u64) {
    for (key, value) in changes(step) {
        match value {
            Some(value) => drop(rows.insert(key, value)),
            None => drop(rows.remove(&key)),
        }
    }
}

fn change(transaction: &WriteTransaction, step: u64) -> Result<(), redb::Error> {
    transaction.open_table(STEP)?.insert((), step)?;
    let mut rows = transaction.open_table(ROWS)?;
    for (key, value) in changes(step) {
        match value {
            Some(value) => drop(rows.insert(key, value.as_slice())?),
            None => drop(rows.remove(key)?),
        }
    }
    Ok(())
}

fn cache() -> Cache {
    Cache::builder().memory(2 << 20).build().unwrap()
}

fn on_cache(cache: &Cache, path: &Path) -> Database {
    let storage = CacheBackend::create(cache, path).unwrap();
    Database::builder().set_cache_size(256 << 10).create_with_backend(storage).unwrap()
}

/// The last step and the rows, none if no step was committed. The database must pass its check.
fn found(mut database: Database) -> Option<(u64, Rows)> {
    assert!(database.check_integrity().unwrap(), "redb had to repair what it had opened");
    let reading = database.begin_read().unwrap();
    let step = reading.open_table(STEP).ok()?.get(()).unwrap()?.value();
    let rows = reading.open_table(ROWS).unwrap();
    let pairs = rows.iter().unwrap().map(|row| row.map(|(key, value)| (key.value(), value.value().to_vec())).unwrap());
    Some((step, pairs.collect()))
}

/// Commits steps from the given one on until it is killed.
#[test]
fn child() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let (step, path) = told.split_once(' ').unwrap();
    let cache = cache();
    let database = on_cache(&cache, Path::new(path));
    for step in step.parse::<u64>().unwrap().. {
        let transaction = database.begin_write().unwrap();
        change(&transaction, step).unwrap();
        transaction.commit().unwrap();
        // One write, so that a line is whole or missing.
        std::io::stderr().write_all(format!("committed {step}\n").as_bytes()).unwrap();
    }
}

/// Lets a child commit from `step` on, and kills it some time after its `lines`th report. Returns the last step that it
/// reported.
fn run_and_kill(path: &Path, step: u64, lines: u64, pause: Duration) -> Option<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, format!("{step} {}", path.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let told = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut commits = told.filter_map(|line| line.strip_prefix("committed ")?.parse().ok());
    let heard: Vec<u64> = commits.by_ref().take(lines as usize).collect();
    std::thread::sleep(pause);
    child.kill().unwrap();
    assert!(child.wait().unwrap().code().is_none(), "it ended by itself");
    commits.last().or(heard.last().copied())
}

#[test]
fn a_killed_writer_loses_no_acknowledged_commit() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("database");
    let kills = std::env::var(KILLS).map_or(KILLS_DEFAULT, |count| count.parse().unwrap());
    let (mut next, mut rows) = (0, Rows::new());
    for kill in 0..kills {
        let pause = Duration::from_micros(mixed(kill) % 4_000);
        let acknowledged = run_and_kill(&path, next, mixed(kill) / 4_000 % 30, pause);
        let cache = cache();
        let by_redb = kill % 2 == 1;
        let database = if by_redb { reopened_by_redb(&path) } else { on_cache(&cache, &path) };
        let wanted = acknowledged.map_or(next, |step| step + 1);
        let found = found(database);
        let done = found.as_ref().map_or(0, |(step, _)| step + 1);
        assert!((wanted..=wanted + 1).contains(&done), "kill {kill}: {wanted} steps were committed, {done} are there");
        (next..done).for_each(|step| apply(&mut rows, step));
        next = done;
        assert!(found.is_none_or(|(_, found)| found == rows), "kill {kill}: this is not the state after {done} steps");
        cache.close().unwrap();
        if kill % 100 == 99 {
            println!("{} kills, {next} commits", kill + 1);
        }
    }
    assert!(next > kills, "{next} commits: the children did nothing");
}

/// redb without a cache. A killed process holds its locks until the kernel has ended its requests.
fn reopened_by_redb(path: &Path) -> Database {
    let mut opened = None;
    afflux_scratch::eventually("the killed process gives its file back", || match Database::create(path) {
        Err(DatabaseError::DatabaseAlreadyOpen) => false,
        other => {
            opened = Some(other.unwrap());
            true
        }
    });
    opened.unwrap()
}

/// Commits steps until one fails, with so many writes left for the disk. Returns the number of commits.
fn commit_until_cut(path: &Path, writes: u64) -> u64 {
    let faults = Faults::new();
    let cache = Cache::builder().memory(2 << 20).faults(&faults).drain_time(Duration::ZERO).build().unwrap();
    let database = on_cache(&cache, path);
    faults.cut_off(writes);
    let mut commits = 0;
    while commits < COMMITS_MAX {
        let Ok(transaction) = database.begin_write() else { break };
        if change(&transaction, commits).and_then(|()| Ok(transaction.commit()?)).is_err() {
            break;
        }
        commits += 1;
    }
    drop(database);
    let _ = cache.close();
    commits
}

#[test]
fn each_write_to_the_disk_may_be_the_last() {
    let place = tempfile::tempdir().unwrap();
    let mut most = 0;
    for writes in 0..40 {
        let path = place.path().join(writes.to_string());
        let commits = commit_until_cut(&path, writes);
        let found = found(reopened_by_redb(&path));
        let done = found.as_ref().map_or(0, |(step, _)| step + 1);
        assert!((commits..=commits + 1).contains(&done), "{writes} writes: {commits} commits, {done} are there");
        let mut rows = Rows::new();
        (0..done).for_each(|step| apply(&mut rows, step));
        assert!(found.is_none_or(|(_, found)| found == rows), "{writes} writes: not the state after {done} steps");
        most = most.max(commits);
    }
    assert!(most > 1, "{most} commits: the cuts came too early");
}

#[test]
fn a_database_on_a_cache_and_one_without_exclude_each_other() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("database");
    let cache = cache();
    let held = on_cache(&cache, &path);
    assert!(matches!(Database::create(&path), Err(DatabaseError::DatabaseAlreadyOpen)));
    drop(held);
    cache.close().unwrap();
    let held = Database::create(&path).unwrap();
    assert!(CacheBackend::create(&self::cache(), &path).is_err());
    drop(held);
}
