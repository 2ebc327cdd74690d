use std::collections::BTreeSet;

use super::{Step, command, steps};
use crate::repository;

#[test]
fn a_step_is_a_command_of_cargo_or_of_this_program() {
    let own = std::path::Path::new("/own");
    let soak = command(&Step { words: "xtask soak --seeds 1", variable: None }, own);
    assert_eq!(soak.get_program(), "/own");
    assert_eq!(soak.get_args().collect::<Vec<_>>(), ["soak", "--seeds", "1"]);
    assert_eq!(command(&Step { words: "test -p a", variable: None }, own).get_program(), "cargo");
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
