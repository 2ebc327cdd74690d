#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;

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

/// A request with these options of an experiment. One without a value is a switch.
pub(crate) fn asked(experiment: &Experiment, pairs: &[(&str, &str)]) -> Result<Request, LabError> {
    let command = experiment.command().no_binary_name(true);
    let is_switch = |name: &str| {
        let arg = command.get_arguments().find(|arg| arg.get_long() == Some(name)).unwrap();
        !arg.get_action().takes_values()
    };
    let word = |(name, value): &(&str, &str)| match is_switch(name) {
        true => format!("--{name}"),
        false => format!("--{name}={value}"),
    };
    let words: Vec<String> = pairs.iter().map(word).collect();
    let options = command.try_get_matches_from(words).map_err(LabError::failed)?;
    Ok(Request { quick: false, measured: false, options })
}

/// As [`asked`], for options that can be used.
pub(crate) fn given(experiment: &Experiment, pairs: &[(&str, &str)]) -> Request {
    asked(experiment, pairs).unwrap()
}
