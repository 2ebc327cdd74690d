//! Manual pages and completions from a command's own description.
//!
//! Owns: how a description becomes a manual page; the subcommands for both.
//! Does not own: completions (`completions`), the description (`args` of each command), the locations of the files
//! (`cargo xtask deb`).
//! Invariants: each shown command has a page, and its `--help` stands on it.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use clap::{Command, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;
use roff::{Roff, bold, roman};

mod completions;

pub use completions::DEVICE;

/// The subcommands that each of our commands has.
#[derive(Debug, Subcommand)]
pub enum ManualCommand {
    /// Print completions for a shell
    Completions {
        /// The shell that reads the completions
        #[arg(value_name = "SHELL", value_enum)]
        shell: Shell,
    },
    /// Print or write the manual pages
    Man {
        /// Write the page of each command to this directory [default: print the page of the command itself]
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },
}

impl ManualCommand {
    /// Carries out the subcommand for a command with this description.
    ///
    /// # Errors
    /// If the directory cannot be made or written.
    pub fn run(&self, described: Command) -> Outcome {
        match self {
            Self::Completions { shell } => {
                output::try_write(completions::script(described, *shell).as_bytes());
                Ok(())
            }
            Self::Man { directory } => manual(described, directory.as_deref()),
        }
    }
}

/// Adds examples to the help of [`ManualCommand`] in a command's description.
pub fn with_examples(described: Command) -> Command {
    let name = described.get_name().to_owned();
    let completions =
        format!("Example:\n  {name} completions bash > ~/.local/share/bash-completion/completions/{name}");
    let man = format!("Examples:\n  {name} man | man -l -\n  {name} man ~/.local/share/man/man1");
    described
        .mut_subcommand("completions", |it| it.after_help(completions))
        .mut_subcommand("man", |it| it.after_help(man))
}

/// Prints a command's manual page. With a directory, writes it there with the pages of all subcommands.
fn manual(mut described: Command, directory: Option<&Path>) -> Outcome {
    described.build();
    let name = described.get_name().to_owned();
    let Some(directory) = directory else {
        output::try_write(&page(&described, &name).map_err(|error| Failure::failed(error.to_string()))?);
        return Ok(());
    };
    let written = fs::create_dir_all(directory).and_then(|()| write_pages(&described, &name, directory));
    written.map_err(|error| Failure::failed(format!("{}: {error}", directory.display())))
}

/// Writes the page of a command and those of its subcommands.
fn write_pages(command: &Command, name: &str, directory: &Path) -> std::io::Result<()> {
    fs::write(directory.join(format!("{name}.1")), page(command, name)?)?;
    for below in command.get_subcommands().filter(|below| is_shown(below)) {
        write_pages(below, &format!("{name}-{}", below.get_name()), directory)?;
    }
    Ok(())
}

/// Whether a command has a page: not the help, nor what only points elsewhere.
fn is_shown(command: &Command) -> bool {
    command.get_name() != "help" && !command.is_hide_set()
}

fn page(command: &Command, name: &str) -> std::io::Result<Vec<u8>> {
    // Pages are named with hyphens, while the command's own name has blanks.
    let named = command.clone().display_name(name.to_owned()).disable_help_subcommand(true);
    let manual = Man::new(named).title(name.to_uppercase()).manual("User Commands").source(source());
    let mut page = Vec::new();
    manual.render_title(&mut page)?;
    manual.render_name_section(&mut page)?;
    manual.render_synopsis_section(&mut page)?;
    manual.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        manual.render_options_section(&mut page)?;
    }
    let mut below: Vec<&Command> = command.get_subcommands().filter(|below| is_shown(below)).collect();
    let more = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string).unwrap_or_default();
    let mut rest = Roff::new();
    if !below.is_empty() {
        rest.control("SH", ["COMMANDS"]);
    }
    // Subcommands with added help come last in clap's list.
    below.sort_by_key(|below| below.get_name());
    for below in below {
        rest.control("TP", []).text([bold(format!("{name}-{}(1)", below.get_name()))]);
        rest.text([roman(below.get_about().map(ToString::to_string).unwrap_or_default())]);
    }
    add_help(&mut rest, &more);
    let top = if name.starts_with("afflux-lab") { "afflux-lab" } else { "afflux" };
    if name != top {
        rest.control("SH", ["SEE ALSO"]).text([bold(top), roman("(1); files in /usr/share/doc/afflux")]);
    }
    rest.to_writer(&mut page)?;
    Ok(page)
}

fn source() -> String {
    format!("afflux {}", env!("CARGO_PKG_VERSION"))
}

/// Adds the help text that follows a command's options. An unindented line that ends in a colon and precedes indented
/// lines is a heading, such as `Examples:`. Indented lines retain their layout, but a line that is indented more than
/// the line above is the paragraph of the line above.
fn add_help(page: &mut Roff, help: &str) {
    let lines: Vec<&str> = help.lines().collect();
    let mut is_literal = false;
    for (at, line) in lines.iter().enumerate() {
        let next = lines.get(at + 1).map_or(0, |next| indentation(next));
        let (indented, is_head) = (indentation(line) > 0, next > indentation(line) && indentation(line) > 0);
        let is_paragraph = indentation(line) > 2;
        let keeps_layout = indented && !is_head && !is_paragraph;
        if is_literal != keeps_layout {
            page.control(if keeps_layout { "nf" } else { "fi" }, []);
            is_literal = keeps_layout;
        }
        let heading = line.strip_suffix(':').filter(|heading| next > 0 && !indented && !heading.contains(' '));
        if let Some(heading) = heading {
            page.control("SH", [heading.to_uppercase().as_str()]);
        } else if is_head {
            page.control("TP", []).text([bold(line.trim())]);
        } else if line.is_empty() {
            page.control("PP", []);
        } else if is_paragraph {
            page.text([roman(line.trim())]);
        } else {
            page.text([roman(*line)]);
        }
    }
    if is_literal {
        page.control("fi", []);
    }
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests;
