//! Random operations against a model, on the real server: undisturbed, stopped now and then, and killed again and
//! again.

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use afflux_nfs_check::random::{Exercise, Plan, drive, load};
use rustix::process::Signal;

use crate::client::{Client, Handle};
use crate::scratch::{Bytes, Scratch};
use crate::server::Server;

pub(crate) fn address(server: &Server) -> SocketAddr {
    ([127, 0, 0, 1], server.port()).into()
}

/// Makes `operations` operations and loses connections in between. If `stopped`, the server is stopped now and then.
fn exercise(seed: u64, operations: u64, stopped: bool) {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let server = Server::start(scratch.path(), &[&data], &["--cache", "16MiB"]);
    let root = Client::mount(&server).root();
    let plan = Plan { seed, operations, ..Plan::default() };
    let done = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            while stopped && !done.load(Ordering::Relaxed) {
                server.freeze();
                thread::sleep(Duration::from_millis(30));
                server.signal(Signal::CONT);
                thread::sleep(Duration::from_millis(30));
            }
        });
        let outcome = drive(address(&server), &root, plan, 200);
        done.store(true, Ordering::Relaxed);
        outcome
    });
    let outcome = outcome.unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    assert!(outcome.operations >= operations && outcome.connections_lost > 0, "{outcome:?}");
    server.stop();
}

#[test]
fn random_operations_of_several_clients_are_answered_rightly() {
    exercise(1, 3_000, false);
}

#[test]
fn random_operations_are_answered_rightly_by_a_server_that_is_stopped_now_and_then() {
    exercise(2, 1_500, true);
}

#[test]
#[ignore = "a million operations: minutes"]
fn a_million_random_operations_are_answered_rightly() {
    for seed in 0..50 {
        exercise(1_000 + seed, 20_000, seed % 10 == 9);
    }
}

/// Kills the server after some answers to operations in the directory, which the sum of seed and round draws.
pub(crate) fn killed_under_load(server: Server, directory: &Handle, seed: u64, round: u64) -> Exercise {
    let plan = Plan { seed: seed + round, operations: u64::MAX, kills: true, ..Plan::default() };
    let mut exercise = Exercise::new(plan, directory);
    let answers = 40 + Bytes::new(round).number() % 400;
    let connections = load(&mut exercise, address(&server), answers);
    let connections = connections.unwrap_or_else(|fault| panic!("round {round}: {fault}"));
    server.kill();
    drop(connections);
    exercise
}

/// Fails if a verifier came twice, or if half of the rounds had none.
pub(crate) fn are_new(mut verifiers: Vec<[u8; 8]>, rounds: u64) {
    let killed = verifiers.len();
    verifiers.sort_unstable();
    verifiers.dedup();
    assert_eq!(verifiers.len(), killed, "a verifier came twice");
    assert!(killed as u64 * 2 > rounds, "{killed} of {rounds} rounds had a WRITE");
}

/// Kills the server under load, again and again. Committed data is on the disk, each byte is one that was written
/// there, and each server has a new verifier.
fn kills(rounds: u64) {
    let scratch = Scratch::new();
    let data = scratch.directory("data");
    let mut verifiers = Vec::new();
    for round in 0..rounds {
        let server = Server::start(scratch.path(), &[&data], &["--cache", "16MiB"]);
        let name = format!("round-{round}");
        let mut client = Client::mount(&server);
        let root = client.root();
        let directory = client.make_directory(&root, &name);
        let mut exercise = killed_under_load(server, &directory, 7_000, round);
        verifiers.extend(exercise.verifier());
        let checked = exercise.killed(|file| fs::read(data.join(&name).join(file)).ok());
        checked.unwrap_or_else(|fault| panic!("round {round}: {fault}"));
        fs::remove_dir_all(data.join(&name)).unwrap();
    }
    are_new(verifiers, rounds);
}

#[test]
fn a_server_that_is_killed_under_load_has_kept_what_was_committed() {
    kills(4);
}

#[test]
#[ignore = "a thousand kills: minutes"]
fn a_server_that_is_killed_a_thousand_times_has_kept_what_was_committed() {
    kills(1_000);
}
