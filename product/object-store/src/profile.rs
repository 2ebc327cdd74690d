//! Keys from the files of the AWS command line.
//!
//! Owns: which files, which profile, which lines.
//! Does not own: variables (`connect` takes them first) and keys of instances.
//! Invariants: a file that is absent has no keys; a line that is not understood is skipped.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The values of one profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Profile(BTreeMap<String, String>);

/// The variables of a process.
pub(crate) type Variables = BTreeMap<String, String>;

impl Profile {
    /// Reads the files that the variables name, else those in `~/.aws`.
    pub(crate) fn read(variables: &Variables) -> Self {
        let name = variables.get("AWS_PROFILE").map_or("default", String::as_str);
        let file = |of: &str, usual: &str| {
            let home = variables.get("HOME").map(|home| PathBuf::from(home).join(".aws").join(usual));
            let path = variables.get(of).map(PathBuf::from).or(home)?;
            std::fs::read_to_string(path).ok()
        };
        let mut values = BTreeMap::new();
        // In the second file a profile other than the default one has a word before its name. The first file wins.
        if let Some(text) = file("AWS_CONFIG_FILE", "config") {
            values.extend(section(&text, name));
            values.extend(section(&text, &format!("profile {name}")));
        }
        if let Some(text) = file("AWS_SHARED_CREDENTIALS_FILE", "credentials") {
            values.extend(section(&text, name));
        }
        Self(values)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// The values of a section.
fn section(text: &str, name: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut is_inside = false;
    for line in text.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            is_inside = header.split_whitespace().eq(name.split_whitespace());
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_inside && !line.starts_with(['#', ';'])) {
            values.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    values
}

#[cfg(test)]
mod tests;
