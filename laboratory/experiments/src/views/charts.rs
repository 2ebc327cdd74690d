//! Bars and lines of an experiment's rows.
//!
//! Owns: their groups and series, published figures beside ours.
//! Does not own: the lines of rows (`lines`), the drawing (`report`).
//! Invariants: variants have the same order in all groups. A published figure that all variants of a group share has a
//! series of its own; else each variant is a group.

use afflux_report::{Axis, Bar, Bars, Drawing, FigureSource, Plot, Quantity, Row, Series, Shape};

use super::lines::{Line, lines};
use crate::pick::{Pick, title_of};

/// A chart of one figure.
pub(crate) struct ChartView {
    pub(crate) title: &'static str,
    pub(crate) rows: Pick,
    pub(crate) label: &'static str,
    pub(crate) quantity: Quantity,
    /// Its name in the rows, and how many of the quantity one of it is.
    pub(crate) figure: (&'static str, f64),
    pub(crate) within: Within,
    pub(crate) along: Along,
}

/// The axis of the chart.
pub(crate) enum Along {
    /// A group of bars for each value of these parameters.
    Groups(&'static [&'static str]),
    /// A line along a parameter, for each variant and each value of further parameters.
    Line(&'static str, Quantity, &'static [&'static str]),
}

/// The interval of a bar.
pub(crate) enum Within {
    /// From the least to the most of the rows that are alike.
    Rows,
    /// So much to each side.
    HalfWidth(&'static str),
    /// From one figure to another.
    Ends(&'static str, &'static str),
}

/// The charts of a view: one for each source of rows.
pub(super) fn figures(view: &ChartView, rows: &[Row]) -> Vec<Drawing> {
    let names = match &view.along {
        Along::Groups(names) => names.to_vec(),
        Along::Line(along, _, series) => [&[*along], *series].concat(),
    };
    let of = |source| {
        let found = lines(rows, source, view.rows, &names, &[view.figure.0]);
        let source = if source == FigureSource::Measured { "measured" } else { "simulated" };
        let title = format!("{}, {source}", view.title);
        let has_published = found.iter().any(|line| published(view, line).is_some());
        // One bar, or one line of points, is no comparison.
        let compares = match view.along {
            Along::Groups(_) => found.len() > 1 || has_published,
            Along::Line(..) => distinct(found.iter().map(series_name)).len() > 1 || has_published,
        };
        compares.then(|| match view.along {
            Along::Groups(_) => Drawing::Bars(bars(view, title, &names, &found)),
            Along::Line(along, quantity, _) => Drawing::Plot(plot(view, title, along, quantity, &found)),
        })
    };
    [FigureSource::Measured, FigureSource::Simulated].into_iter().filter_map(of).collect()
}

/// Distinct texts in their order.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.fold(Vec::new(), |mut found, one| {
        if !found.contains(&one) {
            found.push(one);
        }
        found
    })
}

fn number(line: &Line<'_>, name: &str) -> Option<f64> {
    line.figure(name)?.number().map(|[middle, ..]| middle)
}

fn published(view: &ChartView, line: &Line<'_>) -> Option<f64> {
    line.published(view.figure.0)?.number().map(|[middle, ..]| middle * view.figure.1)
}

fn bar(view: &ChartView, line: &Line<'_>) -> Option<Bar> {
    let (name, scale) = view.figure;
    let [middle, least, most] = line.figure(name)?.number()?;
    let (least, most) = match view.within {
        Within::Rows => (least, most),
        Within::HalfWidth(half) => number(line, half).map_or((middle, middle), |half| (middle - half, middle + half)),
        Within::Ends(lower, upper) => (number(line, lower)?, number(line, upper)?),
    };
    let bar = Bar::new(middle * scale);
    Some(if least < most { bar.within(least.max(0.0) * scale, most * scale) } else { bar })
}

/// A group's name: the parameters that are not equal in all lines.
fn group_name(names: &[&str], line: &Line<'_>, lines: &[Line<'_>]) -> String {
    let differs = |at: &usize| lines.iter().any(|other| other.names[*at] != line.names[*at]);
    let told = (0..names.len()).filter(differs).filter(|at| !line.names[*at].is_empty());
    told.map(|at| format!("{} {}", title_of(names[at]), line.names[at])).collect::<Vec<_>>().join(", ")
}

fn bars(view: &ChartView, title: String, names: &[&str], lines: &[Line<'_>]) -> Bars {
    let groups = distinct(lines.iter().map(|line| line.names.clone()));
    let of_group = |group: &Vec<String>| lines.iter().filter(|line| line.names == *group).collect::<Vec<_>>();
    let printed = |lines: &[&Line<'_>]| distinct(lines.iter().filter_map(|line| published(view, line)));
    let has_published = lines.iter().any(|line| published(view, line).is_some());
    let is_shared = groups.iter().all(|group| printed(&of_group(group)).len() < 2);
    if has_published && !is_shared || groups.len() == 1 && !has_published {
        let series = if has_published { vec!["here", "published"] } else { vec!["here"] };
        return lines.iter().fold(Bars::new(title, view.label, view.quantity, series), |bars, line| {
            let name = [line.variant, &group_name(names, line, lines)].join(" ");
            let published = has_published.then(|| published(view, line).map(Bar::new));
            bars.group(name.trim(), [bar(view, line)].into_iter().chain(published).collect())
        });
    }
    let variants = distinct(lines.iter().map(|line| line.variant));
    let series = variants.iter().copied().chain(has_published.then_some("published"));
    groups.iter().fold(Bars::new(title, view.label, view.quantity, series), |bars, group| {
        let own = of_group(group);
        let of = |variant: &&str| own.iter().find(|line| line.variant == *variant).and_then(|line| bar(view, line));
        let published = has_published.then(|| printed(&own).first().copied().map(Bar::new));
        bars.group(group_name(names, own[0], lines), variants.iter().map(of).chain(published).collect())
    })
}

/// The name of a line's series: the variant and the further parameters.
fn series_name(line: &Line<'_>) -> String {
    let further = line.names[1..].iter().map(String::as_str).filter(|value| !value.is_empty());
    [line.variant].into_iter().chain(further).collect::<Vec<_>>().join(", ")
}

fn plot(view: &ChartView, title: String, along: &str, quantity: Quantity, lines: &[Line<'_>]) -> Plot {
    let plot = Plot::new(title, Axis::new(title_of(along), quantity).near_data(), Axis::new(view.label, view.quantity));
    let point = |line: &Line<'_>, figure: Option<f64>| Some((line.names[0].parse::<f64>().ok()?, figure?));
    distinct(lines.iter().map(series_name)).into_iter().fold(plot, |plot, series| {
        let own = lines.iter().filter(|line| series_name(line) == series);
        let ours = own.clone().filter_map(|line| point(line, number(line, view.figure.0).map(|it| it * view.figure.1)));
        let plot = plot.with(Series::new(series.as_str(), Shape::Line, ours.collect()));
        let printed: Vec<_> = own.clone().filter_map(|line| point(line, published(view, line))).collect();
        if printed.is_empty() {
            return plot;
        }
        // The row says so if the published column is another variant's.
        let of = own.clone().find_map(|line| line.param("published_of")).unwrap_or(series);
        plot.with(Series::new(format!("{of}, published"), Shape::Line, printed))
    })
}
