//! stat, set and drain on a running server.

use std::fs;

use afflux_engine::counters::COUNTERS;
use afflux_engine::settings::KnobInfo;

use crate::client::Client;
use crate::scratch::{Bytes, Mount, Scratch};
use crate::server::{LAZY, Server, run, text};

/// The knobs of a server.
fn knobs() -> impl Iterator<Item = &'static KnobInfo> {
    [&afflux_engine::settings::KNOBS, &afflux_volume::KNOBS, &afflux_nfs::KNOBS]
        .into_iter()
        .flat_map(|table| table.rows)
}

#[test]
fn stat_has_every_counter_and_knob_by_name() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB"]);
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file(&root, "a", &Bytes::new(1).vec(100_000));
    let stat = server.stat();
    for counter in COUNTERS {
        assert!(stat["counters"][counter.name].is_u64(), "{} is missing", counter.name);
    }
    for knob in knobs() {
        assert_eq!(stat["knobs"][knob.name], knob.default, "{}", knob.name);
    }
    assert_eq!(stat["cache"]["cache_bytes"], 64 << 20);
    assert!(stat["nfs"]["calls"]["nfs_write"].as_u64().unwrap() >= 1);
    assert_eq!(stat["nfs"]["calls"]["nfs_commit"], 1);
    assert!(stat["counters"]["nr_written"].as_u64().unwrap() >= 25, "{stat}");
    assert_eq!(stat["serving"][0]["export"], "/");
    let people = text(&server.ask(&["stat", "--verbose"]));
    // Waits are on lines below their device.
    assert_eq!(people.lines().filter(|line| !line.starts_with(' ')).count(), 3, "{people}");
    assert!(people.contains("cache") && people.contains("calls/s") && people.contains("BdiDirtied"), "{people}");
    let people = text(&server.ask(&["stat"]));
    let name = stat["devices"][0]["name"].as_str().unwrap();
    for begins in ["device ", name, "client ", "127.0.0.1 "] {
        assert!(people.lines().any(|line| line.starts_with(begins)), "{begins}: {people}");
    }
    assert!(people.contains("calls/s") && !people.contains("Bdi"), "{people}");
    assert!(!people.contains('\x1b'), "no colour or redraw when piped: {people:?}");
    server.stop();
}

#[test]
fn stat_names_the_files_with_unwritten_bytes_those_with_most_first() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &LAZY);
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file_uncommitted(&root, "small", &Bytes::new(1).vec(8192));
    client.write_file_uncommitted(&root, "large", &Bytes::new(2).vec(20 * 4096));
    let found: serde_json::Value = serde_json::from_str(&text(&server.ask(&["stat", "--files", "--json"]))).unwrap();
    let path = |name: &str| data.join(name).display().to_string();
    assert_eq!(
        found,
        serde_json::json!({
            "files": [
                { "file": path("large"), "bytes": 20 * 4096, "reason": null },
                { "file": path("small"), "bytes": 8192, "reason": null },
            ],
            "others": 0,
            "others_bytes": 0,
        })
    );
    let people = text(&server.ask(&["stat", "--files"]));
    assert_eq!(people.lines().count(), 2, "{people}");
    assert!(people.lines().next().unwrap().ends_with(&path("large")), "{people}");
    server.ask(&["drain"]);
    assert_eq!(text(&server.ask(&["stat", "--files"])), "everything is written\n");
    server.stop();
}

#[test]
fn set_acts_at_once_and_refuses_nonsense_with_value_and_range() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let output = server.ask(&["set", "dirty_ratio=20"]);
    assert!(text(&output).starts_with("dirty_ratio is now 20 percent for all devices\n"), "{}", text(&output));
    assert_eq!(server.stat()["knobs"]["dirty_ratio"], 20);
    for knob in knobs() {
        let refuse = |value: &str, extra: &[&str]| {
            let assignment = format!("{}={value}", knob.name);
            let output = server.ask(&[&["set", assignment.as_str()], extra].concat());
            let said = text(&output);
            assert_eq!(output.status.code(), Some(2), "{assignment}: {said}");
            assert!(said.contains(knob.name), "{assignment}: {said}");
            let ignored = said.contains("changes nothing under");
            assert!(ignored || said.contains(value) && said.contains(&knob.range()), "{assignment}: {said}");
        };
        refuse("ten", &[]);
        refuse(&(knob.max + 1).to_string(), &[]);
    }
    let output = server.ask(&["set", "speed=1"]);
    assert_eq!((output.status.code(), text(&output).contains("no knob 'speed'")), (Some(2), true));
    server.stop();
}

/// The figures of a device in which a knob of the default policy shows.
const FIGURES: [(&str, &[&str]); 10] = [
    ("dirty_ratio", &["dirty_limit_bytes"]),
    ("dirty_bytes", &["dirty_limit_bytes"]),
    ("dirty_background_bytes", &["background_threshold_bytes"]),
    ("dirty_background_centisecs", &["background_threshold_bytes"]),
    ("dirty_expire_centisecs", &["expires_after_ns"]),
    ("budget_ms", &["budget_ns"]),
    ("writer_portion_bytes", &["portion_bytes"]),
    ("writeback_in_flight_ms", &["in_flight_max_ns"]),
    ("hang_error_ms", &["refuses_after_ns"]),
    ("idle_writeback", &["idle_writes"]),
];

/// Knobs that show in behaviour alone, and the test of it: below `product`.
const BEHAVIOUR: [(&str, &str, &str); 10] = [
    ("dirty_writeback_centisecs", "engine/tests/simulated/writing_back.rs", "WritebackCentisecs"),
    ("readahead_bytes_max", "engine/tests/simulated/policy_knobs.rs", "ReadaheadBytes"),
    ("reserve_below_bytes", "engine/tests/simulated/space.rs", "reserve_below_bytes"),
    ("attributes_idle_centisecs", "volume/tests/simulated/clients.rs", "AttributesIdleCentisecs"),
    ("nfs_inflight_bytes_max", "nfs/tests/protocol/envelope.rs", "InflightBytes"),
    ("nfs_request_bytes_max", "linux-server/src/net/tests.rs", "request_bytes_max"),
    ("nfs_idle_centisecs", "linux-server/src/net/tests.rs", "idle_ns"),
    ("nfs_peer_connections_max", "linux-server/src/net/tests.rs", "peer_connections_max"),
    ("nfs_posix_acls", "nfs/tests/protocol/acls.rs", "nfs_posix_acls"),
    ("nfs_xattrs", "nfs/tests/protocol/xattrs.rs", "nfs_xattrs"),
];

#[test]
fn each_knob_of_a_running_server_moves_a_figure_or_the_reply_says_why_not() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB", "--set", "nfs_idle_centisecs=0"]);
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file(&root, "a", &Bytes::new(1).vec(1_000_000));
    let own = knobs().chain(afflux_budget::KNOBS.rows);
    for knob in own {
        if let Some((_, file, word)) = BEHAVIOUR.iter().find(|(name, ..)| *name == knob.name) {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(file);
            assert!(fs::read_to_string(&path).unwrap().contains(word), "{}: no test in {}", knob.name, path.display());
            continue;
        }
        let (_, figures) = FIGURES.iter().find(|(name, _)| *name == knob.name).expect(knob.name);
        let shown = || {
            let device = server.stat()["devices"][0].clone();
            let of = |name: &&str| [&device[*name], &device["in_force"][*name]].map(ToString::to_string);
            figures.iter().map(of).collect::<Vec<_>>()
        };
        // With these the device's time is no limit, unless the knob is one of them.
        server.ask(&["set", "budget_ms=60000"]);
        let at_default = shown();
        let middle = if knob.unit == "bytes" { 2 << 20 } else { knob.min.max(1) * 20 }.clamp(knob.min, knob.max);
        for value in [knob.max, middle, knob.min] {
            let output = server.ask(&["set", &format!("{}={value}", knob.name), "--json"]);
            let said = text(&output);
            if output.status.code() == Some(2) {
                assert!(said.contains(knob.name) && said.contains("not below"), "{said}");
                continue;
            }
            let reply: serde_json::Value = serde_json::from_str(&said).unwrap();
            let reasons = reply["in_force"].as_array().unwrap();
            let is_default = value == knob.default || value == 60_000 && knob.name == "budget_ms";
            let moved = shown() != at_default;
            assert!(moved || is_default || !reasons.is_empty(), "{}={value}: {said} {at_default:?}", knob.name);
            assert!(reasons.iter().all(|one| one["because"].as_str().unwrap().len() > 10), "{said}");
        }
        let output = server.ask(&["set", &format!("{}={}", knob.name, knob.default)]);
        assert!(output.status.success(), "{}", text(&output));
    }
    server.stop();
}

#[test]
fn a_threshold_above_what_writers_may_dirty_is_told_with_the_value_in_force() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let lowered = ["--cache", "64MiB", "--set", "budget_ms=200", "--set", "dirty_background_centisecs=300"];
    let server = Server::start(scratch.path(), &[&data], &lowered);
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file(&root, "a", &Bytes::new(1).vec(1_000_000));
    let said = text(&server.ask(&["set", "dirty_background_centisecs=200"]));
    let words = "15 centiseconds in force: writers pause above three quarters of the budget (budget_ms)";
    assert!(said.starts_with("dirty_background_centisecs is now 200") && said.contains(words), "{said}");
    let people = text(&server.ask(&["stat", "--verbose"]));
    assert!(people.contains(words), "{people}");
    let said = text(&server.ask(&["set", "idle_writeback=1"]));
    assert!(said.contains("no effect: dirty_background_centisecs"), "{said}");
    let name = server.stat()["devices"][0]["name"].as_str().unwrap().to_owned();
    let said = text(&server.ask(&["set", "dirty_background_centisecs=5", "--device", &name]));
    assert_eq!(said.lines().count(), 1, "nothing lowers it: {said}");
    server.stop();
}

#[test]
fn a_knob_that_the_policy_ignores_is_refused_with_the_one_to_set() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB"]);
    let output = server.ask(&["set", "dirty_ratio=20", "writeback_depth=4"]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("writeback_depth changes nothing under afflux: set writeback_in_flight_ms"), "{said}");
    let knobs = server.stat()["knobs"].clone();
    assert_eq!((&knobs["dirty_ratio"], &knobs["writeback_depth"]), (&50.into(), &16.into()), "none is set");
    server.stop();
}

#[test]
fn several_knobs_are_set_together_or_not_at_all() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB", "--set", "dirty_bytes=20MB"]);
    let output = server.ask(&["set", "dirty_expire_centisecs=500", "dirty_writeback_centisecs=100"]);
    let said = text(&output);
    assert!(output.status.success() && said.contains("expire_centisecs is now 500"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    // The background threshold is above the old limit and below the new limit.
    let output = server.ask(&["set", "dirty_background_bytes=30MB", "dirty_bytes=60MB", "--json"]);
    let values: Vec<serde_json::Value> = text(&output)
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["value"].clone())
        .collect();
    assert_eq!(values, [30_000_000, 60_000_000], "{}", text(&output));
    let before = server.stat()["knobs"].clone();
    for refused in ["dirty_writeback_centisecs=x", "speed=1", "dirty_bytes=20MB", "dirty_expire_centisecs=700"] {
        let output = server.ask(&["set", "dirty_expire_centisecs=600", refused]);
        let name = refused.split('=').next().unwrap();
        assert!(output.status.code() == Some(2) && text(&output).contains(name), "{}", text(&output));
    }
    assert_eq!(server.stat()["knobs"], before, "one value is refused, so none changes");
    server.stop();
}

#[test]
fn a_device_can_have_a_value_of_its_own() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let name = server.stat()["devices"][0]["name"].as_str().unwrap().to_owned();
    let output = server.ask(&["set", "dirty_expire_centisecs=500", "--device", &name]);
    assert_eq!(text(&output), format!("dirty_expire_centisecs is now 500 centiseconds for {name}\n"));
    assert_eq!(server.stat()["devices"][0]["knobs"], serde_json::json!({ "dirty_expire_centisecs": 500 }));
    let output = server.ask(&["set", "dirty_expire_centisecs=0", "--device", &name]);
    assert!(text(&output).contains("now 500"), "{}", text(&output));
    let output = server.ask(&["set", "dirty_expire_centisecs=500", "--device", "sdz9"]);
    let said = text(&output);
    assert_eq!((output.status.code(), said.contains("'sdz9'"), said.contains(&name)), (Some(2), true, true), "{said}");
    let output = server.ask(&["set", "dirty_expire_centisecs=700", "dirty_ratio=20", "--device", &name]);
    assert!(text(&output).contains("one value for all devices"), "{}", text(&output));
    assert_eq!(server.stat()["devices"][0]["knobs"]["dirty_expire_centisecs"], 500);
    server.stop();
}

#[test]
fn a_threshold_in_time_is_shown_in_bytes_with_the_speed_that_it_comes_from() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB"]);
    let device = || server.stat()["devices"][0].clone();
    let name = device()["name"].as_str().unwrap().to_owned();
    server.ask(&["set", "dirty_background_centisecs=1", "--device", &name]);
    let speed_and_threshold = || {
        let device = device();
        ["write_bandwidth_bytes_per_s", "background_threshold_bytes"].map(|name| device[name].as_u64().unwrap())
    };
    let [assumed, threshold] = speed_and_threshold();
    assert_eq!(threshold, assumed / 4096 / 100 * 4096, "of a device of which nothing is known");
    let mut client = Client::mount(&server);
    let root = client.root();
    // A speed is known once the device was busy for long enough, which on a fast one takes some writing.
    let bytes = Bytes::new(1).vec(4 << 20);
    let known = (0..1000).find_map(|turn| {
        client.write_file(&root, &format!("{}", turn % 4), &bytes);
        Some(speed_and_threshold()).filter(|[speed, _]| *speed != assumed)
    });
    let [speed, threshold] = known.expect("a speed after 4 GB");
    // Three eighths of the cache are the most.
    assert_eq!(threshold, (speed / 4096 / 100 * 4096).min(24 << 20));
    let people = text(&server.ask(&["stat", "--verbose"]));
    assert!(people.contains(", flushed above ") && people.contains("   writes up to "), "{people}");
    server.stop();
}

#[test]
fn a_background_above_the_limit_is_refused_with_both_values() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "64MiB", "--set", "dirty_bytes=20MB"]);
    let name = server.stat()["devices"][0]["name"].as_str().unwrap().to_owned();
    let refused = |arguments: &[&str], parts: &[&str]| {
        let output = server.ask(&[&["set"], arguments].concat());
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{arguments:?}: {said}");
    };
    let both = ["dirty_background_bytes=30000000", "dirty_bytes=20000000"];
    refused(&["dirty_background_bytes=30MB"], &both);
    refused(&["dirty_background_bytes=30MB", "--device", &name], &both);
    server.ask(&["set", "dirty_bytes=0"]);
    // Half of the cache.
    let both = ["dirty_background_bytes=40000000", "dirty_ratio=50", "33554432"];
    refused(&["dirty_background_bytes=40MB"], &both);
    server.ask(&["set", "dirty_background_bytes=30MB"]);
    refused(&["dirty_ratio=20"], &["dirty_background_bytes=30000000", "dirty_ratio=20", "13421772"]);
    server.stop();
    let data = data.to_str().unwrap();
    let arguments = ["serve", data, "--cache", "64MiB", "--set", "dirty_background_bytes=1GB"];
    let output = run(scratch.path(), &arguments);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("dirty_background_bytes=1000000000") && said.contains("dirty_ratio=50"), "{said}");
}

#[test]
fn drain_writes_everything_that_is_dirty() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &LAZY);
    let mut client = Client::mount(&server);
    let root = client.root();
    let bytes = Bytes::new(2).vec(4 << 20);
    client.write_file_uncommitted(&root, "a", &bytes);
    assert!(server.stat()["cache"]["dirty_bytes"].as_u64().unwrap() >= 4 << 20);
    let output = server.ask(&["drain"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("Done: everything is written"), "{}", text(&output));
    assert_eq!(server.stat()["cache"]["dirty_bytes"], 0);
    server.kill();
    assert!(fs::read(data.join("a")).unwrap() == bytes);
}

#[test]
fn drain_in_json_is_one_object_a_line() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &LAZY);
    let output = server.ask(&["drain", "--json"]);
    let lines: Vec<serde_json::Value> = text(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!((&last["is"], &last["failed"]), (&"drained".into(), &serde_json::json!([])));
    server.stop();
}

#[test]
fn the_one_running_server_is_found_and_several_are_listed() {
    let scratch = Scratch::new();
    let (one, two) = (scratch.directory("one"), scratch.directory("two"));
    let start = |directory: &std::path::Path| {
        let mut command = crate::server::afflux(scratch.path());
        command.arg("serve").arg(directory).args(["--listen", "127.0.0.1:0", "--json", "--cache", "16MiB"]);
        Server::spawn(command, scratch.path().join("unused"), scratch.path())
    };
    let none = run(scratch.path(), &["stat"]);
    // A server of the same user elsewhere may be found; then there is one, or several.
    let alone = text(&none).contains("no server is running");
    let first = start(&one);
    if alone {
        let found = run(scratch.path(), &["stat", "--json"]);
        // Another server may have started elsewhere just now.
        let several = text(&found).contains("servers are running");
        assert!(found.status.success() || several, "{}", text(&found));
    }
    let second = start(&two);
    let several = run(scratch.path(), &["stat"]);
    let said = text(&several);
    assert_eq!(several.status.code(), Some(2), "{said}");
    for server in [&first, &second] {
        assert!(said.contains(server.ready["control"].as_str().unwrap()), "{said}");
    }
    first.stop();
    second.stop();
}

/// With these letters a terminal would hide the text before the name, and change the direction of text.
#[test]
fn a_file_s_name_reaches_no_terminal_as_it_is() {
    const NAME: &str = "un\x1b[2K\rDone: everything is written.\nglücklich\u{202e}";
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let Some(_mount) = Mount::tmpfs(&data, 8 << 20) else { return };
    let server = Server::start(scratch.path(), &[&data], &[&LAZY[..], &["--set", "reserve_below_bytes=0"]].concat());
    let mut client = Client::mount(&server);
    let root = client.root();
    let doomed = client.create(&root, NAME);
    for at in 0..4u64 {
        client.try_write_at(&doomed, at << 20, &Bytes::new(at).vec(1 << 20)).unwrap();
    }
    // Another program takes the free space.
    let _ = fs::write(data.join("other"), vec![1; 8 << 20]);
    let shown = "un\\u001b[2K\\rDone: everything is written.\\nglücklich\\u202e: ";
    let output = server.ask(&["drain"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains(shown), "{}", text(&output));
    let output = server.ask(&["drain", "--json"]);
    let last = text(&output).lines().rfind(|line| line.starts_with('{')).unwrap().to_owned();
    let last: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["failed"][0]["file"], data.join(NAME).to_str().unwrap());
    server.signal(rustix::process::Signal::TERM);
    let ended = server.wait();
    assert!(ended.code == Some(1) && ended.stderr.contains(shown), "{ended:?}");
    assert!(!ended.stderr.contains('\x1b') && !ended.stdout.contains('\u{202e}'), "{ended:?}");
}

#[test]
fn every_command_helps_with_an_example() {
    let scratch = Scratch::new();
    for command in ["serve", "stat", "trace", "set", "drain", "unlock", "clients", "completions", "man"] {
        let help = run(scratch.path(), &[command, "--help"]);
        let said = text(&help);
        assert!(help.status.success() && said.contains(&format!("  afflux {command}")), "{said}");
    }
    let said = text(&run(scratch.path(), &["set", "--help"]));
    for knob in knobs() {
        assert!(said.contains(knob.name), "{} is not listed: {said}", knob.name);
    }
}

#[test]
fn watching_ends_when_nobody_reads() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let mut command = crate::server::afflux(scratch.path());
    command.args(["stat", "--watch", "--json", "--control"]).arg(&server.control);
    let mut watching = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut output = std::io::BufReader::new(watching.stdout.take().unwrap());
    for _ in 0..2 {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        let report: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(report["counters"].is_object(), "{line}");
    }
    drop(output);
    assert_eq!(watching.wait().unwrap().code(), Some(0));
    server.stop();
}
