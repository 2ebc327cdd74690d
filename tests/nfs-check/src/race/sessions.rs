//! Calls of version 4.1 on one session, with all of its slots in use.
//!
//! Owns: the compounds of each step, the files and locks that they use.
//! Does not own: the load (`SlotLoad`), the file of data that cases of both versions share (`data_files`).
//! Invariants: both servers get the same operations, as Linux's client sends them, each call in its own compound. All
//! data is in the cache.

use afflux_nfs_client::sessions::{Compound, Session, Stateid};
use afflux_nfs_client::slots::{ANYWHERE, LAST, SlotCall, SlotLoad};
use afflux_rig::Measurement;

use super::data_files::{data_file, data_name};
use super::figure::Figure;
use super::scale::{BLOCK, Scale, WINDOW};
use super::servers::{Called, Running, Servers};

/// What a slot repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    GetAttributes,
    Read,
    Write,
    /// Of a small file.
    OpenReadClose,
    OpenClose,
    LockUnlock,
}

const READING: (u32, u32) = (1, 0);
const BOTH: (u32, u32) = (3, 0);
const EXCLUSIVE: u32 = 2;
const WHOLE: (u64, u64) = (0, u64::MAX);
/// The attributes that Linux's client asks for after a GETATTR of a file, and after a WRITE.
const ALL: [u32; 2] = [0x0010_011a, 0x00b0_a23a];
const OF_WRITE: [u32; 2] = [0x0000_0018, 0x0030_0000];

pub(super) fn run(servers: &mut Servers, which: Running, step: Step, scale: &Scale) -> Called<Figure> {
    data_file(servers, which, scale)?;
    let (mut session, root) = servers.begin_session(which, WINDOW as u32)?;
    let data = data_name("data", which);
    let (stateid, file) = open(&mut session, &root, BOTH, b"load", data.as_bytes())?;
    session.must(Compound::default().put(&file).commit())?;
    let slots: Called<Vec<_>> = (0..WINDOW)
        .map(|at| match step {
            Step::GetAttributes | Step::Read | Step::Write => Ok((stateid, vec![of_data(step, &file, stateid)])),
            _ => of_own_file(&mut session, which, step, &root, at),
        })
        .collect();
    let slots = slots?;
    let calls_a_round = slots[0].1.len() as u64;
    let mut load = SlotLoad::new(&mut session, slots);
    load.run(&mut session, BLOCK, scale.file_bytes, scale.steady / 8)?;
    let begun = Measurement::begin([servers.process(which)]);
    let report = load.run(&mut session, BLOCK, scale.file_bytes, scale.steady)?;
    let figure = Figure::of(begun, report.calls / calls_a_round, report.calls).timed(&report);
    session.must(Compound::default().put(&file).commit().close(stateid))?;
    Ok(figure)
}

fn call(operations: Compound) -> SlotCall {
    SlotCall { operations, gives_stateid: false }
}

fn of_data(step: Step, file: &[u8], stateid: Stateid) -> SlotCall {
    let of_file = Compound::default().put(file);
    call(match step {
        Step::GetAttributes => of_file.attributes(&ALL),
        Step::Read => of_file.read(stateid, ANYWHERE, BLOCK),
        _ => of_file.write(stateid, ANYWHERE, 0, &[7; BLOCK as usize]).attributes(&OF_WRITE),
    })
}

/// The calls of a slot on a small file of its own, and the stateid before the first of them.
fn of_own_file(
    session: &mut Session,
    which: Running,
    step: Step,
    root: &[u8],
    slot: usize,
) -> Called<(Stateid, Vec<SlotCall>)> {
    // Locks of the turn before may still be held: its client went without a word.
    let file =
        if step == Step::LockUnlock { format!("locked-{}-{slot}", session.number) } else { format!("small-{slot}") };
    let (name, owner) = (data_name(&file, which), format!("owner-{slot}"));
    let (name, owner) = (name.as_bytes(), owner.as_bytes());
    let (stateid, file) = open(session, root, BOTH, owner, name)?;
    let of_file = || Compound::default().put(&file);
    session.must(of_file().write(stateid, 0, 2, &[7; BLOCK as usize]))?;
    if step == Step::LockUnlock {
        let locked = session.must(of_file().lock(EXCLUSIVE, WHOLE, stateid, owner))?;
        let mut reader = locked.reader();
        reader.next_result()?;
        reader.next_result()?;
        let locked = reader.stateid()?;
        let again = |operations| SlotCall { operations, gives_stateid: true };
        return Ok((
            locked,
            vec![again(of_file().unlock(WHOLE, LAST)), again(of_file().lock_more(EXCLUSIVE, WHOLE, LAST))],
        ));
    }
    session.must(of_file().close(stateid))?;
    let opens = Compound::default().put(root).open(READING, owner, name, false);
    let mut calls = vec![SlotCall { operations: opens, gives_stateid: true }];
    if step == Step::OpenReadClose {
        calls.push(call(of_file().read(LAST, 0, BLOCK)));
    }
    calls.push(call(of_file().close(LAST)));
    Ok((stateid, calls))
}

/// Opens a file of a directory, and makes it.
fn open(
    session: &mut Session,
    root: &[u8],
    rights: (u32, u32),
    owner: &[u8],
    name: &[u8],
) -> Called<(Stateid, Vec<u8>)> {
    let outcome = session.must(Compound::default().put(root).open(rights, owner, name, true).get_handle())?;
    let mut reader = outcome.reader();
    reader.next_result()?;
    reader.next_result()?;
    let stateid = reader.stateid()?;
    reader.skip_open()?;
    reader.next_result()?;
    Ok((stateid, reader.opaque()?.to_vec()))
}
