//! The median and the range of a few figures, and of their ratios: for races, experiments and benchmarks.
//!
//! Owns: the median, the least, the most; the ratios of figures of one round.
//! Does not own: the figures, percentiles, confidence in a mean.
//! Invariants: the median of an even number of figures lies between the two in the middle
//! (`of_an_even_number_the_median_is_between_the_two_in_the_middle`).

#![forbid(unsafe_code)]

/// The median, the least and the most.
pub type MedianAndRange = [f64; 3];

/// The median, the least and the most of a few figures; `None` without figures.
pub fn median_and_range(figures: impl IntoIterator<Item = f64>) -> Option<MedianAndRange> {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    let (least, most) = (*figures.first()?, *figures.last()?);
    let (low, high) = (figures[(figures.len() - 1) / 2], figures[figures.len() / 2]);
    Some([f64::midpoint(low, high), least, most])
}

/// The median of a few figures; `None` without figures.
pub fn median(figures: impl IntoIterator<Item = f64>) -> Option<f64> {
    median_and_range(figures).map(|[median, ..]| median)
}

/// The first to the second figure of each round: median, least and most of these ratios.
pub fn ratios(rounds: impl IntoIterator<Item = (f64, f64)>) -> Option<MedianAndRange> {
    median_and_range(rounds.into_iter().map(|(of, to)| of / to.max(f64::MIN_POSITIVE)))
}

#[cfg(test)]
mod tests;
