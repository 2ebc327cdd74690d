//! A user's files and variables for a connection: a profile of the AWS command line, and proxies.
//!
//! Owns: which files, which profile, which lines; which values of proxies the client below takes.
//! Does not own: the use of a profile's values (`s3`) and of proxies (`reqwest` reads the variables as curl does), keys
//! of instances.
//! Invariants: a file that a variable names is read, and each line of the profile is understood, or the opening fails.
//! The usual files may be absent, or out of reach of this user. A proxy that the client would ignore in silence is
//! refused: requests would take another path than the user wants. A proxy's value is never shown, since it may have a
//! password.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reqwest::Url;

/// The values of one profile. A value below another is named `outer.inner`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    values: Values,
    services: Values,
}

type Values = BTreeMap<String, String>;

/// The variables of a process.
pub(crate) type Variables = BTreeMap<String, String>;

impl Profile {
    /// Reads the files that the variables name, else those in `~/.aws`. Fails with the reason.
    pub(crate) fn read(variables: &Variables) -> Result<Self, String> {
        let set = |name: &'static str| Some((name, variables.get(name).filter(|value| !value.is_empty())?.as_str()));
        let named = set("AWS_PROFILE").or_else(|| set("AWS_DEFAULT_PROFILE"));
        let name = named.map_or("default", |(_, name)| name);
        let (mut values, mut is_there) = (Values::new(), false);
        let mut take = |found: Option<Values>| {
            is_there |= found.is_some();
            values.extend(found.into_iter().flatten());
        };
        let config = ProfileFile::read(variables, "AWS_CONFIG_FILE", "config")?;
        // In the second file a profile other than the default one has a word before its name. The first file wins.
        take(config.section(name)?);
        take(config.section(&format!("profile {name}"))?);
        take(ProfileFile::read(variables, "AWS_SHARED_CREDENTIALS_FILE", "credentials")?.section(name)?);
        if let Some((variable, name)) = named.filter(|(_, name)| !is_there && *name != "default") {
            return Err(format!(
                "no file of the AWS command line has the profile '{name}' of {variable}; correct the name, or unset it"
            ));
        }
        let services = match values.get("services") {
            None => Values::new(),
            Some(services) => config.section(&format!("services {services}"))?.ok_or_else(|| {
                format!("the profile {name} has 'services = {services}', and no section [services {services}] is there")
            })?,
        };
        Ok(Self { values, services })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        of(&self.values, name)
    }

    /// A value of the section for services that the profile names.
    pub(crate) fn of_services(&self, name: &str) -> Option<&str> {
        of(&self.services, name)
    }

    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }
}

fn of<'a>(values: &'a Values, name: &str) -> Option<&'a str> {
    values.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

/// One of the two files.
#[derive(Debug)]
struct ProfileFile {
    path: PathBuf,
    text: String,
}

impl ProfileFile {
    fn read(variables: &Variables, variable: &str, usual: &str) -> Result<Self, String> {
        if let Some(path) = variables.get(variable).filter(|path| !path.is_empty()) {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| format!("{variable}: {path} cannot be read: {error}"))?;
            return Ok(Self { path: path.into(), text });
        }
        let path = variables.get("HOME").map(|home| Path::new(home).join(".aws").join(usual)).unwrap_or_default();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        Ok(Self { path, text })
    }

    /// The values of a section, if there is one.
    fn section(&self, name: &str) -> Result<Option<Values>, String> {
        section(&self.text, name).map_err(|line| {
            format!("{}, line {line}: this is no line 'NAME = VALUE' of a profile", self.path.display())
        })
    }
}

/// The value whose lines below it may stand further to the right.
struct Outer {
    indent: usize,
    name: String,
    has_value: bool,
}

/// The values of a section, if there is one. Fails with the number of a line that is not understood.
fn section(text: &str, name: &str) -> Result<Option<Values>, usize> {
    let (mut values, mut outer) = (None, None::<Outer>);
    for (number, line) in (1..).zip(text.lines().map(|line| without_comment(line).trim_end())) {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let words = header.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
            outer =
                words.eq(name.split_whitespace()).then(|| Outer { indent: 0, name: String::new(), has_value: true });
            if outer.is_some() {
                values.get_or_insert_with(Values::new);
            }
            continue;
        }
        let Some(above) = &mut outer else { continue };
        let (key, value) = line.split_once('=').ok_or(number)?;
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim().to_owned());
        let is_below = !above.name.is_empty() && indent > above.indent;
        // A value on two lines: none that is used here has two.
        if is_below && above.has_value {
            return Err(number);
        }
        let name = if is_below { format!("{}.{key}", above.name) } else { key };
        if !is_below {
            *above = Outer { indent, name: name.clone(), has_value: !value.is_empty() };
        }
        values.get_or_insert_with(Values::new).insert(name, value);
    }
    Ok(values)
}

/// A line without the comment behind a blank.
fn without_comment(line: &str) -> &str {
    let at = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| line.find(mark)).min();
    at.map_or(line, |at| &line[..at])
}

/// The variables. `NO_PROXY` takes any text.
const PROXIES: [&str; 6] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Fails with the reason if a variable names no proxy.
pub(crate) fn check_proxies(variables: &Variables) -> Result<(), String> {
    let is_wrong = |name: &&str| variables.get(*name).is_some_and(|text| !text.is_empty() && !is_proxy(text));
    match PROXIES.into_iter().find(is_wrong) {
        Some(name) => Err(format!(
            "{name} names no proxy that can be used; write http://HOST:PORT or https://HOST:PORT, or unset it (SOCKS is \
             not spoken)"
        )),
        None => Ok(()),
    }
}

fn is_proxy(text: &str) -> bool {
    // Other letters are not allowed in the part of an address before its path.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(letter);
    let (kind, rest) = text.split_once("://").unwrap_or(("http", text));
    let has_place =
        !rest.trim_end_matches('/').contains(['/', '?', '#']) && (text.contains("://") || !rest.ends_with('/'));
    let is_address = || Url::parse(&format!("http://{rest}")).is_ok_and(|url| url.has_host());
    ["http", "https"].contains(&kind) && text.chars().all(is_plain) && has_place && is_address()
}

#[cfg(test)]
mod tests;
