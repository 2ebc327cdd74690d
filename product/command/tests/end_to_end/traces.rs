//! Traces: recorded on a server, and shown.

use std::fs;

use serde_json::Value;

use crate::client::Client;
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, afflux, eventually, run, text};

#[test]
fn what_clients_of_a_server_do_is_recorded_and_shown() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let trace = scratch.path().join("calls.trace");
    let mut client = Client::mount(&server);
    let root = client.root();
    let file = client.create(&root, "a");
    let bytes = Bytes::new(3).vec(256 << 10);
    let mut lines = Vec::<Value>::new();
    eventually("calls of all kinds are recorded", || {
        let mut recording = afflux(scratch.path());
        recording.args(["trace", "record", "--for", "300ms", "--control"]).arg(&server.control).arg(&trace);
        let mut recording = recording.spawn().unwrap();
        while recording.try_wait().unwrap().is_none() {
            client.write_at(&file, 0, &bytes);
            assert_eq!(client.read_at(&file, 0, bytes.len()), bytes);
        }
        assert!(recording.wait().unwrap().success());
        let shown = run(scratch.path(), &["trace", "show", "--json", trace.to_str().unwrap()]);
        lines = text(&shown).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        ["read", "write", "sync"].iter().all(|op| lines.iter().any(|line| line["op"] == *op))
    });
    let number = |line: &Value, name: &str| line[name].as_u64().unwrap();
    assert!(lines.is_sorted_by_key(|line| number(line, "time_us")));
    for line in &lines {
        assert_eq!(line["file"], lines[0]["file"], "there is one file");
        let end = number(line, "offset") + number(line, "bytes");
        assert!(end <= 256 << 10 && (line["op"] == "sync") == (number(line, "bytes") == 0), "{line}");
    }
    let people = text(&run(scratch.path(), &["trace", "show", trace.to_str().unwrap()]));
    assert_eq!(people.lines().count(), lines.len());
    // Cut short, it is refused.
    let whole = fs::read(&trace).unwrap();
    fs::write(&trace, &whole[..whole.len() - 41]).unwrap();
    let output = run(scratch.path(), &["trace", "show", trace.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("the file is cut short: 39 of 40 bytes"), "{}", text(&output));
    let missing = run(scratch.path(), &["trace", "show", "nowhere.trace"]);
    assert!(text(&missing).contains("nowhere.trace cannot be read"), "{}", text(&missing));
    server.stop();
}
