//! Splits the lines of a job file into sections of options.
//!
//! Owns: comments, section headers, `include`, `${VAR}`, keys and values as text.
//! Does not own: the meaning of an option.
//! Invariants: every option has its file and line. `include` nests at most [`INCLUDES_DEEP_MAX`] files deep, so that a
//! file that includes itself ends.

use super::complaint::Complaint;
use super::surroundings::{Included, Surroundings};
use crate::job::SourceLine;

/// Deepest nesting of included files.
const INCLUDES_DEEP_MAX: usize = 16;
/// Most sections of a file. Each is a job, or options for jobs.
pub(super) const SECTIONS_MAX: usize = 100_000;
/// Complaints after which reading stops: the file is not a job file.
const WRONG_MAX: usize = 100;

/// One option, as written.
#[derive(Clone, Debug)]
pub(super) struct OptionLine {
    pub(super) position: SourceLine,
    pub(super) key: String,
    /// The text after the first `=`; `None` for a key alone.
    pub(super) value: Option<String>,
}

/// A section and its options in order.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) position: SourceLine,
    pub(super) name: String,
    pub(super) options: Vec<OptionLine>,
    /// One of its lines is wrong, so an option may be missing.
    pub(super) broken: bool,
}

impl Section {
    /// fio compares only the first six letters.
    pub(super) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

/// The sections of a file, and the complaints about its lines.
pub(super) fn sections(name: &str, text: &str, surroundings: &mut dyn Surroundings) -> (Vec<Section>, Vec<Complaint>) {
    let mut headers = text.lines().zip(1..).filter(|(line, _)| content(line).starts_with('['));
    if let Some((_, line)) = headers.nth(SECTIONS_MAX) {
        let position = SourceLine { file: name.to_owned(), line };
        return (
            Vec::new(),
            vec![Complaint { position, what: format!("more than {SECTIONS_MAX} sections in a file") }],
        );
    }
    let mut reader = Reader { surroundings, sections: Vec::new(), wrong: Vec::new(), too_deep: false };
    reader.add_file(name, text, 0);
    (reader.sections, reader.wrong)
}

/// A line without its comment and without fio's blanks. A `;` or `#` begins a comment anywhere.
fn content(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or("").trim()
}

struct Reader<'a> {
    surroundings: &'a mut dyn Surroundings,
    sections: Vec<Section>,
    wrong: Vec<Complaint>,
    /// Files include each other in a circle; this is reported once.
    too_deep: bool,
}

impl Reader<'_> {
    fn add_file(&mut self, name: &str, text: &str, depth: usize) {
        for (line, number) in text.lines().zip(1..) {
            let position = SourceLine { file: name.to_owned(), line: number };
            let line = content(line);
            if line.is_empty() {
                continue;
            }
            if let Err(what) = self.add_line(&position, line, depth) {
                self.wrong.push(Complaint { position, what });
                self.sections.last_mut().into_iter().for_each(|section| section.broken = true);
                if depth == 0 && self.sections.is_empty() || self.wrong.len() >= WRONG_MAX {
                    return;
                }
            }
            if self.too_deep {
                return;
            }
        }
    }

    fn add_line(&mut self, position: &SourceLine, line: &str, depth: usize) -> Result<(), String> {
        if line.contains(|letter: char| letter.is_control() && letter != '\t') {
            return Err("this is no text: there are control characters in it".to_owned());
        }
        if let Some(header) = line.strip_prefix('[') {
            if depth > 0 {
                return Err("a file that is included has no sections of its own".to_owned());
            }
            let name = header.strip_suffix(']').filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| format!("'{line}' is no section header like [name]"))?;
            self.sections.push(Section {
                position: position.clone(),
                name: name.to_owned(),
                options: Vec::new(),
                broken: false,
            });
            return Ok(());
        }
        if self.sections.is_empty() {
            return Err(format!("'{line}' stands before the first section, such as [global]"));
        }
        if let Some(path) = line.strip_prefix("include ").map(str::trim) {
            return self.include(position, path, depth);
        }
        let (key, value) = line.split_once('=').map_or((line, None), |(key, value)| (key, Some(value)));
        let value = value.map(|value| expanded(value, self.surroundings)).transpose()?;
        let option = OptionLine { position: position.clone(), key: key.trim_end().to_owned(), value };
        self.sections.last_mut().into_iter().for_each(|section| section.options.push(option.clone()));
        Ok(())
    }

    fn include(&mut self, position: &SourceLine, path: &str, depth: usize) -> Result<(), String> {
        if depth == INCLUDES_DEEP_MAX {
            self.too_deep = true;
            return Err(format!("'{path}' is included more than {INCLUDES_DEEP_MAX} files deep"));
        }
        let included = self.surroundings.include(path, &position.file);
        let Included { name, text } = included.map_err(|why| format!("cannot include '{path}': {why}"))?;
        self.add_file(&name, &text, depth + 1);
        Ok(())
    }
}

/// The value with each `${NAME}` replaced by the environment's value, or by nothing.
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
    let result = result.replace("$pagesize", "4096");
    if let Some(word) = ["$mb_memory", "$ncpus"].into_iter().find(|word| result.contains(word)) {
        return Err(format!("'{value}': {word} would be the host's and is not supported; write the number"));
    }
    Ok(result)
}
