//! Tables, plots and sentences of the four loads.
//!
//! Owns: their arrangement and wording.
//! Does not own: the figures (`load`), the published ones (`published`).
//! Invariants: figures side by side are from the same place and the same repeats.

use afflux_report::{Align, Bar, Bars, Quantity, Table, units};

use super::load::{Class, Ran};
use super::plan::{FileMedium, Load, Plan, Way};
use super::published::{self, Form};
use crate::contenders::KernelWay;
use crate::experiment::Findings;
use crate::host_load::{busy, load};
use crate::prose::{filled, paragraph, section};
use crate::statistics::median_and_range;

/// More than any memory copies in a second, in MB.
const RATE_MAX: f64 = 1e6;

const TEXT: &str = include_str!("html.md");
const HOW: &str = section(TEXT, "how it was measured");
const TWO: &str = section(TEXT, "two classes");
const OLD: &str = section(TEXT, "the old form");
const NEW: &str = section(TEXT, "the new form");
const NONE: &str = section(TEXT, "no form");
const NOT_SHOWN: &str = section(TEXT, "not shown");
const QUICK: &str = section(TEXT, "quick");

/// All runs of the same classes with the same load on the same place.
struct Runs {
    at: (FileMedium, Load),
    classes: Vec<Class>,
    runs: Vec<Ran>,
}

impl Runs {
    /// Median, minimum and maximum of a figure.
    fn of(&self, figure: impl Fn(&Ran) -> f64) -> [f64; 3] {
        median_and_range(self.runs.iter().map(figure).collect()).unwrap_or_default()
    }

    fn is_buffered(&self) -> bool {
        self.classes.iter().all(|class| class.way == Way::Kernel(KernelWay::Buffered))
    }
}

/// The findings, as they grow.
pub(super) struct ClassesPage<'a> {
    plan: &'a Plan,
    all: Vec<Runs>,
    left_out: Vec<String>,
    load: Option<(f64, usize)>,
}

impl<'a> ClassesPage<'a> {
    pub(super) fn new(plan: &'a Plan, left_out: Vec<String>) -> Self {
        Self { plan, all: Vec::new(), left_out, load: load() }
    }

    pub(super) fn add(&mut self, at: (FileMedium, Load), classes: &[Class], ran: Ran) {
        match self.all.iter_mut().find(|runs| runs.at == at && runs.classes == classes) {
            Some(runs) => runs.runs.push(ran),
            None => self.all.push(Runs { at, classes: classes.to_vec(), runs: vec![ran] }),
        }
    }

    pub(super) fn findings(&self) -> Findings {
        let mut findings = Findings::default();
        for place in &self.plan.places {
            for load in &self.plan.loads {
                findings.tables.push(self.table((*place, *load)));
            }
            let bars = self.bars(*place);
            findings.figures.extend(bars.map(Into::into));
        }
        findings.tables.push(published::table());
        if let Some(first) = findings.tables.first_mut() {
            self.left_out.iter().for_each(|what| first.note(what.as_str()));
        }
        findings.answer = self.answer();
        findings.says = self.says();
        findings
    }

    /// The engine beside the kernel's ways in each place, by the first load of the run.
    fn answer(&self) -> String {
        let of = |place: &FileMedium| {
            let loads = || self.plan.loads.iter().filter(|load| **load != Load::Competing);
            let load = loads().find(|load| self.runs((*place, **load)).next().is_some())?;
            let rate = |runs: &Runs| format!("{} {:.0}", self.name(runs), runs.of(Ran::mb_per_s)[0]);
            let rates: Vec<String> = self.runs((*place, *load)).map(rate).collect();
            Some(format!("{}, {}, MB/s until durable: {}.", capital(place.name()), load.about(), rates.join(", ")))
        };
        let answers: Vec<String> = self.plan.places.iter().filter_map(of).collect();
        if answers.is_empty() { "Nothing could be run: see below.".to_owned() } else { answers.join(" ") }
    }

    fn runs(&self, at: (FileMedium, Load)) -> impl Iterator<Item = &Runs> {
        self.all.iter().filter(move |runs| runs.at == at)
    }

    fn name(&self, runs: &Runs) -> String {
        super::named(self.plan, &runs.classes)
    }

    fn table(&self, at: (FileMedium, Load)) -> Table {
        let right = Align::Right;
        let competing = at.1 == Load::Competing;
        let own: &[(&str, Align)] = match competing {
            true => &[
                ("first, MB/s", right),
                ("second, MB/s", right),
                ("first p99.9, ms", right),
                ("second p99.9, ms", right),
            ],
            false => &[
                ("to buffered", right),
                ("accepted, MB/s", right),
                ("p50, ms", right),
                ("p99.9, ms", right),
                ("longest, ms", right),
            ],
        };
        let columns = [&[("way", Align::Left), ("MB/s", right)], own, &[("dirty at most, MB", right)]].concat();
        let repeats = self.plan.repeats;
        let of =
            if repeats > 1 { format!("medians of {repeats} (least to most)") } else { "one run of each".to_owned() };
        let caption = format!("{}: {}; {of}", capital(at.0.name()), at.1.about());
        let mut table = Table::new(&caption, &columns);
        let buffered = self.runs(at).find(|runs| runs.is_buffered()).map(|runs| runs.of(Ran::mb_per_s)[0]);
        for runs in self.runs(at) {
            let median = |figure: &dyn Fn(&Ran) -> f64| runs.of(figure)[0];
            let [rate, least, most] = runs.of(Ran::mb_per_s);
            let rate_text =
                if repeats > 1 { format!("{rate:.0} ({least:.0} to {most:.0})") } else { format!("{rate:.0}") };
            let mut cells = vec![self.name(runs), rate_text];
            if competing {
                let of = |class: usize| median(&|ran| ran.classes[class].mb_per_s());
                let late = |class: usize| median(&|ran| ran.classes[class].latencies.per_mille_ms(999));
                cells.extend([0, 1].map(|class| whole(of(class))));
                cells.extend([0, 1].map(|class| format!("{:.2}", late(class))));
            } else {
                let late = |per_mille| median(&|ran| ran.latencies().per_mille_ms(per_mille));
                cells.push(buffered.map_or(String::new(), |base| format!("{:.0} %", 100.0 * rate / base.max(1e-9))));
                cells.push(whole(median(&Ran::accepted_mb_per_s)));
                cells.extend([format!("{:.3}", late(500)), format!("{:.2}", late(999))]);
                cells.push(format!("{:.1}", median(&|ran| ran.latencies().max_ms())));
            }
            cells.push(format!("{:.0}", median(&|ran| ran.dirty_bytes_max as f64 / 1e6)));
            table.row(cells);
        }
        table
    }

    /// Rates on a place, by load. Two classes have a table only.
    fn bars(&self, place: FileMedium) -> Option<Bars> {
        let loads = || self.plan.loads.iter().filter(|load| **load != Load::Competing);
        let mut names: Vec<String> = Vec::new();
        for load in loads() {
            for name in self.runs((place, *load)).map(|runs| self.name(runs)) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let title = format!("Written until durable, on {}", place.name());
        let bars = Bars::new(title, "written", Quantity::DataRate, names.clone());
        let bars = loads().fold(bars, |bars, load| {
            let bar = |name: &String| {
                let runs = self.runs((place, *load)).find(|runs| self.name(runs) == *name)?;
                let [rate, least, most] = runs.of(Ran::mb_per_s).map(|mb| mb * 1e6);
                Some(Bar::new(rate).within(least, most))
            };
            bars.group(load.about(), names.iter().map(bar).collect())
        });
        (!names.is_empty()).then_some(bars)
    }

    fn says(&self) -> Vec<String> {
        let plan = self.plan;
        let (size, block, memory) =
            (units::data(plan.bytes), units::memory(plan.block_bytes), units::memory(plan.memory_bytes));
        let mut says = Vec::new();
        says.extend(plan.quick.then(|| paragraph(QUICK)));
        says.extend(busy(self.load));
        says.push(filled(HOW, &[("size", &size), ("block", &block), ("memory", &memory)]));
        says.extend(plan.loads.contains(&Load::Competing).then(|| paragraph(TWO)));
        let form = Form::of(&plan.release).map(|form| match form {
            Form::None => NONE,
            Form::Old => OLD,
            Form::New => NEW,
        });
        says.extend(form.map(|text| filled(text, &[("release", &plan.release)])));
        says.push(paragraph(NOT_SHOWN));
        says
    }
}

/// Megabytes a second; `-` if the time was too short to measure.
fn whole(mb_per_s: f64) -> String {
    if mb_per_s < RATE_MAX { units::count(mb_per_s.round() as u64) } else { "-".to_owned() }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
