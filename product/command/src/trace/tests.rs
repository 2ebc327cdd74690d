use super::{json, lines};
use crate::control::messages::{EVENTS, Happened, TraceEvent};

fn event(at_ns: u64, what: Happened) -> TraceEvent {
    let (device, file) = (Some("sda1".to_owned()), Some("/srv/a\x1b[2K\nb".to_owned()));
    TraceEvent { at_ns, device, file, client: Some("10.0.0.5".to_owned()), what }
}

fn events() -> [TraceEvent; 3] {
    let cause = "device's part of the dirty limit".to_owned();
    [
        event(12_000_345_678, Happened::PauseEnds { wait: 7, cause, ns: 3_210_000 }),
        event(
            13_000_000_000,
            Happened::Completed {
                operation: "write".into(),
                offset: 4 << 20,
                bytes: 1 << 20,
                ns: 2_000_000,
                error: Some("gone\u{202e}".into()),
            },
        ),
        TraceEvent {
            file: None,
            client: None,
            device: None,
            ..event(13_000_000_001, Happened::KnobChanged { knob: "dirty_ratio".into(), value: 20 })
        },
    ]
}

#[test]
fn an_event_is_one_line_that_controls_no_terminal() {
    assert_eq!(
        lines(&events(), 0),
        "   12.000345  sda1  pause 7 ends after 3.21 ms: device's part of the dirty limit  \
         /srv/a\\u001b[2K\\nb  by 10.0.0.5\n   \
         13.000000  sda1  write of 1.00 MiB at 4.00 MiB ended after 2.00 ms, failed: gone\\u202e  \
         /srv/a\\u001b[2K\\nb  by 10.0.0.5\n   \
         13.000000  all  dirty_ratio is now 20\n"
    );
}

#[test]
fn what_was_lost_is_said_before_what_follows() {
    assert!(lines(&events(), 1234).starts_with("1,234 events lost"));
    let text = json(&events(), 1234).unwrap();
    let rows: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows[0], serde_json::json!({ "event": "lost", "events": 1234 }));
    assert_eq!(
        (&rows[1]["event"], &rows[1]["ns"], &rows[1]["wait"]),
        (&"pause_ends".into(), &3_210_000.into(), &7.into())
    );
    assert_eq!(rows[3]["device"], serde_json::Value::Null);
}

#[test]
fn nothing_is_no_line() {
    assert_eq!((lines(&[], 0), json(&[], 0).unwrap()), (String::new(), String::new()));
}

#[test]
fn an_event_in_json_has_the_fields_of_its_row() {
    let (words, none) = (String::new, None::<String>);
    let all = [
        Happened::PauseBegins { wait: 0, cause: words() },
        Happened::PauseEnds { wait: 0, cause: words(), ns: 0 },
        Happened::SyncBegins { wait: 0 },
        Happened::SyncEnds { wait: 0, ns: 0 },
        Happened::Commit { ns: 0 },
        Happened::Turn { reason: words(), pages: 0, ns: 0 },
        Happened::Submitted { operation: words(), offset: 0, bytes: 0 },
        Happened::Completed { operation: words(), offset: 0, bytes: 0, ns: 0, error: none.clone() },
        Happened::SetAside { ns: 1 },
        Happened::KnobChanged { knob: words(), value: 0 },
        Happened::DeviceAdded,
        Happened::DeviceHangs { ns: 1, refuses: true },
        Happened::DeviceGoesOn { ns: 1 },
        Happened::DeviceFailing { error: none },
    ];
    for what in all {
        let value = serde_json::to_value(&what).unwrap();
        let name = value["event"].as_str().unwrap();
        assert_eq!(name, what.name());
        let row = EVENTS.iter().find(|event| event.name == name).unwrap();
        let mut fields: Vec<&str> = row.fields.to_vec();
        fields.sort_unstable();
        let shown: Vec<&str> =
            value.as_object().unwrap().keys().map(String::as_str).filter(|field| *field != "event").collect();
        assert_eq!(shown, fields, "{name}");
    }
}
