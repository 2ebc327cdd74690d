//! The answers of `afflux-lab simulate` that the page about it quotes.
//!
//! A block of the page stands between the same comments as the tables do, and `cargo xtask docs` writes it.
//!
//! Owns: the commands, the choice of lines.
//! Does not own: the blocks of a document (`simulated`).
//! Invariants: the job file is the one that the page shows. No figure of a block is written by hand.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use super::simulated::hold;

const PAGE: &str = "docs/use/simulate.md";

/// A quoted answer.
struct Answer {
    name: &'static str,
    /// What stands behind the file.
    words: &'static str,
    /// The lines that it has, by the begin of each.
    lines: &'static [&'static str],
}

const ANSWERS: &[Answer] = &[
    Answer { name: "backup", words: "--device usb2-disk", lines: &["2.15 GB accepted after "] },
    Answer {
        name: "backup, two policies",
        words: "--device usb2-disk --policy linux-6.1 --policy afflux",
        lines: &["afflux against linux-6.1", "linux-6.1: "],
    },
    Answer {
        name: "backup, no elevator",
        words: "--device usb2-disk,scheduler=none --policy linux-6.1 --policy afflux",
        lines: &["linux-6.1: ", "afflux: "],
    },
];

#[test]
fn quoted_answers_are_what_their_commands_say() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE)).unwrap();
    let (_, rest) = page.split_once("cat > backup.fio <<'END'\n").expect("the page shows the job file");
    let (job, _) = rest.split_once("END\n").expect("the job file has an end");
    let scratch = afflux_scratch::Scratch::new(&env::temp_dir(), "answers").unwrap();
    fs::write(scratch.path().join("backup.fio"), job).unwrap();
    for answer in ANSWERS {
        let mut command = Command::new(env!("CARGO_BIN_EXE_afflux-lab"));
        command.args(["simulate", "backup.fio"]).args(answer.words.split(' ')).current_dir(scratch.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).unwrap();
        let quoted: Vec<&str> =
            answer.lines.iter().filter_map(|text| said.lines().find(|line| line.starts_with(text))).collect();
        assert_eq!(quoted.len(), answer.lines.len(), "{said}");
        let shown: String = quoted.iter().map(|line| format!("    {line}\n")).collect();
        hold(PAGE, answer.name, &format!("\n{shown}\n"));
    }
}
