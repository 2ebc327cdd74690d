//! The goals of s3.
//!
//! Owns: the goals. Does not own: the figures.
//! Invariants: 'met' is computed from cells of the run. A goal has no line if its cells were not run, or were not run
//! under the published load.

use afflux_report::units;

use super::cell::Cell;
use super::plan::OWN;
use super::published;
use crate::views::Check;

/// Forms by published failures, most first; the last two count as one form here.
const BY_FAILURES: [&str; 5] = ["base", "time-limit-20ms", "time-limit-100ms", "wmark-min", "wmark-high"];

pub(super) fn find<'a>(cells: &'a [Cell], variant: &str) -> Option<&'a Cell> {
    cells.iter().find(|cell| cell.variant == variant)
}

pub(super) fn goals(cells: &[Cell]) -> Vec<Check> {
    let all = [stalls(cells), delays(cells), kswapd(cells), failures(cells), own(cells)];
    all.into_iter().flatten().collect()
}

fn goal(what: impl Into<String>, found: String, met: bool) -> Check {
    Check { what: what.into(), found, met }
}

fn stalls(cells: &[Cell]) -> Vec<Check> {
    let of = |variant: &str| {
        let cell = find(cells, variant)?;
        let published = published::of(variant, &cell.load)?.stalls()?;
        let off = (cell.count("allocstall") / published - 1.0) * 100.0;
        let what = format!("{variant}: stalls within 15 % of {}", units::count(published.round() as u64));
        Some(goal(what, format!("{off:+.1} %"), off.abs() <= 15.0))
    };
    ["base", "wmark-min", "wmark-high"].into_iter().filter_map(of).collect()
}

fn delays(cells: &[Cell]) -> Vec<Check> {
    let mean = |variant: &str| find(cells, variant).map(|cell| cell.reclaim().mean_ms);
    let (Some(base), Some(high)) = (mean("base"), mean("wmark-high")) else { return Vec::new() };
    if base == 0.0 || high == 0.0 {
        return Vec::new();
    }
    let times = high / base;
    let mut goals = vec![goal(
        "a reclaim takes more than ten times as long under wmark-high as under base",
        format!("{base:.1} and {high:.0} ms, {times:.1} times"),
        times > 10.0,
    )];
    if let Some(limited) = mean("time-limit-100ms") {
        let share = limited / high;
        let found = format!("{limited:.0} ms, {share:.2} of it");
        goals.push(goal("about half of that with a limit of 100 ms", found, (0.35..=0.65).contains(&share)));
        goals.extend(response(cells));
    }
    goals
}

/// The author felt that shorter reclaims hardly help a machine to respond.
fn response(cells: &[Cell]) -> Option<Check> {
    let [long, short] =
        ["wmark-high", "time-limit-100ms"].map(|variant| Some(find(cells, variant)?.interactive().mean_ms));
    let (long, short) = (long.filter(|ms| *ms > 0.0)?, short?);
    let found = format!("{long:.1} and {short:.1} ms");
    Some(goal(
        "a small task waits half to twice as long with that limit as without",
        found,
        (0.5..=2.0).contains(&(short / long)),
    ))
}

/// kswapd is a task like others, so it does about as much under each form.
fn kswapd(cells: &[Cell]) -> Vec<Check> {
    let of = |variant: &str| {
        let cell = find(cells, variant)?;
        let steal = published::of(variant, &cell.load)?.counter("kswapd_steal")?;
        let times = cell.count("kswapd_steal") / steal as f64;
        let what = format!("{variant}: kswapd frees {} pages, within a factor of two", units::count(steal));
        Some(goal(what, format!("{times:.2} times"), (0.5..=2.0).contains(&times)))
    };
    published::PUBLISHED.iter().filter_map(|it| of(it.variant)).collect()
}

fn failures(cells: &[Cell]) -> Vec<Check> {
    let found: Vec<f64> =
        BY_FAILURES.iter().filter_map(|variant| find(cells, variant)).map(|cell| cell.count("nr_alloc_fail")).collect();
    if found.len() < BY_FAILURES.len() {
        return Vec::new();
    }
    let falls = found.windows(2).all(|pair| pair[0] > pair[1]);
    let met = falls && found.iter().all(|count| *count > 0.0);
    let counts: Vec<String> = found.iter().map(|count| format!("{count:.0}")).collect();
    let what = format!("failures fall in the published order, {}, each above zero", BY_FAILURES.join(", "));
    vec![goal(what, counts.join(", "), met)]
}

fn own(cells: &[Cell]) -> Vec<Check> {
    let Some(own) = find(cells, OWN) else { return Vec::new() };
    let waits = own.reclaim();
    let mut goals = vec![
        goal(
            "afflux: demand_alloc_fail 0",
            format!("{:.0}", own.count("demand_alloc_fail")),
            own.count("demand_alloc_fail") == 0.0,
        ),
        goal(
            "afflux: a reclaim takes at most 1 ms on average",
            format!("{:.3} ms", waits.mean_ms),
            waits.mean_ms <= 1.0,
        ),
        goal("afflux: 99 of 100 take at most 10 ms", format!("{:.3} ms", waits.p99_ms), waits.p99_ms <= 10.0),
    ];
    if let Some(base) = find(cells, "base") {
        let (ours, theirs) = (own.reclaim_ms_a_reader(), base.reclaim_ms_a_reader());
        let found = format!("{ours:.1} of {theirs:.0} ms");
        goals.push(goal("afflux: a hundredth of base's time in reclaim", found, ours <= theirs / 100.0));
    }
    let others = cells.iter().filter(|cell| !cell.is_on_engine()).map(Cell::total_s);
    if let Some(best) = others.min_by(f64::total_cmp) {
        let found = format!("{:.1} and {best:.1} s", own.total_s());
        goals.push(goal("afflux: no later done than the best of the others", found, own.total_s() <= best));
    }
    goals
}
