//! The settings of `serve`, each declared once.
//!
//! Clap makes the flag, its help and its completion from a declaration. The same name in the environment and in the
//! configuration file follows from it: `--lock-memory` is `AFFLUX_LOCK_MEMORY` and `lock_memory`.
//!
//! Owns: names, defaults, possible values, help; reading a value.
//! Does not own: the sources and their order (`configuration`); knobs, which the engine's tables declare.
//! Invariants: each source's values are read by the same parser. An error names the source, the value and the possible
//! values.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use afflux_frames::FRAME_BYTES;
use afflux_linux_device::{HostMemory, IoChoice};
use afflux_nfs::{Network, Squash};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::{output, quantity, units};
use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Id, ValueEnum};
use tracing::level_filters::LevelFilter;

use crate::log;

#[cfg(feature = "object")]
use afflux_object::Compression;
#[cfg(feature = "object")]
use afflux_object_store::{DiskCache, check_endpoint, check_snapshot_name};

/// Headings of `afflux serve --help`.
const CACHE: &str = "Cache and disks";
const CALLERS: &str = "Callers and their rights";
const NAMES: &str = "Names and state";
#[cfg(feature = "object")]
const STORES: &str = "A volume in an object store";
const MOUNT: &str = "A mount on this host";
pub(crate) const WATCHING: &str = "Watching it";

/// The default address of the server.
const LISTEN: &str = "127.0.0.1:2049";

/// The names of a value that is on or off.
const ON_OR_OFF: [(&str, bool); 2] = [("on", true), ("off", false)];

/// The newest version of NFS that clients get, unless the user chooses.
const NFS_DEFAULT: &str = "4";
/// The versions, by name.
const NFS: [(&str, NfsVersion); 2] = [("3", NfsVersion::V3), ("4", NfsVersion::V4)];

/// How disks are driven, by name.
const IO: [(&str, IoChoice); 3] =
    [("auto", IoChoice::Auto), ("uring", IoChoice::Uring), ("syscalls", IoChoice::Syscalls)];

/// Whether the host's list of a user's groups counts, by the name of whose list counts.
const GROUPS: [(&str, bool); 2] = [("client", false), ("server", true)];

/// Whether clients get delegations, by the name of their kind.
const DELEGATIONS: [(&str, bool); 2] = [("none", false), ("read", true)];

/// The callers that become the anonymous user, by name.
const SQUASH: [(&str, Squash); 3] = [("root", Squash::Root), ("all", Squash::All), ("none", Squash::None)];

/// The settings of `serve` alone, which `mount` refuses.
pub(crate) const OF_SERVE: [&str; 19] = [
    "listen",
    "nfs",
    "rpcbind",
    "posix_locks",
    "delegations",
    "allow",
    "squash",
    "anon",
    "groups",
    "any_port",
    "read_only",
    "async_metadata",
    "subtree_check",
    "shared",
    "tls",
    "tls_required",
    "tls_clients",
    "tls_users",
    "mount",
];

/// The settings that take a mount.
pub(crate) const OF_MOUNT: [&str; 4] = ["kernel_cache", "sole", "sync", "dirsync"];

/// The settings that `serve` runs with.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeSettings {
    /// Where to listen; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = LISTEN, value_parser = |text: &str| address(text, LISTEN))]
    pub(crate) listen: SocketAddr,
    /// Newest version of NFS that clients get
    ///
    /// 4 offers 4.1 and 4.2 beside 3, with locks between clients and with programs on --mount.
    #[arg(long, value_name = "VERSION", default_value = NFS_DEFAULT, value_parser = one_of(NFS))]
    pub(crate) nfs: NfsVersion,
    /// Have the host's rpcbind name this server, unless it names another one
    ///
    /// Clients of version 3, showmount and autofs find it by that. off leaves the place to another server.
    #[arg(long, value_name = "ON|OFF")]
    #[arg(action = ArgAction::Set, default_value = "on", value_parser = one_of(ON_OR_OFF), hide_possible_values = true)]
    pub(crate) rpcbind: bool,
    /// Show the locks of clients to programs of this host, and theirs to clients
    ///
    /// Locks of bytes by fcntl, on the served directories themselves. A locked file takes a descriptor.
    #[arg(long)]
    pub(crate) posix_locks: bool,
    /// Delegations of clients of version 4: none, or read
    ///
    /// With read, a client reads a file from its own cache without asking, and is told before anybody else changes the
    /// file. Directories take --sole, the promise that nobody changes them but through this server.
    #[arg(long, value_name = "KIND", default_value = "none", action = ArgAction::Set)]
    #[arg(value_parser = one_of(DELEGATIONS), hide_possible_values = true)]
    pub(crate) delegations: bool,
    /// Memory for the cache, such as 512MiB or 2GiB [default: a quarter of memory, or half of what is available if that
    /// is less]
    #[arg(long, value_name = "SIZE", help_heading = CACHE, value_parser = cache_bytes)]
    pub(crate) cache: Option<u64>,
    /// Keep the cache over a kill, in FILE on a tmpfs or by systemd
    ///
    /// The next server finds the unwritten data, and clients go on. It takes the right to open files by handle. A stop
    /// in order removes FILE. The word systemd has the service manager keep memory, socket and mount: its unit needs
    /// FileDescriptorStoreMax=. A mount takes that alone. For a file of that name say ./systemd.
    #[arg(long, value_name = "FILE|systemd", help_heading = CACHE)]
    #[arg(value_parser = PathBufValueParser::new().map(ArenaLocation::named))]
    pub(crate) arena: Option<ArenaLocation>,
    /// How disks are read and written
    ///
    /// auto uses io_uring where the host has it.
    #[arg(long, value_name = "HOW", help_heading = CACHE, default_value = "auto", value_parser = one_of(IO))]
    pub(crate) io: IoChoice,
    /// Put memory behind the whole cache after the start
    #[arg(long, value_name = "ON|OFF", help_heading = CACHE)]
    #[arg(action = ArgAction::Set, default_value = "on", value_parser = one_of(ON_OR_OFF), hide_possible_values = true)]
    pub(crate) prefault: bool,
    /// Lock the server's memory, so that its own host can mount it
    #[arg(long, value_name = "HOW", help_heading = CACHE, default_value = "auto")]
    pub(crate) lock_memory: LockMemory,
    #[command(flatten)]
    pub(crate) at_once: ReloadedSettings,
    /// Refuse handles of files that were moved out of the directories
    ///
    /// Those of directories moved out are always refused. Objects are then found by name, which takes a walk after a
    /// restart.
    #[arg(long, help_heading = NAMES)]
    pub(crate) subtree_check: bool,
    /// Serve a directory even if another server serves it, or a part of it
    ///
    /// A file loses bytes if clients of both servers write to it.
    #[arg(long, help_heading = NAMES)]
    pub(crate) shared: bool,
    #[command(flatten)]
    pub(crate) tls: TlsSettings,
    #[cfg(feature = "object")]
    #[command(flatten)]
    pub(crate) store: StoreSettings,
    #[command(flatten)]
    pub(crate) mount: MountSettings,
    /// Directory for state that outlives the server [default: ~/.local/state/afflux]
    ///
    /// It has the disks' measured speeds and the key of clients' handles. The default is $XDG_STATE_HOME/afflux if that
    /// is set, and /var/lib/afflux for root.
    #[arg(long, value_name = "DIR", help_heading = NAMES)]
    pub(crate) state: Option<PathBuf>,
    /// Control socket for stat, top, set and others [default: a path that these commands know]
    #[arg(long, value_name = "PATH", help_heading = WATCHING)]
    pub(crate) control: Option<PathBuf>,
    /// Serve figures for Prometheus at http://ADDR:PORT/metrics
    ///
    /// To anyone who can connect; port 0 picks a free one.
    #[arg(long, value_name = "ADDR:PORT", help_heading = WATCHING, value_parser = metrics_address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Level of the log
    ///
    /// Under systemd with the journal's priorities.
    #[arg(long, value_name = "LEVEL", help_heading = WATCHING, default_value = "info", value_parser = one_of(log::LEVELS))]
    pub(crate) log: LevelFilter,
    /// Directories to serve [default: `directories` of the configuration file]
    // The last one: the words after it are no flags.
    #[arg(value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
}

/// The settings of TLS.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TlsSettings {
    /// Encrypt for clients that ask for it
    ///
    /// Linux's clients mount with -o xprtsec=tls. PEM files: CERT with the certificate and those up to an authority
    /// that clients know, KEY without a password. A renewed certificate is in use a second later.
    #[arg(long = "tls", id = "tls", value_names = ["CERT", "KEY"], num_args = 2, action = ArgAction::Set)]
    #[arg(help_heading = CALLERS)]
    pub(crate) identity: Vec<PathBuf>,
    /// Answer no call without TLS
    ///
    /// Linux's clients then take version 4: with version 3 they ask for the mount in the clear.
    #[arg(long = "tls-required", id = "tls_required", help_heading = CALLERS)]
    pub(crate) is_required: bool,
    /// Answer only clients with a certificate of an authority in FILE
    ///
    /// Linux's clients mount with -o xprtsec=mtls. Their addresses must be allowed, too. Others get no connection with
    /// TLS, and no answer without it.
    #[arg(long = "tls-clients", id = "tls_clients", value_name = "FILE", help_heading = CALLERS)]
    pub(crate) clients: Option<PathBuf>,
    /// Carry out the calls of other machines as the user that their certificate names
    ///
    /// The name is in the certificate's subjectAltName, as otherName 1.3.6.1.4.1.2238.1.1.1 (USER@DOMAIN), and is a
    /// user's name of this host; the domain does not count. What calls claim counts only with a certificate without
    /// such a name. A user that this host does not know gets no answer.
    #[arg(long = "tls-users", id = "tls_users", help_heading = CALLERS)]
    pub(crate) has_users: bool,
}

impl TlsSettings {
    /// All its files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.identity.iter().chain(&self.clients).map(PathBuf::as_path)
    }
}

/// The settings of a mount on this host.
#[derive(Clone, Debug, Args)]
pub(crate) struct MountSettings {
    /// Mount the directory on this host, too, at POINT
    #[arg(long = "mount", id = "mount", value_name = "POINT", help_heading = MOUNT)]
    pub(crate) point: Option<PathBuf>,
    /// Let the kernel keep what programs read
    ///
    /// Small reads are several times as fast, and what is read takes memory twice. Writes pass the kernel by.
    #[arg(long, help_heading = MOUNT)]
    pub(crate) kernel_cache: bool,
    /// Promise that nobody changes the directory but through this server
    ///
    /// The kernel keeps names and attributes for an hour. A mount over the directory itself does so anyway. Without a
    /// mount it is for --delegations.
    #[arg(long, help_heading = MOUNT)]
    pub(crate) sole: bool,
    /// Have every change of the mount durable before its call returns, as mount(8)'s sync does
    #[arg(long, help_heading = MOUNT)]
    pub(crate) sync: bool,
    /// Have changes of names durable before their call returns, as mount(8)'s dirsync does
    #[arg(long, help_heading = MOUNT)]
    pub(crate) dirsync: bool,
}

impl MountSettings {
    /// Whether a setting of a mount is there that needs one. With delegations the promise has another use.
    pub(crate) fn needs_point(&self, has_delegations: bool) -> bool {
        self.kernel_cache || self.sole && !has_delegations || self.sync || self.dirsync
    }
}

/// The settings of a volume in an object store.
#[cfg(feature = "object")]
#[derive(Clone, Debug, Args)]
pub(crate) struct StoreSettings {
    /// Address of an S3 store of one's own, such as http://store:9000
    #[arg(long, value_name = "URL", help_heading = STORES)]
    pub(crate) endpoint: Option<String>,
    /// Wait until no other host serves the volume, then serve it
    #[arg(long, help_heading = STORES)]
    pub(crate) standby: bool,
    /// Take the volume over from the host that serves it
    ///
    /// That host ends. Its clients' committed data is all there.
    #[arg(long, help_heading = STORES, conflicts_with = "standby")]
    pub(crate) take_over: bool,
    /// Only read a volume that another server writes, about three seconds behind it
    #[arg(long, help_heading = STORES, conflicts_with_all = ["standby", "take_over"])]
    pub(crate) follow: bool,
    /// Only read a snapshot of the volume (`afflux snapshot`)
    #[arg(long, value_name = "NAME", help_heading = STORES, conflicts_with_all = ["standby", "take_over", "follow"])]
    pub(crate) snapshot: Option<String>,
    /// How new bytes are stored: zstd, zstd:LEVEL (1 to 19), lz4, or none [default: zstd]
    ///
    /// Bytes that do not become shorter stay as they are. All forms can be read. A program that knows no compression
    /// refuses the volume once it has compressed bytes.
    #[arg(long, value_name = "HOW", help_heading = STORES, value_parser = compression)]
    pub(crate) compression: Option<Compression>,
    /// Keep parts of the volume on a local disk, in DIR
    ///
    /// They are there after a restart, too. Bytes that are read once, in a stream, do not wear the disk out. Each
    /// server takes a directory of its own.
    #[arg(long, value_name = "DIR", help_heading = STORES)]
    pub(crate) disk_cache: Option<PathBuf>,
    /// Space of --disk-cache, such as 100GiB; all of it is reserved at once
    #[arg(long, value_name = "SIZE", help_heading = STORES, value_parser = disk_cache_bytes)]
    pub(crate) disk_cache_size: Option<u64>,
}

/// The settings that a reload changes at once, as it does all knobs. The others wait for the next start.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReloadedSettings {
    /// Answer other machines with these addresses; may be given several times
    ///
    /// With =ro behind an address, for reading only.
    #[arg(long, value_name = "ADDR[/BITS][=ro]", help_heading = CALLERS, value_delimiter = ',')]
    pub(crate) allow: Vec<Network>,
    /// Which callers become the anonymous user
    ///
    /// root is root of other machines; all is every caller, including this machine's users.
    #[arg(long, value_name = "WHO", help_heading = CALLERS, default_value = "root", value_parser = one_of(SQUASH))]
    pub(crate) squash: Squash,
    /// User and group of the anonymous user
    #[arg(long, value_name = "UID:GID", help_heading = CALLERS, default_value = "65534:65534", value_parser = anonymous)]
    pub(crate) anon: (u32, u32),
    /// Whose list of groups counts for users of other machines
    ///
    /// A client lists at most 16 groups of a user. The server has all, from this host's files and directory services.
    /// It asks for them again after ten minutes.
    #[arg(long, value_name = "WHOSE", help_heading = CALLERS, default_value = "client", action = ArgAction::Set,
          value_parser = one_of(GROUPS))]
    pub(crate) groups: bool,
    /// Answer other machines also from ports above 1023
    ///
    /// Every program there may use such a port: any user of an allowed machine can then call as any other.
    #[arg(long, help_heading = CALLERS)]
    pub(crate) any_port: bool,
    /// Refuse every change
    #[arg(long, help_heading = CALLERS)]
    pub(crate) read_only: bool,
    /// Answer changes of names before they are durable: for many small files
    ///
    /// Changes of attributes, too, as `async` does in other servers' exports. A crash of this host may lose the last
    /// changes, although the server had answered the clients.
    #[arg(long, help_heading = NAMES)]
    pub(crate) async_metadata: bool,
}

/// The newest version of NFS that a server offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NfsVersion {
    V3,
    /// 4.1 and 4.2, beside 3.
    V4,
}

/// The holder of the cache's memory after the server's death.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ArenaLocation {
    /// The service manager, in its store of descriptors.
    Systemd,
    /// A file on a tmpfs.
    File(PathBuf),
}

impl ServeSettings {
    /// Whether the service manager stores the cache's memory after the server's death.
    pub(crate) fn is_stored_by_systemd(&self) -> bool {
        self.arena == Some(ArenaLocation::Systemd)
    }

    /// Fails for a setting of stores that has no sense, or if directories alone are served.
    #[cfg(feature = "object")]
    pub(crate) fn check_store(&self) -> Outcome {
        let store = &self.store;
        if let Some(endpoint) = &store.endpoint {
            check_endpoint("--endpoint", endpoint).map_err(Failure::wrong_use)?;
        }
        if let Some(name) = &store.snapshot {
            check_snapshot_name(name).map_err(|why| Failure::wrong_use(format!("--snapshot: {why}")))?;
        }
        if store.disk_cache.is_some() != store.disk_cache_size.is_some() {
            return Err(Failure::wrong_use("--disk-cache and --disk-cache-size go together"));
        }
        let of_stores = [
            ("--endpoint", store.endpoint.is_some(), "is the address of a store"),
            ("--standby", store.standby, "waits for another host that serves a volume in a store"),
            ("--take-over", store.take_over, "takes over a volume in a store"),
            ("--follow", store.follow, "reads a volume in a store"),
            ("--snapshot", store.snapshot.is_some(), "reads a snapshot of a volume in a store"),
            ("--compression", store.compression.is_some(), "is of a volume in a store"),
            ("--disk-cache", store.disk_cache.is_some(), "keeps parts of a volume in a store"),
        ];
        // A mount's point is an argument beside its store.
        let directory = if self.has_store() { None } else { self.directories.first() };
        match (directory, of_stores.into_iter().find(|(_, is_set, _)| *is_set)) {
            (Some(place), Some((flag, _, what))) => Err(Failure::wrong_use(format!(
                "{flag} {what}, and {} is a directory (--read-only refuses every change)",
                output::shown(place.display())
            ))),
            _ => Ok(()),
        }
    }

    /// Fails if locks are to be shown where there are none.
    pub(crate) fn check_locks(&self) -> Outcome {
        if self.posix_locks && self.nfs == NfsVersion::V3 {
            return Err(Failure::wrong_use("--posix-locks shows locks of version 4, which --nfs 3 refuses"));
        }
        match self.directories.iter().find(|place| self.posix_locks && is_store(place)) {
            Some(store) => Err(Failure::wrong_use(format!(
                "--posix-locks takes directories of this host: no program has files of {} but through this server",
                output::shown(store.display())
            ))),
            None => Ok(()),
        }
    }

    /// Fails if delegations are asked for where others may change files, or where nobody could have one.
    pub(crate) fn check_delegations(&self) -> Outcome {
        let directory = self.directories.iter().find(|place| !is_store(place)).filter(|_| !self.mount.sole);
        let wrong = match directory {
            _ if !self.delegations => return Ok(()),
            _ if self.nfs == NfsVersion::V3 => "version 4 has delegations, which --nfs 3 refuses".to_owned(),
            _ if self.posix_locks => "with --posix-locks, programs of this host use the files".to_owned(),
            #[cfg(feature = "object")]
            _ if self.store.follow || self.store.snapshot.is_some() => {
                "this server does not write the volume".to_owned()
            }
            _ if self.shared => "with --shared, another server may serve the files".to_owned(),
            Some(directory) => format!(
                "{} takes --sole, the promise that nobody changes it but through this server",
                output::shown(directory.display())
            ),
            None => return Ok(()),
        };
        Err(Failure::wrong_use(format!("--delegations read: {wrong}")))
    }

    /// Whether a served directory is a store.
    pub(crate) fn has_store(&self) -> bool {
        self.directories.iter().any(|place| is_store(place))
    }
}

impl ArenaLocation {
    fn named(name: PathBuf) -> Self {
        if name.as_os_str() == "systemd" { Self::Systemd } else { Self::File(name) }
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Systemd => None,
            Self::File(path) => Some(path),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum LockMemory {
    /// Lock it if the server listens on loopback and has the right
    Auto,
    /// Lock it, or fail
    On,
    /// Do not lock it
    Off,
}

/// A value as text, or several, with their source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GivenValue {
    pub(crate) origin: String,
    pub(crate) texts: Vec<OsString>,
}

/// The flags of [`Settings`] on a command line. They retain their text, since a value of another source may stand where
/// a flag is absent.
#[derive(Clone, Debug)]
pub(crate) struct Flags(ArgMatches);

impl Flags {
    /// The values that the user gave, by setting.
    pub(crate) fn given(&self) -> impl Iterator<Item = (Id, GivenValue)> {
        let source = |arg: &Arg| self.0.value_source(arg.get_id().as_str());
        let typed = all().into_iter().filter(move |arg| source(arg) == Some(ValueSource::CommandLine));
        typed.map(|arg| {
            let raw = self.0.get_raw(arg.get_id().as_str()).into_iter().flatten().map(OsString::from);
            let texts = if is_switch(&arg) { vec!["on".into()] } else { raw.collect() };
            let origin = arg.get_long().map_or_else(|| "DIR".to_owned(), |long| format!("--{long}"));
            (arg.get_id().clone(), GivenValue { origin, texts })
        })
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        ServeSettings::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        ServeSettings::augment_args_for_update(command)
    }
}

/// The declarations of all settings.
pub(crate) fn all() -> Vec<Arg> {
    arguments::<ServeSettings>()
}

/// Whether a reload changes the setting at once.
pub(crate) fn may_act_at_once(setting: &Id) -> bool {
    arguments::<ReloadedSettings>().iter().any(|arg| arg.get_id() == setting)
}

fn arguments<A: Args>() -> Vec<Arg> {
    A::augment_args(Command::new("")).get_arguments().cloned().collect()
}

/// Whether the flag takes no value.
fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

/// Whether the value may be `on` or `off`: the file may also say `true` or `false`.
pub(crate) fn is_on_or_off(arg: &Arg) -> bool {
    is_switch(arg) || arg.get_possible_values().iter().any(|value| value.get_name() == "on")
}

/// Whether there may be several values.
pub(crate) fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append) || values_together(arg) > 1
}

/// The number of values behind one flag.
fn values_together(arg: &Arg) -> usize {
    arg.get_num_args().map_or(1, |range| range.min_values())
}

/// Reads all values. An error names the value's source.
pub(crate) fn read(values: &BTreeMap<Id, GivenValue>) -> Outcome<ServeSettings> {
    let command = ServeSettings::augment_args(Command::new("").no_binary_name(true).disable_help_flag(true));
    let mut all_words = Vec::new();
    for arg in command.get_arguments() {
        let Some(given) = values.get(arg.get_id()) else { continue };
        let words = words(arg, given)?;
        command.clone().try_get_matches_from(&words).map_err(|error| wrong(error, &given.origin))?;
        all_words.extend(words);
    }
    let matches = command.try_get_matches_from(all_words);
    matches.and_then(|matches| ServeSettings::from_arg_matches(&matches)).map_err(|error| wrong(error, "serve"))
}

/// The words of a command line with this value.
fn words(arg: &Arg, given: &GivenValue) -> Outcome<Vec<OsString>> {
    let Some(long) = arg.get_long() else {
        return Ok([OsString::from("--")].into_iter().chain(given.texts.iter().cloned()).collect());
    };
    let word = |text: &OsString| {
        let mut word = OsString::from(format!("--{long}="));
        word.push(text);
        word
    };
    let together = values_together(arg);
    if together > 1 {
        if given.texts.len() != together {
            let names: Vec<&str> = arg.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect();
            let (expected, found) = (names.join(" and "), given.texts.len());
            return Err(Failure::wrong_use(format!("{}: {expected} are expected, not {found} values", given.origin)));
        }
        return Ok([OsString::from(format!("--{long}"))].into_iter().chain(given.texts.iter().cloned()).collect());
    }
    if !is_switch(arg) {
        return Ok(given.texts.iter().map(word).collect());
    }
    match given.texts.iter().map(|text| text.to_string_lossy()).collect::<String>().as_str() {
        "on" => Ok(vec![format!("--{long}").into()]),
        "off" => Ok(Vec::new()),
        text => Err(Failure::wrong_use(format!("{}: '{text}' is neither on nor off", given.origin))),
    }
}

/// Clap's error, about the source in place of the flag.
fn wrong(mut error: clap::Error, origin: &str) -> Failure {
    error.insert(ContextKind::InvalidArg, ContextValue::String(origin.to_owned()));
    let text = error.render().to_string();
    Failure::wrong_use(text.trim_start_matches("error: ").trim_end())
}

/// Reads one of these names. Completions offer them, and help lists them.
pub(crate) fn one_of<T: Clone + Send + Sync + 'static>(
    values: impl IntoIterator<Item = (&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let values: Vec<_> = values.into_iter().collect();
    let names: Vec<_> = values.iter().map(|(name, _)| *name).collect();
    PossibleValuesParser::new(names).try_map(move |text| {
        let found = values.iter().find(|(name, _)| *name == text);
        found.map(|(_, value)| value.clone()).ok_or("there is no such name")
    })
}

/// Reads an address and port. The error shows `example`.
fn address(text: &str, example: &str) -> Result<SocketAddr, String> {
    let wrong = || match text.rsplit_once(':') {
        Some((host, port)) if is_name(host) && plain_number::<u16>(port).is_some() => {
            format!("'{host}' is a name; give an address of this machine and the port, such as {example}")
        }
        _ => format!("not an address and a port (0 to 65535; 0 picks a free one), such as {example}"),
    };
    text.parse().or_else(|_| {
        let host = text.strip_prefix("localhost:").ok_or_else(wrong)?;
        ("localhost", plain_number(host).ok_or_else(wrong)?)
            .to_socket_addrs()
            .ok()
            .and_then(|mut found| found.next())
            .ok_or_else(wrong)
    })
}

/// Whether a text is a host's name, and no address that was written wrong.
fn is_name(text: &str) -> bool {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    text != "localhost" && text.chars().all(is_of_name) && text.chars().any(|letter| letter.is_ascii_alphabetic())
}

/// Reads digits alone: no sign, and no zeros in front, which make octal numbers elsewhere.
fn plain_number<T: FromStr>(text: &str) -> Option<T> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

/// Reads an address for figures.
pub(crate) fn metrics_address(text: &str) -> Result<SocketAddr, String> {
    address(text, "127.0.0.1:9464")
}

fn cache_bytes(text: &str) -> Result<u64, String> {
    bytes(HostMemory::measured(), text)
}

#[cfg(feature = "object")]
fn disk_cache_bytes(text: &str) -> Result<u64, String> {
    let bytes = quantity::bytes(text)?;
    DiskCache::check_size(bytes).map(|()| bytes).map_err(|error| error.to_string())
}

/// Reads the numbers of a user and a group.
fn anonymous(text: &str) -> Result<(u32, u32), &'static str> {
    // The highest number belongs to no user: hosts take it for 'no change'.
    let number = |text: &str| plain_number::<u32>(text).filter(|number| *number < u32::MAX);
    let pair = text.split_once(':').and_then(|(user, group)| Some((number(user)?, number(group)?)));
    pair.ok_or("not a user's and a group's number (0 to 4294967294), such as 65534:65534")
}
/// The kinds of stores.
/// Reads `zstd`, `zstd:LEVEL`, `lz4` or `none`.
#[cfg(feature = "object")]
fn compression(text: &str) -> Result<Compression, String> {
    let (least, most) = Compression::ZSTD_LEVELS;
    let level = |level: &str| level.parse().ok().filter(|level| (least..=most).contains(level));
    let parsed = match text.split_once(':') {
        None if text == "zstd" => Some(Compression::Zstd(Compression::ZSTD_LEVEL)),
        None if text == "lz4" => Some(Compression::Lz4),
        None if text == "none" => Some(Compression::None),
        Some(("zstd", text)) => level(text).map(Compression::Zstd),
        _ => None,
    };
    parsed.ok_or_else(|| format!("it is none of zstd, zstd:{least} to zstd:{most}, lz4, none"))
}

const KINDS_OF_STORES: [&str; 5] = ["s3", "gs", "az", "file", "memory"];

/// Whether a served directory is, or is meant as, the address of a store. A directory called `s3:` is served as
/// `./s3:`.
pub(crate) fn is_store(place: &Path) -> bool {
    place.to_str().and_then(|text| text.split_once(':')).is_some_and(|(kind, behind)| {
        let is_kind = KINDS_OF_STORES.iter().any(|store| kind.eq_ignore_ascii_case(store));
        is_kind || (behind.starts_with("//") && !kind.contains('/'))
    })
}

/// Smallest cache that serves: it holds some requests of the largest size on every connection beside the dirty pages.
pub(crate) const BYTES_MIN: u64 = 16 << 20;

/// Lower bound of the default.
const DEFAULT_BYTES_MIN: u64 = 64 << 20;

/// A quarter of all memory or half of the available memory, whichever is less, but at least 64 MiB.
pub(crate) fn default_bytes(host: HostMemory) -> u64 {
    let bytes = (host.total_bytes / 4).min(host.available_bytes / 2).max(DEFAULT_BYTES_MIN);
    whole_frames(bytes.min(host.total_bytes))
}

/// Reads a size such as `512MiB`.
pub(crate) fn bytes(host: HostMemory, text: &str) -> Result<u64, String> {
    let (min, max) = (BYTES_MIN, host.total_bytes);
    let range = format!("{} to {}", units::memory(min), units::memory(max));
    let bytes = quantity::bytes(text).map_err(|why| format!("{why} ({range})"))?;
    if bytes < min || bytes > max {
        return Err(format!("out of range ({range}, all memory here)"));
    }
    Ok(whole_frames(bytes))
}

fn whole_frames(bytes: u64) -> u64 {
    bytes - bytes % FRAME_BYTES as u64
}

#[cfg(test)]
mod tests;
