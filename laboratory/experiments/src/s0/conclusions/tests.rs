use std::collections::BTreeMap;

use super::*;
use crate::s0::mapped_writes::{MEMORY_MIB, Ran, Variant};
use crate::s0::parts::{AS_IT_IS, CHANGES, Change};
use crate::statistics::Samples;

fn cell(variant: &'static str, size_mib: u64, mean: f64) -> Cell {
    let mut samples = Samples::default();
    [-1.0, 0.0, 0.0, 1.0].into_iter().for_each(|off| samples.push(mean + off));
    let change = Change { label: AS_IT_IS, variant: Variant::named(variant) };
    let (case, memory_mib, speed) = (Case::Speeds, MEMORY_MIB, samples.estimate());
    Cell { case, change, others_mib: 0, size_mib, memory_mib, speed, runs: Vec::new() }
}

fn said(cells: &[Cell]) -> String {
    conclusions(cells, &PathsOf::new()).join(" ")
}

#[test]
fn published_figures_stand_beside_their_own_machine_alone() {
    let mut cells = [cell("linux-2.6.31", 600, 310.0), cell("s0-seed", 600, 311.0)];
    assert!(answer(&cells, &PathsOf::new()).contains("(published: 309 before, 374 after)"));
    cells.iter_mut().for_each(|cell| cell.memory_mib = 4000);
    assert!(!answer(&cells, &PathsOf::new()).contains("published:"));
}

#[test]
fn which_form_is_faster_and_by_how_much_is_said() {
    let faster = said(&[cell(BASE, 600, 300.0), cell("s0-seed", 600, 330.0), cell("s0-merged", 600, 303.0)]);
    assert!(faster.contains("is s0-seed at 600 MiB (+10.0 %)."), "{faster}");
    assert!(faster.contains(&format!("No form of the patch is slower than {BASE}")), "{faster}");
    let slower = said(&[cell(BASE, 600, 300.0), cell("s0-seed", 600, 270.0)]);
    assert!(slower.contains(&format!("Slower than {BASE}: s0-seed at 600 MiB (-10.0 %).")), "{slower}");
    // Half a percent is within the scatter.
    let same = said(&[cell(BASE, 600, 300.0), cell("s0-seed", 600, 298.5)]);
    assert!(same.contains("lowest is s0-seed at 600 MiB (-0.5 %)") && !same.contains("Slower than"), "{same}");
}

#[test]
fn the_answer_stands_beside_the_published_speeds() {
    let answer = |patched| answer(&[cell(BASE, 600, 300.0), cell("s0-seed", 600, patched)], &PathsOf::new());
    assert_eq!(
        answer(330.0),
        "Storing 600 MiB goes at 300 MiB/s before and 330 after it (published: 309 before, 374 after)."
    );
    assert!(answer(301.0).ends_with("after): the law alone does not give the published gain."), "{}", answer(301.0));
}

fn ran(pause_pages: u64) -> Ran {
    Ran {
        mib_per_s: 0.0,
        calls: 0,
        passes: 0,
        reads: [0; 3],
        pauses: 0,
        pause_s: 0.0,
        written_by_writer_pages: 0,
        first_wait_pages: Some(pause_pages),
        background_ns: None,
        paths: BTreeMap::new(),
        kernel: serde_json::Value::Null,
        trace_hash: 0,
    }
}

#[test]
fn of_all_changes_the_eighth_alone_is_named_with_where_its_writer_waits() {
    let of = |change: Change, mean, pages| {
        let as_run = cell(BASE, 700, mean);
        Cell { case: Case::Parts, change, runs: vec![ran(pages)], ..as_run }
    };
    // 32,768 pages are 128 MiB, and 36,864 are 144 MiB.
    let said = said(&[of(CHANGES[0], 300.0, 32_768), of(CHANGES[1], 300.0, 32_768), of(CHANGES[2], 330.0, 36_864)]);
    assert!(said.contains("first waits at 128 MiB, without it at 144 (+12.5 %"), "{said}");
    assert!(said.contains("scatter: 'no eighth off for the writer' (+10.0 % at 700 MiB)."), "{said}");
}
