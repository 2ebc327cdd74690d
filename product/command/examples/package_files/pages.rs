//! Manuals and completions from a command's own description.
//!
//! Owns: how a description becomes a manual page; where each file belongs below the top of a system.
//! Does not own: the description (`args` of each command), the packages (`cargo xtask deb`).
//! Invariants: each command has a page, and its `--help` stands on it.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use roff::{Roff, bold, roman};

/// Directories of an installed system, relative to its root.
const MANUALS: &str = "usr/share/man/man1";
/// Of each shell: the directory of its completions, and what stands before and after the command's name.
const COMPLETIONS: [(Shell, &str, &str, &str); 3] = [
    (Shell::Bash, "usr/share/bash-completion/completions", "", ""),
    (Shell::Zsh, "usr/share/zsh/vendor-completions", "_", ""),
    (Shell::Fish, "usr/share/fish/vendor_completions.d", "", ".fish"),
];

/// Writes the files of a command below the directory that the command line names.
pub(crate) fn run(described: Command) -> ExitCode {
    let Some(top) = std::env::args_os().nth(1) else {
        eprintln!("usage: package_files DIR");
        return ExitCode::from(2);
    };
    match write(described, Path::new(&top)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(mut command: Command, top: &Path) -> std::io::Result<()> {
    let name = command.get_name().to_owned();
    for (shell, directory, before, after) in COMPLETIONS {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, &name, &mut script);
        fs::create_dir_all(top.join(directory))?;
        fs::write(top.join(directory).join(format!("{before}{name}{after}")), script)?;
    }
    fs::create_dir_all(top.join(MANUALS))?;
    command.build();
    write_pages(&command, &name, &top.join(MANUALS))
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
/// lines is a heading, such as `Examples:`. Indented lines keep their layout.
fn add_help(page: &mut Roff, help: &str) {
    let lines: Vec<&str> = help.lines().collect();
    let mut is_literal = false;
    for (at, line) in lines.iter().enumerate() {
        let indented = line.starts_with(' ');
        let heads = !indented && lines.get(at + 1).is_some_and(|next| next.starts_with(' '));
        if is_literal != indented {
            page.control(if indented { "nf" } else { "fi" }, []);
            is_literal = indented;
        }
        let heading = line.strip_suffix(':').filter(|heading| heads && !heading.contains(' '));
        if let Some(heading) = heading {
            page.control("SH", [heading.to_uppercase().as_str()]);
        } else if line.is_empty() {
            page.control("PP", []);
        } else {
            page.text([roman(*line)]);
        }
    }
    if is_literal {
        page.control("fi", []);
    }
}
