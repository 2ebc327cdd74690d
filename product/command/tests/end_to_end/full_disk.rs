//! A disk that fills.

use std::fs;
use std::path::Path;

use crate::client::Client;
use crate::scratch::{Bytes, Mount, Scratch};
use crate::server::{LAZY, Server};

/// NFS3ERR_NOSPC.
const NO_SPACE: u32 = 28;

/// Fills the file system at `data`, which has free space for about 8 MiB.
fn fill(scratch: &Scratch, data: &Path) {
    let server = Server::start(scratch.path(), &[data], &["--cache", "64MiB"]);
    let mut client = Client::mount(&server);
    let root = client.root();
    let kept = Bytes::new(1).vec(1 << 20);
    client.write_file(&root, "kept", &kept);

    // More than the free space: this file gets an error, at a WRITE or at the COMMIT.
    let big = client.create(&root, "big");
    let mut told = None;
    for at in 0..16u64 {
        if let Err(status) = client.try_write_at(&big, at << 20, &Bytes::new(at).vec(1 << 20)) {
            told = Some(status);
            break;
        }
    }
    let told = told.or_else(|| client.try_commit(&big).err());
    assert_eq!(told, Some(NO_SPACE));

    // Other files are untouched, and the service goes on once there is free space.
    assert!(client.read_file(&root, "kept") == kept);
    client.remove(&root, "big");
    let after = Bytes::new(3).vec(1 << 20);
    client.write_file(&root, "after", &after);
    assert!(client.read_file(&root, "after") == after);
    let stat = server.stat();
    assert_eq!(stat["devices"][0]["files_failed"], 0, "{stat}");
    server.stop();
    assert!(fs::read(data.join("kept")).unwrap() == kept);
    assert!(fs::read(data.join("after")).unwrap() == after);
}

#[test]
fn a_full_tmpfs_is_told_to_the_right_file_and_the_rest_goes_on() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let Some(_mount) = Mount::tmpfs(&data, 8 << 20) else { return };
    fill(&scratch, &data);
}

#[test]
fn a_full_ext4_is_told_to_the_right_file_and_the_rest_goes_on() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let Some(_mount) = Mount::ext4(&scratch.path().join("image"), &data, 12 << 20) else { return };
    fill(&scratch, &data);
}

#[test]
fn what_cannot_be_written_at_the_end_is_named_with_the_reason() {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let Some(_mount) = Mount::tmpfs(&data, 8 << 20) else { return };
    let server = Server::start(scratch.path(), &[&data], &[&LAZY[..], &["--set", "reserve_below_bytes=0"]].concat());
    let mut client = Client::mount(&server);
    let root = client.root();
    let doomed = client.create(&root, "doomed");
    for at in 0..4u64 {
        client.try_write_at(&doomed, at << 20, &Bytes::new(at).vec(1 << 20)).unwrap();
    }
    // Another program takes the free space.
    let _ = fs::write(data.join("other"), vec![1; 8 << 20]);
    let output = server.ask(&["drain"]);
    let said = crate::server::text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("doomed") && said.contains("no space left"), "{said}");
    server.signal(rustix::process::Signal::TERM);
    let ended = server.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("doomed") && ended.stderr.contains("no space left"), "{ended:?}");
}
