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

use afflux_experiments::{Experiment, Findings, LabError, Label, OptionInfo, Request, Watch};
use afflux_report::Row;
use afflux_report::terminal::Terminal;
use serde_json::json;

use crate::args::{Arguments, List, Run};
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
    let option = |it: &OptionInfo| json!({ "name": it.name, "value": it.value, "default": it.default, "doc": it.doc });
    let options: Vec<_> = experiment.options.iter().map(option).collect();
    let (name, about, measured) = (experiment.name, experiment.about, experiment.can_measure);
    json!({ "name": name, "about": about, "labels": labels(experiment), "measured": measured, "options": options })
}

/// The cells of each label, in words.
fn labels(experiment: &Experiment) -> serde_json::Map<String, serde_json::Value> {
    let of = |label: Label| {
        let cells = experiment.labels.iter().filter(|cells| cells.label == label);
        let mut words: Vec<&str> = cells.map(|cells| cells.what).collect();
        words.dedup();
        (label.words().to_owned(), words.into())
    };
    Label::ALL.into_iter().map(of).collect()
}

/// The thread, the options and the labels of an experiment.
fn help(experiment: &Experiment) -> String {
    let Experiment { name, about, thread, options, .. } = experiment;
    let mut text = format!("{about}\n\n{thread}.\n\nOptions of afflux-lab run {name}:\n");
    for option in *options {
        let head = format!("--{} {}", option.name, option.value);
        let default = if option.default.is_empty() { String::new() } else { format!(" [{}]", option.default) };
        text.push_str(&format!("  {head:<26} {}{default}\n", option.doc));
    }
    text.push_str("\nFigures are predicted unless they are\n");
    for (label, words) in labels(experiment) {
        let words: Vec<&str> = words.as_array().into_iter().flatten().filter_map(|word| word.as_str()).collect();
        if !words.is_empty() {
            text.push_str(&format!("  {label}: {}\n", words.join(", ")));
        }
    }
    text
}

pub(crate) fn run(args: &Run) -> Outcome {
    let is_help = args.help || args.options.iter().any(|word| word == "--help" || word == "-h");
    let Some(name) = &args.name else {
        output::say(Arguments::help_of("run"));
        return Ok(());
    };
    let experiment = afflux_experiments::experiment(name).map_err(|error| Failure::wrong_use(error.to_string()))?;
    if is_help {
        output::say(help(experiment).trim_end());
        return Ok(());
    }
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
    let mut watcher = Watcher { experiment, json: args.json, terminal, shown: false, lines, rows };
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
        let experiment = self.name.as_deref().unwrap_or_default();
        let options = afflux_experiments::experiment(experiment).map_or(&[][..], |experiment| experiment.options);
        options.iter().any(|option| option.name == name && option.value.is_empty())
    }
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
