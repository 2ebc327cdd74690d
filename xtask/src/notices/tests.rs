use super::{Crate, of};

/// Crates whose code is in each program, with words of their licences.
const KNOWN: [(&str, &str); 2] =
    [("libc ", "Copyright (c) The Rust Project Developers"), ("thiserror ", "Permission is hereby granted")];

// rule: a package has the notices of all crates that it contains
// kept in: `xtask/src/notices.rs`
#[test]
fn a_program_has_the_notice_of_each_crate_that_it_contains() {
    for (krate, features) in [("afflux-command", ""), ("afflux-lab", ""), ("afflux-c", "")] {
        let notices = of(krate, features).unwrap();
        let (list, texts) = notices.split_once("\n---").unwrap();
        let listed: Vec<&str> = list.lines().skip(2).filter(|line| !line.is_empty()).collect();
        assert!(listed.len() > 8, "{krate}: {listed:?}");
        for line in listed {
            let (name, terms) = line.split_once(": ").unwrap();
            assert!(!terms.is_empty() && texts.contains(name), "{krate}: {name}");
            assert!(
                !name.starts_with("afflux") && !name.starts_with("syn "),
                "{krate}: {name} is not of others, or no part"
            );
        }
        for (name, words) in KNOWN {
            assert!(list.contains(name) && texts.contains(words), "{krate}: {name}");
        }
        assert_eq!(notices, of(krate, features).unwrap());
    }
}

#[test]
fn a_crate_without_a_text_is_refused_unless_it_may_be_used_under_the_apache_license() {
    let scratch = afflux_scratch::Scratch::new(&std::env::temp_dir(), "notices").unwrap();
    let found = |terms: &str| Crate {
        name: "a 1.0.0".to_owned(),
        terms: terms.to_owned(),
        authors: vec!["Somebody".to_owned()],
        directory: scratch.path().to_str().unwrap().to_owned(),
    };
    let texts = found("MIT OR Apache-2.0").texts().unwrap();
    assert!(texts[0].starts_with("By Somebody\n") && texts[0].contains("Apache License"), "{texts:?}");
    let error = found("MIT").texts().unwrap_err().to_string();
    assert!(error.starts_with("a 1.0.0 (MIT) has no licence file"), "{error}");
    std::fs::write(scratch.path().join("LICENSE-MIT"), "text\r\n").unwrap();
    std::fs::write(scratch.path().join("lib.rs"), "code").unwrap();
    assert_eq!(found("MIT").texts().unwrap(), ["text\n"]);
}
