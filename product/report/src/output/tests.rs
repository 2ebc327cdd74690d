use super::{PAINTS, harmless, shown};

#[test]
fn what_controls_a_terminal_is_escaped_and_all_else_is_readable() {
    assert_eq!(shown("Größe 日本語 🙂 — a\\b"), "Größe 日本語 🙂 — a\\b");
    assert_eq!(shown("a\x1b[31m\x07b"), "a\\u001b[31m\\u0007b");
    assert_eq!(shown("one\ntwo\tthree\rfour"), "one\\ntwo\\tthree\\rfour");
    assert_eq!(shown("\u{9b}31m\u{7f}"), "\\u009b31m\\u007f", "C1 controls and DEL");
    for turns in ['\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}', '\u{2028}'] {
        assert_eq!(shown(turns), format!("\\u{:04x}", u32::from(turns)));
    }
    assert_eq!(shown("\u{200d}é\u{301}"), "\u{200d}é\u{301}", "joiners and marks are letters of names");
}

#[test]
fn lines_keep_their_ends_and_what_is_escaped_stays() {
    let text = format!("a {}\nb\x1b]0;x\x07", shown("x\n\x1b"));
    let once = harmless(&text, &[]).into_owned();
    assert_eq!(once, "a x\\n\\u001b\nb\\u001b]0;x\\u0007");
    assert_eq!(harmless(&once, &[]), once);
}

#[test]
fn paint_of_our_own_passes_and_no_other() {
    let painted = "\x1b[1mbold\x1b[0m \x1b[2mfaint\x1b[0m";
    assert_eq!(harmless(painted, &PAINTS), painted);
    assert_eq!(harmless("\x1b[8mhidden\x1b[1", &PAINTS), "\\u001b[8mhidden\\u001b[1");
    assert_eq!(harmless(painted, &[]), "\\u001b[1mbold\\u001b[0m \\u001b[2mfaint\\u001b[0m");
}

#[test]
fn json_stays_json_and_means_the_same() {
    let every: String = ('\0'..='\u{2fff}').collect();
    let value = serde_json::json!({ every.clone(): [every, "\\\u{202e}", "\\\\\x7f\"\n"] });
    let text = value.to_string();
    let safe = harmless(&text, &PAINTS);
    assert!(!safe.chars().any(|letter| letter.is_control()), "nothing is left, line ends are within strings");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
}
