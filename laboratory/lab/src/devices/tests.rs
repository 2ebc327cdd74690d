use afflux_report::terminal::Terminal;
use afflux_simulator::catalogue;

use super::{chosen, detail, object, overview};

#[test]
fn every_disk_is_a_line_with_its_speeds_its_cache_and_its_flush() {
    let all = catalogue::builtin().unwrap();
    let text = overview(&all.iter().collect::<Vec<_>>(), Terminal::PLAIN).unwrap();
    for model in &all {
        let line = text.lines().find(|line| line.trim_start().starts_with(&format!("{} ", model.name))).unwrap();
        assert!(line.ends_with(&model.about), "{line}");
    }
    for title in ["sequential read", "write, MB/s", "random read", "write, IOPS", "cache", "flush"] {
        assert!(text.lines().next().unwrap().contains(title), "{title}: {text}");
    }
    for figures in ["32.0 MiB, volatile", "16.0 MiB, volatile", "100 µs"] {
        assert!(text.contains(figures), "{figures}: {text}");
    }
}

#[test]
fn a_disk_that_is_named_shows_every_source() {
    let all = catalogue::builtin().unwrap();
    for model in &all {
        let text = detail(model, Terminal::PLAIN);
        for parameter in &model.parameters {
            assert!(!parameter.source.is_empty(), "{}: {}", model.name, parameter.key.name);
            assert!(text.contains(&parameter.source), "{}: {}", model.name, parameter.key.name);
        }
    }
}

#[test]
fn json_has_all_of_it_on_one_line() {
    let all = catalogue::builtin().unwrap();
    for model in &all {
        let object = object(model);
        assert_eq!(object["name"], model.name.as_str());
        assert_eq!(object["parameters"].as_array().unwrap().len(), model.parameters.len());
        assert!(!object.to_string().contains('\n'));
    }
}

#[test]
fn a_name_or_a_file_is_looked_up_and_checked() {
    assert_eq!(chosen(&[]).unwrap().len(), catalogue::builtin().unwrap().len());
    let said = chosen(&["floppy".to_owned()]).unwrap_err().to_string();
    assert!(said.starts_with("floppy: no such device; there are disk, "), "{said}");
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "device").unwrap();
    let path = scratch.path().join("mine.toml");
    let read = |text: &str| {
        std::fs::write(&path, text).unwrap();
        chosen(&[path.to_str().unwrap().to_owned()]).map_err(|failure| failure.to_string())
    };
    let text = include_str!("../../../../devices/usb2-disk.toml");
    let [own] = &read(text).unwrap()[..] else { panic!("one file, one disk") };
    assert!(own.name.starts_with("mine"));
    let said = read("about = \"mine\"\nkind = \"drum\"\n").unwrap_err();
    assert!(said.contains(".toml:2: kind: "), "{said}");
}
