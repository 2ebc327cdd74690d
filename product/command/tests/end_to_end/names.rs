//! When changes of names are durable, by looking in a copy of the disk as a power failure would leave it.

//! rule: a change of names is durable when its caller gets the reply; a sync is shared where the file system promises
//! that

use std::fs;

use crate::client::Client;
use crate::scratch::{Mount, Scratch};
use crate::server::Server;

/// Whether a client's new file is on the disk: after the reply to the client, and after a drain.
fn on_the_disk(flags: &[&str]) -> Option<[bool; 2]> {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let image = scratch.path().join("image");
    let _mount = Mount::ext4(&image, &data, 64 << 20)?;
    let server = Server::start(scratch.path(), &[&data], flags);
    let told = server.ready["notes"].to_string().contains("--async-metadata");
    assert_eq!(told, !flags.is_empty(), "{}", server.ready);
    let mut client = Client::mount(&server);
    let root = client.root();
    client.create(&root, "made");
    let is_there = |number: u32| {
        let (copy, there) = (scratch.path().join(format!("copy-{number}")), scratch.directory(&number.to_string()));
        fs::copy(&image, &copy).unwrap();
        let _mount = Mount::of(&copy, &there)?;
        Some(there.join("made").exists())
    };
    let when_told = is_there(0)?;
    assert!(server.ask(&["drain"]).status.success());
    let after_a_drain = is_there(1)?;
    server.stop();
    Some([when_told, after_a_drain])
}

#[test]
fn a_name_is_durable_when_its_client_is_told() {
    if let Some(found) = on_the_disk(&[]) {
        assert_eq!(found, [true, true]);
    }
}

#[test]
fn with_async_metadata_a_name_is_durable_after_a_drain() {
    if let Some(found) = on_the_disk(&["--async-metadata"]) {
        assert_eq!(found, [false, true]);
    }
}
