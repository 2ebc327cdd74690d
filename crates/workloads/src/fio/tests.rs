use std::collections::BTreeMap;

use super::*;
use crate::job::{BlockSizes, Distribution, Engine, Pattern};

/// Files and variables by name.
#[derive(Default)]
struct Given {
    files: BTreeMap<&'static str, &'static str>,
    variables: BTreeMap<&'static str, &'static str>,
}

impl Surroundings for Given {
    fn include(&mut self, path: &str, _: &str) -> Result<(String, String), String> {
        self.files.get(path).map(|text| (path.to_owned(), (*text).to_owned())).ok_or_else(|| "no such file".to_owned())
    }

    fn variable(&mut self, name: &str) -> Option<String> {
        self.variables.get(name).map(|value| (*value).to_owned())
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
        .map(|job| (job.name.as_str(), job.block_bytes[0].min, job.size >> 20, job.place.line))
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
    assert_eq!(job.pattern, Pattern { reads: true, writes: true, random: true });
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
    assert_eq!(job("readwrite=randwrite").pattern, Pattern { reads: false, writes: true, random: true });
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
    assert!(complaint("bs=$pagesize").contains("would be the host's"));
}

#[test]
fn what_fio_does_not_know_is_said_with_the_nearest_name() {
    assert_eq!(complaint("siez=5"), "test.fio:3: fio knows no such option as 'siez'; did you mean 'size'?");
    assert_eq!(complaint("SIZE=5"), "test.fio:3: fio knows no such option as 'SIZE'");
    assert_eq!(complaint("complete_nonsense"), "test.fio:3: fio knows no such option as 'complete_nonsense'");
    assert!(complaint("runtime:5").contains("no such option"));
}

#[test]
fn what_fio_knows_and_the_simulator_does_not_is_an_error_that_lists_what_it_does() {
    let told = complaint("bssplit=4k/50:8k/50");
    assert!(told.starts_with("test.fio:3: fio's option 'bssplit' is not supported"), "{told}");
    assert!(told.contains("rwmixread") && told.contains("bsrange"), "{told}");
    let told = complaint("direct=1");
    assert!(told.starts_with("test.fio:3: option 'direct' is supported as 'direct=0' only"), "{told}");
    for fine in ["direct=0", "buffered=1", "invalidate=1", "loops=1", "sync=none", "norandommap=0"] {
        assert!(parsed(&format!("[x]\nsize=1m\n{fine}\n")).warnings.is_empty(), "{fine}");
    }
    for wrong in ["norandommap", "fill_device=1", "overwrite=1", "rw=trim", "ioengine=libaio", "rw=write:8"] {
        assert!(complaint(wrong).contains("support"), "{wrong}");
    }
}

#[test]
fn what_cannot_change_the_outcome_is_a_warning() {
    let file = parsed("[x]\nsize=1m\nwrite_bw_log=log\ndescription=something = more\nthread\n");
    let told: Vec<_> = file.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 3);
    assert_eq!(told[0], "test.fio:3: option 'write_bw_log' cannot change the outcome here; it is ignored");
}

#[test]
fn values_are_checked() {
    for (option, told) in [
        ("bs=0", "blocks of 0 to 0 bytes are not within 1 to"),
        ("bs=1g", "are not within 1 to"),
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
        ("random_distribution=pareto:0.2", "supported are random, zipf"),
    ] {
        let text = complaint(option);
        assert!(text.starts_with("test.fio:3: option '") && text.contains(told), "{option}: {text}");
    }
}

#[test]
fn jobs_that_cannot_run_are_refused() {
    for (text, told) in [
        ("[x]\nrw=write\n", "test.fio:1: job 'x': needs 'size' or 'filesize'"),
        ("[x]\nsize=50%\n", "a 'size' in percent needs 'filesize'"),
        ("[x]\nsize=1k\n", "a 'size' of 1024 is less than a block of 4096"),
        ("[x]\nsize=1m\ntime_based\n", "'time_based' needs a 'runtime'"),
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
    assert!(options::OPTIONS.is_sorted_by_key(|option| option.0) && options::ALIASES.is_sorted_by_key(|alias| alias.0));
    assert!(options::ALIASES.iter().all(|alias| options::find(alias.0).is_some()));
    let Ok(help) = std::process::Command::new("fio").arg("--cmdhelp=all").output() else {
        println!("skipped: fio is not installed (Debian package fio)");
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
