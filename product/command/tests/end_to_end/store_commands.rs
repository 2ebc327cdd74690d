//! The commands about volumes in stores: a list, a check, snapshots.

//! rule: a damaged segment costs its own bytes alone, and a check names them
//! kept in: `product/object/src/check.rs`, `product/object/src/format/segment.rs`

use serde_json::Value;

use crate::client::Client;
use crate::fake_store::FakeStore;
use crate::scratch::{Bytes, Scratch};
use crate::server::{run as run_alone, text};
use crate::store_server::{ADDRESS, run, serve, with_keys};

#[test]
fn a_check_names_the_damaged_bytes_and_only_these_cannot_be_read() {
    let (store, scratch) = (FakeStore::start(), Scratch::new());
    let server = serve(&store, scratch.path(), "server", &[]);
    let mut client = Client::mount(&server);
    let root = client.root();
    let directory = client.make_directory(&root, "d");
    let (whole, large) = (Bytes::new(1).vec(2 << 20), Bytes::new(2).vec(2 << 20));
    client.write_file(&directory, "whole", &whole);
    server.stop();
    let before = segments(&store);
    let server = serve(&store, scratch.path(), "server", &[]);
    let mut client = Client::mount(&server);
    let file = client.write_file(&directory, "large", &large);
    server.stop();
    let sound = run(&store, scratch.path(), &["check", ADDRESS]);
    assert!(sound.status.success(), "{}", text(&sound));
    let made = segments(&store).into_iter().find(|name| !before.contains(name)).unwrap();
    store.change(|objects| objects.get_mut(&made).unwrap()[70_000] ^= 1);
    let damaged = run(&store, scratch.path(), &["check", ADDRESS, "--json"]);
    assert_eq!(damaged.status.code(), Some(1), "{}", text(&damaged));
    let report: Value = serde_json::from_slice(&damaged.stdout).unwrap();
    let bytes = report["damaged"][0]["bytes"].as_array().unwrap();
    assert!(bytes.iter().all(|range| range["file"] == "/d/large"), "{report}");
    let (start, end) = (bytes[0]["start"].as_u64().unwrap(), bytes[0]["end"].as_u64().unwrap());
    assert!(bytes.len() == 1 && end - start <= 65_536, "one line of a segment: {report}");
    let said = text(&run(&store, scratch.path(), &["check", ADDRESS]));
    assert!(said.contains(&format!("/d/large: bytes {start} to {end} cannot be read")), "{said}");

    let server = serve(&store, scratch.path(), "server", &["--set", "readahead_bytes_max=0"]);
    let mut client = Client::mount(&server);
    assert_eq!(client.read_file(&directory, "whole"), whole);
    assert_eq!(client.read_at(&file, 0, start as usize), large[..start as usize]);
    let after = end as usize;
    assert_eq!(client.read_at(&file, end, large.len() - after), large[after..]);
    assert!(client.try_read_at(&file, start, 4_096).is_err());
    server.stop();
}

fn segments(store: &FakeStore) -> Vec<String> {
    let mut names = Vec::new();
    store.change(|objects| names.extend(objects.keys().filter(|name| name.starts_with("home/data/")).cloned()));
    names
}

#[test]
fn volumes_are_listed_and_a_snapshot_is_served_as_it_was() {
    let (store, scratch) = (FakeStore::start(), Scratch::new());
    let server = serve(&store, scratch.path(), "server", &[]);
    let mut client = Client::mount(&server);
    let root = client.root();
    let file = client.write_file(&root, "file", b"at first");
    server.stop();
    let ask = |arguments: &[&str]| run(&store, scratch.path(), arguments);
    for place in ["s3://bucket", "s3://bucket/home"] {
        assert_eq!(text(&ask(&["volumes", place])), "s3://bucket/home\n");
    }
    assert_eq!(text(&ask(&["volumes", "s3://bucket/nothing"])), "");
    let made = ask(&["snapshot", ADDRESS, "before"]);
    assert!(made.status.success(), "{}", text(&made));
    let again = ask(&["snapshot", ADDRESS, "before"]);
    assert!(text(&again).contains("there is a snapshot 'before'"), "{}", text(&again));
    let wrong = ask(&["snapshot", ADDRESS, "a b"]);
    assert!(wrong.status.code() == Some(2) && text(&wrong).contains("'a b' is no name"), "{}", text(&wrong));

    let server = serve(&store, scratch.path(), "server", &[]);
    let mut client = Client::mount(&server);
    client.write_at(&file, 0, b"and later");
    client.write_file(&root, "more", b"more");
    server.stop();
    let server = serve(&store, scratch.path(), "snapshot", &["--snapshot", "before"]);
    let mut client = Client::mount(&server);
    assert_eq!((client.list(&root), client.read_file(&root, "file")), (vec!["file".to_owned()], b"at first".to_vec()));
    server.stop();
    let listed: Value = serde_json::from_slice(&ask(&["snapshot", ADDRESS, "--json"]).stdout).unwrap();
    assert_eq!(listed["snapshot"], "before");
    assert!(ask(&["snapshot", ADDRESS, "before", "--remove"]).status.success());
    let said = text(&ask(&["serve", ADDRESS, "--snapshot", "before", "--listen", "127.0.0.1:0"]));
    assert!(said.contains("there is no snapshot 'before'; there are: none"), "{said}");
}

// rule: A variable that names a proxy is used, and a variable that names none is refused
#[test]
fn a_proxy_is_used_or_refused() {
    let (store, scratch) = (FakeStore::start(), Scratch::new());
    serve(&store, scratch.path(), "server", &[]).stop();
    let ask = |name: &str, value: &str, more: &[(&str, &str)]| {
        let mut command = with_keys(scratch.path());
        command.env(name, value).envs(more.iter().copied());
        // Nobody but the proxy knows this host.
        command.args(["volumes", "s3://bucket", "--endpoint", "http://store.invalid:9000"]).output().unwrap()
    };
    assert_eq!(text(&ask("HTTP_PROXY", &store.endpoint, &[])), "s3://bucket/home\n");
    let past = ask("HTTP_PROXY", &store.endpoint, &[("NO_PROXY", "store.invalid")]);
    assert!(past.status.code() == Some(1) && text(&past).contains("no answer from the store"), "{}", text(&past));
    let wrong = ask("HTTP_PROXY", "socks5://me:hidden@proxy:1080", &[]);
    let said = text(&wrong);
    assert!(wrong.status.code() == Some(2) && said.contains("HTTP_PROXY names no proxy"), "{said}");
    assert!(!said.contains("hidden"), "{said}");
}

#[test]
fn a_stores_address_is_checked_without_a_request() {
    let scratch = Scratch::new();
    for (address, word) in [
        ("s3://", "names no bucket"),
        ("s3:/bucket/home", "names no bucket"),
        ("S3://bucket/home", "small letters"),
        ("https://bucket.s3.amazonaws.com/home", "its kind is unknown; write s3://BUCKET/PREFIX"),
        ("s3://bucket/home?versionId=1", "have a meaning"),
        ("file://host/d", "names no local directory"),
    ] {
        for words in [&["serve", "--check", address][..], &["check", address]] {
            let output = run_alone(scratch.path(), words);
            assert_eq!(output.status.code(), Some(2), "{}", text(&output));
            assert!(text(&output).contains(word), "{}", text(&output));
        }
    }
    let valid = run_alone(scratch.path(), &["serve", "--check", ADDRESS, "--listen", "127.0.0.1:0"]);
    assert!(valid.status.success(), "{}", text(&valid));
}
