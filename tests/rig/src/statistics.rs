//! The median of a few figures.
//!
//! Owns: the median, the range.
//! Does not own: the figures.
//! Invariants: the median of an even number of figures lies between the two in the middle.

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

#[cfg(test)]
mod tests;
