use std::fs;
use std::time::Duration;

use super::{GuestOptions, folder, limit};

#[test]
fn a_case_has_the_limit_of_its_script_and_an_unknown_one_is_refused() {
    let options = GuestOptions::parse(&["mounts@knfsd", "--cpus", "2"]).unwrap();
    assert_eq!((options.cases[0].name.as_str(), options.cpus), ("mounts@knfsd", 2));
    assert_eq!(limit("# words\n# limit: 77\n").unwrap(), Duration::from_secs(77));
    assert_eq!(limit("echo\n").unwrap(), super::LIMIT);
    assert!(limit("# limit: soon\n").is_err());
    for words in [["no-such-case"].as_slice(), &["--frob"], &["--cpus"], &["--cpus", "many"]] {
        assert!(GuestOptions::parse(words).is_err(), "{words:?}");
    }
}

/// A list that names an absent case would end every run at its start.
#[test]
fn the_lists_name_cases_and_each_case_is_in_the_long_list() {
    let all = GuestOptions::parse(&[]).unwrap().cases;
    assert!(GuestOptions::parse(&["--quick"]).unwrap().cases.len() < all.len());
    for entry in fs::read_dir(folder().join("cases")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let script = file.strip_suffix(".sh").unwrap();
        assert!(all.iter().any(|case| case.name.split([':', '@']).next() == Some(script)), "{script} is in no list");
    }
}
