use super::{DeviceArgument, choice, wanted};

fn of(texts: &[&str]) -> Result<Vec<DeviceArgument>, String> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    wanted(&texts).map_err(|failure| failure.to_string())
}

fn on(directory: Option<&str>, model: &str) -> DeviceArgument {
    DeviceArgument { directory: directory.map(str::to_owned), model: model.to_owned() }
}

#[test]
fn the_disk_for_everything_else_comes_first() {
    let found = of(&["/var/log/=usb2-disk", "nvme-ssd", "/=sd-card"]).unwrap();
    assert_eq!(found, [on(None, "nvme-ssd"), on(Some("/var/log"), "usb2-disk"), on(Some("/"), "sd-card")]);
}

#[test]
fn numbers_may_be_changed_behind_commas() {
    let found = of(&["usb2-disk,heads=2", "/srv=throttled,read_bytes_per_second=5MB,latency_ns=1"]).unwrap();
    let throttled = on(Some("/srv"), "throttled,read_bytes_per_second=5MB,latency_ns=1");
    assert_eq!(found, [on(None, "usb2-disk,heads=2"), throttled]);
}

#[test]
fn a_disk_that_is_not_there_is_named_with_those_that_are() {
    let said = |text: &str| choice(None, text).map(drop).unwrap_err().to_string();
    assert!(said("floppy").contains("floppy: no such device; there are disk, "), "{}", said("floppy"));
    assert!(said("./floppy.toml").contains("./floppy.toml cannot be read: No such file"), "{}", said("./floppy.toml"));
    assert!(said("usb2-disk,heads=many").contains("heads"), "{}", said("usb2-disk,heads=many"));
    assert!(said("usb2-disk,heads").contains("KEY=VALUE"), "{}", said("usb2-disk,heads"));
}

#[test]
fn what_makes_no_sense_is_named() {
    for (texts, part) in [
        (vec!["a", "b"], "'b' is a second disk for everything; use DIR=b"),
        (vec!["/d=a", "/d/=b"], "/d is on two disks"),
        (vec!["/d="], "'/d=' names no disk"),
        (vec!["=a"], "'=a' names no directory"),
        (vec![""], "'' names no disk"),
    ] {
        let said = of(&texts).unwrap_err();
        assert!(said.contains(part) && said.starts_with("--device: "), "{texts:?}: {said}");
    }
}
