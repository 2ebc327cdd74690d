//! Runs cases in a Debian of its own under QEMU, with Linux's own NFS client, systemd and device mapper.
//!
//! Owns: the order of a run, the verdicts.
//! Does not own: the words (`words`), the choice of cases (`cases`), the Debian (`root`), the disk with programs and
//! scripts (`kit`). Nor the emulated machine (`machine`), its messages (`talk`), the server and the client on this host
//! (`host_server`, `host_load`), their end with this process (`tied`), the cases (`tests/guest`), the run in
//! instruction time (`law`).
//! Invariants: a case that ends its guest is wrong. The cases after a wrong one get a fresh guest. The root's image is
//! never changed. Every case gets one verdict. A killed run leaves no process and no image behind.

mod archive;
mod cases;
mod host_load;
mod host_server;
mod kit;
pub(crate) mod law;
mod machine;
mod root;
mod talk;
pub(crate) mod tied;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use afflux_scratch::Scratch;
use anyhow::{Context, Result, ensure};

use crate::words::Guest;
use crate::{ci, repository};
use cases::Case;
use host_load::HostLoad;
use host_server::HostServer;
use kit::Kit;
use machine::{Answer, Machine};
use talk::Event;

/// Time that a guest may take for its start, and for the end of a case beyond the case's limit.
const BOOT_MAX: Duration = Duration::from_secs(600);

/// Lines of a wrong case that the run shows.
const LAST_LINES: usize = 20;

/// The line of a wrong case before the state of its guest, which stands in the log alone.
const STATE: &str = "-- ";

struct Outcome {
    case: String,
    verdict: &'static str,
    seconds: f64,
    /// Lines that the case wants kept.
    figures: Vec<String>,
}

/// Makes the Debian and the kit, and runs the named cases, or all.
pub(crate) fn run(words: &Guest) -> Result<()> {
    let cases = words.wanted()?;
    if words.list {
        cases.iter().for_each(|case| println!("{}", case.name));
        return Ok(());
    }
    ci::install_guest()?;
    let root = root::made(words.release(), words.rebuild)?;
    if words.debian {
        return Ok(());
    }
    let scratch = Scratch::guarded(&repository::target(), "guest")?;
    let kit = Kit::made(words, &cases, scratch.path())?;
    let logs = repository::target().join("guest").join("logs");
    if logs.exists() {
        fs::remove_dir_all(&logs).context("the old logs")?;
    }
    fs::create_dir_all(&logs).context("a folder for logs")?;
    let mut run = Run { words, logs: &logs, outcomes: Vec::new() };
    while run.outcomes.len() < cases.len() {
        let cases = &cases[run.outcomes.len()..];
        let image = kit.image(scratch.path(), cases)?;
        let machine = Machine::start(words, &root, &image, scratch.path(), &logs)?;
        run.boot(machine, &mut HostServer::new(&kit, scratch.path()), cases)?;
    }
    run.end()
}

struct Run<'a> {
    words: &'a Guest,
    logs: &'a Path,
    outcomes: Vec<Outcome>,
}

impl Run<'_> {
    /// Runs cases in one guest, until all have ended or the guest has.
    fn boot(&mut self, mut machine: Machine, server: &mut HostServer<'_>, cases: &[Case]) -> Result<()> {
        let first = self.outcomes.len();
        let (mut began, mut log, mut lines) = (Instant::now(), None::<File>, Vec::new());
        let (mut limit, mut load) = (BOOT_MAX, HostLoad::new(repository::built("dev").join("kill-race")));
        loop {
            let left = limit.saturating_sub(began.elapsed());
            let event = match machine.hear(left)? {
                Answer::Said(line) => talk::event(&line),
                Answer::Silent => return self.lost(&cases[self.outcomes.len() - first], began, lines, "it hangs"),
                Answer::Ended => {
                    return self.lost(&cases[self.outcomes.len() - first], began, lines, "the guest ended");
                }
            };
            match event {
                Event::Case(name) => {
                    let case = &cases[self.outcomes.len() - first];
                    ensure!(case.name == name, "the guest runs {name} instead of {}", case.name);
                    (began, limit, lines) = (Instant::now(), case.limit + BOOT_MAX, Vec::new());
                    log = Some(File::create(self.log(&name)).context("a case's log")?);
                }
                Event::End(code) => {
                    let verdict = match code {
                        0 => "right",
                        77 => "left out",
                        _ => "WRONG",
                    };
                    self.verdict(&cases[self.outcomes.len() - first], verdict, began, &lines);
                    if verdict == "WRONG" {
                        // It may have left anything behind.
                        return Ok(());
                    }
                    (began, limit) = (Instant::now(), BOOT_MAX);
                }
                Event::Monitor(words) => machine.tell(&machine.monitor(&words)?)?,
                Event::Server(word) => machine.tell(&server.obey(&word))?,
                Event::Load(words) => load.go_on(&words, &machine)?,
                Event::Reset => machine.reset()?,
                Event::All => return Ok(()),
                Event::Text(line) => {
                    if let Some(log) = &mut log {
                        writeln!(log, "{line}").context("a case's log")?;
                    }
                    lines.push(line);
                }
            }
        }
    }

    fn log(&self, case: &str) -> PathBuf {
        self.logs.join(format!("{}.log", case.replace([':', '@', ',', '='], "-")))
    }

    fn lost(&mut self, case: &Case, began: Instant, mut lines: Vec<String>, why: &str) -> Result<()> {
        lines.push(why.to_owned());
        self.verdict(case, "WRONG", began, &lines);
        Ok(())
    }

    /// Records the verdict of a case, and says it.
    fn verdict(&mut self, case: &Case, verdict: &'static str, began: Instant, lines: &[String]) {
        let seconds = began.elapsed().as_secs_f64();
        eprintln!("{verdict:8} {} ({seconds:.1} s)", case.name);
        let mut figures: Vec<String> =
            lines.iter().filter_map(|line| line.strip_prefix("= ")).map(str::to_owned).collect();
        match verdict {
            "WRONG" => {
                let own = lines.iter().position(|line| line.starts_with(STATE)).unwrap_or(lines.len());
                let from = own.saturating_sub(LAST_LINES);
                lines[from..own].iter().for_each(|line| eprintln!("         {line}"));
                eprintln!("         all of it: {}", self.log(&case.name).display());
            }
            "left out" => figures.extend(lines.last().cloned()),
            _ => {}
        }
        if verdict != "WRONG" {
            figures.iter().for_each(|figure| eprintln!("         {figure}"));
        }
        self.outcomes.push(Outcome { case: case.name.clone(), verdict, seconds, figures });
    }

    /// Prints the record, if it is wanted, and fails for wrong cases.
    fn end(self) -> Result<()> {
        if self.words.json {
            let cases = self.outcomes.iter().map(|outcome| {
                let Outcome { case, verdict, seconds, figures } = outcome;
                serde_json::json!({"case": case, "verdict": verdict, "seconds": seconds, "figures": figures})
            });
            println!("{}", serde_json::json!({"suite": self.words.release(), "cases": cases.collect::<Vec<_>>()}));
        }
        let wrong: Vec<_> = self
            .outcomes
            .iter()
            .filter(|outcome| outcome.verdict == "WRONG")
            .map(|outcome| outcome.case.as_str())
            .collect();
        ensure!(wrong.is_empty(), "wrong in the guest: {}", wrong.join(", "));
        Ok(())
    }
}
