//! The example store, killed again and again: no synced record is lost, no deleted one comes back, and none is torn.
//!
//! The child is this test's own program, controlled by its environment. It puts, deletes and compacts by a rule that
//! depends on the step's number, and syncs now and then. Its output reports up to which step all is synced. The parent
//! kills it at some moment and opens the store. The contents must be the state after some step, no earlier than the
//! last synced one.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, unreachable_pub, reason = "a test")]

#[path = "../examples/store/log.rs"]
mod log;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use afflux::Cache;
use log::Store;

const CHILD: &str = "AFFLUX_KILLS_CHILD";
const KEYS: u64 = 37;

fn mixed(step: u64) -> u64 {
    let mixed = (step + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 17
}

fn key(step: u64) -> Vec<u8> {
    format!("key-{}", mixed(step) % KEYS).into_bytes()
}

/// The value that a step gives its key; none if it deletes the key.
fn value(step: u64) -> Option<Vec<u8>> {
    let mixed = mixed(step) / KEYS;
    let len = 8 + mixed / 8 % if mixed % 16 == 1 { 60_000 } else { 500 };
    (!mixed.is_multiple_of(8)).then(|| step.to_le_bytes().into_iter().cycle().take(len as usize).collect())
}

type KeyValues = BTreeMap<Vec<u8>, Vec<u8>>;

fn apply(state: &mut KeyValues, step: u64) {
    match value(step) {
        Some(value) => drop(state.insert(key(step), value)),
        None => drop(state.remove(&key(step))),
    }
}

fn state_of(store: &Store) -> KeyValues {
    store.keys().map(|key| (key.to_vec(), store.get(key).unwrap().unwrap())).collect()
}

fn cache() -> Cache {
    Cache::builder().memory(2 << 20).build().unwrap()
}

/// Continues from `step` until it is killed.
#[test]
fn child() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let (step, directory) = told.split_once(' ').unwrap();
    let cache = cache();
    let mut store = Store::open(&cache, Path::new(directory)).unwrap();
    for step in step.parse::<u64>().unwrap().. {
        match value(step) {
            Some(value) => store.put(&key(step), &value).unwrap(),
            None => store.delete(&key(step)).unwrap(),
        }
        if step % 500 == 499 {
            store.compact().unwrap();
        }
        if mixed(step).is_multiple_of(5) || step % 500 == 499 {
            store.sync().unwrap();
            // One write, so that a line is whole or missing.
            std::io::stderr().write_all(format!("synced {}\n", step + 1).as_bytes()).unwrap();
        }
    }
}

/// Lets a child continue from `step` and kills it. Returns the last step that it reported as synced.
fn run_and_kill(directory: &Path, step: u64, lines_max: u64, pause: Duration) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, format!("{step} {}", directory.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut synced = step;
    let mut heard = 0;
    let mut hear = |line: String| {
        if let Some(step) = line.strip_prefix("synced ").and_then(|step| step.parse().ok()) {
            synced = step;
            heard += 1;
        }
        heard
    };
    for line in lines.by_ref() {
        if hear(line.unwrap()) >= lines_max {
            break;
        }
    }
    std::thread::sleep(pause);
    child.kill().unwrap();
    assert!(child.wait().unwrap().code().is_none(), "it ended by itself");
    for line in lines.map_while(Result::ok) {
        hear(line);
    }
    synced
}

fn kill_again_and_again(times: u64) {
    let place = tempfile::tempdir().unwrap();
    let (mut step, mut state) = (0, KeyValues::new());
    for kill in 0..times {
        let pause = Duration::from_micros(mixed(kill) % 3_000);
        let synced = run_and_kill(place.path(), step, 1 + mixed(kill) / 3_000 % 40, pause);
        let cache = cache();
        let store = Store::open(&cache, place.path()).unwrap();
        let found = state_of(&store);
        for done in step..synced {
            apply(&mut state, done);
        }
        step = synced;
        // Steps after the last sync may be there, up to some step.
        let limit = synced + 10_000;
        while state != found {
            assert!(step < limit, "kill {kill}: this is no state after step {synced} or a later one");
            apply(&mut state, step);
            step += 1;
        }
        drop(store);
        cache.close().unwrap();
        if kill % 100 == 99 {
            println!("{} kills, {step} steps", kill + 1);
        }
    }
    assert!(step > times, "{step} steps: the children did nothing");
}

#[test]
fn twenty_kills_lose_nothing_that_was_synced() {
    kill_again_and_again(20);
}

#[test]
#[ignore = "takes some minutes"]
fn a_thousand_kills_lose_nothing_that_was_synced() {
    kill_again_and_again(1_000);
}
