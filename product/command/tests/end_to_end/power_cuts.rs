//! A served disk loses its power, and committed bytes are there afterwards.
//!
//! The disk is our own (`afflux-disk`) below a real ext4. The control is a disk that ignores flushes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use afflux_disk::{Disk, DiskOptions, Ext4};

use crate::client::Client;
use crate::scratch::{Bytes, LOOP_DEVICES, Scratch};
use crate::server::Server;

const CUTS: u64 = 6;
const DISK_BYTES: u64 = 96 << 20;
const FILES: u64 = 24;
const FILE_BYTES: usize = 150_000;

/// The committed contents of each file, by name. After them, other bytes may have been written to half of the files.
type Committed = BTreeMap<String, (Vec<u8>, Option<Vec<u8>>)>;

/// A disk for the tests; none, with a message, if this machine cannot have one.
fn disk(scratch: &Scratch, point: &Path, options: DiskOptions) -> Option<(Disk, Ext4)> {
    let _alone = LOOP_DEVICES.write();
    let made = Disk::new(scratch.path(), options).and_then(|disk| Ext4::format(&disk, point).map(|ext4| (disk, ext4)));
    made.map_err(|error| afflux_scratch::skipped!("no disk: {error}")).ok()
}

/// Writes and commits files through the server. Then writes to each second one again, and makes more files, without a
/// COMMIT.
fn load(client: &mut Client, round: u64, committed: &mut Committed) {
    let root = client.root();
    let directory = client.make_directory(&root, &format!("round-{round}"));
    for number in 0..FILES {
        let name = format!("round-{round}/file-{number}");
        let bytes = Bytes::new(round * 1000 + number).vec(FILE_BYTES);
        client.write_file(&directory, &format!("file-{number}"), &bytes);
        committed.insert(name, (bytes, None));
    }
    for number in (0..FILES).step_by(2) {
        let name = format!("round-{round}/file-{number}");
        let later = Bytes::new(round * 1000 + 500 + number).vec(FILE_BYTES);
        let file = client.lookup(&directory, &format!("file-{number}"));
        client.try_write_at(&file, 0, &later).unwrap();
        committed.get_mut(&name).unwrap().1 = Some(later);
        client.write_file_uncommitted(&directory, &format!("loose-{number}"), &[7; FILE_BYTES]);
    }
}

/// The first file whose committed bytes are not on the disk, with the offset.
fn lost(tree: &Path, committed: &Committed) -> Option<String> {
    committed.iter().find_map(|(name, (bytes, later))| {
        let found = match fs::read(tree.join(name)) {
            Ok(found) => found,
            Err(error) => return Some(format!("{name}: {error}")),
        };
        if found.len() != bytes.len() {
            return Some(format!("{name} has {} bytes", found.len()));
        }
        // A later write may have reached the disk, sector by sector.
        let differs = |at: &usize| {
            let is = |wanted: &[u8]| found[*at..].iter().take(512).eq(wanted[*at..].iter().take(512));
            !is(bytes) && !later.as_deref().is_some_and(is)
        };
        (0..bytes.len()).step_by(512).find(differs).map(|at| format!("{name} has other bytes at {at}"))
    })
}

/// Cuts the power again and again while a server serves the disk. The first loss, if there is one.
fn first_loss(options: DiskOptions) -> Option<Result<(), String>> {
    let scratch = Scratch::new();
    let (home, point) = (scratch.directory("home"), scratch.directory("disk"));
    let (mut disk, mut ext4) = disk(&scratch, &point, options)?;
    for round in 0..CUTS {
        let mut committed = Committed::new();
        let server = Server::start(&home, &[&point], &["--cache", "64MiB"]);
        load(&mut Client::mount(&server), round, &mut committed);
        disk.cut_power(round).unwrap();
        server.kill();
        drop(ext4);
        let _alone = LOOP_DEVICES.write();
        disk.restart().unwrap();
        ext4 = match Ext4::mount(&disk, &point) {
            Ok(ext4) => ext4,
            Err(error) => return Some(Err(format!("round {round}: {error}"))),
        };
        if let Some(loss) = lost(&point, &committed) {
            return Some(Err(format!("round {round}: {loss}")));
        }
        fs::remove_dir_all(point.join(format!("round-{round}"))).unwrap();
    }
    Some(Ok(()))
}

#[test]
fn what_was_committed_survives_power_cuts_of_the_disk() {
    if let Some(ended) = first_loss(DiskOptions::new(DISK_BYTES)) {
        assert_eq!(ended, Ok(()));
    }
}

#[test]
fn a_disk_that_ignores_flushes_is_noticed() {
    if let Some(ended) = first_loss(DiskOptions { flushes: false, ..DiskOptions::new(DISK_BYTES) }) {
        assert!(ended.is_err(), "nothing was lost: the test before proves nothing");
    }
}
