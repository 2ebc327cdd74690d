//! Manuals and completions of `afflux-lab` for its package: `package_files DIR`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stderr, dead_code, reason = "a tool of the build, with the command's own modules in it")]

#[path = "../src"]
mod command {
    pub(crate) mod args;
    pub(crate) mod knobs;
}
#[path = "../../../product/command/examples/package_files/pages.rs"]
mod pages;

use std::process::ExitCode;

use command::{args, knobs};

fn main() -> ExitCode {
    pages::run(args::Arguments::described())
}
