//! Keys from the files of the AWS command line.
//!
//! Owns: which files, which profile, which lines.
//! Does not own: variables (`connect` takes them first) and keys of instances.
//! Invariants: a file that is absent has no keys; a line that is not understood is skipped.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The values of one profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    values: BTreeMap<String, String>,
    is_there: bool,
}

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
        let (mut values, mut is_there) = (BTreeMap::new(), false);
        let mut take = |found: Option<BTreeMap<String, String>>| {
            is_there |= found.is_some();
            values.extend(found.into_iter().flatten());
        };
        // In the second file a profile other than the default one has a word before its name. The first file wins.
        if let Some(text) = file("AWS_CONFIG_FILE", "config") {
            take(section(&text, name));
            take(section(&text, &format!("profile {name}")));
        }
        if let Some(text) = file("AWS_SHARED_CREDENTIALS_FILE", "credentials") {
            take(section(&text, name));
        }
        Self { values, is_there }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Whether a file has a section of the profile.
    pub(crate) fn is_there(&self) -> bool {
        self.is_there
    }
}

/// The values of a section, if there is one.
fn section(text: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let mut values = None;
    let mut is_inside = false;
    for line in text.lines().map(|line| without_comment(line).trim()) {
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let words = header.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
            is_inside = words.eq(name.split_whitespace());
            if is_inside {
                values.get_or_insert_with(BTreeMap::new);
            }
        } else if let Some((key, value)) = line.split_once('=').filter(|_| is_inside && !line.starts_with(['#', ';'])) {
            values.get_or_insert_with(BTreeMap::new).insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    values
}

/// A line without the comment behind a blank.
fn without_comment(line: &str) -> &str {
    let at = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| line.find(mark)).min();
    at.map_or(line, |at| &line[..at])
}

#[cfg(test)]
mod tests;
