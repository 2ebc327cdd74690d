use super::{Plot, Series, Shape, joined, thinned};
use crate::axis::{Axis, Quantity};
use crate::sheet::Width;

fn plot(series: impl IntoIterator<Item = Series>) -> Plot {
    let plot = Plot::new("Rate", Axis::new("Time", Quantity::Time), Axis::new("Throughput", Quantity::DataRate));
    series.into_iter().fold(plot, Plot::with)
}

fn ramp(count: usize) -> Vec<(f64, f64)> {
    (0..count).map(|at| (at as f64, at as f64 * 1e6)).collect()
}

/// Every number in the path data of the drawing's elements of a class.
fn coordinates(svg: &str, class: &str) -> Vec<f64> {
    let lines = svg.lines().filter(|line| line.contains(&format!("class=\"{class}")));
    let outlines = lines.filter_map(|line| line.split(" d=\"").nth(1)?.split('"').next());
    let numbers =
        outlines.flat_map(|outline| outline.split(|letter: char| letter.is_ascii_alphabetic() || letter == ' '));
    numbers.filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn axes_carry_their_units_and_the_drawing_says_what_it_is() {
    let svg = plot([Series::new("a", Shape::Line, ramp(30))]).svg(Width::Wide, "f");
    assert!(svg.contains(">Throughput (MB/s)</text>") && svg.contains(">Time (s)</text>"), "{svg}");
    assert!(svg.contains("<title id=\"f-t\">Rate</title>"));
    assert!(svg.contains("aria-labelledby=\"f-t f-d\""));
    assert!(svg.contains("Throughput over Time. a: 30 points from 0 B/s to 29.0 MB/s.</desc>"), "{svg}");
}

#[test]
fn series_differ_by_more_than_colour_and_are_named() {
    let names = ["a", "b", "c"];
    let svg = plot(names.map(|name| Series::new(name, Shape::Line, ramp(4)))).svg(Width::Wide, "f");
    for name in names {
        assert!(svg.contains(&format!("class=\"name\">{name}</text>")));
    }
    let dashes: Vec<&str> = ["line s0", "line s1", "line s2"]
        .iter()
        .map(|class| {
            let line = svg.lines().rfind(|line| line.contains(class)).unwrap();
            line.split("dasharray=\"").nth(1).map_or("", |rest| rest.split('"').next().unwrap())
        })
        .collect();
    assert_eq!(dashes, ["", "7 3", "2 3"]);
    // One series is named by its axis.
    assert!(!plot([Series::new("a", Shape::Line, ramp(4))]).svg(Width::Wide, "f").contains("class=\"name\""));
}

#[test]
fn a_reference_uses_up_no_colour() {
    let reference = Series::new("limit", Shape::Reference, vec![(0.0, 9e6)]);
    let svg = plot([reference, Series::new("a", Shape::Line, ramp(4))]).svg(Width::Wide, "f");
    assert!(svg.contains("line s0") && !svg.contains("line s1"));
    // The reference reaches to the end of the plot.
    let outline = svg.lines().rfind(|line| line.contains("class=\"reference\"")).unwrap();
    assert!(outline.contains("H748\""), "{outline}");
}

#[test]
fn nothing_leaves_the_sheet_whatever_the_values() {
    let odd =
        vec![(0.0, -5e6), (1.0, f64::NAN), (2.0, 1e12), (f64::INFINITY, 1.0), (3.0, f64::NEG_INFINITY), (4.0, 2e6)];
    for shape in [Shape::Line, Shape::Steps, Shape::Dots, Shape::Ticks, Shape::Reference] {
        for width in Width::BOTH {
            for axis in [Axis::new("y", Quantity::DataRate), Axis::new("y", Quantity::DataRate).log()] {
                let plot = Plot::new("t", Axis::new("x", Quantity::Time).range(0.0, 3.0), axis);
                let svg = plot.with(Series::new("a", shape, odd.clone())).svg(width, "f");
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                for class in ["line", "mark", "dots", "reference"] {
                    let all = coordinates(&svg, class);
                    assert!(all.iter().all(|at| (-7.0..=width.total()).contains(at)), "{shape:?} {class}: {all:?}");
                }
            }
        }
    }
}

#[test]
fn no_data_is_said() {
    let svg = plot([Series::new("a", Shape::Line, Vec::new())]).svg(Width::Narrow, "f");
    assert!(svg.contains(">no data</text>") && svg.contains("a: no data."));
}

#[test]
fn long_lines_keep_their_peaks_and_gaps() {
    let flat = (0..100_000).map(|at| Some((at as f64 / 1000.0, if at == 50_500 { 1.0 } else { 5.0 })));
    let kept = thinned(flat);
    assert!(kept.len() <= 400, "{}", kept.len());
    assert!(kept.contains(&Some((50.5, 1.0))));
    let gaps = thinned([Some((0.0, 0.0)), None, Some((0.1, 0.0))].into_iter());
    assert_eq!(gaps, [Some((0.0, 0.0)), None, Some((0.1, 0.0))]);
    assert_eq!(joined(&gaps, false, None), "M0 0M0.1 0");
}

#[test]
fn steps_hold_their_value() {
    let places = [Some((0.0, 1.0)), Some((2.0, 3.0)), Some((4.0, 3.0))];
    assert_eq!(joined(&places, true, None), "M0 1H2V3H4");
    assert_eq!(joined(&places, false, None), "M0 1L2 3H4");
}

#[test]
fn a_large_cloud_is_a_small_drawing() {
    let mut state = 1u64;
    let points = (0..20_000).map(|at| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (f64::from(at), (state >> 40) as f64)
    });
    let svg = plot([Series::new("a", Shape::Dots, points.collect())]).svg(Width::Wide, "f");
    assert!(svg.len() < 400_000, "{}", svg.len());
}

#[test]
fn names_are_inert_in_drawings() {
    let svg = plot([Series::new("<b>", Shape::Line, ramp(3)), Series::new("\"&", Shape::Dots, ramp(3))]);
    let svg = svg.svg(Width::Wide, "f");
    assert!(!svg.contains("<b>") && svg.contains("&lt;b&gt;") && svg.contains("&quot;&amp;"));
}

#[test]
fn a_zero_does_not_set_the_range_of_a_logarithmic_axis() {
    let points = vec![(1.0, 0.0), (2.0, 2e-6), (3.0, 0.9)];
    let y = Axis::new("Latency", Quantity::Time).log();
    let plot = Plot::new("t", Axis::new("x", Quantity::Count), y).with(Series::new("a", Shape::Line, points));
    let svg = plot.svg(Width::Wide, "f");
    assert!(svg.contains(">1 µs</text>") && svg.contains(">1 s</text>"), "{svg}");
}

#[test]
fn a_name_that_is_too_long_for_the_legend_is_cut_there() {
    let long = "a name that goes on and on and on and on and on and on and on";
    let names = [long, "short"].map(|name| Series::new(name, Shape::Line, ramp(3)));
    let svg = plot(names).svg(Width::Narrow, "f");
    assert!(svg.contains("…</text>") && !svg.contains(&format!("{long}</text>")), "{svg}");
    assert!(svg.contains(&format!("{long}: 3 points")), "whole in the description: {svg}");
}

#[test]
fn lines_that_lie_on_each_other_are_named_and_can_all_be_seen() {
    let other = ramp(30).into_iter().map(|(x, y)| (x, y * 0.5)).collect();
    // The same line with fewer points.
    let sparse = vec![(0.0, 0.0), (29.0, 29e6)];
    let plot = plot([
        Series::new("a", Shape::Line, ramp(30)),
        Series::new("b", Shape::Line, other),
        Series::new("c", Shape::Line, sparse),
    ]);
    assert_eq!(plot.sentence(), "a and c lie on each other.");
    let svg = plot.svg(Width::Wide, "f");
    assert!(svg.contains("\"line s0 under\"") && svg.contains("\"line s1\"") && svg.contains("\"line s2\""), "{svg}");
    assert_eq!(plot.note("Look.").sentence(), "Look. a and c lie on each other.");
}

#[test]
fn what_is_counted_has_whole_ticks_and_an_axis_begins_where_its_data_do() {
    let x = || Axis::new("Window", Quantity::Count);
    let of = |points: Vec<(f64, f64)>| {
        let plot = Plot::new("t", x(), Axis::new("y", Quantity::Count));
        plot.with(Series::new("a", Shape::Line, points)).svg(Width::Wide, "f")
    };
    let svg = of(vec![(1.0, 0.0), (2.0, 3.0)]);
    assert!(svg.contains(">1</text>") && svg.contains(">2</text>") && !svg.contains(">1.5</text>"), "{svg}");
    let svg = of(vec![(400.0, 0.0), (900.0, 0.5)]);
    assert!(svg.contains(">400</text>") && !svg.contains(">0</text>") && !svg.contains(">200</text>"), "{svg}");
    assert!(svg.contains(">0.2</text>"), "what is no whole number has its parts: {svg}");
}

#[test]
fn a_limit_far_above_everything_is_told_and_not_drawn() {
    let of = |limit: f64| {
        plot([Series::new("limit", Shape::Reference, vec![(0.0, limit)]), Series::new("dirty", Shape::Line, ramp(4))])
    };
    let far = of(100e6);
    assert_eq!(far.sentence(), "Above the plot: limit, 100 MB/s.");
    let svg = far.svg(Width::Wide, "f");
    assert!(!svg.contains("class=\"reference\"") && svg.contains(">3</text>") && !svg.contains(">100</text>"), "{svg}");
    let near = of(9e6);
    assert_eq!(near.sentence(), "");
    assert!(near.svg(Width::Wide, "f").contains("class=\"reference\""));
}
