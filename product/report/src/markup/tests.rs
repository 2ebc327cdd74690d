use super::{coordinate, cut, escape, prose, text_width};

#[test]
fn what_could_act_is_inert() {
    assert_eq!(escape(r#"<a href="x">&'"#), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
    assert_eq!(escape("a\u{0}b\u{1b}[31m\tc\n"), "a\u{fffd}b\u{fffd}[31m\tc\n");
    assert_eq!(escape("µs → 漢"), "µs → 漢");
}

#[test]
fn a_number_stays_on_the_line_of_its_unit() {
    for (text, shown) in [
        ("the 99 % intervals", "the 99~% intervals"),
        ("at 25.0 MB/s, in 4 min 10 s.", "at 25.0~MB/s, in 4~min 10~s."),
        ("(2 GB) <b>", "(2~GB) &lt;b&gt;"),
        ("2 disks, s 4 h", "2 disks, s 4~h"),
        ("sdb1 s", "sdb1~s"),
        ("%", "%"),
    ] {
        assert_eq!(prose(text), shown.replace('~', "\u{a0}"));
    }
}

#[test]
fn coordinates_are_short() {
    for (value, text) in [(0.0, "0"), (12.0, "12"), (12.34, "12.3"), (-0.04, "0"), (-1.26, "-1.3"), (99.96, "100")] {
        assert_eq!(coordinate(value), text);
    }
}

#[test]
fn cut_text_fits_and_says_that_it_was_cut() {
    let long = "a directory with quite a long name";
    let short = cut(long, 12.0, 80.0);
    assert!(short.ends_with('…') && text_width(&short, 12.0) <= 80.0, "{short}");
    assert_eq!(cut("short", 12.0, 80.0), "short");
    assert_eq!(cut("anything", 12.0, 1.0), "…");
}
