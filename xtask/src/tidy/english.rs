//! Measures the English of comments and documents in each tree; a tree may not get worse. The texts that users read,
//! string literals and cells of tables, are a tree of their own.
//!
//! Owns: the trees, the three figures of each, the goals, the list of trees that are still above their goals.
//! Does not own: the division into sentences (`sentences`), the test for hard sentences (`hard`).
//! Invariants: a figure above its goal is at most the one in the list. Renewing the list raises none of its figures.

mod hard;
mod sentences;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

use self::hard::Kinds;
use super::violation::Violation;
use crate::repository::TextFile;

/// The list of trees above their goals.
pub(super) const LIST: &str = "xtask/english.txt";

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

/// The trees of the list with their figures.
type Listed = BTreeMap<String, Figures>;

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
    fn is_above(self, goals: Figures) -> [bool; 3] {
        let figures = self.figures();
        let few = self.sentences < FEW;
        [0, 1, 2].map(|at| goals[at] < u64::MAX && if few { self.hard[at] > FEW_HARD } else { figures[at] > goals[at] })
    }
}

/// The violations in these files, given the text of the list.
pub(super) fn check(files: &[TextFile], list: &str) -> Result<Vec<Violation>> {
    let (counts, listed) = (counts(files), read(list)?);
    let mut violations: Vec<Violation> = Vec::new();
    for (tree, count) in &counts {
        let figures = count.figures();
        let kept = listed.get(tree.as_str()).copied().unwrap_or_default();
        let goals = goals(tree);
        let above = count.is_above(goals);
        for at in [0, 1, 2].into_iter().filter(|at| above[*at] && figures[*at] > kept[*at]) {
            let (now, kept, goal) = (tenths(figures[at]), tenths(kept[at]), tenths(goals[at]));
            let mut text = format!("{} among 1,000 are {now}; the list has {kept}, the goal is {goal}", KINDS[at]);
            if tree == TEXTS {
                headless_texts(files).take(NAMED_MAX).for_each(|(path, found)| text += &format!("\n  {path}: {found}"));
            }
            violations.push(Violation::new(tree.as_str(), RULE, text));
        }
    }
    let gone = listed.keys().filter(|tree| !counts.contains_key(tree.as_str()));
    violations.extend(gone.map(|tree| Violation::new(LIST, RULE, format!("there is no tree {tree}"))));
    Ok(violations)
}

/// The list with the lower figures of today. A figure that grew stays as it was, and [`check`] finds it.
pub(super) fn renewed(files: &[TextFile], list: &str) -> Result<String> {
    let counts = counts(files);
    let mut text = HEADER.to_owned();
    for (tree, kept) in read(list)? {
        let Some(count) = counts.get(&tree).filter(|count| count.is_above(goals(&tree)).contains(&true)) else {
            continue;
        };
        let figures = count.figures();
        let [long, headless, stacks] = [0, 1, 2].map(|at| tenths(figures[at].min(kept[at])));
        let _ = writeln!(text, "{tree} {long} {headless} {stacks}");
    }
    Ok(text)
}

/// How the list begins.
const HEADER: &str = "\
# Trees whose English is not yet at the goals of 60, 15 and 6 among 1,000 sentences. Each line has the tree, the
# sentences longer than 30 words, those with a headless clause, and the stacks of pronouns. `cargo xtask tidy` fails when
# a figure grows. `cargo xtask tidy --renew` writes lower ones; to write a higher one takes an editor and a reason.
";

fn read(list: &str) -> Result<Listed> {
    let lines = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| row(line).with_context(|| format!("{LIST}: {line}"))).collect()
}

fn row(line: &str) -> Result<(String, Figures)> {
    let words: Vec<&str> = line.split(' ').collect();
    ensure!(words.len() == 4, "a tree and three figures are needed");
    let figure = |word: &str| -> Result<u64> {
        let (whole, tenth) = word.split_once('.').context("a figure has one digit after its point")?;
        Ok(whole.parse::<u64>()? * 10 + tenth.parse::<u64>()?)
    };
    Ok((words[0].to_owned(), [figure(words[1])?, figure(words[2])?, figure(words[3])?]))
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
