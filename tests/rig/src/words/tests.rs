use super::*;

fn parsed(words: &[&str]) -> xflags::Result<Races> {
    Races::from_vec(words.iter().map(OsString::from).collect())
}

#[test]
fn a_part_of_a_race_is_not_whole() {
    let is_whole = |words: &[&str]| parsed(words).unwrap().is_whole();
    assert!(is_whole(&["race", "--rounds", "3"]) && is_whole(&["race-stores", "--minutes", "4"]));
    assert!(is_whole(&["race-mount", "--all-cpus", "--profile", "demo"]) && is_whole(&["race-kills"]));
    for part in [
        &["race", "--half", "fio"][..],
        &["race-nfs", "--quick"],
        &["race-mount", "--only", "untar"],
        &["race-kills", "--json"],
    ] {
        assert!(!is_whole(part), "{part:?}");
    }
}

#[test]
fn words_that_a_race_would_not_obey_are_refused_with_the_value_and_its_range() {
    for (words, told) in [
        (&["race", "--rounds", "0"][..], "`--rounds`, '0' is no whole number from 1 to "),
        (&["race-kills", "--rounds", "many"], "'many' is no whole number"),
        (&["race", "--half", "both"], "'both' is none of memory, redb, fio"),
        (&["race-nfs", "--json"], "`--json`"),
        (&["race-mount", "--only"], "`--only`"),
        (&["race", "fast"], "fast"),
        (&["--quick"], "subcommand is required"),
    ] {
        let error = parsed(words).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_race_wants_what_its_words_say() {
    let some = parsed(&["race-nfs", "--only", "READ", "--only", "tar", "--quick"]).unwrap();
    assert!(some.is_wanted("cold READ 4 KiB") && some.is_wanted("tar of a tree") && !some.is_wanted("CREATE"));
    assert_eq!(some.rounds_or(5), 1);
    let all = parsed(&["race-nfs", "--rounds", "2"]).unwrap();
    assert!(all.is_wanted("CREATE") && all.rounds_or(5) == 2);
    assert_eq!(parsed(&["race-nfs"]).unwrap().rounds_or(5), 5);
}
