#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

const RATE: OptionInfo = OptionInfo { name: "rate", value: "LIST", default: "1,2", doc: "rates" };

struct Nothing;

impl Experiment for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }
    fn about(&self) -> &'static str {
        "nothing at all"
    }
    fn fitted(&self) -> &'static str {
        "fitted: nothing; predicted: nothing"
    }
    fn thread(&self) -> &'static str {
        "none"
    }
    fn words(&self) -> &'static str {
        "# Words\n\n## row\n\nA line."
    }
    fn options(&self) -> &'static [OptionInfo] {
        &[RATE]
    }
    fn can_measure(&self) -> bool {
        false
    }
    fn run(&self, _: &Request, _: &mut dyn Watch) -> Result<Findings, LabError> {
        Ok(Findings::default())
    }
}

fn given(name: &str, value: &str) -> Request {
    Request { given: vec![(name.to_owned(), value.to_owned())], ..Request::default() }
}

#[test]
fn options_are_checked_read_and_have_defaults() {
    let number = |text: &str| text.parse::<u32>().map_err(|_| "not a number".to_owned());
    assert_eq!(Request::default().list(&RATE, number).unwrap(), [1, 2]);
    assert_eq!(given("rate", "7, 8").list(&RATE, number).unwrap(), [7, 8]);
    let error = given("rate", "7,x").list(&RATE, number).unwrap_err().to_string();
    assert_eq!(error, "--rate 7,x: not a number");
    let error = given("speed", "7").check(&Nothing).unwrap_err().to_string();
    assert_eq!(error, "nothing has no option '--speed'; it has --rate");
    given("rate", "7").check(&Nothing).unwrap();
}

#[test]
fn every_experiment_says_what_was_fitted_and_what_is_predicted_in_a_line() {
    for experiment in crate::EXPERIMENTS {
        let (name, line) = (experiment.name(), experiment.fitted());
        let (fitted, predicted) = line.split_once("; predicted: ").unwrap_or_else(|| panic!("{name}: {line}"));
        assert!(fitted.starts_with("fitted: ") && fitted.len() > "fitted: ".len() && !predicted.is_empty(), "{name}");
        assert!(!line.contains('\n'), "{name}: {line}");
    }
}
