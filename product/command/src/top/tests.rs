use std::collections::BTreeMap;

use afflux_engine::{DelayTimes, DeviceStatus, WaitTimes};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use expect_test::expect;

use super::follow::FollowedReport;
use super::model::Model;
use super::rows::{Attention, Rows, SortOrder, WaitRow};
use super::table;
use crate::control::messages::{
    AnsweredCalls, DelayGauges, FigureGauge, Happened, PeerGauges, Report, StoreGauges, TraceEvent, WaiterGauges,
};
use crate::stat::tests::report;
use crate::top::screen::Choices;

const S: u64 = 1_000_000_000;

fn event(at_ns: u64, file: &str, what: Happened) -> TraceEvent {
    let (device, client) = (Some("sda1".to_owned()), Some("192.0.2.7".to_owned()));
    TraceEvent { at_ns, device, file: Some(file.to_owned()), client, what }
}

fn written(at_ns: u64, file: &str, bytes: u64) -> TraceEvent {
    event(at_ns, file, Happened::Submitted { operation: "write".into(), offset: 0, bytes })
}

fn pause(at_ns: u64, file: &str, ns: u64) -> TraceEvent {
    event(at_ns, file, Happened::PauseEnds { wait: 1, cause: "budget".into(), ns })
}

fn throttled(client: &str, uid: u32, ns: u64) -> DelayGauges {
    let throttle = WaitTimes { count: 1, ns, ..WaitTimes::default() };
    let times = DelayTimes { throttle, ..DelayTimes::default() };
    DelayGauges { client: Some(client.into()), uid: Some(uid), times, ..DelayGauges::default() }
}

/// A server at a second of its life. Its one client sends it 10 MB every second, and waits for half of each.
fn at(second: u64) -> Report {
    let mut now = report(second * S);
    let device = &mut now.devices[0];
    device.status.written_bytes = second * 5_000_000;
    device.status.read_bytes = second * 1_000;
    device.in_force = BTreeMap::from([
        ("owed_ns".to_owned(), Some(FigureGauge::Number(S / 4))),
        ("budget_in_force_ns".to_owned(), Some(FigureGauge::Number(S))),
    ]);
    device.clients = vec![throttled("192.0.2.7", 1, second * S / 4), throttled("192.0.2.7", 2, second * S / 4)];
    let peer = PeerGauges {
        connections: 2,
        received_bytes: second * 10_000_000,
        sent_bytes: second * 3,
        ..PeerGauges::default()
    };
    now.nfs.clients = BTreeMap::from([("192.0.2.7".to_owned(), peer)]);
    now.nfs.answered = AnsweredCalls { calls: second * 15, writes: second * 9, ..AnsweredCalls::default() };
    now.mount_answered = AnsweredCalls { calls: second * 5, ..AnsweredCalls::default() };
    (now.nfs.open_files, now.nfs.locked_ranges) = (3, 1);
    now
}

fn sample(second: u64, events: Vec<TraceEvent>) -> FollowedReport {
    FollowedReport { report: at(second), events, lost: 0 }
}

fn after(seconds: u64) -> Model {
    let mut model = Model::default();
    for second in 1..=seconds {
        let events = vec![
            written(second * S, "/mnt/big", 4_000_000),
            written(second * S, "/mnt/small", 1_000_000),
            pause(second * S - S / 2, "/mnt/small", S / 10),
        ];
        model.take(sample(second, events));
    }
    model
}

#[test]
fn rates_are_what_a_second_of_the_server_brings() {
    for seconds in [2, 3, 6, 20, 300] {
        let model = after(seconds);
        let rows = model.rows();
        let device = &rows.devices[0];
        assert_eq!((device.written_bytes_per_s, device.read_bytes_per_s), (5_000_000, 1_000), "{seconds}");
        assert_eq!((device.owed_ns, device.budget_ns), (Some(S / 4), Some(S)));
        assert_eq!(device.owed_per_mille, vec![250; (seconds as usize - 1).min(120)]);
        assert_eq!(rows.calls_per_s, 20);
        let [client] = &rows.clients[..] else { panic!("{rows:?}") };
        assert_eq!((client.name.as_str(), client.connections), ("192.0.2.7", 2));
        assert_eq!((client.received_bytes_per_s, client.sent_bytes_per_s), (10_000_000, 3));
        assert_eq!(client.waited.throttle, S / 2, "of both its users");
        let [big, small] = &rows.files[..] else { panic!("{rows:?}") };
        assert_eq!((big.name.as_str(), big.written_bytes_per_s), ("/mnt/big", 4_000_000), "{seconds}");
        assert_eq!((small.written_bytes_per_s, small.paused_ns_per_s), (1_000_000, S / 10));
    }
}

#[test]
fn what_is_over_is_forgotten_and_what_is_kept_is_bounded() {
    let mut model = after(300);
    for second in 301..=306 {
        model.take(sample(second, Vec::new()));
    }
    assert!(model.rows().files.is_empty());
    let many = (0..100_000).map(|file| pause(307 * S, &format!("/mnt/{file}"), 1)).collect();
    model.take(sample(307, many));
    let rows = model.rows();
    assert_eq!((rows.files.len(), rows.waits.len()), (4_096, 500));
}

#[test]
fn waits_that_last_come_before_those_that_ended_and_the_last_of_these_first() {
    let mut model = after(2);
    let mut report = at(3);
    let waiter =
        |file: &str, ns| WaiterGauges { file: file.into(), client: None, waits_for: "sync".into(), calls: 2, ns };
    report.devices[0].waiting = vec![waiter("/mnt/short", 5), waiter("/mnt/long", 7 * S)];
    model.take(FollowedReport { report, events: vec![pause(2 * S + S / 2, "/mnt/last", 9)], lost: 3 });
    let rows = model.rows();
    let files: Vec<_> = rows.waits.iter().map(|row| row.file.as_deref().unwrap()).collect();
    assert_eq!(files, ["/mnt/long", "/mnt/short", "/mnt/last", "/mnt/small"]);
    let ago: Vec<_> = rows.waits.iter().map(|row| (row.ended_ns_ago, row.times, row.longest_ns)).collect();
    let small = (Some(3 * S / 2), 2, S / 10);
    assert_eq!(ago, [(None, 2, 7 * S), (None, 2, 5), (Some(S / 2), 1, 9), small], "alike ones are one row");
    assert_eq!(rows.lost_events, 3);
    assert_eq!(rows.files.iter().find(|row| row.name == "/mnt/long").unwrap().waiting, 2);
}

#[test]
fn requests_that_wait_for_a_store_are_a_row_of_waits() {
    let (mut model, mut report) = (after(2), at(3));
    let store = |waiting_ns| Some(StoreGauges { waiting: 4, waiting_ns, ..StoreGauges::default() });
    report.devices[0].store = store(2 * S);
    model.take(FollowedReport { report: report.clone(), events: Vec::new(), lost: 0 });
    let row = model.rows().waits[0].clone();
    assert_eq!((row.waits_for.as_str(), row.times, row.longest_ns, row.ended_ns_ago), ("store", 4, 2 * S, None));
    report.devices[0].store = store(S / 2);
    model.take(FollowedReport { report, events: Vec::new(), lost: 0 });
    assert!(model.rows().waits.iter().all(|row| row.waits_for != "store"), "requests that pass are no waits");
}

#[test]
fn a_client_that_connects_anew_has_not_sent_less() {
    let mut model = after(5);
    let mut report = at(6);
    // The client has new connections, and has sent 7 MB over them.
    report.nfs.clients.get_mut("192.0.2.7").unwrap().received_bytes = 7_000_000;
    model.take(FollowedReport { report, events: Vec::new(), lost: 0 });
    assert_eq!(model.rows().clients[0].received_bytes_per_s, (4 * 10_000_000 + 7_000_000) / 5);
}

#[test]
fn a_server_that_was_started_again_begins_anew() {
    let mut model = after(9);
    model.take(sample(1, Vec::new()));
    assert!(!model.has_rates() && model.rows().waits.is_empty());
}

#[test]
fn order_and_letters_choose_rows() {
    let mut rows = after(6).rows();
    let names = |rows: &Rows| rows.files.iter().map(|row| row.name.clone()).collect::<Vec<_>>();
    rows.sort(SortOrder::Waits);
    assert_eq!(names(&rows), ["/mnt/small", "/mnt/big"]);
    rows.sort(SortOrder::Name);
    assert_eq!(names(&rows), ["/mnt/big", "/mnt/small"]);
    rows.keep("SMALL");
    assert_eq!(names(&rows), ["/mnt/small"]);
    assert!(rows.devices.is_empty() && rows.clients.is_empty() && !rows.waits.is_empty());
}

fn press(choices: &mut Choices, keys: &str) {
    for letter in keys.chars() {
        let code = match letter {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\x08' => KeyCode::Backspace,
            letter => KeyCode::Char(letter),
        };
        choices.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

#[test]
fn keys_choose_and_letters_that_are_typed_are_no_keys() {
    let mut choices = Choices::default();
    press(&mut choices, "s");
    assert_eq!(choices.order, SortOrder::Waits);
    press(&mut choices, "ss p");
    assert_eq!((choices.order, choices.held), (SortOrder::Writes, false));
    press(&mut choices, "p/sqx\x08p");
    assert_eq!((choices.letters.as_str(), choices.held, choices.ends), ("sqp", true, false));
    press(&mut choices, "\n");
    assert_eq!((choices.letters.as_str(), choices.typing.is_some()), ("sqp", false));
    // The user begins a new filter and cancels it.
    press(&mut choices, "/else\x1b");
    assert_eq!(choices.letters, "sqp");
    press(&mut choices, "\x1b");
    assert_eq!(choices.letters, "");
    press(&mut choices, &format!("/{}", "x".repeat(1_000)));
    assert_eq!(choices.letters.len(), 100);
    choices.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert!(choices.ends);
    let mut choices = Choices::default();
    press(&mut choices, "?s");
    assert_eq!(
        (choices.explains, choices.order),
        (false, SortOrder::Writes),
        "a key ends the list, and does nothing else"
    );
    press(&mut choices, "?q");
    assert!(choices.ends);
}

/// Rows with names that are long, wide, or try to control the terminal.
pub(super) fn awkward() -> Rows {
    let mut rows = after(150).rows();
    for name in ["/mnt/".repeat(80), "漢字".repeat(40), "a\x1b[2J\nb".to_owned(), String::new()] {
        let mut file = rows.files[0].clone();
        file.name.clone_from(&name);
        rows.files.push(file);
        let mut device = rows.devices[0].clone();
        let status = &mut device.status;
        (status.name, status.stalled_ns, status.files_failed) = (name.clone(), Some(u64::MAX), u32::MAX);
        (device.owed_ns, device.budget_ns, device.written_bytes_per_s) = (Some(u64::MAX), None, u64::MAX);
        rows.devices.push(device);
        let mut client = rows.clients[0].clone();
        (client.name, client.received_bytes_per_s) = (name.clone(), u64::MAX);
        rows.clients.push(client);
        rows.waits.push(WaitRow {
            longest_ns: u64::MAX,
            waits_for: name.clone(),
            file: Some(name),
            ..rows.waits[0].clone()
        });
    }
    rows
}

#[test]
fn no_line_is_wider_than_it_may_be_and_none_controls_the_terminal() {
    let rows = awkward();
    for width in 1..=300 {
        for table::RowTable { title, lines } in table::all(&rows, width) {
            for line in lines.iter().map(|(line, _)| line).chain([&title]) {
                let taken = ratatui::text::Span::raw(line).width();
                assert!(taken <= width, "{taken} of {width}: {line}");
                assert!(!line.contains(|letter: char| letter.is_control()), "{line:?}");
            }
        }
        assert!(ratatui::text::Span::raw(table::summary(&rows, width)).width() <= width);
    }
}

#[test]
fn the_narrower_the_fewer_columns_and_never_another_order() {
    let rows = after(10).rows();
    let line = |width| table::all(&rows, width)[0].lines[0].0.clone();
    expect![[r#"
        sda1          250 ms
        sda1            250 ms  5.00 MB/s      -
        sda1        250 ms    1.00 s  5.00 MB/s  1.00 kB/s      -"#]]
    .assert_eq(&[20, 40, 57].map(line).join("\n"));
    assert!(line(200).contains("▂▂▂▂▂▂▂▂▂") && line(200).contains("1.00 kB/s"), "{}", line(200));
    let file = |width| table::all(&rows, width)[2].lines[0].0.clone();
    assert_eq!(file(8), "/mnt/big");
    assert_eq!(file(5), "…/big", "{}", file(5));
}

#[test]
fn where_there_is_room_no_name_is_cut_and_a_state_comes_before_curves() {
    let mut rows = after(10).rows();
    rows.files[0].name = format!("/mnt/{}", "x".repeat(90));
    rows.waits[0].client = Some("fe80::1234:5678:9abc:def0%enp0s31f6".into());
    let text = |width| table::plain(&rows, width, 20);
    assert!(!text(200).contains('…') && text(80).contains('…'), "{}", text(200));
    assert!(!text(120).contains("state"), "no device has one");
    let status = &mut rows.devices[0].status;
    (status.stalled_ns, status.files_failed) = (Some(12 * S), 2);
    for width in 80..200 {
        let text = table::plain(&rows, width, 20);
        assert!(text.contains("nothing done for 12.0 s") && text.contains("hangs"), "{text}");
    }
}

#[test]
fn a_device_that_hangs_for_names_has_its_state_and_its_colour() {
    let mut rows = after(10).rows();
    rows.devices[0].status.names_stalled_ns = Some(12 * S);
    for width in 80..200 {
        let text = table::plain(&rows, width, 20);
        assert!(text.contains("names wait for 12.0 s") && text.contains("hangs"), "{text}");
    }
    rows.devices[0].status = DeviceStatus { files_failed: 1, ..DeviceStatus::default() };
    assert!(table::plain(&rows, 80, 20).contains("1 file could not be written"));
    assert_eq!(rows.devices[0].load(), Attention::Over);
}

#[test]
fn a_store_that_is_away_says_since_when_and_its_requests_are_shown() {
    let mut rows = after(10).rows();
    (rows.devices[0].status.stalled_ns, rows.devices[0].status.away_ns) = (Some(12 * S), Some(13 * S));
    rows.devices[0].store_requests_per_s = Some(7);
    rows.devices[0].disk_cache_percent = Some(93);
    let text = table::plain(&rows, 200, 20);
    assert!(
        text.contains("away for 13.0 s, writers wait; 7 requests/s; disk cache 93 %") && !text.contains("hangs"),
        "{text}"
    );
    assert_eq!(rows.devices[0].load(), Attention::Over);
}

#[test]
fn a_row_has_the_colour_of_its_load() {
    let mut device = after(2).rows().devices[0].clone();
    let load = |owed: u64, device: &mut super::rows::DeviceRow| {
        device.owed_ns = Some(owed);
        device.load()
    };
    let loads = [S / 2 - 1, S / 2, S, S + S / 10].map(|owed| load(owed, &mut device));
    assert_eq!(loads, [Attention::Calm, Attention::Busy, Attention::Busy, Attention::Over]);
    device.status.stalled_ns = Some(1);
    assert_eq!(load(0, &mut device), Attention::Over);
    let mut client = after(6).rows().clients[0].clone();
    assert_eq!(client.load(), Attention::Busy, "it waits for half of the time");
    client.waited.sync = S / 2;
    assert_eq!(client.load(), Attention::Over);
    let mut wait = after(6).rows().waits[0].clone();
    wait.longest_ns = 20 * S;
    let ended = wait.load();
    wait.ended_ns_ago = None;
    assert_eq!((ended, wait.load()), (Attention::Calm, Attention::Over));
}

#[test]
fn plain_lines_have_all_tables_and_no_escapes() {
    let text = table::plain(&after(6).rows(), 120, 20);
    expect![[r#"
        127.0.0.1:2049   20 calls/s   dirty 1.00 MiB   cache 16.0 MiB of 64.0 MiB   hit -   connections 1   open 3, locked 1

        device          owes    budget     writes      reads  queue  writers wait     dirty  owed of budget   writes of its best
        sda1          250 ms    1.00 s  5.00 MB/s  1.00 kB/s      -             -  1.00 MiB            ▂▂▂▂▂               █████

        client                                      sent us        got    paused    synced      read  for memory  wait now
        192.0.2.7                                 10.0 MB/s      3 B/s    500 ms         -         -           -         -

        file                                                            written       read    paused    synced  wait now  device
        /mnt/big                                                      4.00 MB/s          -         -         -         -  sda1
        /mnt/small                                                    1.00 MB/s          -    100 ms         -         -  sda1

         longest  waited for  times      ended  device  client      file
          100 ms  budget          6     -0.5 s  sda1    192.0.2.7   /mnt/small

    "#]].assert_eq(&text);
    assert!(!text.contains('\x1b') && text.lines().all(|line| line.trim_end() == line));
    let text = table::plain(&awkward(), 120, 3);
    assert!(text.contains("+4 more\n"), "{text}");
}

#[test]
fn rows_as_json_have_units_in_their_names() {
    let value = serde_json::to_value(after(6).rows()).unwrap();
    assert_eq!(value["devices"][0]["owed_ns"], 250_000_000);
    assert_eq!(value["files"][0]["written_bytes_per_s"], 4_000_000);
    assert_eq!(value["clients"][0]["waited"]["throttle_ns_per_s"], S / 2);
    assert_eq!(value["waits"][0]["waits_for"], "budget");
}
