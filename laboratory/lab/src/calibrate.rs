//! `afflux-lab calibrate`: measures the CPU costs of the engine's work on this machine.
//!
//! Owns: the rounds, the table as people, programs and `simulate` read it.
//! Does not own: the measurements (`measure`), medians (`afflux_figures`), the format of tables of costs
//! (`simulator`).
//! Invariants: every figure is CPU time of the one thread that did the work. It is the median of rounds in which all
//! measurements alternated; the first round is discarded.

mod measure;
mod rig;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

use afflux_figures::median_and_range;
use afflux_simulator::{COST_NS_MAX, Cost, CostOf, CostTable};
use serde::Serialize;

use crate::args;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;

use measure::Measured;

/// Rounds that count: with `--quick`, and without.
const ROUNDS: [usize; 2] = [3, 11];

/// One cost over all rounds, in nanoseconds.
#[derive(Serialize)]
struct Row {
    #[serde(skip)]
    of: CostOf,
    #[serde(skip)]
    how: &'static str,
    name: &'static str,
    unit: &'static str,
    value: f64,
    min: f64,
    max: f64,
}

#[derive(Serialize)]
struct Report<'a> {
    machine: &'a str,
    rounds: usize,
    costs: &'a [Row],
}

pub(crate) fn run(args: &args::Calibrate) -> Outcome {
    let to_stdout = args.output.as_deref() == Some(Path::new("-"));
    if to_stdout && args.json {
        let file = "name a file (./- is a file named -)";
        return Err(Failure::wrong_use(format!("--output -: standard output has the figures of --json; {file}")));
    }
    let rounds = ROUNDS[usize::from(!args.quick)];
    let machine = args.machine.clone().unwrap_or_else(machine);
    let rows = rows(&measure::rounds(args.quick, rounds)?);
    if let Some(path) = &args.output {
        let text = table(&machine, &rows, rounds).to_text();
        let place = path.display();
        if to_stdout {
            output::say(text.trim_end());
        } else {
            fs::write(path, text).map_err(|error| Failure::failed(format!("{place}: cannot write it: {error}")))?;
        }
    }
    if args.json {
        let report = Report { machine: &machine, rounds, costs: &rows };
        output::say(serde_json::to_string(&report).map_err(|error| Failure::failed(error.to_string()))?);
        return Ok(());
    }
    let say: fn(String) = if to_stdout { output::remark } else { output::say };
    say(format!("{machine}; medians of {rounds} rounds, and the smallest and largest"));
    rows.iter().for_each(|row| say(line(row)));
    match &args.output {
        Some(_) if to_stdout => {}
        Some(path) => output::say(format_args!("written to {}", path.display())),
        None => output::say("--output FILE writes them as a table for the simulator"),
    }
    Ok(())
}

/// Medians and spreads over all rounds, in the order of the measurements.
fn rows(rounds: &[Vec<Measured>]) -> Vec<Row> {
    let Some(first) = rounds.first() else { return Vec::new() };
    let row = |at: usize, measured: &Measured| {
        let [value, min, max] = median_and_range(rounds.iter().map(|round| round[at].ns))?;
        Some(Row {
            of: measured.of,
            how: measured.how,
            name: measured.of.name(),
            unit: measured.of.unit().unwrap_or_default(),
            value,
            min,
            max,
        })
    };
    first.iter().enumerate().filter_map(|(at, measured)| row(at, measured)).collect()
}

fn line(row: &Row) -> String {
    let Row { name, unit, value, min, max, how, .. } = row;
    format!("{name:<16} {value:>10.3} {unit:<11} ({min:.3} to {max:.3})  {how}")
}

fn table(machine: &str, rows: &[Row], rounds: usize) -> CostTable {
    let costs = rows.iter().map(|row| Cost {
        of: row.of,
        ps: (row.value.clamp(0.0, COST_NS_MAX as f64) * 1000.0).round() as u64,
        source: format!(
            "afflux-lab calibrate: {}; median of {rounds} rounds, {:.3} to {:.3}",
            row.how, row.min, row.max
        ),
    });
    CostTable::new(machine, costs.collect())
}

/// The CPU's model name, as the host reports it.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown CPU", |(_, name)| name.trim());
    let count = available_parallelism().map_or(1, usize::from);
    format!("{model}, {count} CPUs")
}
