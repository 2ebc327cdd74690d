//! fio through the engine: it reads back what it wrote, from the cache, from the disk, and without the engine. Skipped
//! without fio or its source; `cargo xtask fio-engine` gets the source.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

mod sanitizer;

struct Rig {
    place: tempfile::TempDir,
}

/// The configured source of the installed fio.
fn source(target: &Path) -> Option<PathBuf> {
    let version = Command::new("fio").arg("--version").output().ok()?;
    let version = String::from_utf8(version.stdout).ok()?;
    let source = target.join("fio-engine").join(version.trim());
    source.join("config-host.h").exists().then_some(source)
}

impl Rig {
    /// Builds the engine.
    fn new() -> Option<Self> {
        // Cargo leaves the libraries beside the tests.
        let libraries = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let target = std::env::var_os("CARGO_TARGET_DIR");
        let target = target.map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
        let Some(source) = source(&target) else {
            afflux_scratch::skipped!("the source of the installed fio is not there; `cargo xtask fio-engine` gets it");
            return None;
        };
        let place = tempfile::tempdir().unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fio/build.sh");
        let mut build = Command::new(script);
        build.arg(libraries).arg(source).arg(place.path().join("afflux.so"));
        let built = build.env("CFLAGS", sanitizer::flags().join(" ")).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        std::fs::create_dir(place.path().join("files")).unwrap();
        Some(Self { place })
    }

    /// Runs fio with these arguments, in the directory of the test; jobs go through the engine.
    fn run(&self, words: &str) -> Output {
        let engine = self.engine();
        let thread = (!sanitizer::MAY_FORK).then_some("--thread");
        self.run_with(&[&[&*engine], thread.as_slice()].concat(), words)
    }

    fn engine(&self) -> String {
        format!("--ioengine=external:{}", self.place.path().join("afflux.so").display())
    }

    fn run_with(&self, first: &[&str], words: &str) -> Output {
        let output = Command::new("timeout")
            .args(["300", "env"])
            .args(sanitizer::around())
            .args(["fio", "--name=job", "--directory=files", "--output-format=normal"])
            .args(first)
            .args(words.split_whitespace())
            .current_dir(self.place.path())
            .output()
            .unwrap();
        let told = told(&output);
        assert!(!told.contains("Sanitizer"), "{words}\n{told}");
        output
    }

    fn passes(&self, words: &str) -> String {
        let output = self.run(words);
        let told = told(&output);
        assert!(output.status.success() && told.contains("err= 0"), "{words}: {}\n{told}", output.status);
        told
    }

    fn fails(&self, words: &str, says: &str) {
        let output = self.run(words);
        let told = told(&output);
        assert!(!output.status.success(), "{words}\n{told}");
        assert!(told.contains(says), "{words}\n{told}");
    }
}

fn told(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).join("\n")
}

#[test]
fn what_was_written_is_read_from_the_cache_from_the_disk_and_without_the_engine() {
    let Some(rig) = Rig::new() else { return };
    // More than the cache holds.
    rig.passes("--thread --afflux_memory=4m --size=24m --bs=8k --nrfiles=3 --rw=write --verify=crc32c --filename_format=a.$filenum");
    for depth in [1, 32] {
        let again = "--thread --afflux_memory=4m --size=24m --bs=8k --nrfiles=3 --rw=read --verify=crc32c";
        rig.passes(&format!("{again} --iodepth={depth} --filename_format=a.$filenum"));
    }
    let host = rig.run_with(
        &["--ioengine=psync"],
        "--size=24m --bs=8k --nrfiles=3 --rw=read --verify=crc32c --filename_format=a.$filenum",
    );
    assert!(host.status.success(), "{}", told(&host));
}

#[test]
fn random_writes_in_flight_with_syncs_and_trims_are_what_they_were() {
    let Some(rig) = Rig::new() else { return };
    let base = "--thread --afflux_memory=4m --size=12m --verify=crc32c --verify_fatal=1";
    rig.passes(&format!("{base} --filename=b --rw=randrw --bsrange=512-16k --bs_unaligned=0 --iodepth=16 --fsync=16"));
    rig.passes(&format!("{base} --filename=c --rw=randwrite --bs=3000 --iodepth=1 --fdatasync=32"));
    rig.passes(&format!(
        "{base} --filename=d --rw=randwrite --bs=4k --iodepth=8 --sync_file_range=write:64 --end_fsync=1"
    ));
    // Two jobs, two files each; fio's own threads verify the data.
    let many = "--thread --numjobs=2 --nrfiles=2 --afflux_memory=4m --size=8m --bs=4k --iodepth=8 --verify=crc32c";
    let looked = "--verify_async=2 --verify_backlog=64 --verify_fatal=1";
    rig.passes(&format!("{many} {looked} --rw=randwrite --fsync=32 --filename_format=m.$jobnum.$filenum"));
    rig.passes(&format!("{many} {looked} --rw=randread --filename_format=m.$jobnum.$filenum"));
    rig.passes("--thread --afflux_memory=4m --size=8m --filename=d --rw=randtrim --bs=4k --iodepth=4");
    let bytes = std::fs::read(rig.place.path().join("files/d")).unwrap();
    assert!(bytes[..8 << 20].iter().all(|byte| *byte == 0) && bytes[8 << 20..].iter().any(|byte| *byte != 0));
}

/// A loop device over a file, detached when dropped.
struct Loop(String);

impl Loop {
    fn over(image: &Path) -> Option<Self> {
        let output = Command::new("losetup").args(["--find", "--show"]).arg(image).output().ok()?;
        let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        let made = output.status.success() && !name.is_empty();
        if !made {
            afflux_scratch::skipped!("no loop device here");
        }
        made.then_some(Self(name))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).output();
    }
}

#[test]
fn what_is_trimmed_on_a_block_device_is_gone_and_the_rest_is_what_was_written() {
    const HALF: usize = 8 << 20;
    let Some(rig) = Rig::new() else { return };
    let image = rig.place.path().join("image");
    std::fs::write(&image, vec![1; 2 * HALF]).unwrap();
    let Some(device) = Loop::over(&image) else { return };
    // fio looks for its name below a directory.
    let base = format!("--afflux_memory=4m --bs=4k --directory=/ --filename={}", device.0);
    let verified = "--verify=crc32c --verify_fatal=1";
    rig.passes(&format!("{base} --thread --size=16m --rw=randwrite --iodepth=8 --end_fsync=1 {verified}"));
    for depth in [1, 8] {
        rig.passes(&format!("{base} --thread --size=8m --rw=randtrim --iodepth={depth}"));
        rig.passes(&format!("{base} --offset=8m --size=8m --rw=read {verified}"));
        let bytes = std::fs::read(&image).unwrap();
        assert!(bytes[..HALF].iter().all(|byte| *byte == 0), "trimmed at depth {depth}");
        rig.passes(&format!("{base} --thread --size=8m --rw=write --end_fsync=1 {verified}"));
    }
    // Trims of dirty data, among writes.
    rig.passes(&format!("{base} --thread --size=16m --rw=trimwrite --iodepth=4 --end_fsync=1 {verified}"));
    rig.passes(&format!("{base} --size=16m --rw=read {verified}"));
}

#[test]
fn threads_share_a_cache_and_processes_have_their_own() {
    let Some(rig) = Rig::new() else { return };
    let two = "--size=8m --bs=4k --afflux_memory=8m --numjobs=2 --group_reporting";
    rig.passes(&format!("{two} --thread --filename=one --rw=randrw --iodepth=4"));
    rig.passes(&format!("{two} --rw=randwrite --verify=crc32c"));
    let other = afflux::Cache::builder().memory(4 << 20).build().unwrap();
    // As large as the job wants it: otherwise fio would replace it by another.
    std::fs::write(rig.place.path().join("files/two"), vec![0; 1 << 20]).unwrap();
    let held = other.create(rig.place.path().join("files/two")).unwrap();
    rig.fails(
        "--size=1m --filename=two --rw=write",
        if sanitizer::MAY_FORK { "add `thread`" } else { "another cache" },
    );
    drop(held);
    other.close().unwrap();
    let stats =
        rig.passes("--thread --size=4m --bs=4k --filename=one --rw=read --loops=3 --invalidate=0 --afflux_stats");
    let hits = stats.split("read_hit_pages=").nth(1).and_then(|rest| rest.split_whitespace().next());
    assert!(hits.unwrap().parse::<u64>().unwrap() >= 2048, "{stats}");
}

#[test]
fn options_that_cannot_be_are_told() {
    let Some(rig) = Rig::new() else { return };
    let job = "--thread --size=1m --rw=read --filename=e";
    rig.fails(&format!("{job} --afflux_memory=4k"), "at least 1048576");
    rig.fails(&format!("{job} --afflux_knobs=dirty_ratoi=3"), "dirty_ratio");
    rig.passes(&format!(
        "{job} --afflux_knobs=dirty_ratio=33,budget_ms=500 --afflux_io=syscalls --afflux_host_caching=buffered"
    ));
    let other = format!("--name=other --directory=files {} {job} --afflux_memory=9m", rig.engine());
    rig.fails(&format!("{job} --afflux_memory=8m {other}"), "the same afflux options");
}
