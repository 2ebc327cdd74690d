//! The lines of a job file, into sections of options.
//!
//! Owns: comments, section headers, `include`, `${VAR}`, keys and values as text.
//! Does not own: what an option means.
//! Invariants: every option knows the file and line it stands in. `include` goes at most
//! [`INCLUDES_DEEP_MAX`] files deep, so that one that includes itself ends.

use super::{Complaint, Surroundings};
use crate::job::Place;

/// How deep files may include each other.
const INCLUDES_DEEP_MAX: usize = 16;

/// One option, as it stands.
#[derive(Clone, Debug)]
pub(super) struct OptionLine {
    pub(super) place: Place,
    pub(super) key: String,
    /// What follows the first `=`; `None` for a key alone.
    pub(super) value: Option<String>,
}

/// A section and its options in order.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) place: Place,
    pub(super) name: String,
    pub(super) options: Vec<OptionLine>,
}

impl Section {
    /// fio looks at the first six letters only.
    pub(super) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

pub(super) fn sections(name: &str, text: &str, surroundings: &mut dyn Surroundings) -> Result<Vec<Section>, Complaint> {
    let mut sections = Vec::new();
    add_file(name, text, surroundings, 0, &mut sections)?;
    Ok(sections)
}

/// A line without what fio takes for blanks and a comment: a `;` or `#` ends it wherever it stands.
fn content(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or("").trim()
}

fn add_file(
    name: &str,
    text: &str,
    surroundings: &mut dyn Surroundings,
    depth: usize,
    sections: &mut Vec<Section>,
) -> Result<(), Complaint> {
    for (line, number) in text.lines().zip(1..) {
        let place = Place { file: name.to_owned(), line: number };
        let wrong = |what: String| Complaint { place: place.clone(), what };
        let line = content(line);
        if line.is_empty() {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            if depth > 0 {
                return Err(wrong("a file that is included has no sections of its own".to_owned()));
            }
            let name = header.strip_suffix(']').filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| wrong(format!("'{line}' is no section header like [name]")))?;
            sections.push(Section { place: place.clone(), name: name.to_owned(), options: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err(wrong(format!("'{line}' stands before the first section, such as [global]")));
        };
        if let Some(path) = line.strip_prefix("include ").map(str::trim) {
            if depth == INCLUDES_DEEP_MAX {
                return Err(wrong(format!("'{path}' is included more than {INCLUDES_DEEP_MAX} files deep")));
            }
            let included = surroundings.include(path, name);
            let (name, text) = included.map_err(|why| wrong(format!("cannot include '{path}': {why}")))?;
            add_file(&name, &text, surroundings, depth + 1, sections)?;
            continue;
        }
        let (key, value) = line.split_once('=').map_or((line, None), |(key, value)| (key, Some(value)));
        let value = value.map(|value| expanded(value, surroundings).map_err(wrong)).transpose()?;
        section.options.push(OptionLine { place, key: key.trim_end().to_owned(), value });
    }
    Ok(())
}

/// The value with each `${NAME}` replaced by what the environment has, or by nothing.
fn expanded(value: &str, surroundings: &mut dyn Surroundings) -> Result<String, String> {
    let (mut result, mut rest) = (String::new(), value);
    while let Some(start) = rest.find("${") {
        let Some(len) = rest[start..].find('}') else {
            return Err(format!("'{value}': '${{' without a '}}'"));
        };
        result.push_str(&rest[..start]);
        result.push_str(&surroundings.variable(&rest[start + 2..start + len]).unwrap_or_default());
        rest = &rest[start + len + 1..];
    }
    result.push_str(rest);
    if let Some(word) = ["$pagesize", "$mb_memory", "$ncpus"].into_iter().find(|word| result.contains(word)) {
        return Err(format!("'{value}': {word} would be the host's and is not supported; write the number"));
    }
    Ok(result)
}
