//! Pages with one fault each: the check finds it, and nothing else.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::{env, fs};

use page_check::Checker;

/// A page without a fault; `{}` is where faults go.
const PAGE: &str = r#"<!doctype html><html lang="en"><head><title>t</title><meta charset="utf-8">
<link rel="icon" href="data:,"><style>body{background:#fff;color:#111}svg{display:block}</style></head>
<body><h1>t</h1>{}</body></html>"#;

fn drawing(inside: &str) -> String {
    format!(
        "<figure><figcaption><b>f</b></figcaption><svg width='300' height='100' viewBox='0 0 300 100' \
         font-size='13'><title>t</title><desc>d</desc>{inside}</svg></figure>"
    )
}

fn faults(checker: &mut Checker, name: &str, inside: &str) -> Vec<String> {
    let directory = env::temp_dir().join(format!("afflux-page-faults-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let page = directory.join(format!("{name}.html"));
    fs::write(&page, PAGE.replace("{}", inside)).unwrap();
    let faults = checker.check(&page, None).unwrap();
    fs::remove_file(page).unwrap();
    faults
}

#[test]
fn each_fault_is_found() {
    if page_check::installed().is_none() {
        eprintln!("skipped: no Chromium (Debian: apt-get install --no-install-recommends chromium)");
        return;
    }
    let mut checker = Checker::start().unwrap();
    assert_eq!(faults(&mut checker, "none", &drawing("<text x='5' y='50'>fine</text>")), Vec::<String>::new());
    let over = "<text x='5' y='50'>first</text><text x='12' y='52'>second</text>";
    for (name, inside, wanted) in [
        ("console", "<script>console.log('hello')</script>".to_owned(), "console: "),
        ("exception", "<script>throw new Error('x')</script>".to_owned(), "exception: "),
        ("request", "<img src='other.png' alt=''>".to_owned(), "it requests file:"),
        ("over", drawing(over), "\"first\" is over \"second\""),
        ("outside", drawing("<text x='295' y='50'>beyond</text>"), "beyond is outside"),
        ("small", drawing("<text x='5' y='50' font-size='6'>tiny</text>"), "6.0 px high"),
        ("faint", "<p style='color:#bbb'>faint</p>".to_owned(), "contrast of"),
        ("wide", "<p style='width:1500px'>wide</p>".to_owned(), "px wide in a window"),
        ("heading", "<h3>third</h3>".to_owned(), "skips a level"),
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
