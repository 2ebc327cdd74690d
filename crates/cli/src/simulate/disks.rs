//! The disks of a run: which directory is on which, what they are made from, what happens to them.
//!
//! Owns: `--device` and `--faults` on the command line.
//! Does not own: models, their files and the form of fault files (the simulator).
//! Invariants: at most one disk is for all that is on no other; no directory is on two.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use simulator::simulation::DeviceChoice;
use simulator::{FaultScript, ScriptedWhat, catalogue};

use super::description::text_of;
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
    Failure::wrong_use(format!("--device: name the disk to simulate; {}", choices()))
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

/// `NAME`, `FILE` or `DIR=NAME`, each with `,KEY=VALUE` behind it. A file whose name has a `=` in it is
/// a file all the same.
fn one(text: &str) -> Outcome<Wanted> {
    let (head, overrides) = text.split_at(text.find(',').unwrap_or(text.len()));
    let split = head.rsplit_once('=').filter(|_| !Path::new(head).exists());
    let (directory, name) = match split {
        Some((directory, name)) => (Some(directory), name),
        None => (None, head),
    };
    if name.is_empty() {
        return Err(Failure::wrong_use(format!("--device: '{text}' names no disk; {}", choices())));
    }
    let directory = match directory {
        Some("") => return Err(Failure::wrong_use(format!("--device: '{text}' names no directory before the '='"))),
        // The root keeps its only slash.
        Some(directory) => Some(match directory.trim_end_matches('/') {
            "" => "/".to_owned(),
            directory => directory.to_owned(),
        }),
        None => None,
    };
    Ok(Wanted { directory, model: format!("{name}{overrides}") })
}

fn choices() -> String {
    let models = catalogue::builtin().unwrap_or_default();
    let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    format!("there are {}; or the path of a device file", names.join(", "))
}

fn choice(directory: Option<String>, text: &str) -> Outcome<DeviceChoice> {
    let wrong = |error: catalogue::InputError| Failure::wrong_use(format!("--device: {error}"));
    let chosen = catalogue::DeviceChoice::parse(text).map_err(wrong)?;
    let path = Path::new(&chosen.name);
    // What looks like a path and is none deserves the host's own error.
    let file = !chosen.is_builtin() && (path.exists() || chosen.name.contains(['/', '.']));
    let contents = if file { Some(text_of(path)?) } else { None };
    let model = chosen.model(contents.as_deref()).map_err(wrong)?;
    let make = Arc::new(move |world: &_, number| Ok(catalogue::make(world, number, &model)));
    Ok(DeviceChoice { directory, model: text.to_owned(), make })
}

/// Has what a fault file says happen to these disks.
pub(super) fn add_faults(path: &Path, devices: &mut [DeviceChoice]) -> Outcome {
    let file = path.display().to_string();
    let script = FaultScript::parse(&file, &text_of(path)?).map_err(|error| Failure::wrong_use(error.to_string()))?;
    for entry in script.entries {
        let wrong = |what: String| Failure::wrong_use(format!("{file}:{}: {what}", entry.line));
        if matches!(entry.what, ScriptedWhat::PowerLoss | ScriptedWhat::ProcessKill | ScriptedWhat::LinkCut) {
            return Err(wrong(
                "'simulate' carries out faults of disks only: no power-loss, kill or link-cut".to_owned(),
            ));
        }
        if entry.file.is_some() {
            return Err(wrong(
                "file: 'simulate' cannot tell files apart here; use 'medium' or leave it out".to_owned(),
            ));
        }
        let meant = |choice: &DeviceChoice| entry.device.as_deref().is_none_or(|name| is_named(choice, name));
        if !devices.iter().any(meant) {
            let name = entry.device.as_deref().unwrap_or_default();
            let names: Vec<&str> = devices.iter().map(name_of).collect();
            return Err(wrong(format!("device: there is no '{name}' in this run; there are {}", names.join(", "))));
        }
        for choice in devices.iter_mut().filter(|choice| meant(choice)) {
            let (make, entry) = (Arc::clone(&choice.make), entry.clone());
            choice.make = Arc::new(move |world, number| {
                let disk = make(world, number)?;
                disk.arm(&entry, None);
                Ok(disk)
            });
        }
    }
    Ok(())
}

/// A disk is called by its directory or by the model that it is of.
fn is_named(choice: &DeviceChoice, name: &str) -> bool {
    let model = choice.model.split(',').next().unwrap_or_default();
    choice.directory.as_deref() == Some(name) || model == name
}

fn name_of(choice: &DeviceChoice) -> &str {
    choice.directory.as_deref().unwrap_or(&choice.model)
}
