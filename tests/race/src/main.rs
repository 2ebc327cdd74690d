//! The race of the library with the kernel's page cache and other caches, in turns, on this machine.
//!
//! Standard output is Markdown for a document; rows of JSON and a page with plots go to files. Standard error shows the
//! current step and the expected time.
//!
//! Owns: the order of the halves, the places of their results.
//! Does not own: the cases (`in_process`, `fio`), their measurement (`rounds`), their form (`markdown`, `artifacts`).
//! Invariants: a contender that cannot run is a remark in the table, not the end of the race.

// `unsafe` is allowed only in `in_process/mapped.rs`: a mapping, and copies from and to it.
#![deny(unsafe_code)]

mod artifacts;
mod bound;
mod case;
mod fio;
mod in_process;
mod markdown;
mod options;
mod redb;
mod rounds;
mod sizes;

use std::process::ExitCode;
use std::time::Instant;

use afflux_rig::words::{Half, printed, program};
use options::Options;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match redb::turn_of(&words) {
        Some(figures) => printed(figures),
        None => program(|places, words, told| race(&Options::new(places, words), told)),
    }
}

fn race(options: &Options, told: &mut dyn FnMut(String)) -> Result<String, String> {
    let begin = Instant::now();
    let mut told = |what: &str| told(format!("[{:>3} s] {what}", begin.elapsed().as_secs()));
    told(&options.time());
    let mut groups = Vec::new();
    let wants = |half| options.half.is_none_or(|only| only == half);
    if wants(Half::Memory) {
        groups.extend(in_process::run(options, &mut told));
    }
    if wants(Half::Redb) {
        groups.push(redb::run(options, &mut told));
    }
    if wants(Half::Fio) {
        groups.extend(fio::run(options, &mut told));
    }
    artifacts::write(&options.artifacts, &groups)?;
    told("done");
    Ok(markdown::text(&groups))
}
