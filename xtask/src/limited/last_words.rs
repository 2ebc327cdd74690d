//! The state of a process, as the kernel reports it.
//!
//! Owns: the choice of files in `/proc`, the form of the report. Does not own: the process.
//! Invariants: the report omits each file that cannot be read, and each thread that ends meanwhile.

use std::fs;
use std::path::{Path, PathBuf};

/// The report has descendants of the process to this depth.
const DEPTH_MAX: usize = 4;

/// Lines about each thread of a process, and of the processes that it started. The harness gives a test's thread the
/// test's name, of which the kernel keeps 15 bytes.
pub(super) fn of(process: u32) -> String {
    let mut said = String::new();
    tell(&mut said, process, 0);
    said
}

fn tell(said: &mut String, process: u32, depth: usize) {
    let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<_> = command.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    said.push_str(&format!("  process {process}: {}\n", words.join(" ").trim_end()));
    let threads = threads(process);
    for thread in &threads {
        said.push_str(&thread_line(thread));
    }
    if depth < DEPTH_MAX {
        let children = threads.iter().map(|thread| file(thread, "children")).collect::<Vec<_>>().join(" ");
        children.split_whitespace().filter_map(|child| child.parse().ok()).for_each(|child| {
            tell(said, child, depth + 1);
        });
    }
}

fn threads(process: u32) -> Vec<PathBuf> {
    let listed = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let mut threads: Vec<PathBuf> = listed.filter_map(Result::ok).map(|entry| entry.path()).collect();
    threads.sort();
    threads
}

/// A thread's name and state, its wait channel in the kernel, its system call with arguments, and its kernel stack.
fn thread_line(thread: &Path) -> String {
    let state = file(thread, "stat").rsplit_once(") ").map(|(_, rest)| rest[..1].to_owned()).unwrap_or_default();
    let stack = file(thread, "stack")
        .lines()
        .map(|line| line.split("+0x").next().unwrap_or(line).to_owned())
        .collect::<Vec<_>>();
    let stack: Vec<&str> = stack.iter().map(|line| line.trim_start_matches("[<0>] ")).collect();
    let parts = [file(thread, "comm"), state, file(thread, "wchan"), file(thread, "syscall"), stack.join(" < ")];
    format!(
        "    {}\n",
        parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" | ")
    )
}

fn file(thread: &Path, name: &str) -> String {
    fs::read_to_string(thread.join(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
