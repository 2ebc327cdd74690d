//! A writer is killed or frozen again and again; each successor finds every acknowledged byte. A frozen writer wakes up
//! beside its successor. It acknowledges only the bytes that the successor found.

use std::collections::BTreeMap;

use afflux_object::{ObjectVolumeError, RecordsError};
use bytes::Bytes;

use crate::child::{Process, say, work};
use crate::volume::volume;
use crate::{open, scratch, url, wait};

const FILES: u64 = 3;
/// The variable for longer runs.
const ROUNDS: &str = "AFFLUX_KILL_ROUNDS";

/// Rounds of a volume in a directory.
const ROUNDS_OF_A_VOLUME: u64 = 500;

/// The files' newest versions by number.
type Files = BTreeMap<u64, Known>;

/// The newest acknowledged and the newest written version of a file.
#[derive(Clone, Copy, Default)]
struct Known {
    acknowledged: u64,
    written: u64,
}

// rule: A killed writer loses no acknowledged byte.
#[test]
fn a_killed_writer_loses_no_acknowledged_byte() {
    lanes(200);
}

#[test]
#[ignore = "runs for minutes; AFFLUX_KILL_ROUNDS sets the number of kills"]
fn a_writer_that_is_killed_very_often_loses_no_acknowledged_byte() {
    lanes(wanted(2_000));
}

/// The number of rounds that the user asked for.
pub(crate) fn wanted(usual: u64) -> u64 {
    std::env::var(ROUNDS).map_or(usual, |rounds| rounds.parse().unwrap())
}

/// Two volumes at a time, since one mostly waits for its disk. An opening lists all logs and manifests of the last day
/// in a directory, so that a volume of thousands of openings is slow; then comes a new one.
fn lanes(kills: u64) {
    let lane = || {
        let mut left = kills / 2;
        while left > 0 {
            let (scratch, now) = (scratch(), left.min(ROUNDS_OF_A_VOLUME));
            rounds(&url(&scratch), &[], now);
            left -= now;
        }
    };
    std::thread::scope(|threads| [threads.spawn(lane), threads.spawn(lane)].map(|lane| lane.join().unwrap()));
}

/// The words of a volume's writers.
struct Heard {
    known: Files,
    commits: u64,
    openings: u64,
}

/// A frozen writer, and the versions that its successor found.
struct Zombie {
    child: Process,
    found: Option<Files>,
}

/// Kills writers of a volume. They get these variables. Each eighth writer is frozen instead, unless the store is a
/// directory, which has one process.
pub(crate) fn rounds(url: &str, variables: &[(&str, &str)], rounds: u64) {
    let known = (1..=FILES).map(|ino| (ino, Known::default())).collect();
    let mut heard = Heard { known, commits: 0, openings: 0 };
    let (mut zombie, mut zombies): (Option<Zombie>, u64) = (None, 0);
    for round in 0..rounds {
        let mut child = Process::start("kills::writer", url, variables);
        // Every eighth writer dies while it opens the volume, the others some commits later.
        let lines_max = if round % 8 == 7 { round / 8 % 3 } else { FILES + 2 * (round * 5 % 8) };
        for at in 0..lines_max {
            let line = child.hear().unwrap_or_else(|| panic!("round {round}: the writer ended by itself"));
            heard.line(round, &line);
            if let Some(zombie) = zombie.as_mut().filter(|_| at + 1 == FILES) {
                zombie.found = Some(heard.known.clone());
            }
        }
        if let Some(Zombie { child, found: Some(found) }) = zombie.take() {
            wake(round, child, &found);
            zombies += 1;
        }
        if round % 8 == 2 && !url.starts_with("file:") {
            child.freeze();
            while let Some(line) = child.hear_said() {
                heard.line(round, &line);
            }
            zombie = Some(Zombie { child, found: None });
            continue;
        }
        child.kill();
        // Lines that were said before the kill count, too.
        while let Some(line) = child.hear() {
            heard.line(round, &line);
        }
    }
    let Heard { commits, openings, .. } = heard;
    println!("{rounds} writers, {zombies} of them zombies, {openings} files read, {commits} commits");
    assert!(commits >= rounds && openings >= rounds);
    assert!(url.starts_with("file:") || zombies >= rounds / 8);
}

/// Wakes a frozen writer beside its successor. It may acknowledge bytes that the successor found.
fn wake(round: u64, mut child: Process, found: &Files) {
    child.thaw();
    while let Some(line) = child.hear() {
        let (kind, ino, version) = parsed(round, &line);
        let durable = found[&ino].acknowledged;
        assert!(
            kind != "committed" || version <= durable,
            "round {round}: a zombie commits version {version} of file {ino}, and its successor found {durable}"
        );
    }
}

fn parsed(round: u64, line: &str) -> (&str, u64, u64) {
    let words: Vec<&str> = line.split(' ').collect();
    let [kind, ino, version] = words[..] else { panic!("round {round}: the writer says {line}") };
    (kind, ino.parse().unwrap(), version.parse().unwrap())
}

impl Heard {
    fn line(&mut self, round: u64, line: &str) {
        let (kind, ino, version) = parsed(round, line);
        let file = self.known.get_mut(&ino).unwrap();
        match kind {
            "found" => {
                let allowed = file.acknowledged..=file.written;
                assert!(
                    allowed.contains(&version),
                    "round {round}: file {ino} has version {version} instead of {allowed:?}"
                );
                *file = Known { acknowledged: version, written: version };
                self.openings += 1;
            }
            "writes" => file.written = version,
            "committed" => {
                file.acknowledged = version;
                self.commits += 1;
            }
            _ => panic!("round {round}: {line}"),
        }
    }
}

/// The child: opens the volume, prints the versions of its files, and writes until it is killed.
#[test]
fn writer() {
    let Some(url) = work() else { return };
    let store = open(&url).unwrap();
    store.serve();
    let volume = volume(&store, 1);
    let mut versions = BTreeMap::new();
    for ino in 1..=FILES {
        let header = wait(volume.read(ino, 0, 8)).unwrap();
        let version = u64::from_be_bytes(header.try_into().unwrap());
        let expected = contents(ino, version);
        let found = wait(volume.read(ino, 0, expected.len() as u64)).unwrap();
        assert!(found == expected, "file {ino} is not version {version}");
        versions.insert(ino, version);
        say(&format!("found {ino} {version}"));
    }
    for turn in 0_u64.. {
        let ino = 1 + turn % FILES;
        let version = versions[&ino] + 1;
        versions.insert(ino, version);
        say(&format!("writes {ino} {version}"));
        volume.write(ino, 0, contents(ino, version)).unwrap();
        match wait(volume.commit(ino)) {
            Ok(()) => (),
            // Another writer has the volume: this one is a zombie.
            Err(ObjectVolumeError::Records(RecordsError::Fenced)) => return,
            Err(error) => panic!("{error}"),
        }
        say(&format!("committed {ino} {version}"));
    }
}

/// The bytes of a version. The first file travels in batches, the others in segments. Version 0 is an empty file.
fn contents(ino: u64, version: u64) -> Bytes {
    let length = [8_000, 70_000, 200_000][ino as usize - 1];
    let mut bytes = vec![0; length];
    if version > 0 {
        bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&version.to_be_bytes()[..chunk.len()]));
    }
    bytes.into()
}
