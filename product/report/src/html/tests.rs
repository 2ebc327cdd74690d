use super::HtmlPage;
use crate::axis::{Axis, Quantity};
use crate::bars::{Bar, Bars};
use crate::plot::{Plot, Series, Shape};
use crate::table::{Align, Table};

fn page() -> String {
    let mut page = HtmlPage::new("Run of <job>", "simulated");
    page.paragraph("One & two.");
    page.facts([("seed", "1".to_owned()), ("trace", "<0>".to_owned())]);
    page.section("Jobs");
    let mut table = Table::new("Latency", &[("job", Align::Left)]);
    table.row(["a"]);
    page.table(&table);
    page.section("Plots");
    let plot = Plot::new("Rate", Axis::new("Time", Quantity::Time), Axis::new("Rate", Quantity::DataRate));
    page.figure(plot.note("Look <here>.").with(Series::new("a", Shape::Line, vec![(0.0, 1.0), (1.0, 2.0)])));
    page.figure(Bars::new("Bars", "n", Quantity::Count, ["a"]).group("g", vec![Some(Bar::new(1.0))]));
    page.html("seed 1")
}

#[test]
fn a_page_names_nothing_outside_itself() {
    let html = page();
    for word in ["http://", "https://", "url(", "@import", "<script", "<img", "src="] {
        let allowed = html.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
        let found = html.matches(word).count();
        assert_eq!(found, if word == "http://" { allowed } else { 0 }, "{word}");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn headings_descend_and_ids_are_unique() {
    let html = page();
    let levels: Vec<&str> = html.match_indices("<h").map(|(at, _)| &html[at + 2..at + 3]).collect();
    assert_eq!(levels, ["t", "e", "1", "2", "2"], "html, head, then headings");
    let mut ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((all, ids.len()), (10, 10), "title and description of two figures in two widths, two sections");
}

#[test]
fn elements_are_closed() {
    let html = page();
    for element in ["html", "head", "body", "main", "footer", "figure", "figcaption", "svg", "table", "tr", "dl", "p"] {
        let opened = html.matches(&format!("<{element}>")).count() + html.matches(&format!("<{element} ")).count();
        assert_eq!(opened, html.matches(&format!("</{element}>")).count(), "{element}");
    }
}

#[test]
fn text_is_inert_and_the_origin_is_said() {
    let html = page();
    assert!(html.contains("<title>Run of &lt;job&gt;</title>"));
    assert!(html.contains("<h1>Run of &lt;job&gt; <span class=\"origin\">simulated</span></h1>"));
    assert!(html.contains("<p>One &amp; two.</p>") && html.contains("<dd>&lt;0&gt;</dd>"));
    assert!(html.contains("Look &lt;here&gt;."));
}

#[test]
fn an_option_is_not_broken_after_its_first_hyphen() {
    let mut page = HtmlPage::new("t", "simulated");
    page.paragraph("With --full, and - -- -5 <i>.");
    page.listing("run --out-to=a\n--b c");
    let html = page.html("seed 1 (--seed N)");
    let option = |name: &str| format!("<span class=\"option\">{name}</span>");
    for (tag, inside) in [
        ("p", format!("With {}, and - -- -5 &lt;i&gt;.", option("--full"))),
        ("pre", format!("run {}=a\n{} c", option("--out-to"), option("--b"))),
        ("footer", format!("seed 1 ({} N)", option("--seed"))),
    ] {
        assert!(html.contains(&format!(">{inside}</{tag}>")), "{tag}: {html}");
    }
}

#[test]
fn series_colours_are_there_in_light_dark_and_print() {
    for class in ["c0", "c1", "c2", "c3", "c4", "c5"] {
        assert_eq!(super::STYLE.matches(&format!("--{class}:")).count(), 3, "{class}");
    }
}
