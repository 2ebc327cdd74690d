//! The sources of `serve`'s settings: flags, environment and file.
//!
//! Owns: which source wins, the form of the file, the knobs in each source.
//! Does not own: the settings' names and values (`settings`), knobs' ranges (the engine checks them).
//! Invariants: flags win over the environment, the environment over the file, the file over defaults. An unknown name
//! is an error on the command line and in the file. In the environment it is a warning, since other programs set
//! variables, too (Kubernetes does, for a service called afflux). Every error names the source of the value.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use afflux_engine::settings::{BackgroundBase, RatioBases, did_you_mean, near};
use clap::{Arg, Id};
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use crate::private_directory::variable;
use crate::settings::{self, GivenValue, ServeSettings, is_store};
use crate::{args, knobs};
use afflux_linux_device::HostMemory;
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::{bounded_file, output};

/// The table of knobs in the configuration file.
const KNOB_TABLE: &str = "knobs";

const PREFIX: &str = "AFFLUX_";

/// Most unknown variables that a warning names one by one.
const UNKNOWN_NAMED_MAX: usize = 8;

/// Largest configuration file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What `serve` runs with.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) settings: ServeSettings,
    pub(crate) cache_bytes: u64,
    /// `KNOB=VALUE`, each known and in range.
    pub(crate) knobs: Vec<String>,
    /// The settings that were given, in their original text.
    pub(crate) given: BTreeMap<Id, Vec<OsString>>,
    /// Ignored values, to be reported.
    pub(crate) warnings: Vec<String>,
}

/// A knob's value as text, with its source.
#[derive(Clone, PartialEq, Eq, Debug)]
struct GivenKnob {
    origin: String,
    text: String,
}

/// The values of all sources, later ones over earlier ones.
#[derive(Default, PartialEq, Eq, Debug)]
struct Layers {
    values: BTreeMap<Id, GivenValue>,
    knobs: BTreeMap<String, GivenKnob>,
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

/// The configuration file that a reload reads, if there is one.
pub(crate) fn path(args: &args::Serve) -> Option<PathBuf> {
    file_path(args.config.as_deref(), &variables()).ok().flatten()
}

/// The configuration file: the one named, or the usual one if it exists.
fn file_path(flag: Option<&Path>, variables: &[(String, OsString)]) -> Outcome<Option<PathBuf>> {
    let named = variables.iter().find(|(name, _)| name == "AFFLUX_CONFIG").map(|(_, value)| Path::new(value));
    if let Some(path) = flag.or(named) {
        return Ok(Some(path.to_path_buf()));
    }
    let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".config"));
    let directory = variable("XDG_CONFIG_HOME").or_else(home);
    Ok(directory.map(|directory| directory.join("afflux/config.toml")).filter(|path| path.exists()))
}

fn read_file(path: &Path) -> Outcome<String> {
    let unread = format!("cannot read the configuration file {}", path.display());
    let bytes = bounded_file::read(path, FILE_BYTES_MAX).or_failed(&unread)?;
    String::from_utf8(bytes).or_failed(&unread)
}

impl Layers {
    fn add_file(&mut self, path: &Path, text: &str) -> Outcome {
        let file = File { shown: path.display().to_string(), text };
        let table = DeTable::parse(text).map_err(|error| Failure::wrong_use(format!("{}: {error}", file.shown)))?;
        for (key, value) in table.get_ref() {
            if key.get_ref() == KNOB_TABLE {
                self.add_knobs(&file, value)?;
                continue;
            }
            let arg = file.setting(key)?;
            let origin = format!("{}: {}", file.position(key), key.get_ref());
            let texts = texts(&arg, &origin, value.get_ref())?.into_iter().map(OsString::from).collect();
            self.values.insert(arg.get_id().clone(), GivenValue { origin, texts });
        }
        Ok(())
    }

    fn add_knobs(&mut self, file: &File<'_>, table: &Spanned<DeValue<'_>>) -> Outcome {
        let DeValue::Table(table) = table.get_ref() else {
            return Err(Failure::wrong_use(format!(
                "{}: '{KNOB_TABLE}' is not a table of knobs",
                file.position(table)
            )));
        };
        for (key, value) in table {
            let position = file.position(key);
            let name = knobs::name_of(key.get_ref());
            let name = name.map_err(|error| Failure::wrong_use(format!("{position}: {error}")))?;
            let origin = format!("{position}: {KNOB_TABLE}.{}", key.get_ref());
            let text = plain(&origin, value.get_ref())?;
            self.knobs.insert(name.to_owned(), GivenKnob { origin, text });
        }
        Ok(())
    }

    fn add_environment(&mut self, variables: &[(String, OsString)]) -> Outcome {
        for (variable, value) in variables {
            let key = variable.strip_prefix(PREFIX).unwrap_or(variable).to_lowercase();
            if let Some(arg) = settings::all().into_iter().find(|arg| arg.get_id() == key.as_str()) {
                let texts = match (arg.is_positional(), settings::is_list(&arg)) {
                    (true, _) => env::split_paths(value).map(OsString::from).filter(|path| !path.is_empty()).collect(),
                    (false, true) => separated(text_of(variable, value)?).map(OsString::from).collect(),
                    (false, false) => vec![value.clone()],
                };
                self.values.insert(arg.get_id().clone(), GivenValue { origin: variable.clone(), texts });
            } else if let Ok(name) = knobs::name_of(&key) {
                let text = text_of(variable, value)?.to_owned();
                self.knobs.insert(name.to_owned(), GivenKnob { origin: variable.clone(), text });
            } else if key != "config" {
                self.unknown.push(variable.clone());
            }
        }
        Ok(())
    }

    fn add_flags(&mut self, args: &args::Serve) -> Outcome {
        self.values.extend(args.settings.given());
        for text in &args.knobs {
            let (knob, value) =
                text.split_once('=').ok_or_else(|| Failure::wrong_use(format!("--set: '{text}' is not KNOB=VALUE")))?;
            let given = GivenKnob { origin: "--set".to_owned(), text: value.to_owned() };
            let knob = knob.trim();
            self.knobs.insert(knobs::name_of(knob).unwrap_or(knob).to_owned(), given);
        }
        Ok(())
    }

    fn warnings(&self) -> Vec<String> {
        if self.unknown.is_empty() {
            return Vec::new();
        }
        let variable = |name: &str| format!("{PREFIX}{}", name.to_uppercase());
        let mut names: Vec<String> = settings::all().iter().map(|arg| arg.get_id().to_string()).collect();
        let settings: Vec<String> = names.iter().map(String::as_str).chain(["config"]).map(variable).collect();
        names.extend(knobs::of_server().all().map(|(_, info)| info.name.to_owned()));
        let named = |unknown: &String| {
            let key = unknown.strip_prefix(PREFIX).unwrap_or(unknown).to_lowercase();
            let nearest = near(&key, names.iter().map(String::as_str)).first().map(|name| variable(name));
            let meant = nearest.map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default();
            format!("{}{meant}", output::shown(unknown))
        };
        let named: Vec<String> = self.unknown.iter().take(UNKNOWN_NAMED_MAX).map(named).collect();
        let rest = match self.unknown.len().saturating_sub(UNKNOWN_NAMED_MAX) {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        let are = if self.unknown.len() == 1 { "is not a setting and is" } else { "are not settings and are" };
        vec![format!(
            "the environment: {}{rest} {are} ignored (settings: {}, and {PREFIX}KNOB for each knob of `afflux serve \
             --help`)",
            named.join(", "),
            settings.join(", ")
        )]
    }

    fn checked(self, host: HostMemory) -> Outcome<Configuration> {
        let warnings = self.warnings();
        let settings = settings::read(&self.values)?;
        if settings.directories.is_empty() {
            return Err(Failure::wrong_use(
                "no directory to serve: name one (afflux serve DIR), or set 'directories' in the configuration file",
            ));
        }
        settings.check_locks()?;
        settings.check_delegations()?;
        let cache_bytes = settings.cache.unwrap_or_else(|| settings::default_bytes(host));
        let mut engine_settings = knobs::of_server();
        let mut knobs = Vec::new();
        for (knob, GivenKnob { origin, text }) in self.knobs {
            let assignment = format!("{knob}={text}");
            let is_set = engine_settings.set_text(&assignment);
            is_set.map_err(|error| Failure::wrong_use(format!("{origin}: {error}")))?;
            knobs.push(assignment);
        }
        let shares = RatioBases { memory_bytes: cache_bytes, background: BackgroundBase::OfLimit };
        let is_below = engine_settings.background_is_below_limit(shares);
        is_below.map_err(Failure::wrong_use)?;
        let given = self.values.into_iter().map(|(name, given)| (name, given.texts)).collect();
        Ok(Configuration { settings, cache_bytes, knobs, given, warnings })
    }
}

/// A configuration file that is being read.
struct File<'a> {
    shown: String,
    text: &'a str,
}

impl File<'_> {
    /// The file and the line of a key or a value.
    fn position<T>(&self, of: &Spanned<T>) -> String {
        let before = self.text.get(..of.span().start).unwrap_or_default();
        format!("{}:{}", self.shown, before.matches('\n').count() + 1)
    }

    /// The declaration of the setting that a key names.
    fn setting(&self, key: &Spanned<impl AsRef<str>>) -> Outcome<Arg> {
        let (all, wanted) = (settings::all(), key.get_ref().as_ref());
        all.iter().find(|arg| arg.get_id() == wanted).cloned().ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|arg| arg.get_id().as_str()).chain([KNOB_TABLE]).collect();
            let near = did_you_mean(wanted, names.iter().copied());
            let position = self.position(key);
            if let Ok(knob) = knobs::name_of(wanted) {
                return Failure::wrong_use(format!("{position}: {knob} is a knob: put it under [{KNOB_TABLE}]"));
            }
            Failure::wrong_use(format!(
                "{position}: there is no setting '{wanted}'{near}; allowed are {}",
                names.join(", ")
            ))
        })
    }
}

/// A value of the file as one text, or as several for a setting with several values.
fn texts(arg: &Arg, origin: &str, value: &DeValue<'_>) -> Outcome<Vec<String>> {
    let list = match value {
        DeValue::Boolean(is_on) if settings::is_on_or_off(arg) => {
            return Ok(vec![if *is_on { "on" } else { "off" }.to_owned()]);
        }
        DeValue::Array(list) if settings::is_list(arg) => {
            list.iter().map(|value| plain(origin, value.get_ref())).collect::<Outcome<Vec<_>>>()?
        }
        value if settings::is_list(arg) && !arg.is_positional() => {
            separated(&plain(origin, value)?).map(str::to_owned).collect()
        }
        value => vec![plain(origin, value)?],
    };
    // The file may be read from any directory.
    match list.iter().find(|path| arg.is_positional() && !Path::new(path).is_absolute() && !is_store(Path::new(path))) {
        Some(path) => Err(Failure::wrong_use(format!("{origin}: '{}' is not an absolute path", output::shown(path)))),
        None => Ok(list),
    }
}

/// The values of a list in one text.
fn separated(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ']).filter(|word| !word.is_empty())
}

/// A TOML number or string as text.
fn plain(origin: &str, value: &DeValue<'_>) -> Outcome<String> {
    let decimal = |number: &DeInteger<'_>| i64::from_str_radix(number.as_str(), number.radix()).ok();
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        // A number beyond 64 bits stays as it is; its reader refuses it.
        DeValue::Integer(number) => Ok(decimal(number).map_or_else(|| number.to_string(), |value| value.to_string())),
        other => Err(Failure::wrong_use(format!(
            "{origin}: a number or a string is expected, not a value of type {}",
            other.type_str()
        ))),
    }
}

/// A variable's value as text. A lossy conversion could name another path.
fn text_of<'a>(variable: &str, value: &'a OsStr) -> Outcome<&'a str> {
    value.to_str().ok_or_else(|| {
        let shown = output::shown(value.display());
        Failure::wrong_use(format!("{variable}: '{shown}' has bytes that are not UTF-8 text"))
    })
}
