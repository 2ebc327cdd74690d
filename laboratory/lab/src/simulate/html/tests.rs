use std::path::PathBuf;
use std::{env, fs};

use super::super::ended_run::Run;
use super::super::tests::{run, two};
use super::PageInputs;

/// The sentence of a run that replays a trace.
const REPLAYED: &str = "calls.trace has 121 calls of 2 files in 4.31 s. Each call begins at its recorded time.";

fn page(run: &Run) -> String {
    of(std::slice::from_ref(run))
}

fn of(runs: &[Run]) -> String {
    let files = vec![("backup.fio".to_owned(), "[backup]\nrw=write # <all>\n".to_owned())];
    let asked =
        PageInputs { command: "afflux-lab simulate backup.fio".to_owned(), files, replayed: vec![REPLAYED.to_owned()] };
    // Numbers stay on the line of their unit.
    super::page(runs, &asked).replace('\u{a0}', " ")
}

#[test]
fn the_answer_is_first_plots_are_before_tables_and_long_lists_last_and_folded() {
    for page in [page(&run()), of(&two())] {
        let parts = [
            "<p class=\"answer\">",
            "accepted after 40 s, on disk after 44 s",
            "<pre tabindex=\"0\">afflux-lab simulate backup.fio</pre>",
            REPLAYED,
            "<figure>",
            "Latency of the slowest calls",
            "<table ",
            "The job file</h2>",
            "[backup]\nrw=write # &lt;all&gt;</pre>",
            "<dt>seed, trace</dt>",
            "<details>",
            "nr_dirtied",
        ];
        let places = parts.map(|part| page.find(part).unwrap_or_else(|| panic!("{part}")));
        assert!(places.is_sorted(), "{places:?}");
        let after = page.rfind("</details>").unwrap();
        assert!(!page[after..].contains("<table"), "nothing comes after what is folded");
    }
}

#[test]
fn a_long_job_file_is_folded() {
    let files = vec![("long.fio".to_owned(), "# a line\n".repeat(200))];
    let page = super::page(&[run()], &PageInputs { files, ..PageInputs::default() });
    assert!(page.contains("<summary>long.fio, 200 lines</summary>"));
}

#[test]
fn every_plot_is_there_under_its_heading() {
    let page = page(&run());
    for title in ["Throughput", "Dirty memory", "Queue depth", "Where the disk worked", "Latency of the slowest calls"]
    {
        assert!(page.contains(&format!("<figcaption><b>{title}</b>")), "{title}");
    }
    assert!(page.contains("<span class=\"origin\">simulated</span>"));
    assert!(page.contains("&lt;desktop&gt;: read: Input/output error (EIO), once"));
    assert!(page.contains("seed 7, trace 00abcdef01234567"));
}

#[test]
fn plots_of_several_runs_are_over_each_other() {
    let page = of(&two());
    let at = |title: &str| page.find(&format!("<figcaption><b>{title}</b>")).unwrap_or_else(|| panic!("{title}"));
    let titles = ["Throughput", "Dirty memory", "Queue depth", "Where the disk worked"];
    let places: Vec<usize> =
        titles.iter().flat_map(|title| [at(&format!("{title}: afflux")), at(&format!("{title}: linux-6.1"))]).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(page.contains("afflux: what went wrong") && page.contains("traces: afflux 00abcdef01234567"));
}

#[test]
fn a_run_without_samples_makes_a_page() {
    let mut run = run();
    run.figures.devices[0].samples.clear();
    run.figures.devices[0].offsets.clear();
    run.figures.jobs.clear();
    assert!(page(&run).contains("no data"));
    assert_eq!(super::page(&[], &PageInputs::default()), "");
}

#[test]
fn a_burst_into_the_cache_does_not_hide_the_disk() {
    let mut run = run();
    assert!(!page(&run).contains("Cut at the top"));
    run.figures.devices[0].samples[1].accepted_bytes = 500_000_000;
    let page = page(&run);
    assert!(page.contains("Cut at the top: the cache accepted up to 1.02 GB/s."), "{page}");
    assert!(page.contains("Throughput (MB/s)"), "the unit is still the disk's");
}

#[test]
fn a_reader_finds_no_fault_with_the_page() {
    if afflux_page_check::installed().is_none() {
        afflux_scratch::skipped!("no Chromium (Debian: apt-get install --no-install-recommends chromium)");
        return;
    }
    let directory = afflux_scratch::Scratch::new(&std::env::temp_dir(), "cli-pages").unwrap().keep();
    let path = directory.join("simulate.html");
    let pictures = env::var_os("AFFLUX_PICTURES").map(PathBuf::from);
    for text in [page(&run()), of(&two())] {
        fs::write(&path, text).unwrap();
        let faults = afflux_page_check::Checker::start().unwrap().check(&path, pictures.as_deref()).unwrap();
        assert_eq!(faults, Vec::<String>::new());
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn latencies_of_all_policies_have_one_axis() {
    let page = of(&two());
    let drawings = page.split("<figcaption>").filter(|part| part.starts_with("<b>Latency of the slowest calls: "));
    let ticks: Vec<String> = drawings
        .map(|part| {
            part.split("class=\"tick\" text-anchor=\"end\">").skip(1).filter_map(|it| it.split('<').next()).collect()
        })
        .collect();
    assert_eq!(ticks.len(), 2);
    assert!(!ticks[0].is_empty() && ticks[0] == ticks[1], "{ticks:?}");
}

#[test]
fn one_call_in_a_thousand_is_not_told_of_twelve() {
    let run = run();
    let [sync, write] = [&run.figures.jobs[0].sync, &run.figures.jobs[0].write];
    let one_in = |call| super::slowest(call).iter().map(|(one_in, _)| one_in.round()).collect::<Vec<_>>();
    assert_eq!(one_in(sync), [2.0, 10.0], "of 12 calls");
    assert_eq!(one_in(write), [2.0, 10.0, 100.0, 1_000.0, 10_000.0], "of 15,259 calls");
}

#[test]
fn one_short_peak_of_a_disk_does_not_flatten_its_curve() {
    let mut run = run();
    assert!(!page(&run).contains("Cut at the top"));
    run.figures.devices[0].samples[30].moved_bytes.1 *= 40;
    let page = page(&run);
    assert!(page.contains("Cut at the top: the disk wrote up to "), "it says what it leaves out");
}
