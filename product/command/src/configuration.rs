//! The settings of `serve`, from flags, environment and file.
//!
//! Owns: the names that each source knows, which source wins, reading the values.
//! Does not own: knobs' ranges (the engine checks them) and the cache's (`cache_size`).
//! Invariants: flags win over the environment, the environment over the file, the file over defaults. An unknown name
//! is an error on the command line and in the file. In the environment it is a warning, since other programs set
//! variables, too (Kubernetes does, for a service called afflux). Every error names the place of the value.

mod callers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use afflux_engine::Readahead;
use afflux_engine::eviction::EvictionKind;
use afflux_engine::policy::EQUAL_PARTS_POLICY;
use afflux_engine::settings::{BackgroundShare, Shares, did_you_mean, near};
use afflux_nfs::{Network, Squash};

use afflux_budget::OWN_POLICY;
use tracing::level_filters::LevelFilter;

use crate::knobs;
use crate::log;
use crate::metrics;
use crate::{args, cache_size};
use afflux_linux::HostMemory;
use afflux_report::bounded_file;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;

/// The default address of `serve`.
pub(crate) const LISTEN_DEFAULT: &str = "127.0.0.1:2049";

/// The settings that are not knobs; the other subcommands also need `control`.
const NAMES: &[&str] = &[
    "listen",
    "cache",
    "allow",
    "anon",
    "any_port",
    "async_metadata",
    "control",
    DIRECTORIES,
    "eviction",
    "io",
    "lock_memory",
    "log",
    "metrics",
    "policy",
    "prefault",
    "read_only",
    "readahead",
    "shared",
    "squash",
    "state",
    "subtree_check",
];

/// The setting that has no flag: its values are the paths on the command line.
const DIRECTORIES: &str = "directories";

/// The settings that are on or off; the file may also say `true` or `false`.
const SWITCHES: &[&str] = &["any_port", "async_metadata", "prefault", "read_only", "shared", "subtree_check"];

/// The table of knobs in the configuration file.
const KNOB_TABLE: &str = "knobs";

const PREFIX: &str = "AFFLUX_";

/// Most unknown variables that a warning names one by one.
const UNKNOWN_NAMED_MAX: usize = 8;

/// Largest configuration file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// How disks are read and written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Io {
    /// io_uring where the host allows it, else system calls.
    Auto,
    /// io_uring, or fail.
    Uring,
    /// System calls on worker threads.
    Syscalls,
}

/// How writers are throttled and dirty data is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Policy {
    /// By the time that each device needs for its data.
    Budget,
    /// By shares of the dirty limit in bytes.
    EqualParts,
}

/// Whether memory is locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LockMemory {
    /// Locks if the server listens on loopback and has the right.
    Auto,
    /// Locks, or fails.
    On,
    /// Does not lock.
    Off,
}

/// The settings that `serve` runs with.
#[derive(Debug)]
pub(crate) struct Configuration {
    /// At least one.
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) listen: SocketAddr,
    pub(crate) cache_bytes: u64,
    pub(crate) control: Option<PathBuf>,
    pub(crate) io: Io,
    pub(crate) policy: Policy,
    pub(crate) readahead: Readahead,
    pub(crate) eviction: EvictionKind,
    /// Whether memory is put behind the whole cache in the background.
    pub(crate) prefault: bool,
    /// Other machines that are answered.
    pub(crate) networks: Vec<Network>,
    /// Which callers become the anonymous user.
    pub(crate) squash: Squash,
    /// User and group of the anonymous user.
    pub(crate) anonymous: (u32, u32),
    /// Whether other machines may call from ports that every program there may use.
    pub(crate) any_port: bool,
    /// Whether every change is refused.
    pub(crate) read_only: bool,
    /// Whether handles of files that were moved out of the directories are refused.
    pub(crate) subtree_check: bool,
    pub(crate) shared: bool,
    /// Whether changes of names and attributes are answered before they are durable.
    pub(crate) async_metadata: bool,
    /// Whether the server must be safe to mount on its own host.
    pub(crate) lock_memory: LockMemory,
    /// Level of the server's log.
    pub(crate) log: LevelFilter,
    /// Where figures for Prometheus are served.
    pub(crate) metrics: Option<SocketAddr>,
    /// Directory for state that outlives the server.
    pub(crate) state: Option<PathBuf>,
    /// `KNOB=VALUE`, each known and in range.
    pub(crate) knobs: Vec<String>,
    /// The other settings that were given, in their original text.
    pub(crate) given: BTreeMap<&'static str, String>,
    /// Ignored values, to be reported.
    pub(crate) warnings: Vec<String>,
}

/// A value as text, with its source.
#[derive(Clone, PartialEq, Eq, Debug)]
struct GivenValue {
    origin: String,
    text: String,
}

/// The values of all sources, later ones over earlier ones.
#[derive(Default, PartialEq, Eq, Debug)]
struct Layers {
    values: BTreeMap<&'static str, GivenValue>,
    knobs: BTreeMap<String, GivenValue>,
    directories: Vec<PathBuf>,
    /// Variables with our prefix that are not settings.
    unknown: Vec<String>,
}

/// Reads all sources for `serve`.
pub(crate) fn load(args: &args::Serve, host: HostMemory) -> Outcome<Configuration> {
    let variables = variables();
    let mut layers = Layers::default();
    if let Some(path) = file_path(args.config.as_deref(), &variables)? {
        layers.add_file(&path, &read_file(&path)?)?;
    }
    layers.add_environment(&variables)?;
    layers.add_flags(args)?;
    layers.checked(host)
}

/// The control socket in the environment, for the commands that talk to a server.
pub(crate) fn control_from_environment() -> Option<PathBuf> {
    env::var_os(format!("{PREFIX}CONTROL")).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The environment variables with our prefix.
fn variables() -> Vec<(String, OsString)> {
    env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect()
}

/// The configuration file: the one named, or the usual one if it exists.
fn file_path(flag: Option<&Path>, variables: &[(String, OsString)]) -> Outcome<Option<PathBuf>> {
    let named = variables.iter().find(|(name, _)| name == "AFFLUX_CONFIG").map(|(_, value)| Path::new(value));
    if let Some(path) = flag.or(named) {
        return Ok(Some(path.to_path_buf()));
    }
    let directory = env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".config")));
    Ok(directory.map(|directory| directory.join("afflux/config.toml")).filter(|path| path.exists()))
}

fn read_file(path: &Path) -> Outcome<String> {
    let shown = path.display();
    let failed =
        |error: &dyn std::fmt::Display| Failure::failed(format!("cannot read the configuration file {shown}: {error}"));
    let bytes = bounded_file::read(path, FILE_BYTES_MAX).map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|error| failed(&error))
}

impl Layers {
    fn add_file(&mut self, path: &Path, text: &str) -> Outcome {
        let shown = path.display();
        let table: toml::Table = text.parse().map_err(|error| Failure::wrong_use(format!("{shown}: {error}")))?;
        for (key, value) in table {
            if key == KNOB_TABLE {
                let toml::Value::Table(table) = value else {
                    return Err(Failure::wrong_use(format!("{shown}: '{KNOB_TABLE}' is not a table of knobs")));
                };
                for (knob, value) in table {
                    let origin = format!("{shown}: {KNOB_TABLE}.{knob}");
                    let name = knobs::name_of(&knob);
                    let name = name.map_err(|error| Failure::wrong_use(format!("{shown}: {error}")))?;
                    let text = plain(&origin, value)?;
                    self.knobs.insert(name.to_owned(), GivenValue { origin, text });
                }
                continue;
            }
            let allowed = NAMES.iter().copied().chain([KNOB_TABLE]);
            let name = known(&shown.to_string(), &key, allowed, "allowed are")?;
            let origin = format!("{shown}: {key}");
            if name == DIRECTORIES {
                self.directories = paths(&origin, value)?;
                continue;
            }
            let text = match value {
                toml::Value::Boolean(is_on) if SWITCHES.contains(&name) => on_or_off_word(is_on).to_owned(),
                toml::Value::Array(list) if name == "allow" => texts(&origin, list)?.join(","),
                value => plain(&origin, value)?,
            };
            self.values.insert(name, GivenValue { origin, text });
        }
        Ok(())
    }

    fn add_environment(&mut self, variables: &[(String, OsString)]) -> Outcome {
        for (variable, value) in variables {
            let key = variable.strip_prefix(PREFIX).unwrap_or(variable).to_lowercase();
            let given = || Ok(GivenValue { origin: variable.clone(), text: text_of(variable, value)?.to_owned() });
            if key == DIRECTORIES {
                self.directories = env::split_paths(value).filter(|path| !path.as_os_str().is_empty()).collect();
            } else if let Some(name) = NAMES.iter().find(|name| **name == key) {
                self.values.insert(name, given()?);
            } else if let Ok(name) = knobs::name_of(&key) {
                self.knobs.insert(name.to_owned(), given()?);
            } else if key != "config" {
                self.unknown.push(variable.clone());
            }
        }
        Ok(())
    }

    fn warnings(&self) -> Vec<String> {
        if self.unknown.is_empty() {
            return Vec::new();
        }
        let settings: Vec<String> =
            NAMES.iter().chain(&["config"]).map(|name| format!("{PREFIX}{}", name.to_uppercase())).collect();
        let knobs = knobs::of_server();
        let named = |variable: &String| {
            let key = variable.strip_prefix(PREFIX).unwrap_or(variable).to_lowercase();
            let known = NAMES.iter().copied().chain(knobs.all().map(|(_, info)| info.name));
            let nearest = near(&key, known).first().map(|name| format!("{PREFIX}{}", name.to_uppercase()));
            let meant = nearest.map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default();
            format!("{}{meant}", output::shown(variable))
        };
        let names: Vec<String> = self.unknown.iter().take(UNKNOWN_NAMED_MAX).map(named).collect();
        let rest = match self.unknown.len().saturating_sub(UNKNOWN_NAMED_MAX) {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        let are = if self.unknown.len() == 1 { "is not a setting and is" } else { "are not settings and are" };
        vec![format!(
            "the environment: {}{rest} {are} ignored (settings: {}, and {PREFIX}KNOB for each knob of `afflux serve \
             --help`)",
            names.join(", "),
            settings.join(", ")
        )]
    }

    fn add_flags(&mut self, args: &args::Serve) -> Outcome {
        let flags = [
            ("listen", &args.listen),
            ("cache", &args.cache),
            ("control", &args.control),
            ("io", &args.io),
            ("policy", &args.policy),
            ("readahead", &args.readahead),
            ("eviction", &args.eviction),
            ("prefault", &args.prefault),
            ("squash", &args.squash),
            ("anon", &args.anon),
            ("lock_memory", &args.lock_memory),
            ("log", &args.log),
            ("metrics", &args.metrics),
            ("state", &args.state),
            ("allow", &Some(args.allow.join(",")).filter(|_| !args.allow.is_empty())),
        ];
        for (name, value) in flags {
            if let Some(text) = value {
                self.values.insert(name, GivenValue { origin: flag(name), text: text.clone() });
            }
        }
        let switches = [
            ("any_port", args.any_port),
            ("async_metadata", args.async_metadata),
            ("read_only", args.read_only),
            ("shared", args.shared),
            ("subtree_check", args.subtree_check),
        ];
        for (name, _) in switches.into_iter().filter(|(_, is_given)| *is_given) {
            self.values.insert(name, GivenValue { origin: flag(name), text: on_or_off_word(true).to_owned() });
        }
        if !args.directories.is_empty() {
            self.directories.clone_from(&args.directories);
        }
        for text in &args.knobs {
            let (knob, value) =
                text.split_once('=').ok_or_else(|| Failure::wrong_use(format!("--set: '{text}' is not KNOB=VALUE")))?;
            let given = GivenValue { origin: "--set".to_owned(), text: value.to_owned() };
            let knob = knob.trim();
            self.knobs.insert(knobs::name_of(knob).unwrap_or(knob).to_owned(), given);
        }
        Ok(())
    }

    fn checked(self, host: HostMemory) -> Outcome<Configuration> {
        let warnings = self.warnings();
        let listen = match self.values.get("listen") {
            Some(given) => address(&given.origin, &given.text, LISTEN_DEFAULT)?,
            None => address("listen", LISTEN_DEFAULT, LISTEN_DEFAULT)?,
        };
        let cache_bytes = match self.values.get("cache") {
            Some(GivenValue { origin, text }) => cache_size::bytes(host, origin, text).map_err(Failure::WrongUse)?,
            None => cache_size::default_bytes(host),
        };
        let io = self.values.get("io").map_or(Ok(Io::Auto), io)?;
        let policy = self.values.get("policy").map_or(Ok(Policy::Budget), policy)?;
        let readahead = self.values.get("readahead").map_or(Ok(Readahead::default()), readahead)?;
        let eviction = self.values.get("eviction").map_or(Ok(EvictionKind::default()), eviction)?;
        let prefault = self.values.get("prefault").map_or(Ok(true), on_or_off)?;
        let networks = self.values.get("allow").map_or(Ok(Vec::new()), callers::networks)?;
        let squash = self.values.get("squash").map_or(Ok(Squash::default()), callers::squash)?;
        let anonymous = self.values.get("anon").map_or(Ok(callers::NOBODY), callers::anonymous)?;
        let lock_memory = self.values.get("lock_memory").map_or(Ok(LockMemory::Auto), lock_memory)?;
        let log = self.values.get("log").map_or(Ok(log::DEFAULT), |given| log::level(&given.origin, &given.text))?;
        let metrics = self.values.get("metrics");
        let metrics = metrics.map(|given| address(&given.origin, &given.text, metrics::EXAMPLE)).transpose()?;
        let switch = |name| self.values.get(name).map_or(Ok(false), on_or_off);
        let (any_port, async_metadata) = (switch("any_port")?, switch("async_metadata")?);
        let (read_only, shared, subtree_check) = (switch("read_only")?, switch("shared")?, switch("subtree_check")?);
        if self.directories.is_empty() {
            return Err(Failure::wrong_use(
                "no directory to serve: name one (afflux serve DIR), or set 'directories' in the configuration file",
            ));
        }
        let path = |name| self.values.get(name).map(|given| PathBuf::from(&given.text));
        let (control, state) = (path("control"), path("state"));
        let mut settings = knobs::of_server();
        let mut knobs = Vec::new();
        for (knob, GivenValue { origin, text }) in self.knobs {
            let assignment = format!("{knob}={text}");
            settings.set_text(&assignment).map_err(|error| Failure::wrong_use(format!("{origin}: {error}")))?;
            knobs.push(assignment);
        }
        let shares = Shares { memory_bytes: cache_bytes, background: BackgroundShare::OfLimit };
        settings.background_is_below_limit(shares).map_err(|error| Failure::wrong_use(error.to_string()))?;
        let given = self.values.into_iter().map(|(name, given)| (name, given.text)).collect();
        Ok(Configuration {
            directories: self.directories,
            listen,
            cache_bytes,
            control,
            io,
            policy,
            eviction,
            readahead,
            prefault,
            networks,
            squash,
            anonymous,
            any_port,
            read_only,
            subtree_check,
            shared,
            async_metadata,
            lock_memory,
            log,
            metrics,
            state,
            knobs,
            given,
            warnings,
        })
    }
}

/// The allowed name that equals `key`, or an error that lists all allowed names.
fn known(
    place: &str,
    key: &str,
    allowed: impl Iterator<Item = &'static str> + Clone,
    all: &str,
) -> Outcome<&'static str> {
    allowed.clone().find(|name| *name == key).ok_or_else(|| {
        let names: Vec<&str> = allowed.collect();
        let near = did_you_mean(key, names.iter().copied());
        Failure::wrong_use(format!("{place}: there is no setting '{key}'{near}; {all} {}", names.join(", ")))
    })
}

/// A variable's value as text. A lossy conversion could name another path.
fn text_of<'a>(variable: &str, value: &'a OsStr) -> Outcome<&'a str> {
    value.to_str().ok_or_else(|| {
        let shown = output::shown(value.display());
        Failure::wrong_use(format!("{variable}: '{shown}' has bytes that are not UTF-8 text"))
    })
}

/// The flag of a setting.
fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

fn on_or_off_word(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// A list of texts.
fn texts(origin: &str, list: Vec<toml::Value>) -> Outcome<Vec<String>> {
    list.into_iter()
        .map(|value| match value {
            toml::Value::String(text) => Ok(text),
            other => Err(Failure::wrong_use(format!(
                "{origin}: a list of texts is expected, but one value has the type {}",
                other.type_str()
            ))),
        })
        .collect()
}

/// One path, or a list of them. The file may be read from any directory, so that each path must be absolute.
fn paths(origin: &str, value: toml::Value) -> Outcome<Vec<PathBuf>> {
    let list = match value {
        toml::Value::Array(list) => list,
        one => vec![one],
    };
    let paths: Vec<PathBuf> = texts(origin, list)?.into_iter().map(PathBuf::from).collect();
    match paths.iter().find(|path| !path.is_absolute()) {
        Some(path) => {
            Err(Failure::wrong_use(format!("{origin}: '{}' is not an absolute path", output::shown(path.display()))))
        }
        None => Ok(paths),
    }
}

/// A TOML number or string as text.
fn plain(origin: &str, value: toml::Value) -> Outcome<String> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        other => Err(Failure::wrong_use(format!(
            "{origin}: a number or a string is expected, not a value of type {}",
            other.type_str()
        ))),
    }
}

/// Parses an address and port. The error shows `example`.
pub(crate) fn address(origin: &str, text: &str, example: &str) -> Outcome<SocketAddr> {
    let wrong = || {
        Failure::wrong_use(format!(
            "{origin}: '{text}' is not an address and a port (0 to 65535; 0 picks a free one), such as {example}"
        ))
    };
    text.parse().or_else(|_| {
        let host = text.strip_prefix("localhost:").ok_or_else(wrong)?;
        ("localhost", host.parse().map_err(|_| wrong())?)
            .to_socket_addrs()
            .ok()
            .and_then(|mut found| found.next())
            .ok_or_else(wrong)
    })
}

fn on_or_off(GivenValue { origin, text }: &GivenValue) -> Outcome<bool> {
    match text.as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(Failure::wrong_use(format!("{origin}: '{text}' is neither on nor off"))),
    }
}

fn lock_memory(GivenValue { origin, text }: &GivenValue) -> Outcome<LockMemory> {
    match text.as_str() {
        "auto" => Ok(LockMemory::Auto),
        "on" => Ok(LockMemory::On),
        "off" => Ok(LockMemory::Off),
        _ => Err(Failure::wrong_use(format!("{origin}: '{text}' is none of auto, on, off"))),
    }
}

fn io(GivenValue { origin, text }: &GivenValue) -> Outcome<Io> {
    match text.as_str() {
        "auto" => Ok(Io::Auto),
        "uring" => Ok(Io::Uring),
        "syscalls" => Ok(Io::Syscalls),
        _ => Err(Failure::wrong_use(format!("{origin}: '{text}' is none of auto, uring, syscalls"))),
    }
}

fn readahead(GivenValue { origin, text }: &GivenValue) -> Outcome<Readahead> {
    Readahead::from_name(text).map_err(|why| Failure::wrong_use(format!("{origin} {text}: {why}")))
}

fn eviction(GivenValue { origin, text }: &GivenValue) -> Outcome<EvictionKind> {
    EvictionKind::from_name(text).map_err(|why| Failure::wrong_use(format!("{origin}: {why}")))
}

fn policy(GivenValue { origin, text }: &GivenValue) -> Outcome<Policy> {
    match text.as_str() {
        OWN_POLICY => Ok(Policy::Budget),
        EQUAL_PARTS_POLICY => Ok(Policy::EqualParts),
        _ => {
            let near = did_you_mean(text, [OWN_POLICY, EQUAL_PARTS_POLICY].into_iter());
            Err(Failure::wrong_use(format!(
                "{origin} {text}: there is no such policy{near}; there are {OWN_POLICY} and {EQUAL_PARTS_POLICY}"
            )))
        }
    }
}
