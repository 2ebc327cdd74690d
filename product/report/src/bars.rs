//! Bars: a figure for each of several things, with its uncertainty.
//!
//! Owns: horizontal bars in groups, error bars, values written beside them.
//! Does not own: units (`axis`), the surface (`sheet`).
//! Invariants: bars begin at zero, and every value is written out. A group's name that does not fit into the lines
//! beside its bars is cut there, and complete in the description. An interval far wider than the others ends with the
//! axis, and a sentence gives its end.

#[cfg(test)]
mod tests;

use crate::axis::{Axis, Quantity, Scale};
use crate::markup::{coordinate, cut, text_width, together};
use crate::plot::fitting;
use crate::sheet::{self, Anchor, LegendEntry, Look, SeriesSample, Sheet, Width, style};

/// Thickness of a bar, and the gap between groups.
const BAR: f64 = 16.0;
const GROUP_GAP: f64 = 12.0;

/// Names take at most this fraction of the sheet.
const NAME_PART: f64 = 0.36;

/// The ends of this fraction of the intervals decide where the axis ends ...
const MOST: f64 = 0.9;

/// ... unless all are within this multiple of it.
const FAR: f64 = 2.0;

/// Distance of two lines of a name, in heights of its letters.
const LINE: f64 = 1.2;

/// Breaks a name between words into at most `lines_max` lines; the last one is cut if the name is longer.
fn broken(name: &str, font: f64, width: f64, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in together(name).split(' ') {
        let full = lines.len() == lines_max;
        match lines.last_mut() {
            Some(line) if full || text_width(&format!("{line} {word}"), font) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| cut(line, font, width)).collect()
}

/// One bar with its label and figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    value: f64,
    interval: Option<(f64, f64)>,
}

impl Bar {
    /// A figure without uncertainty.
    #[must_use]
    pub fn new(value: f64) -> Self {
        Self { value, interval: None }
    }

    /// With the interval from `low` to `high` that contains it.
    #[must_use]
    pub fn within(self, low: f64, high: f64) -> Self {
        Self { interval: Some((low, high)), ..self }
    }

    fn end(self) -> f64 {
        let high = self.interval.map_or(self.value, |(_, high)| high.max(self.value));
        if high.is_finite() { high.max(0.0) } else { 0.0 }
    }

    /// How far it reaches below zero.
    fn begin(self) -> f64 {
        let low = self.interval.map_or(self.value, |(low, _)| low.min(self.value));
        if low.is_finite() { low.min(0.0) } else { 0.0 }
    }
}

/// Bars in groups, to be put on a [`crate::HtmlPage`].
#[derive(Clone, Debug)]
pub struct Bars {
    title: String,
    note: String,
    label: String,
    quantity: Quantity,
    series: Vec<String>,
    groups: Vec<(String, Vec<Option<Bar>>)>,
}

impl Bars {
    /// Bars without groups. Each group will have a bar for each of `series`, in this order.
    #[must_use]
    pub fn new(
        title: impl Into<String>,
        label: impl Into<String>,
        quantity: Quantity,
        series: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let series = series.into_iter().map(Into::into).collect();
        Self { title: title.into(), note: String::new(), label: label.into(), quantity, series, groups: Vec::new() }
    }

    /// With a sentence below the title.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// With one more group; `None` for a series without a figure.
    #[must_use]
    pub fn group(mut self, name: impl Into<String>, bars: Vec<Option<Bar>>) -> Self {
        self.groups.push((name.into(), bars));
        self
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// The note, and the ends of intervals that the axis cuts.
    pub(crate) fn sentence(&self) -> String {
        let (low, high) = self.reach();
        let cut = |bar: &Bar| bar.begin() < low || bar.end() > high;
        let named = |(name, series, bar): (&str, &str, Bar)| {
            let series = if self.series.len() < 2 { String::new() } else { format!(", {series}") };
            let (from, to) = bar.interval.unwrap_or_default();
            let [from, to] = [from, to].map(|value| self.quantity.text(value));
            format!("Cut: the interval of {name}{series} is from {from} to {to}.")
        };
        let note = (!self.note.is_empty()).then(|| self.note.clone());
        let cut = self.named().filter(|(_, _, bar)| cut(bar)).map(named);
        note.into_iter().chain(cut).collect::<Vec<_>>().join(" ")
    }

    /// The ends of the axis: all values, and all intervals unless a few are far wider than the others.
    fn reach(&self) -> (f64, f64) {
        let side = |ends: Vec<f64>, values: f64| {
            let mut ends = ends;
            ends.sort_by(f64::total_cmp);
            let longest = ends.last().copied().unwrap_or(0.0);
            let at = (ends.len() as f64 * MOST).ceil() as usize;
            let most = ends.get(at.saturating_sub(1)).copied().unwrap_or(0.0).max(values);
            if most > 0.0 && longest > FAR * most { most } else { longest }
        };
        let largest =
            |sign: f64| self.figures().map(|bar| sign * bar.value).filter(|it| it.is_finite()).fold(0.0, f64::max);
        let high = side(self.figures().map(Bar::end).collect(), largest(1.0));
        let low = side(self.figures().map(|bar| -bar.begin()).collect(), largest(-1.0).max(high));
        (-low, high)
    }

    /// Each figure with the names of its group and its series.
    fn named(&self) -> impl Iterator<Item = (&str, &str, Bar)> {
        self.groups.iter().flat_map(move |(name, bars)| {
            let series = self.series.iter().map(String::as_str);
            series.zip(bars).filter_map(move |(series, bar)| Some((name.as_str(), series, (*bar)?)))
        })
    }

    /// The drawing; `id` is unique in the document.
    pub(crate) fn svg(&self, width: Width, id: &str) -> String {
        let font = width.font();
        let widest = |texts: &mut dyn Iterator<Item = String>| texts.map(|t| text_width(&t, font)).fold(0.0, f64::max);
        let names = widest(&mut self.groups.iter().map(|(name, _)| name.clone()));
        let axis = Axis::new(self.label.clone(), self.quantity).whole_if(self.figures().map(|bar| bar.value));
        let (lowest, largest) = self.reach();
        let wanted = if width == Width::Wide { 6 } else { 3 };
        let scale = axis.scale(lowest, largest, wanted);
        let value_text = |bar: Bar| axis.value_text(&scale, bar.value);
        let values = widest(&mut self.figures().map(value_text));
        let left = names.min(width.total() * NAME_PART) + 12.0;
        let inside = width.total() - left - values - 14.0;
        let position = |scale: &Scale, value: f64| left + scale.position(value).unwrap_or(0.0) * inside;

        let mut sheet = Sheet::new(width);
        let (ticks, text) = fitting(&axis, &scale, wanted, inside, font);
        let top = sheet::draw(&mut sheet, width, 0.0, &self.entries()) + 8.0;
        let each = self.series.len().max(1) as f64 * BAR + GROUP_GAP;
        let bottom = top + self.groups.len() as f64 * each;
        let mut lines = String::new();
        for tick in &ticks {
            let x = left + tick.position * inside;
            lines.push_str(&format!("M{} {}V{}", coordinate(x), coordinate(top), coordinate(bottom + 4.0)));
            sheet.text(x, bottom + 6.0 + font, Anchor::Middle, "tick", &tick.text);
        }
        sheet.path(&Look { class: "grid", dash: "" }, &lines);
        for (at, (name, bars)) in self.groups.iter().enumerate() {
            let y = top + at as f64 * each + GROUP_GAP / 2.0;
            let middle = y + (each - GROUP_GAP) / 2.0;
            let lines = broken(name, font, left - 11.5, ((each - GROUP_GAP) / (font * LINE)).max(1.0) as usize);
            let first = middle + font * 0.35 - (lines.len() - 1) as f64 * font * LINE / 2.0;
            for (line, text) in lines.iter().enumerate() {
                sheet.text(left - 8.0, first + line as f64 * font * LINE, Anchor::End, "name", text);
            }
            for (order, bar) in bars.iter().enumerate() {
                let Some(bar) = bar else { continue };
                let at = (y + order as f64 * BAR, order);
                draw_bar(&mut sheet, bar, at, (&value_text(*bar), font), &|value| position(&scale, value));
            }
        }
        sheet.path(
            &Look { class: "axis", dash: "" },
            &format!("M{} {}V{}", coordinate(position(&scale, 0.0)), coordinate(top), coordinate(bottom)),
        );
        sheet.text(left + inside / 2.0, bottom + 36.0, Anchor::Middle, "label", &text);
        sheet.finish(id, &self.title, &self.description(), bottom + 42.0)
    }

    fn description(&self) -> String {
        let mut text = format!("{}.", self.label);
        for (name, bars) in &self.groups {
            for (series, bar) in self.series.iter().zip(bars) {
                if let Some(bar) = bar {
                    text.push_str(&format!(" {name}, {series}: {}.", self.quantity.text(bar.value)));
                }
            }
        }
        text
    }

    fn entries(&self) -> Vec<LegendEntry<'_>> {
        if self.series.len() < 2 {
            return Vec::new();
        }
        let entry = |(at, name)| LegendEntry { name, sample: SeriesSample::Bar, style: style(at) };
        self.series.iter().map(String::as_str).enumerate().map(entry).collect()
    }

    fn figures(&self) -> impl Iterator<Item = Bar> + '_ {
        self.groups.iter().flat_map(|(_, bars)| bars.iter().flatten().copied())
    }
}

/// Draws one bar with its value beside it. `at` has its height and its index in its group, which decides the style.
fn draw_bar(sheet: &mut Sheet, bar: &Bar, at: (f64, usize), text: (&str, f64), position: &dyn Fn(f64) -> f64) {
    let ((y, order), (text, font)) = (at, text);
    let (from, to) = (position(bar.value.min(0.0)), position(bar.value.max(0.0)));
    sheet.rectangle(&format!("bar {}", style(order).class), from, y + 1.0, (to - from).max(0.0), BAR - 2.0);
    let middle = y + BAR / 2.0;
    if let Some((low, high)) = bar.interval.filter(|(low, high)| low < high) {
        let [low, high, from] = [position(low), position(high), middle - 3.5].map(coordinate);
        let across = coordinate(middle);
        let outline = format!("M{low} {across}H{high}M{low} {from}v7M{high} {from}v7");
        sheet.path(&Look { class: "interval", dash: "" }, &outline);
    }
    sheet.text(position(bar.end()) + 5.0, middle + font * 0.35, Anchor::Start, "tick", text);
}
