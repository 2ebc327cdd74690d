#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

fn asked(words: &[&str]) -> Result<ExperimentRequest, String> {
    asked_of("s4", words)
}

fn asked_of(name: &str, words: &[&str]) -> Result<ExperimentRequest, String> {
    let options = words.iter().map(|word| (*word).to_owned()).collect();
    let name = Some(name.to_owned());
    let args = Run { name, help: false, json: false, html: None, quick: false, measured: false, options };
    ExperimentRequest::read(&args).map_err(|failure| failure.to_string())
}

#[test]
fn options_of_the_experiment_are_pairs() {
    let read = asked(&["--link", "100Mbit", "--quick", "--record=4096,8192"]).unwrap();
    assert!(read.quick && !read.measured);
    let pairs = [("link", "100Mbit"), ("record", "4096,8192")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(read.given, pairs);
    assert!(asked(&["--link"]).err().unwrap().contains("--link needs a value"));
    assert!(asked(&["link"]).err().unwrap().contains("'link' is not --OPTION VALUE"));
    let read = asked(&["--link", "100Mbit", "--json", "--html", "pages", "--measured"]).unwrap();
    assert!(read.json && read.measured && read.html == Some("pages".into()) && read.given.len() == 1);
    assert!(asked(&["--json=1"]).err().unwrap().contains("--json takes no value, and '1' was given"));
}

#[test]
fn a_switch_of_the_experiment_stands_without_a_value() {
    let read = asked_of("s3", &["--full", "--readers", "10"]).unwrap();
    let pairs = [("full", "yes"), ("readers", "10")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(read.given, pairs);
    assert!(asked_of("s3", &["--full=no"]).err().unwrap().contains("--full takes no value, and 'no' was given"));
    assert!(asked_of("s4", &["--full"]).err().unwrap().contains("--full needs a value"));
}
