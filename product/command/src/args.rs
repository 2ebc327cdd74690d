//! The command line.
//!
//! Owns: subcommands, flags, and their help with an example each.
//! Does not own: the settings of `serve` (`settings`); the meaning of values.
//! Invariants: every command has an example.

use std::net::SocketAddr;
use std::path::PathBuf;

use afflux_manual::{DEVICE, ManualCommand};
use afflux_report::quantity;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing::level_filters::LevelFilter;

use crate::knobs;
use crate::log;
use crate::settings::{self, Flags, WATCHING};
#[cfg(feature = "object")]
use crate::stores;

/// Widest line of a help text; a narrower terminal has narrower ones.
const COLUMNS_MAX: usize = 110;

/// The commands by purpose, as the help lists them.
pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    ("Serve directories", &["serve", "mount", "umount", "set", "drain", "unlock"]),
    ("Watch a server", &["top", "stat", "clients", "delays", "trace"]),
    #[cfg(feature = "object")]
    ("Volumes in object stores", &["volumes", "check", "snapshot"]),
    ("The kernel's own disks", &["govern", "eject"]),
    ("This command", &["completions", "man", "help"]),
];

const SERVE_EXAMPLES: &str = "\
Examples:
  afflux serve /mnt/usb
  afflux serve /srv/a /srv/b --listen 127.0.0.1:0 --cache 512MiB --set dirty_ratio=20
  afflux serve /srv/team --listen 0.0.0.0:2049 --allow 192.0.2.0/24 --allow 198.51.100.7=ro";

const SERVE_MORE: &str = "\
A single DIR is exported as /, several as /NAME each. Ctrl-C writes everything, then stops.

Run by root, the server carries out each call with the rights of the calling user. A process of this machine counts as \
the owner of its socket, even if its calls claim another user; root's processes, such as a mount, may call for any user.

Run by another user, the server carries out all calls as that user, and answers only that user's and root's processes.

It answers other machines that --allow names, from ports below 1024, and trusts them to name the calling user. Their \
root becomes the anonymous user (--squash, --anon). Refused callers get AUTH_TOOWEAK.

Settings also come from the configuration file and from the environment: --lock-memory is lock_memory in the file and \
AFFLUX_LOCK_MEMORY in the environment, DIR is `directories` and AFFLUX_DIRECTORIES, a knob is AFFLUX_<KNOB>. Flags win \
over the environment, and the environment over the file.";

const MOUNT_EXAMPLES: &str = "\
Examples:
  sudo afflux mount /data /data
  sudo afflux mount /srv/disk /mnt/disk --cache 512MiB --set budget_ms=500
  sudo afflux mount s3://bucket/home /mnt/home";

const MOUNT_MORE: &str = "\
DIR, a directory or the address of an object store, is mounted on MOUNTPOINT by FUSE. A directory that is mounted over \
itself cannot be changed behind the cache: this is the recommended form. Ctrl-C, SIGTERM and umount(8) write \
everything, then end.

Run by root, the mount is for all users, and the kernel checks each user's rights. Run by another user, it is for \
that user alone, and needs fusermount3 (Debian's fuse3).

fsync and fsyncdir make names and bytes durable, as on the host's own file system. sync(2) and umount(8) do not reach \
a FUSE server: use fsync, or `afflux drain`.

In /etc/fstab the type is fuse.afflux, and flags without their dashes are options:

  /data  /data  fuse.afflux  cache=512MiB,_netdev  0  0

Settings come from the same places as those of `afflux serve`.";

const TOP_HELP: &str = "\
Examples:
  afflux top
  afflux top --once
  afflux top --json | jq '.devices[] | {name, owed_ns}'

The key ? lists the keys. Without a terminal, as in `afflux top | tee log`, it prints plain lines every second.

Devices are shown as of now, with rates over the last second; clients and files over the last five seconds. A client's \
bytes are received and sent ones, calls and data; a file's are those of requests to its device. This view costs the \
server an event for each request to a device, as `afflux trace` does.";

const SET_EXAMPLES: &str = "\
Examples:
  afflux set budget_ms=3000
  afflux set dirty_background_bytes=30MB dirty_bytes=60MB
  afflux set dirty_expire_centisecs=500 --device sda1";

const GOVERN_EXAMPLES: &str = "\
Examples:
  sudo afflux govern
  sudo afflux govern --budget 500ms --device sdb=2s --device nvme0n1=off
  afflux govern --dry-run
  sudo afflux govern --status --watch
  sudo afflux govern --restore

Files stay where they are, without a server or a mount: two values of each disk change (max_ratio_fine, which max_bytes \
shows in bytes, and strict_limit in /sys/class/bdi; Linux 6.2 or later). The governor measures a disk while it writes, \
and limits its dirty bytes to the amount that it writes within its budget, so that a sync takes about as long. It leaves alone \
fast disks and limits that others have set. Ctrl-C, SIGTERM and the next start put everything back.";

const EJECT_EXAMPLES: &str = "\
Examples:
  sudo afflux eject sdb
  sudo afflux eject /media/usb --unmount

Afflux servers that serve the disk write everything first.

Exits with 1 if something could not be written, or if anything else uses the disk, and names it.";

/// A page cache and writeback engine that serves directories over NFS.
#[derive(Debug, Parser)]
#[command(name = "afflux", version, arg_required_else_help = true, propagate_version = true)]
#[command(max_term_width = COLUMNS_MAX)]
#[command(
    help_template = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}"
)]
#[command(after_help = "Example:\n  afflux serve /mnt/usb\n  \
    afflux stat --watch\n\nExit codes: 0 done, 1 failed, 2 wrong use.")]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl CommandLine {
    /// Reads the command line. Ends the process if there is nothing to run (help, wrong use).
    pub(crate) fn read() -> Self {
        Self::from_arg_matches(&Self::described().get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// The command with its complete help. Manual pages and completions are made from it, too.
    pub(crate) fn described() -> clap::Command {
        let list = knobs::list();
        let mount = format!("{MOUNT_EXAMPLES}\n\n{MOUNT_MORE}\n\n{list}");
        let serve = format!("{SERVE_EXAMPLES}\n\n{SERVE_MORE}\n\n{list}");
        let command = Self::command()
            .mut_subcommand("set", |set| set.after_long_help(format!("{SET_EXAMPLES}\n\n{list}")))
            .mut_subcommand("serve", |it| it.after_long_help(serve))
            .mut_subcommand("mount", |it| mounting(it).after_help(MOUNT_EXAMPLES).after_long_help(mount));
        let list = groups(&command);
        afflux_manual::with_examples(command.before_help(list))
    }
}

/// The description of `mount`: that of `serve`, with two paths and without what is NFS's.
fn mounting(serve: clap::Command) -> clap::Command {
    let without = settings::OF_SERVE.iter().fold(serve, |command, name| command.mut_arg(name, |arg| arg.hide(true)));
    without.override_usage("afflux mount [OPTIONS] <DIR> <MOUNTPOINT>").mut_arg("directories", |paths| {
        paths
            .value_names(["DIR", "MOUNTPOINT"])
            // A path at a time, so that flags may stand between the two.
            .num_args(1..=2)
            .required(true)
            .help("The directory to mount, and where")
            .long_help("The directory to mount, and where. Both may be the same.")
    })
}

/// The commands of each group, one a line.
fn groups(command: &clap::Command) -> String {
    let about = |name: &&str| {
        let found = command.find_subcommand(name).and_then(clap::Command::get_about);
        let about = found.map_or_else(|| "Show the help of a command".to_owned(), ToString::to_string);
        format!("  {name:<13}{about}")
    };
    let group = |(title, names): &(&str, &[&str])| {
        format!("{title}:\n{}", names.iter().map(about).collect::<Vec<_>>().join("\n"))
    };
    GROUPS.iter().map(group).collect::<Vec<_>>().join("\n\n")
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve directories over NFS
    Serve(Serve),
    /// Mount a directory on this host through the cache
    Mount(Serve),
    /// Show a server's disks, clients and files once
    Stat(StatArgs),
    /// Show a server's disks, clients and files on a full screen
    Top(Top),
    /// List the clients of version 4, with their open files and locks
    Clients(ClientsArgs),
    /// Say why a server is slow, and name the waits of each client
    Delays(DelaysArgs),
    /// Show what happens inside a server, event by event
    Trace(TraceArgs),
    /// Change knobs of a running server
    Set(Set),
    /// Have a running server write everything now
    Drain(Drain),
    /// End a client of version 4, with its open files and locks
    Unlock(Unlock),
    /// Keep the kernel's writes to each disk to a time budget
    Govern(Govern),
    /// Write out one device, and say when it is safe to unplug
    Eject(Eject),
    /// Unmount a mount of `afflux mount`, and show how much is left to write
    Umount(Umount),
    /// List the volumes in a bucket
    #[cfg(feature = "object")]
    Volumes(stores::Volumes),
    /// Check a volume in an object store, and name what is damaged
    #[cfg(feature = "object")]
    Check(stores::Check),
    /// Make, list or remove snapshots of a volume in an object store
    #[cfg(feature = "object")]
    Snapshot(stores::SnapshotArgs),
    #[command(flatten)]
    Manual(ManualCommand),
    /// The process that unmounts at a mount's end
    #[command(name = crate::unmounter::COMMAND, hide = true)]
    UnmountAtEnd {
        /// The mount point
        point: PathBuf,
    },
    /// A command of afflux-lab
    #[command(hide = true, alias = "devices", alias = "calibrate", alias = "lab", disable_help_flag = true)]
    Simulate {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) settings: Flags,
    /// Set a knob (--help lists them); may be given several times
    #[arg(long = "set", value_name = "KNOB=VALUE")]
    pub(crate) knobs: Vec<String>,
    /// Configuration file [default: ~/.config/afflux/config.toml if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Check the settings, and end without serving
    #[arg(long)]
    pub(crate) check: bool,
    /// Once the server is ready, print what it serves as one JSON object
    #[arg(long, help_heading = WATCHING)]
    pub(crate) json: bool,
}

/// The running server that a command talks to.
#[derive(Debug, Args)]
pub(crate) struct ServerTarget {
    /// Control socket of the server [default: the one server that runs]
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  afflux stat\n  afflux stat --watch\n  afflux stat --verbose\n  \
    afflux stat --json | jq .counters.nr_written\n\nThe tables are those of `afflux top`; --verbose has a policy's \
    figures, the waits and the kernel's names. Rates are measured over half a second, with --watch over a second; all \
    other figures are as of now.")]
pub(crate) struct StatArgs {
    #[command(flatten)]
    pub(crate) target: ServerTarget,
    /// Every figure as lines, under the kernel's names where there are such
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) verbose: bool,
    /// The files with unwritten bytes, those with most first, and why each is not written
    #[arg(long, conflicts_with = "verbose")]
    pub(crate) files: bool,
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
    pub(crate) target: ServerTarget,
    /// Show one second as plain lines, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// One JSON object a second, on one line each
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  afflux clients\n  afflux clients 192.0.2.7\n  \
    afflux clients --json | jq '.clients[] | select(.status == \"courtesy\") | .number'\n\nA client is a machine that \
    mounts by version 4.1 or 4.2, or a program with a client of its own. The lease is the time in which the client has to \
    be heard. After that it is a courtesy client: it keeps its files and locks until somebody wants them. The columns \
    count open files, those that they deny to others, locks, programs that wait for a lock, and session slots in use.")]
pub(crate) struct ClientsArgs {
    /// Show all that these clients have open and locked: a number of the list, or an address
    #[arg(value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    #[command(flatten)]
    pub(crate) target: ServerTarget,
    /// One JSON object, on one line
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it again every second until Ctrl-C
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  afflux delays\n  afflux delays --watch\n  \
    afflux delays --json | jq '.devices[].clients[] | {client, uid, read}'\n\nAs getdelays does for a task, it shows \
    for each client (the address and user of an NFS caller; a file, if the caller is not known) and each \
    device what the calls waited for, since the server started. A call counts once for each cause of its waits; \
    calls that did not wait are left out. The sentence above names the main cause: the last second's with --watch, \
    else the cause since the start.")]
pub(crate) struct DelaysArgs {
    #[command(flatten)]
    pub(crate) target: ServerTarget,
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
    afflux trace show calls.trace\n\nShows what happens from now on, until \
    Ctrl-C: pauses, syncs, COMMITs, turns of flushers, requests, knobs, devices. Tracing costs the server nothing \
    unless somebody traces.")]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) what: Option<TraceWhat>,
    #[command(flatten)]
    pub(crate) target: ServerTarget,
    /// Only events of this device, by its name in `afflux stat`, and events that concern all devices
    #[arg(long, value_name = DEVICE)]
    pub(crate) device: Option<String>,
    /// End after this time, such as 500ms, 30s or 5min
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::nanoseconds)]
    pub(crate) lasting_ns: Option<u64>,
    /// One JSON object an event, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceWhat {
    /// Record in a file which bytes clients of a running server read, write and sync, for `afflux-lab replay`
    Record(TraceRecord),
    /// Show a recorded trace, or a block trace in CSV, one call a line
    Show(TraceShow),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  afflux trace record calls.trace --for 60s\n\nUntil Ctrl-C or for the time given. \
    Recorded are READ, WRITE and COMMIT calls: when, of which file (by a number), where and how much, 40 bytes each; no \
    names, no contents. The server keeps at most 131,072 of them until they are fetched; lost ones are counted.")]
pub(crate) struct TraceRecord {
    /// The file to write
    #[arg(value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) target: ServerTarget,
    /// End after this time, such as 500ms, 30s or 5min
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::nanoseconds)]
    pub(crate) lasting_ns: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  afflux trace show calls.trace | head")]
pub(crate) struct TraceShow {
    /// The trace: a file of `trace record`, or CSV: time_us,op,offset,bytes
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// One JSON object a call, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
pub(crate) struct Set {
    /// Knobs with their new values (--help lists them); all are checked before one changes
    #[arg(value_name = "KNOB=VALUE", required = true, value_parser = knobs::Assignment, hide_possible_values = true)]
    pub(crate) assignments: Vec<String>,
    /// Set them only for this device, by its name in `afflux stat`
    #[arg(long, value_name = DEVICE)]
    pub(crate) device: Option<String>,
    #[command(flatten)]
    pub(crate) target: ServerTarget,
    /// Print the outcome as JSON objects, one a knob and line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  afflux unlock 192.0.2.7\n\n\
    The client loses all its locks and open files at once, as if it were dead. One that lives after all is told so, and its \
    programs get errors. `afflux clients` lists the clients.")]
pub(crate) struct Unlock {
    /// The client: its number or its address in `afflux clients`
    #[arg(value_name = "CLIENT")]
    pub(crate) client: String,
    #[command(flatten)]
    pub(crate) target: ServerTarget,
    /// Print the outcome as a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  afflux drain\n\n\
    Exits with 1 and names the files if some could not be written; they stay in the cache.")]
pub(crate) struct Drain {
    #[command(flatten)]
    pub(crate) target: ServerTarget,
    /// Print progress and outcome as JSON objects, one a line
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
    /// Set the limits from speeds measured earlier, and end without putting anything back
    #[arg(long, conflicts_with_all = ["restore", "status"])]
    pub(crate) once: bool,
    /// Change nothing; print the limits that would be set now, and end
    #[arg(long, conflicts_with_all = ["restore", "status"])]
    pub(crate) dry_run: bool,
    /// Put back what a killed governor, or one with --once, has left set
    #[arg(long, conflicts_with = "status")]
    pub(crate) restore: bool,
    /// Show each device: speed, budget, limit, its dirty bytes, and how long writing them takes
    #[arg(long)]
    pub(crate) status: bool,
    /// With --status: show it again every second until Ctrl-C
    #[arg(long, requires = "status")]
    pub(crate) watch: bool,
    /// One JSON object an event, or with --status a device, one a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Serve figures for Prometheus at http://ADDR:PORT/metrics, to anyone who can connect; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", conflicts_with_all = ["once", "restore", "status"])]
    #[arg(value_parser = settings::metrics_address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Level of the governor's log; under systemd with the journal's priorities
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = settings::one_of(log::LEVELS))]
    pub(crate) log: LevelFilter,
    /// Directory for the disks' measured speeds [default: as for serve]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Directory that holds sys, proc and run
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub(crate) root: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sudo afflux umount /data\n\n\
Exits with 1 if programs use the mount, or if something could not be written. umount(8) does the same where its helper \
umount.fuse.afflux is installed.")]
pub(crate) struct Umount {
    /// The mount point
    #[arg(value_name = "POINT")]
    pub(crate) point: PathBuf,
    /// Also while programs use it: they get errors from then on
    #[arg(long)]
    pub(crate) lazy: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EJECT_EXAMPLES)]
pub(crate) struct Eject {
    /// A disk, one of its partitions, or a mount point: sdb, /dev/sdb1, /media/usb
    #[arg(value_name = DEVICE)]
    pub(crate) device: String,
    /// Also unmount it once everything is written
    #[arg(long)]
    pub(crate) unmount: bool,
    /// Print progress and outcome as JSON objects, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests;
