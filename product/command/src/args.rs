//! The command line.
//!
//! Owns: subcommands, flags, their help with an example each.
//! Does not own: what values mean; settings that the configuration can hold stay text until
//! `configuration` has layered them.
//! Invariants: a flag that has a counterpart in the configuration has the same name there.

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::knobs;

const SERVE_EXAMPLES: &str = "\
Examples:
  afflux serve /mnt/usb
  afflux serve /srv/a /srv/b --listen 127.0.0.1:0 --cache 512MiB --set dirty_ratio=20
  afflux serve /srv/team --listen 0.0.0.0:2049 --allow 192.0.2.0/24 --allow 198.51.100.7=ro

Run by root, it carries out each call as the user who makes it, with that user's rights. A process of this machine is
the user that its socket belongs to, whatever its calls say; root's processes, such as a mount, speak for anyone.
Run by somebody else, it carries out all calls as that user, and answers that user's and root's processes alone.
Other machines are answered where --allow names them, from ports below 1024. They are believed as to who calls, except
for root, who is nobody in particular there (--squash, --anon). Who is not answered gets AUTH_TOOWEAK.
One DIR is exported as /, several as /NAME each. Ctrl-C writes everything, then stops.
Settings also come from the configuration file and from the environment (AFFLUX_LISTEN,
AFFLUX_CACHE, AFFLUX_CONTROL, AFFLUX_IO, AFFLUX_LOCK_MEMORY, AFFLUX_LOG, AFFLUX_METRICS, AFFLUX_PREFAULT, AFFLUX_STATE,
AFFLUX_ALLOW, AFFLUX_SQUASH, AFFLUX_ANON, AFFLUX_<KNOB>); flags win over the environment, and the environment over the
file.";

const TOP_HELP: &str = "\
Examples:
  afflux top
  afflux top --once
  afflux top --json | jq '.devices[] | {name, owed_ns}'

Keys: q ends it; s sorts clients and files by what they write, what they wait for, or by name; p holds the picture, and
lets it go on; / shows only what has the letters that follow in its name (Enter takes them, Esc takes them back).
Without a terminal, as in `afflux top | tee log`, it prints plain lines every second.

Devices as of now, their rates over the last second; of clients and files the last five seconds.
Of a client: bytes that came from it and went back, calls and data; of a file: what its device was asked to write and read.
Asking for these costs the server an event for each request to a device, as `afflux trace` does.";

const SET_EXAMPLES: &str = "\
Examples:
  afflux set dirty_ratio=20
  afflux set dirty_expire_centisecs=500 --device sda1";

const GOVERN_EXAMPLES: &str = "\
Examples:
  sudo afflux govern
  sudo afflux govern --budget 500ms --device sdb=2s --device nvme0n1=off
  afflux govern --dry-run
  sudo afflux govern --status --watch
  sudo afflux govern --restore

For files that stay where they are: no server, no mount, only two values of each disk (max_ratio_fine, which max_bytes
shows in bytes, and strict_limit in /sys/class/bdi; Linux 6.2 or later). Each disk's speed is measured while it writes,
and no more may be dirty of it than it writes in its budget, so that a sync takes about as long. What is fast enough is
left alone; so is what others have set. Ctrl-C, SIGTERM and the next start put everything back.";

const EJECT_EXAMPLES: &str = "\
Examples:
  afflux eject sdb
  afflux eject /media/usb --unmount

Servers of this command that serve the disk write everything first.

Exits with 1 if something could not be written, or if anything else uses the disk: it is named.";

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
        Self::from_arg_matches(&Self::described().get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// The command with all that its help says. Manuals and completions are made from it, too, by the example
    /// `package_files`.
    pub(crate) fn described() -> clap::Command {
        let list = knobs::list();
        Self::command()
            .mut_subcommand("set", |set| set.after_long_help(format!("{SET_EXAMPLES}\n\n{list}")))
            .mut_subcommand("serve", |serve| serve.after_long_help(format!("{SERVE_EXAMPLES}\n\n{list}")))
    }
}

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one in a process")]
pub(crate) enum Command {
    /// Serve directories over NFSv3, through Afflux's own cache and writeback
    Serve(Serve),
    /// Show what a running server does
    Stat(Stat),
    /// Show all the time what a running server's devices, clients and files do and wait for
    Top(Top),
    /// Show who waited for a running server's devices, for what and how long
    Delays(Delays),
    /// Show what happens inside a running server, event by event
    Trace(Trace),
    /// Change a knob of a running server
    Set(Set),
    /// Have a running server write everything now, and wait for it
    Drain(Drain),
    /// Keep each disk of this machine to a time budget, in the kernel's own page cache
    Govern(Govern),
    /// Write out one device, and say when it is safe to unplug
    Eject(Eject),
    /// A command of afflux-lab
    #[command(hide = true, alias = "devices", alias = "calibrate", alias = "lab", disable_help_flag = true)]
    Simulate(Moved),
}

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct Serve {
    /// Directories to serve [default: `directories` of the configuration file]
    #[arg(value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Check the settings, and end without serving
    #[arg(long)]
    pub(crate) check: bool,
    /// Where to listen; port 0 picks a free one [default: 127.0.0.1:2049]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<String>,
    /// Memory for the cache, such as 512MiB or 2GiB [default: a quarter of memory]
    #[arg(long, value_name = "SIZE")]
    pub(crate) cache: Option<String>,
    /// Control socket for stat, trace, set and drain [default: one that they find by themselves]
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<String>,
    /// Set a knob (--help lists them); may be given several times
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    pub(crate) knobs: Vec<String>,
    /// Configuration file [default: ~/.config/afflux/config.toml if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How writers are throttled and dirty data is written: afflux, by the time that each device needs for it, or
    /// equal-parts, by shares of the dirty limit in bytes [default: afflux]
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// What is read ahead of readers: afflux, by what each device's reads cost, or linux, as Linux 6.1 does it
    /// [default: afflux]
    #[arg(long, value_name = "NAME")]
    pub(crate) readahead: Option<String>,
    /// Which clean pages are evicted when frames are needed: s3-window, s3-fifo, sieve or two-list [default: s3-window]
    #[arg(long, value_name = "NAME")]
    pub(crate) eviction: Option<String>,
    /// How disks are read and written: auto, uring or syscalls [default: auto]
    #[arg(long, value_name = "HOW")]
    pub(crate) io: Option<String>,
    /// Put memory behind the whole cache in the background after the start: on or off [default: on]
    #[arg(long, value_name = "ON|OFF")]
    pub(crate) prefault: Option<String>,
    /// Lock the server's memory, so that it can be mounted on its own host: auto (where it listens on loopback and may),
    /// on or off [default: auto]
    #[arg(long, value_name = "HOW")]
    pub(crate) lock_memory: Option<String>,
    /// How much is said of the server's own accord: off, error, warn, info, debug or trace; under systemd with the
    /// journal's priorities [default: info]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
    /// Give figures for Prometheus at http://ADDR:PORT/metrics, to whoever can connect; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<String>,
    /// Directory for what outlives the server: what was learned of the disks, the key of clients' handles [default:
    /// $XDG_STATE_HOME/afflux, ~/.local/state/afflux, or root's /var/lib/afflux]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<String>,
    /// Refuse handles of files that were moved out of the directories on this host, as those of directories
    /// always are; objects are then found by name, which after a restart takes a walk
    #[arg(long)]
    pub(crate) subtree_check: bool,
    /// Serve a directory even if another server serves it, one above it or one below it. A file that clients of both
    /// servers write to loses bytes
    #[arg(long)]
    pub(crate) shared: bool,
    /// Answer other machines with these addresses, for reading only with =ro; may be given several times
    #[arg(long, value_name = "ADDR[/BITS][=ro]")]
    pub(crate) allow: Vec<String>,
    /// Who is made nobody in particular: root of other machines, all (everybody, this machine's users, too) or none
    /// [default: root]
    #[arg(long, value_name = "WHO")]
    pub(crate) squash: Option<String>,
    /// User and group of whoever is nobody in particular [default: 65534:65534]
    #[arg(long, value_name = "UID:GID")]
    pub(crate) anon: Option<String>,
    /// Answer other machines from ports that every program may use there, too: then any user of an allowed machine can
    /// call as any other
    #[arg(long)]
    pub(crate) any_port: bool,
    /// Let nobody change anything
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Answer changes of names and attributes before they are durable, as `async` in other servers' exports: after
    /// a crash of this host the last ones may be missing, though clients were told that they are done
    #[arg(long)]
    pub(crate) async_metadata: bool,
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
#[command(after_help = TOP_HELP)]
pub(crate) struct Top {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Show what happens within a second as plain lines, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// One JSON object a second, on one line each
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  afflux delays\n  afflux delays --watch\n  \
    afflux delays --json | jq '.devices[].clients[] | {client, uid, read}'\n\nAs getdelays shows it for a task: for \
    each client (the address and user of an NFS caller; a file, where the call was for nobody in particular) and each \
    device what its calls waited for, since the server started. A call counts once for each thing that it waited for; \
    calls that waited for nothing are not in it.")]
pub(crate) struct Delays {
    #[command(flatten)]
    pub(crate) target: Target,
    /// One JSON object with all clients of all devices, on one line
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it again every second until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:\n  afflux trace\n  afflux trace --device sda1 --for 10s\n  \
    afflux trace --json | jq 'select(.event == \"pause_ends\") | .ns'\n  afflux trace record calls.trace --for 60s\n  \
    afflux trace show calls.trace\n\nShown is what happens from now on, until \
    Ctrl-C: pauses, syncs, COMMITs, turns of flushers, requests, knobs, devices. Tracing costs the server nothing \
    while nobody does it.")]
pub(crate) struct Trace {
    #[command(subcommand)]
    pub(crate) what: Option<TraceWhat>,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Of this device alone, by its name in `afflux stat`; what concerns all devices is shown too
    #[arg(long, value_name = "D")]
    pub(crate) device: Option<String>,
    /// End after so long, such as 500ms, 30s or 5min
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) lasting: Option<String>,
    /// One JSON object an event, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceWhat {
    /// Write which bytes clients of a running server read, write and sync to a file, for `simulate --trace-in`
    Record(TraceRecord),
    /// Show such a file, or a block trace in CSV, a call a line
    Show(TraceShow),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  afflux trace record calls.trace --for 60s\n\nUntil Ctrl-C or for the time given. \
    Recorded are READ, WRITE and COMMIT calls: when, of which file (by a number), where and how much, 40 bytes each; no \
    names, no contents. The server keeps at most 131,072 of them until they are fetched; what is lost is said.")]
pub(crate) struct TraceRecord {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) target: Target,
    /// End after so long, such as 500ms, 30s or 5min
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) lasting: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  afflux trace show calls.trace | head")]
pub(crate) struct TraceShow {
    /// What `trace record` wrote, or CSV: time_us,op,offset,bytes
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// One JSON object a call, one a line
    #[arg(long)]
    pub(crate) json: bool,
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
#[command(after_help = "Example:\n  afflux drain\n\n\
    Exits with 1 and names the files if some could not be written; they stay in the cache.")]
pub(crate) struct Drain {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Say progress and outcome as JSON objects, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = GOVERN_EXAMPLES)]
pub(crate) struct Govern {
    /// Time that each disk may owe, such as 500ms or 2s (10ms to 1h); off: only disks named with --device
    #[arg(long, value_name = "TIME|off", default_value = "1s", allow_hyphen_values = true)]
    pub(crate) budget: String,
    /// Another budget for this disk, such as sdb=200ms, or off; may be given several times
    #[arg(long = "device", value_name = "NAME=TIME|off")]
    pub(crate) devices: Vec<String>,
    /// Set limits by what is known from before, and end without putting anything back
    #[arg(long, conflicts_with_all = ["restore", "status"])]
    pub(crate) once: bool,
    /// Change nothing; print the limits that would be set now, and end
    #[arg(long, conflicts_with_all = ["restore", "status"])]
    pub(crate) dry_run: bool,
    /// Put back what a governor has left set: one that was killed, or --once
    #[arg(long, conflicts_with = "status")]
    pub(crate) restore: bool,
    /// Show each device: speed, budget, limit, what is dirty now, how long that takes to be written
    #[arg(long)]
    pub(crate) status: bool,
    /// With --status: show it again every second until Ctrl-C
    #[arg(long, requires = "status")]
    pub(crate) watch: bool,
    /// One JSON object an event, or with --status a device, one a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Give figures for Prometheus at http://ADDR:PORT/metrics, to whoever can connect; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", conflicts_with_all = ["once", "restore", "status"])]
    pub(crate) metrics: Option<String>,
    /// How much is said of the governor's own accord: off, error, warn, info, debug or trace; under systemd with the
    /// journal's priorities
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(crate) log: String,
    /// Directory for what was learned of disks [default: as for serve]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Where sys, proc and run are
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub(crate) root: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = EJECT_EXAMPLES)]
pub(crate) struct Eject {
    /// A disk, a part of one, or where it is mounted: sdb, /dev/sdb1, /media/usb
    #[arg(value_name = "DEVICE")]
    pub(crate) device: String,
    /// Unmount it, too, once all is written
    #[arg(long)]
    pub(crate) unmount: bool,
    /// Say progress and outcome as JSON objects, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a command of the other program was given.
#[derive(Debug, Args)]
pub(crate) struct Moved {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<std::ffi::OsString>,
}
