//! A job under construction: the effect of each option, and the final checks.
//!
//! Owns: each supported option, conflicts between options.
//! Does not own: the choice of lines (`apply`), the text of values (`values`, `numbers`).
//! Invariants: a finished job has fio 3.33's meaning.

use afflux_engine::settings::did_you_mean;

use super::engines::{self, Likened};
use super::numbers::{KbBase, number, pair, time, time_range};
use super::values::{
    amount, block_range, block_sizes, bounded, continues, distribution, ends, file_bytes, kb_base, names, pattern,
    percentiles, service, split, truth, zone_mode,
};
use crate::job::{Amount, BlockSizes, Distribution, Engine, Job, Verify, Zones};

/// Most clones of a job, as in fio.
const CLONES_MAX: u64 = 4096;
/// Most files of a clone.
const FILES_MAX: u64 = 1 << 20;
/// Most calls in flight in a clone.
const DEPTH_MAX: u64 = 65_536;
/// Most bytes of all calls of a clone in flight: their buffers are real.
const BUFFER_BYTES_MAX: u64 = 4 << 30;

/// Zone size of a zoned drive without `zonesize`.
const USUAL_ZONE_BYTES: u64 = 256 << 20;

/// The unit of trims on a simulated disk.
const TRIM_BYTES: u64 = 4096;

const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;
const MICROSECOND_NS: u64 = 1_000;

/// Options of zones, before it is known whether there is a zone mode.
#[derive(Clone, Copy, Default)]
struct ZoneSizes {
    /// 0: not given; 1: none; 2: strided; 3: as on zoned devices.
    mode: u8,
    range: u64,
    bytes: u64,
    skip: u64,
    open: u64,
}

/// A job under construction.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) job: Job,
    pub(super) base: KbBase,
    engine: String,
    size: Amount,
    verify: Verify,
    verifies: bool,
    zones: ZoneSizes,
    /// `sg_write_mode`, unless it is plain writing.
    sg_mode: Option<String>,
    ignored_errors: bool,
    /// Sizes of trims, where they are given separately.
    trim_bytes: Option<BlockSizes>,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            job: Job::named(""),
            base: KbBase::Binary,
            engine: "psync".to_owned(),
            size: Amount::Bytes(0),
            verify: Verify { backlog: 0, batch: 0, at_end: true, only: false },
            verifies: false,
            zones: ZoneSizes::default(),
            sg_mode: None,
            ignored_errors: false,
            trim_bytes: None,
        }
    }
}

impl Draft {
    /// Applies an option.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if value.is_empty() {
            return Err("the value is missing".to_owned());
        }
        let done = self.set_what(name, value)? || self.set_when(name, value)? || self.set_how(name, value)?;
        if done { Ok(()) } else { Err("is listed as supported and is not".to_owned()) }
    }

    /// Options about files, and about the data read and written.
    fn set_what(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let base = self.base;
        let job = &mut self.job;
        let more = &mut job.more;
        match name {
            "kb_base" => self.base = kb_base(value)?,
            "name" => value.clone_into(&mut job.name),
            "filename" => job.file_names = names(value),
            "filename_format" => more.name_format = Some(value.to_owned()),
            "directory" => job.directories = names(value),
            "rw" => (job.pattern, more.random_every, more.stride) = pattern(value, base)?,
            "rw_sequencer" => more.repeat_offset = repeats(value)?,
            "rwmixread" => job.mix_read_percent = bounded(value, base, 0, 100)?,
            "rwmixwrite" => job.mix_read_percent = 100 - bounded(value, base, 0, 100)?,
            "bs" => {
                job.block_bytes = pair(value, job.block_bytes, |part| block_sizes(part, base))?;
                self.trim_bytes = third(value).map(|part| block_sizes(part, base)).transpose()?;
            }
            "bsrange" => {
                job.block_bytes = pair(value, job.block_bytes, |part| block_range(part, base))?;
                self.trim_bytes = third(value).map(|part| block_range(part, base)).transpose()?;
            }
            "bssplit" => self.split(value)?,
            "bs_is_seq_rand" => more.sizes_by_order = truth(value)?,
            "ba" => more.align = pair(value, more.align, |part| number(part, base))?,
            "size" => self.size = amount(value, base, 1)?,
            "io_size" => more.io_bytes = Some(amount(value, base, 1)?).filter(|amount| *amount != Amount::Bytes(0)),
            "filesize" => job.file_bytes = Some(file_bytes(value, base)?),
            "offset" => more.offset = amount(value, base, 0)?,
            "offset_increment" => more.offset_increment = amount(value, base, 0)?,
            "offset_align" => more.offset_align = number(value, base)?,
            "numjobs" => job.clones = bounded(value, base, 1, CLONES_MAX)?,
            "nrfiles" => job.files = bounded(value, base, 1, FILES_MAX)?,
            "openfiles" => more.open_files = bounded(value, base, 0, FILES_MAX)?,
            "file_service_type" => (more.service, more.service_calls) = service(value, base)?,
            "number_ios" => more.calls_max = number(value, base)?,
            "loops" => more.loops = bounded(value, base, 1, 1 << 32)?,
            "norandommap" => more.any_block = truth(value)?,
            "percentage_random" => {
                more.random_percent = pair(value, more.random_percent, |part| bounded(part, base, 0, 100))?;
            }
            "random_distribution" => job.distribution = distribution(value, base)?,
            "fill_device" => more.fill = truth(value)?,
            "overwrite" => more.overwrite = truth(value)?,
            "unlink" => more.unlink = truth(value)?,
            "create_only" => more.create_only = truth(value)?,
            "zonemode" => self.zones.mode = zone_mode(value)?,
            "zonerange" => self.zones.range = number(value, base)?,
            "zonesize" => self.zones.bytes = number(value, base)?,
            "zoneskip" => self.zones.skip = number(value, base)?,
            "max_open_zones" | "job_max_open_zones" => self.zones.open = number(value, base)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Options about timing and its measurement.
    fn set_when(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let base = self.base;
        let job = &mut self.job;
        let more = &mut job.more;
        match name {
            "rate" => job.rate_bytes = pair(value, job.rate_bytes, |part| number(part, base))?,
            "rate_iops" => job.rate_calls = pair(value, job.rate_calls, |part| number(part, base))?,
            "rate_min" => more.rate_min = pair(value, more.rate_min, |part| number(part, base))?,
            "rate_iops_min" => more.rate_min_calls = pair(value, more.rate_min_calls, |part| number(part, base))?,
            "rate_cycle" => more.rate_cycle_ns = number(value, base)?.saturating_mul(MILLISECOND_NS),
            "rate_process" => more.poisson = by_chance(value)?,
            "thinktime" => job.think_ns = time(value, MICROSECOND_NS)?,
            "thinktime_blocks" => more.think_every = bounded(value, base, 1, u64::MAX)?,
            "thinktime_spin" => more.think_spin_ns = time(value, MICROSECOND_NS)?,
            "thinktime_iotime" => more.think_after_ns = time(value, SECOND_NS)?,
            "runtime" => job.runtime_ns = time(value, SECOND_NS)?,
            "ramp_time" => more.ramp_ns = time(value, SECOND_NS)?,
            "time_based" => job.time_based = truth(value)?,
            "startdelay" => (job.start_delay_ns, job.start_delay_max_ns) = time_range(value, SECOND_NS)?,
            "stonewall" => job.stonewall = truth(value)?,
            "wait_for" => more.wait_for = Some(value.to_owned()),
            "exitall" => more.exit_all = truth(value)?,
            "exitall_on_error" => more.exit_all_on_error = truth(value)?,
            "exit_what" => more.ends = ends(value)?,
            "new_group" => more.new_group = truth(value)?,
            "flow" => more.flow = bounded(value, base, 0, 1 << 32)?,
            "flow_id" => more.flow_id = number(value, base)?,
            "flow_sleep" => more.flow_sleep_ns = number(value, base)?.saturating_mul(MICROSECOND_NS),
            "group_reporting" => job.group_reporting = truth(value)?,
            "percentile_list" => more.percentiles = percentiles(value)?,
            "write_bw_log" => more.logs.bandwidth = Some(value.to_owned()),
            "write_lat_log" => more.logs.latency = Some(value.to_owned()),
            "write_iops_log" => more.logs.calls = Some(value.to_owned()),
            "log_avg_msec" => more.logs.mean_ns = number(value, base)?.saturating_mul(MILLISECOND_NS),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Options about the method of calls.
    fn set_how(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let base = self.base;
        let job = &mut self.job;
        let more = &mut job.more;
        match name {
            "ioengine" => self.set_engine(value)?,
            "iodepth" => more.depth = bounded(value, base, 1, DEPTH_MAX)?,
            "iodepth_batch" => more.batch = bounded(value, base, 0, DEPTH_MAX)?,
            "iodepth_low" => more.depth_low = bounded(value, base, 0, DEPTH_MAX)?,
            // While several ends are awaited at once nothing is submitted: the queue runs down.
            "iodepth_batch_complete_min" => drop(bounded(value, base, 0, DEPTH_MAX)?),
            "io_submit_mode" => more.offload = offloads(value)?,
            "direct" => more.direct = truth(value)?,
            "buffered" => more.direct = !truth(value)?,
            "sync" => more.sync_writes = syncs(value)?,
            "fsync" => job.fsync_every = number(value, base)?,
            "fdatasync" => job.fdatasync_every = number(value, base)?,
            "end_fsync" => job.end_fsync = truth(value)?,
            "fsync_on_close" => more.fsync_on_close = truth(value)?,
            "invalidate" => more.invalidate = truth(value)?,
            "pre_read" => more.pre_read = truth(value)?,
            "continue_on_error" => more.may_fail = continues(value)?,
            "ignore_error" => self.ignored_errors = true,
            "verify" => self.verifies = verifies(value)?,
            "do_verify" => self.verify.at_end = truth(value)?,
            "verify_only" => self.verify.only = truth(value)?,
            "verify_backlog" => self.verify.backlog = number(value, base)?,
            "verify_backlog_batch" => self.verify.batch = number(value, base)?,
            "cpuload" => more.cpu_percent = bounded(value, base, 1, 100)?,
            "cpuchunks" => more.cpu_chunk_ns = bounded(value, base, 1, 1 << 40)?.saturating_mul(MICROSECOND_NS),
            "sg_write_mode" => {
                self.sg_mode = Some(value.to_owned())
                    .filter(|mode| !["write", "write_same", "write_same_ndob"].contains(&mode.as_str()));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn split(&mut self, value: &str) -> Result<(), String> {
        let base = self.base;
        let given: Vec<&str> = value.split(',').collect();
        let [reads, writes] = match given[..] {
            [both] => [both; 2],
            [reads, writes] | [reads, writes, _] => [reads, writes],
            _ => return Err(format!("'{value}' has {} lists; at most 3, for reads, writes and trims", given.len())),
        };
        for (at, list) in [reads, writes].into_iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            let list = split(list, base)?;
            let sizes = || list.iter().filter(|(_, percent)| *percent > 0).map(|(bytes, _)| *bytes);
            let (min, max) = (sizes().min().unwrap_or(4096), sizes().max().unwrap_or(4096));
            self.job.block_bytes[at] = BlockSizes { min, max };
            self.job.more.split[at] = list;
        }
        Ok(())
    }

    fn set_engine(&mut self, value: &str) -> Result<(), String> {
        // In older files, options of an engine may follow its name.
        let name = value.split(':').next().unwrap_or(value);
        match engines::find(name) {
            _ if name == "external" => Err(format!("'{value}' is a program of this host's, which cannot be simulated")),
            None => {
                let near = did_you_mean(name, engines::ENGINES.iter().map(|(name, _)| *name));
                Err(format!("fio knows no such engine as '{name}'{near}; simulated are {}", engines::simulated()))
            }
            Some(Likened::Not(why)) => Err(format!("'{name}' is not simulated: {why}")),
            Some(_) => {
                name.clone_into(&mut self.engine);
                Ok(())
            }
        }
    }

    fn likened(&self) -> Likened {
        engines::find(&self.engine).unwrap_or(Likened::To(Engine::Psync))
    }

    /// The points where the simulation only approximates fio.
    pub(super) fn near(&self) -> Vec<String> {
        let mut all = Vec::new();
        if let Likened::Nearly(_, why) = self.likened() {
            all.push(format!("ioengine '{}' is not simulated as it is: {why}", self.engine));
        }
        all
    }

    /// Warnings about accepted options.
    pub(super) fn differences(&self) -> Vec<String> {
        let mut all = Vec::new();
        if let Likened::But(_, why) = self.likened() {
            all.push(format!("ioengine '{}': {why}", self.engine));
        }
        if self.ignored_errors {
            all.push("option 'ignore_error': single errors are not told apart; all of a job's are let pass".to_owned());
        }
        if self.sg_mode.is_some() {
            all.push(
                "option 'sg_write_mode': a comparison by the device takes what a read takes, and finds all the same"
                    .to_owned(),
            );
        }
        let asked = self.job.more.depth > 1 && self.job.moves_bytes();
        if asked && matches!(self.likened(), Likened::To(Engine::Libaio)) && !self.job.more.direct {
            all.push("ioengine 'libaio' without direct=1: a call is carried out as it is submitted, so that one is in flight".to_owned());
        }
        all.extend(self.syncs_at_depth());
        all.extend(self.larger_than_the_map());
        if self.zones.mode == 3 && self.zones.bytes == 0 {
            all.push(
                "option 'zonemode=zbd' without 'zonesize': zones of 256 MiB, as zoned drives usually have".to_owned(),
            );
        }
        if self.job.time_based && self.job.runtime_ns == 0 {
            all.push("option 'time_based' does nothing without a 'runtime'".to_owned());
        }
        all
    }

    /// The warning about random calls that are larger than the blocks of fio's map, which have the smaller of both
    /// directions' sizes.
    fn larger_than_the_map(&self) -> Option<String> {
        let job = &self.job;
        let is_used = [job.pattern.reads, job.pattern.writes];
        let has_map =
            matches!(job.distribution, Distribution::Uniform) && !job.more.any_block && job.more.align == [0; 2];
        let [reads, writes] = [0, 1].map(|way| job.block_bytes[way].min);
        let is_larger = is_used[0] && reads > writes || is_used[1] && writes > reads;
        (job.pattern.random && has_map && is_larger).then(|| {
            "option 'bs' with other sizes for reads than for writes, in random order: all bytes are moved here; fio counts blocks in \
             the smaller size and ends early, often after less than half of them (with norandommap=1 it moves all)"
                .to_owned()
        })
    }

    /// The warning about syncs between calls in flight. fio takes a sync for done when its end is seen. Until then it
    /// issues the same sync again.
    fn syncs_at_depth(&self) -> Option<String> {
        let job = &self.job;
        let (every, depth) = (job.fsync_every.max(job.fdatasync_every), job.more.depth);
        if every == 0 || depth < 2 || !job.pattern.writes {
            return None;
        }
        match self.likened() {
            _ if job.more.offload => Some(
                "options 'fsync' and 'fdatasync' with 'io_submit_mode=offload': one sync each time; fio repeats it for \
                 as long as it is under way, which may be for ever"
                    .to_owned(),
            ),
            Likened::To(Engine::Uring | Engine::Posixaio) | Likened::PastCache(Engine::Uring) => Some(format!(
                "options 'fsync' and 'fdatasync' with 'iodepth={depth}': one sync each time; fio issues it again until \
                 its end is seen, so that it makes up to {depth} times as many"
            )),
            _ => None,
        }
    }

    /// The finished job, or all its missing and conflicting options.
    pub(super) fn finished(mut self) -> Result<Job, Vec<String>> {
        let (engine, direct) = match self.likened() {
            Likened::To(engine) | Likened::But(engine, _) => (engine, self.job.more.direct),
            Likened::PastCache(engine) | Likened::Nearly(engine, _) => (engine, true),
            Likened::Not(_) => (Engine::Psync, false),
        };
        let job = &mut self.job;
        (job.engine, job.more.direct) = (engine, direct);
        job.more.checks = self.sg_mode.is_some();
        if !job.file_names.is_empty() {
            job.files = job.file_names.len() as u64;
        }
        if self.engine == "pmemblk" {
            job.files = 1;
            job.size = job.size.max(pool_bytes(&mut job.file_names));
        }
        match self.size {
            Amount::Bytes(0) => {}
            Amount::Bytes(bytes) => job.size = bytes,
            Amount::Percent(percent) => job.size_percent = percent,
        }
        if job.time_based && job.runtime_ns == 0 {
            job.time_based = false;
        }
        if self.verifies {
            job.more.verify = Some(self.verify);
        }
        if self.ignored_errors {
            job.more.may_fail = [true; 2];
        }
        if let (true, false, Some(sizes)) = (job.pattern.trims, job.pattern.writes, self.trim_bytes) {
            job.block_bytes[1] = sizes;
        }
        let mut wrong = self.zones();
        wrong.extend(self.lacking());
        wrong.extend(self.trims());
        if wrong.is_empty() { Ok(self.job) } else { Err(wrong) }
    }

    fn zones(&mut self) -> Vec<String> {
        let ZoneSizes { mode, range, bytes, skip, open } = self.zones;
        let job = &mut self.job;
        job.more.zones = match (mode, bytes) {
            (1, 1..) => return vec!["'zonemode=none' and 'zonesize' exclude each other".to_owned()],
            (2, 0) => return vec!["'zonemode=strided' needs a 'zonesize'".to_owned()],
            (3, 0) => Some(Zones::Sequential { bytes: USUAL_ZONE_BYTES, open }),
            (0 | 1, 0) => None,
            (3, _) => Some(Zones::Sequential { bytes, open }),
            _ => Some(Zones::Strided { range: if range == 0 { bytes } else { range }, bytes, skip }),
        };
        let largest = job.block_bytes.iter().map(|sizes| sizes.max).max().unwrap_or(0);
        let zone = match job.more.zones {
            Some(Zones::Strided { range, .. }) => range,
            Some(Zones::Sequential { bytes, .. }) => bytes,
            None => u64::MAX,
        };
        if zone < largest {
            vec![format!("a zone of {zone} bytes is less than a block of {largest}")]
        } else {
            Vec::new()
        }
    }

    /// The reason that the job's trims cannot be simulated, if any.
    fn trims(&self) -> Option<String> {
        let (job, BlockSizes { min, max }) = (&self.job, self.job.block_bytes[1]);
        let whole = |bytes: u64| bytes.is_multiple_of(TRIM_BYTES);
        match self.trim_bytes {
            _ if !job.pattern.trims => None,
            Some(sizes) if job.pattern.writes && sizes != job.block_bytes[1] => {
                Some("trims of another size than the writes behind them are not simulated".to_owned())
            }
            _ if job.more.split[1].iter().any(|(bytes, _)| !whole(*bytes)) || !whole(min) || !whole(max) => {
                Some(format!("trims are simulated in whole pages of {TRIM_BYTES} bytes only"))
            }
            _ => None,
        }
    }

    fn lacking(&self) -> Vec<String> {
        let job = &self.job;
        let mut wrong = Vec::new();
        if job.name.is_empty() {
            wrong.push("has no name".to_owned());
        }
        // A path that may be a disk has the disk's size, which is known later.
        let named = !job.file_names.is_empty();
        let moves = !matches!(job.engine, Engine::Cpu | Engine::Names);
        if job.size_percent != 100 && job.file_bytes.is_none() && !named {
            wrong.push("a 'size' in percent needs 'filesize'".to_owned());
        } else if moves && job.size == 0 && job.file_bytes.is_none() && !named && !job.more.fill {
            wrong.push("needs 'size' or 'filesize': simulated files do not exist before".to_owned());
        }
        let block_min = job.block_bytes[0].min.min(job.block_bytes[1].min);
        let largest = job.block_bytes.iter().map(|sizes| sizes.max).max().unwrap_or(0);
        if moves && largest.saturating_mul(job.in_flight_max()) > BUFFER_BYTES_MAX {
            wrong.push(format!(
                "{} blocks of {largest} bytes in flight take more than the {BUFFER_BYTES_MAX} bytes that are simulated",
                job.in_flight_max()
            ));
        }
        if moves && job.size != 0 && job.size < block_min {
            wrong.push(format!("a 'size' of {} is less than a block of {block_min}", job.size));
        }
        if job.engine == Engine::Cpu && job.runtime_ns == 0 {
            wrong.push("'ioengine=cpuio' needs a 'runtime'".to_owned());
        }
        if job.engine == Engine::Cpu && job.more.cpu_percent == 0 {
            wrong.push("'ioengine=cpuio' needs a 'cpuload'".to_owned());
        }
        if job.rate_bytes.iter().any(|rate| *rate > 0) && job.rate_calls.iter().any(|rate| *rate > 0) {
            wrong.push("'rate' and 'rate_iops' exclude each other".to_owned());
        }
        let below = |rate: &[u64; 2], least: &[u64; 2]| (0..2).any(|at| rate[at] > 0 && rate[at] < least[at]);
        if below(&job.rate_bytes, &job.more.rate_min) || below(&job.rate_calls, &job.more.rate_min_calls) {
            wrong.push("the least rate is above the rate".to_owned());
        }
        wrong
    }
}

/// The part of a list for trims, if it has one.
fn third(value: &str) -> Option<&str> {
    value.split(',').nth(2).filter(|part| !part.is_empty())
}

fn repeats(value: &str) -> Result<bool, String> {
    match value {
        "sequential" => Ok(false),
        "identical" => Ok(true),
        _ => Err(format!("'{value}' is neither sequential nor identical")),
    }
}

fn by_chance(value: &str) -> Result<bool, String> {
    match value {
        "linear" => Ok(false),
        "poisson" => Ok(true),
        _ => Err(format!("'{value}' is neither linear nor poisson")),
    }
}

fn offloads(value: &str) -> Result<bool, String> {
    match value {
        "inline" => Ok(false),
        "offload" => Ok(true),
        _ => Err(format!("'{value}' is neither inline nor offload")),
    }
}

fn syncs(value: &str) -> Result<bool, String> {
    match value {
        "none" | "0" => Ok(false),
        "sync" | "dsync" | "1" => Ok(true),
        _ => Err(format!("'{value}' is none of none, sync, dsync, 0 and 1")),
    }
}

fn verifies(value: &str) -> Result<bool, String> {
    const KINDS: [&str; 17] = [
        "md5",
        "crc64",
        "crc32",
        "crc32c",
        "crc32c-intel",
        "crc16",
        "crc7",
        "sha256",
        "sha512",
        "sha1",
        "sha3-224",
        "sha3-256",
        "sha3-384",
        "sha3-512",
        "xxhash",
        "meta",
        "pattern",
    ];
    match value.split(':').next().unwrap_or("") {
        "0" => Ok(false),
        "null" | "pattern_hdr" => Ok(true),
        kind if KINDS.contains(&kind) => Ok(true),
        kind => Err(format!("fio knows no such check as '{kind}'; it knows {} and others", KINDS.join(", "))),
    }
}

/// Parses `PATH,BLOCK,MIB`, the names of pools of persistent memory: retains the path, and returns the bytes.
fn pool_bytes(names: &mut [String]) -> u64 {
    let Some(name) = names.first_mut() else { return 0 };
    let parts: Vec<String> = name.split(',').map(str::to_owned).collect();
    parts[0].clone_into(name);
    let mib = parts.get(2).and_then(|mib| mib.parse::<u64>().ok());
    mib.map_or(0, |mib| mib.saturating_mul(1 << 20))
}
