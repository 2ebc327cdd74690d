//! `afflux-lab list` and `afflux-lab run`: the experiments.
//!
//! Owns: showing rows and tables.
//! Does not own: the experiments (`experiments`), their options on the command line (`args`), the looks of figures
//! (`report`), the order of a page (`html`).
//! Invariants: standard output has only rows with `--json`, and only tables without it. Progress goes to standard
//! error: on a terminal at once, elsewhere a line now and then (`lines`).

mod html;
mod lines;

use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::time::Duration;

use afflux_experiments::{Experiment, Findings, LabError, Request, Watch};
use afflux_report::Row;
use afflux_report::terminal::Terminal;
use serde_json::json;

use crate::args::{List, Run, labels};
use afflux_report::command_line;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use html::capital;
use lines::Lines;

/// Between two lines of progress, and before the first, if standard error is no terminal.
const SAID_EVERY: Duration = Duration::from_secs(10);

/// Where a newcomer begins: a recorded kernel beside its model, without hardware.
const START: &str = "Start here: afflux-lab run throttled --case recorded
    A real Linux 6.1 beside its law in the simulator, second by second. It takes half a minute.";

pub(crate) fn list(args: &List) -> Outcome {
    if args.json {
        afflux_experiments::EXPERIMENTS.iter().for_each(|experiment| output::say(described(experiment)));
        return Ok(());
    }
    output::say(START);
    for Experiment { name, about, .. } in afflux_experiments::EXPERIMENTS {
        output::say(format_args!("{name:<14} {about}"));
    }
    output::say("The options of one: afflux-lab run NAME --help");
    Ok(())
}

fn described(experiment: &Experiment) -> serde_json::Value {
    let options: Vec<_> = experiment.command().get_arguments().map(option).collect();
    let (name, about, measured) = (experiment.name, experiment.about, experiment.can_measure);
    let labels: serde_json::Map<_, _> =
        labels(experiment).into_iter().map(|(label, words)| (label.to_owned(), words.into())).collect();
    json!({ "name": name, "about": about, "labels": labels, "measured": measured, "options": options })
}

fn option(arg: &clap::Arg) -> serde_json::Value {
    let value = arg.get_value_names().and_then(<[_]>::first).map_or("", |name| name.as_str());
    let default: String = arg.get_default_values().iter().map(|text| text.to_string_lossy()).collect();
    let doc = arg.get_help().map(ToString::to_string);
    json!({ "name": arg.get_long(), "value": value, "default": default, "doc": doc })
}

pub(crate) fn run(args: &Run) -> Outcome {
    let Run { experiment, form, options } = args;
    let request = Request { quick: form.quick, measured: form.measured, options: options.clone() };
    if request.measured && !experiment.can_measure {
        return Err(Failure::wrong_use(format!("{} has no measured part; leave out --measured", experiment.name)));
    }
    if let Some(directory) = &form.html {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::failed(format!("{} cannot be made: {error}", directory.display())))?;
    }
    let rows = form.html.is_some().then(Vec::new);
    let terminal = stderr().is_terminal();
    let lines = (!terminal).then(|| Lines::start(SAID_EVERY, output::remark));
    let mut watcher = Watcher { experiment, json: form.json, terminal, shown: false, lines, rows };
    let ended = experiment.run(&request, &mut watcher);
    watcher.clear();
    drop(watcher.lines.take());
    let findings = ended.map_err(|error| match error {
        LabError::Value { .. } => Failure::wrong_use(error.to_string()),
        _ => Failure::failed(error.to_string()),
    })?;
    if !form.json {
        output::say(text(experiment, &findings, Terminal::of_stdout()).trim_end());
    }
    if let Some(directory) = &form.html {
        let path = directory.join(format!("{}.html", experiment.name));
        let rows = watcher.rows.as_deref().unwrap_or_default();
        let asked = html::PageRequest { command: &command_line::own("afflux-lab"), quick: request.quick };
        write_page(&path, &html::html(experiment, findings, rows, &asked))?;
        if !form.json {
            output::say(format_args!("Page: {}", path.display()));
        }
    }
    Ok(())
}

/// Shows rows and progress.
struct Watcher {
    experiment: &'static Experiment,
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
            output::say(self.experiment.json(row));
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
    let opening = findings.opening.iter().map(|(word, text)| format!("{}: {text}\n", capital(word)));
    let answer = (!findings.answer.is_empty()).then(|| format!("{}\n", findings.answer));
    let labels = format!("{}.\n", capital(&findings.labels));
    let tables = findings.tables.iter().chain(&findings.details).map(|table| table.text(terminal));
    let says = findings.says.iter().map(|sentence| format!("{sentence}\n"));
    let name = format!("{}\n", experiment.about);
    let parts = std::iter::once(name).chain(opening).chain(answer).chain([labels]).chain(tables).chain(says);
    parts.collect::<Vec<_>>().join("\n")
}

fn write_page(path: &Path, html: &str) -> Outcome {
    std::fs::write(path, html)
        .map_err(|error| Failure::failed(format!("{} cannot be written: {error}", path.display())))
}
