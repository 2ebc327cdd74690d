//! `--check`: shows what would run.
//!
//! Owns: its words, and its object for `--json`.
//! Does not own: reading jobs (`description`), checking them (the simulation).
//! Invariants: nothing runs, and nothing is written.

use afflux_report::terminal::Terminal;
use afflux_report::{Align, Table};
use afflux_workloads::simulation::{PlannedJob, Simulation, SimulationError};
use serde_json::{Value, json};

use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use afflux_report::units;

/// Shows the jobs that would run; fails if one would not.
pub(super) fn show(simulations: &[Simulation], as_json: bool) -> Outcome {
    // Policies differ in the treatment of jobs; the jobs are the same for all.
    let Some(simulation) = simulations.first() else { return Ok(()) };
    let jobs = simulation.check().map_err(|error| match error {
        SimulationError::Description(what) => Failure::wrong_use(what),
        error => Failure::failed(error.to_string()),
    })?;
    let names: Vec<&str> = simulations.iter().map(|one| one.policy.as_str()).collect();
    if as_json {
        output::say(object(&names, &jobs));
        return Ok(());
    }
    output::say(format!("Would run under {}; nothing was run.\n", names.join(", ")));
    output::say(table(&jobs).text(Terminal::of_stdout()).trim_end());
    Ok(())
}

fn object(policies: &[&str], jobs: &[PlannedJob]) -> Value {
    let job = |job: &PlannedJob| {
        json!({
            "name": job.name,
            "clones": job.clones,
            "device": job.device,
            "files": job.files,
            // None for a job that goes on until its disk is full.
            "bytes": (job.bytes != u64::MAX).then_some(job.bytes),
            "in_flight": job.in_flight,
            "direct": job.direct,
            "stonewall": job.stonewall,
        })
    };
    json!({"check": true, "policies": policies, "jobs": jobs.iter().map(job).collect::<Vec<_>>()})
}

fn table(jobs: &[PlannedJob]) -> Table {
    let columns = [
        ("job", Align::Left),
        ("disk", Align::Left),
        ("files", Align::Right),
        ("at most", Align::Right),
        ("in flight", Align::Right),
        ("begins", Align::Left),
    ];
    let mut table = Table::new("Jobs", &columns);
    for job in jobs {
        let clones = if job.clones > 1 { format!(" ×{}", job.clones) } else { String::new() };
        let path = if job.direct { " past the cache" } else { "" };
        table.row([
            format!("{}{clones}", output::shown(&job.name)),
            format!("{}{path}", output::shown(&job.device)),
            units::count(job.files),
            if job.bytes == u64::MAX { "until full".to_owned() } else { units::memory(job.bytes) },
            units::count(job.in_flight),
            if job.stonewall { "after those above" } else { "" }.to_owned(),
        ]);
    }
    table
}
