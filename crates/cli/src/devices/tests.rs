use report::terminal::Terminal;
use simulator::catalogue;

use super::{LINE_WIDTH, chosen, detail, object, overview};

#[test]
fn every_disk_is_listed_with_its_numbers_in_short_lines() {
    let all = catalogue::builtin().unwrap();
    let text = overview(&chosen(&all, &[]).unwrap(), Terminal::PLAIN);
    for model in &all {
        assert!(text.contains(&format!("{}  {}\n", model.name, model.about)), "{}", model.name);
    }
    for line in text.lines().filter(|line| line.starts_with("  ")) {
        assert!(line.chars().count() <= LINE_WIDTH + 2, "{line}");
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
fn an_unknown_name_is_answered_with_the_list() {
    let all = catalogue::builtin().unwrap();
    let said = chosen(&all, &["floppy".to_owned()]).unwrap_err().to_string();
    assert!(said.starts_with("there is no disk 'floppy'; there are disk, "), "{said}");
}
