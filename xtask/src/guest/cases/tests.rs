use std::fs;
use std::time::Duration;

use super::{Case, LIMIT, folder, limit};
use crate::words::{XtaskCmd, parsed};

fn wanted(words: &[&str]) -> anyhow::Result<Vec<Case>> {
    let XtaskCmd::Guest(guest) = parsed(&[&["guest"], words].concat())?.subcommand else { unreachable!() };
    guest.wanted()
}

#[test]
fn a_case_has_the_limit_of_its_script_and_an_unknown_one_is_refused() {
    assert_eq!(wanted(&["mounts@knfsd", "--cpus", "2"]).unwrap()[0].name, "mounts@knfsd");
    assert_eq!(limit("# words\n# limit: 77\n").unwrap(), Duration::from_secs(77));
    assert_eq!(limit("echo\n").unwrap(), LIMIT);
    assert!(limit("# limit: soon\n").is_err());
    assert!(wanted(&["no-such-case"]).is_err());
}

/// A list that names an absent case would end every run at its start.
#[test]
fn the_lists_name_cases_and_each_case_is_in_the_long_list() {
    let all = wanted(&[]).unwrap();
    assert!(wanted(&["--quick"]).unwrap().len() < all.len());
    for entry in fs::read_dir(folder().join("cases")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let script = file.strip_suffix(".sh").unwrap();
        assert!(all.iter().any(|case| case.script() == script), "{script} is in no list");
    }
}
