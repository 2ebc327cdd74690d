//! `afflux-lab devices`: the disks that can be simulated, those of the user's own files too.
//!
//! Owns: the list's layout.
//! Does not own: models, parameters and sources (the simulator).
//! Invariants: every parameter has the name by which `--device` changes it. A disk that was named is shown with the
//! source of every parameter.

mod speeds;
#[cfg(test)]
mod tests;

use afflux_report::terminal::Terminal;
use afflux_report::{Align, Table, units};
use afflux_simulator::catalogue::{self, Model, Parameter, Unit};
use serde_json::{Value, json};

use crate::args;
use crate::simulate::disks;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use speeds::Speeds;

pub(crate) fn run(args: &args::Devices) -> Outcome {
    let models = chosen(&args.names)?;
    let models: Vec<&Model> = models.iter().collect();
    if args.json {
        for model in models {
            output::say(object(model));
        }
        return Ok(());
    }
    let terminal = Terminal::of_stdout();
    if args.names.is_empty() {
        output::say(overview(&models, terminal)?.trim_end());
    } else {
        let details: Vec<String> = models.iter().map(|model| detail(model, terminal)).collect();
        output::say(details.join("\n").trim_end());
    }
    Ok(())
}

/// The disks given by name or file, or all built-in ones.
fn chosen(names: &[String]) -> Outcome<Vec<Model>> {
    if names.is_empty() {
        return catalogue::builtin().map_err(|error| Failure::failed(error.to_string()));
    }
    names.iter().map(|name| disks::model(name)).collect()
}

/// A table of the disks: the speed of each, and its description.
fn overview(models: &[&Model], terminal: Terminal) -> Outcome<String> {
    let columns = [
        ("device", Align::Left),
        ("sequential read", Align::Right),
        ("write, MB/s", Align::Right),
        ("random read", Align::Right),
        ("write, IOPS", Align::Right),
        ("cache", Align::Right),
        ("flush", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new("", &columns);
    for model in models {
        let speeds = Speeds::of(model)?;
        let megabytes = |bytes: u64| match bytes {
            few if few < 9_950_000 => format!("{:.1}", few as f64 / 1e6),
            many => units::count((many + 500_000) / 1_000_000),
        };
        table.row([
            model.name.clone(),
            megabytes(speeds.bytes.0),
            megabytes(speeds.bytes.1),
            units::count(speeds.random.0),
            units::count(speeds.random.1),
            cache(model),
            flush(model),
            model.about.clone(),
        ]);
    }
    table.note("The model's own rates in sequence, and for 4 KiB at random with up to 32 in flight; writes count once durable.");
    table.note(
        "Cache: the device's own; a volatile one loses its data with the power. Flush: the shortest time to empty it.",
    );
    table.note("afflux-lab devices NAME shows each number and its source.");
    Ok(table.text(terminal))
}

/// A parameter of a model, if its kind has it.
fn number(model: &Model, name: &str) -> Option<u64> {
    model.parameters.iter().find(|parameter| parameter.key.name == name).map(|parameter| parameter.value)
}

fn cache(model: &Model) -> String {
    let bytes = number(model, "write_cache_bytes").or(number(model, "memory_bytes")).filter(|bytes| *bytes > 0);
    let Some(bytes) = bytes else { return "none".to_owned() };
    // A turning disk's cache is volatile; a flash drive may have a capacitor.
    let volatile = number(model, "volatile").is_none_or(|volatile| volatile != 0);
    format!("{}{}", units::memory(bytes), if volatile { ", volatile" } else { "" })
}

fn flush(model: &Model) -> String {
    number(model, "flush_ns").filter(|ns| *ns > 0).map_or_else(|| "none".to_owned(), units::latency)
}

/// Every parameter of one disk, with its meaning and its source.
fn detail(model: &Model, terminal: Terminal) -> String {
    let caption = format!("{}: {} ({})", model.name, model.about, model.kind.name());
    let columns = [("parameter", Align::Left), ("", Align::Right), ("source", Align::Left)];
    let mut table = Table::new(caption, &columns);
    for parameter in &model.parameters {
        table.row([parameter.key.name, &shown(parameter), &parameter.source]);
    }
    if !model.zones.is_empty() {
        table.row(["zones", &zones(model), &model.zones_source]);
    }
    table.row(["scheduler", scheduler(model), ""]);
    table.row(["allocation", allocation(model), ""]);
    table.text(terminal)
}

fn shown(parameter: &Parameter) -> String {
    parameter.key.unit.show(parameter.value)
}

/// Rates from the outer edge inwards: `50 % 90 MB/s, 50 % 60 MB/s`.
fn zones(model: &Model) -> String {
    let zone =
        |&(per_mille, rate): &(u64, u64)| format!("{} % {}", per_mille as f64 / 10.0, Unit::BytesPerSecond.show(rate));
    model.zones.iter().map(zone).collect::<Vec<_>>().join(", ")
}

fn scheduler(model: &Model) -> &'static str {
    if model.deadline { "deadline" } else { "none" }
}

fn allocation(model: &Model) -> &'static str {
    if model.allocate_at_submission { "at-submission" } else { "delayed" }
}

fn object(model: &Model) -> Value {
    let parameter = |parameter: &Parameter| {
        json!({
            "name": parameter.key.name,
            "value": parameter.value,
            "text": shown(parameter),
            "meaning": parameter.key.doc,
            "source": parameter.source,
        })
    };
    let zone = |&(per_mille, rate): &(u64, u64)| json!({"per_mille": per_mille, "bytes_per_second": rate});
    json!({
        "name": model.name,
        "about": model.about,
        "kind": model.kind.name(),
        "capacity_bytes": model.capacity_bytes(),
        "parameters": model.parameters.iter().map(parameter).collect::<Vec<_>>(),
        "zones": model.zones.iter().map(zone).collect::<Vec<_>>(),
        "zones_source": model.zones_source,
        "scheduler": scheduler(model),
        "allocation": allocation(model),
    })
}
