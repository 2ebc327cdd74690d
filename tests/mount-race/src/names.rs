//! Names: files that are made and removed, a tree that tar extracts.
//!
//! Owns: the names, the archive.
//! Does not own: the contender.
//! Invariants: each run has a directory of its own. A run removes its files after its time has ended.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::contenders::Running;
use crate::figure::Figure;
use crate::options::Options;
use crate::processes::Usage;

const FILES_IN_DIRECTORY: usize = 50;

pub(crate) fn create_and_unlink(running: &Running, round: usize, quick: bool) -> Result<Figure> {
    let place = running.place.join(format!("names-{round}"));
    fs::create_dir(&place)?;
    let files = if quick { 50 } else { 1_000 };
    let before = (Usage::of(std::process::id()), running.usage());
    let begin = Instant::now();
    for at in 0..files {
        drop(File::create_new(place.join(format!("n{at}")))?);
    }
    for at in 0..files {
        fs::remove_file(place.join(format!("n{at}")))?;
    }
    let figure = figure(running, before, begin, files);
    fs::remove_dir(&place)?;
    Ok(figure)
}

/// The figure of a run for so many files.
fn figure(running: &Running, before: (Usage, Usage), begin: Instant, files: usize) -> Figure {
    let elapsed = begin.elapsed();
    let used = (Usage::of(std::process::id()).since(before.0), running.usage().since(before.1));
    let files = files as f64;
    Figure {
        value: files / elapsed.as_secs_f64(),
        caller_us: used.0.cpu_ns as f64 / 1e3 / files,
        servers_us: used.1.cpu_ns as f64 / 1e3 / files,
        switches: used.0.plus(used.1).switches as f64 / files,
        stolen_ms: 0,
    }
}

/// The archive: files of up to 16 KiB, fifty to a directory.
fn archive(options: &Options, files: usize) -> Result<PathBuf> {
    let (tree, archive) = (options.directory.join("tree"), options.directory.join("tree.tar"));
    if archive.exists() {
        return Ok(archive);
    }
    for at in 0..files {
        let directory = tree.join(format!("d{}", at / FILES_IN_DIRECTORY));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(format!("f{at}")), vec![at as u8; at * 37 % (16 << 10)])?;
    }
    let status = Command::new("tar").arg("-C").arg(&options.directory).arg("-cf").arg(&archive).arg("tree").status();
    if !status.context("tar")?.success() {
        bail!("tar cannot make the archive");
    }
    Ok(archive)
}

pub(crate) fn untar(running: &Running, round: usize, options: &Options) -> Result<Figure> {
    let files = if options.quick { 60 } else { 2_000 };
    let archive = archive(options, files)?;
    let place = running.place.join(format!("untar-{round}"));
    fs::create_dir(&place)?;
    let before = (Usage::of(std::process::id()), running.usage());
    let begin = Instant::now();
    // Without times: passthrough_hp refuses to set them.
    let status = Command::new("tar").arg("-C").arg(&place).arg("-xmf").arg(archive).status().context("tar")?;
    // tar itself is a process of its own, which is gone: its time is not told.
    let figure = Figure { caller_us: 0.0, switches: 0.0, ..figure(running, before, begin, files) };
    if !status.success() {
        bail!("tar fails");
    }
    fs::remove_dir_all(&place)?;
    Ok(figure)
}
