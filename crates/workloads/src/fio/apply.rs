//! Options into jobs.
//!
//! Owns: what each supported option does to a job, what a job must have when all are known.
//! Does not own: the text around options (`lines`), numbers (`numbers`), the list of fio's (`options`).
//! Invariants: a job that comes out of here can be run.

use super::lines::{OptionLine, Section};
use super::numbers::{KbBase, number, pair, range, time};
use super::options::{self, Meaning};
use super::{Complaint, JobFile};
use crate::job::{BlockSizes, Distribution, Engine, Job, Pattern};

/// Most clones of a job, as in fio.
const CLONES_MAX: u64 = 4096;
/// Most files of a clone.
const FILES_MAX: u64 = 1 << 20;
/// Largest block.
const BLOCK_BYTES_MAX: u64 = 16 << 20;

const SECOND_NS: u64 = 1_000_000_000;
const MICROSECOND_NS: u64 = 1_000;

/// A job in the making.
#[derive(Clone)]
struct Draft {
    job: Job,
    base: KbBase,
}

pub(super) fn jobs(sections: Vec<Section>) -> Result<JobFile, Complaint> {
    let mut file = JobFile::default();
    let mut defaults = Draft { job: Job::named(""), base: KbBase::Binary };
    for section in sections {
        if section.is_global() {
            defaults.apply_all(&section.options, &mut file.warnings)?;
            continue;
        }
        let mut draft = defaults.clone();
        draft.job.name.clone_from(&section.name);
        draft.job.place = section.place.clone();
        draft.apply_all(&section.options, &mut file.warnings)?;
        let wrong = |what| Complaint { place: section.place.clone(), what: format!("job '{}': {what}", section.name) };
        file.jobs.push(finished(draft.job).map_err(wrong)?);
    }
    Ok(file)
}

impl Draft {
    fn apply_all(&mut self, lines: &[OptionLine], warnings: &mut Vec<Complaint>) -> Result<(), Complaint> {
        // fio reads it first, wherever it stands in its section.
        let (bases, others): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.key == "kb_base");
        for line in bases.into_iter().chain(others) {
            let wrong = |what| Complaint { place: line.place.clone(), what };
            if let Some(warning) = self.apply(line).map_err(wrong)? {
                warnings.push(wrong(warning));
            }
        }
        Ok(())
    }

    /// Does what the line says; what is in the result is a warning.
    fn apply(&mut self, line: &OptionLine) -> Result<Option<String>, String> {
        let key = &line.key;
        let Some((name, meaning)) = options::find(key) else {
            let near = options::nearest(key).map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
            return Err(format!("fio knows no such option as '{key}'{near}"));
        };
        let given = line.value.as_deref();
        match meaning {
            Meaning::Supported => {
                let value = given.map_or_else(|| bare(name), |value| Ok(value.to_owned()));
                let set = value.and_then(|value| {
                    if value.starts_with([' ', '\t']) {
                        return Err(format!("'{value}' begins with a blank, which fio takes for a part of it"));
                    }
                    self.set(name, &value)
                });
                set.map(|()| None).map_err(|why| format!("option '{key}': {why}"))
            }
            Meaning::Harmless => Ok(Some(format!("option '{key}' cannot change the outcome here; it is ignored"))),
            Meaning::Only(values) if values.contains(&given.unwrap_or("1").trim()) => Ok(None),
            Meaning::Only(values) => Err(format!(
                "option '{key}' is supported as '{name}={}' only, which is what happens without it; supported are: {}",
                values[0],
                options::supported()
            )),
            Meaning::Unsupported => Err(format!(
                "fio's option '{key}' is not supported, and could change the outcome; supported are: {}",
                options::supported()
            )),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let base = self.base;
        let job = &mut self.job;
        if value.is_empty() {
            return Err("the value is missing".to_owned());
        }
        match name {
            "kb_base" => self.base = kb_base(value)?,
            "name" => value.clone_into(&mut job.name),
            "filename" => job.file_names = names(value),
            "directory" => job.directories = names(value),
            "rw" => job.pattern = pattern(value)?,
            "rwmixread" => job.mix_read_percent = bounded(value, base, 0, 100)?,
            "rwmixwrite" => job.mix_read_percent = 100 - bounded(value, base, 0, 100)?,
            "bs" => job.block_bytes = pair(value, job.block_bytes, |part| block_sizes(part, base))?,
            "bsrange" => job.block_bytes = pair(value, job.block_bytes, |part| block_range(part, base))?,
            "size" => (job.size, job.size_percent) = size(value, base)?,
            "filesize" => job.file_bytes = Some(file_bytes(value, base)?),
            "numjobs" => job.clones = bounded(value, base, 1, CLONES_MAX)?,
            "nrfiles" => job.files = bounded(value, base, 1, FILES_MAX)?,
            "fsync" => job.fsync_every = number(value, base)?,
            "fdatasync" => job.fdatasync_every = number(value, base)?,
            "end_fsync" => job.end_fsync = truth(value)?,
            "rate" => job.rate_bytes = pair(value, job.rate_bytes, |part| number(part, base))?,
            "rate_iops" => job.rate_calls = pair(value, job.rate_calls, |part| number(part, base))?,
            "thinktime" => job.think_ns = time(value, MICROSECOND_NS)?,
            "runtime" => job.runtime_ns = time(value, SECOND_NS)?,
            "time_based" => job.time_based = truth(value)?,
            "startdelay" => job.start_delay_ns = time(value, SECOND_NS)?,
            "stonewall" => job.stonewall = truth(value)?,
            "random_distribution" => job.distribution = distribution(value)?,
            "ioengine" => job.engine = engine(value)?,
            "group_reporting" => job.group_reporting = truth(value)?,
            _ => return Err("is listed as supported and is not".to_owned()),
        }
        Ok(())
    }
}

/// The value of a key alone: some stand for themselves, others need one.
fn bare(name: &str) -> Result<String, String> {
    match name {
        "time_based" | "stonewall" | "group_reporting" => Ok("1".to_owned()),
        _ => Err("needs a value".to_owned()),
    }
}

fn kb_base(value: &str) -> Result<KbBase, String> {
    match value {
        "1024" => Ok(KbBase::Binary),
        "1000" => Ok(KbBase::Decimal),
        _ => Err(format!("'{value}' is neither 1000 nor 1024")),
    }
}

fn truth(value: &str) -> Result<bool, String> {
    match value {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(format!("'{value}' is neither 0 nor 1")),
    }
}

fn bounded(value: &str, base: KbBase, min: u64, max: u64) -> Result<u64, String> {
    let number = number(value, base)?;
    let inside = (min..=max).contains(&number);
    if inside { Ok(number) } else { Err(format!("{number} is not within {min} to {max}")) }
}

fn pattern(value: &str) -> Result<Pattern, String> {
    let (reads, writes, random) = match value {
        "read" => (true, false, false),
        "write" => (false, true, false),
        "randread" => (true, false, true),
        "randwrite" => (false, true, true),
        "rw" | "readwrite" => (true, true, false),
        "randrw" => (true, true, true),
        _ => {
            return Err(format!(
                "'{value}' is not supported; supported are read, write, randread, randwrite, rw, readwrite and randrw"
            ));
        }
    };
    Ok(Pattern { reads, writes, random })
}

fn checked(sizes: (u64, u64)) -> Result<BlockSizes, String> {
    let (min, max) = sizes;
    if min == 0 || max > BLOCK_BYTES_MAX {
        return Err(format!("blocks of {min} to {max} bytes are not within 1 to {BLOCK_BYTES_MAX}"));
    }
    Ok(BlockSizes { min, max })
}

fn block_sizes(part: &str, base: KbBase) -> Result<BlockSizes, String> {
    number(part, base).and_then(|bytes| checked((bytes, bytes)))
}

fn block_range(part: &str, base: KbBase) -> Result<BlockSizes, String> {
    range(part, base).and_then(checked)
}

/// Bytes, or a percentage of the files' sizes.
fn size(value: &str, base: KbBase) -> Result<(u64, u64), String> {
    match value.strip_suffix('%') {
        Some(percent) => Ok((0, bounded(percent, base, 1, 100)?)),
        None => Ok((number(value, base)?, 100)),
    }
}

fn file_bytes(value: &str, base: KbBase) -> Result<(u64, u64), String> {
    let (min, max) = match value.contains(['-', ':']) {
        true => range(value, base)?,
        false => number(value, base).map(|bytes| (bytes, bytes))?,
    };
    if min == 0 { Err("0 is not within 1 to what the device holds".to_owned()) } else { Ok((min, max)) }
}

fn distribution(value: &str) -> Result<Distribution, String> {
    let (kind, parameter) = value.split_once(':').map_or((value, None), |(kind, rest)| (kind, Some(rest)));
    match (kind, parameter) {
        ("random", None) => Ok(Distribution::Uniform),
        ("zipf", None) => Ok(Distribution::Zipf(1.1)),
        ("zipf", Some(text)) => {
            let theta = text.parse::<f64>().ok().filter(|theta| (0.01..=10.0).contains(theta) && *theta != 1.0);
            let theta = theta.ok_or_else(|| format!("theta '{text}' is not within 0.01 to 10, without 1"))?;
            Ok(Distribution::Zipf(theta))
        }
        _ => Err(format!("'{value}' is not supported; supported are random, zipf and zipf:THETA")),
    }
}

fn engine(value: &str) -> Result<Engine, String> {
    match value {
        "psync" => Ok(Engine::Psync),
        "sync" => Ok(Engine::Sync),
        "mmap" => Ok(Engine::Mmap),
        _ => Err(format!("'{value}' is not supported; supported are psync, sync and mmap")),
    }
}

/// A list with colons between; `\:` is a colon in a name.
fn names(value: &str) -> Vec<String> {
    // No file name has a NUL, so it can stand for the colons that do not separate.
    value.replace("\\:", "\0").split(':').map(|name| name.replace('\0', ":")).collect()
}

/// What only shows when all options of a job are known.
fn finished(mut job: Job) -> Result<Job, String> {
    if job.name.is_empty() {
        return Err("has no name".to_owned());
    }
    if !job.file_names.is_empty() {
        job.files = job.file_names.len() as u64;
    }
    if job.size_percent != 100 && job.file_bytes.is_none() {
        return Err("a 'size' in percent needs 'filesize'".to_owned());
    }
    if job.size == 0 && job.file_bytes.is_none() {
        return Err("needs 'size' or 'filesize': simulated files do not exist before".to_owned());
    }
    let block_min = job.block_bytes[0].min.min(job.block_bytes[1].min);
    if job.size != 0 && job.size < block_min {
        return Err(format!("a 'size' of {} is less than a block of {block_min}", job.size));
    }
    if job.time_based && job.runtime_ns == 0 {
        return Err("'time_based' needs a 'runtime'".to_owned());
    }
    if job.rate_bytes.iter().any(|rate| *rate > 0) && job.rate_calls.iter().any(|rate| *rate > 0) {
        return Err("'rate' and 'rate_iops' exclude each other".to_owned());
    }
    Ok(job)
}
