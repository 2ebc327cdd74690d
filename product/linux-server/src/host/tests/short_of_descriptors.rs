//! A process that has no free descriptor for a moment.

use rustix::process::{Resource, getrlimit, setrlimit};

use super::*;

/// Set in the process whose descriptors run out.
const ALONE: &str = "AFFLUX_TEST_SHORT_OF_DESCRIPTORS";
const TEST: &str = "host::tests::short_of_descriptors::a_file_that_is_looked_for_meanwhile_lives";

/// Far more descriptors than a lookup needs.
const TRIES: u64 = 200;

fn open_descriptors() -> u64 {
    std::fs::read_dir("/proc/self/fd").unwrap().count() as u64
}

// rule: a file is never taken for gone while the server has too few descriptors to look
#[test]
fn a_file_that_is_looked_for_meanwhile_lives() {
    if std::env::var_os(ALONE).is_none() {
        // The limit is the process's, and other tests run in this one.
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env(ALONE, "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let world = World::with(HostOptions { by_handle: false, ..HostOptions::default() });
    let directory = world.make_directory(&world.make_directory(&world.root(), "one"), "two");
    let handle = world.handle(&world.create(&directory, "file"));
    drop(directory);
    let (mut refused, mut spare) = (0, 0);
    let mut world = world.restarted();
    for _ in 0..TRIES {
        let limit = getrlimit(Resource::Nofile);
        let short = Some(open_descriptors() - 1 + spare);
        setrlimit(Resource::Nofile, rustix::process::Rlimit { current: short, ..limit }).unwrap();
        let found = world.resolve(&handle);
        setrlimit(Resource::Nofile, limit).unwrap();
        match found {
            Ok(_) if refused > 1 => return,
            // A thread of the earlier server has closed a descriptor since they were counted.
            Ok(_) => (refused, spare) = (0, 0),
            Err(error) => {
                assert_eq!(error, VolumeError::NoDescriptor, "with {spare} descriptors");
                (refused, spare) = (refused + 1, spare + 1);
                assert_eq!(world.handle(&world.resolve(&handle).unwrap()), handle);
            }
        }
        world = world.restarted();
    }
    panic!("in {TRIES} tries the server was never short of descriptors for two looks");
}
