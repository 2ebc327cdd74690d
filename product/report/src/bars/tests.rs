use super::{Bar, Bars, broken};
use crate::axis::Quantity;
use crate::sheet::Width;

fn bars() -> Bars {
    Bars::new("Time per allocation", "Time", Quantity::Time, ["ours", "published"])
        .group("one thread", vec![Some(Bar::new(20e-9).within(18e-9, 23e-9)), Some(Bar::new(40e-9))])
        .group("a name that is far too long for any sheet <of> this width", vec![None, Some(Bar::new(80e-9))])
}

#[test]
fn every_figure_is_written_and_the_axis_has_its_unit() {
    let svg = bars().svg(Width::Wide, "f");
    for text in [">20.0 ns</text>", ">40.0 ns</text>", ">80.0 ns</text>", ">Time (ns)</text>", ">published</text>"] {
        assert!(svg.contains(text), "{text} in {svg}");
    }
    assert_eq!(svg.matches("class=\"interval\"").count(), 1);
    assert_eq!(svg.matches("class=\"bar s").count(), 5, "three bars, two samples");
}

#[test]
fn values_are_written_in_the_unit_of_the_axis_they_stand_over() {
    let rates = |rates: &[f64]| {
        let bars = rates.iter().map(|rate| Some(Bar::new(*rate))).collect();
        Bars::new("t", "written", Quantity::DataRate, rates.iter().map(f64::to_string)).group("g", bars)
    };
    let svg = rates(&[868e6, 1.24e9, 99.6e6, 0.0]).svg(Width::Wide, "f");
    for text in [">0.868 GB/s</text>", ">1.24 GB/s</text>", ">0.100 GB/s</text>", ">written (GB/s)</text>"] {
        assert!(svg.contains(text), "{text} in {svg}");
    }
    // A value that would lose all its digits gets a unit of its own.
    assert!(rates(&[12e3, 1.24e9]).svg(Width::Wide, "f").contains(">12.0 kB/s</text>"));
}

#[test]
fn long_names_are_cut_in_the_drawing_and_whole_in_the_description() {
    let svg = bars().svg(Width::Narrow, "f");
    assert!(svg.contains("…</text>"));
    assert!(svg.contains("any sheet &lt;of&gt; this width, published: 80.0 ns."), "{svg}");
}

#[test]
fn a_name_is_broken_into_as_many_lines_as_its_bars_have_room_for() {
    let name = "512 KiB, cache 8192 KiB, memory 2048 MiB";
    let shown = |width: f64, lines: usize| -> Vec<String> {
        broken(name, 12.0, width, lines).iter().map(|line| line.replace('\u{a0}', " ")).collect()
    };
    assert_eq!(shown(1000.0, 5), [name]);
    // A number stays with its unit.
    assert_eq!(shown(150.0, 5), ["512 KiB, cache", "8192 KiB, memory", "2048 MiB"]);
    let [line] = &shown(150.0, 1)[..] else { panic!("more than a line") };
    assert!(line.starts_with("512 KiB, cache") && line.ends_with('…'), "{line}");
    let five = ["a", "b", "c", "d", "e"];
    let bars = Bars::new("t", "x", Quantity::Count, five).group(name.repeat(2), vec![Some(Bar::new(1.0)); 5]);
    assert!(!bars.svg(Width::Wide, "f").contains('…'));
}

#[test]
fn an_interval_below_zero_is_seen_whole() {
    let bar = |low| Some(Bar::new(0.2).within(low, 0.5));
    let of = |low| Bars::new("t", "x", Quantity::Fraction, ["a"]).group("g", vec![bar(low)]).svg(Width::Wide, "f");
    let (svg, above) = (of(-0.3), of(0.1));
    assert!(svg.contains(">−20</text>") && !above.contains('−'), "{svg}");
    let left = |svg: &str, class: &str| -> f64 {
        let path = svg.split(&format!("class=\"{class}\"")).nth(1).unwrap();
        let from = path.split(" d=\"M").nth(1).unwrap();
        from.split(' ').next().unwrap().parse().unwrap()
    };
    assert!(left(&svg, "interval") < left(&svg, "axis"), "{svg}");
    assert!(left(&above, "interval") > left(&above, "axis"));
}

#[test]
fn odd_figures_do_no_harm() {
    let odd = [f64::NAN, f64::INFINITY, -1.0, 0.0].map(|value| Some(Bar::new(value).within(value, value)));
    let bars = Bars::new("t", "x", Quantity::Count, ["a", "b", "c", "d"]).group("g", odd.to_vec());
    for width in Width::BOTH {
        let svg = bars.svg(width, "f");
        assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("width=\"-"), "{svg}");
    }
    let svg = Bars::new("t", "x", Quantity::Count, Vec::<String>::new()).svg(Width::Wide, "f");
    assert!(svg.starts_with("<svg"));
}

#[test]
fn one_wide_interval_does_not_flatten_the_others() {
    let bars = |high: f64| {
        let narrow = |at: u64| Some(Bar::new(10.0 + at as f64).within(9.0, 13.0 + at as f64));
        let wide = Some(Bar::new(11.0).within(1.0, high));
        let bars =
            Bars::new("t", "Misses", Quantity::Count, ["mean"]).note("99 % intervals.").group("wide", vec![wide]);
        (0..10).fold(bars, |bars, at| bars.group(format!("row {at}"), vec![narrow(at)]))
    };
    let cut = bars(900.0);
    assert_eq!(cut.sentence(), "99 % intervals. Cut: the interval of wide is from 1 to 900.");
    let width = |bars: &Bars| {
        let svg = bars.svg(Width::Wide, "f");
        let bar = svg.split("class=\"bar ").nth(2).unwrap().split("width=\"").nth(1).unwrap();
        bar.split('"').next().unwrap().parse::<f64>().unwrap()
    };
    assert!(width(&cut) > 100.0, "{}", width(&cut));
    let whole = bars(40.0);
    assert_eq!(whole.sentence(), "99 % intervals.", "it is not far above the others");
}
