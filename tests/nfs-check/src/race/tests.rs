use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use afflux_scratch::{Stolen, TestDirectory, within};

use super::judge;
use super::other_program::OtherProgram;
use crate::failure::Failure;

#[test]
fn a_race_on_a_machine_with_stolen_time_has_no_table() {
    let of = |per_mille: u64| Stolen { ms: 10 * per_mille, per_mille };
    assert!(matches!(judge(false, of(3)), Err(Failure::Stolen { per_mille: 3 })));
    assert!(judge(false, of(2)).is_ok());
    assert!(judge(true, of(3)).is_ok(), "a quick race shows no figures");
}

#[test]
fn the_other_program_ends_with_its_case() {
    let directory = TestDirectory::new();
    if Command::new("fio").arg("--version").output().is_err() {
        return afflux_scratch::skipped!("fio is not installed (Debian package fio)");
    }
    let program = OtherProgram::start(directory.path()).unwrap();
    let has_writer = || writers_below(directory.path()) > 0;
    assert!(within(Duration::from_secs(30), has_writer), "fio does not write");
    drop(program);
    assert!(!has_writer(), "a job of fio writes on");
}

/// The number of descriptors of other processes for files in a directory, removed ones too.
fn writers_below(directory: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let descriptors = processes.filter_map(|process| fs::read_dir(process.path().join("fd")).ok()).flatten().flatten();
    descriptors.filter_map(|entry| fs::read_link(entry.path()).ok()).filter(|file| file.starts_with(directory)).count()
}
