//! The loads of this server and of mounts.
//!
//! Owns: their work in a round, and its figures.
//! Does not own: the store's own speed (`raw`), goals (`table`).
//! Invariants: a read of cold data follows a start of the participant's program. Loads that tell the same in each
//! round, or take long, run in the first one only.

use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use afflux_rig::archive;

use super::measured::{Depths, Note, median_ms, percentile_ms, rate};
use super::options::Scale;
use super::participant::Participant;
use super::session::{Called, Session};
use super::table::Load;
use crate::failure::{Failure, call, host};

const SMALL_BYTES: usize = 8 << 10;
const GIB: f64 = (1_u64 << 30) as f64;

/// Everything that has a goal.
pub(super) fn of_server(
    server: &mut Participant<'_>,
    scale: &Scale,
    is_first: bool,
    note: &mut Note<'_>,
) -> Result<Depths, Failure> {
    begin(server, scale, is_first, note)?;
    // The device is known: a server keeps its prices over starts.
    stream(server, "warm", scale.warm_bytes)?;
    let depths = streams_and_commits(server, scale, note)?;
    small_files(server, scale, scale.small_files, note)?;
    cold_files(server, scale.small_files, note)?;
    if is_first {
        untar(server, scale, Load::Untar, Load::UntarPuts, note)?;
        server.start(&["--async-metadata"])?;
        untar(server, scale, Load::UntarAsync, Load::UntarAsyncPuts, note)?;
        take_over(server, scale, note)?;
    }
    Ok(depths)
}

/// The loads that another server can do.
pub(super) fn of_other_server(
    server: &mut Participant<'_>,
    scale: &Scale,
    is_first: bool,
    note: &mut Note<'_>,
) -> Result<(), Failure> {
    begin(server, scale, is_first, note)?;
    streams_and_commits(server, scale, note)?;
    if is_first {
        untar(server, scale, Load::Untar, Load::UntarPuts, note)?;
    }
    small_files(server, scale, scale.small_files, note)?;
    cold_files(server, scale.small_files, note)
}

/// Starts a server. In the first round it rests.
fn begin(server: &mut Participant<'_>, scale: &Scale, is_first: bool, note: &mut Note<'_>) -> Result<(), Failure> {
    server.start(&[])?;
    if is_first {
        // A volume after loads has its garbage collected for some ten minutes.
        thread::sleep(scale.settled);
        idle(server, scale, note)?;
    }
    Ok(())
}

fn streams_and_commits(server: &mut Participant<'_>, scale: &Scale, note: &mut Note<'_>) -> Result<Depths, Failure> {
    let write = write_stream(server, scale, note)?;
    let read = read_stream(server, scale, note)?;
    commits(server, scale, note)?;
    commits_of_many(server, scale, note)?;
    commits_beside_a_stream(server, scale, note)?;
    Ok(Depths { write, read })
}

/// The loads that a mount can do.
pub(super) fn of_mount(
    mount: &mut Participant<'_>,
    scale: &Scale,
    is_first: bool,
    note: &mut Note<'_>,
) -> Result<(), Failure> {
    mount.start(&[])?;
    write_stream(mount, scale, note)?;
    read_stream(mount, scale, note)?;
    commits(mount, scale, note)?;
    if is_first {
        commits_of_many(mount, scale, note)?;
        small_files(mount, scale, scale.small_files_of_mounts, note)?;
        cold_files(mount, scale.small_files_of_mounts, note)?;
        idle(mount, scale, note)?;
        untar(mount, scale, Load::Untar, Load::UntarPuts, note)?;
    }
    Ok(())
}

fn stream(participant: &Participant<'_>, name: &str, bytes: u64) -> Result<(), Failure> {
    participant.session()?.write_stream(name, bytes, &AtomicBool::new(false)).map_err(call("a stream of writes"))
}

/// Returns the most requests side by side.
fn write_stream(participant: &Participant<'_>, scale: &Scale, note: &mut Note<'_>) -> Result<u64, Failure> {
    let (before, begin) = (participant.asked(), Instant::now());
    stream(participant, "stream", scale.stream_bytes)?;
    note(Load::StreamWrite, rate(scale.stream_bytes, begin));
    let asked = participant.asked().since(before);
    note(Load::StreamPuts, asked.puts as f64 * GIB / scale.stream_bytes as f64);
    Ok(asked.side_by_side)
}

/// Returns the most requests side by side.
fn read_stream(participant: &mut Participant<'_>, scale: &Scale, note: &mut Note<'_>) -> Result<u64, Failure> {
    participant.start(&[])?;
    let (mut session, begin) = (participant.session()?, Instant::now());
    session.read("stream", scale.stream_bytes).map_err(call("a stream of reads"))?;
    note(Load::StreamRead, rate(scale.stream_bytes, begin));
    Ok(participant.asked().side_by_side)
}

/// The times of commits of one client, until `ends` says so.
fn times(session: &mut Session, name: &str, mut ends: impl FnMut(usize) -> bool) -> Called<Vec<Duration>> {
    // The first one also makes the file.
    session.commit(name, 0)?;
    let mut times = Vec::new();
    while !ends(times.len()) {
        let begin = Instant::now();
        session.commit(name, times.len() as u8)?;
        times.push(begin.elapsed());
    }
    Ok(times)
}

fn commits(participant: &Participant<'_>, scale: &Scale, note: &mut Note<'_>) -> Result<(), Failure> {
    let (mut session, mut before) = (participant.session()?, participant.asked());
    let times = times(&mut session, "commit", |done| {
        if done == 0 {
            before = participant.asked();
        }
        done >= scale.commits
    });
    note(Load::Commit, median_ms(times.map_err(call("a commit"))?));
    note(Load::CommitPuts, participant.asked().since(before).puts as f64 / scale.commits as f64);
    Ok(())
}

fn commits_of_many(participant: &Participant<'_>, scale: &Scale, note: &mut Note<'_>) -> Result<(), Failure> {
    let end = Instant::now() + scale.steady;
    let all = by_clients(participant, scale.clients, |session, client| {
        times(session, &format!("many-{client}"), |_| Instant::now() >= end)
    })?;
    let all: Vec<Duration> = all.into_iter().flatten().collect();
    note(Load::CommitOfMany, median_ms(all.clone()));
    note(Load::CommitOfManySlow, percentile_ms(all, 99));
    Ok(())
}

fn commits_beside_a_stream(participant: &Participant<'_>, scale: &Scale, note: &mut Note<'_>) -> Result<(), Failure> {
    let (ends, mut beside) = (AtomicBool::new(false), participant.session()?);
    let mut session = participant.session()?;
    let times = thread::scope(|threads| {
        let stream = threads.spawn(|| beside.write_stream("beside", scale.stream_bytes * 4, &ends));
        // The stream has begun to be written.
        thread::sleep(scale.steady / 3);
        let end = Instant::now() + scale.steady;
        let times = times(&mut session, "commit", |_| Instant::now() >= end);
        ends.store(true, Ordering::Relaxed);
        let panicked = |_| Err(io::Error::other("a thread panicked").into());
        stream.join().unwrap_or_else(panicked).and(times)
    });
    note(Load::CommitBesideStream, median_ms(times.map_err(call("a commit beside a stream"))?));
    Ok(())
}

fn small_name(at: usize) -> String {
    format!("small-{at:05}")
}

fn small_files(participant: &Participant<'_>, scale: &Scale, files: usize, note: &mut Note<'_>) -> Result<(), Failure> {
    let before = participant.asked();
    by_clients(participant, scale.clients, |session, client| {
        let mut mine = (client..files).step_by(scale.clients);
        mine.try_for_each(|at| session.make(&small_name(at), &[at as u8; SMALL_BYTES]))
    })?;
    note(Load::SmallPuts, participant.asked().since(before).puts as f64 * 1e3 / files as f64);
    Ok(())
}

fn cold_files(participant: &mut Participant<'_>, files: usize, note: &mut Note<'_>) -> Result<(), Failure> {
    participant.start(&[])?;
    let (before, mut session) = (participant.asked(), participant.session()?);
    for at in 0..files {
        session.read(&small_name(at), SMALL_BYTES as u64).map_err(call("a cold file"))?;
    }
    let asked = participant.asked().since(before);
    note(Load::ColdGets, (asked.gets + asked.lists) as f64 * 1e3 / files as f64);
    Ok(())
}

fn idle(participant: &Participant<'_>, scale: &Scale, note: &mut Note<'_>) -> Result<(), Failure> {
    let before = participant.asked();
    thread::sleep(scale.idle);
    let asked = participant.asked().since(before);
    note(Load::IdlePuts, asked.puts as f64 / scale.idle.as_secs_f64());
    note(Load::IdleGets, (asked.gets + asked.lists) as f64 / scale.idle.as_secs_f64());
    Ok(())
}

/// Extracts an archive by tar.
fn untar(
    participant: &Participant<'_>,
    scale: &Scale,
    load: Load,
    puts: Load,
    note: &mut Note<'_>,
) -> Result<(), Failure> {
    let archive = archive(participant.directory(), scale.tree_files, |_| 4 << 10).map_err(host("the archive"))?;
    let (took, asked) = participant.with_mount(|point| {
        let into = point.join(load.name().replace([' ', '-'], "_"));
        std::fs::create_dir(&into)?;
        let (before, begin) = (participant.asked(), Instant::now());
        let status = Command::new("tar").arg("-C").arg(&into).arg("-xf").arg(&archive).status()?;
        let took = (begin.elapsed(), participant.asked().since(before).puts);
        if status.success() { Ok(took) } else { Err(io::Error::other("tar fails")) }
    })?;
    note(load, took.as_secs_f64() * 1e3 / scale.tree_files as f64);
    note(puts, asked as f64 / scale.tree_files as f64);
    Ok(())
}

/// The next server after a kill, with a log that is nearly as long as it gets: from the kill to the first line that
/// tells of the service. First on the same host, then as on another one, which does not know that the killed server has
/// ended.
fn take_over(server: &mut Participant<'_>, scale: &Scale, note: &mut Note<'_>) -> Result<(), Failure> {
    let elsewhere = server.directory().join("another-host");
    let elsewhere = elsewhere.to_string_lossy();
    let starts = [(Load::BackAfterKill, &[][..]), (Load::TakeOver, &["--take-over", "--state", &*elsewhere])];
    for (load, arguments) in starts {
        server.start(&[])?;
        times(&mut server.session()?, "log", |done| done >= scale.logs).map_err(call("a commit"))?;
        server.kill();
        let begin = Instant::now();
        server.start(arguments)?;
        note(load, begin.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Runs `work` for each of some clients at a time.
fn by_clients<T: Send>(
    participant: &Participant<'_>,
    clients: usize,
    work: impl Fn(&mut Session, usize) -> Called<T> + Sync,
) -> Result<Vec<T>, Failure> {
    let sessions: Vec<Session> = (0..clients).map(|_| participant.session()).collect::<Result<_, _>>()?;
    let work = &work;
    let done: Called<Vec<T>> = thread::scope(|threads| {
        let all: Vec<_> = sessions
            .into_iter()
            .enumerate()
            .map(|(client, mut session)| threads.spawn(move || work(&mut session, client)))
            .collect();
        let panicked = |_| Err(io::Error::other("a thread panicked").into());
        all.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    done.map_err(call("a client"))
}
