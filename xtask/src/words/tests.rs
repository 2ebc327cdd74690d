use std::fs;

use super::*;
use crate::{nightly, repository};

/// The names of all commands.
fn names() -> Vec<String> {
    let all = [(Xtask::HELP_, "xtask "), (Races::HELP, "races ")];
    let names = all.iter().flat_map(|(text, root)| text.lines().filter_map(move |line| line.strip_prefix(root)));
    names.map(str::to_owned).collect()
}

#[test]
fn each_command_has_a_help_with_all_its_words_and_a_line_in_the_overview() {
    let (names, overview) = (names(), overview());
    assert!(names.len() >= 21, "{names:?}");
    for name in &names {
        let help = asked_help(&[name, "--help"]);
        if name == "soak" {
            assert_eq!(help, None, "the soak shows its own words");
            continue;
        }
        assert!(help.unwrap().starts_with(&format!("cargo xtask {name}\n")));
        assert!(overview.contains(&format!("\n  {name}\n      ")), "{name}: {overview}");
    }
    let help = asked_help(&["race-stores", "--help"]).unwrap();
    let words = ["--delay-ms <n>", "--minutes <n>", "--quick", "--only <words>", "--dir <dir>"];
    assert!(words.iter().all(|word| help.contains(word)) && !help.contains("--json"), "{help}");
    let help = asked_help(&["guest-law", "--help"]).unwrap();
    assert!(["--load <name>", "--rate <bytes>"].iter().all(|word| help.contains(word)), "{help}");
}

#[test]
fn words_of_other_programs_are_left_to_them() {
    let XtaskCmd::Serve(serve) = parsed(&["serve", "/x", "--cache", "1GiB"]).unwrap().subcommand else { panic!() };
    assert_eq!(serve.words, ["/x", "--cache", "1GiB"]);
    let XtaskCmd::Sanitize(words) = parsed(&["sanitize", "thread", "-p", "afflux"]).unwrap().subcommand else {
        panic!()
    };
    assert_eq!((words.which, words.words), (Sanitizer::Thread, ["-p", "afflux"].map(OsString::from).to_vec()));
    let XtaskCmd::Soak(soak) = parsed(&["soak", "--help"]).unwrap().subcommand else { panic!() };
    assert_eq!(soak.words, ["--help"]);
    assert!(parsed(&["sanitize", "memory"]).unwrap_err().to_string().contains("'memory' is none of address, thread"));
    assert!(parsed(&["frobnicate"]).is_err() && parsed(&["tidy", "--renew", "--renew"]).is_err());
}

/// A renamed word would fail every night, or a reader who follows a document.
#[test]
fn commands_of_the_nightly_run_and_of_documents_have_known_words() {
    let mut lines: Vec<String> =
        nightly::steps().filter_map(|step| step.strip_prefix("xtask ")).map(str::to_owned).collect();
    for path in ["CONTRIBUTING.md", "README.md", "docs/develop/guest.md", "docs/results.md", "docs/use/nfs.md"] {
        let text = fs::read_to_string(repository::root().join(path)).unwrap();
        for (at, command) in text.match_indices("cargo xtask ") {
            let rest = &text[at + command.len()..];
            // In a sentence it may go on in the next line.
            let ends: &[char] = if text[..at].ends_with('`') { &['`'] } else { &['`', '\n', '#', ';', '>'] };
            lines.push(rest.split(ends).next().unwrap_or_default().split('|').next().unwrap_or_default().to_owned());
        }
    }
    assert!(lines.len() > 30);
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let read = match words.first() {
            Some(name) if name.starts_with("race") => {
                Races::from_vec(words.iter().map(OsString::from).collect()).map(drop)
            }
            _ => parsed(&words).map(drop),
        };
        assert!(read.is_ok(), "cargo xtask {line}: {}", read.unwrap_err());
    }
}
