//! The names of series.
//!
//! Owns: samples and names in rows above a plot.
//! Does not own: the looks of series (`sheet`).
//! Invariants: no name reaches beyond the sheet; a longer name is cut.

use crate::markup::{coordinate, cut, text_width};
use crate::sheet::{Anchor, Look, Sheet, Style, Width};

/// Between the baselines of rows.
const ROW: f64 = 19.0;

/// From the start of a sample to its name.
const SAMPLE: f64 = 34.0;

const GAP: f64 = 16.0;

/// The shape of a series, for its sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SeriesSample {
    Line,
    Dots,
    Ticks,
    Reference,
    Bar,
}

pub(crate) struct LegendEntry<'a> {
    pub(crate) name: &'a str,
    pub(crate) sample: SeriesSample,
    pub(crate) style: &'static Style,
}

/// Draws the entries from `top` on and returns the bottom.
pub(crate) fn draw(sheet: &mut Sheet, width: Width, top: f64, entries: &[LegendEntry<'_>]) -> f64 {
    if entries.is_empty() {
        return top;
    }
    let font = width.font();
    let right = width.total() - 2.0;
    let (mut x, mut y) = (2.0, top + ROW - 5.0);
    for entry in entries {
        let name = cut(entry.name, font, right - 2.0 - SAMPLE);
        let length = SAMPLE + text_width(&name, font);
        if x + length > right && x > 2.0 {
            (x, y) = (2.0, y + ROW);
        }
        sample(sheet, entry, x, y - font * 0.33);
        sheet.text(x + SAMPLE, y, Anchor::Start, "name", &name);
        x += length + GAP;
    }
    y + 5.0
}

fn sample(sheet: &mut Sheet, entry: &LegendEntry<'_>, x: f64, y: f64) {
    let Style { class, dash, marker } = entry.style;
    let (from, middle) = (coordinate(x), coordinate(y));
    match entry.sample {
        SeriesSample::Line => {
            sheet.path(&Look { class: &format!("line {class}"), dash }, &format!("M{from} {middle}h28"));
            sheet.path(&Look { class: &format!("mark {class}"), dash: "" }, &marker.outline(x + 14.0, y));
        }
        SeriesSample::Reference => {
            sheet.path(&Look { class: "reference", dash: "4 3" }, &format!("M{from} {middle}h28"))
        }
        SeriesSample::Dots | SeriesSample::Ticks => {
            let spots: String =
                [6.0, 14.0, 22.0].iter().map(|dx| spot(entry.sample == SeriesSample::Ticks, x + dx, y)).collect();
            sheet.path(&Look { class: &format!("dots sample {class}"), dash: "" }, &spots);
        }
        SeriesSample::Bar => sheet.rectangle(&format!("bar {class}"), (x + 4.0, y - 5.0), (20.0, 10.0)),
    }
}

/// A point of a cloud: a round dot, or a short upright tick.
pub(crate) fn spot(upright: bool, x: f64, y: f64) -> String {
    if upright {
        format!("M{} {}v4", coordinate(x), coordinate(y - 2.0))
    } else {
        format!("M{} {}h0", coordinate(x), coordinate(y))
    }
}
