//! `afflux govern`: holds each disk of a stock kernel to a time budget.
//!
//! Owns: the loop's clock and its signals, the budgets that were asked for, speeds persisted between runs.
//! Does not own: the decisions and the host's files (crate `govern`), the words of events (`words`), the table
//! (`status`).
//! Invariants: unless the loop is killed, its end puts all settings back.

mod status;
#[cfg(test)]
mod tests;
mod words;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use afflux_budget::RememberedPrices;
use afflux_engine::settings::did_you_mean;
use afflux_govern::{BUDGET_NS_MAX, BUDGET_NS_MIN, Disk, Governor, GovernorEvent, GovernorOptions, Host, restore};
use tracing::{info, warn};

use rustix::process::geteuid;

use crate::args;
use crate::metrics::Publisher;
use crate::private_directory::{self, Missing, Refused};
use crate::serve::live::device_identity;
use crate::serve::persisted::persisted_prices::{Learned, PersistedPrices};
use crate::serve::persisted::{SPEEDS, StateDirectory};
use crate::{log, metrics, service};
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::{output, quantity};

/// Between two looks at the counters.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// In looks at the counters: between two searches for devices, between two notes for `--status`, between two saves of
/// speeds.
const LOOK_EVERY: u64 = 2;
const NOTE_EVERY: u64 = 10;
const KEEP_EVERY: u64 = 120;

pub(crate) fn run(args: &args::Govern) -> Outcome {
    let host = Host::new(&args.root);
    let directory = run_directory(&args.root);
    if args.status {
        return status::run(args, &host, &directory);
    }
    if !args.dry_run && geteuid().is_root() {
        private_directory::check(&directory, Missing::Make).map_err(|it| Failure::failed(Refused::reason(it)))?;
    }
    if args.restore {
        return put_back(args, &host, &directory);
    }
    let options = options(args)?;
    log::start(args.log);
    let figures = metrics::bind(args.metrics)?;
    let signalled = service::watch(service::Hangup::Ends, || std::process::exit(1));
    let (_, signalled) = signalled.or_failed("signals")?;
    let missing = if args.dry_run { Missing::Leave } else { Missing::Make };
    let state = StateDirectory::at(args.state.as_deref(), missing)?;
    let (prices, warnings) = PersistedPrices::read(state.shared_file(SPEEDS));
    warnings.iter().for_each(|warning| warn!("{warning}"));
    let (governor, events, warning) = Governor::start(host, options, &directory).map_err(Failure::failed)?;
    if let Some(warning) = warning {
        warn!("{warning}");
    }
    let telling = Publisher::default();
    if let Some(figures) = figures {
        let address = metrics::start(figures, telling.source(&args.root))?;
        info!("figures for Prometheus are at http://{address}/metrics");
    }
    let mut running = Running { args, governor, prices, telling };
    running.say(&events);
    running.check_names();
    service::notify_ready("Keeping each disk to its budget");
    let ran = if args.is_one_look() { running.once() } else { running.until(&signalled) };
    service::notify_stopping();
    running.keep();
    if args.is_one_look() && ran.is_ok() {
        return ran;
    }
    let Running { governor, telling, .. } = running;
    let ended = governor.end().map_err(Failure::failed);
    ran.and(ended.map(|events| say(args, &telling, &events)))
}

impl args::Govern {
    /// Whether it ends after one look at the disks.
    fn is_one_look(&self) -> bool {
        self.once || self.dry_run
    }
}

/// The directory with the settings that must be put back.
fn run_directory(root: &Path) -> PathBuf {
    root.join("run/afflux")
}

fn put_back(args: &args::Govern, host: &Host, directory: &Path) -> Outcome {
    let restored = restore(host, directory).map_err(Failure::failed)?;
    if restored.is_empty() && !args.json {
        output::say("There is nothing to put back.");
    }
    restored.into_iter().for_each(|it| words::say(&GovernorEvent::from(it), args.json));
    Ok(())
}

fn options(args: &args::Govern) -> Outcome<GovernorOptions> {
    let budget = |text: &str| budget(text).map_err(|why| Failure::wrong_use(format!("--budget: {why}")));
    let device = |text: &String| {
        let wrong = |why: String| Failure::wrong_use(format!("--device {text}: {why}"));
        let (name, time) =
            text.split_once('=').ok_or_else(|| wrong("it takes NAME=TIME, such as sdb=500ms".to_owned()))?;
        if name.is_empty() {
            return Err(wrong("the name of the disk is missing".to_owned()));
        }
        Ok((name.to_owned(), self::budget(time).map_err(wrong)?))
    };
    Ok(GovernorOptions {
        budget_ns: budget(&args.budget)?,
        devices: args.devices.iter().map(device).collect::<Outcome<_>>()?,
        dry_run: args.dry_run,
        known_only: args.once,
    })
}

/// A budget, or nothing for `off`.
fn budget(text: &str) -> Result<Option<u64>, String> {
    if text == "off" {
        return Ok(None);
    }
    let bounds = "budgets go from 10ms to 1h; off leaves a disk alone";
    match quantity::nanoseconds(text) {
        Ok(ns) if (BUDGET_NS_MIN..=BUDGET_NS_MAX).contains(&ns) => Ok(Some(ns)),
        Ok(_) => Err(format!("'{text}' is out of range: {bounds}")),
        Err(why) => Err(format!("'{text}' is {why}; {bounds}")),
    }
}

/// A governor, its clock, and the saved state of its disks.
struct Running<'a> {
    args: &'a args::Govern,
    governor: Governor,
    prices: PersistedPrices,
    /// Publishes events to the log and the figures.
    telling: Publisher,
}

/// A single look answers on standard output; a governor that stays running writes its events to the log.
fn say(args: &args::Govern, telling: &Publisher, events: &[GovernorEvent]) {
    let answers = args.is_one_look() || args.json;
    for event in events {
        if answers {
            words::say(event, args.json)
        } else {
            words::log(event)
        }
        telling.happened(words::name(event));
    }
}

impl Running<'_> {
    fn say(&self, events: &[GovernorEvent]) {
        say(self.args, &self.telling, events);
    }

    /// A name without a device may be plugged in later; it may also be a typing error.
    fn check_names(&self) {
        let host = Host::new(&self.args.root);
        let entries = std::fs::read_dir(self.args.root.join("sys/block")).into_iter().flatten();
        let disks: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        let names = self.args.devices.iter().filter_map(|text| Some(text.split_once('=')?.0));
        for name in names.filter(|name| host.whole(name).is_none() && host.disk(name).is_none()) {
            let near = output::shown(did_you_mean(name, disks.iter().map(String::as_str)));
            info!("there is no disk {} now{near}; its budget applies once it is there", output::shown(name));
        }
    }

    fn look(&mut self) -> Outcome {
        let (prices, root) = (&self.prices, &self.args.root);
        let known = |disk: &Disk| {
            let identity = identity(root, disk)?;
            RememberedPrices::from_named(&prices.of(&identity)).ok()
        };
        let events = self.governor.look(&known).map_err(Failure::failed)?;
        self.say(&events);
        self.telling.rows(self.governor.rows());
        Ok(())
    }

    fn once(&mut self) -> Outcome {
        self.look()?;
        let unknown = self.governor.rows().iter().filter(|row| row.bytes_per_second.is_none()).count();
        if unknown > 0 && self.args.once && !self.args.json {
            let (what, writes) = match unknown {
                1 => ("1 disk is".to_owned(), "it writes"),
                _ => (format!("{unknown} disks are"), "they write"),
            };
            output::remark(format_args!(
                "{what} left alone: how fast {writes} is not known yet. A run without --once measures and keeps that."
            ));
        }
        Ok(())
    }

    fn until(&mut self, signalled: &Receiver<service::SignalRequest>) -> Outcome {
        let start = Instant::now();
        for turn in 0_u64.. {
            self.governor.sample(start.elapsed().as_nanos() as u64);
            if turn.is_multiple_of(LOOK_EVERY) {
                self.look()?;
            }
            if turn.is_multiple_of(NOTE_EVERY) {
                self.governor.note().map_err(Failure::failed)?;
            }
            if turn % KEEP_EVERY == KEEP_EVERY - 1 {
                self.keep();
            }
            if signalled.recv_timeout(SAMPLE_EVERY) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
        Ok(())
    }

    /// Saves the disks' speeds for the next start. If that fails, the next start measures anew.
    fn keep(&mut self) {
        if self.args.dry_run {
            return;
        }
        let learned = self.governor.rows().into_iter().filter_map(|row| {
            let identity = identity(&self.args.root, &row.disk)?;
            Some(Learned { identity, name: row.disk.name, prices: row.remembered?.named() })
        });
        if let Err(error) = self.prices.keep(learned.collect()) {
            warn!("speeds are not kept: {error}");
        }
    }
}

fn identity(root: &Path, disk: &Disk) -> Option<String> {
    device_identity::identity_from_host(&root.join("sys/dev/block"), &disk.number, None)
}
