//! The race in fio: the same job through the kernel's page cache and through Afflux's engine for fio.
//!
//! Owns: the jobs, the contenders of each.
//! Does not own: fio's start and report (`job`), the kernel's memory limit (`bound`).
//! Invariants: one fio runs at a time. Each run begins with an uncounted pass over its files, in which every contender
//! fills its cache in its own way.

mod job;

use std::path::PathBuf;

use afflux_experiments::hardware::{DiskRates, SlowDisk};
use afflux_rig::Raced;

use self::job::{Engine, Figures, Job, Size};
use crate::bound::Bound;
use crate::case::{Case, Figure, Group};
use crate::options::Options;
use crate::sizes::MIB;

const WORDS: &str = "Operations a second (4 KiB, of streams 1 MiB) by fio, with in brackets the time that 99 and 99.9 % of them \
    took at most in µs, and processor time of the jobs an operation in µs. *psync*, *mmap*, *io_uring*: the kernel's page cache \
    by that engine of fio; *dontcache*: with RWF_DONTCACHE. Sets of 16 MiB and 1 GiB fit into memory and are read or written \
    once before. Where a set is larger than memory, all have 256 MiB: Afflux as its cache, the kernel as the limit of a control \
    group, with 64 MiB more for fio itself.";
const SLOW_WORDS: &str = "A job that writes 64 KiB blocks to a fast disk as fast as it can, while another does so to a disk \
    of 25 MB/s: operations of the first, in the columns as above. *In memory*: 256 MiB written over and over, of which the \
    kernel, with the machine's memory, writes next to nothing to the disk meanwhile, and Afflux, with room for these, most. \
    *Larger than memory*: a GiB, with 256 MiB for both jobs, as of streams above.";
const ABLATION_WORDS: &str = "The same through Afflux, with one thing left out at a time: *system calls*: preads and pwrites on \
    threads, no io_uring; *host cache*: through the host's page cache, no O_DIRECT; *base pages*: memory in pages of 4 KiB, \
    none of 2 MiB; *one in flight*: one write request at a time. Registered buffers and files, and polling, are not used, so \
    there is nothing to leave out: notebook/performance-notes.md has what they gained when they were tried, and the disks here \
    cannot be polled.";
const BESIDE: &[&str] = &["p99_us", "p99.9_us", "cpu_us"];

/// The state shared by all runs.
struct FioRace<'a> {
    options: &'a Options,
    /// Afflux's engine, or the reason that there is none.
    engine: Result<PathBuf, String>,
}

fn kernel(engine: &'static str) -> (&'static str, Engine) {
    (engine, Engine::Kernel { name: engine, options: &[] })
}

fn afflux(extra: &'static [&'static str]) -> Engine {
    Engine::Afflux { options: extra, huge_pages: true }
}

/// All contenders at a depth of one.
fn contenders(dontcache: bool) -> Vec<(&'static str, Engine)> {
    let mut all = vec![("afflux", afflux(&[])), kernel("psync"), kernel("mmap"), kernel("io_uring")];
    if dontcache {
        all.push(("dontcache", Engine::Kernel { name: "pvsync2", options: &["--uncached=1"] }));
    }
    all
}

fn jobs(quick: bool, dontcache: bool) -> Vec<(Job, Vec<(&'static str, Engine)>)> {
    let large = if quick { 64 * MIB } else { 1024 * MIB };
    let contenders = || contenders(dontcache);
    let mut all = Vec::new();
    for (label, bytes) in [("16 MiB", 16 * MIB), (if quick { "64 MiB" } else { "1 GiB" }, large)] {
        for (what, rw) in [
            ("random reads", "randread"),
            ("reads", "read"),
            ("random overwrites", "randwrite"),
            ("overwrites", "write"),
        ] {
            all.push((Job::cached(format!("{what}, {label}"), rw, bytes), contenders()));
        }
    }
    all.push((Job::cached("random, 70 % reads".to_owned(), "randrw", large).with(&["--rwmixread=70"]), contenders()));
    let two = |name: &str, how| Job::cached(format!("random reads, two jobs, {name}"), "randread", 64 * MIB).two(how);
    all.push((two("one file", Size::OneFile), contenders()));
    all.push((two("a file each", Size::FileEach), contenders()));
    let synced = Job::cached("random overwrites, fsync every 16".to_owned(), "randwrite", 16 * MIB);
    all.push((synced.with(&["--fsync=16"]), contenders()));
    let bound = if quick { 64 * MIB } else { 256 * MIB };
    all.push((Job::larger("stream of writes".to_owned(), "write", bound).stream(), contenders()));
    all.push((Job::larger("stream of reads".to_owned(), "read", bound).stream(), contenders()));
    for depth in [1, 32, 64] {
        let job = Job::larger(format!("random reads of the disk, {depth} in flight"), "randread", bound).depth(depth);
        let others = if depth == 1 { contenders() } else { vec![("afflux", afflux(&[])), kernel("io_uring")] };
        all.push((job, others));
    }
    all
}

fn ablation(quick: bool) -> Vec<(Job, Vec<(&'static str, Engine)>)> {
    let bound = if quick { 64 * MIB } else { 256 * MIB };
    let large = if quick { 64 * MIB } else { 1024 * MIB };
    let variants = || {
        vec![
            ("as it is", afflux(&[])),
            ("system calls", afflux(&["--afflux_io=syscalls"])),
            ("host cache", afflux(&["--afflux_host_caching=buffered"])),
            ("base pages", Engine::Afflux { options: &[], huge_pages: false }),
            ("10 ms in flight", afflux(&["--afflux_knobs=writeback_in_flight_ms=10"])),
        ]
    };
    let hit = Job::cached("random reads, in memory".to_owned(), "randread", large);
    let cold = Job::larger("random reads of the disk, 32 in flight".to_owned(), "randread", bound).depth(32);
    let stream = Job::larger("stream of writes".to_owned(), "write", bound).stream();
    [hit, cold, stream].map(|job| (job, variants())).into()
}

impl FioRace<'_> {
    fn run(&self, job: &Job, engine: &Engine) -> Result<Figure, String> {
        let library = match engine {
            Engine::Afflux { .. } => Some(self.engine.as_deref().map_err(Clone::clone)?),
            Engine::Kernel { .. } => None,
        };
        let bound = match (engine, job.memory) {
            (Engine::Kernel { .. }, Some(bytes)) => Some(Bound::to(bytes + 64 * MIB)?),
            _ => None,
        };
        let Figures { rate, p99_us, p99_9_us, cpu_us } =
            job.run(engine, library, bound.as_ref(), &self.options.directory, self.options.quick)?;
        Ok(Figure { value: rate, beside: vec![p99_us, p99_9_us, cpu_us] })
    }

    fn case(&self, job: &Job, contenders: &[(&'static str, Engine)]) -> Case {
        let names: Vec<&'static str> = contenders.iter().map(|(name, _)| *name).collect();
        let figures = Raced::new(&names, self.options.fio_rounds, |name, _| {
            let engine = contenders.iter().find(|(known, _)| *known == name).map(|(_, engine)| engine);
            self.run(job, engine.ok_or("no such contender")?)
        });
        job.remove_files(&self.options.directory);
        Case { name: job.name.clone(), goal: None, figures }
    }

    fn group(
        &self,
        title: &'static str,
        words: &str,
        jobs: &[(Job, Vec<(&'static str, Engine)>)],
        told: &mut dyn FnMut(&str),
    ) -> Group {
        let mut cases = Vec::new();
        for (job, contenders) in jobs.iter().filter(|(job, _)| self.options.wants(&job.name)) {
            told(&format!("fio: {}", job.name));
            cases.push(self.case(job, contenders));
        }
        let remarks = Vec::new();
        Group {
            title,
            unit: "a second",
            more_is_better: true,
            words: words.to_owned(),
            beside: BESIDE,
            shows_beside: true,
            cases,
            remarks,
        }
    }

    /// The cases beside a slow disk, or a remark that there is none.
    fn slow_and_fast(&self, told: &mut dyn FnMut(&str)) -> Group {
        let names =
            ["in memory", "larger than memory"].map(|what| format!("writes of 64 KiB beside a slow disk, {what}"));
        let none = Group {
            title: "A slow disk and a fast one",
            unit: "a second",
            more_is_better: true,
            words: SLOW_WORDS.to_owned(),
            beside: BESIDE,
            shows_beside: true,
            cases: Vec::new(),
            remarks: Vec::new(),
        };
        if !names.iter().any(|name| self.options.wants(name)) {
            return none;
        }
        told("making a slow disk");
        let place = self.options.directory.join("disk");
        let rates = DiskRates { read_bytes_per_s: Some(25_000_000), write_bytes_per_s: Some(25_000_000) };
        let made = std::fs::create_dir_all(&place).map_err(|error| error.to_string());
        let disk = made.and_then(|()| SlowDisk::new(&place, 1024 * MIB, rates).map_err(|error| error.to_string()));
        match disk {
            Err(why) => Group { remarks: vec![format!("not raced: {why}")], ..none },
            Ok(disk) => {
                let [inside, larger] = names;
                let bound = if self.options.quick { 64 * MIB } else { 256 * MIB };
                let inside = Job::cached(inside, "write", 256 * MIB).beside(disk.path());
                let larger = Job::larger(larger, "write", bound).beside(disk.path());
                let contenders = || vec![("afflux", afflux(&[])), kernel("psync"), kernel("io_uring")];
                let all = [(inside, contenders()), (larger, contenders())];
                Group { title: none.title, ..self.group(none.title, SLOW_WORDS, &all, told) }
            }
        }
    }
}

pub(crate) fn run(options: &Options, told: &mut dyn FnMut(&str)) -> Vec<Group> {
    let engine = match &options.engine {
        path if path.exists() => Ok(path.clone()),
        path => Err(format!("{} is not there: cargo xtask fio-engine makes it", path.display())),
    };
    let race = FioRace { options, engine };
    if let Err(why) = job::installed() {
        return vec![Group { remarks: vec![format!("not raced: {why}")], ..race.group("fio", WORDS, &[], told) }];
    }
    let quick = options.quick;
    let dontcache = job::dontcache(&options.directory);
    let mut jobs = race.group("fio", WORDS, &jobs(quick, dontcache.is_ok()), told);
    jobs.remarks.extend(dontcache.err().map(|why| format!("dontcache: {why}")));
    vec![jobs, race.slow_and_fast(told), race.group("Left out", ABLATION_WORDS, &ablation(quick), told)]
}
