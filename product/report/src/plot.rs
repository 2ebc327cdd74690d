//! Plots of one quantity over another: lines, steps, clouds of points.
//!
//! Owns: the frame with its axes, drawing series, omitting invisible points, finding lines that lie on each other.
//! Does not own: units and positions (`axis`), the surface (`sheet`).
//! Invariants: nothing is drawn outside the frame. A value that is not finite is a gap. A line retains the smallest and
//! the largest value of each column of pixels; a cloud retains a point for each half pixel with a point. Lines that lie
//! on each other can all be seen, and a sentence names them: a line is in one group at most, and a group has two lines
//! at least.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::axis::{Axis, Scale, Tick};
use crate::markup::{coordinate, text_width};
use crate::sheet::{self, Anchor, LegendEntry, Look, SeriesSample, Sheet, Width, style};

/// A reference this many times above all other values is not drawn, since it would leave no space for them.
const FAR: f64 = 4.0;

/// A line with at most this many points has a marker at each; a longer one has this many, spread over it.
const MARKERS_MAX: usize = 12;

/// The shape of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A line from point to point.
    Line,
    /// A value holds until the next.
    Steps,
    /// Points that are not joined: round dots.
    Dots,
    /// Points that are not joined: short upright strokes.
    Ticks,
    /// A limit or a published value: a thin dashed line that holds until the next point.
    Reference,
}

/// One series of a plot.
#[derive(Clone, Debug)]
pub struct Series {
    name: String,
    shape: Shape,
    points: Vec<(f64, f64)>,
}

impl Series {
    /// A series of points, in the units of the axes. Except for clouds, the points are in ascending order of their
    /// first coordinate.
    #[must_use]
    pub fn new(name: impl Into<String>, shape: Shape, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), shape, points }
    }
}

/// A plot, to be put on a [`crate::HtmlPage`].
#[derive(Clone, Debug)]
pub struct Plot {
    title: String,
    note: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
}

/// The inside of the frame on the sheet.
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Plot {
    /// A plot without series.
    #[must_use]
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), note: String::new(), x, y, series: Vec::new() }
    }

    /// With a sentence below the title that guides the reader.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// With one more series.
    #[must_use]
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// The note, and the names of lines that lie on each other.
    pub(crate) fn sentence(&self) -> String {
        let groups = groups(&self.in_frame());
        let names = |group: &Vec<usize>| {
            let names = group.iter().filter_map(|at| self.drawn().nth(*at)).map(|series| series.name.as_str());
            let names: Vec<&str> = names.collect();
            format!("{} lie on each other.", names.join(" and "))
        };
        let far = self.series.iter().filter(|series| self.is_far(series)).map(|series| {
            let (low, _) = extent(series.points.iter().map(|point| point.1));
            format!("Above the plot: {}, {}.", series.name, self.y.quantity.text(low))
        });
        let note = (!self.note.is_empty()).then(|| self.note.clone());
        note.into_iter().chain(groups.iter().map(names)).chain(far).collect::<Vec<_>>().join(" ")
    }

    /// Whether a series is a reference far above all other series: then a sentence mentions it instead of a drawing.
    fn is_far(&self, series: &Series) -> bool {
        if series.shape != Shape::Reference || self.y.is_log() || self.y.has_range() {
            return false;
        }
        let others = self.series.iter().filter(|other| other.shape != Shape::Reference);
        let highest = extent(others.flat_map(|other| &other.points).map(|point| point.1).filter(|y| y.is_finite())).1;
        highest > 0.0 && extent(series.points.iter().map(|point| point.1)).0 > FAR * highest
    }

    /// Scales of both axes.
    fn scales(&self, wanted: (usize, usize)) -> (Axis, Scale, Axis, Scale) {
        let x = self.x.clone().across().whole_if(self.finite().map(|(x, _)| x));
        let y = self.y.clone().whole_if(self.finite().map(|(_, y)| y));
        let (left, right) = extent(self.finite().map(|(x, _)| x).filter(|it| x.has(*it)));
        let (bottom, top) = extent(self.finite().map(|(_, y)| y).filter(|it| y.has(*it)));
        let across = x.scale(left, right, wanted.0);
        let up = y.scale(bottom, top, wanted.1);
        (x, across, y, up)
    }

    /// The lines, in fractions of the frame; empty for series that are not lines.
    fn in_frame(&self) -> Vec<Vec<(f64, f64)>> {
        let (_, across, _, up) = self.scales((10, 5));
        let position = |&(x, y): &(f64, f64)| Some((across.position(x)?, up.position(y)?));
        let is_line = |series: &&Series| matches!(series.shape, Shape::Line | Shape::Steps);
        let of =
            |series: &Series| Some(series).filter(is_line).map(|it| it.points.iter().filter_map(position).collect());
        self.drawn().map(|series| of(series).unwrap_or_default()).collect()
    }

    /// The drawing; `id` is unique in the document.
    pub(crate) fn svg(&self, width: Width, id: &str) -> String {
        let mut sheet = Sheet::new(width);
        let wanted = match width {
            Width::Wide => (10, 5),
            Width::Narrow => (6, 4),
        };
        // Decades may be closer together: they are more useful than steps between them.
        let wanted = (wanted.0, if self.y.is_log() { 8 } else { wanted.1 });
        let (x_axis, x, y_axis, y) = self.scales(wanted);
        let (y_ticks, y_text) = y_axis.ticks(&y, wanted.1);
        let inside = width.total() - width.left() - width.right();
        let (x_ticks, x_text) = fitting(&x_axis, &x, wanted.0, inside, width.font());

        sheet.text(2.0, 14.0, Anchor::Start, "label", &y_text);
        let top = sheet::draw(&mut sheet, width, 20.0, &self.entries()) + 8.0;
        let frame = Frame { left: width.left(), top, width: inside, height: width.plot_height() };
        draw_axes(&mut sheet, &frame, &x_ticks, &y_ticks, width.font());
        let bottom = frame.top + frame.height + 36.0;
        sheet.text(frame.left + frame.width / 2.0, bottom, Anchor::Middle, "label", &x_text);
        if self.finite().next().is_none() {
            let (x, y) = (frame.left + frame.width / 2.0, frame.top + frame.height / 2.0);
            sheet.text(x, y, Anchor::Middle, "label", "no data");
        }
        let groups = groups(&self.in_frame());
        for (at, (series, order)) in self.ordered().enumerate() {
            // All but the last of several lines in the same position are broad, so that each can be seen below the
            // next.
            let under = groups.iter().any(|group| group.contains(&at) && group.last() != Some(&at));
            draw_series(&mut sheet, &frame, series, &x, &y, order, under);
        }
        sheet.finish(id, &self.title, &self.description(), bottom + 6.0)
    }

    /// The text for readers who do not see the drawing.
    fn description(&self) -> String {
        let mut text = format!("{} over {}.", self.y.label, self.x.label);
        for series in self.drawn() {
            let finite = || series.points.iter().map(|point| point.1).filter(|y| y.is_finite());
            if finite().next().is_none() {
                text.push_str(&format!(" {}: no data.", series.name));
                continue;
            }
            let (low, high) = extent(finite());
            let [low, high] = [low, high].map(|value| self.y.quantity.text(value));
            let points = series.points.len();
            text.push_str(&format!(" {}: {points} points from {low} to {high}.", series.name));
        }
        text
    }

    /// One series that the axis names already needs no legend.
    fn entries<'a>(&'a self) -> Vec<LegendEntry<'a>> {
        if self.drawn().count() < 2 {
            return Vec::new();
        }
        let entry = |(series, order): (&'a Series, usize)| {
            let sample = match series.shape {
                Shape::Line | Shape::Steps => SeriesSample::Line,
                Shape::Dots => SeriesSample::Dots,
                Shape::Ticks => SeriesSample::Ticks,
                Shape::Reference => SeriesSample::Reference,
            };
            LegendEntry { name: &series.name, sample, style: style(order) }
        };
        self.ordered().map(entry).collect()
    }

    /// Each series and the number of its style; references have a style of their own, without a number.
    fn ordered(&self) -> impl Iterator<Item = (&Series, usize)> {
        self.drawn().scan(0, |next, series| {
            let order = *next;
            *next += usize::from(series.shape != Shape::Reference);
            Some((series, order))
        })
    }

    fn drawn(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|series| !self.is_far(series))
    }

    fn finite(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let points = self.drawn().flat_map(|series| series.points.iter().copied());
        points.filter(|(x, y)| x.is_finite() && y.is_finite())
    }
}

/// The smallest and the largest value; both 0 without values.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let all = values.fold(None, |all, value| {
        let (low, high): (f64, f64) = all.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    });
    all.unwrap_or((0.0, 0.0))
}

/// The ticks of a horizontal axis, as many as have space for their texts.
pub(crate) fn fitting(axis: &Axis, scale: &Scale, wanted: usize, width: f64, font: f64) -> (Vec<Tick>, String) {
    for wanted in (1..=wanted).rev() {
        let (ticks, text) = axis.ticks(scale, wanted);
        let widest = ticks.iter().map(|tick| text_width(&tick.text, font)).fold(0.0, f64::max);
        // Texts at the ends are moved inside by at most half of their width.
        let apart =
            ticks.windows(2).map(|two| (two[1].position - two[0].position) * width).fold(f64::INFINITY, f64::min);
        if apart >= widest * 1.5 + 8.0 {
            return (ticks, text);
        }
    }
    let (mut ticks, text) = axis.ticks(scale, 1);
    ticks.truncate(1);
    (ticks, text)
}

fn draw_axes(sheet: &mut Sheet, frame: &Frame, x_ticks: &[Tick], y_ticks: &[Tick], font: f64) {
    let Frame { left, top, width, height } = *frame;
    let bottom = top + height;
    let (mut lines, mut notches) = (String::new(), String::new());
    for tick in y_ticks {
        let y = bottom - tick.position * height;
        lines.push_str(&format!("M{} {}h{}", coordinate(left), coordinate(y), coordinate(width)));
        sheet.text(left - 6.0, y + font * 0.35, Anchor::End, "tick", &tick.text);
    }
    for tick in x_ticks {
        let x = left + tick.position * width;
        notches.push_str(&format!("M{} {}v4", coordinate(x), coordinate(bottom)));
        let half = text_width(&tick.text, font) / 2.0;
        let middle = x.clamp(left - 40.0 + half, (left + width + 10.0 - half).max(left));
        sheet.text(middle, bottom + 6.0 + font, Anchor::Middle, "tick", &tick.text);
    }
    sheet.path(&Look { class: "grid", dash: "" }, &lines);
    let frame_line = format!("M{} {}h{}", coordinate(left), coordinate(bottom), coordinate(width));
    sheet.path(&Look { class: "axis", dash: "" }, &(frame_line + &notches));
}

fn draw_series(sheet: &mut Sheet, frame: &Frame, series: &Series, x: &Scale, y: &Scale, order: usize, under: bool) {
    let position = |&(at, value): &(f64, f64)| {
        let (across, up) = (x.position(at)?, y.position(value)?);
        Some((frame.left + across * frame.width, frame.top + frame.height * (1.0 - up)))
    };
    let places = series.points.iter().map(position);
    let style = style(order);
    match series.shape {
        Shape::Dots | Shape::Ticks => {
            let outline = cloud(places.flatten(), series.shape == Shape::Ticks);
            sheet.path(&Look { class: &format!("dots {}", style.class), dash: "" }, &outline);
        }
        Shape::Reference => {
            let outline = joined(&thinned(places), true, Some(frame.left + frame.width));
            sheet.path(&Look { class: "reference", dash: "4 3" }, &outline);
        }
        Shape::Line | Shape::Steps => {
            let places = thinned(places);
            let outline = joined(&places, series.shape == Shape::Steps, None);
            let under = if under { " under" } else { "" };
            sheet.path(&Look { class: &format!("line {}{under}", style.class), dash: style.dash }, &outline);
            let outline: String = marked(&places, order).map(|(x, y)| style.marker.outline(x, y)).collect();
            sheet.path(&Look { class: &format!("mark {}", style.class), dash: "" }, &outline);
        }
    }
}

/// Retains the first, the lowest, the highest and the last position in each column of pixels; `None` is a gap.
fn thinned(places: impl Iterator<Item = Option<(f64, f64)>>) -> Vec<Option<(f64, f64)>> {
    let mut kept = Vec::new();
    let mut column: Vec<(f64, f64)> = Vec::new();
    let flush = |column: &mut Vec<(f64, f64)>, kept: &mut Vec<Option<(f64, f64)>>| {
        if column.len() <= 4 {
            kept.extend(column.drain(..).map(Some));
            return;
        }
        let by_height = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
        let indices = 0..column.len();
        let lowest = indices.clone().min_by(by_height).unwrap_or(0);
        let highest = indices.max_by(by_height).unwrap_or(0);
        let picked: BTreeSet<usize> = [0, lowest, highest, column.len() - 1].into();
        kept.extend(picked.into_iter().map(|at| Some(column[at])));
        column.clear();
    };
    for position in places {
        let same_column = |(x, _): (f64, f64)| column.last().is_none_or(|last| last.0.floor() == x.floor());
        if !position.is_some_and(same_column) {
            flush(&mut column, &mut kept);
        }
        match position {
            Some(position) => column.push(position),
            None => kept.push(None),
        }
    }
    flush(&mut column, &mut kept);
    kept
}

/// Positions joined by straight lines, or by steps, of which the last reaches to `until`.
fn joined(places: &[Option<(f64, f64)>], steps: bool, until: Option<f64>) -> String {
    let mut outline = String::new();
    let mut before = None;
    for position in places {
        let Some((x, y)) = *position else {
            before = None;
            continue;
        };
        let [across, down] = [x, y].map(coordinate);
        match before {
            None => outline.push_str(&format!("M{across} {down}")),
            Some(last) if last == y => outline.push_str(&format!("H{across}")),
            Some(_) if steps => outline.push_str(&format!("H{across}V{down}")),
            Some(_) => outline.push_str(&format!("L{across} {down}")),
        }
        before = Some(y);
    }
    if let (Some(_), Some(until)) = (before, until) {
        outline.push_str(&format!("H{}", coordinate(until)));
    }
    outline
}

/// The positions that get a marker: each of a few, some of many, different ones for each series.
fn marked(places: &[Option<(f64, f64)>], order: usize) -> impl Iterator<Item = (f64, f64)> + '_ {
    let count = places.len();
    let stride = count.div_ceil(MARKERS_MAX).max(1);
    let first = if stride > 1 { (stride / 2 + order * stride / 4) % stride } else { 0 };
    places.iter().skip(first).step_by(stride).flatten().copied()
}

/// A spot for each half pixel with a point.
fn cloud(places: impl Iterator<Item = (f64, f64)>, upright: bool) -> String {
    let spots: BTreeSet<(i64, i64)> =
        places.map(|(x, y)| ((x * 2.0).round() as i64, (y * 2.0).round() as i64)).collect();
    spots.into_iter().map(|(x, y)| sheet::spot(upright, x as f64 / 2.0, y as f64 / 2.0)).collect()
}

/// Number of positions at which lines are compared: two pixels each on a wide plot.
const POSITIONS: usize = 340;

/// Largest distance of two lines, as a fraction of the height: two pixels.
const APART: f64 = 0.01;

/// Smallest fraction of common positions at which the two lines must be this close.
const SAME: f64 = 0.97;

/// Groups of lines, by their indices. Points are in fractions of the frame, from left to right.
fn groups(lines: &[Vec<(f64, f64)>]) -> Vec<Vec<usize>> {
    let looked: Vec<Vec<Option<f64>>> = lines.iter().map(|points| looked_at(points)).collect();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, own) in looked.iter().enumerate().filter(|(at, _)| lines[*at].len() > 1) {
        match groups.iter_mut().find(|group| are_same(&looked[group[0]], own)) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// The height of a line at each position; none left of its first point and right of its last.
fn looked_at(points: &[(f64, f64)]) -> Vec<Option<f64>> {
    let mut next = 0;
    let look = |position: usize| {
        let x = position as f64 / (POSITIONS - 1) as f64;
        while next < points.len() && points[next].0 < x {
            next += 1;
        }
        let after = points.get(next)?;
        let Some(before) = next.checked_sub(1).map(|at| points[at]) else {
            return (after.0 <= x).then_some(after.1);
        };
        let part = (x - before.0) / (after.0 - before.0).max(1e-12);
        Some(before.1 + (after.1 - before.1) * part)
    };
    (0..POSITIONS).map(look).collect()
}

fn are_same(one: &[Option<f64>], other: &[Option<f64>]) -> bool {
    let (mut either, mut near) = (0, 0);
    for pair in one.iter().zip(other) {
        match pair {
            (None, None) => {}
            (Some(own), Some(its)) => {
                either += 1;
                near += usize::from((own - its).abs() <= APART);
            }
            _ => either += 1,
        }
    }
    either > 0 && near as f64 >= SAME * either as f64
}
