//! The destinations of a run's page, its events and its report.
//!
//! Owns: the choice of standard output (`-` means that, as everywhere), the files.
//! Does not own: the contents.
//! Invariants: standard output has only one of these: the figures of `--json`, or a page, or events, or the report,
//! which otherwise goes to standard error. A destination that cannot be written is refused before the run.

#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use afflux_report::terminal::Terminal;

use crate::args;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;

pub(super) struct Destinations {
    html: Option<PathBuf>,
    trace: Option<PathBuf>,
}

impl Destinations {
    /// The destinations of the request.
    pub(super) fn of(args: &args::MachineArguments) -> Outcome<Self> {
        let fio = args.output_format == "json";
        let mut taken = (args.json || fio).then_some(if fio { "the figures in JSON" } else { "the figures of --json" });
        let page = ("--html", "the page of --html", &args.html);
        for (flag, what, path) in [page, ("--trace", "the events of --trace", &args.trace)] {
            let Some(path) = path else { continue };
            if !is_stdout(path) {
                check_writable(path)?;
            } else if let Some(other) = taken.replace(what) {
                let file = "name a file (./- is a file named -)";
                return Err(Failure::wrong_use(format!("{flag} -: standard output has {other}; {file}")));
            }
        }
        Ok(Self { html: args.html.clone(), trace: args.trace.clone() })
    }

    /// Writes the page, if requested.
    pub(super) fn page(&self, page: impl FnOnce() -> String) -> Outcome {
        self.html.as_deref().map_or(Ok(()), |path| write(path, &page()))
    }

    /// Writes the events, if requested.
    pub(super) fn events(&self, lines: &[String]) -> Outcome {
        self.trace.as_deref().map_or(Ok(()), |path| write(path, &(lines.join("\n") + "\n")))
    }

    fn stdout_is_taken(&self) -> bool {
        [&self.html, &self.trace].into_iter().flatten().any(|path| is_stdout(path))
    }

    /// The terminal for the report.
    pub(super) fn terminal(&self) -> Terminal {
        if self.stdout_is_taken() { Terminal::PLAIN } else { Terminal::of_stdout() }
    }

    /// Prints the report, and the names of the written files.
    pub(super) fn report(&self, text: &str) {
        let files = [("Plots", &self.html), ("Events", &self.trace)].into_iter();
        let files = files.filter_map(|(what, path)| Some((what, path.as_deref().filter(|path| !is_stdout(path))?)));
        let files: String = files.map(|(what, path)| format!("\n{what}: {}", path.display())).collect();
        let all = format!("{}{files}", text.trim_end());
        if self.stdout_is_taken() { output::remark(all) } else { output::say(all) }
    }
}

/// Whether a path is that of standard output.
fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

/// Fails early if a file could not be written at the end.
fn check_writable(path: &Path) -> Outcome {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if path.is_dir() {
        return Err(Failure::failed(format!("{} is a directory; name a file in it", path.display())));
    }
    if !directory.is_dir() {
        let (path, directory) = (path.display(), directory.display());
        return Err(Failure::failed(format!("{path} cannot be written: there is no directory {directory}")));
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Outcome {
    if is_stdout(path) {
        output::say(text.trim_end());
        return Ok(());
    }
    fs::write(path, text).map_err(|error| Failure::failed(format!("{} cannot be written: {error}", path.display())))
}
