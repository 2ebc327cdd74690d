//! The tables of speeds: all sizes, one part changed at a time, beside other tasks' dirty pages.
//!
//! Owns: their arrangement. Does not own: the runs, the sentences.
//! Invariants: a gain is against the unchanged `linux-2.6.31`, at the same size on the same machine.

use afflux_report::{Align, Cell as Text, Table};

use super::cell::Cell;
use super::parts::{self, BASE};
use super::plan::Case;
use super::published;

/// The cell to compare a cell with.
pub(super) fn base_of<'a>(cells: &'a [Cell], cell: &Cell) -> Option<&'a Cell> {
    let is_base = |other: &&Cell| other.variant() == BASE && !other.is_changed();
    let same =
        |other: &&Cell| (other.case, other.size_mib, other.others_mib) == (cell.case, cell.size_mib, cell.others_mib);
    cells.iter().filter(is_base).find(same)
}

/// The percentage by which a cell is faster than its base; `None` for the base itself.
pub(super) fn gain(cells: &[Cell], cell: &Cell) -> Option<f64> {
    let base = base_of(cells, cell).filter(|base| !std::ptr::eq(*base, cell))?;
    Some((cell.speed.mean / base.speed.mean - 1.0) * 100.0)
}

fn text_of(gain: Option<f64>) -> String {
    gain.map_or_else(String::new, afflux_report::units::change)
}

fn or_dash(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

pub(super) fn of_case(cells: &[Cell], case: Case) -> impl Iterator<Item = &Cell> {
    cells.iter().filter(move |cell| cell.case == case)
}

fn speeds(cells: &[Cell]) -> Table {
    let right = Align::Right;
    let columns = [
        ("size", Align::Left),
        ("variant", Align::Left),
        ("ours", right),
        ("gain", right),
        ("published", right),
        ("gain", right),
        ("waited", right),
        ("calls", right),
    ];
    let mut table =
        Table::new("Speed of storing, MiB/s (standard deviation), and by how much the patch is faster", &columns)
            .named_by(2);
    for cell in of_case(cells, Case::Speeds) {
        let (published, published_gain) = match (cell.published(), cell.name()) {
            (Some(line), BASE) => (Some(line.1), None),
            (Some(line), "s0-july" | parts::UNASSIGNED_NAME) => (Some(line.2), Some(published::gain(line))),
            _ => (None, None),
        };
        let speed = |[mean, sd]: [f64; 2]| format!("{mean:.1} ({sd:.2})");
        table.row([
            Text::from(format!("{} MiB", cell.size_mib)),
            Text::from(cell.name()),
            Text::from(cell.speed_text()),
            Text::from(text_of(gain(cells, cell))),
            Text::from(published.map_or_else(String::new, speed)),
            Text::from(text_of(published_gain)),
            Text::from(format!("{:.2} s", cell.mean(|run| run.pause_s))),
            Text::from(format!("{:.0}", cell.mean(|run| run.calls as f64))),
        ]);
    }
    table.note("Published: 2.6.31-rc3, ten runs, fastest and slowest dropped; patched there is the July form.");
    table.note("s0-august, untested: what August's code does if the variable that it tests before assigning it is 0.");
    table
}

/// Speeds at the three sizes, one row for each change.
fn changes(cells: &[Cell]) -> Table {
    let right = Align::Right;
    let mut columns = vec![("law", Align::Left), ("changed", Align::Left)];
    columns.extend(["500 MiB", "gain", "600 MiB", "gain", "700 MiB", "gain"].map(|name| (name, right)));
    let mut table = Table::new("One part of the law changed at a time: speed in MiB/s", &columns).named_by(2);
    for change in parts::CHANGES {
        let mut row = vec![Text::from(change.variant.name), Text::from(change.label)];
        for size_mib in parts::SIZES_MIB {
            let is_it = |cell: &&Cell| {
                (cell.variant(), cell.change.label, cell.size_mib) == (change.variant.name, change.label, size_mib)
            };
            let cell = of_case(cells, Case::Parts).find(is_it);
            row.push(Text::from(or_dash(cell.map(|cell| cell.speed.mean), 1)));
            row.push(Text::from(text_of(cell.and_then(|cell| gain(cells, cell)))));
        }
        table.row(row);
    }
    table.note(format!("Gain: against {BASE} as it is."));
    let lines = parts::SIZES_MIB
        .map(|size_mib| of_case(cells, Case::Parts).find(|cell| cell.size_mib == size_mib).and_then(Cell::published));
    if lines.iter().any(Option::is_some) {
        let published = lines.map(|line| text_of(line.map(published::gain))).join(", ");
        table.note(format!("Published gains: {published}."));
    }
    table
}

/// The course of the runs of changes at the middle size.
fn course(cells: &[Cell]) -> Table {
    let right = Align::Right;
    let size_mib = parts::SIZES_MIB[1];
    let mut columns = vec![("law", Align::Left), ("changed", Align::Left)];
    let figures = ["passes", "waits", "waited, s", "first, MiB", "flushing, s", "own pages"];
    columns.extend(figures.map(|name| (name, right)));
    let mut table =
        Table::new(format!("The same at {size_mib} MiB: what happened in a run (means)"), &columns).named_by(2);
    for cell in of_case(cells, Case::Parts).filter(|cell| cell.size_mib == size_mib) {
        table.row([
            Text::from(cell.variant()),
            Text::from(cell.change.label),
            Text::from(format!("{:.1}", cell.mean(|run| run.passes as f64))),
            Text::from(format!("{:.1}", cell.mean(|run| run.pauses as f64))),
            Text::from(format!("{:.3}", cell.mean(|run| run.pause_s))),
            Text::from(or_dash(cell.first_pause_mib(), 1)),
            Text::from(or_dash(cell.background_s(), 3)),
            Text::from(format!("{:.0}", cell.mean(|run| run.written_by_writer_pages as f64))),
        ]);
    }
    table.note(
        "First: what the disk had dirty and under writeback when the writer first waited, in the runs in which it did.",
    );
    table
        .note("Flushing: when background writeback was first asked for. Own pages: written back by the writer itself.");
    table
}

fn others(cells: &[Cell]) -> Table {
    let right = Align::Right;
    let columns = [
        ("others' dirty", Align::Left),
        ("law", Align::Left),
        ("MiB/s", right),
        ("gain", right),
        ("first wait at MiB", right),
    ];
    let mut table = Table::new("600 MiB beside dirty pages for another, slow disk", &columns).named_by(2);
    for cell in of_case(cells, Case::Others) {
        table.row([
            Text::from(format!("{} MiB", cell.others_mib)),
            Text::from(cell.variant()),
            Text::from(cell.speed_text()),
            Text::from(text_of(gain(cells, cell))),
            Text::from(or_dash(cell.first_pause_mib(), 1)),
        ]);
    }
    table.note("Here the clip, which the patch drops, takes from the share what others have.");
    table
}

/// The tables of the cases that were run.
pub(super) fn tables(cells: &[Cell]) -> Vec<Table> {
    let has = |case| of_case(cells, case).next().is_some();
    let mut tables = Vec::new();
    if has(Case::Speeds) {
        tables.push(speeds(cells));
    }
    if has(Case::Parts) {
        tables.extend([changes(cells), course(cells)]);
    }
    if has(Case::Others) {
        tables.push(others(cells));
    }
    tables
}
