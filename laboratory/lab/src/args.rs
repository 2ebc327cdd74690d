//! The command line.
//!
//! Owns: subcommands, flags, their help with an example each.
//! Does not own: the meaning of values.

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use afflux_experiments::{Experiment, LabError, Label};
use afflux_manual::ManualCommand;
use afflux_report::{listing, quantity, units};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::knobs;

/// Headings of `afflux-lab simulate --help`.
const MACHINE: &str = "Simulated machine";
const REPORT: &str = "Report";

/// Widest line of a help text; a narrower terminal has narrower ones.
const COLUMNS_MAX: usize = 110;

const SIMULATE_EXAMPLES: &str = "\
Examples:
  afflux-lab simulate backup.fio --device usb2-disk
  afflux-lab simulate backup.fio --device usb2-disk --policy linux-6.1 --policy afflux
  afflux-lab simulate backup.fio --device usb2-disk --memory 512MiB --set dirty_ratio=20 --html run.html
  afflux-lab simulate db.fio log.fio --device nvme-ssd --device /var/log=usb2-disk --seed 7 --json
  afflux-lab simulate /usr/share/doc/fio/examples/ssd-test.fio --device nvme-ssd --check
  afflux-lab simulate randread.fio --device /dev/sdb=disk --output-format=json | jq .jobs[0].read.iops
  afflux-lab simulate nfs-client:size=1GB,link=100Mbit --device usb2-disk --set dirty_background_centisecs=100

Workloads: job files, as fio reads them (the jobs of a later file begin when the earlier ones have ended), and
  readers:count=1000,size=1MiB,block=512,over=0
      COUNT readers, one file each, start evenly over a time (none: all at once)
  nfs-client:size=1GB,record=32KiB,window=100MB,in-flight=64,link=100Mbit,delay=0.1ms,loss=0%
      a client writes a file to the NFS server over a link, and sends COMMIT whenever its window is full
which begin at once. The values shown are the defaults; both also take directory=DIR.

The engine of `afflux serve` runs the jobs in virtual time: all times and rates are simulated. The same seed gives the \
same run. Directories that a job names need not exist; --device DIR=NAME puts one on a disk of its own. `afflux-lab \
devices` describes the disks. Each of several policies gets its own run; the report shows them side by side, and --json \
gives an object for each, one a line.

Exit codes: 0 done, 1 failed (also: a job ended with an error, something could never be written, or the run was cut), 2 \
wrong use. The first Ctrl-C cuts the run and shows the figures so far, the second ends at once.";

const REPLAY_EXAMPLES: &str = "\
Examples:
  afflux-lab replay calls.trace --device usb2-disk
  afflux-lab replay calls.trace --device usb2-disk --memory 256MiB --policy linux-6.1 --policy afflux

Each call begins at the time at which it was recorded. A device of its own has no directory: DIR=NAME is for jobs.";

const RUN_EXAMPLES: &str = "\
Examples:
  afflux-lab run throttled --case recorded
  afflux-lab run s4 --html pages
  afflux-lab run s4 --help";

const FAULTS_HELP: &str = "\
A file of faults (TOML) has an entry for each:
  [[fault]]
  do = \"power-loss\"     # ends the run and reports the loss; so does kill
  at = \"20 s\"
  [[fault]]
  do = \"error\"          # others: lost, delay, hang, bad-sectors, no-space, link-cut
  target = \"write\"      # read, write, data, sync, layout, any
  file = \"/mnt/usb/backup.0.0\"
  times = 3
Keys: device, target, file, offset, len, medium, skip, times, probability_per_mille, from, until, every,
lasting, delay, at. Faults end with the jobs.";

/// Runs jobs, traces and experiments on simulated machines.
#[derive(Debug, Parser)]
#[command(name = "afflux-lab", version, arg_required_else_help = true, propagate_version = true)]
#[command(max_term_width = COLUMNS_MAX)]
#[command(after_help = "Example:\n  afflux-lab simulate backup.fio --device usb2-disk\n\n\
    Exit codes: 0 done, 1 failed, 2 wrong use.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Reads the command line. It ends the process if nothing is to run (help, wrong use).
    pub(crate) fn read() -> Self {
        Self::from_arg_matches(&Self::described().get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// The command with its whole help. Manual pages and completions are made from it, too.
    pub(crate) fn described() -> clap::Command {
        let knobs = listing("Knobs", knobs::of_simulation().all().map(|(_, info)| info.help_with(units::count)));
        let policies = policy_list();
        let more = move |head: &str| format!("{head}\n\n{FAULTS_HELP}\n\n{policies}\n\n{knobs}");
        let (simulate, replay) = (more(SIMULATE_EXAMPLES), more(REPLAY_EXAMPLES));
        let command = Self::command()
            .mut_subcommand("simulate", |it| it.after_long_help(simulate))
            .mut_subcommand("replay", |it| it.after_long_help(replay));
        afflux_manual::with_examples(command)
    }
}

/// Every policy with its description, one a line.
fn policy_list() -> String {
    let policies = afflux_workloads::simulation::policies();
    let width = policies.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = policies.iter().map(|(name, about)| format!("  {name:width$}  {about}"));
    format!("Policies:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Predict how a fio job would run on another disk, in virtual time
    Simulate(Simulate),
    /// Predict how the calls of a recorded trace would run on another disk, in virtual time
    Replay(Replay),
    /// List the disks that can be simulated, with their parameters and sources
    Devices(Devices),
    /// Measure how much CPU time the engine's work takes on this machine, for the simulator
    Calibrate(Calibrate),
    /// List the experiments
    List(List),
    /// Run an experiment, beside the published results
    Run(Run),
    #[command(flatten)]
    Manual(ManualCommand),
}

#[derive(Debug, Args)]
#[command(after_help = SIMULATE_EXAMPLES)]
pub(crate) struct Simulate {
    /// fio job files, and built-in workloads: readers:..., nfs-client:... (--help tells more)
    #[arg(value_name = "JOB.fio|WORKLOAD", required_unless_present = "trace_in")]
    pub(crate) jobs: Vec<String>,
    /// Replay a trace beside the jobs, as `afflux-lab replay` does; several run at once
    #[arg(long = "trace-in", value_name = "FILE")]
    pub(crate) trace_in: Vec<PathBuf>,
    /// The size of jobs that name none, such as 4g or 50%, as on fio's command line
    #[arg(long, value_name = "SIZE", value_parser = job_size)]
    pub(crate) size: Option<String>,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
}

fn job_size(text: &str) -> Result<String, String> {
    afflux_workloads::fio::check_size(text).map(|()| text.to_owned())
}

#[derive(Debug, Args)]
#[command(after_help = REPLAY_EXAMPLES)]
pub(crate) struct Replay {
    /// A file of `afflux trace record`, or a block trace in CSV (time_us,op,offset,bytes); several run at once
    #[arg(value_name = "FILE", required = true)]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) machine: MachineArguments,
}

/// The simulated machine, and the form of its report.
#[derive(Clone, Debug, Args)]
pub(crate) struct MachineArguments {
    /// The disk: a name of `afflux-lab devices`, or a file; DIR=NAME for one directory
    #[arg(long = "device", value_name = "[DIR=]NAME|FILE", help_heading = MACHINE)]
    pub(crate) devices: Vec<String>,
    /// Writeback policy: afflux, or a kernel's such as linux-6.1 (--help lists them); several: side by side [default:
    /// afflux]
    #[arg(long = "policy", value_name = "NAME", help_heading = MACHINE)]
    pub(crate) policies: Vec<String>,
    /// Readahead policy: afflux or linux [default: linux under a kernel's policy, else afflux]
    #[arg(long, value_name = "NAME", help_heading = MACHINE)]
    pub(crate) readahead: Option<String>,
    /// Which clean pages are evicted: s3-window or two-list [default: s3-window; two-list under a kernel's policy]
    #[arg(long, value_name = "NAME", help_heading = MACHINE)]
    pub(crate) eviction: Option<String>,
    /// Memory for the cache, such as 512MiB or 2GiB; the simulation itself needs up to a thirtieth of it
    #[arg(long, value_name = "SIZE", default_value = "1GiB", help_heading = MACHINE)]
    pub(crate) memory: String,
    /// Virtual CPUs
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = MACHINE)]
    pub(crate) cpus: u32,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Run this many times and give ranges: in each run but the first, jobs and clients begin up to 1 s later, at
    /// random
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) runs: u64,
    /// Set a knob (--help lists them); may be given several times
    #[arg(long = "set", value_name = "KNOB=VALUE", help_heading = MACHINE)]
    pub(crate) knobs: Vec<String>,
    /// Faults of disks, files and links: a file of faults (--help shows one)
    #[arg(long, value_name = "FILE", help_heading = MACHINE)]
    pub(crate) faults: Option<PathBuf>,
    /// Stop jobs that still run at this virtual time, such as 30s or 5min
    #[arg(long = "until", value_name = "TIME", value_parser = quantity::nanoseconds)]
    pub(crate) until_ns: Option<u64>,
    /// CPU costs of the engine's work: the name of a built-in table, or a file
    #[arg(long, value_name = "NAME|FILE", help_heading = MACHINE)]
    pub(crate) costs: Option<String>,
    /// One JSON object a policy, one a line: policy, seed, trace_hash, virtual_s, cut, real_s, jobs, engine, unwritten,
    /// loss, and shifted (the other runs of --runs)
    #[arg(long, help_heading = REPORT)]
    pub(crate) json: bool,
    /// Format of the report: normal, or json, one object a policy with fio's names where they mean the same
    #[arg(long, value_name = "FORMAT", default_value = "normal", value_parser = ["normal", "json"], conflicts_with = "json", help_heading = REPORT)]
    pub(crate) output_format: String,
    /// Read the jobs, print the plan and everything that is missing, and run nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Also take jobs whose simulation differs from fio's behaviour; each difference is printed
    #[arg(long)]
    pub(crate) approximate: bool,
    /// Write a page with plots; with -, to standard output, and the report to standard error
    #[arg(long, value_name = "FILE", help_heading = REPORT)]
    pub(crate) html: Option<PathBuf>,
    /// Write the last events of the run in words; - as with --html
    #[arg(long, value_name = "FILE", help_heading = REPORT)]
    pub(crate) trace: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  afflux-lab devices\n  afflux-lab devices usb2-disk\n  afflux-lab devices ./mine.toml\n  \
    afflux-lab devices --json | jq .name\n\n\
    A disk like one of these with another number: --device usb2-disk,write_cache_bytes=0. One of your own: a\n\
    TOML file with the same keys, as --device ./mine.toml; `afflux-lab devices ./mine.toml` checks it."
)]
pub(crate) struct Devices {
    /// Show these with the source of each number; files with disks of your own are checked
    #[arg(value_name = "NAME|FILE")]
    pub(crate) names: Vec<String>,
    /// One JSON object a disk, one a line, with all parameters and sources
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  afflux-lab calibrate --output here.toml\n\n\
    Takes a few seconds and one CPU; leave the machine otherwise idle. Nothing touches a disk.")]
pub(crate) struct Calibrate {
    /// Write the costs as a table for the simulator; with -, to standard output, and the rest to standard error
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The machine's name in the table [default: its CPU model]
    #[arg(long, value_name = "NAME")]
    pub(crate) machine: Option<String>,
    /// Fewer and shorter rounds
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print the costs as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  afflux-lab list")]
pub(crate) struct List {
    /// One JSON object an experiment
    #[arg(long)]
    pub(crate) json: bool,
}

/// The form in which a run is shown, and how much of it runs.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunForm {
    /// One JSON object a row, as soon as it is known
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page with tables and plots to DIR/NAME.html
    #[arg(long, value_name = "DIR")]
    pub(crate) html: Option<PathBuf>,
    /// Fewer cases, each as long as it has to be
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also run on this machine's hardware; needs root where a disk or a network must be slowed
    #[arg(long)]
    pub(crate) measured: bool,
}

/// The run of an experiment. Each experiment is a subcommand with options of its own.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) experiment: &'static Experiment,
    pub(crate) form: RunForm,
    /// The options of the experiment.
    pub(crate) options: ArgMatches,
}

impl Args for Run {
    fn augment_args(command: clap::Command) -> clap::Command {
        // The form may stand before the name or after it.
        let command = RunForm::augment_args(command).mut_args(|arg| arg.global(true)).after_help(RUN_EXAMPLES);
        let command = command.arg_required_else_help(true).subcommand_required(true).subcommand_value_name("NAME");
        // An unknown name is refused below, with the known ones.
        command
            .allow_external_subcommands(true)
            .subcommands(afflux_experiments::EXPERIMENTS.iter().copied().map(subcommand))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

/// The subcommand of an experiment.
fn subcommand(experiment: &'static Experiment) -> clap::Command {
    let labels = labels(experiment).into_iter().filter(|(_, words)| !words.is_empty());
    let labels = labels.map(|(label, words)| format!("\n  {label}: {}", words.join(", ")));
    let thread = experiment.thread;
    let more = format!("{thread}.\n\nFigures are predicted unless they are{}", labels.collect::<String>());
    experiment.command().after_help(more)
}

/// The cells of each label, in words.
pub(crate) fn labels(experiment: &Experiment) -> [(&'static str, Vec<&'static str>); 5] {
    Label::ALL.map(|label| {
        let cells = experiment.labels.iter().filter(|cells| cells.label == label);
        let mut words: Vec<&str> = cells.map(|cells| cells.what).collect();
        words.dedup();
        (label.words(), words)
    })
}

impl FromArgMatches for Run {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (name, matches) = matches.subcommand().ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        let unknown = |error: LabError| clap::Error::raw(ErrorKind::InvalidSubcommand, format!("{error}\n"));
        let experiment = afflux_experiments::experiment(name).map_err(unknown)?;
        Ok(Self { experiment, form: RunForm::from_arg_matches(matches)?, options: matches.clone() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
