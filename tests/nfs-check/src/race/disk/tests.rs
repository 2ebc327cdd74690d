use super::*;

const BEFORE: &str = "           CPU0       CPU1
 36:          0   10849583 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 41:      23173          0 PCI-MSIX-0000:00:04.0   1-edge      virtio3-rx
LOC:   30242828   23809035   Local timer interrupts
";

fn after(disk: u64, network: u64) -> String {
    let text = BEFORE.replace("10849583", &(10_849_583 + disk).to_string());
    text.replace("23173", &(23_173 + network).to_string()).replace("30242828", "39999999")
}

#[test]
fn the_device_that_synced_writes_raise_is_found_with_its_cpu() {
    let found = |disk, network| most_raised(BEFORE, &after(disk, network));
    let disk = DiskInterrupts { name: "virtio1-req.0".to_owned(), cpu: 1 };
    assert_eq!(found(WRITES, 10), Some(disk));
    assert_eq!(found(WRITES, 2 * WRITES).unwrap().cpu, 0);
    assert_eq!(found(3, 1), None, "a timer's interrupts are no disk's");
}

#[test]
fn the_file_system_has_its_name() {
    assert_eq!(file_system(Path::new("/proc/self")).unwrap(), "proc");
}
