use super::{Wanted, wanted};

fn of(texts: &[&str]) -> Result<Vec<Wanted>, String> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    wanted(&texts).map_err(|failure| failure.to_string())
}

fn on(directory: Option<&str>, model: &str) -> Wanted {
    Wanted { directory: directory.map(str::to_owned), model: model.to_owned() }
}

#[test]
fn the_disk_for_everything_else_comes_first() {
    let found = of(&["/var/log/=usb2-disk", "nvme-ssd", "/=sd-card"]).unwrap();
    assert_eq!(found, [on(None, "nvme-ssd"), on(Some("/var/log"), "usb2-disk"), on(Some("/"), "sd-card")]);
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
