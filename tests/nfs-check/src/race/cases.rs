//! The cases of the race.
//!
//! Owns: the cases, and the run of each on one server.
//! Does not own: calls about names (`names`); comparison (`report`).
//! Invariants: data that a case reads or overwrites is in the server's cache before the measurement, except in the case
//! of cold reads.

use afflux_nfs_client::{Answer, Call, Change, Client, Kind, Load, NFS, Sending, read_reply, stable_how};
use afflux_rig::Measurement;

use super::data_files::{data_file, own_file};
use super::figure::{Figure, rate};
use super::names::Step;
use super::other_program::OtherProgram;
use super::scale::{BLOCK, Scale, WINDOW};
use super::servers::{Called, Running, Servers};
use super::{beside, cold, host, names, sessions, tree};
use crate::failure::{Failure, call};

const MANY_WINDOW: usize = 16;
const LISTING_BYTES: u32 = 64 << 10;

/// The kind of a case.
#[derive(Clone, Copy, Debug)]
pub(super) enum CaseKind {
    /// Random calls on a cached file: the kind of call, the number in flight, the way of sending.
    Steady(Kind, usize, Sending),
    /// The whole file in calls of this many bytes, then COMMIT.
    WriteAll(u32),
    ReadAll(u32),
    /// One step on names by this many clients, each in its own directory.
    Names(Step, usize),
    LookUpMany,
    ListMany,
    /// Calls at half the server's rate with 64 in flight, each sent when it is due.
    HalfLoad(Kind),
    /// Random calls on a cached file, with 64 in flight, while another program writes the disk.
    BesideProgram(Kind),
    /// A step on names while another connection writes as fast as it can.
    NamesBeside(Step, usize),
    /// Random reads of data in no cache.
    Cold,
    /// A tree that tar extracts through a mount.
    Tree,
    /// Calls of version 4.1, 64 in flight in one session.
    Session(sessions::Step),
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) what: CaseKind,
    /// The ratio to reach.
    pub(super) wanted: f64,
}

pub(super) fn all() -> Vec<Case> {
    let case = |name, unit, what, wanted| Case { name, unit, what, wanted };
    let steady =
        |name, kind, window, sending, wanted| case(name, "calls", CaseKind::Steady(kind, window, sending), wanted);
    let in_session = |name, unit, step, wanted| case(name, unit, CaseKind::Session(step), wanted);
    let (get, read, write) = (Kind::GetAttributes, Kind::Read(BLOCK), Kind::Write(BLOCK, stable_how::UNSTABLE));
    vec![
        steady("GETATTR, 1 in flight", get, 1, Sending::Plain, 1.3),
        steady("READ 4 KiB, 1 in flight", read, 1, Sending::Plain, 1.3),
        steady("WRITE 4 KiB unstable, 1 in flight", write, 1, Sending::Plain, 1.3),
        steady("GETATTR, 64 in flight", get, WINDOW, Sending::Plain, 4.0),
        steady("READ 4 KiB, 64 in flight", read, WINDOW, Sending::Plain, 8.0),
        steady("WRITE 4 KiB unstable, 64 in flight", write, WINDOW, Sending::Plain, 12.0),
        steady("GETATTR, 64 in flight, batched", get, WINDOW, Sending::Batched, 4.0),
        steady("READ 4 KiB, 64 in flight, batched", read, WINDOW, Sending::Batched, 8.0),
        steady("WRITE 4 KiB unstable, 64 in flight, batched", write, WINDOW, Sending::Batched, 12.0),
        case("file written by 64 KiB, and COMMIT", "MiB", CaseKind::WriteAll(64 << 10), 1.5),
        case("file read by 64 KiB", "MiB", CaseKind::ReadAll(64 << 10), 1.5),
        case("file written by 1 MiB, and COMMIT", "MiB", CaseKind::WriteAll(1 << 20), 1.5),
        case("file read by 1 MiB", "MiB", CaseKind::ReadAll(1 << 20), 1.5),
        case("CREATE, 1 client", "calls", CaseKind::Names(Step::Create, 1), 1.0),
        case("SETATTR of a mode, 1 client", "calls", CaseKind::Names(Step::Mode, 1), 1.0),
        case("RENAME, 1 client", "calls", CaseKind::Names(Step::Rename, 1), 1.0),
        case("CREATE, 16 clients", "calls", CaseKind::Names(Step::Create, 16), 2.0),
        case("SETATTR of a mode, 16 clients", "calls", CaseKind::Names(Step::Mode, 16), 2.0),
        case("RENAME, 16 clients", "calls", CaseKind::Names(Step::Rename, 16), 2.0),
        case("LOOKUP, then GETATTR, of many files", "calls", CaseKind::LookUpMany, 1.0),
        case("READDIRPLUS of many files", "entries", CaseKind::ListMany, 1.0),
        case("READ 4 KiB, half load", "calls", CaseKind::HalfLoad(read), 1.0),
        case("WRITE 4 KiB unstable, half load", "calls", CaseKind::HalfLoad(write), 1.0),
        case(
            "WRITE 4 KiB unstable, 64 in flight, beside another program",
            "calls",
            CaseKind::BesideProgram(write),
            12.0,
        ),
        case("CREATE beside a stream of writes, 1 client", "calls", CaseKind::NamesBeside(Step::Create, 1), 1.0),
        case("RENAME beside a stream of writes, 1 client", "calls", CaseKind::NamesBeside(Step::Rename, 1), 1.0),
        case("CREATE beside a stream of writes, 16 clients", "calls", CaseKind::NamesBeside(Step::Create, 16), 1.0),
        case("tar of a tree through a mount", "files", CaseKind::Tree, 1.0),
        // The last cases about names. An ext4 without a journal checks each inode freed in the last minutes before it
        // allocates one, so removals slow down later creations.
        case("REMOVE, 1 client", "calls", CaseKind::Names(Step::Remove, 1), 1.0),
        case("REMOVE, 16 clients", "calls", CaseKind::Names(Step::Remove, 16), 2.0),
        case("cold READ 4 KiB, 64 in flight", "calls", CaseKind::Cold, 0.95),
        in_session("v4.1: GETATTR, 64 in flight", "calls", sessions::Step::GetAttributes, 10.0),
        in_session("v4.1: READ 4 KiB, 64 in flight", "calls", sessions::Step::Read, 10.0),
        in_session("v4.1: WRITE 4 KiB unstable, 64 in flight", "calls", sessions::Step::Write, 10.0),
        in_session("v4.1: OPEN, READ, CLOSE, 64 in flight", "files", sessions::Step::OpenReadClose, 10.0),
        in_session("v4.1: OPEN, CLOSE, 64 in flight", "pairs", sessions::Step::OpenClose, 10.0),
        in_session("v4.1: LOCK, LOCKU, 64 in flight", "pairs", sessions::Step::LockUnlock, 15.0),
    ]
}

impl Case {
    /// Whether it changes names, so that their durability at the answer matters.
    pub(super) fn changes_names(&self) -> bool {
        matches!(self.what, CaseKind::Names(..) | CaseKind::NamesBeside(..) | CaseKind::Tree)
    }

    /// Whether it measures the times of calls.
    pub(super) fn is_about_delays(&self) -> bool {
        matches!(self.what, CaseKind::HalfLoad(_))
    }

    /// The participants, in the order of their first turns.
    pub(super) fn participants(&self) -> Vec<Running> {
        let mut all = vec![Running::Ganesha, Running::Afflux];
        all.extend(self.changes_names().then_some(Running::AffluxUnsynced));
        // A program on the host.
        all.extend(matches!(self.what, CaseKind::Names(_, 1) | CaseKind::Cold).then_some(Running::Host));
        all
    }

    /// Whether it reads cold data, and is compared with a bare loop.
    pub(super) fn is_cold(&self) -> bool {
        matches!(self.what, CaseKind::Cold)
    }

    /// Long cases have fewer rounds.
    pub(super) fn rounds(&self) -> usize {
        if matches!(self.what, CaseKind::NamesBeside(..) | CaseKind::Tree) { 2 } else { 3 }
    }

    pub(super) fn run(
        &self,
        servers: &mut Servers,
        which: Running,
        scale: &Scale,
        round: usize,
    ) -> Result<Figure, Failure> {
        if which == Running::Host {
            return self.run_on_host(servers, scale, round);
        }
        let failed = || format!("{} on {}", self.name, which.word());
        let run = match self.what {
            CaseKind::Steady(kind, window, sending) => steady(servers, which, kind, window, sending, scale),
            CaseKind::WriteAll(block) => sequential(servers, which, block, true, scale),
            CaseKind::ReadAll(block) => sequential(servers, which, block, false, scale),
            CaseKind::Names(step, clients) => names::run(servers, which, step, clients, scale.names, round),
            CaseKind::LookUpMany => look_up_many(servers, which, scale),
            CaseKind::ListMany => list_many(servers, which, scale),
            CaseKind::HalfLoad(kind) => half_load(servers, which, kind, scale),
            CaseKind::BesideProgram(kind) => beside_program(servers, which, kind, scale),
            CaseKind::NamesBeside(step, clients) => beside::run(servers, which, step, clients, scale.names, round),
            CaseKind::Cold => cold::run(servers, which, scale, round),
            CaseKind::Tree => tree::run(servers, which, scale, round),
            CaseKind::Session(step) => sessions::run(servers, which, step, scale),
        };
        run.map_err(call(failed()))
    }

    /// Changes of names by a program on the host, each made durable.
    fn run_on_host(&self, servers: &Servers, scale: &Scale, round: usize) -> Result<Figure, Failure> {
        if matches!(self.what, CaseKind::Cold) {
            return cold::run_bare(servers, scale, round).map_err(call("the bare loop"));
        }
        let CaseKind::Names(step, _) = self.what else {
            return Err(Failure::Server("nothing for the host".to_owned()));
        };
        let on_host = || names::run_on_host(servers.export(), step, scale.names, round);
        let (count, elapsed) = servers.cpus().on_servers_cpu(on_host).map_err(host("names on the host"))?;
        Ok(Figure::of_rate(rate(count, elapsed)))
    }
}

fn steady(
    servers: &mut Servers,
    which: Running,
    kind: Kind,
    window: usize,
    sending: Sending,
    scale: &Scale,
) -> Called<Figure> {
    let (mut client, file) = data_file(servers, which, scale)?;
    let block = 64 << 10;
    // Read it once through the cache, then once as in the measurement.
    if matches!(kind, Kind::Read(_)) {
        let whole = Load { window: 8, sending, sequential: true, ..Load::of(Kind::Read(block), scale.file_bytes) };
        client.load_at_most(&file, &whole, scale.file_bytes / u64::from(block))?;
    }
    let load = Load { window, sending, duration: scale.steady, ..Load::of(kind, scale.file_bytes) };
    client.load(&file, &Load { duration: scale.steady / 8, ..load })?;
    let begun = Measurement::begin([servers.process(which)]);
    let report = client.load(&file, &load)?;
    let figure = Figure::of(begun, report.calls, report.calls);
    if matches!(kind, Kind::Write(..)) {
        client.commit(&file, 0, 0)?;
    }
    Ok(figure.timed(&report))
}

/// For some seconds, since a law that paused the calls would do so only after the disk had got slower.
fn beside_program(servers: &mut Servers, which: Running, kind: Kind, scale: &Scale) -> Called<Figure> {
    let _program = OtherProgram::start(servers.export())?;
    let longer = Scale { steady: 6 * scale.steady, ..*scale };
    steady(servers, which, kind, WINDOW, Sending::Plain, &longer)
}

/// Calls at half the server's rate with 64 in flight, which is measured first.
fn half_load(servers: &mut Servers, which: Running, kind: Kind, scale: &Scale) -> Called<Figure> {
    let most = steady(servers, which, kind, WINDOW, Sending::Plain, scale)?.rate;
    let (mut client, file) = own_file(servers, which, "data")?;
    let load = Load { duration: 2 * scale.steady, seed: 9, ..Load::of(kind, scale.file_bytes) };
    let begun = Measurement::begin([servers.process(which)]);
    let report = client.load_at_rate(&file, &load, most / 2.0)?;
    let figure = Figure::of(begun, report.calls, report.calls);
    if matches!(kind, Kind::Write(..)) {
        client.commit(&file, 0, 0)?;
    }
    Ok(figure.timed(&report))
}

fn sequential(servers: &mut Servers, which: Running, block: u32, write: bool, scale: &Scale) -> Called<Figure> {
    let (mut client, file) = own_file(servers, which, "sequential")?;
    let calls = scale.sequential_bytes / u64::from(block);
    let kind = if write { Kind::Write(block, stable_how::UNSTABLE) } else { Kind::Read(block) };
    let load = Load { window: 8, sequential: true, ..Load::of(kind, scale.sequential_bytes) };
    if write {
        client.setattr(&file, Change { size: Some(0), ..Change::default() }, None)?;
        client.commit(&file, 0, 0)?;
    }
    let begun = Measurement::begin([servers.process(which)]);
    client.load_at_most(&file, &load, calls)?;
    if write {
        client.commit(&file, 0, 0)?;
    }
    Ok(Figure::of(begun, scale.sequential_bytes >> 20, calls))
}

/// Keeps calls in flight on one connection until `count` are answered.
fn pipeline(
    client: &mut Client,
    count: u64,
    mut make: impl FnMut(u64) -> Call,
    mut answered: impl FnMut(u64, Answer),
) -> Called<()> {
    let first = client.next_xid();
    let (mut sent, mut done) = (0, 0);
    while done < count {
        while sent < count && sent - done < MANY_WINDOW as u64 {
            let call = make(sent);
            client.send(NFS, call.procedure().0, &call.arguments())?;
            sent += 1;
        }
        let reply = read_reply(&client.receive_raw()?)?;
        let at = u64::from(reply.xid.wrapping_sub(first));
        answered(at, make(at).answer(&reply.results)?);
        done += 1;
    }
    Ok(())
}

fn look_up_many(servers: &mut Servers, which: Running, scale: &Scale) -> Called<Figure> {
    let (mut client, root) = servers.connect(which)?;
    let (many, _) = client.lookup(&root, host::MANY.as_bytes())?;
    let mut handles = vec![Vec::new(); scale.many_files as usize];
    let begun = Measurement::begin([servers.process(which)]);
    let look = |at: u64| Call::Lookup { directory: many.clone(), name: host::many_name(at).into_bytes() };
    pipeline(&mut client, scale.many_files, look, |at, answer| {
        if let Answer::Found(handle) = answer {
            handles[at as usize] = handle;
        }
    })?;
    let get = |at: u64| Call::GetAttributes { object: handles[at as usize].clone() };
    pipeline(&mut client, scale.many_files, get, |_, _| {})?;
    Ok(Figure::of(begun, 2 * scale.many_files, 2 * scale.many_files))
}

fn list_many(servers: &mut Servers, which: Running, scale: &Scale) -> Called<Figure> {
    let (mut client, root) = servers.connect(which)?;
    let (many, _) = client.lookup(&root, host::MANY.as_bytes())?;
    let begun = Measurement::begin([servers.process(which)]);
    let (mut cookie, mut verifier, mut entries, mut calls) = (0, [0; 8], 0, 0);
    loop {
        let piece = client.readdirplus(&many, cookie, verifier, LISTING_BYTES, LISTING_BYTES)?;
        calls += 1;
        entries += piece.entries.len() as u64;
        verifier = piece.verifier;
        match piece.entries.last() {
            Some(last) if !piece.end => cookie = last.cookie,
            _ => break,
        }
    }
    let figure = Figure::of(begun, entries, calls);
    if entries < scale.many_files {
        let error = std::io::Error::other(format!("{entries} entries of {}", scale.many_files));
        return Err(error.into());
    }
    Ok(figure)
}
