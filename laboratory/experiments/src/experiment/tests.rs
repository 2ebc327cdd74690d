#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

const RATE: OptionInfo = OptionInfo { name: "rate", value: "LIST", default: "1,2", doc: "rates" };

#[test]
fn options_are_read_and_have_defaults() {
    let number = |text: &str| text.parse::<u32>().map_err(|_| "not a number".to_owned());
    assert_eq!(Request::default().list(&RATE, number).unwrap(), [1, 2]);
    assert_eq!(given(&[("rate", "7, 8")]).list(&RATE, number).unwrap(), [7, 8]);
    let error = given(&[("rate", "7,x")]).list(&RATE, number).unwrap_err().to_string();
    assert_eq!(error, "--rate 7,x: not a number");
}

#[test]
fn the_words_of_labels_fit_in_a_line() {
    let all =
        crate::EXPERIMENTS.iter().flat_map(|experiment| experiment.labels.iter().map(|it| (experiment.name, it.what)));
    for (name, what) in all {
        assert!(!what.is_empty() && !what.contains([';', '\n']) && !what.ends_with('.'), "{name}: {what}");
    }
}

/// Stores what a run reports, for the tests of experiments.
#[derive(Default)]
pub(crate) struct Reported {
    pub(crate) rows: Vec<Row>,
    pub(crate) done: Vec<f64>,
    pub(crate) remarks: Vec<String>,
}

impl Watch for Reported {
    fn row(&mut self, row: &Row) {
        self.rows.push(row.clone());
    }
    fn step(&mut self, _: &str, done: f64) {
        self.done.push(done);
    }
    fn remark(&mut self, what: &str) {
        self.remarks.push(what.to_owned());
    }
}

impl Reported {
    /// The rows as `--json` prints them.
    pub(crate) fn json(&self) -> Vec<serde_json::Value> {
        self.rows.iter().map(|row| serde_json::to_value(row).expect("a row is JSON")).collect()
    }
}

/// A request with these options.
pub(crate) fn given(pairs: &[(&str, &str)]) -> Request {
    let given = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Request { given, ..Request::default() }
}
