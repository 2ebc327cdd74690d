//! The command line.
//!
//! Owns: subcommands, flags, their help with an example each.
//! Does not own: what values mean; settings that the configuration can hold stay text until
//! `configuration` has layered them.
//! Invariants: a flag that has a counterpart in the configuration has the same name there.

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use engine::settings::{KNOBS, Scope};

use crate::units;

const SERVE_EXAMPLES: &str = "\
Examples:
  afflux serve /mnt/usb
  afflux serve /srv/a /srv/b --listen 127.0.0.1:0 --cache 512MiB --set dirty_ratio=20

One DIR is exported as /, several as /NAME each. Ctrl-C writes everything, then stops.
Settings also come from the configuration file and from the environment (AFFLUX_LISTEN,
AFFLUX_CACHE, AFFLUX_CONTROL, AFFLUX_IO, AFFLUX_<KNOB>); flags win over the environment, and
the environment over the file.";

const SET_EXAMPLES: &str = "\
Examples:
  afflux set dirty_ratio=20
  afflux set dirty_expire_centisecs=500 --device sda1";

/// A page cache and writeback engine that serves directories over NFSv3.
#[derive(Debug, Parser)]
#[command(name = "afflux", version, arg_required_else_help = true, propagate_version = true)]
#[command(after_help = "Example:\n  afflux serve /mnt/usb\n  \
    afflux stat --watch\n\nExit codes: 0 done, 1 failed, 2 wrong use.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Reads the command line; ends the process where there is nothing to run (help, wrong use).
    pub(crate) fn read() -> Self {
        let list = knob_list();
        let command = Self::command()
            .mut_subcommand("set", |set| set.after_long_help(format!("{SET_EXAMPLES}\n\n{list}")))
            .mut_subcommand("serve", |serve| serve.after_long_help(format!("{SERVE_EXAMPLES}\n\n{list}")));
        Self::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
    }
}

/// Every knob with its range, a line each.
fn knob_list() -> String {
    let width = KNOBS.iter().map(|info| info.name.len()).max().unwrap_or(0);
    let lines = KNOBS.iter().map(|info| {
        let (min, max, default) = (units::count(info.min), units::count(info.max), units::count(info.default));
        let each = if info.scope == Scope::Device { "; each device can have its own" } else { "" };
        format!("  {:width$}  {min} to {max} {}, default {default}{each}", info.name, info.unit)
    });
    format!("Knobs:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve directories over NFSv3, through Afflux's own cache and writeback
    Serve(Serve),
    /// Show what a running server does
    Stat(Stat),
    /// Change a knob of a running server
    Set(Set),
    /// Have a running server write everything now, and wait for it
    Drain(Drain),
    /// Measure what the engine's work costs a CPU of this machine, for the simulator
    Calibrate(Calibrate),
}

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct Serve {
    /// Directories to serve
    #[arg(value_name = "DIR", required = true)]
    pub(crate) directories: Vec<PathBuf>,
    /// Where to listen; port 0 picks a free one [default: 127.0.0.1:2049]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<String>,
    /// Memory for the cache, such as 512MiB or 2GiB [default: a quarter of memory]
    #[arg(long, value_name = "SIZE")]
    pub(crate) cache: Option<String>,
    /// Control socket for stat, set and drain [default: one that they find by themselves]
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<String>,
    /// Set a knob (--help lists them); may be given several times
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    pub(crate) knobs: Vec<String>,
    /// Configuration file [default: ~/.config/afflux/config.toml if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How disks are read and written: auto, uring or syscalls [default: auto]
    #[arg(long, value_name = "HOW")]
    pub(crate) io: Option<String>,
    /// Say what is served as one JSON object on one line once it is ready
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which running server a command is for.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Control socket of the server [default: the one server that runs]
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  afflux stat\n  afflux stat --watch\n  \
    afflux stat --json | jq .counters.nr_written\n\nRates are measured over half a second, with \
    --watch over a second; all else is as of now.")]
pub(crate) struct Stat {
    #[command(flatten)]
    pub(crate) target: Target,
    /// One JSON object with every counter by name under "counters"
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it again every second until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
pub(crate) struct Set {
    /// The knob and its new value (--help lists them)
    #[arg(value_name = "KNOB=VALUE")]
    pub(crate) assignment: String,
    /// Set it for this device alone, by its name in `afflux stat`
    #[arg(long, value_name = "D")]
    pub(crate) device: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Say the outcome as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  afflux drain && echo 'safe to unplug'\n\n\
    Exits with 1 and names the files if some could not be written; they stay in the cache.")]
pub(crate) struct Drain {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Say progress and outcome as JSON objects, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  afflux calibrate --output here.toml\n\n\
    Takes a few seconds and one CPU; leave the machine otherwise idle. Nothing touches a disk.")]
pub(crate) struct Calibrate {
    /// Write the costs as a table for the simulator
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The machine's name in the table [default: its CPU model]
    #[arg(long, value_name = "NAME")]
    pub(crate) machine: Option<String>,
    /// Fewer and shorter rounds
    #[arg(long)]
    pub(crate) quick: bool,
    /// Say the costs as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
