//! A restarted server still knows the disks' prices.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::client::Client;
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, eventually, text};

/// The policy's figures for the disk.
fn in_force(server: &Server) -> Value {
    server.stat()["devices"][0]["in_force"].clone()
}

/// Has a client write until the disk's prices are known.
fn write_until_known(server: &Server) {
    let mut client = Client::mount(server);
    let root = client.root();
    let file = client.create(&root, "a");
    let bytes = Bytes::new(3).vec(8 << 20);
    let mut at = 0;
    eventually("the disk is known", || {
        client.write_at(&file, at % 8 * bytes.len() as u64, &bytes);
        at += 1;
        in_force(server)["knowledge"] == "known"
    });
}

fn kept(state: &Path) -> Value {
    let text = fs::read_to_string(state.join("disks.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["version"], 1, "{document}");
    document["disks"].clone()
}

#[test]
fn a_disk_that_was_known_is_not_cold_after_a_restart() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &[]);
    assert_eq!(in_force(&server)["knowledge"], "cold");
    let people = text(&server.ask(&["stat", "--verbose"]));
    assert!(people.contains("of 1.00 s (as requested)") && people.contains("too little is known"), "{people}");
    write_until_known(&server);
    server.stop();

    let disks = kept(&scratch.path().join("afflux"));
    let (identity, disk) = disks.as_object().unwrap().iter().next().unwrap();
    assert!(identity.contains("fs="), "{identity}");
    let server = Server::start(scratch.path(), &[&data], &[]);
    let known = in_force(&server);
    assert_eq!(known["knowledge"], "known", "{known}");
    for name in ["write_run_ns", "write_mib_ns", "read_run_ns", "read_mib_ns"] {
        assert_eq!(known[name], disk["prices"][name], "{known}");
    }
    assert_eq!(known["mib_ns"], known["write_mib_ns"], "they are in force");
    assert_eq!(known["write_age_ns"], Value::Null, "and were not measured since");
    let ended = server.stop();
    assert!(!ended.stderr.contains("warning"), "{}", ended.stderr);
    assert_eq!(kept(&scratch.path().join("afflux")), disks, "nothing new was learned");
}

#[test]
fn the_place_is_the_one_that_is_named_and_others_know_nothing_of_the_disk() {
    let scratch = Scratch::new();
    let (data, state) = (scratch.directory("data"), scratch.path().join("state/of/mine"));
    let named = ["--state", state.to_str().unwrap()];
    let server = Server::start(scratch.path(), &[&data], &named);
    write_until_known(&server);
    server.stop();
    assert!(!kept(&state).as_object().unwrap().is_empty());
    assert!(state.join("handle-key").exists());
    let elsewhere = fs::read_dir(scratch.path().join("afflux")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(elsewhere.collect::<Vec<_>>(), ["starts"], "the record of starts is of all state directories");
    let server = Server::start(scratch.path(), &[&data], &[]);
    assert_eq!(in_force(&server)["knowledge"], "cold");
    server.stop();
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason_and_the_server_runs() {
    let scratch = Scratch::new();
    let (data, state) = (scratch.directory("data"), scratch.directory("afflux"));
    fs::write(state.join("disks.json"), "{ \"version\": 1, \"disks\": 7 }").unwrap();
    let server = Server::start(scratch.path(), &[&data], &[]);
    assert_eq!(in_force(&server)["knowledge"], "cold");
    let ended = server.stop();
    assert!(
        ended.stderr.contains("warning: ") && ended.stderr.contains("disks.json is not used ("),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_place_that_cannot_be_written_is_a_warning() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    // A directory that no user can make.
    let server = Server::start(scratch.path(), &[&data], &["--state", "/proc/afflux"]);
    let mut client = Client::mount(&server);
    let root = client.root();
    client.write_file(&root, "a", b"b");
    let ended = server.stop();
    let said = "warning: the disks' measured speeds are not kept until the next start (/proc/afflux: ";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}
