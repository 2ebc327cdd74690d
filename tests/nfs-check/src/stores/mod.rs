//! A comparison of ways to files in an object store: this server and ZeroFS over NFS, s3fs, rclone, and plain
//! requests. Each reaches
//! the same Ceph through its own relay, which makes each answer late and counts requests.
//!
//! Owns: the order of participants, the rounds, the time.
//! Does not own: sizes (`options`), the loads (`loads`, `raw`), the participants' programs (`participant`), goals and
//! table (`table`).
//! Invariants: one participant at a time has work. Rounds go through all of them in turns, and no round
//! begins that would not end in time. Each participant has a new bucket in each round.

mod http;
mod loads;
mod measured;
mod options;
mod participant;
mod raw;
mod session;
mod table;

use std::time::Instant;

use afflux_gateway::Gateway;
use afflux_rig::run_order;
use afflux_scratch::{Processors, Stolen};

use crate::failure::{Failure, host};
use measured::Depths;
pub use options::Options;
use options::Scale;
use participant::{Participant, Who};
use table::{Figures, Load};

/// The most memory that the cluster takes.
const STORE_BYTES: u64 = 10 << 30;

/// Runs the comparison, reports each figure to `told`, and returns the table as Markdown.
pub fn run(options: &Options, told: &mut dyn FnMut(String)) -> Result<String, Failure> {
    if let Some(obstacle) = Gateway::obstacle() {
        return Err(Failure::Server(obstacle));
    }
    let (scale, begin, processors) = (Scale::new(options.quick), Instant::now(), Processors::now());
    told("starting a Ceph".to_owned());
    let ceph = Gateway::start(STORE_BYTES).map_err(host("a Ceph"))?;
    let mut figures = Figures::default();
    let all: Vec<Who> = Who::ALL.into_iter().filter(|who| who.is_there(&options.only)).collect();
    // This server's depth is that of the plain requests.
    let mut depths = Depths::default();
    for round in 0..options.rounds {
        let round_begin = Instant::now();
        for who in run_order(&all, round) {
            let bucket = format!("{}-{round}", who.word());
            ceph.make_bucket(&bucket, who == Who::Raw).map_err(host(bucket.as_str()))?;
            let mut note = |load: Load, value: f64| {
                told(format!(
                    "[{} s] {}, {}: {value:.2} {}",
                    begin.elapsed().as_secs(),
                    load.name(),
                    who.word(),
                    load.unit()
                ));
                figures.note(load, who, value);
            };
            let mut participant = Participant::new(who, options, &ceph, bucket.clone());
            let done = match who {
                Who::Raw => raw::run(&mut participant, &scale, depths, &mut note),
                Who::Afflux => loads::of_server(&mut participant, &scale, round == 0, &mut note)
                    .map(|its_depths| depths = its_depths),
                Who::Zerofs => loads::of_other_server(&mut participant, &scale, round == 0, &mut note),
                Who::S3fs | Who::Rclone => loads::of_mount(&mut participant, &scale, round == 0, &mut note),
            };
            match done {
                // A peer that fails has no figures from there on.
                Err(failure) if who.is_peer() => told(format!("{} ended: {failure}", who.word())),
                done => done?,
            }
            drop(participant);
            ceph.remove_bucket(&bucket).map_err(host(bucket.as_str()))?;
        }
        if begin.elapsed() + round_begin.elapsed() > options.time {
            break;
        }
    }
    let network = match options.bandwidth_bytes_per_s {
        0 => String::new(),
        bytes => format!("The network has {:.1} MB/s in each direction. ", bytes as f64 / 1e6),
    };
    let late = options.delay.as_millis();
    let head = format!("Each answer is {late} ms late. {network}{}\n\n", remark(processors.stolen()));
    Ok(head + &table::markdown(&figures))
}

/// A sentence about stolen time.
fn remark(stolen: Stolen) -> String {
    match (stolen.spoils_figures(), stolen.per_mille) {
        (true, part) => {
            format!("**No figure of speed holds: the host took {part} thousandths of the processors' time.**")
        }
        (false, part) => format!("The host took {part} thousandths of the processors' time."),
    }
}
