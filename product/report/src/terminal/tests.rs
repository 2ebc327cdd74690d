use super::{Paint, Terminal, sparkline};

#[test]
fn only_a_terminal_gets_escape_sequences() {
    assert_eq!(Terminal::PLAIN.paint(Paint::Strong, "x"), "x");
    assert_eq!(Terminal { colour: true }.paint(Paint::Strong, "x"), "\x1b[1mx\x1b[0m");
}

#[test]
fn a_curve_shows_the_largest_of_each_part() {
    assert_eq!(sparkline(&[0.0, 1.0, 4.0, 8.0], 8.0, 8), " ▁▄█");
    assert_eq!(sparkline(&[0.0, 8.0, 0.0, 0.0], 8.0, 2), "█ ");
    assert_eq!(sparkline(&[0.001], 8.0, 2), "▁");
    assert_eq!(sparkline(&[], 8.0, 2), "");
    assert_eq!(sparkline(&[f64::NAN, 9.0], 0.0, 2), "  ");
}
