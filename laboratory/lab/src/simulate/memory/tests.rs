use afflux_simulator::DiskOptions;
use afflux_workloads::simulation::{DeviceChoice, Simulation};
use afflux_workloads::{Job, Workload};

use super::{bytes, long_preparation};

const GIB: u64 = 1 << 30;

/// A job that uses `size` bytes.
fn simulation(size: u64) -> Simulation {
    let mut simulation = Simulation::new(1, DeviceChoice::plain(DiskOptions::default()));
    simulation.workloads = vec![Workload::Job(Job { size, ..Job::named("a") })];
    simulation
}

fn refused(text: &str, size: u64, own_bytes: u64) -> String {
    bytes(text, &simulation(size), own_bytes).unwrap_err().to_string()
}

#[test]
fn sizes_are_read_within_their_range() {
    let simulation = simulation(GIB);
    let read = |text| bytes(text, &simulation, 100 * GIB).unwrap();
    assert_eq!((read("1MiB"), read("512MiB"), read(" 1TiB ")), (1 << 20, 512 << 20, 1 << 40));
    assert_eq!(read("1500001"), 1_499_136, "whole pages");
    for text in ["", "lots", "-1", "1e3", "12 parsecs"] {
        let said = refused(text, GIB, 100 * GIB);
        assert_eq!(
            said,
            format!("--memory: '{text}' is not a size such as 64KiB, 512MiB or 2GB (1.00 MiB to 1.00 TiB)")
        );
    }
    for text in ["0", "1023KiB", "1025GiB"] {
        let said = refused(text, GIB, 100 * GIB);
        assert_eq!(said, format!("--memory: '{text}' is out of range (1.00 MiB to 1.00 TiB)"));
    }
}

#[test]
fn what_the_tables_have_no_room_for_is_refused() {
    let said = refused("1TiB", GIB, 2 * GIB);
    let range = "is out of range (1.00 MiB to 156 GiB here)";
    assert!(said.starts_with(&format!("--memory: '1TiB' {range}: the simulation would need 13.0 GiB")), "{said}");
    assert!(said.ends_with("and there are 2.00 GiB"), "{said}");
    // Jobs that use much of the memory need larger tables.
    assert!(refused("100GiB", 1 << 40, 2 * GIB).contains("(1.00 MiB to 62.1 GiB here)"));
    assert!(bytes("100GiB", &simulation(GIB), 2 * GIB).is_ok());
}

#[test]
fn a_preparation_that_takes_long_is_announced() {
    let with = |memory_bytes| long_preparation(&Simulation { memory_bytes, ..simulation(GIB) });
    assert_eq!(with(16 * GIB), None);
    let said = with(1024 * GIB).unwrap();
    assert!(said.starts_with("preparing 1.00 TiB of simulated memory") && said.contains("13.0 GiB here"), "{said}");
}
