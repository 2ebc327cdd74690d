//! The disks of a run: which directory is on which, what they are made from, what happens to them.
//!
//! Owns: `--device` and `--faults` on the command line.
//! Does not own: models, their files and the form of fault files (the simulator).
//! Invariants: at most one disk is for all that is on no other; no directory is on two.

#[cfg(test)]
mod tests;

use std::path::Path;

use simulator::simulation::{DeviceChoice, FaultEvent};

use crate::failure::{Failure, Outcome};

/// One `--device`.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    directory: Option<String>,
    model: String,
}

/// The disks that are asked for, the one for everything else first.
pub(super) fn devices(asked: &[String]) -> Outcome<Vec<DeviceChoice>> {
    wanted(asked)?.into_iter().map(|Wanted { directory, model }| choice(directory, &model)).collect()
}

/// The error where no disk is named.
pub(super) fn none_named() -> Failure {
    Failure::wrong_use(format!("--device: name the disk to simulate: {}", choices()))
}

fn wanted(asked: &[String]) -> Outcome<Vec<Wanted>> {
    let mut all: Vec<Wanted> = Vec::new();
    for text in asked {
        let wanted = one(text)?;
        if all.iter().any(|other| other.directory == wanted.directory) {
            let wrong = match wanted.directory {
                Some(directory) => format!("--device: {directory} is on two disks"),
                None => format!("--device: '{text}' is a second disk for everything; use DIR={text} for one directory"),
            };
            return Err(Failure::wrong_use(wrong));
        }
        all.push(wanted);
    }
    all.sort_by_key(|wanted| wanted.directory.is_some());
    Ok(all)
}

/// `NAME`, `FILE` or `DIR=NAME`. A file whose name has a `=` in it is a file all the same.
fn one(text: &str) -> Outcome<Wanted> {
    let split = text.rsplit_once('=').filter(|_| !Path::new(text).exists());
    let (directory, model) = match split {
        Some((directory, model)) => (Some(directory.trim_end_matches('/')), model),
        None => (None, text),
    };
    if model.is_empty() {
        return Err(Failure::wrong_use(format!("--device: '{text}' names no disk: {}", choices())));
    }
    if directory == Some("") && !text.starts_with('/') {
        return Err(Failure::wrong_use(format!("--device: '{text}' names no directory before the '='")));
    }
    // The root loses its only slash above.
    let directory = directory.map(|directory| if directory.is_empty() { "/" } else { directory }.to_owned());
    Ok(Wanted { directory, model: model.to_owned() })
}

fn choices() -> String {
    "plain".to_owned()
}

fn choice(directory: Option<String>, model: &str) -> Outcome<DeviceChoice> {
    if model != "plain" {
        return Err(Failure::wrong_use(format!("--device: there is no disk '{model}': {}", choices())));
    }
    Ok(DeviceChoice { directory, ..DeviceChoice::plain(simulator::DiskOptions::default()) })
}

/// What a fault file says happens to these disks.
pub(super) fn faults(path: &Path, _devices: &[DeviceChoice]) -> Outcome<Vec<FaultEvent>> {
    Err(Failure::failed(format!("{}: not implemented yet", path.display())))
}
