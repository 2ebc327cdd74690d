//! The policy's figures in force for a device, with reasons, as lines below it.
//!
//! Owns: the choice of lines, and their words: sentences for the flush budget's figures, names and values for another
//! policy's.
//! Does not own: the figures (the policy).
//! Invariants: a missing figure omits its line; the number of lines is bounded.

use std::time::Duration;

use crate::control::messages::{DeviceGauges, FigureGauge};
use afflux_report::{output, units};

/// Most figures of an unknown policy.
const FIGURES_SHOWN: usize = 12;

/// Bytes that a price in ns covers.
const MIB: f64 = (1 << 20) as f64;

/// A device's figures, by name.
struct Figures<'a>(&'a DeviceGauges);

impl Figures<'_> {
    fn word(&self, name: &str) -> Option<&str> {
        match self.0.in_force.get(name)? {
            Some(FigureGauge::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn time(&self, name: &str) -> Option<String> {
        self.0.figure(name).map(units::latency)
    }

    /// `owes 610 ms of 1.00 s (as requested), …`
    fn budget(&self) -> Option<String> {
        let (asked_ns, in_force_ns) = (self.0.figure("budget_ns")?, self.0.figure("budget_in_force_ns")?);
        let (owed_ns, counted_ns) = (self.0.figure("owed_ns")?, self.0.figure("counted_ns")?);
        let [asked, in_force, owed] = [asked_ns, in_force_ns, owed_ns].map(units::latency);
        let why = match self.word("budget_because")? {
            "asked for" => "as requested".to_owned(),
            "many writers" => {
                let writers = units::plural(self.0.figure("payers_on_average")?, "writer");
                format!("{asked} were requested; {writers} and their runs need more")
            }
            "memory guard" => format!("counted as {}: memory for dirty data runs short", units::latency(counted_ns)),
            other => output::shown(other),
        };
        let unpaused = self.time("unpaused_ns")?;
        Some(format!("owes {owed} of {in_force} ({why}); writers pause above {unpaused}"))
    }

    /// `writes 31.0 µs a run and 1.00 GB/s (40.0 ms ago)`
    fn prices(&self, of: &str, what: &str) -> Option<String> {
        let figure = |name: &str| self.0.figure(&format!("{of}_{name}"));
        let (run, mib_ns) = (units::latency(figure("run_ns")?), figure("mib_ns")?);
        let speed = units::rate((MIB / (mib_ns.max(1) as f64 / 1e9)) as u64, Duration::from_secs(1));
        let age =
            figure("age_ns").map_or_else(|| "not measured yet".to_owned(), |ns| format!("{} ago", units::latency(ns)));
        Some(format!("{what} {run} a run and {speed} ({age})"))
    }

    fn knowledge(&self) -> Option<String> {
        let (write, read) = (self.prices("write", "writes")?, self.prices("read", "reads")?);
        let cold = match self.word("knowledge")? {
            "cold" => {
                let (run, mib) = (self.time("run_ns")?, self.time("mib_ns")?);
                format!("; too little is known, so that a run counts as {run} and a MiB as {mib}")
            }
            _ => String::new(),
        };
        Some(format!("learned: {write}, {read}{cold}"))
    }

    fn flight(&self) -> Option<String> {
        let (at_once, ns) = (self.0.figure("parallel_requests")?, self.time("in_flight_max_ns")?);
        let alone = self.time("unloaded_latency_ns").map(|ns| format!("; one alone takes {ns}")).unwrap_or_default();
        let most = units::plural(at_once, "write");
        Some(format!("in flight: {most} at once, or as many as take {ns}{alone}"))
    }

    /// All figures, by name.
    fn plain(&self) -> Option<String> {
        let shown = |(name, value): (&String, &Option<FigureGauge>)| {
            let value = match value {
                Some(FigureGauge::Number(number)) => units::count(*number),
                Some(FigureGauge::Word(word)) => output::shown(word),
                None => "unknown".to_owned(),
            };
            format!("{} {value}", output::shown(name))
        };
        let all: Vec<String> = self.0.in_force.iter().take(FIGURES_SHOWN).map(shown).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

pub(super) fn lines(device: &DeviceGauges) -> Vec<String> {
    let figures = Figures(device);
    let mut lines: Vec<String> = match figures.budget() {
        Some(budget) => [Some(budget), figures.knowledge(), figures.flight()].into_iter().flatten().collect(),
        None => figures.plain().into_iter().collect(),
    };
    let knobs = device.knobs_in_force.iter();
    lines.extend(knobs.map(|gauge| format!("{}: {}", output::shown(&gauge.knob), gauge.told_with(units::count))));
    lines
}
