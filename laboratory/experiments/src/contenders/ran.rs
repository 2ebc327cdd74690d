//! The results of a race on a slow disk.
//!
//! Owns: the record of figures, of looks at the run and of the engine's delays; its row; a plot of looks.
//! Does not own: the races, the names of the figures (the experiments).
//! Invariants: a plot has the first run of each contender.

use afflux_report::{Axis, Fields, Plot, Quantity, Series, Shape};
use serde_json::Value;

/// The results of a run.
#[derive(Debug, Default)]
pub(crate) struct Ran {
    /// As in the tables of the experiment.
    pub(crate) metrics: Fields,
    pub(crate) looks: Vec<Look>,
    /// The waits of calls; `None` for the kernel, which does not report them.
    pub(crate) delays: Option<Value>,
}

/// The state of a run at an instant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Look {
    pub(crate) at_s: f64,
    pub(crate) dirty_bytes: u64,
    /// 0 if nobody counts them.
    pub(crate) accepted_bytes: u64,
    /// The disk's dirty limit; 0 if nobody reads it.
    pub(crate) limit_bytes: u64,
}

impl Ran {
    /// The figures, and the most that was dirty.
    pub(crate) fn metrics(&self) -> Fields {
        let mut metrics = self.metrics.clone();
        if let Some(most) = self.looks.iter().map(|look| look.dirty_bytes).max() {
            metrics.push("dirty_bytes_max", most);
        }
        metrics
    }

    /// A figure of the looks over time.
    pub(crate) fn line(&self, name: &str, of: fn(&Look) -> u64) -> Series {
        // A logarithmic axis has no zero.
        let shown = self.looks.iter().filter(|look| of(look) > 0);
        Series::new(name, Shape::Line, shown.map(|look| (look.at_s, of(look) as f64)).collect())
    }
}

/// Lines of runs over time; nothing without lines.
pub(crate) fn plot(title: String, figure: &str, lines: Vec<Series>) -> Option<Plot> {
    let y = Axis::new(figure, Quantity::Data).log();
    let plot = Plot::new(title, Axis::new("time", Quantity::Time), y).note("The first run of each.");
    (!lines.is_empty()).then(|| lines.into_iter().fold(plot, Plot::with))
}
