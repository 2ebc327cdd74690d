//! `afflux devices`: the disks that can be simulated, those of the user's own files too.
//!
//! Owns: how they are listed.
//! Does not own: models, parameters and sources (the simulator).
//! Invariants: every parameter is shown under the name by which `--device` changes it; of a disk that
//! was named, with its source.

#[cfg(test)]
mod tests;

use report::terminal::{Paint, Terminal};
use report::{Align, Table};
use serde_json::{Value, json};
use simulator::catalogue::{self, Model, Parameter, Unit};

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::output;
use crate::simulate::disks;

/// Columns that a list of parameters is broken at.
const LINE_WIDTH: usize = 96;

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
        output::say(overview(&models, terminal).trim_end());
    } else {
        let details: Vec<String> = models.iter().map(|model| detail(model, terminal)).collect();
        output::say(details.join("\n").trim_end());
    }
    Ok(())
}

/// Those named, each by its name or its file, or all that come along.
fn chosen(names: &[String]) -> Outcome<Vec<Model>> {
    if names.is_empty() {
        return catalogue::builtin().map_err(|error| Failure::failed(error.to_string()));
    }
    names.iter().map(|name| disks::model(name)).collect()
}

/// Each with what it is, and with the numbers that its file sets.
fn overview(models: &[&Model], terminal: Terminal) -> String {
    let mut text = String::new();
    for model in models {
        text.push_str(&format!("{}  {}\n", terminal.paint(Paint::Strong, &model.name), model.about));
        for line in wrapped(&numbers(model)) {
            text.push_str(&format!("  {}\n", terminal.paint(Paint::Faint, &line)));
        }
    }
    text + "\nafflux devices NAME shows where each number is from.\n"
}

fn numbers(model: &Model) -> Vec<String> {
    let set = model.parameters.iter().filter(|parameter| parameter.source != "default");
    let mut numbers: Vec<String> = set.map(|it| format!("{} {}", it.key.name, shown(it))).collect();
    if !model.zones.is_empty() {
        numbers.push(format!("zones {}", zones(model)));
    }
    numbers
}

/// In lines, broken between numbers.
fn wrapped(numbers: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for number in numbers {
        match lines.last_mut() {
            Some(line) if line.chars().count() + number.chars().count() + 2 <= LINE_WIDTH => {
                line.push_str(", ");
                line.push_str(number);
            }
            _ => lines.push(number.clone()),
        }
    }
    lines
}

/// Every number of one, with what it means and where it is from.
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
