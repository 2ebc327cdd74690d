use std::collections::BTreeMap;

use super::*;
use crate::job::{BlockSizes, Distribution, Engine, Job, Pattern};

/// Files and variables by name.
#[derive(Default)]
struct Given {
    files: BTreeMap<&'static str, &'static str>,
    variables: BTreeMap<&'static str, &'static str>,
    size: Option<String>,
}

impl Surroundings for Given {
    fn include(&mut self, path: &str, _: &str) -> Result<Included, String> {
        let text = *self.files.get(path).ok_or("no such file")?;
        Ok(Included { name: path.to_owned(), text: text.to_owned() })
    }

    fn variable(&mut self, name: &str) -> Option<String> {
        self.variables.get(name).map(|value| (*value).to_owned())
    }

    fn size(&self) -> Option<&str> {
        self.size.as_deref()
    }
}

fn parsed(text: &str) -> JobFile {
    parse("test.fio", text, &mut Given::default()).unwrap_or_else(|complaint| panic!("{complaint}"))
}

fn job(options: &str) -> Job {
    parsed(&format!("[x]\nsize=1m\n{options}\n")).jobs.remove(0)
}

/// The complaint about the third line of a job.
fn complaint(option: &str) -> String {
    let text = format!("[x]\nsize=1m\n{option}\n");
    let complaint = parse("test.fio", &text, &mut Given::default()).expect_err(option);
    complaint.to_string()
}

#[test]
fn a_global_section_acts_on_the_jobs_below_it_alone() {
    let file = parsed(
        "; a comment\n# another\n[global]\nbs=4k\nsize=1m\n\n[one]\n[global]\nbs=8k\n[two]\nrw=randread\n[two]\n  size = 2m ; end\n"
            .replace("  size = 2m", "  size =2m")
            .as_str(),
    );
    let seen: Vec<_> = file
        .jobs
        .iter()
        .map(|job| (job.name.as_str(), job.block_bytes[0].min, job.size >> 20, job.position.line))
        .collect();
    assert_eq!(seen, [("one", 4096, 1, 7), ("two", 8192, 1, 10), ("two", 8192, 2, 12)]);
    assert!(file.jobs[1].pattern.random && !file.jobs[2].pattern.random, "a job's option is its own");
    assert_eq!(parsed("[globals]\nsize=1m\n[x]\n").jobs[0].size, 1 << 20, "fio looks at six letters");
}

#[test]
fn every_supported_option_reaches_its_job() {
    let job = job("rw=randrw\nrwmixread=70\nbs=4k,64k\nfilesize=1m-2m\nnumjobs=3\nfilename=a:b\\:c\ndirectory=/x:/y\n\
                   fsync=10\nfdatasync=20\nend_fsync=1\nrate=1m,2m\nthinktime=5\nruntime=1m\ntime_based\nstartdelay=2s\n\
                   stonewall\nrandom_distribution=zipf:1.2\nioengine=mmap\ngroup_reporting");
    assert_eq!(job.pattern, Pattern { reads: true, writes: true, trims: false, random: true });
    assert_eq!((job.mix_read_percent, job.clones, job.files), (70, 3, 2));
    let sizes = [4096, 65536].map(|bytes| BlockSizes { min: bytes, max: bytes });
    assert_eq!(job.block_bytes, sizes);
    assert_eq!((job.size, job.file_bytes), (1 << 20, Some((1 << 20, 2 << 20))));
    assert_eq!(job.file_names, ["a", "b:c"]);
    assert_eq!(job.directories, ["/x", "/y"]);
    assert_eq!((job.fsync_every, job.fdatasync_every, job.end_fsync), (10, 20, true));
    assert_eq!((job.rate_bytes, job.rate_calls), ([1 << 20, 2 << 20], [0, 0]));
    assert_eq!((job.think_ns, job.runtime_ns, job.start_delay_ns), (5_000, 60_000_000_000, 2_000_000_000));
    assert!(job.time_based && job.stonewall && job.group_reporting);
    assert_eq!((job.distribution, job.engine), (Distribution::Zipf(1.2), Engine::Mmap));
}

#[test]
fn aliases_and_other_forms_mean_the_same() {
    assert_eq!(job("blocksize=8k").block_bytes[1].max, 8192);
    assert_eq!(job("bsrange=4k-64k").block_bytes, [BlockSizes { min: 4096, max: 65536 }; 2]);
    assert_eq!(job("readwrite=randwrite").pattern, Pattern { reads: false, writes: true, trims: false, random: true });
    assert_eq!(job("timeout=5").runtime_ns, 5_000_000_000);
    assert!(job("wait_for_previous").stonewall && !job("stonewall=0").stonewall);
    assert_eq!(job("rwmixwrite=30").mix_read_percent, 70);
    assert_eq!(job("nr_files=4").files, 4);
    assert_eq!(job("rate_iops=5,6").rate_calls, [5, 6]);
    assert_eq!(job("name=other").name, "other");
    assert_eq!(job("size=50%\nfilesize=4m").size_percent, 50);
}

#[test]
fn kb_base_acts_on_its_whole_section() {
    assert_eq!(job("size=1k\nbs=512\nkb_base=1000").size, 1000);
    let file = parsed("[global]\nkb_base=1000\n[x]\nsize=8k\n");
    assert_eq!(file.jobs[0].size, 8000);
}

#[test]
fn included_options_belong_to_the_section() {
    let mut given = Given::default();
    given.files.insert("more.fio", "bs=8k\ninclude deep.fio\n");
    given.files.insert("deep.fio", "size=${N}m\n");
    given.files.insert("loop.fio", "include loop.fio\n");
    given.files.insert("section.fio", "[y]\nsize=1m\n");
    given.variables.insert("N", "3");
    let file = parse("test.fio", "[x]\ninclude more.fio\n[y]\nsize=1m\n", &mut given).expect("parses");
    assert_eq!((file.jobs[0].size, file.jobs[0].block_bytes[0].min), (3 << 20, 8192));
    assert_eq!(file.jobs[1].block_bytes[0].min, 4096);
    let mut told = |text| parse("test.fio", text, &mut given).expect_err(text).to_string();
    assert!(told("[x]\ninclude loop.fio\n").contains("more than 16 files deep"));
    assert_eq!(told("[x]\ninclude none.fio\n"), "test.fio:2: cannot include 'none.fio': no such file");
    assert!(told("[x]\ninclude section.fio\n").starts_with("section.fio:1: a file that is included has no sections"));
}

#[test]
fn variables_are_replaced_and_unknown_ones_are_nothing() {
    let mut given = Given::default();
    given.variables.insert("SIZE", "2");
    let text = "[x]\nsize=${SIZE}${UNKNOWN}m\nfilename=${UNKNOWN}a${SIZE}\n";
    let job = parse("test.fio", text, &mut given).expect("parses").jobs.remove(0);
    assert_eq!((job.size, job.file_names[0].as_str()), (2 << 20, "a2"));
    assert!(complaint("bs=${N").contains("without a '}'"));
    assert!(complaint("bs=$ncpus").contains("would be the host's"));
    assert_eq!(super::tests::job("bs=$pagesize").block_bytes[0].min, 4096);
}

#[test]
fn what_fio_does_not_know_is_said_with_the_nearest_name() {
    assert_eq!(complaint("siez=5"), "test.fio:3: fio knows no such option as 'siez' (did you mean 'size'?)");
    assert_eq!(complaint("SIZE=5"), "test.fio:3: fio knows no such option as 'SIZE'");
    assert_eq!(complaint("complete_nonsense"), "test.fio:3: fio knows no such option as 'complete_nonsense'");
    assert!(complaint("runtime:5").contains("no such option"));
}

#[test]
fn what_fio_knows_and_the_simulator_does_not_is_an_error() {
    let told = complaint("read_iolog=log");
    assert_eq!(told, "test.fio:3: fio's option 'read_iolog' is not supported, and could change the outcome");
    let told = complaint("file_append=1");
    assert!(told.starts_with("test.fio:3: option 'file_append' is simulated as 'file_append=0' only"), "{told}");
    assert!(complaint("sprandom=1").contains("one of later versions of fio than 3.33"));
    for fine in ["direct=0", "buffered=1", "invalidate=1", "loops=1", "sync=none", "norandommap=0"] {
        assert!(parsed(&format!("[x]\nsize=1m\n{fine}\n")).warnings.is_empty(), "{fine}");
    }
    for wrong in ["rw=trims", "opendir=/x", "sync_file_range=write:1"] {
        assert!(complaint(wrong).contains("support") || complaint(wrong).contains("not simulated"), "{wrong}");
    }
}

#[test]
fn trims_have_the_size_of_writes_or_their_own() {
    let job = |lines: &str| parsed(&format!("[x]\nsize=1m\n{lines}\n")).jobs[0].clone();
    let trim = job("rw=randtrim\nbs=4k,8k,64k");
    assert_eq!(trim.pattern, Pattern { reads: false, writes: false, trims: true, random: true });
    assert_eq!(trim.block_bytes[1], BlockSizes { min: 64 << 10, max: 64 << 10 });
    assert_eq!(job("rw=trim\nbs=4k,8k").block_bytes[1], BlockSizes { min: 8 << 10, max: 8 << 10 });
    let both = job("rw=trimwrite\nbs=4k,8k,8k").pattern;
    assert_eq!(both, Pattern { reads: false, writes: true, trims: true, random: false });
    assert!(complaint("rw=trimwrite\nbs=4k,8k,64k").contains("another size than the writes"));
    assert!(complaint("rw=trim\nbs=512").contains("whole pages of 4096 bytes"));
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let text = "[global]\nnosuch=1\nioengine=net\n[x]\nsize=1m\nrw=trims\nbs=0\n[y]\nread_iolog=z\nsize=1q\n";
    let all = parse("test.fio", text, &mut Given::default()).expect_err("wrong");
    let lines: Vec<u64> = all.0.iter().map(|complaint| complaint.position.line).collect();
    assert_eq!(lines, [2, 3, 6, 7, 9, 10], "{all}");
    assert_eq!(all.to_string().lines().count(), 6);
}

#[test]
fn what_is_nearly_the_same_has_to_be_asked_for() {
    let text = "[x]\nsize=1m\nlatency_target=5\nioengine=rbd\n[y]\nsize=1m\nioengine=rbd\n";
    let all = parse("test.fio", text, &mut Given::default()).expect_err("only near");
    assert_eq!(all.0.len(), 2, "each once: {all}");
    assert!(all.to_string().contains("--approximate"), "{all}");
    let file = parse_as("test.fio", text, &mut Given::default(), Likeness::Near).expect("near enough");
    let told: Vec<_> = file.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "each once: {told:?}");
    assert!(told[0].contains("nearly: option 'latency_target'"), "{told:?}");
    assert!(file.jobs[0].more.direct && file.jobs[0].engine == Engine::Libaio);
}

#[test]
fn what_cannot_change_the_outcome_is_told_once() {
    let file = parsed("[global]\nthread\n[x]\nsize=1m\ndescription=something = more\nthread\n[y]\nsize=1m\nthread=1\n");
    let told: Vec<_> = file.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2);
    let why = "it concerns how fio's own processes run on a host";
    assert_eq!(told[0], format!("test.fio:2: option 'thread' cannot change the outcome here: {why}; it is ignored"));
}

/// Options that cannot change the outcome, with values that fio takes.
const TAKEN: [&str; 26] = [
    "thread",
    "thread=1",
    "refill_buffers",
    "randseed=0x89",
    "randseed=-1",
    "nice=-20",
    "nice=19",
    "mem=mmap:/x",
    "iomem=shm",
    "fallocate=posix",
    "uid=1000",
    "prioclass=3",
    "prio=7",
    "cpus_allowed=0-3,5",
    "cpumask=3",
    "random_generator=lfsr",
    "verify_interval=4k",
    "dedupe_percentage=100",
    "clocksource=cpu",
    "write_hint=long",
    "unit_base=8",
    "latency_window=10s",
    "buffer_pattern=0xdeadbeef",
    "verify_pattern=%o",
    "log_entries=2k",
    "description=x=y",
];

/// The same with values that fio refuses.
const REFUSED: [&str; 26] = [
    "thread=maybe",
    "thread=",
    "refill_buffers=x",
    "randseed=abc",
    "randseed",
    "nice=99",
    "nice=-21",
    "mem=nonsense",
    "iomem=",
    "fallocate=nonsense",
    "uid=nobody",
    "prioclass=9",
    "prio=8",
    "disk_util",
    "disk_util=2",
    "random_generator=dice",
    "verify_interval=7",
    "dedupe_percentage=101",
    "clocksource=sundial",
    "write_hint=forever",
    "unit_base=2",
    "latency_window=soon",
    "buffer_pattern=abc",
    "log_compression=100",
    "log_entries=7",
    "description=",
];

fn with_option(option: &str) -> String {
    format!("[x]\nsize=1m\n{option}\n")
}

// rule: a value that fio refuses is refused with its line, also of an option that cannot change the outcome
#[test]
fn values_of_ignored_options_are_those_of_fio() {
    for option in TAKEN {
        parse("test.fio", &with_option(option), &mut Given::default()).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    for option in REFUSED {
        let wrong = parse("test.fio", &with_option(option), &mut Given::default()).expect_err(option).to_string();
        let key = option.split('=').next().unwrap_or(option);
        assert!(wrong.starts_with(&format!("test.fio:3: option '{key}': ")), "{wrong}");
    }
    // fio drops what it does not understand behind a number.
    for option in ["verify_async=7x", "replay_scale=1.5"] {
        parse("test.fio", &with_option(option), &mut Given::default()).expect_err(option);
    }
}

#[test]
fn fio_itself_takes_and_refuses_the_same_values() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "fio").expect("a directory");
    let takes = |name: &str, text: &str| {
        let path = scratch.path().join(name);
        std::fs::write(&path, text).expect("written");
        let output = std::process::Command::new("fio").arg("--parse-only").arg(path).output();
        output.ok().map(|output| output.status.success())
    };
    let all: String = TAKEN.iter().map(|option| format!("{option}\n")).collect();
    match takes("taken", &with_option(&all)) {
        None => afflux_scratch::skipped!("fio is not installed (Debian package fio)"),
        Some(is_taken) => {
            assert!(is_taken, "fio refuses one of them");
            for option in REFUSED {
                assert_eq!(takes("refused", &with_option(option)), Some(false), "{option}");
            }
        }
    }
}

#[test]
fn a_size_of_the_command_line_is_that_of_jobs_that_name_none() {
    let mut given = Given { size: Some("3m".to_owned()), ..Given::default() };
    let text = "[a]\nrw=read\n[b]\nsize=1m\n[global]\nsize=2m\n[c]\nrw=read\n";
    let file = parse("test.fio", text, &mut given).unwrap_or_else(|wrong| panic!("{wrong}"));
    let sizes: Vec<_> = file.jobs.iter().map(|job| job.size >> 20).collect();
    assert_eq!(sizes, [3, 1, 2]);
    for wrong in ["", "4x", "101%", "-1"] {
        assert!(super::check_size(wrong).is_err(), "{wrong}");
    }
    assert!(super::check_size("4g").is_ok() && complaint("bs=4k-512k").contains("a range has no place here"));
}

#[test]
fn an_option_that_chooses_the_command_is_not_ignored() {
    for option in ["writefua=1", "readfua=1", "write_mode=zeroes", "uncached=1", "nowait=1", "lockfile=exclusive"] {
        let text = format!("[x]\nsize=1m\n{option}\n");
        let wrong = parse("test.fio", &text, &mut Given::default()).expect_err(option);
        assert!(wrong.to_string().contains("--approximate"), "{wrong}");
    }
    for option in ["writefua=0", "write_mode=write", "exitall_on_error=1", "exitall_on_error", "stats=0", "bs=64m"] {
        let text = format!("[x]\nsize=256m\n{option}\n");
        parse("test.fio", &text, &mut Given::default()).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    let wrong = parse("test.fio", "[x]\nsize=9g\nbs=1g\nioengine=io_uring\niodepth=8\n", &mut Given::default());
    assert!(wrong.unwrap_err().to_string().contains("in flight"));
}

#[test]
fn each_engine_is_what_it_does() {
    let of = |options: &str| {
        let job = job(&format!("iodepth=8\n{options}"));
        (job.engine, job.is_direct(), job.in_flight_max())
    };
    assert_eq!(of("ioengine=libaio\ndirect=1"), (Engine::Libaio, true, 8));
    assert_eq!(of("ioengine=libaio"), (Engine::Libaio, false, 1), "the kernel carries it out as it is submitted");
    assert_eq!(of("ioengine=io_uring\nbuffered=0"), (Engine::Uring, true, 8));
    assert_eq!(of("ioengine=io_uring"), (Engine::Uring, false, 8));
    assert_eq!(of("ioengine=posixaio\nnrfiles=3"), (Engine::Posixaio, false, 3), "a thread a file");
    assert_eq!(of("ioengine=pvsync2\ndirect=1"), (Engine::Psync, true, 1));
    assert_eq!(of("ioengine=vsync"), (Engine::Sync, false, 1));
    assert_eq!(of("ioengine=libpmem"), (Engine::Psync, true, 1), "there is no cache above it");
    assert_eq!(of("ioengine=null"), (Engine::Null, false, 1));
    assert!(!of("ioengine=mmap\ndirect=1").1, "a mapping is the cache");
    assert_eq!(of("direct=1\nio_submit_mode=offload").2, 8);
    assert!(engines::ENGINES.is_sorted_by_key(|engine| engine.0));
    assert!(complaint("ioengine=nosuch").contains("fio knows no such engine as 'nosuch'"));
    assert!(complaint("ioengine=exec").contains("it runs a program of this host"));
    assert!(complaint("ioengine=cpuio").contains("needs a 'runtime'"));
}

#[test]
fn every_option_that_fewer_jobs_have_reaches_its_job() {
    use crate::job::{Amount, Ends, Service, Verify, Zones};
    let file = parsed(
        "[a]\nsize=1m\n[x]\nsize=1m\nwait_for=a\noffset=4k\noffset_increment=25%\nio_size=2m\nnumber_ios=5\n\
                       loops=3\nramp_time=2\nexitall\nexit_what=all\nnew_group\nrate_min=5,6\nrate_iops_min=7\nrate_cycle=500\n\
                       rate_process=poisson\nthinktime=5\nthinktime_blocks=6\nthinktime_spin=2\nflow=4\nflow_id=3\nflow_sleep=10\n\
                       percentage_random=70\nunlink=1\noverwrite=1\nnrfiles=4\nopenfiles=2\nfile_service_type=random:8\n\
                       verify=crc32c\nverify_backlog=16\nsync=dsync\nnorandommap\nbssplit=4k/30:8k/70,16k\nbs_is_seq_rand=1\n\
                       blockalign=512\niodepth=16\niodepth_batch=4\niodepth_low=8\npercentile_list=50:99.9\nwrite_lat_log\n\
                       write_bw_log=other\nlog_avg_msec=100\ncontinue_on_error=write\nzonemode=strided\nzonesize=64k\nzoneskip=4k\n",
    );
    let more = &file.jobs[1].more;
    assert_eq!((more.offset, more.offset_increment), (Amount::Bytes(4096), Amount::Percent(25)));
    assert_eq!((more.io_bytes, more.calls_max, more.loops), (Some(Amount::Bytes(2 << 20)), 5, 3));
    assert_eq!((more.ramp_ns, more.wait_for.as_deref(), more.ends), (2_000_000_000, Some("a"), Ends::All));
    assert!(more.new_group && more.unlink && more.overwrite && more.sync_writes && more.any_block && more.poisson);
    assert!(file.jobs.iter().filter(|job| job.more.exit_all).count() == 1);
    assert_eq!((more.rate_min, more.rate_min_calls, more.rate_cycle_ns), ([5, 6], [7, 7], 500_000_000));
    assert_eq!((more.think_every, more.think_spin_ns), (6, 2_000));
    assert_eq!((more.flow, more.flow_id, more.flow_sleep_ns), (4, 3, 10_000));
    assert_eq!((more.random_percent, more.open_files), ([70, 70], 2));
    assert_eq!((more.service, more.service_calls), (Service::Random, 8));
    assert_eq!(more.verify, Some(Verify { backlog: 16, batch: 0, at_end: true, only: false }));
    assert_eq!(more.split, [vec![(4096, 30), (8192, 70)], vec![(16384, 100)]]);
    assert_eq!((more.align, more.depth, more.batch, more.depth_low), ([512; 2], 16, 4, 8));
    assert_eq!(more.percentiles, [50.0, 99.9]);
    assert_eq!((more.logs.latency.as_deref(), more.logs.bandwidth.as_deref()), (Some("x"), Some("other")));
    assert_eq!(more.may_fail, [false, true]);
    assert_eq!(more.zones, Some(Zones::Strided { range: 65536, bytes: 65536, skip: 4096 }));
    assert_eq!(job("rw=read:-8k").more.stride, -8192);
    assert_eq!(job("rw=randread:8\nrw_sequencer=identical").more.random_every, 8);
    assert_eq!(
        job("random_distribution=zoned:50/5:30/15:20/").distribution,
        Distribution::Zoned(vec![(50, 5), (30, 15), (20, 80)])
    );
    assert_eq!(job("random_distribution=pareto:0.2").distribution, Distribution::Pareto(0.2));
    assert_eq!(job("random_distribution=normal:20").distribution, Distribution::Normal(20.0));
    assert_eq!(
        job("zonemode=zbd\nzonesize=64k\nmax_open_zones=3").more.zones,
        Some(Zones::Sequential { bytes: 65536, open: 3 })
    );
    assert_eq!(job("size=(2 * 4m) + 4k").size, (8 << 20) + 4096);
}

#[test]
fn files_that_are_no_jobs_are_told_with_the_line() {
    let wrong = |text: &str| parse("test.fio", text, &mut Given::default()).expect_err(text).to_string();
    assert!(wrong("\u{1}\u{2}\n").starts_with("test.fio:1: this is no text"));
    assert!(wrong("[x]\nsize=1\u{0}m\n").starts_with("test.fio:2: this is no text"));
    assert!(
        wrong("[x]\nsize=18446744073709551616\n")
            .contains("test.fio:2: option 'size': '18446744073709551616' is above")
    );
    assert!(wrong("[x]\nsize=16777216t\n").contains("is above"));
    assert!(wrong("[x]\nsize=1m\nbs").contains("test.fio:3: option 'bs': needs a value"));
    assert!(wrong("[x]\nwait_for=y\nsize=1m\n").contains("no such job above it"));
    assert!(wrong(&"a\n".repeat(10_000)).lines().count() <= 100);
}

#[test]
fn values_are_checked() {
    for (option, told) in [
        ("bs=0", "blocks of 0 to 0 bytes are not within 1 to"),
        ("bs=2g", "are not within 1 to"),
        ("bs=4k,8k,16k,32k", "at most 3"),
        ("bsrange=4k", "no range"),
        ("rwmixread=101", "101 is not within 0 to 100"),
        ("numjobs=0", "0 is not within 1 to 4096"),
        ("nrfiles=0", "0 is not within 1 to"),
        ("end_fsync", "needs a value"),
        ("end_fsync=2", "neither 0 nor 1"),
        ("time_based=yes", "neither 0 nor 1"),
        ("runtime=10sec", "no unit of time"),
        ("runtime=", "the value is missing"),
        ("rw= read", "begins with a blank"),
        ("size=1.5m", "'.5m' is no unit"),
        ("size=120%", "120 is not within 1 to 100"),
        ("filesize=0", "0 is not within 1"),
        ("kb_base=3", "neither 1000 nor 1024"),
        ("random_distribution=zipf:1", "without 1"),
        ("random_distribution=zipf:x", "theta 'x'"),
        ("random_distribution=pareto:2", "the share '2' is not within"),
        ("random_distribution=zoned:50/50", "the accesses add up to 50"),
        ("random_distribution=uniform", "supported are random, zipf"),
        ("bssplit=4k/50:8k/60", "the percentages add up to 110"),
        ("file_service_type=zipf:1.2", "supported are roundrobin"),
        ("rw=read:x", "does not begin with a digit"),
        ("zonesize=4k\nzonemode=none", "exclude each other"),
    ] {
        let text = complaint(option);
        assert!(
            (text.starts_with("test.fio:3: option '") || text.starts_with("test.fio:1: job 'x'"))
                && text.contains(told),
            "{option}: {text}"
        );
    }
}

#[test]
fn jobs_that_cannot_run_are_refused() {
    for (text, told) in [
        ("[x]\nrw=write\n", "test.fio:1: job 'x': needs 'size' or 'filesize'"),
        ("[x]\nsize=50%\n", "a 'size' in percent needs 'filesize'"),
        ("[x]\nsize=1k\n", "a 'size' of 1024 is less than a block of 4096"),
        ("[x]\nsize=1m\nrate=1m\nrate_iops=5\n", "'rate' and 'rate_iops' exclude each other"),
        ("size=1m\n[x]\n", "test.fio:1: 'size=1m' stands before the first section"),
        ("[x\nsize=1m\n", "test.fio:1: '[x' is no section header"),
        ("[]\nsize=1m\n", "is no section header"),
        ("[x] y\nsize=1m\n", "is no section header"),
    ] {
        let complaint = parse("test.fio", text, &mut Given::default()).expect_err(text).to_string();
        assert!(complaint.contains(told), "{text}: {complaint}");
    }
}

#[test]
fn the_table_has_every_option_of_fio() {
    assert!(options::in_order());
    assert!(options::ALIASES.iter().all(|alias| options::find(alias.0).is_some()));
    let Ok(help) = std::process::Command::new("fio").arg("--cmdhelp=all").output() else {
        afflux_scratch::skipped!("fio is not installed (Debian package fio)");
        return;
    };
    let help = String::from_utf8(help.stdout).expect("text");
    let names: Vec<&str> = help.lines().filter_map(|line| line.split(':').next()).map(str::trim).collect();
    assert!(names.len() > 200, "{help}");
    let mut names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    let ours: Vec<&str> = options::OPTIONS.iter().map(|option| option.0).collect();
    assert_eq!(ours, names, "fio's options, and ours");
}

/// The time for a job must not grow with the number of jobs before it: that once took 9 s.
#[test]
fn too_many_jobs_are_refused_and_as_many_as_may_be_are_read_soon() {
    let file = |count: usize| {
        let jobs: String = (0..count).map(|number| format!("[j{number}]\n")).collect();
        format!("[global]\nsize=4k\nrw=write\n{jobs}")
    };
    let most = lines::SECTIONS_MAX;
    let error = parse("test.fio", &file(most), &mut Given::default()).unwrap_err().to_string();
    assert_eq!(error, format!("test.fio:{}: more than {most} sections in a file", most + 3));
    let waiting = format!("{}[last]\nwait_for=j17\n", file(5000));
    assert_eq!(parsed(&waiting).jobs.len(), 5001);
}
