//! Development tasks: `cargo xtask` lists them.
//!
//! Owns: the exit code.
//! Does not own: the words (`words`), the tasks themselves (`tidy`, `docs`, `ci`, `limited`, `races`, `mounted`,
//! `guest`, `uml`, `deb`, `c_library`, `fio_engine`, `sanitize`, `advisories`, `nightly`).
//! Invariants: a task that finds faults prints every one and exits with 1; wrong usage exits with 2.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is the purpose of tasks")]

mod advisories;
mod c_library;
mod ci;
mod deb;
mod docs;
mod fio_engine;
mod guest;
mod limited;
mod list;
mod mounted;
mod nightly;
mod notices;
mod races;
mod repository;
mod rules;
mod sanitize;
mod skips;
mod tidy;
mod uml;
mod words;

use std::process::ExitCode;

use anyhow::Result;

use words::XtaskCmd;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words.is_empty() {
        eprint!("{}", words::overview());
        return ExitCode::from(2);
    }
    if let Some(help) = words::asked_help(&words) {
        println!("{help}");
        return ExitCode::SUCCESS;
    }
    match obey(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<xflags::Error>() => {
            eprintln!("error: {error}; `cargo xtask {} --help` shows the words", words[0]);
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn obey(words: &[&str]) -> Result<()> {
    if words[0].starts_with("race") {
        return races::run(words);
    }
    match words::parsed(words)?.subcommand {
        XtaskCmd::Serve(serve) => ci::serve(&serve.words),
        XtaskCmd::Test(test) => ci::test(test.with_browser, test.as_user),
        XtaskCmd::Tidy(tidy) if tidy.renew => tidy::renew(),
        XtaskCmd::Tidy(_) => tidy::run(),
        XtaskCmd::Rules(_) => rules::print(),
        XtaskCmd::Docs(docs) => docs::write(docs.long),
        XtaskCmd::Mounted(words) => mounted::run(&words),
        XtaskCmd::Guest(words) => guest::run(&words),
        XtaskCmd::Uml(words) => uml::run(&words),
        XtaskCmd::GuestLaw(words) => guest::law::run(&words),
        XtaskCmd::Deb(words) => deb::run(words.profile.as_deref()),
        XtaskCmd::InstallC(words) => c_library::install(&words),
        XtaskCmd::FioEngine(words) => fio_engine::run(words.profile.as_deref()),
        XtaskCmd::Sanitize(words) => sanitize::run(words.which, &words.words),
        XtaskCmd::Advisories(_) => advisories::check(),
        XtaskCmd::Soak(soak) => ci::soak(&soak.words),
        XtaskCmd::Ci(ci) => ci::all(ci.with_browser, ci.forbid_skips),
        XtaskCmd::Nightly(_) => nightly::run(),
    }
}
