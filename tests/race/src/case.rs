//! A case and its results.
//!
//! Owns: a contender's figures in a case, goals, ratios.
//! Does not own: measurement (`rounds`), presentation (`markdown`, `artifacts`).
//! Invariants: a ratio compares two runs of one round; above 1 the first contender, Afflux, is better.

use afflux_experiments::statistics::median_and_range;

/// The cases of one table.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    /// The unit, as a heading of the columns of figures.
    pub(crate) unit: &'static str,
    /// Whether larger figures are better.
    pub(crate) more_is_better: bool,
    /// A sentence above the table that describes the cases.
    pub(crate) words: String,
    /// The additional figures that are shown beside each figure.
    pub(crate) shown: &'static [&'static str],
    pub(crate) cases: Vec<Case>,
    /// Cases that could not be raced, and the reasons.
    pub(crate) remarks: Vec<String>,
}

/// One row of a table.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) goal: Option<Goal>,
    /// Results in order, Afflux first.
    pub(crate) results: Vec<Outcome>,
}

/// A ratio to reach.
pub(crate) struct Goal {
    pub(crate) against: &'static str,
    pub(crate) ratio: f64,
}

/// One contender's result in a case.
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    /// A figure for each round, or the reason that there is none.
    pub(crate) rounds: Result<Vec<f64>, String>,
    /// Additional figures by name, one for each round.
    pub(crate) beside: Vec<(&'static str, Vec<f64>)>,
}

impl Outcome {
    /// Median, least and most.
    pub(crate) fn figure(&self) -> Option<[f64; 3]> {
        median_and_range(self.rounds.as_ref().ok()?.clone())
    }
}

impl Case {
    /// The ratio by which the first contender is better than this one: median, least and most over the rounds.
    pub(crate) fn ratio(&self, other: &Outcome, more_is_better: bool) -> Option<[f64; 3]> {
        let own = self.results.first()?.rounds.as_ref().ok()?;
        let theirs = other.rounds.as_ref().ok()?;
        let of = |(own, theirs): (&f64, &f64)| if more_is_better { own / theirs } else { theirs / own };
        median_and_range(own.iter().zip(theirs).map(of).collect())
    }

    pub(crate) fn outcome(&self, name: &str) -> Option<&Outcome> {
        self.results.iter().find(|outcome| outcome.name == name)
    }
}

#[cfg(test)]
mod tests;
