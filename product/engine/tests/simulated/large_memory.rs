//! Machines with much memory cost no more than what is done on them.

use afflux_simulator::{DiskOptions, Memory, Setup, SimMachine, World, WorldOptions};

/// Bytes of memory that this process has.
fn resident_bytes() -> u64 {
    let told = std::fs::read_to_string("/proc/self/statm").unwrap();
    told.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn a_machine_of_256_gib_on_which_nothing_was_done_takes_little_memory() {
    let before = resident_bytes();
    let world = World::new(WorldOptions::seed(1));
    let memory = Memory::Stamped(256 << 30);
    let machine = SimMachine::with_disks(&world, memory, Setup::default(), &[DiskOptions::default()]).unwrap();
    let more = resident_bytes().saturating_sub(before);
    assert_eq!(machine.engine.status().cache_bytes, 256 << 30);
    // Its tables have 52 bytes a frame, which is 3.3 GiB.
    assert!(more < 512 << 20, "{} MiB", more >> 20);
}
