//! Hostile clients of version 4.2 beside honest ones, on a running server.
//!
//! Owns: the threads of all clients, their users, the run's length.
//! Does not own: the calls of hostile clients (`attack`), the calls of honest ones and the times of answers (`honest`,
//! `conflicts`).
//! Invariants: each kind of hostile client has its own user, and the server sees its sockets as that user's. A run ends
//! when its time is over: no hostile client waits for ever.

mod attack;
mod conflicts;
mod honest;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{Gid, Uid, set_thread_groups, set_thread_res_gid, set_thread_res_uid};

pub use attack::Attack;
pub use honest::{Asked, AskedKind};

use crate::failure::{Failure, call, host};

/// The first hostile user.
const FIRST_USER: u32 = 4002;
/// The honest user.
const HONEST_USER: u32 = 3999;

/// A run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The server.
    pub nfs: SocketAddr,
    /// Draws of hostile clients follow from it.
    pub seed: u64,
    /// The length.
    pub time: Duration,
    /// The only kind of hostile client; all of them without it.
    pub only: Option<Attack>,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The calls of the honest clients, by kind.
    pub asked: Vec<Asked>,
    /// The answers to each kind of hostile client.
    pub attacks: Vec<(Attack, u64)>,
}

impl Outcome {
    /// The longest time that an honest client waited for an answer that nobody may delay.
    pub fn longest(&self) -> Duration {
        self.asked
            .iter()
            .filter(|asked| asked.kind != AskedKind::Conflict)
            .map(Asked::longest)
            .max()
            .unwrap_or_default()
    }

    /// The longest time of a change of a file that others may have delegated.
    pub fn longest_conflict(&self) -> Duration {
        self.asked
            .iter()
            .filter(|asked| asked.kind == AskedKind::Conflict)
            .map(Asked::longest)
            .max()
            .unwrap_or_default()
    }
}

/// Runs all kinds of hostile clients at once, and honest clients beside them. Each hostile kind has a directory and a
/// user. Needs root, for the users.
///
/// # Errors
/// When the export cannot be prepared, or an honest client gets a wrong answer or none.
pub fn run(plan: &Plan) -> Result<Outcome, Failure> {
    let names = Attack::ALL.into_iter().map(Attack::word);
    let directory = honest::prepare(plan.nfs, names).map_err(call("the directories"))?;
    let ends = Instant::now() + plan.time;
    let has_failed = AtomicBool::new(false);
    let goes_on = || Instant::now() < ends && !has_failed.load(Ordering::Relaxed);
    let answers = Attack::ALL.map(|_| AtomicU64::new(0));
    let failing = |failure: Failure| {
        has_failed.store(true, Ordering::Relaxed);
        failure
    };
    let asked = thread::scope(|scope| {
        let is_asked = |kind: &Attack| plan.only.is_none_or(|only| *kind == only);
        for (kind, answers) in Attack::ALL.into_iter().zip(&answers).filter(|(kind, _)| is_asked(kind)) {
            scope.spawn(move || {
                let answered = || _ = answers.fetch_add(1, Ordering::Relaxed);
                as_user(user_of(kind)).map(|()| kind.run(plan.nfs, plan.seed, user_of(kind), &goes_on, &answered))
            });
        }
        let changes = scope.spawn(|| {
            as_user(HONEST_USER).map_err(host("another user's number")).map_err(failing)?;
            conflicts::change(plan.nfs, HONEST_USER, &directory, &goes_on)
                .map_err(call("an honest client's change"))
                .map_err(failing)
        });
        let asked = scope.spawn(|| {
            as_user(HONEST_USER).map_err(host("another user's number")).map_err(failing)?;
            honest::ask(plan.nfs, HONEST_USER, &directory, &goes_on).map_err(call("an honest client")).map_err(failing)
        });
        let asked = asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let times = changes.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let mut asked = asked?;
        asked.push(Asked { kind: AskedKind::Conflict, times });
        Ok::<_, Failure>(asked)
    })?;
    let answers = answers.map(AtomicU64::into_inner);
    Ok(Outcome { asked, attacks: Attack::ALL.into_iter().zip(answers).collect() })
}

fn user_of(kind: Attack) -> u32 {
    FIRST_USER + kind as u32
}

/// Makes this thread alone another user's.
fn as_user(user: u32) -> std::io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    set_thread_groups(&[gid])?;
    set_thread_res_gid(gid, gid, gid)?;
    Ok(set_thread_res_uid(uid, uid, uid)?)
}
