//! Names: files that are made and removed, a tree that tar extracts.
//!
//! Owns: the names.
//! Does not own: the contender, the archive (`afflux_rig`).
//! Invariants: each run has a directory of its own. A run removes its files after its time has ended.

use std::fs::{self, File};
use std::process::Command;

use afflux_rig::archive;
use anyhow::{Context, Result, bail};

use crate::contenders::Running;
use crate::figure::Figure;
use crate::options::Options;

pub(crate) fn create_and_unlink(running: &Running, round: usize, quick: bool) -> Result<Figure> {
    let place = running.place.join(format!("names-{round}"));
    fs::create_dir(&place)?;
    let files = if quick { 50 } else { 1_000 };
    let begun = running.measured();
    for at in 0..files {
        drop(File::create_new(place.join(format!("n{at}")))?);
    }
    for at in 0..files {
        fs::remove_file(place.join(format!("n{at}")))?;
    }
    let (elapsed, used) = begun.end();
    let used = Figure::used(used, files);
    fs::remove_dir(&place)?;
    Ok(Figure { value: files as f64 / elapsed.as_secs_f64(), ..used })
}

pub(crate) fn untar(running: &Running, round: usize, options: &Options) -> Result<Figure> {
    let files = if options.words.quick { 60 } else { 2_000 };
    let archive = archive(&options.directory, files, |at| at * 37 % (16 << 10)).context("the archive")?;
    let place = running.place.join(format!("untar-{round}"));
    fs::create_dir(&place)?;
    let begun = running.measured();
    // Without times: passthrough_hp refuses to set them.
    let status = Command::new("tar").arg("-C").arg(&place).arg("-xmf").arg(archive).status().context("tar")?;
    let (elapsed, used) = begun.end();
    let used = Figure::used(used, files as usize);
    if !status.success() {
        bail!("tar fails");
    }
    fs::remove_dir_all(&place)?;
    // tar itself is a process of its own, which is gone: its time is not told.
    let value = files as f64 / elapsed.as_secs_f64();
    Ok(Figure { value, servers_us: used.servers_us, ..Figure::default() })
}
