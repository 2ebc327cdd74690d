//! The case `recorded`: `linux-6.1` in the simulator beside a real Linux 6.1, second by second.
//!
//! The real kernel ran in an emulated machine with its time counted in instructions (`cargo xtask guest-law`). So its
//! tables are the same on every machine, and are stored here.
//!
//! Owns: the order of the runs; rows and table of the two sides beside each other, the sentence of each load.
//! Does not own: the recorded tables (`recording`), the simulated machine (`simulated`, `disk`), what it runs (`load`),
//! the compared figures and their distance (`second`).
//! Invariants: each recorded table is simulated once. A distance above the goal carries a mark.

mod disk;
mod load;
mod recording;
mod second;
mod simulated;

use afflux_report::{Align, Axis, Cell, Fields, FigureSource, Plot, Quantity, Row, Series, Shape, Table};

use self::recording::Recording;
use self::second::{PAGE_BYTES, Second, Side, apart};
use super::plan::LABELS;
use crate::experiment::{Findings, LabError, Watch};
use crate::machine;
use crate::views::View;

const VIEW: View =
    View { tables: &[], charts: &[], text: include_str!("recorded/page.md"), facts: &[], labels: LABELS };

/// Largest distance in any second.
const GOAL: f64 = 0.05;
/// Seconds at the start in which memory fills and the law finds the rate.
const FILLING_S: usize = 4;
/// The seconds that the table shows.
const SHOWN_S: usize = 5;

pub(super) fn run(watch: &mut dyn Watch) -> Result<Findings, LabError> {
    let (mut answers, mut tables, mut figures, mut pauses_apart) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
    for (done, (name, text)) in recording::ALL.iter().enumerate() {
        watch.step(name, done as f64 / recording::ALL.len() as f64);
        let real = Recording::read(text).ok_or_else(|| LabError::Failed(format!("{name} is no recorded table")))?;
        let simulated = simulated::simulate(&real)?;
        watch.row(&row(name, &real, &real.side, FigureSource::Measured));
        watch.row(&row(name, &real, &simulated, FigureSource::Simulated));
        answers.push(answer(name, &real, &simulated));
        let seconds = FILLING_S..real.seconds as usize;
        let own_apart = apart(&real.side.rows, &simulated.rows, seconds, |second| second.pauses);
        pauses_apart = f64::max(pauses_apart, own_apart);
        tables.push(table(name, &real, &simulated));
        figures.push(plot(name, &real, &simulated).into());
    }
    let of_all = Fields::new().with("pauses_apart", pauses_apart);
    let of_all = machine::row("throttled", "recorded", Fields::new(), of_all, Fields::new());
    Ok(Findings { answer: answers.join(" "), tables, figures, ..VIEW.findings(&[of_all]) })
}

fn whole(rows: &[Second], of: fn(&Second) -> f64) -> Vec<u64> {
    rows.iter().map(|second| of(second).round() as u64).collect()
}

fn row(name: &str, real: &Recording, side: &Side, source: FigureSource) -> Row {
    let Side { rows, sync_s, small_syncs_s, bursts_s } = side;
    let metrics = Fields::new()
        .with("dirty_pages", whole(rows, |second| second.dirty))
        .with("accepted_pages", whole(rows, |second| second.accepted))
        .with("written_pages", whole(rows, |second| second.written))
        .with("pauses", whole(rows, |second| second.pauses))
        .with("sync_s", *sync_s)
        .with("small_syncs_s", small_syncs_s.clone())
        .with("bursts_s", bursts_s.clone());
    let params = Fields::new()
        .with("seconds", real.seconds)
        .with("hz", real.hz)
        .with("limit_pages", real.limit_pages)
        .with("background_pages", real.background_pages)
        .with("disk_pages_per_s", real.disk_pages_per_s)
        .with("call_ns", real.call_ns)
        .with("worker_ns_per_page", real.worker_ns_per_page);
    Row { source, ..machine::row("throttled", &format!("recorded-{name}"), params, metrics, Fields::new()) }
}

fn answer(name: &str, real: &Recording, simulated: &Side) -> String {
    let seconds = FILLING_S..real.seconds as usize;
    let percent = |of| 100.0 * apart(&real.side.rows, &simulated.rows, seconds.clone(), of);
    format!(
        "{name}: from second {FILLING_S} on the dirty pages are at most {:.1} % apart, the accepted ones {:.1} %; the fsync takes \
         {:.2} s, and {:.2} in the real kernel.{}",
        percent(|second| second.dirty),
        percent(|second| second.accepted),
        simulated.sync_s,
        real.side.sync_s,
        others(&real.side, simulated)
    )
}

/// The syncs of a small file, and the bursts to another disk; nothing if there are none.
fn others(real: &Side, simulated: &Side) -> String {
    let in_words = |seconds: &[f64]| seconds.iter().map(|second| format!("{second:.2}")).collect::<Vec<_>>().join(", ");
    let sentence = |what: &str, of: fn(&Side) -> &[f64]| match of(real) {
        [] => String::new(),
        seconds => format!(" {what}: {} s, and {} in the real kernel.", in_words(of(simulated)), in_words(seconds)),
    };
    let small = sentence("A small file's fsyncs beside the stream", |side| &side.small_syncs_s);
    small + &sentence("Bursts to another disk, and the fsync after each", |side| &side.bursts_s)
}

fn table(name: &str, real: &Recording, simulated: &Side) -> Table {
    let columns = ["second", "dirty", "simulated", "off", "accepted", "simulated", "off", "pauses", "simulated"];
    let columns = columns.map(|column| (column, Align::Right));
    let mut table = Table::new(format!("Linux 6.1 and linux-6.1, pages: {name}"), &columns);
    let shown = real.side.rows.iter().zip(&simulated.rows).enumerate().skip(FILLING_S);
    for (second, (real, simulated)) in shown.filter(|(second, _)| second % SHOWN_S == 0 || *second == FILLING_S) {
        let pair = |of: fn(&Second) -> f64| [format!("{:.0}", of(real)).into(), format!("{:.0}", of(simulated)).into()];
        let off = |of: fn(&Second) -> f64| {
            let share = of(simulated) / of(real) - 1.0;
            let text = format!("{:+.1} %", 100.0 * share);
            if share.abs() > GOAL { Cell::flagged(text) } else { text.into() }
        };
        let [real_dirty, dirty] = pair(|second| second.dirty);
        let [real_accepted, accepted] = pair(|second| second.accepted);
        let [real_pauses, pauses] = pair(|second| second.pauses);
        let (dirty_off, accepted_off) = (off(|second| second.dirty), off(|second| second.accepted));
        let at = second.to_string().into();
        table.row(vec![at, real_dirty, dirty, dirty_off, real_accepted, accepted, accepted_off, real_pauses, pauses]);
    }
    table.note(format!(
        "Put in: the limit ({} pages), the disk ({:.0} pages/s), a call ({} µs), the flusher's work for a page ({} ns), {} ticks a \
         second. The fsync took {:.2} s in the real kernel and takes {:.2} s.{}",
        real.limit_pages,
        real.disk_pages_per_s,
        real.call_ns / 1000,
        real.worker_ns_per_page,
        real.hz,
        real.side.sync_s,
        simulated.sync_s,
        others(&real.side, simulated)
    ));
    table
}

fn plot(name: &str, real: &Recording, simulated: &Side) -> Plot {
    let axes = (Axis::new("time", Quantity::Time), Axis::new("dirty", Quantity::Memory));
    let mut plot = Plot::new(format!("Dirty bytes: {name}"), axes.0, axes.1);
    for (side, rows) in [("Linux 6.1", &real.side.rows), ("simulated", &simulated.rows)] {
        let points = rows.iter().enumerate().map(|(at, second)| (at as f64, second.dirty * PAGE_BYTES as f64));
        plot = plot.with(Series::new(side, Shape::Line, points.collect()));
    }
    plot
}

#[cfg(test)]
mod tests;
