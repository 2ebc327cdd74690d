use afflux_report::units;
use clap::Command;

use super::Arguments;
use crate::knobs::of_simulation;

#[test]
fn the_help_of_each_command_that_simulates_says_what_each_knob_does() {
    for command in ["simulate", "replay"] {
        let mut described = Arguments::described().term_width(0);
        described.build();
        let found = described.get_subcommands_mut().find(|it| it.get_name() == command);
        let help = found.map(Command::render_long_help).unwrap().to_string();
        for (_, info) in of_simulation().all() {
            let (head, _) = info.help_with(units::count);
            assert!(help.contains(&format!("\n  {head}\n")), "{command}: {head}");
        }
    }
}

#[test]
fn every_command_has_an_example_in_its_help() {
    let mut described = Arguments::described();
    described.build();
    for command in described.get_subcommands_mut().filter(|it| it.get_name() != "help") {
        let help = command.render_long_help().to_string();
        assert!(help.contains("Example"), "{}: {help}", command.get_name());
    }
}
