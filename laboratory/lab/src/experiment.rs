//! `afflux-lab list` and `afflux-lab run`: the experiments.
//!
//! Owns: reading the request, showing rows and tables.
//! Does not own: the experiments (the crate `lab`), the looks of figures (`report`), the order of a page (`html`).
//! Invariants: standard output has only rows with `--json`, and only tables without it. Progress goes to standard
//! error: on a terminal at once, elsewhere a line now and then (`lines`).

mod html;
mod lines;
#[cfg(test)]
mod tests;

use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::time::Duration;

use afflux_experiments::{Experiment, Findings, LabError, Labels, Request, Watch};
use afflux_report::Row;
use afflux_report::terminal::Terminal;
use serde_json::json;

use crate::args::{List, Run};
use afflux_report::command_line;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use lines::Lines;

/// Between two lines of progress, and before the first, if standard error is no terminal.
const SAID_EVERY: Duration = Duration::from_secs(10);

pub(crate) fn list(args: &List) -> Outcome {
    for experiment in afflux_experiments::EXPERIMENTS {
        if args.json {
            let options = experiment
                .options
                .iter()
                .map(|it| json!({ "name": it.name, "value": it.value, "default": it.default, "doc": it.doc }));
            let (name, about, measured) = (experiment.name, experiment.about, experiment.can_measure);
            let options: Vec<_> = options.collect();
            let Labels { put_in, chosen, predicted, hold_out } = experiment.labels;
            let labels =
                json!({ "put_in": put_in, "chosen_to_match": chosen, "predicted": predicted, "hold_out": hold_out });
            output::say(
                json!({ "name": name, "about": about, "labels": labels, "measured": measured, "options": options }),
            );
            continue;
        }
        output::say(format_args!("{:<12} {}\n    {}", experiment.name, experiment.about, experiment.labels));
        for option in experiment.options {
            let head = format!("--{} {}", option.name, option.value);
            let default = if option.default.is_empty() { String::new() } else { format!(" [{}]", option.default) };
            output::say(format_args!("    {head:<24} {}{default}", option.doc));
        }
    }
    Ok(())
}

pub(crate) fn run(args: &Run) -> Outcome {
    let experiment =
        afflux_experiments::experiment(&args.name).map_err(|error| Failure::wrong_use(error.to_string()))?;
    let mut args = ExperimentRequest::read(args)?;
    let request = Request { quick: args.quick, measured: args.measured, given: std::mem::take(&mut args.given) };
    request.check(experiment).map_err(|error| Failure::wrong_use(error.to_string()))?;
    if request.measured && !experiment.can_measure {
        return Err(Failure::wrong_use(format!("{} has no measured part; leave out --measured", experiment.name)));
    }
    if let Some(directory) = &args.html {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::failed(format!("{} cannot be made: {error}", directory.display())))?;
    }
    let rows = args.html.is_some().then(Vec::new);
    let terminal = stderr().is_terminal();
    let lines = (!terminal).then(|| Lines::start(SAID_EVERY, output::remark));
    let mut watcher = Watcher { json: args.json, terminal, shown: false, lines, rows };
    let ended = experiment.run(&request, &mut watcher);
    watcher.clear();
    drop(watcher.lines.take());
    let findings = ended.map_err(|error| match error {
        LabError::Value { .. } | LabError::NoOption { .. } => Failure::wrong_use(error.to_string()),
        _ => Failure::failed(error.to_string()),
    })?;
    if !args.json {
        output::say(text(experiment, &findings, Terminal::of_stdout()).trim_end());
    }
    if let Some(directory) = &args.html {
        let path = directory.join(format!("{}.html", experiment.name));
        let rows = watcher.rows.as_deref().unwrap_or_default();
        let asked = html::PageRequest { command: &command_line::own("afflux-lab"), quick: request.quick };
        write_page(&path, &html::html(experiment, findings, rows, &asked))?;
        if !args.json {
            output::say(format_args!("Page: {}", path.display()));
        }
    }
    Ok(())
}

/// The request, wherever on the line its parts stood.
struct ExperimentRequest {
    json: bool,
    html: Option<std::path::PathBuf>,
    quick: bool,
    measured: bool,
    given: Vec<(String, String)>,
}

impl ExperimentRequest {
    fn read(args: &Run) -> Outcome<Self> {
        let Run { json, quick, measured, .. } = *args;
        let mut asked = Self { json, html: args.html.clone(), quick, measured, given: Vec::new() };
        let mut words = args.options.iter();
        while let Some(word) = words.next() {
            let Some(text) = word.strip_prefix("--") else {
                return Err(Failure::wrong_use(format!("'{word}' is not --OPTION VALUE")));
            };
            let (name, given) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (text, None),
            };
            if let Some(switch) = asked.switch(name) {
                if let Some(value) = given {
                    return Err(Failure::wrong_use(format!("--{name} takes no value, and '{value}' was given")));
                }
                *switch = true;
                continue;
            }
            if args.has_switch(name) {
                if let Some(value) = given {
                    return Err(Failure::wrong_use(format!("--{name} takes no value, and '{value}' was given")));
                }
                asked.given.push((name.to_owned(), afflux_experiments::SWITCH_ON.to_owned()));
                continue;
            }
            let value = given.or_else(|| words.next().cloned());
            let value = value.ok_or_else(|| Failure::wrong_use(format!("--{name} needs a value")))?;
            match name {
                "html" => asked.html = Some(value.into()),
                _ => asked.given.push((name.to_owned(), value)),
            }
        }
        Ok(asked)
    }

    fn switch(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "json" => Some(&mut self.json),
            "quick" => Some(&mut self.quick),
            "measured" => Some(&mut self.measured),
            _ => None,
        }
    }
}

impl Run {
    /// Whether the experiment has a switch (an option without a value) of that name.
    fn has_switch(&self, name: &str) -> bool {
        let options = afflux_experiments::experiment(&self.name).map_or(&[][..], |experiment| experiment.options);
        options.iter().any(|option| option.name == name && option.value.is_empty())
    }
}

/// Shows rows and progress.
struct Watcher {
    json: bool,
    terminal: bool,
    shown: bool,
    /// Lines of progress; none on a terminal.
    lines: Option<Lines>,
    /// All rows, for a page.
    rows: Option<Vec<Row>>,
}

impl Watcher {
    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(stderr().lock(), "\r\x1b[K");
        }
    }
}

impl Watch for Watcher {
    fn row(&mut self, row: &Row) {
        if let Some(rows) = &mut self.rows {
            rows.push(row.clone());
        }
        if self.json {
            self.clear();
            output::say(row);
        }
    }

    fn step(&mut self, what: &str, done: f64) {
        let line = format!("{:>3.0} %  {}", done.clamp(0.0, 1.0) * 100.0, output::shown(what));
        if self.terminal {
            self.shown = true;
            let _ = write!(stderr().lock(), "\r\x1b[K{line}");
        }
        if let Some(lines) = &self.lines {
            lines.now(line);
        }
    }

    fn remark(&mut self, what: &str) {
        self.clear();
        output::remark(what);
    }
}

fn text(experiment: &Experiment, findings: &Findings, terminal: Terminal) -> String {
    let answer = (!findings.answer.is_empty()).then(|| format!("{}\n", findings.answer));
    let labels = format!("{}\n", experiment.labels);
    let tables = findings.tables.iter().chain(&findings.details).map(|table| table.text(terminal));
    let says = findings.says.iter().map(|sentence| format!("{sentence}\n"));
    answer.into_iter().chain([labels]).chain(tables).chain(says).collect::<Vec<_>>().join("\n")
}

fn write_page(path: &Path, html: &str) -> Outcome {
    std::fs::write(path, html)
        .map_err(|error| Failure::failed(format!("{} cannot be written: {error}", path.display())))
}
