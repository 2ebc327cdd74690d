use std::collections::BTreeSet;

use super::{APART, MODELLED};
use crate::{nightly, repository};

/// A model that no list names would break unnoticed.
#[test]
fn a_gate_compiles_each_model_of_threads_and_a_night_runs_it() {
    let paths = repository::paths().unwrap();
    let modelled: BTreeSet<String> = paths
        .iter()
        .filter(|path| path.ends_with("/loom_models.rs"))
        .map(|path| path.split('/').nth(1).unwrap())
        .map(|folder| format!("afflux-{}", folder.trim_start_matches("afflux-")))
        .collect();
    assert_eq!(modelled.iter().map(String::as_str).collect::<Vec<_>>(), MODELLED);
    for name in MODELLED {
        let runs = |step: &str| step.contains("loom_") && step.split(' ').any(|word| word == name);
        assert!(nightly::steps().any(runs), "{name}");
    }
}

#[test]
fn each_lock_file_belongs_to_a_workspace_that_a_gate_compiles() {
    let paths = repository::paths().unwrap();
    let locked: Vec<&str> = paths.iter().filter_map(|path| path.strip_suffix("/Cargo.lock")).collect();
    assert_eq!(locked, APART);
}
