//! Measures the English of comments and documents in each tree. The texts that users read, string literals and cells of
//! tables, are a tree of their own.
//!
//! Owns: the trees, the three figures of each, the goals.
//! Does not own: the division into sentences (`sentences`), the test for hard sentences (`hard`).
//! Invariants: a figure above its goal is a violation.

mod hard;
mod sentences;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use self::hard::Kinds;
use super::violation::Violation;
use crate::repository::TextFile;

const RULE: &str = "english";

/// The kinds of hard sentences, in the order of the figures.
const KINDS: [&str; 3] = ["sentences longer than 30 words", "sentences with a headless clause", "stacks of pronouns"];

/// At most so many of 1,000 sentences, in tenths.
const GOALS: Figures = [600, 150, 60];

/// The tree of literals and cells in all files but tests.
const TEXTS: &str = "texts";

/// Its goals. A cell may be long, and a row needs its pronouns.
const GOALS_OF_TEXTS: Figures = [u64::MAX, 100, u64::MAX];

/// So many texts that are hard are named in a violation.
const NAMED_MAX: usize = 12;

/// A tree with fewer sentences has no figures: it may have [`FEW_HARD`] of each kind.
const FEW: u64 = 100;
const FEW_HARD: u64 = 2;

/// Hard sentences of each kind among 1,000, in tenths.
type Figures = [u64; 3];

/// The number of a tree's sentences, and of its hard sentences of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Count {
    sentences: u64,
    hard: [u64; 3],
}

impl Count {
    /// Rounded up: one more hard sentence is seen in any tree.
    fn figures(self) -> Figures {
        self.hard.map(|hard| (hard * 10_000).div_ceil(self.sentences.max(1)))
    }

    fn add(&mut self, sentences: &[String]) {
        for sentence in sentences {
            self.sentences += 1;
            let Kinds { is_long, is_headless, is_stack } = hard::kinds(sentence);
            for (at, is_hard) in [is_long, is_headless, is_stack].into_iter().enumerate() {
                self.hard[at] += u64::from(is_hard);
            }
        }
    }

    /// Which figures are above their goals.
    fn above(self, goals: Figures) -> [bool; 3] {
        let figures = self.figures();
        let few = self.sentences < FEW;
        [0, 1, 2].map(|at| goals[at] < u64::MAX && if few { self.hard[at] > FEW_HARD } else { figures[at] > goals[at] })
    }
}

/// The violations in these files.
pub(super) fn check(files: &[TextFile]) -> Vec<Violation> {
    let mut violations: Vec<Violation> = Vec::new();
    for (tree, count) in &counts(files) {
        let (figures, goals) = (count.figures(), goals(tree));
        let above = count.above(goals);
        for at in [0, 1, 2].into_iter().filter(|at| above[*at]) {
            let (now, goal) = (tenths(figures[at]), tenths(goals[at]));
            let mut text = format!("{} among 1,000 are {now}; the goal is {goal}", KINDS[at]);
            if tree == TEXTS {
                headless_texts(files).take(NAMED_MAX).for_each(|(path, found)| text += &format!("\n  {path}: {found}"));
            }
            violations.push(Violation::new(tree.as_str(), RULE, text));
        }
    }
    violations
}

fn tenths(figure: u64) -> String {
    format!("{}.{}", figure / 10, figure % 10)
}

fn goals(tree: &str) -> Figures {
    if tree == TEXTS { GOALS_OF_TEXTS } else { GOALS }
}

/// Counts the sentences of each tree.
fn counts(files: &[TextFile]) -> BTreeMap<String, Count> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for file in files {
        let Some(tree) = tree(&file.path) else { continue };
        counts.entry(tree).or_default().add(&sentences::of(file));
        if has_texts(&file.path) {
            counts.entry(TEXTS.to_owned()).or_default().add(&sentences::of_texts(file));
        }
    }
    counts
}

/// Whether users read the literals or cells of a file: those of tests are samples and messages for developers.
fn has_texts(path: &str) -> bool {
    !(path.starts_with("notebook/") || path.contains("/tests/") || path.ends_with("tests.rs"))
}

/// The texts with a headless clause, with their files.
fn headless_texts(files: &[TextFile]) -> impl Iterator<Item = (&str, String)> {
    let texts = files.iter().filter(|file| has_texts(&file.path));
    let sentences = texts.flat_map(|file| sentences::of_texts(file).into_iter().map(|text| (file.path.as_str(), text)));
    sentences.filter(|(_, text)| hard::kinds(text).is_headless)
}

/// The folder of the file's crate, or `documents`. Pages of the notebook are never edited: they are of no tree.
fn tree(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["notebook", ..] => None,
        ["xtask", _, ..] => Some("xtask".to_owned()),
        ["product" | "world" | "laboratory" | "tests", name, _, ..] => Some(format!("{}/{name}", parts[0])),
        _ => Some("documents".to_owned()),
    }
}
