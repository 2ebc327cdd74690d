//! A case and what came of it.
//!
//! Owns: what is told of a contender in a case, goals, ratios.
//! Does not own: how it is measured (`rounds`), how it looks (`markdown`, `artifacts`).
//! Invariants: a ratio is of two runs of one round; above 1 the first contender, Afflux, is the better one.

use afflux_experiments::statistics::median_and_range;

/// Cases that stand in one table.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    /// What is counted, as a heading of the columns of figures.
    pub(crate) unit: &'static str,
    /// Whether more of it is better.
    pub(crate) more_is_better: bool,
    /// A sentence above the table: what was done.
    pub(crate) words: String,
    /// Which of the figures that stand beside a figure are shown with it.
    pub(crate) shown: &'static [&'static str],
    pub(crate) cases: Vec<Case>,
    /// What could not be raced, and why.
    pub(crate) remarks: Vec<String>,
}

/// One row of a table.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) goal: Option<Goal>,
    /// Afflux first.
    pub(crate) results: Vec<Outcome>,
}

/// A ratio that is wanted.
pub(crate) struct Goal {
    pub(crate) against: &'static str,
    pub(crate) ratio: f64,
}

/// What one contender did in a case.
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    /// A figure a round; or why there is none.
    pub(crate) rounds: Result<Vec<f64>, String>,
    /// Figures that stand beside it, by name, a figure a round.
    pub(crate) beside: Vec<(&'static str, Vec<f64>)>,
}

impl Outcome {
    /// Median, least and most.
    pub(crate) fn figure(&self) -> Option<[f64; 3]> {
        median_and_range(self.rounds.as_ref().ok()?.clone())
    }
}

impl Case {
    /// How much better the first contender is than this one: median, least and most over the rounds.
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
