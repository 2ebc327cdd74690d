//! Files on which a program of the host has a lease: only requests for such a file are held up.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::sync::mpsc;

use futures_util::future::join_all;

use super::*;

/// More files than the pool of a device has threads.
const FILES: usize = 17;

/// Sets the signal that asks for a lease (`linux/fcntl.h`).
const F_SETSIG: i32 = 10;

/// A lease on a file, given up when dropped.
struct Lease(File);

impl Lease {
    /// Takes a lease for writing, which every open breaks, or one for reading, which an open for writing breaks.
    fn take(world: &World, name: &str, kind: i32) -> Self {
        let file = OpenOptions::new().read(true).write(kind == libc::F_WRLCK).open(world.host(name)).unwrap();
        // SAFETY: only numbers are passed. The signal that asks for the lease does nothing by itself.
        let taken = unsafe {
            libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG) == 0
                && libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) == 0
        };
        assert!(taken, "{name}: {}", std::io::Error::last_os_error());
        Self(file)
    }

    /// Whether another process wants the file.
    fn is_asked_for(&self, kind: i32) -> bool {
        // SAFETY: only numbers are passed.
        unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_GETLEASE) != kind }
    }
}

fn inodes(world: &World) -> Vec<Object> {
    let root = world.root();
    (0..FILES)
        .map(|at| {
            let name = format!("leased {at}");
            std::fs::write(world.host(&name), b"bytes").unwrap();
            world.lookup(&root, &name).unwrap().0
        })
        .collect()
}

#[test]
fn leased_files_hold_up_nobody_but_their_own_callers() {
    let world = World::new();
    let files = inodes(&world);
    let leases: Vec<_> = (0..FILES).map(|at| Lease::take(&world, &format!("leased {at}"), libc::F_WRLCK)).collect();
    let (world, files) = (&world, &files);
    let read = |file| world.volume.read(file, 0, 10);
    let reads = world.run(join_all(files.iter().map(read)));
    assert!(reads.iter().all(|read| matches!(read, Err(VolumeError::Leased))), "each is told to come back");
    let writes = world.run(join_all(files.iter().map(|file| world.volume.write(file, 0, Bytes::from_static(b"new")))));
    assert!(writes.iter().all(|write| write.result == Err(VolumeError::Leased)));
    // Calls that do not open the file go on.
    assert_eq!(world.attributes(&files[0]).size, 5);
    let change = AttributeChange { mode: Some(0o600), ..AttributeChange::default() };
    world.set(&files[0], change).result.unwrap();
    world.create(&world.root(), "another");
    drop(leases);
    let reads = world.run(join_all(files.iter().map(read)));
    assert!(reads.iter().all(|read| bytes_of(&read.as_ref().unwrap().bytes) == b"bytes"));
}

#[test]
fn a_program_that_gives_up_its_lease_is_waited_for() {
    let world = World::new();
    let files = inodes(&world);
    let lease = Lease::take(&world, "leased 0", libc::F_WRLCK);
    let (told, heard) = mpsc::channel();
    let program = std::thread::spawn(move || {
        while !lease.is_asked_for(libc::F_WRLCK) {
            std::thread::yield_now();
        }
        drop(lease);
        told.send(()).unwrap();
    });
    assert_eq!(world.read(&files[0], 0, 10).0, b"bytes");
    heard.recv().unwrap();
    program.join().unwrap();
}

#[test]
fn what_can_be_written_is_written_whatever_leases_are_wanted() {
    let world = World::new();
    let file = &inodes(&world)[0];
    assert_eq!(world.read(file, 0, 10).0, b"bytes");
    // The server has it open for reading, so a program may take a read lease, which a writer breaks.
    let lease = Lease::take(&world, "leased 0", libc::F_RDLCK);
    let refused = world.write(file, 0, b"new");
    assert_eq!(refused.result, Err(VolumeError::Leased));
    drop(lease);
    world.write(file, 0, &[7; 5000]).result.unwrap();
    let reader = File::open(world.host("leased 0")).unwrap();
    // SAFETY: only numbers are passed.
    let taken = unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) };
    assert_eq!(taken, -1, "nobody has a lease on what is to be written back");
    world.sync(file);
    assert!(std::fs::read(world.host("leased 0")).unwrap() == [7; 5000]);
}
