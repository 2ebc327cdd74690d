//! The surface of drawings: an SVG of one of two widths.
//!
//! Owns: sizes, margins, the elements of plots, the styles of different series, their names in rows above a plot.
//! Does not own: the drawings (`plot`, `bars`); colours, which the page's style sheet gives to classes, so
//! that one drawing serves light, dark and print.
//! Invariants: coordinates are inside the sheet; all text is escaped. A name that is too long is cut.

use std::fmt::Write as _;

use crate::markup::{coordinate, cut, escape, text_width};

/// Each drawing is made in both widths, so that its text has its true size on a telephone, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    Wide,
    Narrow,
}

impl Width {
    pub(crate) const BOTH: [Self; 2] = [Self::Wide, Self::Narrow];

    /// The class that the style sheet shows or hides.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }

    pub(crate) fn total(self) -> f64 {
        match self {
            Self::Wide => 760.0,
            Self::Narrow => 360.0,
        }
    }

    /// Space for the tick texts of the vertical axis: the same in every plot, so that plots above each other line up.
    pub(crate) fn left(self) -> f64 {
        match self {
            Self::Wide => 62.0,
            Self::Narrow => 54.0,
        }
    }

    pub(crate) fn right(self) -> f64 {
        12.0
    }

    pub(crate) fn plot_height(self) -> f64 {
        match self {
            Self::Wide => 200.0,
            Self::Narrow => 150.0,
        }
    }

    /// Size of text, in the drawing's own pixels.
    pub(crate) fn font(self) -> f64 {
        match self {
            Self::Wide => 13.0,
            Self::Narrow => 12.0,
        }
    }
}

/// The style of a path; the style sheet knows the classes.
pub(crate) struct Look<'a> {
    pub(crate) class: &'a str,
    pub(crate) dash: &'a str,
}

/// The point of a text that is at its coordinates.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Styles of series, in order of use: the class of a colour, a dash pattern and a marker, each different, so that no
/// two series differ by colour alone.
pub(crate) const STYLES: &[Style] = &[
    Style { class: "s0", dash: "", marker: Marker::Circle },
    Style { class: "s1", dash: "7 3", marker: Marker::Square },
    Style { class: "s2", dash: "2 3", marker: Marker::Triangle },
    Style { class: "s3", dash: "9 3 2 3", marker: Marker::Diamond },
    Style { class: "s4", dash: "14 4", marker: Marker::Cross },
    Style { class: "s5", dash: "5 2 1 2 1 2", marker: Marker::Plus },
];

/// The style of one series.
pub(crate) struct Style {
    pub(crate) class: &'static str,
    pub(crate) dash: &'static str,
    pub(crate) marker: Marker,
}

/// The style of the series `at`. After the last style they repeat.
pub(crate) fn style(at: usize) -> &'static Style {
    &STYLES[at % STYLES.len()]
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    Plus,
}

impl Marker {
    /// Its outline around a point.
    pub(crate) fn outline(self, x: f64, y: f64) -> String {
        let at = |dx: f64, dy: f64| format!("{} {}", coordinate(x + dx), coordinate(y + dy));
        match self {
            Self::Circle => format!("M{}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z", at(-3.0, 0.0)),
            Self::Square => format!("M{}h5.4v5.4h-5.4z", at(-2.7, -2.7)),
            Self::Triangle => format!("M{}l3.4 6h-6.8z", at(0.0, -3.6)),
            Self::Diamond => format!("M{}l3.6 3.6l-3.6 3.6l-3.6 -3.6z", at(0.0, -3.6)),
            Self::Cross => format!("M{}l5.6 5.6m0 -5.6l-5.6 5.6", at(-2.8, -2.8)),
            Self::Plus => format!("M{}h7m-3.5 -3.5v7", at(-3.5, 0.0)),
        }
    }
}

pub(crate) struct Sheet {
    body: String,
    width: Width,
}

impl Sheet {
    pub(crate) fn new(width: Width) -> Self {
        Self { body: String::new(), width }
    }

    /// Text with its baseline at `y`.
    pub(crate) fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y, text) = (coordinate(x), coordinate(y), escape(text));
        let _ = writeln!(self.body, "<text x=\"{x}\" y=\"{y}\" class=\"{class}\"{anchor}>{text}</text>");
    }

    pub(crate) fn path(&mut self, look: &Look<'_>, outline: &str) {
        if outline.is_empty() {
            return;
        }
        let dash = if look.dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{}\"", look.dash) };
        let _ = writeln!(self.body, "<path class=\"{}\"{dash} d=\"{outline}\"/>", look.class);
    }

    pub(crate) fn rectangle(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let [x, y, width, height] = [x, y, width, height].map(coordinate);
        let _ =
            writeln!(self.body, "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>");
    }

    /// The whole element. `id` is unique in the document.
    pub(crate) fn finish(self, id: &str, title: &str, description: &str, height: f64) -> String {
        let (width, class, font) = (self.width.total(), self.width.class(), self.width.font());
        let (height, title, description) = (height.ceil(), escape(title), escape(description));
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" font-size=\"{font}\" role=\"img\" \
             aria-labelledby=\"{id}-t {id}-d\" xmlns=\"http://www.w3.org/2000/svg\">\n\
             <title id=\"{id}-t\">{title}</title>\n<desc id=\"{id}-d\">{description}</desc>\n{}</svg>\n",
            self.body
        )
    }
}

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
        SeriesSample::Bar => sheet.rectangle(&format!("bar {class}"), x + 4.0, y - 5.0, 20.0, 10.0),
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
