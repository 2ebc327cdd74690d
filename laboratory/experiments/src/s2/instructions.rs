//! Instructions of an operation, counted by callgrind.
//!
//! Owns: its option, finding valgrind, running this program again under it with `--count`, the difference of two
//! counts.
//! Does not own: the loops. Invariants: a count is the difference of two runs that differ in the number of operations
//! alone, so it excludes start and stop. A count that fails is reported and left out.

use std::path::PathBuf;
use std::process::Command;

use super::loops::{Load, LoopKind};
use super::variants::variants_of;

/// The option with which this program runs itself again.
pub(super) const COUNT_OPTION: &str = "count";

/// Most operations of a counting run.
const OPERATIONS_MAX: u64 = 10_000_000;

/// The two runs do a 40th and an 8th of a sample.
const FEW: u64 = 40;
const MANY: u64 = 8;

/// Reads `LOOP:VARIANT:N`; a loop is named as in the tables.
pub(super) fn read_load(text: &str) -> Result<(Load, usize), String> {
    let wrong = || {
        format!(
            "'{text}' is not LOOP:VARIANT:N with a loop, an allocator that can run it and 1 to {OPERATIONS_MAX} operations"
        )
    };
    let parts: Vec<&str> = text.split(':').collect();
    let [work, variant, operations] = parts[..] else { return Err(wrong()) };
    let works = LoopKind::named("all")?;
    let work = works.into_iter().find(|one| one.name().replace(' ', "-") == work).ok_or_else(wrong)?;
    let variant = variants_of(work).iter().position(|one| one.name == variant).ok_or_else(wrong)?;
    let operations = operations.parse().ok().filter(|n| (1..=OPERATIONS_MAX).contains(n)).ok_or_else(wrong)?;
    Ok((Load { work, threads: 1, operations, timed: false }, variant))
}

/// The program that counts, or the reason why nothing does.
pub(super) struct Counter {
    program: Option<PathBuf>,
    said: String,
}

impl Counter {
    /// Counts nothing.
    pub(super) fn off() -> Self {
        Self { program: None, said: "Instructions were not counted.".to_owned() }
    }

    /// Counts if valgrind is installed.
    pub(super) fn found() -> Self {
        let version = Command::new("valgrind").arg("--version").output();
        let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        match (version, std::env::current_exe()) {
            (Ok(version), Ok(program)) => Self {
                program: Some(program),
                said: format!("Instructions are callgrind's ({version}), one thread, the loop's own included."),
            },
            _ => Self { said: "Instructions were not counted: valgrind is not installed.".to_owned(), ..Self::off() },
        }
    }

    /// Instructions of an operation. Gives up for good after the first failure.
    pub(super) fn per_operation(&mut self, work: LoopKind, variant: &str) -> Option<f64> {
        let program = self.program.clone()?;
        let all = work.operations(false);
        let (few, many) = (all / FEW, all / MANY);
        match (count(&program, work, variant, few), count(&program, work, variant, many)) {
            (Ok(of_few), Ok(of_many)) => Some(each(few, of_few, many, of_many)),
            (Err(why), _) | (_, Err(why)) => {
                self.said = format!("Instructions were not counted: {why}.");
                self.program = None;
                None
            }
        }
    }

    /// A sentence about the counts, for the reader.
    pub(super) fn said(&self) -> &str {
        &self.said
    }
}

/// Instructions of an operation, from two runs with their numbers of operations and their counts. Instructions outside
/// of the operations are in both counts and cancel out.
pub(super) fn each(few: u64, of_few: i64, many: u64, of_many: i64) -> f64 {
    (of_many - of_few) as f64 / (many - few) as f64
}

fn count(program: &PathBuf, work: LoopKind, variant: &str, operations: u64) -> Result<i64, String> {
    let load = format!("{}:{variant}:{operations}", work.name().replace(' ', "-"));
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["run", "s2", &format!("--{}", COUNT_OPTION), &load])
        .output()
        .map_err(|error| format!("valgrind could not be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find(|line| line.contains("Collected :"));
    let number = collected.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    number.filter(|_| output.status.success()).ok_or_else(|| {
        let last = text.lines().last().unwrap_or("nothing").trim();
        format!("{} under valgrind ended with {}, saying: {last}", program.display(), output.status)
    })
}
