//! The Debian of a guest.
//!
//! Owns: its place in the build's folder, its age.
//! Does not own: the steps that make it (`tests/guest/root.sh`).
//! Invariants: a Debian that was not made to its end is never used. A change of its recipe makes it anew.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::cases::folder;
use crate::repository;

/// The files that decide what is in the Debian.
const RECIPE: [&str; 3] = ["root.sh", "initrd-init", "guest.service"];

/// The folder with `kernel`, `initrd` and `root.img` of this release. Makes it if necessary, in two minutes.
pub(super) fn made(suite: &str, rebuild: bool) -> Result<PathBuf> {
    let recipe = RECIPE.map(|name| fs::read_to_string(folder().join(name)).context(name));
    let recipe = recipe.into_iter().collect::<Result<String>>()?;
    let place = repository::target().join("guest").join(suite);
    let written = place.join("recipe");
    if !rebuild && fs::read_to_string(&written).is_ok_and(|old| old == recipe) {
        return Ok(place);
    }
    if place.exists() {
        fs::remove_dir_all(&place).context("the old Debian")?;
    }
    fs::create_dir_all(&place).context("a folder for a Debian")?;
    let log = place.join("log");
    eprintln!("+ making a Debian {suite}: {}", log.display());
    let mut script = Command::new("sh");
    script.arg(folder().join("root.sh")).arg(suite).arg(&place);
    let file = fs::File::create(&log).context("a log")?;
    script.stdout(file.try_clone().context("a log")?).stderr(file);
    ensure!(script.status().context("sh")?.success(), "no Debian could be made: {}", log.display());
    fs::write(&written, recipe).context("the recipe")?;
    Ok(place)
}
