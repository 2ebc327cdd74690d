//! The values that fio 3.33 takes for options that are ignored here.
//!
//! A file whose values fio refuses is no job file, whatever its options mean here. An unset variable is one cause.
//!
//! Owns: the form of each such value.
//! Does not own: values of supported options (`draft`), the meaning of an option (`options`).
//! Invariants: a value that fio refuses on every machine is refused. A value that fio takes is taken, unless fio drops
//! a part of it. Options of single engines, whose engine may be another, are not looked at.

use super::numbers::{KbBase, number, time};
use super::values::between;

/// The form of an option's value.
#[derive(Clone, Copy)]
enum Form {
    /// 0 or 1.
    Truth,
    /// Nothing, or a number.
    Switch,
    /// A number within these bounds.
    Number(i64, i64),
    /// One of these words, perhaps with more behind `:` or `,`.
    Words(&'static [&'static str]),
    Time,
    Percentile,
    /// Numbers, quoted text, or `%o`.
    Pattern,
    /// Some text.
    Text,
    /// Anything, also nothing.
    Any,
}

use Form::{Any, Number, Pattern, Percentile, Switch, Text, Time, Truth, Words};

const MOST: i64 = i64::MAX;
/// fio takes a negative number where it has no upper bound.
const LEAST: i64 = i64::MIN;

fn form_of(name: &str) -> Form {
    match name {
        "buffer_compress_chunk"
        | "bwavgtime"
        | "cpumask"
        | "gid"
        | "gtod_cpu"
        | "hugepage-size"
        | "iomem_align"
        | "iodepth_batch_complete_max"
        | "iopsavgtime"
        | "log_alternate_epoch_clock_id"
        | "log_hist_coarseness"
        | "log_hist_msec"
        | "randseed"
        | "replay_scale"
        | "trim_backlog"
        | "trim_backlog_batch"
        | "uid"
        | "verify_async" => Number(LEAST, MOST),
        "buffer_compress_percentage" | "dedupe_percentage" | "dedupe_working_set_percentage" => Number(0, 100),
        "log_compression" => Number(1024, 512 << 20),
        "log_entries" => Number(1024, 1 << 20),
        "nice" => Number(-20, 19),
        "prio" => Number(LEAST, 7),
        "prioclass" => Number(LEAST, 3),
        "replay_align" | "replay_time_scale" => Number(1, MOST),
        "significant_figures" => Number(1, 10),
        "verify_interval" => Number(80, MOST),
        "verify_offset" => Number(40, MOST),
        "refill_buffers" | "thread" | "threads" | "zero_buffers" => Switch,
        "clocksource" => Words(&["gettimeofday", "clock_gettime", "cpu"]),
        "cpus_allowed_policy" => Words(&["shared", "split"]),
        "dedupe_mode" => Words(&["repeat", "working_set"]),
        "fadvise_hint" => Words(&["0", "1", "random", "sequential"]),
        "fallocate" => Words(&["none", "native", "posix", "keep", "truncate", "0", "1"]),
        "mem" => Words(&["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge", "cudamalloc"]),
        "random_generator" => Words(&["tausworthe", "lfsr", "tausworthe64"]),
        "unit_base" => Words(&["0", "8", "1"]),
        "write_hint" => Words(&["none", "short", "medium", "long", "extreme"]),
        "latency_window" | "steadystate_duration" | "steadystate_ramp_time" => Time,
        "latency_percentile" => Percentile,
        "buffer_pattern" | "verify_pattern" => Pattern,
        "description" | "write_iolog" => Text,
        "cpus_allowed"
        | "flow_watermark"
        | "log_compression_cpus"
        | "numa_cpu_nodes"
        | "numa_mem_policy"
        | "replay_skip"
        | "verify_async_cpus"
        | "verifysort"
        | "verifysort_nr"
        | "write_hist_log" => Any,
        _ => Truth,
    }
}

/// Fails with the reason if fio refuses the value of an option that is ignored here.
pub(super) fn check(name: &str, given: Option<&str>, base: KbBase) -> Result<(), String> {
    let form = form_of(name);
    let value = match (form, given) {
        (Any, _) | (Switch, None) => return Ok(()),
        (_, None) => return Err("needs a value".to_owned()),
        (_, Some(value)) => value.trim(),
    };
    if value.is_empty() {
        return Err("needs a value".to_owned());
    }
    match form {
        Any | Text => Ok(()),
        Truth => one_of(value, &["0", "1"]),
        Switch => within(value, base, LEAST, MOST),
        Number(least, most) => within(value, base, least, most),
        Words(words) => one_of(value.split([':', ',']).next().unwrap_or_default(), words),
        Time => time(value, 1).map(drop),
        Percentile => between(value, "percentile", 0.0, 100.0).map(drop),
        Pattern if value.starts_with(|letter: char| letter.is_ascii_digit() || "+-\"'%".contains(letter)) => Ok(()),
        Pattern => Err(format!("'{value}' is no pattern, such as 0xdeadbeef or \"text\"")),
    }
}

fn within(value: &str, base: KbBase, least: i64, most: i64) -> Result<(), String> {
    let (is_negative, digits) = value.strip_prefix('-').map_or((false, value), |digits| (true, digits));
    let size = i64::try_from(number(digits, base)?).unwrap_or(i64::MAX);
    let number = if is_negative { -size } else { size };
    if (least..=most).contains(&number) {
        return Ok(());
    }
    Err(match (least, most) {
        (LEAST, most) => format!("{number} is above {most}"),
        (least, MOST) => format!("{number} is below {least}"),
        _ => format!("{number} is not within {least} to {most}"),
    })
}

fn one_of(value: &str, words: &[&str]) -> Result<(), String> {
    if words.contains(&value) { Ok(()) } else { Err(format!("'{value}' is none of {}", words.join(", "))) }
}
