use afflux_govern::{EventKind, GovernorEvent, Values};
use afflux_report::terminal::Terminal;

use super::budget;
use super::status::{Line, shown};
use super::words::line;

#[test]
fn budgets_have_bounds_that_are_told() {
    assert_eq!(budget("1s"), Ok(Some(1_000_000_000)));
    assert_eq!(budget("10ms"), Ok(Some(10_000_000)));
    assert_eq!(budget("off"), Ok(None));
    for text in ["0", "0s", "-1s", "1us", "8760h", "2h", "365d", "", "soon", "NaN", "inf"] {
        let why = budget(text).unwrap_err();
        assert!(why.contains("10ms to 1h"), "{text}: {why}");
    }
}

#[test]
fn events_are_a_line_each_and_control_no_terminal() {
    let event = |what| GovernorEvent { bdi: "8:16".to_owned(), device: "sd\u{1b}b\n".to_owned(), what };
    let limited = EventKind::Limited {
        limit_bytes: 33_333_333,
        ratio_ppm: 7,
        bytes_per_second: Some(25_000_000),
        budget_ns: 1_000_000_000,
    };
    let said = line(&event(limited));
    assert!(said.ends_with("at most 33.3 MB may be dirty (it writes 25.0 MB/s, budget 1.0 s)"), "{said}");
    assert!(!said.contains(['\u{1b}', '\n']), "{said}");
    let foreign = line(&event(EventKind::Foreign(Values { strict: true, ratio_ppm: 10_000 })));
    assert!(foreign.contains("strict_limit 1 and max_ratio 1 %"), "{foreign}");
}

fn lines() -> Vec<Line> {
    let known = Line {
        bdi: "8:16".to_owned(),
        device: "sdb".to_owned(),
        model: Some("A drive with a name that is far too long for a table".to_owned()),
        bytes_per_second: Some(25_000_000),
        budget_ns: Some(1_000_000_000),
        limit_bytes: Some(33_333_333),
        dirty_bytes: Some(12_500_000),
        remark: String::new(),
    };
    let alone = Line {
        device: "server:/a/path/that/is/long".to_owned(),
        remark: "a network mount: its speed is not its own".to_owned(),
        ..Line::default()
    };
    vec![known, alone]
}

#[test]
fn the_table_says_what_is_owed_and_for_how_long() {
    let text = shown(&lines(), 200, Terminal::PLAIN);
    let row = text.lines().find(|line| line.contains("sdb")).unwrap();
    for word in ["25.0 MB/s", "1.0 s", "33.3 MB", "12.5 MB", "0.5 s", "A drive with a name"] {
        assert!(row.contains(word), "{row} lacks {word}");
    }
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    for width in [1, 8, 20, 40, 89] {
        let text = shown(&lines(), width, Terminal::PLAIN);
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= width.max(8), "{width}:\n{text}");
        let all: String = text.split_whitespace().collect();
        assert!(all.contains("0.5s") && all.contains("server:/a/path/that/is/long"), "{text}");
    }
}
