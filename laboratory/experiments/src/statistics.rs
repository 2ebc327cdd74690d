//! Confidence in a mean, and repetition until the mean is certain enough.
//!
//! The method of S2's author: variants are measured alternately, so that a disturbance of the machine affects all of
//! them. Each is repeated until the 99 % confidence interval of its mean (Student's t) is at most 1 % of the mean to
//! each side. If a bound on the rounds ends the repetition first, the result says so.
//!
//! Owns: the interval, the repetition, the comparison of two means; percentiles.
//! Does not own: the measurement, the median (`afflux_figures`).
//! Invariants: fewer than three samples give no interval. A variant is measured until all are certain, so that all
//! see the same machine.

/// Two-sided 99 % points of Student's t for 2 to 30 degrees of freedom (any table).
const T99: [f64; 29] = [
    9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898,
    2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
];
/// The same for any larger number: a little wide, never narrow.
const T99_MANY: f64 = 2.750;

/// Samples of one variant.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

/// A mean and its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean of the samples.
    pub mean: f64,
    /// Half the width of the 99 % confidence interval; infinite for fewer than three samples.
    pub half_width: f64,
    /// The standard deviation of the samples.
    pub sd: f64,
    /// The number of samples.
    pub samples: usize,
}

impl Samples {
    /// Adds a sample.
    pub fn push(&mut self, sample: f64) {
        self.0.push(sample);
    }

    /// All samples, in the order in which they came.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The mean and its interval.
    pub fn estimate(&self) -> Estimate {
        let count = self.0.len();
        let mean = self.0.iter().sum::<f64>() / count.max(1) as f64;
        if count < 3 {
            return Estimate { mean, half_width: f64::INFINITY, sd: 0.0, samples: count };
        }
        let squares: f64 = self.0.iter().map(|sample| (sample - mean).powi(2)).sum();
        let sd = (squares / (count - 1) as f64).sqrt();
        let t = T99.get(count - 3).copied().unwrap_or(T99_MANY);
        Estimate { mean, half_width: t * sd / (count as f64).sqrt(), sd, samples: count }
    }
}

impl Estimate {
    /// Whether the interval reaches no further than this share of the mean to each side.
    pub fn is_within(&self, share: f64) -> bool {
        self.half_width <= share * self.mean.abs()
    }

    /// Whether the two intervals do not overlap; only then is the difference significant.
    pub fn differs_from(&self, other: &Self) -> bool {
        (self.mean - other.mean).abs() > self.half_width + other.half_width
    }

    /// The percentage by which this mean is above `base`'s, or `None` if the intervals overlap.
    pub fn gain_percent(&self, base: &Self) -> Option<f64> {
        self.differs_from(base).then(|| (self.mean / base.mean - 1.0) * 100.0)
    }
}

/// The smallest value that at least `per_mille` thousandths of the sorted values do not exceed; 0 without values.
pub fn percentile(sorted: &[u64], per_mille: usize) -> u64 {
    let rank = (sorted.len() * per_mille).div_ceil(1000).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

/// The end of a repetition.
#[derive(Clone, Copy, Debug)]
pub struct Repetition {
    /// Share of the mean that the interval may reach to each side.
    pub within: f64,
    /// Fewest rounds.
    pub rounds_min: usize,
    /// Most rounds.
    pub rounds_max: usize,
}

impl Repetition {
    /// The rule of S2's author, with a bound.
    pub const PUBLISHED: Self = Self { within: 0.01, rounds_min: 5, rounds_max: 60 };
    /// For a quick look.
    pub const QUICK: Self = Self { within: 0.05, rounds_min: 3, rounds_max: 5 };
}

/// The result of [`compare`].
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Samples of each variant, in the order of the variants.
    pub variants: Vec<Samples>,
    /// Whether every interval became narrow enough before the bound.
    pub sure: bool,
}

/// Measures `variants` in turn; `measure(variant)` returns one sample. The first round only warms up. The order within
/// a round rotates, so that no variant always follows the same other.
pub fn compare(variants: usize, repetition: Repetition, mut measure: impl FnMut(usize) -> f64) -> Comparison {
    for variant in 0..variants {
        measure(variant);
    }
    let mut all = vec![Samples::default(); variants];
    for round in 0..repetition.rounds_max {
        for turn in 0..variants {
            let variant = (turn + round) % variants;
            let sample = measure(variant);
            all[variant].push(sample);
        }
        let sure = all.iter().all(|samples| samples.estimate().is_within(repetition.within));
        if sure && round + 1 >= repetition.rounds_min {
            return Comparison { variants: all, sure };
        }
    }
    Comparison { variants: all, sure: false }
}

#[cfg(test)]
mod tests;
