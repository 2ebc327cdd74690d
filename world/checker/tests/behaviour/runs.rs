//! Runs whose behaviour is stored as hashes: small loads on two devices of a model, under a policy.
//!
//! Owns: the loads, the text for a run.
//! Does not own: the choice of policies and models, the use of the text (the test beside this, the example
//! `trace_hashes`).
//! Invariants: a run's text depends on policy, model and load alone. It is the hash of its trace (all events with their
//! times) and a hash of its figures (all counters, and the limits in the engine's status over the run).

use std::sync::Arc;

use afflux_checker::{RunOptions, generate_on, run_with};
use afflux_simulator::{FaultScript, LinkOptions, OWN_POLICY, catalogue};
use afflux_workloads::fio::{Alone, parse};
use afflux_workloads::nfs_client::NfsClientOptions;
use afflux_workloads::simulation::{Contents, DeviceChoice, Outcome, Simulation};
use afflux_workloads::{NfsStream, Readers, Workload};

/// A job file, faults, and further knobs beside the policy's.
struct Load {
    name: &'static str,
    jobs: &'static str,
    faults: &'static str,
    knobs: &'static [&'static str],
    memory_bytes: u64,
}

const LOADS: &[Load] = &[
    Load {
        name: "stream",
        jobs: "[w]\nrw=write\nbs=64k\nsize=3m\ndirectory=/srv\n[v]\nrw=write\nbs=64k\nsize=1m\ndirectory=/other\n",
        faults: "",
        knobs: &[],
        memory_bytes: 2 << 20,
    },
    Load {
        name: "overwrite",
        jobs: "[w]\nrw=randwrite\nbs=4k\nsize=1m\nnumjobs=2\nfilename=shared\ndirectory=/srv\nend_fsync=1\n",
        faults: "do = 'error', device = '/srv', target = 'write', skip = 5, times = 2",
        knobs: &["dirty_expire_centisecs=100", "writeback_request_batch=4"],
        memory_bytes: 2 << 20,
    },
    Load {
        name: "mixed",
        jobs: "[m]\nrw=randrw\nbs=8k\nsize=1m\ndirectory=/srv\nfsync=16\n[o]\nrw=randrw\nbs=3000\nsize=256k\ndirectory=/srv\n",
        faults: "do = 'delay', device = '/srv', target = 'data', probability_per_mille = 100, delay = '20 ms'",
        knobs: &["dirty_background_centisecs=50"],
        memory_bytes: 1 << 20,
    },
    Load {
        name: "many-files",
        jobs: "[f]\nrw=write\nbs=4k\nsize=512k\nnrfiles=32\nfsync=8\ndirectory=/srv\n",
        faults: "",
        knobs: &["dirty_background_bytes=65536"],
        memory_bytes: 1 << 20,
    },
    Load {
        name: "readers",
        jobs: "[w]\nrw=write\nbs=16k\nsize=1m\ndirectory=/srv\n",
        faults: "",
        knobs: &["readahead_bytes_max=262144"],
        memory_bytes: 512 << 10,
    },
    Load { name: "nfs-client", jobs: "", faults: "", knobs: &[], memory_bytes: 2 << 20 },
];

fn workloads(load: &Load) -> Result<Vec<Workload>, String> {
    let file = parse(load.name, load.jobs, &mut Alone("there is none")).map_err(|complaint| complaint.to_string())?;
    let mut workloads: Vec<Workload> = file.jobs.into_iter().map(Workload::Job).collect();
    match load.name {
        "readers" => workloads.push(Workload::Readers(Readers {
            name: "readers".to_owned(),
            directory: "/srv".to_owned(),
            count: 4,
            block_bytes: 16 << 10,
            file_bytes: 256 << 10,
            start_over_ns: 100_000_000,
        })),
        "nfs-client" => workloads.push(Workload::NfsClient(NfsStream {
            name: "client".to_owned(),
            directory: "/srv".to_owned(),
            client: NfsClientOptions {
                file_bytes: 2_000_000,
                dirty_limit_bytes: 512 << 10,
                ..NfsClientOptions::default()
            },
            link: LinkOptions::default(),
        })),
        _ => {}
    }
    Ok(workloads)
}

/// Two devices of one model, `/srv` and `/other`.
fn simulation(policy: Option<&str>, model: &str, load: &Load) -> Result<Simulation, String> {
    let choice = catalogue::DeviceChoice { name: model.to_owned(), overrides: Vec::new() };
    let model = choice.model(None).map_err(|error| error.to_string())?;
    let device = |directory: &str| {
        let model = model.clone();
        DeviceChoice {
            directory: Some(directory.to_owned()),
            model: directory.to_owned(),
            make: Arc::new(move |world, number| Ok(catalogue::make(world, number, &model))),
        }
    };
    let mut simulation = Simulation::new(11, device("/srv"));
    simulation.devices.push(device("/other"));
    simulation.cpus = 2;
    simulation.memory_bytes = load.memory_bytes;
    simulation.policy = policy.unwrap_or(OWN_POLICY).to_owned();
    simulation.knobs = load.knobs.iter().map(|knob| (*knob).to_owned()).collect();
    simulation.contents = Contents::Stamped;
    simulation.workloads = workloads(load)?;
    if !load.faults.is_empty() {
        let text = format!("[[fault]]\n{}\n", load.faults.replace(", ", "\n"));
        simulation.faults = FaultScript::parse(load.name, &text).map_err(|error| error.to_string())?;
    }
    Ok(simulation)
}

/// FNV-1a over words.
fn folded(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0xcbf2_9ce4_8422_2325, |hash, word| (hash ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(29))
}

fn figures(outcome: &Outcome) -> u64 {
    let counters = outcome.engine.counters.iter().map(|(_, count)| *count);
    let samples = outcome.devices.iter().flat_map(|device| &device.samples);
    let shown = samples.flat_map(|at| [at.dirty_bytes, at.writeback_bytes, at.dirty_limit_bytes]);
    folded(counters.chain(shown).chain([outcome.virtual_ns, outcome.settle_ns]))
}

/// All loads on a model under a policy, and a random scenario there: the name of each run, and its result.
pub(crate) fn runs_of(policy: Option<&str>, model: &str, each: &mut dyn FnMut(String, String)) -> Result<(), String> {
    let name = policy.unwrap_or(OWN_POLICY);
    for load in LOADS {
        let told = match simulation(policy, model, load)?.run(&mut |_| ()) {
            Ok(outcome) => format!("{:016x} {:016x}", outcome.trace_hash, figures(&outcome)),
            Err(error) => format!("{error}").replace('\n', " "),
        };
        each(format!("{name} {model} {}", load.name), told);
    }
    let report = run_with(&generate_on(7, policy, model), &RunOptions::default());
    each(format!("{name} {model} scenario-7"), scenario_line(&report));
    Ok(())
}

/// The result of a random scenario.
pub(crate) fn scenario_line(report: &afflux_checker::Report) -> String {
    match &report.result {
        Ok(()) => format!("{:016x} {:016x}", report.hash, folded([report.steps, report.allocations].into_iter())),
        Err(what) => what.replace('\n', " "),
    }
}
