use super::super::PACKAGES;
use super::kept;
use crate::repository;

fn of(text: &str) -> String {
    kept(text, "docs/a.md", |path| ["docs/b.md", "README.md"].contains(&path))
}

#[test]
fn a_link_that_would_lead_nowhere_becomes_words() {
    for text in [
        "[b](b.md), [part](b.md#part), [top](../README.md), [own](#own), [web](https://example.org/a.md)",
        "```\n[code](none.md)\n```\n",
        "an array[1](2) of [nothing",
        "",
    ] {
        let text = text.replace("[1](2)", "[1]");
        assert_eq!(of(&text), text);
    }
    assert_eq!(
        of("See [the\nmap](../MAP.md#top), and [b](b.md)."),
        "See the\nmap (`MAP.md` of the sources), and [b](b.md)."
    );
    assert_eq!(of("[c](c.md)[d](./d/e.md)"), "c (`docs/c.md` of the sources)d (`docs/d/e.md` of the sources)");
}

// rule: no link of an installed document leads nowhere
// kept in: `xtask/src/deb/links.rs`
#[test]
fn each_link_of_an_installed_document_leads_to_an_installed_one() {
    for package in &PACKAGES {
        let is_installed = |path: &str| package.documents().any(|document| document == path);
        let mut replaced = 0;
        for from in package.documents().filter(|from| from.ends_with(".md")) {
            let text = std::fs::read_to_string(repository::root().join(from)).unwrap();
            let written = kept(&text, from, is_installed);
            replaced += written.matches(" of the sources)").count();
            // What is left leads to installed ones: nothing more is replaced, and no path of the sources is a target.
            assert_eq!(kept(&written, from, is_installed), written, "{from}");
            for target in ["develop/architecture.md)", "notebook/", "decisions/"] {
                assert!(
                    !written.contains(&format!("]({target}")) && !written.contains(&format!("](../{target}")),
                    "{from}"
                );
            }
        }
        assert!(replaced > 0, "{}: the sources have links that are not installed", package.name);
    }
}

/// What manuals, units and scripts point to is installed.
#[test]
fn a_path_of_a_document_in_what_is_installed_leads_to_a_document() {
    let mut named = 0;
    for package in &PACKAGES {
        for [from, ..] in package.files().filter(|[from, ..]| from.starts_with("packaging/")) {
            let text = std::fs::read_to_string(repository::root().join(from)).unwrap();
            for rest in text.split("/usr/share/doc/").skip(1) {
                let path =
                    rest.split(|letter: char| letter.is_whitespace() || ",;:)\"".contains(letter)).next().unwrap();
                let path = path.trim_end_matches('.');
                let (name, document) = path.split_once('/').unwrap();
                let is_installed = name == package.name && package.documents().any(|installed| installed == document);
                named += 1;
                assert!(is_installed, "{from}: {path}");
            }
        }
    }
    assert!(named > 2);
}
