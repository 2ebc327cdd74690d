//! What s0 shows and what it does not, in sentences.
//!
//! Owns: the sentences. Does not own: the figures.
//! Invariants: each claim about figures is made from the runs at hand.

use super::{Cell, PathsOf, findings};

const BASE: &str = "linux-2.6.31";

fn base<'a>(cells: &'a [Cell], cell: &Cell) -> Option<&'a Cell> {
    cells.iter().find(|other| other.variant() == BASE && other.size_mib == cell.size_mib)
}

fn gains(cells: &[Cell]) -> Vec<(f64, &Cell)> {
    let patched = cells.iter().filter(|cell| cell.variant() != BASE);
    let gain = |cell| base(cells, cell).map(|base| ((cell.speed.mean / base.speed.mean - 1.0) * 100.0, cell));
    patched.filter_map(gain).collect()
}

/// Less than this many percent to either side is no difference.
const SAME_PERCENT: f64 = 0.5;

fn speeds(cells: &[Cell], says: &mut Vec<String>) {
    let gains = gains(cells);
    let Some((most, best)) = gains.iter().max_by(|a, b| a.0.total_cmp(&b.0)) else { return };
    let slower: Vec<String> = gains
        .iter()
        .filter(|(gain, _)| *gain < -SAME_PERCENT)
        .map(|(gain, cell)| format!("{} at {} MiB ({gain:.1} %)", cell.variant(), cell.size_mib))
        .collect();
    says.push(match slower.is_empty() {
        true => format!("No form of the patch is slower than {BASE} at any size, within {SAME_PERCENT} %."),
        false => format!("Slower than {BASE}: {}.", slower.join(", ")),
    });
    says.push(if *most > SAME_PERCENT {
        format!(
            "The largest gain is {most:.1} %, {} at {} MiB; published is 21.2 % at 600.",
            best.variant(), best.size_mib
        )
    } else {
        "No form of the patch is faster here either: the published gain of 21.2 % at 600 MB is not reproduced."
            .to_owned()
    });
    says.push(
        "Which part of the law acts like a higher limit was not isolated by a run. By its arithmetic the clip to the \
         headroom, which all forms of the patch drop, takes nothing from a lone writer on a lone disk: \
         what everybody has dirty is then its own, so that headroom and own pages come to the whole limit. It acts like \
         a lower limit only where others have dirty pages, or where the sums of counters are not exact; here there \
         are no others, and counters are exact. The eighth that a busy writer's share loses is in every form."
            .to_owned(),
    );
}

/// The sentences.
pub(super) fn conclusions(cells: &[Cell], paths: &PathsOf) -> Vec<String> {
    let mut says = Vec::new();
    speeds(cells, &mut says);
    let shown = paths.iter().flat_map(|(variant, paths)| paths.keys().map(|path| (*variant, path)));
    let wrong = shown.filter(|(variant, path)| {
        findings::is_shown(path) && findings::expected(variant, path).is_some_and(|reads| reads != path.1)
    });
    says.push(match wrong.count() {
        0 => "Every call that was let through, or wrote one chunk, read exactly as many shared counters as the kernel's \
              code does: let through, 14 of all devices and 4 of one before the patch, 9 and 2 after it; 8 and none in the \
              merged form below the half-way mark."
            .to_owned(),
        count => format!("{count} paths were read otherwise than in the kernel's code: see the table."),
    });
    says.push(
        "What it costs to read a hot counter is not simulated: a decision costs no time here. Saved reads alone are some \
         thousands in a run, against 36.6 million cache references fewer under perf stat; the seed's elapsed time, from \
         4.97 to 3.27 s, lies mostly outside of the storing and is not reproduced."
            .to_owned(),
    );
    says.push(
        "Page cost, disk rate and the memory that the page cache has were fitted to the published 400 MB row and to the \
         first model; agreement in these proves nothing."
            .to_owned(),
    );
    says
}
