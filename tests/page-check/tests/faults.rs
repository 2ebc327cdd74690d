//! Pages with one fault each: the check finds that fault and no other.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{env, fs};

use afflux_page_check::Checker;

/// A page without a fault; `{}` is the place of faults.
const PAGE: &str = r#"<!doctype html><html lang="en"><head><title>t</title><meta charset="utf-8">
<link rel="icon" href="data:,"><style>body{background:#fff;color:#111}svg{display:block}
tr,figure,.scroll{break-inside:avoid}</style></head>
<body><h1>t</h1>{}</body></html>"#;

fn drawing(inside: &str) -> String {
    format!(
        "<figure><figcaption><b>f</b></figcaption><svg width='300' height='100' viewBox='0 0 300 100' \
         font-size='13'><title>t</title><desc>d</desc>{inside}</svg></figure>"
    )
}

/// A drawing with a tick on its upright axis.
fn scaled(title: &str, tick: &str) -> String {
    let text = format!("<text class='tick' text-anchor='end' x='50' y='50'>{tick}</text><path class='line' d='M9 9'/>");
    drawing(&text).replace("<b>f</b>", &format!("<b>{title}</b>"))
}

/// A table in its scrolling container, with these columns' titles and cells, a style before it and `after` after it.
fn table(style: &str, titles: &[&str], cells: &[&str], after: &str) -> String {
    let of = |tag: &str, texts: &[&str]| texts.iter().map(|text| format!("<{tag}>{text}</td>")).collect::<String>();
    let (titles, cells) = (of("th scope='col'", titles), of("td", cells));
    format!(
        "<style>{style}</style><div class='scroll' style='overflow-x:auto'><table><caption>t</caption>\
         <thead><tr>{titles}</tr></thead><tbody><tr>{cells}</tr></tbody></table></div>{after}"
    )
}

/// A sticky first column, and columns that do not fit on a phone.
const STAYS: &str = "@media screen{th,td{white-space:nowrap;padding:0 40px}} \
    th:first-child{position:sticky;left:0;padding:0}";
const HINT: &str = "<p class='hint'>more</p>";
const FIVE: [&str; 5] = ["a", "one hundred", "two hundred", "three hundred", "four hundred"];

fn faults(checker: &mut Checker, name: &str, inside: &str) -> Vec<String> {
    let scratch = afflux_scratch::Scratch::new(&env::temp_dir(), "page-faults").unwrap();
    let page = scratch.path().join(format!("{}.html", name.replace(' ', "-")));
    fs::write(&page, PAGE.replace("{}", inside)).unwrap();
    checker.check(&page, None).unwrap()
}

#[test]
fn each_fault_is_found() {
    if afflux_page_check::installed().is_none() {
        afflux_scratch::skipped!("no Chromium (Debian: apt-get install --no-install-recommends chromium)");
        return;
    }
    let mut checker = Checker::start().unwrap();
    assert_eq!(faults(&mut checker, "none", &drawing("<text x='5' y='50'>fine</text>")), Vec::<String>::new());
    let wide = |style: &str, after: &str| table(style, &FIVE, &FIVE, after);
    let fine = drawing("") + &wide(STAYS, HINT);
    assert_eq!(faults(&mut checker, "table", &fine), Vec::<String>::new());
    let folded = format!("<details><summary>s</summary>{}</details>{}", table("", &["a"], &["1"], ""), drawing(""));
    assert_eq!(faults(&mut checker, "folded", &folded), Vec::<String>::new());
    let broad = format!("{STAYS} td{{min-width:400px}}");
    let over = "<text x='5' y='50'>first</text><text x='12' y='52'>second</text>";
    for (name, inside, wanted) in [
        ("console", "<script>console.log('hello')</script>".to_owned(), "console: "),
        ("exception", "<script>throw new Error('x')</script>".to_owned(), "exception: "),
        ("request", "<img src='other.png' alt=''>".to_owned(), "it requests file:"),
        ("over", drawing(over), "\"first\" is over \"second\""),
        ("outside", drawing("<text x='295' y='50'>beyond</text>"), "beyond is outside"),
        ("small", drawing("<text x='5' y='50' font-size='6'>tiny</text>"), "6.0 px high"),
        ("name cut", drawing("<text x='5' y='50'>a long…</text>"), "1400 px, light: \"f\": \"a long…\" is cut"),
        ("faint", "<p style='color:#bbb'>faint</p>".to_owned(), "contrast of"),
        ("wide", "<p style='width:1500px'>wide</p>".to_owned(), "px wide in a window"),
        ("heading", "<h3>third</h3>".to_owned(), "skips a level"),
        ("table first", table("", &["a"], &["1"], "") + &drawing(""), "table \"t\" is before the first plot"),
        ("empty column", table("", &["a", "b"], &["1", " "], ""), "column 2, \"b\", is empty"),
        (
            "empty column, folded",
            format!("<details>{}</details>", table("", &["a"], &[""], "")),
            "column 1, \"a\", is empty",
        ),
        ("cut", wide(&broad, HINT), "1400 px, light: table \"t\": column \"two hundred\" is cut"),
        ("cut, printed", wide(&broad, HINT), "printed: table \"t\": column \"one hundred\" is cut"),
        ("does not stay", wide(&STAYS.replace("sticky", "static"), HINT), "the first column does not stay"),
        ("no hint", wide(STAYS, ""), "400 px, light: table \"t\": column \"two hundred\" is cut and nothing says so"),
        ("hint not shown", wide(&format!("{STAYS} .hint{{display:none}}"), HINT), "and nothing says so"),
        ("no room", wide(&format!("{STAYS} th:first-child{{min-width:300px}}"), HINT), "leaves no room for it"),
        (
            "option",
            "<p style='width:70px'>a word --quick</p>".to_owned(),
            "400 px, light: \"--quick\" is broken into 2 lines",
        ),
        ("torn", "<style>tr{break-inside:auto}</style>".to_owned() + &wide("", ""), "printed: <tr> \"a"),
        ("torn table", "<style>.scroll{break-inside:auto}</style>".to_owned() + &wide("", ""), "printed: <div> \"t"),
        (
            "scales",
            scaled("Rate: a", "10") + &scaled("Rate: b", "20"),
            "\"Rate: b\" has another scale than the one before it",
        ),
        ("no figure", table("", &["a", "b"], &["x", "0.0 ms, NaN times"], ""), "NaN is no figure"),
        ("zero", table("", &["a", "b"], &["x", "-0.0 %"], ""), "-0.0 is no figure"),
        ("note", "<p class='note'>of all devices, which</p>".to_owned(), "ends in the middle of a sentence"),
        (
            "unexplained",
            table("", &["a", "backlog_s"], &["x", "1"], "<dl class='words'><div><dt>a_b</dt><dd>c</dd></div></dl>"),
            "backlog_s is not explained",
        ),
        ("no title", table("", &["a", ""], &["x", "y"], ""), "column 2 has no title"),
        (
            "torn word",
            wide(&format!("{STAYS} td:first-child{{max-width:30px;white-space:normal;overflow-wrap:anywhere}}"), HINT)
                .replace("<td>a</td>", "<td>september</td>"),
            "400 px, light: table \"t\": \"september\" is broken inside",
        ),
        ("caption", "<table><tr><th scope='col'>a</th></tr></table>".to_owned(), "no caption"),
        (
            "untitled",
            "<figure><svg width='300' height='50' viewBox='0 0 300 50'></svg></figure>".to_owned(),
            "no title",
        ),
    ] {
        let found = faults(&mut checker, name, &inside);
        assert!(found.iter().any(|fault| fault.contains(wanted)), "{name}: {found:?}");
    }
}
