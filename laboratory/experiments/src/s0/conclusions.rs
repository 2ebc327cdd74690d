//! The conclusions of s0 and their limits, in sentences.
//!
//! Owns: the sentences; fixed paragraphs are in `conclusions.md`. Does not own: the figures.
//! Invariants: each claim about figures is made from the runs at hand.

use super::cell::{Cell, PathsOf};
use super::kernel_reads;
use super::parts::{self, BASE};
use super::plan::Case;
use super::published;
use super::tables::{base_of, gain, of_case};
use crate::prose::{paragraph, section};

const TEXT: &str = include_str!("conclusions.md");
const THE_EIGHTH: &str = section(TEXT, "the eighth");
const THE_JULY_DIFF: &str = section(TEXT, "the July diff");
const BESIDE_OTHERS: &str = section(TEXT, "beside others");
const NOT_SIMULATED: &str = section(TEXT, "not simulated");
const LABELS: &str = section(TEXT, "labels");
const ONE_RUN: &str = section(TEXT, "one run");

fn named(cell: &Cell, percent: f64) -> String {
    format!("{} at {} MiB ({percent:+.1} %)", cell.variant(), cell.size_mib)
}

/// Names the forms that are slower than the base, and the fastest form.
fn forms(cells: &[Cell], says: &mut Vec<String>) {
    let as_they_are = of_case(cells, Case::Speeds).filter(|cell| !cell.is_changed());
    let gains: Vec<(f64, &Cell)> = as_they_are.filter_map(|cell| Some((gain(cells, cell)?, cell))).collect();
    let Some((most, best)) = gains.iter().max_by(|a, b| a.0.total_cmp(&b.0)) else { return };
    let beyond_scatter = |cell: &Cell| base_of(cells, cell).is_some_and(|base| cell.speed.differs_from(&base.speed));
    let slower: Vec<String> = gains
        .iter()
        .filter(|(percent, cell)| *percent < 0.0 && beyond_scatter(cell))
        .map(|(percent, cell)| named(cell, *percent))
        .collect();
    let lowest = gains.iter().min_by(|a, b| a.0.total_cmp(&b.0)).filter(|(percent, _)| *percent < -0.05);
    let lowest = lowest.map_or_else(String::new, |(percent, cell)| format!("; lowest is {}", named(cell, *percent)));
    says.push(match slower.is_empty() {
        true => format!(
            "No form of the patch is slower than {BASE} at any size by more than the scatter of the runs (the 99 % \
             intervals of the means overlap){lowest}."
        ),
        false => format!("Slower than {BASE}: {}.", slower.join(", ")),
    });
    says.push(if *most > 0.0 && beyond_scatter(best) {
        format!("The fastest form with its device's counters read is {}.", named(best, *most))
    } else {
        "With the device's counters read on every pass no form is faster either: a lone writer is stopped at the same \
         point before and after the patch."
            .to_owned()
    });
}

/// The gains of August's form without the device's test, beside the published ones.
fn untested(cells: &[Cell], says: &mut Vec<String>) {
    let changed = of_case(cells, Case::Speeds).filter(|cell| cell.is_changed());
    let gains: Vec<(f64, &Cell)> = changed.filter_map(|cell| Some((gain(cells, cell)?, cell))).collect();
    let Some((most, best)) = gains.iter().max_by(|a, b| a.0.total_cmp(&b.0)) else { return };
    let beside: Vec<String> = gains
        .iter()
        .filter_map(|(_, cell)| {
            let line = cell.published()?;
            let (own, published) = (gain(cells, cell)?, published::gain(line));
            Some(format!(
                "{:.0} for {:.0} at {} ({own:+.1} % for {published:+.1} %)",
                cell.speed.mean, line.2[0], cell.size_mib
            ))
        })
        .collect();
    let least = gains.iter().map(|(percent, _)| *percent).fold(f64::INFINITY, f64::min);
    says.push(format!(
        "Held to the limit of all devices only, August's form gains most at {} MiB, {most:+.1} % (published there: {}), and is nowhere slower by more than {:.1} %.{}",
        best.size_mib,
        best.published().map_or_else(|| "nothing".to_owned(), |line| format!("{:+.1} %", published::gain(line))),
        (-least).max(0.0),
        match beside.is_empty() {
            true => String::new(),
            false => format!(" Ours for the published patched column, MiB/s, and the gain: {}.", beside.join(", ")),
        }
    ));
}

/// Names the part of the law that the gain comes from.
fn part(cells: &[Cell], says: &mut Vec<String>) {
    let single: Vec<&Cell> = of_case(cells, Case::Parts).filter(|cell| cell.variant() == BASE).collect();
    if single.is_empty() {
        return;
    }
    // Waits take 100 ms, so means scatter. A difference counts if it is larger than both standard deviations together.
    let counts = |cell: &&&Cell| {
        let base = base_of(cells, cell);
        base.is_some_and(|base| (cell.speed.mean - base.speed.mean).abs() > cell.speed.sd + base.speed.sd + 0.5)
    };
    let changed = single.iter().filter(|cell| cell.is_changed());
    let matters: Vec<&&Cell> = changed.filter(counts).collect();
    let named = |cell: &&&Cell| {
        Some(format!("'{}' ({:+.1} % at {} MiB)", cell.change.label, gain(cells, cell)?, cell.size_mib))
    };
    let names: Vec<String> = matters.iter().filter_map(named).collect();
    says.push(format!(
        "Of {} changes to {BASE}, one at a time at 500, 600 and 700 MiB, those that change the speed by more than its \
         scatter: {}.",
        parts::CHANGES.iter().filter(|change| change.variant.name == BASE).count() - 1,
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    ));
    let waits_at = |label: &str| {
        let own = single.iter().find(|cell| cell.change.label == label && cell.size_mib == 700);
        own.and_then(|cell| cell.first_pause_mib())
    };
    let only_the_eighth = !matters.is_empty() && matters.iter().all(|cell| cell.change.label == parts::NO_EIGHTH);
    if let (true, Some(with), Some(without)) = (only_the_eighth, waits_at(parts::AS_IT_IS), waits_at(parts::NO_EIGHTH))
    {
        says.push(format!(
            "So the part that makes the patch act like a higher limit is the eighth that the share of a busy writer loses: \
             with it the writer first waits at {with:.0} MiB, without it at {without:.0} ({:+.1} %). It is not the clip to the headroom: what everybody has dirty is a lone writer's own, so \
             headroom and own pages come to the whole limit.",
            (without / with - 1.0) * 100.0
        ));
    }
    // The paragraph names a row of the first table.
    if of_case(cells, Case::Speeds).any(Cell::is_changed) {
        says.push(paragraph(THE_EIGHTH));
    }
    let seed = of_case(cells, Case::Parts).find(|cell| cell.variant() == "s0-seed" && cell.size_mib == 700);
    let seed = seed.map_or_else(String::new, |cell| {
        let waited_s = cell.mean(|run| run.pause_s);
        format!(" Without it (s0-seed, its device not tested) the writer waits {waited_s:.2} s at 700 MiB.")
    });
    says.push(paragraph(THE_JULY_DIFF) + &seed);
}

fn beside_others(cells: &[Cell], says: &mut Vec<String>) {
    let gains: Vec<String> = of_case(cells, Case::Others)
        .filter(|cell| cell.variant() == "s0-seed")
        .filter(|cell| cell.others_mib > 0)
        .filter_map(|cell| Some(format!("{:+.1} % beside {} MiB", gain(cells, cell)?, cell.others_mib)))
        .collect();
    if !gains.is_empty() {
        says.push(format!(
            "The clip does cost where others have dirty pages: without it (s0-seed) {}. {}",
            gains.join(", "),
            paragraph(BESIDE_OTHERS)
        ));
    }
}

fn reads(paths: &PathsOf, says: &mut Vec<String>) {
    let shown = paths.iter().flat_map(|(variant, paths)| paths.keys().map(|path| (*variant, path)));
    let shown: Vec<_> = shown.filter(|(_, path)| kernel_reads::is_shown(path)).collect();
    if shown.is_empty() {
        return;
    }
    let wrong = shown
        .iter()
        .filter(|(variant, path)| kernel_reads::expected(variant, path) != Some(kernel_reads::read_on(path)))
        .count();
    says.push(match wrong {
        0 => "Every call that was let through, or wrote one chunk, read exactly as many shared counters as the kernel's \
              code does: let through, 14 of all devices and 4 of one before the patch, 9 and 2 after it; 8 and none in the \
              merged form below the half-way mark."
            .to_owned(),
        count => format!("{count} paths were read otherwise than in the kernel's code: see the table."),
    });
}

/// The numbers of counters read before and after the patch, and both speeds.
pub(super) fn answer(cells: &[Cell], paths: &PathsOf) -> String {
    let reads = |variant: &str| {
        let own = paths.iter().find(|(name, _)| **name == variant).map(|(_, paths)| paths)?;
        let (path, _) = own.iter().filter(|(path, _)| path.0.starts_with('C')).max_by_key(|(_, calls)| **calls)?;
        Some(path.1.global)
    };
    let speed = |variant: &str, changed: bool| {
        let is_it = |cell: &&Cell| cell.variant() == variant && cell.is_changed() == changed && cell.size_mib == 600;
        of_case(cells, Case::Speeds).find(is_it).map(|cell| cell.speed.mean)
    };
    let mut answer = String::new();
    if let (Some(before), Some(after)) = (reads(BASE), reads("s0-seed")) {
        answer = format!(
            "A call that makes nobody wait reads {} shared counters with the patch, {} before it.",
            after, before
        );
    }
    if let (Some(base), Some(patched)) = (speed(BASE, false), speed("s0-seed", false)) {
        let published = of_case(cells, Case::Speeds).find(|cell| cell.size_mib == 600).and_then(Cell::published);
        let published = published
            .map_or_else(String::new, |line| format!(" (published: {:.0} before, {:.0} after)", line.1[0], line.2[0]));
        let same = (patched / base - 1.0).abs() < 0.01;
        answer.push_str(&format!(
            " Storing 600 MiB goes at {base:.0} MiB/s before and {patched:.0} after it{published}{}.",
            if same { ": the law alone does not give the published gain" } else { "" }
        ));
    }
    if let Some(untested) = speed("s0-august", true) {
        answer.push_str(&format!(
            " Held to the limit of all devices only, as August's slip may have done, it is {untested:.0}."
        ));
    }
    if answer.is_empty() {
        answer = format!("{} runs of other cases: see the tables.", cells.len());
    }
    answer.trim().to_owned()
}

/// The sentences.
pub(super) fn conclusions(cells: &[Cell], paths: &PathsOf) -> Vec<String> {
    let mut says = Vec::new();
    if cells.iter().all(Cell::has_scatter) {
        forms(cells, &mut says);
        untested(cells, &mut says);
        part(cells, &mut says);
        beside_others(cells, &mut says);
    } else {
        says.push(paragraph(ONE_RUN));
    }
    reads(paths, &mut says);
    says.push(paragraph(NOT_SIMULATED));
    says.push(paragraph(LABELS));
    says
}

#[cfg(test)]
mod tests;
