//! The repository as files.
//!
//! Owns: the place of the workspace, the list of its files, their text; builds of its programs, commands that must
//! succeed.
//! Does not own: the rules about them (`tidy`).
//! Invariants: build output and version control are never listed; the order is by path.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The workspace's top directory.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Cargo's directory for builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo's directory for programs of a profile. `cargo test` and `cargo build` share one.
pub(crate) fn built(profile: &str) -> PathBuf {
    target().join(if matches!(profile, "dev" | "test") { "debug" } else { profile })
}

/// Builds programs by a profile, with more arguments of `cargo build`. Returns their directory.
pub(crate) fn build(profile: &str, arguments: &[&str]) -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--profile", profile, "--bins"]).args(arguments).current_dir(root());
    succeeds(&mut cargo)?;
    Ok(built(profile))
}

/// Runs a command; its output is passed through.
pub(crate) fn succeeds(command: &mut Command) -> Result<()> {
    let line = format!("{command:?}").replace('"', "");
    eprintln!("+ {line}");
    let status = command.status().with_context(|| line.clone())?;
    if !status.success() {
        bail!("failed: {line}");
    }
    Ok(())
}

/// The output of a command, without space around it.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = format!("{command:?}").replace('"', "");
    let output = command.current_dir(root()).output().with_context(|| line.clone())?;
    if !output.status.success() {
        bail!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Cargo, with these arguments.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(arguments);
    cargo
}

/// The path of a file that a document names by the way from the document's own directory.
pub(crate) fn beside(document: &str, file: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// One text file, by its path from the top with `/` between the parts.
#[derive(Clone, Debug)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The paths of all files below the top, sorted.
pub(crate) fn paths() -> Result<Vec<String>> {
    let top = root();
    let files = below(&top, &[".git", "target"])?.into_iter().filter(|path| !is_directory(path));
    let mut found: Vec<String> =
        files.filter_map(|path| Some(path.strip_prefix(&top).ok()?.to_string_lossy().into_owned())).collect();
    found.sort();
    Ok(found)
}

/// A directory and everything below it, without entries of the skipped names.
pub(crate) fn below(directory: &Path, skipped: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = vec![directory.to_path_buf()];
    let mut at = 0;
    while let Some(path) = found.get(at).cloned() {
        if is_directory(&path) {
            for entry in fs::read_dir(&path).with_context(|| path.display().to_string())? {
                let entry = entry?;
                if !skipped.iter().any(|name| entry.file_name() == *name) {
                    found.push(entry.path());
                }
            }
        }
        at += 1;
    }
    Ok(found)
}

/// Whether the path is a directory itself, and no link to one.
fn is_directory(path: &Path) -> bool {
    path.is_dir() && !path.is_symlink()
}

/// The files whose name ends in `.extension`, with their text.
pub(crate) fn files(paths: &[String], extension: &str) -> Result<Vec<TextFile>> {
    let suffix = format!(".{extension}");
    paths
        .iter()
        .filter(|path| path.ends_with(&suffix))
        .map(|path| {
            let text = fs::read_to_string(root().join(path)).with_context(|| path.clone())?;
            Ok(TextFile { path: path.clone(), text })
        })
        .collect()
}
