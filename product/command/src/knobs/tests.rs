use clap::Command;

use afflux_report::units;

use super::of_server;
use crate::args::Arguments;

fn help_of(command: &str) -> String {
    let mut described = Arguments::described();
    let found = described.get_subcommands_mut().find(|it| it.get_name() == command);
    found.map(Command::render_long_help).unwrap().to_string()
}

#[test]
fn the_help_of_each_command_that_sets_knobs_says_what_each_does() {
    for command in ["serve", "set"] {
        let help = help_of(command);
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for (_, info) in of_server().all() {
            let (head, does) = info.help_with(units::count);
            assert!(help.contains(&format!("\n  {head}\n")), "{command}: {head}");
            let does = does.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(does.len() > 10 && words.contains(&does), "{command}: {}: {does}", info.name);
        }
        let of_knobs = help.split("Knobs:").nth(1).unwrap();
        let widest = of_knobs.lines().filter(|line| line.starts_with("      ")).map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= 100), "{command}: {widest:?}");
    }
}

#[test]
fn every_command_has_an_example_in_its_help() {
    let mut described = Arguments::described();
    described.build();
    for command in described.get_subcommands_mut().filter(|it| it.get_name() != "help" && !it.is_hide_set()) {
        let help = command.render_long_help().to_string();
        assert!(help.contains("Example"), "{}: {help}", command.get_name());
    }
}
