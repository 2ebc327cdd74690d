use std::collections::BTreeSet;

use super::{FRESH, Step, command, empty_home, steps};
use crate::repository;

#[test]
fn a_step_is_a_command_of_cargo_or_of_this_program() {
    let own = std::path::Path::new("/own");
    let soak = command(&Step { words: "xtask soak --seeds 1", variable: None }, own);
    assert_eq!(soak.get_program(), "/own");
    assert_eq!(soak.get_args().collect::<Vec<_>>(), ["soak", "--seeds", "1"]);
    assert_eq!(command(&Step { words: "test -p a", variable: None }, own).get_program(), "cargo");
}

#[test]
fn a_home_of_cargos_is_empty_but_for_settings() {
    let home = empty_home().unwrap();
    let names = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| name == "config.toml" || name == "credentials.toml"));
    let fresh = super::listed().filter(|step| step.variable == Some(("CARGO_HOME", FRESH))).map(|step| step.words);
    let fresh: Vec<_> = fresh.collect();
    assert!(fresh.iter().any(|words| words.starts_with("xtask deb")), "{fresh:?}");
    assert!(fresh.iter().any(|words| words.starts_with("xtask install-c")), "{fresh:?}");
}

/// A renamed test program or package would fail every night.
#[test]
fn the_steps_name_test_programs_that_exist() {
    let paths = repository::paths().unwrap();
    let programs: BTreeSet<&str> = paths
        .iter()
        .filter_map(|path| path.split_once("/tests/")?.1.strip_suffix(".rs"))
        .map(|name| name.strip_suffix("/main").unwrap_or(name))
        .collect();
    let named: Vec<&str> = steps().filter_map(|words| words.split_once("--test ")?.1.split(' ').next()).collect();
    assert!(named.len() >= 5);
    for name in named {
        assert!(programs.contains(name), "there is no test program {name}");
    }
}
