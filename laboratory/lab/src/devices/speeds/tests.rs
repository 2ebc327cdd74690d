use afflux_simulator::catalogue;

use super::Speeds;

fn of(name: &str) -> Speeds {
    let all = catalogue::builtin().unwrap();
    Speeds::of(all.iter().find(|model| model.name == name).unwrap()).unwrap()
}

#[test]
fn streams_are_as_fast_as_the_files_say() {
    for (name, read, written) in
        [("usb2-disk", 24..=26, 24..=26), ("throttled", 23..=26, 23..=26), ("usb-stick", 20..=25, 9..=12)]
    {
        let speeds = of(name);
        let found = (speeds.bytes.0 / 1_000_000, speeds.bytes.1 / 1_000_000);
        assert!(read.contains(&found.0) && written.contains(&found.1), "{name}: {found:?} MB/s");
    }
}

#[test]
fn what_has_to_seek_is_slow_at_random_and_flash_is_not() {
    let (disk, flash) = (of("disk"), of("nvme-ssd"));
    assert!((50..1_000).contains(&disk.random.0), "{disk:?}");
    assert!(flash.random.0 > 50 * disk.random.0 && flash.random.1 > 50 * disk.random.1, "{flash:?} {disk:?}");
    // A write anywhere costs a stick a flash block.
    assert!(of("usb-stick").random.1 < 20, "{:?}", of("usb-stick"));
}

#[test]
fn the_same_model_has_the_same_figures() {
    assert_eq!(of("disk"), of("disk"));
}
