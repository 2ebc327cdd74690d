//! A volume in an object store, served: in a directory as the store.

//! rule: a server of a volume in a store that is killed loses nothing that was committed
//! kept in: `product/object/src/commit.rs`, `product/command/src/serve/stores/store_volume.rs`

use std::path::{Path, PathBuf};

use afflux_nfs_check::random::{Plan, drive};

use crate::client::Client;
use crate::random_operations::{address, are_new, killed_under_load};
use crate::scratch::{Bytes, Scratch};
use crate::server::{Server, run, text};

/// The address of a store in a new directory.
fn store(scratch: &Scratch) -> PathBuf {
    PathBuf::from(format!("file://{}", scratch.path().join("store").display()))
}

fn serve(scratch: &Scratch, store: &Path) -> Server {
    Server::start(scratch.path(), &[store], &["--cache", "16MiB"])
}

#[test]
fn a_volume_in_a_store_outlives_its_server_with_its_handles_and_its_verifier() {
    let scratch = Scratch::new();
    let store = store(&scratch);
    let server = serve(&scratch, &store);
    let mut client = Client::mount(&server);
    let (root, bytes) = (client.root(), Bytes::new(1).vec(20 << 20));
    let directory = client.make_directory(&root, "d");
    let file = client.write_file(&directory, "large", &bytes);
    (0..100_u8).for_each(|at| drop(client.write_file(&directory, &format!("small {at}"), &[at; 3_000])));
    let verifier = client.verifier();
    server.stop();
    let server = serve(&scratch, &store);
    let mut client = Client::mount(&server);
    assert_eq!((client.root(), client.read_at(&file, 7 << 20, 60_000)), (root, bytes[7 << 20..][..60_000].to_vec()));
    assert_eq!(client.read_file(&directory, "large"), bytes);
    assert_eq!(client.read_file(&directory, "small 99"), [99; 3_000]);
    assert_eq!(client.list(&directory).len(), 101);
    client.write_file(&directory, "more", b"more");
    assert_eq!(client.verifier(), verifier, "everything had been written");
    server.stop();
}

#[test]
fn random_operations_on_a_volume_in_a_store_are_answered_rightly() {
    let scratch = Scratch::new();
    let server = serve(&scratch, &store(&scratch));
    let root = Client::mount(&server).root();
    let outcome = drive(address(&server), &root, Plan { seed: 3, operations: 2_000, ..Plan::default() }, 200);
    let outcome = outcome.unwrap_or_else(|fault| panic!("{fault}"));
    assert!(outcome.operations >= 2_000, "{outcome:?}");
    server.stop();
}

/// Kills the server under load, again and again, and reads the files through the next one.
fn kills(rounds: u64) {
    let scratch = Scratch::new();
    let store = store(&scratch);
    let mut server = serve(&scratch, &store);
    let mut verifiers = Vec::new();
    for round in 0..rounds {
        let mut client = Client::mount(&server);
        let directory = client.make_directory(&client.root(), &format!("round-{round}"));
        let mut exercise = killed_under_load(server, &directory, 9_000, round);
        verifiers.extend(exercise.verifier());
        server = serve(&scratch, &store);
        let mut client = Client::mount(&server);
        let names = client.list(&directory);
        let read = |name: &str| names.iter().any(|there| there == name).then(|| client.read_file(&directory, name));
        exercise.killed(read).unwrap_or_else(|fault| panic!("round {round}: {fault}"));
    }
    server.stop();
    are_new(verifiers, rounds);
}

#[test]
fn a_server_of_a_store_that_is_killed_under_load_has_kept_what_was_committed() {
    kills(6);
}

#[test]
#[ignore = "a thousand kills: minutes"]
fn a_server_of_a_store_that_is_killed_a_thousand_times_has_kept_what_was_committed() {
    kills(1_000);
}

#[test]
fn a_store_is_served_alone_and_by_one_process() {
    let scratch = Scratch::new();
    let store = store(&scratch);
    let (address, directory) = (store.to_str().unwrap(), scratch.directory("d"));
    let said = text(&run(scratch.path(), &["serve", address, directory.to_str().unwrap()]));
    assert!(said.contains("is served alone"), "{said}");
    let said = text(&run(scratch.path(), &["serve", "--listen", "127.0.0.1:0", "s3://"]));
    assert!(said.contains("is no address of a store"), "{said}");
    let server = serve(&scratch, &store);
    let said = text(&run(scratch.path(), &["serve", "--listen", "127.0.0.1:0", address]));
    assert!(said.contains("in use by another process"), "{said}");
    server.stop();
}
