//! The disks of a run: their directories, and their models.
//!
//! Owns: `--device` on the command line.
//! Does not own: models and their files (the simulator).
//! Invariants: at most one disk takes all directories that have none of their own; no directory is on two.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use afflux_simulator::catalogue::{self, Model};
use afflux_workloads::simulation::DeviceChoice;

use super::input_file::text_of;
use afflux_report::failure::{Failure, Outcome};

/// One `--device`.
#[derive(Debug, PartialEq, Eq)]
struct DeviceArgument {
    directory: Option<String>,
    model: String,
}

/// The requested disks, the one for everything else first.
pub(super) fn devices(asked: &[String]) -> Outcome<Vec<DeviceChoice>> {
    wanted(asked)?.into_iter().map(|DeviceArgument { directory, model }| choice(directory, &model)).collect()
}

/// The error if no disk is named.
pub(super) fn none_named() -> Failure {
    Failure::wrong_use(format!("--device: name the disk to simulate; {}", choices()))
}

fn wanted(asked: &[String]) -> Outcome<Vec<DeviceArgument>> {
    let mut all: Vec<DeviceArgument> = Vec::new();
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

/// `NAME`, `FILE` or `DIR=NAME`, optionally followed by `,KEY=VALUE`. An existing file whose name contains a `=` still
/// counts as a file.
fn one(text: &str) -> Outcome<DeviceArgument> {
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
        // The root has only its slash.
        Some(directory) => Some(match directory.trim_end_matches('/') {
            "" => "/".to_owned(),
            directory => directory.to_owned(),
        }),
        None => None,
    };
    Ok(DeviceArgument { directory, model: format!("{name}{overrides}") })
}

fn choices() -> String {
    let models = catalogue::builtin().unwrap_or_default();
    let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
    format!("there are {}; or the path of a device file", names.join(", "))
}

fn choice(directory: Option<String>, text: &str) -> Outcome<DeviceChoice> {
    let model = model(text).map_err(|failure| failure.within("--device"))?;
    let make = Arc::new(move |world: &_, number| Ok(catalogue::make(world, number, &model)));
    Ok(DeviceChoice { directory, model: text.to_owned(), make })
}

/// The model of a name or a file, optionally followed by `,KEY=VALUE`.
pub(crate) fn model(text: &str) -> Outcome<Model> {
    let wrong = |error: catalogue::InputError| Failure::wrong_use(error.to_string());
    let chosen = catalogue::DeviceChoice::parse(text).map_err(wrong)?;
    let path = Path::new(&chosen.name);
    // A name that looks like a path but is no file gets the host's own error.
    let file = !chosen.is_builtin() && (path.exists() || chosen.name.contains(['/', '.']));
    let contents = if file { Some(text_of(path)?) } else { None };
    chosen.model(contents.as_deref()).map_err(wrong)
}
