//! The findings of s4's measured part: a table, a plot, sentences.
//!
//! Owns: their arrangement and wording. Does not own: the figures.
//! Invariants: a sentence that names a figure takes it from the copies; the paragraph about the limits of the
//! experiment comes last.

use std::time::Duration;

use afflux_report::{Align, Axis, Plot, Quantity, Series, Shape, Table};

use super::columns::column_title;
use crate::experiment::Findings;
use crate::prose::{filled, section};
use crate::s4::measured::{Measured, Outcome};
use crate::s4::plan::{Plan, Threshold};
use crate::s4::published;
use crate::statistics::{Estimate, Samples};

const HOW: &str = section(include_str!("measured.md"), "how it was measured");

/// All copies of one server.
struct Server<'a> {
    copies: Vec<&'a Measured>,
    rates: Estimate,
}

impl Server<'_> {
    fn mean_of(&self, metric: impl Fn(&Measured) -> f64) -> f64 {
        self.copies.iter().map(|copy| metric(copy)).sum::<f64>() / self.copies.len().max(1) as f64
    }

    fn first(&self) -> &Measured {
        self.copies[0]
    }

    /// The percentage by which it is faster than `base`.
    fn gain(&self, base: &Self) -> f64 {
        (self.rates.mean / base.rates.mean - 1.0) * 100.0
    }
}

/// The servers, in the order in which they were first measured.
fn servers(copies: &[Measured]) -> Vec<Server<'_>> {
    let mut servers: Vec<Server<'_>> = Vec::new();
    for copy in copies {
        match servers.iter_mut().find(|server| server.first().is_like(copy)) {
            Some(server) => server.copies.push(copy),
            None => servers.push(Server { copies: vec![copy], rates: Samples::default().estimate() }),
        }
    }
    for server in &mut servers {
        let mut rates = Samples::default();
        server.copies.iter().for_each(|copy| rates.push(copy.rate_mb_per_s()));
        server.rates = rates.estimate();
    }
    servers
}

/// The seed's gain by a threshold, in percent.
fn published_gain(plan: &Plan, centisecs: u64) -> Option<f64> {
    let of = |centisecs| published::mean(centisecs, &plan.records).filter(|_| plan.is_published && centisecs > 0);
    let off = published::mean(0, &plan.records)?;
    of(centisecs).map(|mean| (mean / off - 1.0) * 100.0)
}

pub(in crate::s4) fn add_measured(findings: &mut Findings, plan: &Plan, outcome: &Outcome) {
    let servers = servers(&outcome.copies);
    findings.tables.insert(0, table(plan, &servers, &outcome.notes));
    findings.answer = [answer(plan, &servers), format!("Simulated: {}", findings.answer)].join(" ");
    if servers.iter().any(|server| !server.first().dirty().is_empty()) {
        findings.figures.push(plot(&servers).into());
    }
    // The paragraph about the limits of the experiment stays last.
    let last = findings.says.len().saturating_sub(1);
    findings.says.splice(last..last, says(plan, &servers));
}

fn table(plan: &Plan, servers: &[Server<'_>], notes: &[String]) -> Table {
    let ganesha = servers.iter().find(|server| server.first().is_ganesha());
    let mut columns = vec![
        ("server", Align::Left),
        ("cs", Align::Right),
        ("copies", Align::Right),
        ("MB/s", Align::Right),
        ("from, to", Align::Right),
        ("COMMIT, ms", Align::Right),
    ];
    columns.extend(ganesha.map(|_| ("to ganesha", Align::Right)));
    columns.extend(plan.is_published.then_some(("seed, to off", Align::Right)));
    let file = servers.first().map_or(plan.file_bytes, |server| server.first().file_bytes());
    let caption = format!("Measured on this machine, copies of {}", afflux_report::units::data(file));
    let mut found = Table::new(&caption, &columns);
    for server in servers {
        let mut cells = cells(server);
        let percent = |gain: Option<f64>| gain.map_or(String::new(), |gain| format!("{gain:+.1} %"));
        let gain = |base| percent(Some(server.gain(base)).filter(|_| !server.first().is_ganesha()));
        cells.extend(ganesha.map(gain));
        let of_seed = || percent(server.first().centisecs().and_then(|centisecs| published_gain(plan, centisecs)));
        cells.extend(plan.is_published.then(of_seed));
        found.row(cells);
    }
    let means = "Means over the copies, with the lowest and the highest rate.";
    found.note(match (ganesha, plan.is_published) {
        (Some(_), true) => format!(
            "{means} Beside them by how much a server is faster than nfs-ganesha, and the seed's kernel at that \
             threshold than without one."
        ),
        _ => means.to_owned(),
    });
    notes.iter().for_each(|note| found.note(note.as_str()));
    found
}

/// The cells that every table has.
fn cells(server: &Server<'_>) -> Vec<String> {
    let rates = server.copies.iter().map(|copy| copy.rate_mb_per_s());
    let (least, most) = rates.fold((f64::MAX, 0.0_f64), |(least, most), rate| (least.min(rate), most.max(rate)));
    vec![
        server.first().server().to_owned(),
        server.first().centisecs().map_or("-".to_owned(), |centisecs| centisecs.to_string()),
        server.copies.len().to_string(),
        format!("{:.2}", server.rates.mean),
        format!("{least:.2}, {most:.2}"),
        format!("{:.0}", server.mean_of(Measured::commit_wait_ms)),
    ]
}

fn plot(servers: &[Server<'_>]) -> Plot {
    let (x, y) = (Axis::new("time since the copy began", Quantity::Time), Axis::new("dirty", Quantity::Data));
    let plot = Plot::new("Dirty data on the server during one copy, measured", x, y).note(
        "The first copy of each. Writing begins at the threshold and ends when there is nothing left to begin: what a \
         COMMIT finds depends on where in that cycle it comes.",
    );
    let shown = servers.iter().filter(|server| matches!(server.first().centisecs(), Some(0 | 100)));
    shown.fold(plot, |plot, server| {
        let title = column_title(Threshold::Centisecs(server.first().centisecs().unwrap_or_default()));
        plot.with(Series::new(title, Shape::Line, server.first().dirty()))
    })
}

fn says(plan: &Plan, servers: &[Server<'_>]) -> Vec<String> {
    let second = Duration::from_secs(1);
    let by = match servers.first().map(|server| server.first().limiters()) {
        Some("process") => "this process, which a machine that is busy makes slower",
        _ => "the kernel, so that these figures hardly depend on what else the machine does",
    };
    let link = afflux_report::units::rate(plan.link.bits_per_second / 8, second);
    let disk = afflux_report::units::rate(plan.disk_bytes_per_s, second);
    let window = afflux_report::units::data(plan.window_bytes);
    let values = [("link", link.as_str()), ("disk", &disk), ("limiters", by), ("window", &window)];
    vec![filled(HOW, &values)]
}

/// The rate of each server, and the knob's gain over nfs-ganesha on the kernel's page cache.
fn answer(plan: &Plan, servers: &[Server<'_>]) -> String {
    let rate = |server: &Server<'_>| {
        let (name, mean) = (server.first().server(), server.rates.mean);
        match server.first().centisecs() {
            Some(centisecs) => format!("{name} at {centisecs} cs {mean:.2} MB/s"),
            None => format!("{name} {mean:.2} MB/s"),
        }
    };
    let rates = servers.iter().map(rate).collect::<Vec<_>>().join("; ");
    [format!("Measured: {rates}.")].into_iter().chain(gained(plan, servers)).collect::<Vec<_>>().join(" ")
}

fn gained(plan: &Plan, servers: &[Server<'_>]) -> Option<String> {
    let at = |centisecs| servers.iter().find(|server| server.first().centisecs() == Some(centisecs));
    let ganesha = servers.iter().find(|server| server.first().is_ganesha())?;
    let (knob, seed) = (at(100)?, published_gain(plan, 100)?);
    Some(format!(
        "So 100 centiseconds on our server take {:+.1} % more than nfs-ganesha over the kernel's page cache; in the seed the \
         patch took {seed:+.1} % more than the kernel without.",
        knob.gain(ganesha)
    ))
}
