//! The options that fio knows, by name, and the simulator's treatment of each.
//!
//! The names and aliases are those in the lists of `fio --cmdhelp=all` and `fio --cmdhelp=NAME` of version 3.33, which
//! a test compares. Further tables have its unlisted options, those of single I/O engines, and those of later versions.
//!
//! Owns: the names, the classification by effect on a cache and a disk.
//! Does not own: values of supported options (`draft`).
//! Invariants: every option of fio has one row; names are in order.

/// The simulator's treatment of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// It works as in fio.
    Supported,
    /// It concerns the report, the buffers' contents or the host, or works only together with an unsupported option. It
    /// is ignored with a warning.
    Harmless,
    /// These values are the simulator's behaviour; others would change the outcome a little.
    Only(&'static [&'static str]),
    /// Leaving it out changes little; the text names the difference.
    Near(&'static str),
    /// It could change the outcome.
    Unsupported,
}

use Meaning::{Harmless, Near, Only, Supported, Unsupported};

/// Every option, in the order of names.
#[rustfmt::skip]
pub(super) const OPTIONS: &[(&str, Meaning)] = &[
    ("allow_file_create", Harmless),
    ("allow_mounted_write", Harmless),
    ("allrandrepeat", Harmless),
    ("atomic", Only(&["0"])),
    ("ba", Supported),
    ("block_error_percentiles", Harmless),
    ("bs", Supported),
    ("bs_unaligned", Only(&["0"])),
    ("bsrange", Supported),
    ("bssplit", Supported),
    ("buffer_compress_chunk", Harmless),
    ("buffer_compress_percentage", Harmless),
    ("buffer_pattern", Harmless),
    ("buffered", Supported),
    ("bwavgtime", Harmless),
    ("cgroup", Near("jobs are in no group")),
    ("cgroup_nodelete", Harmless),
    ("cgroup_weight", Near("jobs are in no group")),
    ("clat_percentiles", Harmless),
    ("clocksource", Harmless),
    ("continue_on_error", Supported),
    ("cpumask", Harmless),
    ("cpus_allowed", Harmless),
    ("cpus_allowed_policy", Harmless),
    ("create_fsync", Harmless),
    ("create_on_open", Harmless),
    ("create_only", Supported),
    ("create_serialize", Harmless),
    ("dedupe_global", Harmless),
    ("dedupe_mode", Harmless),
    ("dedupe_percentage", Harmless),
    ("dedupe_working_set_percentage", Harmless),
    ("description", Harmless),
    ("direct", Supported),
    ("directory", Supported),
    ("disable_bw_measurement", Harmless),
    ("disable_clat", Harmless),
    ("disable_lat", Harmless),
    ("disable_slat", Harmless),
    ("disk_util", Harmless),
    ("do_verify", Supported),
    ("end_fsync", Supported),
    ("error_dump", Harmless),
    ("exec_postrun", Near("no program is run after")),
    ("exec_prerun", Near("no program is run before")),
    ("exit_what", Supported),
    ("exitall", Supported),
    ("exitall_on_error", Near("a job that fails ends no other")),
    ("experimental_verify", Only(&["0"])),
    ("fadvise_hint", Harmless),
    ("fallocate", Harmless),
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
    ("gid", Harmless),
    ("group_reporting", Supported),
    ("gtod_cpu", Harmless),
    ("gtod_reduce", Harmless),
    ("hugepage-size", Harmless),
    ("ignore_error", Supported),
    ("ignore_zone_limits", Harmless),
    ("invalidate", Supported),
    ("io_size", Supported),
    ("io_submit_mode", Supported),
    ("iodepth", Supported),
    ("iodepth_batch", Supported),
    ("iodepth_batch_complete_max", Harmless),
    ("iodepth_batch_complete_min", Supported),
    ("iodepth_low", Supported),
    ("ioengine", Supported),
    ("iopsavgtime", Harmless),
    ("ioscheduler", Near("each simulated disk has the scheduler of its description")),
    ("job_max_open_zones", Supported),
    ("kb_base", Supported),
    ("lat_percentiles", Harmless),
    ("latency_percentile", Harmless),
    ("latency_run", Harmless),
    ("latency_target", Near("the queue is as deep as 'iodepth' says")),
    ("latency_window", Harmless),
    ("lockfile", Harmless),
    ("lockmem", Only(&["0"])),
    ("log_alternate_epoch", Harmless),
    ("log_alternate_epoch_clock_id", Harmless),
    ("log_avg_msec", Supported),
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
    ("loops", Supported),
    ("max_latency", Only(&["0"])),
    ("max_open_zones", Supported),
    ("mem", Harmless),
    ("merge_blktrace_file", Unsupported),
    ("merge_blktrace_iters", Unsupported),
    ("merge_blktrace_scalars", Unsupported),
    ("name", Supported),
    ("new_group", Supported),
    ("nice", Harmless),
    ("norandommap", Supported),
    ("nrfiles", Supported),
    ("numa_cpu_nodes", Harmless),
    ("numa_mem_policy", Harmless),
    ("number_ios", Supported),
    ("numjobs", Supported),
    ("offset", Supported),
    ("offset_align", Supported),
    ("offset_increment", Supported),
    ("opendir", Unsupported),
    ("openfiles", Supported),
    ("overwrite", Supported),
    ("per_job_logs", Harmless),
    ("percentage_random", Supported),
    ("percentile_list", Supported),
    ("pre_read", Supported),
    ("prio", Harmless),
    ("prioclass", Harmless),
    ("profile", Unsupported),
    ("ramp_time", Supported),
    ("random_distribution", Supported),
    ("random_generator", Harmless),
    ("randrepeat", Harmless),
    ("randseed", Harmless),
    ("rate", Supported),
    ("rate_cycle", Supported),
    ("rate_ignore_thinktime", Only(&["0"])),
    ("rate_iops", Supported),
    ("rate_iops_min", Supported),
    ("rate_min", Supported),
    ("rate_process", Supported),
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
    ("rw_sequencer", Supported),
    ("rwmixread", Supported),
    ("rwmixwrite", Supported),
    ("scramble_buffers", Harmless),
    ("serialize_overlap", Harmless),
    ("significant_figures", Harmless),
    ("size", Supported),
    ("slat_percentiles", Harmless),
    ("startdelay", Supported),
    ("stats", Only(&["1"])),
    ("steadystate", Near("the job goes on until its time or its bytes are over")),
    ("steadystate_duration", Harmless),
    ("steadystate_ramp_time", Harmless),
    ("stonewall", Supported),
    ("sync", Supported),
    ("sync_file_range", Near("nothing is written out but by fsync, limits and age")),
    ("thinktime", Supported),
    ("thinktime_blocks", Supported),
    ("thinktime_blocks_type", Only(&["complete"])),
    ("thinktime_iotime", Supported),
    ("thinktime_spin", Supported),
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
    ("unlink", Supported),
    ("unlink_each_loop", Only(&["0"])),
    ("verify", Supported),
    ("verify_async", Harmless),
    ("verify_backlog", Supported),
    ("verify_backlog_batch", Supported),
    ("verify_dump", Harmless),
    ("verify_fatal", Harmless),
    ("verify_interval", Harmless),
    ("verify_offset", Harmless),
    ("verify_only", Supported),
    ("verify_pattern", Harmless),
    ("verify_state_load", Only(&["0"])),
    ("verify_state_save", Harmless),
    ("wait_for", Supported),
    ("write_barrier", Only(&["0"])),
    ("write_bw_log", Supported),
    ("write_hint", Harmless),
    ("write_hist_log", Harmless),
    ("write_iolog", Harmless),
    ("write_iops_log", Supported),
    ("write_lat_log", Supported),
    ("zero_buffers", Harmless),
    ("zone_reset_frequency", Harmless),
    ("zone_reset_threshold", Harmless),
    ("zonecapacity", Harmless),
    ("zonemode", Supported),
    ("zonerange", Supported),
    ("zonesize", Supported),
    ("zoneskip", Supported),
];

/// Options that fio 3.33 accepts and does not list.
#[rustfmt::skip]
const UNLISTED: &[(&str, Meaning)] = &[
    ("bs_is_seq_rand", Supported),
    ("flow_watermark", Harmless),
    ("iomem_align", Harmless),
    ("softrandommap", Harmless),
    ("threads", Harmless),
    ("verify_async_cpus", Harmless),
    ("verifysort", Harmless),
    ("verifysort_nr", Harmless),
];

/// Options of single engines. Most describe how an engine reaches its data.
#[rustfmt::skip]
const OF_ENGINES: &[(&str, Meaning)] = &[
    ("apptag", Harmless), ("apptag_mask", Harmless), ("arguments", Harmless), ("bindname", Harmless),
    ("brick", Harmless), ("busy_poll", Harmless), ("busy_wait_polling", Harmless), ("cdb_len", Harmless),
    ("chunck_size", Harmless), ("chunk_size", Harmless), ("clientname", Harmless), ("clustername", Harmless),
    ("cmd_type", Harmless), ("cmdprio", Harmless), ("cmdprio_bssplit", Harmless), ("cmdprio_class", Harmless),
    ("cmdprio_hint", Harmless), ("cmdprio_percentage", Harmless), ("conf", Harmless), ("cont", Harmless),
    ("cpuchunks", Supported), ("cpuload", Supported), ("cpumode", Harmless), ("cuda_io", Harmless), ("deac", Harmless),
    ("direct_write_to_pmem", Harmless), ("donorname", Harmless), ("exit_on_io_done", Harmless),
    ("fixedbufs", Harmless), ("force_async", Harmless), ("gpu_dev_id", Harmless), ("gpu_dev_ids", Harmless),
    ("grace_time", Harmless), ("hdfs_use_direct", Harmless), ("hdfsdirectory", Harmless), ("hipri", Harmless),
    ("hipri_percentage", Harmless), ("hostname", Harmless), ("http_host", Harmless), ("http_mode", Harmless),
    ("http_object_mode", Harmless), ("http_pass", Harmless), ("http_s3_key", Harmless), ("http_s3_keyid", Harmless),
    ("http_s3_region", Harmless), ("http_s3_security_token", Harmless),
    ("http_s3_sse_customer_algorithm", Harmless), ("http_s3_sse_customer_key", Harmless),
    ("http_s3_storage_class", Harmless), ("http_swift_auth_token", Harmless), ("http_user", Harmless),
    ("http_verbose", Harmless), ("https", Harmless), ("initiator", Harmless), ("inplace", Harmless),
    ("interface", Harmless), ("libaio_vectored", Harmless), ("libblkio_driver", Harmless),
    ("libblkio_force_enable_completion_eventfd", Harmless), ("libblkio_num_entries", Harmless),
    ("libblkio_path", Harmless), ("libblkio_pre_connect_props", Harmless), ("libblkio_pre_start_props", Harmless),
    ("libblkio_queue_size", Harmless), ("libblkio_vectored", Harmless), ("libblkio_wait_mode", Harmless),
    ("libblkio_write_zeroes_on_trim", Harmless), ("listen", Harmless), ("md_per_io_size", Harmless),
    ("mss", Harmless), ("namenode", Harmless), ("nfs_url", Harmless), ("no_completion_thread", Harmless),
    ("nodelay", Harmless), ("nonvectored", Harmless), ("nowait", Harmless), ("object_class", Harmless),
    ("pi_act", Harmless), ("pi_chk", Harmless), ("pingpong", Harmless), ("pool", Harmless), ("port", Harmless),
    ("program", Harmless), ("proto", Harmless), ("protocol", Harmless), ("rbd_encryption_format", Harmless),
    ("rbdname", Harmless), ("read_mode", Harmless), ("readfua", Harmless), ("registerfiles", Harmless),
    ("rocm_io", Harmless), ("serverip", Harmless), ("sg_write_mode", Supported), ("single-instance", Harmless),
    ("single_instance", Harmless), ("skip_bad", Harmless), ("sqthread_poll", Harmless),
    ("sqthread_poll_cpu", Harmless), ("stat_type", Harmless), ("std_redirect", Harmless), ("stream_id", Harmless),
    ("svcl", Harmless), ("thp", Harmless), ("touch_objects", Harmless), ("ttl", Harmless), ("uncached", Harmless),
    ("uri", Harmless), ("userspace_reap", Harmless), ("verb", Harmless), ("verify_mode", Harmless),
    ("volume", Harmless), ("window_size", Harmless), ("write_mode", Harmless), ("writefua", Harmless),
    ("xnvme_admin", Harmless), ("xnvme_async", Harmless), ("xnvme_be", Harmless), ("xnvme_dev_nsid", Harmless),
    ("xnvme_dev_subnqn", Harmless), ("xnvme_iovec", Harmless), ("xnvme_mem", Harmless), ("xnvme_sync", Harmless),
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
