//! A case raced: contenders in turns, the figures of each, their ratios.
//!
//! Owns: the order of turns, the figures of the rounds.
//! Does not own: the meaning of a figure, the run of a contender.
//! Invariants: one contender works at a time. A contender that fails is out of the case, with its reason; the others go
//! on. A ratio compares figures of one round.

use std::collections::BTreeMap;

use afflux_figures::{MedianAndRange, median, median_and_range, ratios};

/// The contenders of a round in the order of their turns. Each round goes in the other direction than the one before.
/// Of more than two contenders another one begins each time: none works twice in a row, or always after the same other.
pub fn run_order<W: Copy>(contenders: &[W], round: usize) -> Vec<W> {
    let mut run_order = contenders.to_vec();
    if run_order.len() > 2 {
        let first = round % run_order.len();
        run_order.rotate_left(first);
    }
    if round % 2 == 1 {
        run_order.reverse();
    }
    run_order
}

/// The figures of a case: of each contender one a round, or the reason that it is out.
#[derive(Debug)]
pub struct Raced<W, F, E = String>(Vec<(W, Result<Vec<F>, E>)>);

impl<W: Copy + PartialEq, F, E> Raced<W, F, E> {
    /// Races contenders in turns: `run` is one run of a contender in a round.
    pub fn new(contenders: &[W], rounds: usize, mut run: impl FnMut(W, usize) -> Result<F, E>) -> Self {
        let mut raced = Self(contenders.iter().map(|who| (*who, Ok(Vec::new()))).collect());
        for round in 0..rounds {
            for who in run_order(contenders, round) {
                raced.add(who, || run(who, round));
            }
        }
        raced
    }

    /// Adds the figure of a run, unless the contender is out.
    fn add(&mut self, who: W, run: impl FnOnce() -> Result<F, E>) {
        let Some((_, figures)) = self.0.iter_mut().find(|(known, _)| *known == who) else { return };
        if let Ok(so_far) = figures {
            match run() {
                Ok(figure) => so_far.push(figure),
                Err(why) => *figures = Err(why),
            }
        }
    }

    /// The contenders, in their own order.
    pub fn contenders(&self) -> impl Iterator<Item = W> {
        self.0.iter().map(|(who, _)| *who)
    }

    /// The figures of a contender, one a round. None if it did not take part, or is out.
    pub fn of(&self, who: W) -> &[F] {
        let found = self.0.iter().find(|(known, _)| *known == who);
        found.and_then(|(_, figures)| figures.as_ref().ok()).map_or(&[], Vec::as_slice)
    }

    /// Those that are out, and why.
    pub fn out(&self) -> impl Iterator<Item = (W, &E)> {
        self.0.iter().filter_map(|(who, figures)| Some((*who, figures.as_ref().err()?)))
    }

    /// The case if nobody is out.
    pub fn whole(self) -> Result<Self, E> {
        let all: Result<Vec<_>, E> = self.0.into_iter().map(|(who, figures)| Ok((who, Ok(figures?)))).collect();
        all.map(Self)
    }

    /// Median, least and most of a contender's figures.
    pub fn figure(&self, who: W, value: impl Fn(&F) -> f64) -> Option<MedianAndRange> {
        median_and_range(self.of(who).iter().map(value))
    }

    /// The median of a contender's figures.
    pub fn median(&self, who: W, value: impl Fn(&F) -> f64) -> Option<f64> {
        median(self.of(who).iter().map(value))
    }

    /// The ratio of one contender to another: median, least and most of the rounds' own ratios.
    pub fn ratio(&self, of: W, to: W, value: impl Fn(&F) -> f64) -> Option<MedianAndRange> {
        ratios(self.of(of).iter().zip(self.of(to)).map(|(of, to)| (value(of), value(to))))
    }
}

/// The contenders that are out: each reason once, with the names of its cases unless they are all cases of the
/// contender.
pub fn remarks<'a, W: Copy + PartialEq + 'a, F: 'a>(
    cases: impl Iterator<Item = (&'a str, &'a Raced<W, F>)> + Clone,
    name: impl Fn(W) -> &'static str,
) -> Vec<String> {
    let mut out: BTreeMap<(&str, &str), (usize, Vec<&str>)> = BTreeMap::new();
    for (case, raced) in cases.clone() {
        for (who, why) in raced.out() {
            let all = || cases.clone().filter(|(_, raced)| raced.contenders().any(|known| known == who)).count();
            out.entry((name(who), why)).or_insert_with(|| (all(), Vec::new())).1.push(case);
        }
    }
    let line = |((name, why), (all, cases)): ((&str, &str), (usize, Vec<&str>))| {
        if cases.len() == all { format!("{name}: {why}") } else { format!("{name}: {why} ({})", cases.join("; ")) }
    };
    out.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests;
