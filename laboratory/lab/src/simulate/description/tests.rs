use afflux_simulator::DiskOptions;
use afflux_workloads::simulation::{DeviceChoice, Simulation};

use afflux_workloads::fio::Likeness;

use super::{Host, add_jobs, costs, policies};

fn plain(knobs: &[&str]) -> Simulation {
    let mut simulation = Simulation::new(1, DeviceChoice::plain(DiskOptions::default()));
    simulation.knobs = knobs.iter().map(|knob| (*knob).to_owned()).collect();
    simulation
}

#[test]
fn knobs_and_policies_are_checked_before_the_run() {
    let of = |names: &[&str], knobs: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let simulations = policies(&names, plain(knobs)).map_err(|failure| failure.to_string())?;
        Ok(simulations.into_iter().map(|one| one.policy).collect::<Vec<_>>())
    };
    assert_eq!(of(&[], &["dirty_ratio=20", "nr_requests=128"]), Ok(vec!["afflux".to_owned()]));
    assert_eq!(of(&["linux-6.1", "afflux"], &[]), Ok(vec!["linux-6.1".to_owned(), "afflux".to_owned()]));
    for (names, knobs, part) in [
        (&[][..], &["dirty_ratio=91"][..], "--set: dirty_ratio: 91 is out of range (1 to 90 percent"),
        (&["afflux", "linux-3.6"], &["dirty_ratio=91"], "--set, under afflux: dirty_ratio: 91"),
        (&["linux-9"], &[], "--policy: there is no policy 'linux-9'; there are afflux, equal-parts, linux-3.6, "),
        (&["afflux", "afflux"], &[], "--policy: afflux is there twice"),
    ] {
        let said: Result<Vec<String>, String> = of(names, knobs);
        assert!(said.as_ref().is_err_and(|said| said.starts_with(part)), "{said:?}");
    }
}

#[test]
fn a_later_job_file_begins_when_those_before_have_ended() {
    let directory = afflux_scratch::Scratch::new(&std::env::temp_dir(), "jobs").unwrap().keep();
    let (mut jobs, mut warnings, mut host) = (Vec::new(), Vec::new(), Host::default());
    for name in ["a", "b"] {
        let path = directory.join(name);
        std::fs::write(&path, format!("[{name}1]\nsize=1m\n[{name}2]\nsize=1m\n")).unwrap();
        add_jobs(path.to_str().unwrap(), Likeness::Same, &mut host, &mut jobs, &mut warnings).unwrap();
    }
    std::fs::remove_dir_all(directory).unwrap();
    let walls: Vec<_> = jobs.iter().map(|job| (job.name.as_str(), job.stonewall)).collect();
    // fio 3.33 numbers its groups so: a1 and a2 together, then b1 and b2 together.
    assert_eq!(walls, [("a1", false), ("a2", false), ("b1", true), ("b2", false)]);
}

#[test]
fn costs_are_a_table_or_a_file() {
    assert!(costs("epyc-2026").is_ok());
    for (text, part) in [
        ("cray-1", "--costs: there is no table 'cray-1'; there are epyc-2026, "),
        ("./none.toml", "./none.toml cannot be read: No such file"),
    ] {
        let said = costs(text).map(drop).unwrap_err().to_string();
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn what_a_job_file_includes_is_found_beside_it_and_complaints_name_it() {
    let directory = afflux_scratch::Scratch::new(&std::env::temp_dir(), "cli-includes").unwrap().keep();
    let put = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
    put("sizes.fio", "size=1m\ninclude blocks.fio\n");
    put("blocks.fio", "bs=4k\n");
    put("circle.fio", "bs=4k\ninclude circle.fio\n");
    put("wrong.fio", "size=1m\nbs=x\n");
    let parsed = |including: &str| {
        let (job, mut host) = (directory.join("job.fio"), Host::default());
        let text = format!("[a]\nrw=write\ninclude {including}\n");
        let parsed = afflux_workloads::fio::parse(job.to_str().unwrap(), &text, &mut host);
        (parsed.map_err(|complaint| complaint.to_string()), host.files)
    };
    let (jobs, files) = parsed("sizes.fio");
    assert_eq!(jobs.unwrap().jobs.len(), 1);
    let names: Vec<&str> = files.iter().filter_map(|(name, _)| name.rsplit('/').next()).collect();
    assert_eq!(names, ["sizes.fio", "blocks.fio"], "for the page");
    let said = parsed("wrong.fio").0.unwrap_err();
    assert!(said.contains("/wrong.fio:2: option 'bs': 'x' does not begin with a digit"), "{said}");
    let said = parsed("circle.fio").0.unwrap_err();
    assert!(said.contains("/circle.fio:2: 'circle.fio' is included more than 16 files deep"), "{said}");
    std::fs::remove_dir_all(&directory).unwrap();
}
