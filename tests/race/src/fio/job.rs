//! A job of fio: its command line, its run, its report.
//!
//! Owns: the command line, fio's JSON.
//! Does not own: the list of jobs (`fio`).
//! Invariants: an endless run is killed. The first pass and the measured job run in one process, so that they share
//! Afflux's cache.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::fs::{Advice, fadvise};
use rustix::thread::disable_transparent_huge_pages;
use serde_json::Value;

use crate::bound::Bound;
use crate::sizes::MIB;

/// Longest time of a run, including its first pass.
const PATIENCE_S: &str = "90";
/// Memory beyond the set, in a cache that holds everything.
const SPARE_BYTES: u64 = 64 * MIB;

/// The access of a job to its files.
pub(super) enum Engine {
    Kernel { name: &'static str, options: &'static [&'static str] },
    Afflux { options: &'static [&'static str], huge_pages: bool },
}

/// Whether two jobs share a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    OneFile,
    FileEach,
}

/// One row of a table.
pub(super) struct Job {
    pub(super) name: String,
    /// Memory of Afflux and of the kernel, if it is less than the files.
    pub(super) memory: Option<u64>,
    rw: &'static str,
    bytes: u64,
    block: &'static str,
    depth: u32,
    jobs: Option<Size>,
    whole: bool,
    options: &'static [&'static str],
    /// The folder of another job, which runs beside this one.
    beside: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) rate: f64,
    pub(super) p99_us: f64,
    pub(super) p99_9_us: f64,
    pub(super) cpu_us: f64,
}

impl Job {
    /// A job on a set that fits into memory.
    pub(super) fn cached(name: String, rw: &'static str, bytes: u64) -> Self {
        let (memory, block, depth, jobs) = (None, "4k", 1, None);
        Self { name, memory, rw, bytes, block, depth, jobs, whole: false, options: &[], beside: None }
    }

    /// A job on four times as many bytes as the memory.
    pub(super) fn larger(name: String, rw: &'static str, memory: u64) -> Self {
        Self { memory: Some(memory), ..Self::cached(name, rw, 4 * memory) }
    }

    /// Uses blocks of 64 KiB, while another job writes to a file in that folder.
    pub(super) fn beside(self, other: &Path) -> Self {
        Self { block: "64k", beside: Some(other.to_owned()), ..self }
    }

    pub(super) fn with(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }

    pub(super) fn two(self, whose: Size) -> Self {
        Self { jobs: Some(whose), ..self }
    }

    pub(super) fn depth(self, depth: u32) -> Self {
        Self { depth, ..self }
    }

    /// Goes over the whole file once, in large blocks, until it is on the disk.
    pub(super) fn stream(self) -> Self {
        Self { block: "1m", whole: true, ..self }
    }

    fn files(&self) -> Vec<&'static str> {
        if self.jobs == Some(Size::FileEach) { vec!["race-0", "race-1"] } else { vec!["race-0"] }
    }

    pub(super) fn remove_files(&self, directory: &Path) {
        let other = self.beside.iter().map(|place| place.join("race-slow"));
        let own = self.files().into_iter().map(|name| directory.join(name));
        own.chain(other).for_each(|path| drop(std::fs::remove_file(path)));
    }

    fn engine_words(&self, engine: &Engine, library: Option<&Path>) -> Vec<String> {
        let memory = self.memory.unwrap_or(self.bytes * 5 / 4 * self.files().len() as u64 + SPARE_BYTES);
        match engine {
            Engine::Kernel { name, options } => {
                let mut words = vec![format!("--ioengine={name}")];
                words.extend(options.iter().map(|word| (*word).to_owned()));
                words
            }
            Engine::Afflux { options, .. } => {
                let library = library.unwrap_or(Path::new("")).display();
                let mut words = vec![format!("--ioengine=external:{library}"), format!("--afflux_memory={memory}")];
                words.extend(options.iter().map(|word| (*word).to_owned()));
                words
            }
        }
    }

    /// fio's command line: a job that goes over all of each file, then the measured one.
    fn words(&self, engine: &Engine, library: Option<&Path>, directory: &Path, quick: bool) -> Vec<String> {
        let mut words =
            ["--output-format=json", "--thread=1", "--invalidate=0", "--group_reporting=1"].map(str::to_owned).to_vec();
        words.push("--percentile_list=99:99.9".to_owned());
        // The whole latency: if a call completes at once, most of its time is in the submission.
        words.extend(["--lat_percentiles=1", "--clat_percentiles=0"].map(str::to_owned));
        words.push("--random_generator=tausworthe64".to_owned());
        let section = |name: &str, file: &Path, words: &mut Vec<String>| {
            words.push(format!("--name={name}"));
            words.push("--new_group=1".to_owned());
            words.extend(self.engine_words(engine, library));
            words.push(format!("--filename={}", file.display()));
        };
        let changes = self.rw.contains("write") || self.rw == "randrw";
        for file in self.files() {
            section("before", &directory.join(file), &mut words);
            let rw = if changes { "write" } else { "read" };
            words.extend([
                format!("--rw={rw}"),
                "--bs=1m".to_owned(),
                format!("--size={}", self.bytes),
                "--stonewall".to_owned(),
            ]);
        }
        let runtime = if quick { "200ms" } else { "1s" };
        if let Some(place) = &self.beside {
            section("other", &place.join("race-slow"), &mut words);
            let other = ["--rw=write", "--bs=64k", "--size=512m", "--time_based=1", "--stonewall"];
            words.extend(other.map(str::to_owned));
            words.push(format!("--runtime={}", if quick { "500ms" } else { "4s" }));
        }
        let count = if self.jobs == Some(Size::OneFile) { 2 } else { 1 };
        for (at, file) in self.files().into_iter().enumerate() {
            section("counted", &directory.join(file), &mut words);
            if at > 0 {
                // It forms one group with the job before and runs at the same time.
                words.retain({
                    let last = words.iter().rposition(|word| word == "--new_group=1");
                    let mut index = 0;
                    move |_| {
                        index += 1;
                        Some(index - 1) != last
                    }
                });
            } else if self.beside.is_none() {
                words.push("--stonewall".to_owned());
            }
            words.extend([
                format!("--rw={}", self.rw),
                format!("--bs={}", self.block),
                format!("--size={}", self.bytes),
            ]);
            words.extend([
                format!("--iodepth={}", self.depth),
                format!("--numjobs={count}"),
                "--norandommap=1".to_owned(),
            ]);
            words.extend(self.options.iter().map(|word| (*word).to_owned()));
            match (self.whole, &self.beside) {
                (true, _) if changes => words.push("--end_fsync=1".to_owned()),
                (true, _) => {}
                (false, Some(_)) => {
                    words.extend([
                        "--time_based=1".to_owned(),
                        format!("--runtime={}", if quick { "500ms" } else { "4s" }),
                    ]);
                }
                (false, None) => words.extend(["--time_based=1".to_owned(), format!("--runtime={runtime}")]),
            }
        }
        words
    }

    pub(super) fn run(
        &self,
        engine: &Engine,
        library: Option<&Path>,
        bound: Option<&Bound>,
        directory: &Path,
        quick: bool,
    ) -> Result<Figures, String> {
        if !self.rw.contains("write") && self.rw != "randrw" {
            self.make_files(directory)?;
        }
        if self.memory.is_some() {
            self.forget_pages(directory)?;
        }
        let mut command = Command::new("sh");
        // The process enters the group first, so that all its memory is counted there.
        let door = bound.map_or(PathBuf::from("/dev/null"), Bound::door);
        command.args(["-c", "echo $$ > \"$0\" && exec timeout -k 5 \"$@\""]).arg(door).args([PATIENCE_S, "fio"]);
        command.args(self.words(engine, library, directory, quick));
        let base_pages = matches!(engine, Engine::Afflux { huge_pages: false, .. });
        if base_pages {
            disable_transparent_huge_pages(true).map_err(|error| format!("huge pages: {error}"))?;
        }
        let output = command.output();
        if base_pages {
            let _ = disable_transparent_huge_pages(false);
        }
        figures(&output.map_err(|error| format!("fio: {error}"))?)
    }

    /// Drops the files' pages that an earlier run left in the kernel's page cache. They are charged to no group, and
    /// this run would find them.
    fn forget_pages(&self, directory: &Path) -> Result<(), String> {
        for name in self.files() {
            let Ok(file) = std::fs::File::open(directory.join(name)) else { continue };
            let forgotten = file.sync_data().and_then(|()| Ok(fadvise(&file, 0, None, Advice::DontNeed)?));
            forgotten.map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(())
    }

    /// Creates the files to read, without leaving their pages in the page cache of this program's group.
    fn make_files(&self, directory: &Path) -> Result<(), String> {
        for name in self.files() {
            let path = directory.join(name);
            if std::fs::metadata(&path).is_ok_and(|it| it.len() == self.bytes) {
                continue;
            }
            let made = Command::new("fio")
                .args(["--name=make", "--rw=write", "--bs=1m", "--direct=1", "--end_fsync=1", "--ioengine=psync"])
                .arg(format!("--filename={}", path.display()))
                .arg(format!("--size={}", self.bytes))
                .output();
            let made = made.map_err(|error| format!("fio: {error}"))?;
            if !made.status.success() {
                return Err(complaint(&made));
            }
        }
        Ok(())
    }
}

/// The last line with an explanation.
fn complaint(output: &Output) -> String {
    let text = [String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout)].concat();
    let line = text.lines().find(|line| line.contains("rror") || line.starts_with("fio:"));
    let line = line.map_or_else(|| format!("fio ended with {}", output.status), |line| line.trim().to_owned());
    line.chars().take(160).collect()
}

fn figures(output: &Output) -> Result<Figures, String> {
    if !output.status.success() {
        return Err(complaint(output));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // Notes of engines may precede it.
    let begin = text.find('{').ok_or_else(|| complaint(output))?;
    let parsed = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>().next();
    let value = parsed.and_then(Result::ok).ok_or_else(|| complaint(output))?;
    of_report(&value).ok_or_else(|| complaint(output))
}

/// The figures of the measured job.
fn of_report(report: &Value) -> Option<Figures> {
    let job = report["jobs"].as_array()?.iter().find(|job| job["jobname"] == "counted")?;
    if job["error"].as_i64()? != 0 {
        return None;
    }
    let ways = || [&job["read"], &job["write"]].into_iter();
    let rate: f64 = ways().filter_map(|way| way["iops"].as_f64()).sum();
    let count: f64 = ways().filter_map(|way| way["total_ios"].as_f64()).sum();
    let percentile = |which: &str| {
        let of = |way: &Value| way["lat_ns"]["percentile"][which].as_f64();
        ways().filter_map(of).fold(0.0, f64::max) / 1000.0
    };
    // The percentage of each of its threads' time; all threads take equally long.
    let busy = (job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?) / 100.0;
    let time_us = job["job_runtime"].as_f64()? * 1000.0;
    let cpu_us = if count > 0.0 { busy * time_us / count } else { 0.0 };
    let (p99_us, p99_9_us) = (percentile("99.000000"), percentile("99.900000"));
    (count > 0.0).then_some(Figures { rate, p99_us, p99_9_us, cpu_us })
}

/// The reason that RWF_DONTCACHE does not work here, found by one read and one write.
pub(super) fn dontcache(directory: &Path) -> Result<(), String> {
    let path = directory.join("race-dontcache");
    let output = Command::new("fio")
        .args(["--name=try", "--ioengine=pvsync2", "--uncached=1", "--rw=rw", "--bs=4k", "--size=64k"])
        .arg(format!("--filename={}", path.display()))
        .output();
    let _ = std::fs::remove_file(path);
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err("this fio, or this kernel, cannot ask for it (fio 3.33 has the flag of an earlier proposal)".to_owned())
}

/// An error that names fio's package, if fio is missing.
pub(super) fn installed() -> Result<(), String> {
    let output = Command::new("fio").arg("--version").output();
    output.map(drop).map_err(|error| format!("fio: {error}; apt-get install fio"))
}

#[cfg(test)]
mod tests;
