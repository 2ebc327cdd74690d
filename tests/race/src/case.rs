//! The results of the race, and their ratios.
//!
//! Owns: groups, cases and the figures of a run; ratios to the first contender.
//! Does not own: measurement (`rounds`), presentation (`markdown`, `artifacts`), medians and turns (`afflux_rig`).
//! Invariants: a ratio above 1 says that the first contender, Afflux, is better.

use afflux_rig::{MedianAndRange, Raced};

/// The cases of one table.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    /// The unit, as a heading of the columns of figures.
    pub(crate) unit: &'static str,
    /// Whether larger figures are better.
    pub(crate) more_is_better: bool,
    /// A sentence above the table that describes the cases.
    pub(crate) words: String,
    /// The names of the additional figures.
    pub(crate) beside: &'static [&'static str],
    /// Whether the table shows the additional figures beside each figure.
    pub(crate) shows_beside: bool,
    pub(crate) cases: Vec<Case>,
    /// Cases that could not be raced, and the reasons.
    pub(crate) remarks: Vec<String>,
}

/// One row of a table.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) goal: Option<Goal>,
    /// Of all contenders, Afflux first.
    pub(crate) figures: Raced<&'static str, Figure>,
}

/// A ratio to reach.
pub(crate) struct Goal {
    pub(crate) against: &'static str,
    pub(crate) ratio: f64,
}

/// One run of one contender.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    /// Additional figures, in the order of their names.
    pub(crate) beside: Vec<f64>,
}

impl Case {
    /// The first contender.
    pub(crate) fn own(&self) -> &'static str {
        self.figures.contenders().next().unwrap_or_default()
    }

    /// The contenders with which the first is compared.
    pub(crate) fn others(&self) -> impl Iterator<Item = &'static str> {
        self.figures.contenders().skip(1)
    }

    /// Median, least and most.
    pub(crate) fn figure(&self, who: &'static str) -> Option<MedianAndRange> {
        self.figures.figure(who, |figure| figure.value)
    }

    /// The ratio by which the first contender is better than another.
    pub(crate) fn ratio(&self, other: &'static str, more_is_better: bool) -> Option<MedianAndRange> {
        let (of, to) = if more_is_better { (self.own(), other) } else { (other, self.own()) };
        self.figures.ratio(of, to, |figure| figure.value)
    }
}
