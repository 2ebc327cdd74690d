//! The options that fio knows, by name, and the simulator's treatment of each.
//!
//! The names and aliases are those in the lists of `fio --cmdhelp=all` and `fio --cmdhelp=NAME` of version 3.33, which
//! a test compares. Further tables have its unlisted options, those of single I/O engines, and those of later versions.
//!
//! Owns: the names, the classification by effect on a cache and a disk.
//! Does not own: values of supported options (`draft`), the form of values that are ignored (`forms`).
//! Invariants: every option of fio has one row; names are in order.

/// The simulator's treatment of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// It works as in fio.
    Supported,
    /// It is ignored, with a warning that has this reason.
    Harmless(&'static str),
    /// These values are the simulator's behaviour; others would change the outcome a little.
    Only(&'static [&'static str]),
    /// Leaving it out changes little; the text names the difference.
    Near(&'static str),
    /// It could change the outcome.
    Unsupported,
}

use Meaning::{Harmless, Near, Only, Supported, Unsupported};

const REPORT: &str = "it concerns the report alone";
const CONTENTS: &str = "it concerns what the buffers hold, and no cache or disk here looks at bytes";
const PROCESS: &str = "it concerns how fio's own processes run on a host";
const BEFORE: &str = "it concerns what is done before the job's time begins";
const REACH: &str = "it says how an engine reaches its data, which is simulated here";
const ORDER: &str = "it changes which of equally likely offsets come, and not how they are spread";
const CHECKS: &str = "it concerns how read bytes are compared, not which are read";
const DEPENDS: &str = "it works only with an option that is not simulated";
const REPLAY: &str = "it concerns replays of recorded calls (afflux-lab replay)";
const NETWORK: &str = "it concerns an engine of a network, which is not simulated";
const PRIORITY: &str = "no simulated disk looks at priorities";
const LIFETIME: &str = "it concerns how long data live, and no simulated disk looks at that";
const NAMES: &str = "it concerns names or owners of files";

/// Every option, in the order of names.
#[rustfmt::skip]
pub(super) const OPTIONS: &[(&str, Meaning)] = &[
    ("allow_file_create", Harmless(BEFORE)),
    ("allow_mounted_write", Harmless(BEFORE)),
    ("allrandrepeat", Harmless(ORDER)),
    ("atomic", Only(&["0"])),
    ("ba", Supported),
    ("block_error_percentiles", Harmless(REPORT)),
    ("bs", Supported),
    ("bs_unaligned", Only(&["0"])),
    ("bsrange", Supported),
    ("bssplit", Supported),
    ("buffer_compress_chunk", Harmless(CONTENTS)),
    ("buffer_compress_percentage", Harmless(CONTENTS)),
    ("buffer_pattern", Harmless(CONTENTS)),
    ("buffered", Supported),
    ("bwavgtime", Harmless(REPORT)),
    ("cgroup", Near("jobs are in no group")),
    ("cgroup_nodelete", Harmless(DEPENDS)),
    ("cgroup_weight", Near("jobs are in no group")),
    ("clat_percentiles", Harmless(REPORT)),
    ("clocksource", Harmless(PROCESS)),
    ("continue_on_error", Supported),
    ("cpumask", Harmless(PROCESS)),
    ("cpus_allowed", Harmless(PROCESS)),
    ("cpus_allowed_policy", Harmless(PROCESS)),
    ("create_fsync", Harmless(BEFORE)),
    ("create_on_open", Harmless(BEFORE)),
    ("create_only", Supported),
    ("create_serialize", Harmless(BEFORE)),
    ("dedupe_global", Harmless(CONTENTS)),
    ("dedupe_mode", Harmless(CONTENTS)),
    ("dedupe_percentage", Harmless(CONTENTS)),
    ("dedupe_working_set_percentage", Harmless(CONTENTS)),
    ("description", Harmless(REPORT)),
    ("direct", Supported),
    ("directory", Supported),
    ("disable_bw_measurement", Harmless(REPORT)),
    ("disable_clat", Harmless(REPORT)),
    ("disable_lat", Harmless(REPORT)),
    ("disable_slat", Harmless(REPORT)),
    ("disk_util", Harmless(REPORT)),
    ("do_verify", Supported),
    ("end_fsync", Supported),
    ("error_dump", Harmless(REPORT)),
    ("exec_postrun", Near("no program is run after")),
    ("exec_prerun", Near("no program is run before")),
    ("exit_what", Supported),
    ("exitall", Supported),
    ("exitall_on_error", Supported),
    ("experimental_verify", Only(&["0"])),
    ("fadvise_hint", Harmless("readahead here goes by the calls, not by hints")),
    ("fallocate", Harmless(BEFORE)),
    ("fdatasync", Supported),
    ("file_append", Only(&["0"])),
    ("file_service_type", Supported),
    ("filename", Supported),
    ("filename_format", Supported),
    ("filesize", Supported),
    ("fill_device", Supported),
    ("flow", Supported),
    ("flow_id", Supported),
    ("flow_sleep", Supported),
    ("fsync", Supported),
    ("fsync_on_close", Supported),
    ("gid", Harmless(PROCESS)),
    ("group_reporting", Supported),
    ("gtod_cpu", Harmless(PROCESS)),
    ("gtod_reduce", Harmless(PROCESS)),
    ("hugepage-size", Harmless(PROCESS)),
    ("ignore_error", Supported),
    ("ignore_zone_limits", Harmless(DEPENDS)),
    ("invalidate", Supported),
    ("io_size", Supported),
    ("io_submit_mode", Supported),
    ("iodepth", Supported),
    ("iodepth_batch", Supported),
    ("iodepth_batch_complete_max", Harmless(DEPENDS)),
    ("iodepth_batch_complete_min", Supported),
    ("iodepth_low", Supported),
    ("ioengine", Supported),
    ("iopsavgtime", Harmless(REPORT)),
    ("ioscheduler", Near("each simulated disk has the scheduler of its description")),
    ("job_max_open_zones", Supported),
    ("kb_base", Supported),
    ("lat_percentiles", Harmless(REPORT)),
    ("latency_percentile", Harmless(REPORT)),
    ("latency_run", Harmless(DEPENDS)),
    ("latency_target", Near("the queue is as deep as 'iodepth' says")),
    ("latency_window", Harmless(DEPENDS)),
    ("lockfile", Only(&["none"])),
    ("lockmem", Only(&["0"])),
    ("log_alternate_epoch", Harmless(REPORT)),
    ("log_alternate_epoch_clock_id", Harmless(REPORT)),
    ("log_avg_msec", Supported),
    ("log_compression", Harmless(REPORT)),
    ("log_compression_cpus", Harmless(REPORT)),
    ("log_entries", Harmless(REPORT)),
    ("log_hist_coarseness", Harmless(REPORT)),
    ("log_hist_msec", Harmless(REPORT)),
    ("log_max_value", Harmless(REPORT)),
    ("log_offset", Harmless(REPORT)),
    ("log_prio", Harmless(REPORT)),
    ("log_store_compressed", Harmless(REPORT)),
    ("log_unix_epoch", Harmless(REPORT)),
    ("loops", Supported),
    ("max_latency", Only(&["0"])),
    ("max_open_zones", Supported),
    ("mem", Harmless(PROCESS)),
    ("merge_blktrace_file", Unsupported),
    ("merge_blktrace_iters", Unsupported),
    ("merge_blktrace_scalars", Unsupported),
    ("name", Supported),
    ("new_group", Supported),
    ("nice", Harmless(PROCESS)),
    ("norandommap", Supported),
    ("nrfiles", Supported),
    ("numa_cpu_nodes", Harmless(PROCESS)),
    ("numa_mem_policy", Harmless(PROCESS)),
    ("number_ios", Supported),
    ("numjobs", Supported),
    ("offset", Supported),
    ("offset_align", Supported),
    ("offset_increment", Supported),
    ("opendir", Unsupported),
    ("openfiles", Supported),
    ("overwrite", Supported),
    ("per_job_logs", Harmless(REPORT)),
    ("percentage_random", Supported),
    ("percentile_list", Supported),
    ("pre_read", Supported),
    ("prio", Harmless(PRIORITY)),
    ("prioclass", Harmless(PRIORITY)),
    ("profile", Unsupported),
    ("ramp_time", Supported),
    ("random_distribution", Supported),
    ("random_generator", Harmless(ORDER)),
    ("randrepeat", Harmless(ORDER)),
    ("randseed", Harmless(ORDER)),
    ("rate", Supported),
    ("rate_cycle", Supported),
    ("rate_ignore_thinktime", Only(&["0"])),
    ("rate_iops", Supported),
    ("rate_iops_min", Supported),
    ("rate_min", Supported),
    ("rate_process", Supported),
    ("read_beyond_wp", Only(&["0"])),
    ("read_iolog", Unsupported),
    ("read_iolog_chunked", Harmless(REPLAY)),
    ("refill_buffers", Harmless(CONTENTS)),
    ("replay_align", Harmless(REPLAY)),
    ("replay_no_stall", Harmless(REPLAY)),
    ("replay_redirect", Unsupported),
    ("replay_scale", Harmless(REPLAY)),
    ("replay_skip", Harmless(REPLAY)),
    ("replay_time_scale", Harmless(REPLAY)),
    ("runtime", Supported),
    ("rw", Supported),
    ("rw_sequencer", Supported),
    ("rwmixread", Supported),
    ("rwmixwrite", Supported),
    ("scramble_buffers", Harmless(CONTENTS)),
    ("serialize_overlap", Only(&["0"])),
    ("significant_figures", Harmless(REPORT)),
    ("size", Supported),
    ("slat_percentiles", Harmless(REPORT)),
    ("startdelay", Supported),
    ("stats", Harmless(REPORT)),
    ("steadystate", Near("the job goes on until its time or its bytes are over")),
    ("steadystate_duration", Harmless(DEPENDS)),
    ("steadystate_ramp_time", Harmless(DEPENDS)),
    ("stonewall", Supported),
    ("sync", Supported),
    ("sync_file_range", Near("nothing is written out but by fsync, limits and age")),
    ("thinktime", Supported),
    ("thinktime_blocks", Supported),
    ("thinktime_blocks_type", Only(&["complete"])),
    ("thinktime_iotime", Supported),
    ("thinktime_spin", Supported),
    ("thread", Harmless(PROCESS)),
    ("time_based", Supported),
    ("trim_backlog", Harmless(DEPENDS)),
    ("trim_backlog_batch", Harmless(DEPENDS)),
    ("trim_percentage", Only(&["0"])),
    ("trim_verify_zero", Harmless(CHECKS)),
    ("uid", Harmless(PROCESS)),
    ("unified_rw_reporting", Only(&["none", "0"])),
    ("unique_filename", Harmless(NAMES)),
    ("unit_base", Harmless(REPORT)),
    ("unlink", Supported),
    ("unlink_each_loop", Only(&["0"])),
    ("verify", Supported),
    ("verify_async", Harmless(CHECKS)),
    ("verify_backlog", Supported),
    ("verify_backlog_batch", Supported),
    ("verify_dump", Harmless(REPORT)),
    ("verify_fatal", Harmless(CHECKS)),
    ("verify_interval", Harmless(CHECKS)),
    ("verify_offset", Harmless(CHECKS)),
    ("verify_only", Supported),
    ("verify_pattern", Harmless(CONTENTS)),
    ("verify_state_load", Only(&["0"])),
    ("verify_state_save", Harmless(CHECKS)),
    ("wait_for", Supported),
    ("write_barrier", Only(&["0"])),
    ("write_bw_log", Supported),
    ("write_hint", Harmless(LIFETIME)),
    ("write_hist_log", Harmless(REPORT)),
    ("write_iolog", Harmless(REPORT)),
    ("write_iops_log", Supported),
    ("write_lat_log", Supported),
    ("zero_buffers", Harmless(CONTENTS)),
    ("zone_reset_frequency", Near("a zone is reset once it is full")),
    ("zone_reset_threshold", Near("a zone is reset once it is full")),
    ("zonecapacity", Near("a zone can be written to its end")),
    ("zonemode", Supported),
    ("zonerange", Supported),
    ("zonesize", Supported),
    ("zoneskip", Supported),
];

/// Options that fio 3.33 accepts and does not list.
#[rustfmt::skip]
const UNLISTED: &[(&str, Meaning)] = &[
    ("bs_is_seq_rand", Supported),
    ("flow_watermark", Harmless(DEPENDS)),
    ("iomem_align", Harmless(PROCESS)),
    ("softrandommap", Harmless(ORDER)),
    ("threads", Harmless(PROCESS)),
    ("verify_async_cpus", Harmless(CHECKS)),
    ("verifysort", Harmless(CHECKS)),
    ("verifysort_nr", Harmless(CHECKS)),
];

/// Options of single engines. Most describe how an engine reaches its data.
#[rustfmt::skip]
const OF_ENGINES: &[(&str, Meaning)] = &[
    ("apptag", Harmless(REACH)), ("apptag_mask", Harmless(REACH)), ("arguments", Harmless(PROCESS)), ("bindname", Harmless(NETWORK)),
    ("brick", Harmless(REACH)), ("busy_poll", Harmless(REACH)), ("busy_wait_polling", Harmless(NETWORK)), ("cdb_len", Harmless(REACH)),
    ("chunck_size", Harmless(NETWORK)), ("chunk_size", Harmless(NETWORK)), ("clientname", Harmless(REACH)), ("clustername", Harmless(REACH)),
    ("cmd_type", Harmless(REACH)), ("cmdprio", Harmless(PRIORITY)), ("cmdprio_bssplit", Harmless(DEPENDS)), ("cmdprio_class", Harmless(DEPENDS)),
    ("cmdprio_hint", Harmless(DEPENDS)), ("cmdprio_percentage", Harmless(PRIORITY)), ("conf", Harmless(REACH)), ("cont", Harmless(REACH)),
    ("cpuchunks", Supported), ("cpuload", Supported), ("cpumode", Harmless(PROCESS)), ("cuda_io", Harmless(REACH)), ("deac", Harmless(REACH)),
    ("direct_write_to_pmem", Harmless(REACH)), ("donorname", Harmless(REACH)), ("exit_on_io_done", Harmless(REPORT)),
    ("fixedbufs", Harmless(REACH)), ("force_async", Harmless(REACH)), ("gpu_dev_id", Harmless(REACH)), ("gpu_dev_ids", Harmless(REACH)),
    ("grace_time", Harmless(PROCESS)), ("hdfs_use_direct", Harmless(REACH)), ("hdfsdirectory", Harmless(REACH)), ("hipri", Harmless(REACH)),
    ("hipri_percentage", Harmless(REACH)), ("hostname", Harmless(NETWORK)), ("http_host", Harmless(REACH)), ("http_mode", Harmless(REACH)),
    ("http_object_mode", Harmless(REACH)), ("http_pass", Harmless(REACH)), ("http_s3_key", Harmless(REACH)), ("http_s3_keyid", Harmless(REACH)),
    ("http_s3_region", Harmless(REACH)), ("http_s3_security_token", Harmless(REACH)),
    ("http_s3_sse_customer_algorithm", Harmless(REACH)), ("http_s3_sse_customer_key", Harmless(REACH)),
    ("http_s3_storage_class", Harmless(REACH)), ("http_swift_auth_token", Harmless(REACH)), ("http_user", Harmless(REACH)),
    ("http_verbose", Harmless(REACH)), ("https", Harmless(REACH)), ("initiator", Harmless(REACH)), ("inplace", Harmless(REACH)),
    ("interface", Harmless(NETWORK)), ("libaio_vectored", Harmless(REACH)), ("libblkio_driver", Harmless(REACH)),
    ("libblkio_force_enable_completion_eventfd", Harmless(REACH)), ("libblkio_num_entries", Harmless(REACH)),
    ("libblkio_path", Harmless(REACH)), ("libblkio_pre_connect_props", Harmless(REACH)), ("libblkio_pre_start_props", Harmless(REACH)),
    ("libblkio_queue_size", Harmless(REACH)), ("libblkio_vectored", Harmless(REACH)), ("libblkio_wait_mode", Harmless(REACH)),
    ("libblkio_write_zeroes_on_trim", Only(&["0"])), ("listen", Harmless(NETWORK)), ("md_per_io_size", Harmless(REACH)),
    ("mss", Harmless(NETWORK)), ("namenode", Harmless(REACH)), ("nfs_url", Harmless(REACH)), ("no_completion_thread", Harmless(REACH)),
    ("nodelay", Harmless(NETWORK)), ("nonvectored", Harmless(REACH)), ("nowait", Only(&["0"])), ("object_class", Harmless(REACH)),
    ("pi_act", Harmless(REACH)), ("pi_chk", Harmless(REACH)), ("pingpong", Harmless(NETWORK)), ("pool", Harmless(REACH)), ("port", Harmless(NETWORK)),
    ("program", Harmless(PROCESS)), ("proto", Harmless(NETWORK)), ("protocol", Harmless(NETWORK)), ("rbd_encryption_format", Harmless(REACH)),
    ("rbdname", Harmless(REACH)), ("read_mode", Harmless(NETWORK)), ("readfua", Only(&["0"])), ("registerfiles", Harmless(REACH)),
    ("rocm_io", Harmless(REACH)), ("serverip", Harmless(NETWORK)), ("sg_write_mode", Supported), ("single-instance", Harmless(NETWORK)),
    ("single_instance", Harmless(NETWORK)), ("skip_bad", Harmless(REACH)), ("sqthread_poll", Harmless(REACH)),
    ("sqthread_poll_cpu", Harmless(REACH)), ("stat_type", Harmless(REPORT)), ("std_redirect", Harmless(PROCESS)), ("stream_id", Harmless(REACH)),
    ("svcl", Harmless(REACH)), ("thp", Harmless(PROCESS)), ("touch_objects", Harmless(REACH)), ("ttl", Harmless(NETWORK)), ("uncached", Only(&["0"])),
    ("uri", Harmless(REACH)), ("userspace_reap", Harmless(PROCESS)), ("verb", Harmless(NETWORK)), ("verify_mode", Harmless(CHECKS)),
    ("volume", Harmless(REACH)), ("window_size", Harmless(NETWORK)), ("write_mode", Only(&["write"])), ("writefua", Only(&["0"])),
    ("xnvme_admin", Harmless(REACH)), ("xnvme_async", Harmless(REACH)), ("xnvme_be", Harmless(REACH)), ("xnvme_dev_nsid", Harmless(REACH)),
    ("xnvme_dev_subnqn", Harmless(REACH)), ("xnvme_iovec", Harmless(REACH)), ("xnvme_mem", Harmless(REACH)), ("xnvme_sync", Harmless(REACH)),
];

/// Options of versions after 3.33.
#[rustfmt::skip]
const LATER: &[&str] = &[
    "comm", "dataplacement", "dp_scheme", "end_syncfs", "fdp", "filetype", "job_start_clock_id", "log_issue_time",
    "log_window_value", "num_range", "plid_select", "plids", "priohint", "ramp_size", "random_sequence_stride",
    "recover_zbd_write_error", "spr_cs", "spr_num_regions", "spr_op", "sprandom", "steadystate_check_interval",
    "thinkcycles", "verify_header_seed", "verify_pattern_interval", "verify_policy", "verify_write_sequence",
    "write_zone_remainder",
];

/// Other names of options, in order.
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

/// The option's own name, looked up by name or alias, and its meaning.
pub(super) fn find(name: &str) -> Option<(&'static str, Meaning)> {
    let name = ALIASES.binary_search_by_key(&name, |alias| alias.0).map_or(name, |at| ALIASES[at].1);
    let inside = |table: &'static [(&'static str, Meaning)]| {
        table.binary_search_by_key(&name, |option| option.0).ok().map(|at| table[at])
    };
    inside(OPTIONS).or_else(|| inside(UNLISTED)).or_else(|| inside(OF_ENGINES))
}

/// Whether a single engine has the option.
pub(super) fn is_of_engine(name: &str) -> bool {
    OF_ENGINES.binary_search_by_key(&name, |option| option.0).is_ok()
}

/// Whether a version after 3.33 has the option.
pub(super) fn is_later(name: &str) -> bool {
    LATER.binary_search(&name).is_ok()
}

/// The known names similar to `name`, as a question for a message.
pub(super) fn did_you_mean(name: &str) -> String {
    let of = |table: &'static [(&'static str, Meaning)]| table.iter().map(|option| option.0);
    let names = of(OPTIONS).chain(of(UNLISTED)).chain(of(OF_ENGINES)).chain(ALIASES.iter().map(|alias| alias.0));
    afflux_engine::settings::did_you_mean(name, names)
}

/// Whether all tables are in order and no name is in two of them.
#[cfg(test)]
pub(super) fn in_order() -> bool {
    let of = |table: &[(&'static str, Meaning)]| table.iter().map(|option| option.0).collect::<Vec<_>>();
    let tables = [of(OPTIONS), of(UNLISTED), of(OF_ENGINES), LATER.to_vec(), ALIASES.iter().map(|it| it.0).collect()];
    let mut all: Vec<&str> = tables.iter().flatten().copied().collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    tables.iter().all(|table| table.is_sorted()) && all.len() == count
}
