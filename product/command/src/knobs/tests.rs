use clap::Command;

use afflux_report::units;

use super::{obeyed, of_server};
use crate::args::CommandLine;

fn help_of(command: &str) -> String {
    let mut described = CommandLine::described().term_width(0);
    described.build();
    let found = described.get_subcommands_mut().find(|it| it.get_name() == command);
    found.map(Command::render_long_help).unwrap().to_string()
}

#[test]
fn the_help_of_each_command_that_sets_knobs_says_what_each_does() {
    for command in ["serve", "set"] {
        let help = help_of(command);
        assert!(!help.contains("\n  dirty_background_ratio"), "a server refuses it: {help}");
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for info in obeyed(&of_server()) {
            let (head, does) = info.help_with(units::count);
            assert!(help.contains(&format!("\n  {head}\n")), "{command}: {head}");
            let does = does.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(does.len() > 10 && words.contains(&does), "{command}: {}: {does}", info.name);
        }
    }
}

#[test]
fn help_is_wrapped_to_the_terminal() {
    for width in [60, 100] {
        let mut described = CommandLine::described().term_width(width);
        described.build();
        for command in described.get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            // Only a line with a single long word, such as an option with its value, may be wider.
            let too_wide = |line: &&str| line.chars().count() > width && line.split_whitespace().count() > 4;
            assert_eq!(help.lines().find(too_wide), None, "{}", command.get_name());
        }
    }
}

#[test]
fn help_has_each_command_in_one_group_and_the_options_of_serve_under_headings() {
    let mut described = CommandLine::described().term_width(100);
    let help = described.render_help().to_string();
    let shown = described.get_subcommands().filter(|command| !command.is_hide_set());
    for name in shown.map(Command::get_name) {
        let lines = help.lines().filter(|line| line.split_whitespace().next() == Some(name));
        assert_eq!(lines.count(), 1, "{name}: {help}");
    }
    described.build();
    let help = described.find_subcommand_mut("serve").unwrap().render_help().to_string();
    let at = |part: &str| help.find(part).unwrap_or_else(|| panic!("{part} in {help}"));
    let parts =
        ["Cache and disks:", "--cache", "Callers", "--allow", "Names and", "--async-metadata", "Watching", "--log"];
    assert!(parts.map(at).is_sorted(), "{help}");
    let lines_max = if cfg!(feature = "object") { 92 } else { 78 };
    assert!(help.lines().count() < lines_max, "short: {}", help.lines().count());
}

#[test]
fn every_command_has_an_example_in_its_help() {
    let mut described = CommandLine::described();
    described.build();
    for command in described.get_subcommands_mut().filter(|it| it.get_name() != "help" && !it.is_hide_set()) {
        let help = command.render_long_help().to_string();
        assert!(help.contains("Example"), "{}: {help}", command.get_name());
    }
}
