use super::*;
use crate::knobs::of_simulation;

#[test]
fn the_help_of_each_command_that_simulates_says_what_each_knob_does() {
    for command in ["simulate", "replay"] {
        let mut described = Arguments::described().term_width(0);
        described.build();
        let found = described.get_subcommands_mut().find(|it| it.get_name() == command);
        let help = found.map(clap::Command::render_long_help).unwrap().to_string();
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

/// What is asked of an experiment.
fn asked(words: &[&str]) -> Result<Run, String> {
    let words = ["afflux-lab", "run"].iter().chain(words);
    let matches = Arguments::described().try_get_matches_from(words).map_err(|error| error.to_string())?;
    match Arguments::from_arg_matches(&matches).map_err(|error| error.to_string())?.command {
        Command::Run(run) => Ok(run),
        other => Err(format!("{other:?}")),
    }
}

/// The option's text.
fn text(run: &Run, option: &str) -> String {
    run.options.get_raw(option).unwrap().map(|text| text.to_str().unwrap()).collect()
}

#[test]
fn options_of_an_experiment_stand_beside_those_of_every_run() {
    let read = asked(&["s4", "--link", "100Mbit", "--quick", "--record=4096,8192"]).unwrap();
    assert!(read.form.quick && !read.form.measured && read.experiment.name == "s4");
    assert_eq!(["link", "record"].map(|option| text(&read, option)), ["100Mbit", "4096,8192"]);
    let read = asked(&["--quick", "s4", "--link", "1Gbit", "--json", "--html", "pages", "--measured"]).unwrap();
    assert!(read.form.quick && read.form.json && read.form.measured && read.form.html == Some("pages".into()));
    assert_eq!(text(&read, "link"), "1Gbit");
    assert_eq!(text(&asked(&["s4", "--link", "1Gbit", "--link", "2Gbit"]).unwrap(), "link"), "2Gbit");
    assert!(asked(&["s4", "--link"]).unwrap_err().contains("'--link <RATE>'"));
    assert!(asked(&["s4", "link"]).unwrap_err().contains("'link'"));
    assert!(asked(&["s4", "--json=1"]).unwrap_err().contains("'--json'"));
    assert!(asked(&["s4", "--full"]).unwrap_err().contains("'--full'"), "that is an option of s3");
}

#[test]
fn a_switch_of_an_experiment_stands_without_a_value() {
    let read = asked(&["s3", "--full", "--readers", "10"]).unwrap();
    assert!(read.options.get_flag("full") && text(&read, "readers") == "10");
    assert!(!asked(&["s3", "--readers", "10"]).unwrap().options.get_flag("full"));
    assert!(asked(&["s3", "--full=no"]).unwrap_err().contains("'--full'"));
}
