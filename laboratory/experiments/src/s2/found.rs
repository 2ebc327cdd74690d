//! The findings of the experiment: tables, bars, sentences, and a description of this machine.
//!
//! Owns: their arrangement and wording. Does not own: the figures.
//! Invariants: if the intervals overlap, it says that there is no significant difference.

use afflux_report::{Align, Bar, Bars, Cell, Quantity, Table};

use super::drains::{self, Drain};
use super::loops::LoopKind;
use super::published::{Line, MACHINES, PublishedGain, TABLE, why};
use super::variants::{Measured, VARIANTS};
use crate::experiment::Findings;
use crate::prose::{paragraph, section};
use crate::statistics::Repetition;

const THE_COUNTS: &str = section(include_str!("found.md"), "the counts");
const THE_LOOPS: &str = section(include_str!("found.md"), "the loops");

/// Most letters of a drain's order in a table.
const ORDER_SHOWN: usize = 12;

/// The machine and how busy it is.
pub(super) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("a processor without a name", |(_, name)| name.trim());
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or("unknown");
    format!("Machine: {model}, {count} CPUs, Linux {}; load average at the start {load}.", kernel.trim())
}

pub(super) fn findings(
    drained: &[Drain],
    measured: &[Measured],
    repetition: Repetition,
    machine: &str,
    counted: &str,
) -> Findings {
    let mut findings = Findings::default();
    findings.details.push(drain_table(drained));
    findings.answer = answer(drained, measured);
    findings.says.push(drain_sentence(drained));
    findings.says.push(paragraph(THE_COUNTS));
    if measured.is_empty() {
        return findings;
    }
    findings.tables.push(loop_table(measured, repetition, machine));
    if measured.iter().any(|one| one.instructions.iter().any(Option::is_some)) {
        findings.tables.push(instruction_table(measured));
    }
    findings.tables.push(published_table(measured));
    let threads = [(1, "one thread"), (2, "two threads")];
    findings.figures.extend(threads.into_iter().filter_map(|(threads, name)| bars(measured, threads, name)));
    findings.says.push(counted.to_owned());
    findings.says.extend(disagreements(measured));
    findings.says.push(paragraph(THE_LOOPS));
    findings
}

/// The gain of the whole series in the loops, and whether the counts equal the kernels'.
fn answer(drained: &[Drain], measured: &[Measured]) -> String {
    let series = VARIANTS.iter().position(|variant| variant.name == "ZoneTunables");
    let gain = |one: &Measured| series.and_then(|series| one.gain_percent(series));
    let gains: Vec<(f64, &Measured)> = measured.iter().filter_map(|one| Some((gain(one)?, one))).collect();
    let counts = drain_sentence(drained);
    let most = gains.iter().max_by(|a, b| a.0.total_cmp(&b.0));
    match most.filter(|most| most.0 > 0.0) {
        Some((percent, one)) => format!(
            "The whole series gains most in the loop like {}, {percent:+.1} % with {} thread{}; in {} of {} loops there is no \
             significant difference. {counts}",
            one.work.name(),
            one.threads,
            if one.threads == 1 { "" } else { "s" },
            measured.len() - gains.len(),
            measured.len(),
        ),
        None if measured.is_empty() => counts,
        None => format!("In none of {} loops does the series gain anything significant. {counts}", measured.len()),
    }
}

fn drain_table(drained: &[Drain]) -> Table {
    let columns = [
        ("pages in the list, U/R/M", Align::Left),
        ("drained", Align::Left),
        ("form", Align::Left),
        ("lists examined", Align::Right),
        ("by the kernels' sources", Align::Right),
        ("inner looks", Align::Right),
        ("order", Align::Left),
    ];
    let mut table = Table::new("Drains of per-CPU lists: list heads examined", &columns).named_by(3);
    for drain in drained {
        let order = drains::order(&drain.drained);
        let shown: String = order.chars().take(ORDER_SHOWN).collect();
        let more = if order.len() > ORDER_SHOWN { "…" } else { "" };
        let examined = drain.drained.0.lists_examined;
        let differs = drain.by_sources.is_some_and(|counted| counted != examined);
        let text = examined.to_string();
        table.row([
            drain.contents.clone().into(),
            drain.count.to_string().into(),
            drain.variant.into(),
            if differs { Cell::flagged(text) } else { text.into() },
            drain.by_sources.map(|heads| heads.to_string()).unwrap_or_default().into(),
            drain.drained.0.inner_checks.to_string().into(),
            format!("{shown}{more}").into(),
        ]);
    }
    table.note(
        "U/R/M: how many pages of the list are unmovable, reclaimable and movable; in the order each letter is a page.",
    );
    table.note("Not in the list: afflux. It has one magazine, and gives a batch of it.");
    table
}

fn drain_sentence(drained: &[Drain]) -> String {
    let known: Vec<_> =
        drained.iter().filter_map(|drain| Some((drain.drained.0.lists_examined, drain.by_sources?))).collect();
    let same = known.iter().filter(|(own, counted)| own == counted).count();
    format!("Of {} counts of list heads that the kernels' sources give, {same} came out exactly.", known.len())
}

fn loop_table(measured: &[Measured], repetition: Repetition, machine: &str) -> Table {
    let mut columns = vec![("loop", Align::Left), ("threads", Align::Left)];
    columns.extend(VARIANTS.iter().map(|variant| (variant.name, Align::Right)));
    let mut table =
        Table::new("CPU time of an operation in ns, 99 % interval, gain over SingleList", &columns).named_by(2);
    for one in measured {
        let mut cells: Vec<Cell> = vec![one.work.name().into(), one.threads.to_string().into()];
        for (variant, estimate) in one.estimates.iter().enumerate() {
            let gain = match one.gain_percent(variant) {
                _ if variant == 0 => String::new(),
                Some(gain) => format!("  {gain:+.1} %"),
                None => "  n.s.".to_owned(),
            };
            let text = format!("{:.1} ±{:.1}{gain}", estimate.mean, estimate.half_width);
            cells.push(if estimate.is_within(repetition.within) { text.into() } else { Cell::flagged(text) });
        }
        cells.resize(2 + VARIANTS.len(), String::new().into());
        table.row(cells);
    }
    let within = repetition.within * 100.0;
    let rounds = repetition.rounds_max;
    table.note("n.s.: no significant difference, the intervals overlap. A gain is of throughput.");
    if measured.iter().any(|one| !one.work.asks_single_frames()) {
        table.note("afflux hands out single frames, so it has no figure where a loop asks for larger blocks.");
    }
    if measured.iter().any(|one| !one.sure) {
        table.note(format!("*: the interval was still wider than {within} % after {rounds} rounds, the bound."));
    }
    table.note(machine);
    table
}

fn instruction_table(measured: &[Measured]) -> Table {
    let mut columns = vec![("loop", Align::Left)];
    columns.extend(VARIANTS.iter().map(|variant| (variant.name, Align::Right)));
    let mut table = Table::new("Instructions of an operation, one thread, the loop's own included", &columns);
    for one in measured.iter().filter(|one| one.threads == 1) {
        let text = |variant| one.instructions.get(variant).copied().flatten().map(|count| format!("{count:.1}"));
        let counts = (0..VARIANTS.len()).map(|variant| text(variant).unwrap_or_default());
        table.row([one.work.name()].into_iter().chain(counts));
    }
    table
}

/// Our gain for the whole series.
fn ours(measured: &[Measured], work: LoopKind, threads: usize) -> Option<Option<f64>> {
    let series = VARIANTS.iter().position(|variant| variant.name == "ZoneTunables")?;
    let one = measured.iter().find(|one| one.work == work && one.threads == threads)?;
    Some(one.gain_percent(series))
}

fn gain_text(gain: Option<f64>) -> String {
    gain.map_or("n.s.".to_owned(), |gain| format!("{gain:+.1} %"))
}

fn published_table(measured: &[Measured]) -> Table {
    let mut columns = vec![("benchmark", Align::Left)];
    columns.extend(MACHINES.iter().map(|machine| (*machine, Align::Right)));
    columns.extend([("here, 1 thread", Align::Right), ("here, 2 threads", Align::Right)]);
    let mut table =
        Table::new("Gain by the whole series: published in 2009, and here by the loop that is like it", &columns);
    for line in &TABLE {
        let here = |threads| line.work.and_then(|work| ours(measured, work, threads)).map_or(String::new(), gain_text);
        let said = line.said.iter().map(|said| said.text());
        table.row([line.benchmark.to_owned()].into_iter().chain(said).chain([here(1), here(2)]));
    }
    table.note(
        "none: no significant difference or noise in the author's words. sysbench needs a data base: not repeated.",
    );
    table
}

/// A sentence for each benchmark whose result differs from one of the published machines; benchmarks with the same
/// reason share a sentence.
fn disagreements(measured: &[Measured]) -> Vec<String> {
    let mut by_reason: Vec<(String, Vec<String>)> = Vec::new();
    for line in &TABLE {
        let Some(work) = line.work else { continue };
        let Some(sentence) = disagreement(measured, line, work) else { continue };
        match by_reason.iter_mut().find(|(reason, _)| *reason == why(work)) {
            Some((_, sentences)) => sentences.push(sentence),
            None => by_reason.push((why(work), vec![sentence])),
        }
    }
    by_reason.into_iter().map(|(reason, sentences)| format!("{} {reason}", sentences.join(" "))).collect()
}

fn disagreement(measured: &[Measured], line: &Line, work: LoopKind) -> Option<String> {
    let gains: Vec<(usize, Option<f64>)> =
        [1, 2].into_iter().filter_map(|threads| Some((threads, ours(measured, work, threads)?))).collect();
    let differs = |said: PublishedGain| gains.iter().any(|(_, gain)| !said.agrees(*gain));
    let others = MACHINES.iter().zip(line.said).filter(|(_, said)| differs(*said));
    let others: Vec<String> = others.map(|(machine, said)| format!("{} on {machine}", said.text())).collect();
    let of = |(threads, gain): &(usize, Option<f64>)| {
        let plural = if *threads == 1 { "" } else { "s" };
        let gain = gain.map_or("no significant difference".to_owned(), |gain| format!("{gain:+.1} %"));
        format!("{gain} with {threads} thread{plural}")
    };
    let here: Vec<String> = gains.iter().map(of).collect();
    let name = line.benchmark;
    (!others.is_empty()).then(|| format!("{name}: published {}, here {}.", others.join(", "), here.join(", ")))
}

fn bars(measured: &[Measured], threads: usize, name: &str) -> Option<afflux_report::Figure> {
    let series = VARIANTS.iter().map(|variant| variant.name);
    let title = format!("CPU time of an operation, {name}");
    let mut bars = Bars::new(title, "CPU time of an operation", Quantity::Time, series).note("99 % intervals");
    let mut any = false;
    for one in measured.iter().filter(|one| one.threads == threads) {
        any = true;
        let bar = |estimate: &crate::statistics::Estimate| {
            let (mean, half) = (estimate.mean * 1e-9, estimate.half_width * 1e-9);
            Some(Bar::new(mean).within((mean - half).max(0.0), mean + half))
        };
        let of = |variant| one.estimates.get(variant).and_then(bar);
        bars = bars.group(one.work.name(), (0..VARIANTS.len()).map(of).collect());
    }
    any.then(|| bars.into())
}
