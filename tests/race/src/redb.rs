//! The race in redb: the same loads on a database through the library and through redb's own storage.
//!
//! Owns: the cases, the limit of memory.
//! Does not own: the loads and the shares of the memory (`turn`), which run in processes of their own.
//! Invariants: one turn runs at a time, in a control group with as much memory for every contender. The kernel has no
//! pages of the database when a turn begins.

mod turn;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use afflux_rig::Raced;
use rustix::fs::{Advice, fadvise};

use self::turn::{CONTENDERS, LOADS, Load, SMALL_PART};
use crate::bound::Bound;
use crate::case::{Case, Figure, Goal, Group};
use crate::options::Options;
use crate::sizes::MIB;

/// The word of the command line for a turn.
const TURN: &str = "redb-turn";
const TITLE: &str = "redb";
const BESIDE: &[&str] = &["cpu_us"];
const GOAL: Goal = Goal { against: "redb", ratio: 1.0 / 1.1 };

/// The extent of a race.
struct RedbRace<'a> {
    options: &'a Options,
    memory: u64,
    time: Duration,
}

/// A row of the table.
struct RedbCase {
    name: &'static str,
    load: Load,
    /// Rows for each MiB of memory. About 160 bytes of pages are a row.
    rows_of_mib: u64,
}

const LOADED: u64 = 800;
const FITS: u64 = 3_000;
const LARGER: u64 = 16_000;

const CASES: [RedbCase; 7] = [
    RedbCase { name: "load", load: Load::Rows, rows_of_mib: LOADED },
    RedbCase { name: "read, fits", load: Load::Reads, rows_of_mib: FITS },
    RedbCase { name: "read, 2.5 times the memory", load: Load::Reads, rows_of_mib: LARGER },
    RedbCase { name: "scan, fits", load: Load::Scans, rows_of_mib: FITS },
    RedbCase { name: "scan, 2.5 times the memory", load: Load::Scans, rows_of_mib: LARGER },
    RedbCase { name: "commit, fits", load: Load::Commits, rows_of_mib: FITS },
    RedbCase { name: "commit, 2.5 times the memory", load: Load::Commits, rows_of_mib: LARGER },
];

impl RedbRace<'_> {
    /// The database of a case, made if it is missing. A load begins without one.
    fn prepared(&self, case: &RedbCase, rows: u64) -> Result<PathBuf, String> {
        let path = self.options.directory.join(format!("redb-{:?}-{rows}", case.load == Load::Rows));
        if case.load == Load::Rows {
            let _ = std::fs::remove_file(&path);
            return Ok(path);
        }
        if !path.exists() {
            turn::make(&path, rows, 8 * self.memory).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let file = File::open(&path).map_err(|error| error.to_string())?;
        let forgotten = file.sync_data().and_then(|()| Ok(fadvise(&file, 0, None, Advice::DontNeed)?));
        forgotten.map(|()| path).map_err(|error| error.to_string())
    }

    fn turn(&self, case: &RedbCase, contender: &str) -> Result<Figure, String> {
        let rows = self.memory / MIB * case.rows_of_mib;
        let path = self.prepared(case, rows)?;
        let bound = Bound::to(group_bytes(self.memory))?;
        let load = LOADS.iter().find(|(_, load)| *load == case.load).map_or("", |(name, _)| name);
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(bound.door())
            .arg(own)
            .args([TURN, contender, load]);
        command.arg(path).args([self.memory, rows, self.time.as_millis() as u64].map(|number| number.to_string()));
        let output = command.output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut figures = text.split_whitespace().filter_map(|word| word.parse().ok());
        match (figures.next(), figures.next()) {
            (Some(rate), Some(cpu_us)) if output.status.success() => Ok(Figure { value: rate, beside: vec![cpu_us] }),
            _ => Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())),
        }
    }

    fn case(&self, case: &RedbCase) -> Case {
        let figures =
            Raced::new(&CONTENDERS.map(|(name, _)| name), self.options.fio_rounds, |name, _| self.turn(case, name));
        Case { name: case.name.to_owned(), goal: Some(GOAL), figures }
    }
}

fn words(memory: u64) -> String {
    let [all, small, group] = [memory, memory / SMALL_PART, group_bytes(memory)].map(|bytes| bytes / MIB);
    let (most, pages, twice) = (all - small, all + small, 2 * small);
    format!(
        "Operations of redb a second, with in brackets processor time an operation in µs. Rows have 100 bytes and random keys. \
         *Load*: rows in durable transactions of 10,000; *read*: a random row; *scan*: a row, of all in their order; \
         *commit*: a durable transaction of 10 changed rows, then 100 random reads. All run in a control group with {group} \
         MiB, and have {pages} of them for pages. The kernel's page cache also gets what a program does not use. *afflux*: \
         the example's storage on a cache of {twice} MiB, and {most} MiB for redb's own cache; *redb*: its own storage, {all} \
         MiB for its own cache, and {small} for the kernel's page cache; *pages in afflux* and *pages in kernel*: {small} MiB \
         for redb's own cache, and the library's cache or the kernel's page cache has the rest."
    )
}

/// The memory of a turn's control group: for redb's own cache, for a cache below it, and for the program itself.
fn group_bytes(memory: u64) -> u64 {
    memory + memory / SMALL_PART + 16 * MIB
}

pub(crate) fn run(options: &Options, told: &mut dyn FnMut(&str)) -> Group {
    let (memory, time) = if options.quick { (32 * MIB, 200) } else { (128 * MIB, 2_000) };
    let race = RedbRace { options, memory, time: Duration::from_millis(time) };
    let mut cases = Vec::new();
    for case in CASES.iter().filter(|case| options.wants(case.name)) {
        told(&format!("{TITLE}: {}", case.name));
        cases.push(race.case(case));
    }
    let words = words(memory);
    Group {
        title: TITLE,
        unit: "a second",
        more_is_better: true,
        words,
        beside: BESIDE,
        shows_beside: true,
        cases,
        remarks: Vec::new(),
    }
}

/// The turn that the words of a command line ask for. Returns its figures as text; none if they ask for something else.
pub(crate) fn turn_of(words: &[String]) -> Option<Result<String, String>> {
    let [first, contender, load, path, memory, rows, time] = words else { return None };
    if first != TURN {
        return None;
    }
    let contender = CONTENDERS.iter().find(|(name, _)| name == contender)?.1;
    let load = LOADS.iter().find(|(name, _)| name == load)?.1;
    let time = Duration::from_millis(time.parse().ok()?);
    let figures = turn::run(contender, load, Path::new(path), memory.parse().ok()?, rows.parse().ok()?, time);
    Some(figures.map(|it| format!("{} {}", it.rate, it.cpu_us)).map_err(|error| error.to_string()))
}
