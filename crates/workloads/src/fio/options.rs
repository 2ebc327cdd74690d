//! The options that fio 3.33 knows, by name, and what the simulator makes of each.
//!
//! The names and aliases are those that `fio --cmdhelp=all` and `fio --cmdhelp=NAME` list; a test
//! compares. Options of single I/O engines are not among them: the engines here have none but `mmap`'s
//! `thp`, which nobody needs.
//!
//! Owns: the names, which of them can change what a cache does.
//! Does not own: values of supported options (`apply`).
//! Invariants: every option of fio has one row; names are in order.

/// What the simulator makes of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// It does what fio does.
    Supported,
    /// It concerns the report, the buffers' contents or the host, or works only beside an option that is
    /// not supported: ignored with a warning.
    Harmless,
    /// These values are what happens anyway; others would change the outcome.
    Only(&'static [&'static str]),
    /// It could change the outcome.
    Unsupported,
}

use Meaning::{Harmless, Only, Supported, Unsupported};

/// Every option, in the order of names.
#[rustfmt::skip]
pub(super) const OPTIONS: &[(&str, Meaning)] = &[
    ("allow_file_create", Only(&["1"])),
    ("allow_mounted_write", Harmless),
    ("allrandrepeat", Harmless),
    ("atomic", Only(&["0"])),
    ("ba", Unsupported),
    ("block_error_percentiles", Harmless),
    ("bs", Supported),
    ("bs_unaligned", Only(&["0"])),
    ("bsrange", Supported),
    ("bssplit", Unsupported),
    ("buffer_compress_chunk", Harmless),
    ("buffer_compress_percentage", Harmless),
    ("buffer_pattern", Harmless),
    ("buffered", Only(&["1"])),
    ("bwavgtime", Harmless),
    ("cgroup", Unsupported),
    ("cgroup_nodelete", Harmless),
    ("cgroup_weight", Unsupported),
    ("clat_percentiles", Harmless),
    ("clocksource", Harmless),
    ("continue_on_error", Only(&["none"])),
    ("cpumask", Unsupported),
    ("cpus_allowed", Unsupported),
    ("cpus_allowed_policy", Unsupported),
    ("create_fsync", Harmless),
    ("create_on_open", Only(&["0"])),
    ("create_only", Only(&["0"])),
    ("create_serialize", Harmless),
    ("dedupe_global", Harmless),
    ("dedupe_mode", Harmless),
    ("dedupe_percentage", Harmless),
    ("dedupe_working_set_percentage", Harmless),
    ("description", Harmless),
    ("direct", Only(&["0"])),
    ("directory", Supported),
    ("disable_bw_measurement", Harmless),
    ("disable_clat", Harmless),
    ("disable_lat", Harmless),
    ("disable_slat", Harmless),
    ("disk_util", Harmless),
    ("do_verify", Harmless),
    ("end_fsync", Supported),
    ("error_dump", Harmless),
    ("exec_postrun", Unsupported),
    ("exec_prerun", Unsupported),
    ("exit_what", Harmless),
    ("exitall", Only(&["0"])),
    ("exitall_on_error", Only(&["0"])),
    ("experimental_verify", Only(&["0"])),
    ("fadvise_hint", Harmless),
    ("fallocate", Harmless),
    ("fdatasync", Supported),
    ("file_append", Only(&["0"])),
    ("file_service_type", Only(&["roundrobin"])),
    ("filename", Supported),
    ("filename_format", Only(&["$jobname.$jobnum.$filenum"])),
    ("filesize", Supported),
    ("fill_device", Only(&["0"])),
    ("flow", Only(&["0"])),
    ("flow_id", Harmless),
    ("flow_sleep", Harmless),
    ("fsync", Supported),
    ("fsync_on_close", Only(&["0"])),
    ("gid", Harmless),
    ("group_reporting", Supported),
    ("gtod_cpu", Harmless),
    ("gtod_reduce", Harmless),
    ("hugepage-size", Harmless),
    ("ignore_error", Unsupported),
    ("ignore_zone_limits", Harmless),
    ("invalidate", Only(&["1"])),
    ("io_size", Unsupported),
    ("io_submit_mode", Only(&["inline"])),
    ("iodepth", Harmless),
    ("iodepth_batch", Harmless),
    ("iodepth_batch_complete_max", Harmless),
    ("iodepth_batch_complete_min", Harmless),
    ("iodepth_low", Harmless),
    ("ioengine", Supported),
    ("iopsavgtime", Harmless),
    ("ioscheduler", Unsupported),
    ("job_max_open_zones", Harmless),
    ("kb_base", Supported),
    ("lat_percentiles", Harmless),
    ("latency_percentile", Harmless),
    ("latency_run", Harmless),
    ("latency_target", Unsupported),
    ("latency_window", Harmless),
    ("lockfile", Only(&["none"])),
    ("lockmem", Only(&["0"])),
    ("log_alternate_epoch", Harmless),
    ("log_alternate_epoch_clock_id", Harmless),
    ("log_avg_msec", Harmless),
    ("log_compression", Harmless),
    ("log_compression_cpus", Harmless),
    ("log_entries", Harmless),
    ("log_hist_coarseness", Harmless),
    ("log_hist_msec", Harmless),
    ("log_max_value", Harmless),
    ("log_offset", Harmless),
    ("log_prio", Harmless),
    ("log_store_compressed", Harmless),
    ("log_unix_epoch", Harmless),
    ("loops", Only(&["1"])),
    ("max_latency", Only(&["0"])),
    ("max_open_zones", Harmless),
    ("mem", Harmless),
    ("merge_blktrace_file", Unsupported),
    ("merge_blktrace_iters", Unsupported),
    ("merge_blktrace_scalars", Unsupported),
    ("name", Supported),
    ("new_group", Only(&["0"])),
    ("nice", Only(&["0"])),
    ("norandommap", Only(&["0"])),
    ("nrfiles", Supported),
    ("numa_cpu_nodes", Harmless),
    ("numa_mem_policy", Harmless),
    ("number_ios", Only(&["0"])),
    ("numjobs", Supported),
    ("offset", Only(&["0"])),
    ("offset_align", Only(&["0"])),
    ("offset_increment", Only(&["0"])),
    ("opendir", Unsupported),
    ("openfiles", Unsupported),
    ("overwrite", Only(&["0"])),
    ("per_job_logs", Harmless),
    ("percentage_random", Only(&["100", "100,100,100"])),
    ("percentile_list", Harmless),
    ("pre_read", Only(&["0"])),
    ("prio", Unsupported),
    ("prioclass", Unsupported),
    ("profile", Unsupported),
    ("ramp_time", Only(&["0"])),
    ("random_distribution", Supported),
    ("random_generator", Harmless),
    ("randrepeat", Harmless),
    ("randseed", Harmless),
    ("rate", Supported),
    ("rate_cycle", Harmless),
    ("rate_ignore_thinktime", Only(&["0"])),
    ("rate_iops", Supported),
    ("rate_iops_min", Only(&["0"])),
    ("rate_min", Only(&["0"])),
    ("rate_process", Only(&["linear"])),
    ("read_beyond_wp", Harmless),
    ("read_iolog", Unsupported),
    ("read_iolog_chunked", Harmless),
    ("refill_buffers", Harmless),
    ("replay_align", Harmless),
    ("replay_no_stall", Harmless),
    ("replay_redirect", Unsupported),
    ("replay_scale", Harmless),
    ("replay_skip", Harmless),
    ("replay_time_scale", Harmless),
    ("runtime", Supported),
    ("rw", Supported),
    ("rw_sequencer", Only(&["sequential"])),
    ("rwmixread", Supported),
    ("rwmixwrite", Supported),
    ("scramble_buffers", Harmless),
    ("serialize_overlap", Harmless),
    ("significant_figures", Harmless),
    ("size", Supported),
    ("slat_percentiles", Harmless),
    ("startdelay", Supported),
    ("stats", Only(&["1"])),
    ("steadystate", Unsupported),
    ("steadystate_duration", Harmless),
    ("steadystate_ramp_time", Harmless),
    ("stonewall", Supported),
    ("sync", Only(&["none", "0"])),
    ("sync_file_range", Unsupported),
    ("thinktime", Supported),
    ("thinktime_blocks", Only(&["1"])),
    ("thinktime_blocks_type", Only(&["complete"])),
    ("thinktime_iotime", Only(&["0"])),
    ("thinktime_spin", Only(&["0"])),
    ("thread", Harmless),
    ("time_based", Supported),
    ("trim_backlog", Harmless),
    ("trim_backlog_batch", Harmless),
    ("trim_percentage", Only(&["0"])),
    ("trim_verify_zero", Harmless),
    ("uid", Harmless),
    ("unified_rw_reporting", Only(&["none", "0"])),
    ("unique_filename", Harmless),
    ("unit_base", Harmless),
    ("unlink", Only(&["0"])),
    ("unlink_each_loop", Only(&["0"])),
    ("verify", Only(&["0"])),
    ("verify_async", Harmless),
    ("verify_backlog", Harmless),
    ("verify_backlog_batch", Harmless),
    ("verify_dump", Harmless),
    ("verify_fatal", Harmless),
    ("verify_interval", Harmless),
    ("verify_offset", Harmless),
    ("verify_only", Only(&["0"])),
    ("verify_pattern", Harmless),
    ("verify_state_load", Only(&["0"])),
    ("verify_state_save", Harmless),
    ("wait_for", Unsupported),
    ("write_barrier", Only(&["0"])),
    ("write_bw_log", Harmless),
    ("write_hint", Harmless),
    ("write_hist_log", Harmless),
    ("write_iolog", Harmless),
    ("write_iops_log", Harmless),
    ("write_lat_log", Harmless),
    ("zero_buffers", Harmless),
    ("zone_reset_frequency", Harmless),
    ("zone_reset_threshold", Harmless),
    ("zonecapacity", Harmless),
    ("zonemode", Only(&["none"])),
    ("zonerange", Harmless),
    ("zonesize", Harmless),
    ("zoneskip", Harmless),
];

/// Other names of options, in their order.
pub(super) const ALIASES: &[(&str, &str)] = &[
    ("blockalign", "ba"),
    ("blocksize", "bs"),
    ("blocksize_range", "bsrange"),
    ("blocksize_unaligned", "bs_unaligned"),
    ("disable_bw", "disable_bw_measurement"),
    ("fileoffset", "offset"),
    ("fill_fs", "fill_device"),
    ("io_limit", "io_size"),
    ("iodepth_batch_complete", "iodepth_batch_complete_min"),
    ("iodepth_batch_submit", "iodepth_batch"),
    ("iomem", "mem"),
    ("nr_files", "nrfiles"),
    ("ratecycle", "rate_cycle"),
    ("ratemin", "rate_min"),
    ("readwrite", "rw"),
    ("ss", "steadystate"),
    ("ss_dur", "steadystate_duration"),
    ("ss_ramp", "steadystate_ramp_time"),
    ("timeout", "runtime"),
    ("wait_for_previous", "stonewall"),
];

/// The option's own name, given that or an alias, and its meaning.
pub(super) fn find(name: &str) -> Option<(&'static str, Meaning)> {
    let name = ALIASES.binary_search_by_key(&name, |alias| alias.0).map_or(name, |at| ALIASES[at].1);
    OPTIONS.binary_search_by_key(&name, |option| option.0).ok().map(|at| OPTIONS[at])
}

/// The names of the options that are supported, for messages.
pub(super) fn supported() -> String {
    let names = OPTIONS.iter().filter(|option| option.1 == Supported).map(|option| option.0);
    names.collect::<Vec<_>>().join(", ")
}

/// The known name that is nearest to `name`, if one is near.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let names = OPTIONS.iter().map(|option| option.0).chain(ALIASES.iter().map(|alias| alias.0));
    let near = names.map(|known| (distance(name, known), known)).min()?;
    (near.0 <= 2.max(name.len() / 3)).then_some(near.1)
}

/// How many letters have to be put in, taken out or replaced to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for column in 1..=to.len() {
            let replaced = diagonal + usize::from(to[column - 1] != letter);
            diagonal = row[column];
            row[column] = replaced.min(diagonal + 1).min(row[column - 1] + 1);
        }
    }
    row[to.len()]
}
