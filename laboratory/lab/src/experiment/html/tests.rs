use std::path::PathBuf;
use std::{env, fs};

use afflux_experiments::{Experiment, Findings};
use afflux_report::{Align, Axis, Fields, FigureSource, Plot, Quantity, Row, Series, Shape, Table};

use super::{PageRequest, QUICK, ROWS_BYTES_MAX};

fn html(experiment: &Experiment, findings: Findings, rows: &[Row], command: &str) -> String {
    super::html(experiment, findings, rows, &PageRequest { command, quick: false })
}

static NOTHING: Experiment = Experiment {
    name: "nothing",
    about: "What a page of an experiment looks like",
    labels: &[],
    thread: "Thread: none",
    words: "# Words\n\n## 300 cs\n\nThree seconds,\nin centiseconds.\n",
    options: |command| command,
    can_measure: false,
    run: |_, _| Ok(Findings::default()),
};

fn findings() -> Findings {
    let table = |caption: &str| {
        let mut table = Table::new(caption, &[("law", Align::Left), ("MB/s", Align::Right)]);
        table.row(["none", "1"]);
        table
    };
    let plot = Plot::new("Rate", Axis::new("time", Quantity::Time), Axis::new("rate", Quantity::DataRate));
    Findings {
        labels: "put in: one; predicted: three".to_owned(),
        opening: vec![("proposed", "Somebody wants more.".to_owned()), ("open", "Much.".to_owned())],
        answer: "It is 1 MB/s.".to_owned(),
        tables: vec![table("Rates")],
        details: vec![table("Each run")],
        figures: vec![plot.with(Series::new("none", Shape::Line, vec![(0.0, 1e6), (1.0, 1e6)])).into()],
        says: vec!["It shows little.".to_owned()],
    }
}

fn row(source: FigureSource, length: usize) -> Row {
    let [experiment, variant] = ["nothing", "none"].map(str::to_owned);
    let metrics = Fields::new().with("text", "x".repeat(length));
    Row { experiment, variant, params: Fields::new(), metrics, published: Fields::new(), source }
}

#[test]
fn the_answer_is_first_plots_are_before_tables_and_rows_are_last_and_folded() {
    let page = html(&NOTHING, findings(), &[row(FigureSource::Simulated, 3)], "afflux-lab run nothing");
    let order = [
        "Proposed: Somebody wants more.",
        "Open: Much.",
        "It is 1\u{a0}MB/s.",
        "Thread: none.",
        "Put in: one; predicted: three.",
        "<pre tabindex=\"0\">afflux-lab run nothing</pre>",
        "<figure>",
        "Rates",
        "It shows little.",
        "<dt>300 cs</dt><dd>Three seconds, in centiseconds.</dd>",
        "<details>",
        "Each run",
        "&quot;text&quot;:&quot;xxx&quot;",
        "</details>\n</main>",
    ];
    let body = page.find("<body>").unwrap();
    let places: Vec<usize> =
        order.iter().map(|part| body + page[body..].find(part).unwrap_or_else(|| panic!("{part}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn a_quick_run_says_so_before_its_figures() {
    let asked = |quick| PageRequest { command: "afflux", quick };
    // The page has options in elements whose lines are not broken.
    let said = QUICK.split("--").next().unwrap();
    let page = super::html(&NOTHING, findings(), &[], &asked(true));
    assert!(page.find(said).unwrap() < page.find("<figure>").unwrap());
    assert!(!super::html(&NOTHING, findings(), &[], &asked(false)).contains(said));
}

#[test]
fn it_says_where_its_figures_are_from() {
    for (rows, origin) in [
        (vec![FigureSource::Simulated], "simulated"),
        (vec![FigureSource::Measured], "measured"),
        (vec![FigureSource::Measured, FigureSource::Simulated], "simulated and measured"),
    ] {
        let rows: Vec<Row> = rows.into_iter().map(|source| row(source, 1)).collect();
        let page = html(&NOTHING, findings(), &rows, "afflux");
        assert!(page.contains(&format!("<span class=\"origin\">{origin}</span>")), "{origin}");
    }
}

#[test]
fn many_rows_are_cut_and_it_says_so() {
    let rows: Vec<Row> = (0..6).map(|_| row(FigureSource::Simulated, ROWS_BYTES_MAX / 4)).collect();
    let page = html(&NOTHING, findings(), &rows, "afflux");
    assert!(page.len() < ROWS_BYTES_MAX + (64 << 10));
    assert!(
        page.contains("All 6 rows") && page.contains("and 3 more, which <span class=\"option\">--json</span> prints")
    );
}

#[test]
fn a_reader_finds_no_fault_with_the_page_of_an_experiment() {
    if afflux_page_check::installed().is_none() {
        afflux_scratch::skipped!("no Chromium (Debian: apt-get install --no-install-recommends chromium)");
        return;
    }
    let directory = afflux_scratch::Scratch::new(&std::env::temp_dir(), "cli-lab").unwrap().keep();
    let path = directory.join("lab.html");
    fs::write(&path, html(&NOTHING, findings(), &[row(FigureSource::Simulated, 9)], "afflux-lab run nothing")).unwrap();
    let pictures = env::var_os("AFFLUX_PICTURES").map(PathBuf::from);
    let faults = afflux_page_check::Checker::start().unwrap().check(&path, pictures.as_deref()).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn every_experiment_says_what_it_repeats_and_what_its_words_mean() {
    for experiment in afflux_experiments::EXPERIMENTS {
        let name = experiment.name;
        assert!(experiment.thread.starts_with("Thread"), "{name}");
        let words = afflux_report::entries(experiment.words);
        assert!(
            words.len() >= 4 && words.iter().all(|(word, meaning)| !word.is_empty() && meaning.len() > 10),
            "{name}"
        );
    }
}
