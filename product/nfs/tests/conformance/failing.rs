//! Each call of a procedure on the host fails, with each error.

use std::ops::Range;

use afflux_engine::DeviceError;
use afflux_simulator::{Fault, FaultTarget, FaultWhat};
use afflux_volume::VolumeError;
use nfs3_types::nfs3::nfsstat3::{self, *};
use nfs3_types::nfs3::{Nfs3Option, fattr3, stable_how, wcc_attr};

use crate::calls::{self, Call};
use crate::errors;
use crate::permitted::is_permitted;
use crate::rig::{Rig, packed, results, status_of};

/// The objects that a server knows before the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    /// Nothing: it has just started.
    Nothing,
    /// The objects of the call. Their attributes are too old to be told without the host.
    Objects,
}

/// A rig with one of the calls.
fn rig_for(number: usize, known: Known) -> (Rig, Call) {
    const LONG_NS: u64 = 1_000_000_000_000;
    let mut rig = Rig::new();
    let objects = calls::make(&mut rig);
    rig.restart();
    let call = calls::all(&objects).swap_remove(number);
    if known == Known::Objects {
        let objects = call.attributes.iter().chain(&call.changes);
        for object in objects {
            rig.attributes(object);
        }
        rig.world.jump(LONG_NS);
    }
    (rig, call)
}

/// Name and procedure of each call.
fn names() -> Vec<(&'static str, u32)> {
    calls::all(&calls::make(&mut Rig::new())).iter().map(|call| (call.name, call.procedure)).collect()
}

/// How often a call of this procedure asks the host.
fn host_calls(number: usize, known: Known) -> u64 {
    let (mut rig, call) = rig_for(number, known);
    rig.tree.refuse_nothing();
    let answered = rig.call(call.procedure, &call.arguments);
    assert_eq!(status_of(&answered), NFS3_OK, "{} without a failure", call.name);
    rig.tree.refuse_nothing()
}

/// A host that has failed was not asked for the space that a file takes.
fn is_same(told: &fattr3, now: &fattr3, host_answers: bool) -> bool {
    let used = |of: &fattr3| if host_answers { of.used } else { 0 };
    let compared = |of: &fattr3| packed(&fattr3 { atime: now.atime, used: used(of), ..of.clone() });
    compared(told) == compared(now)
}

fn is_before(told: &wcc_attr, before: &fattr3) -> bool {
    (told.size, told.mtime, told.ctime) == (before.size, before.mtime, before.ctime)
}

/// The attributes in a failure are those of the objects. They are there if the objects were known.
fn faults_of_body(rig: &mut Rig, call: &Call, answered: &[u8], before: &[fattr3], are_known: bool) -> Vec<String> {
    let (body, mut faults) = (call.failure_body(answered), Vec::new());
    let told = body.attributes.iter().chain(body.changes.iter().map(|change| &change.after));
    for (object, told) in call.attributes.iter().chain(&call.changes).zip(told) {
        match told {
            Nfs3Option::Some(told) => {
                let now = rig.attributes(object);
                if !is_same(told, &now, are_known) {
                    faults.push(format!("{told:?}, not {now:?}"));
                }
            }
            Nfs3Option::None if are_known => faults.push("no attributes".to_owned()),
            Nfs3Option::None => {}
        }
    }
    for (before, change) in before.iter().skip(call.attributes.len()).zip(&body.changes) {
        match &change.before {
            Nfs3Option::Some(told) if !is_before(told, before) => {
                faults.push(format!("before: {told:?}, not {before:?}"));
            }
            _ => {}
        }
    }
    faults
}

/// Attributes of the objects of a call, asked for on another server, so that this one has learned nothing.
fn attributes_now(number: usize) -> Vec<fattr3> {
    let (mut rig, call) = rig_for(number, Known::Nothing);
    call.attributes.iter().chain(&call.changes).map(|object| rig.attributes(object)).collect()
}

/// One case: a call on a server of its own, some of whose calls to the host fail.
struct Case<'a> {
    number: usize,
    known: Known,
    at: Range<u64>,
    error: &'a VolumeError,
    /// The objects' attributes before the call.
    before: &'a [fattr3],
}

impl Case<'_> {
    /// The status, and the faults.
    fn run(&self) -> (nfsstat3, Vec<String>) {
        let (mut rig, call) = rig_for(self.number, self.known);
        let record = rig.nfs_record(call.procedure, &call.arguments);
        rig.tree.refuse(self.at.clone(), self.error.clone());
        let reply = rig.reply_to(&record);
        let host_calls = rig.tree.refuse_nothing();
        let (answered, mut faults) = (results(&reply).to_vec(), Vec::new());
        let status = status_of(&answered);
        if status != NFS3_OK {
            if !is_permitted(call.procedure, status) {
                faults.push(format!("{status}"));
            }
            let answers = self.at.end == self.at.start + 1 && self.known == Known::Objects;
            faults.extend(faults_of_body(&mut rig, &call, &answered, self.before, answers));
        }
        if call.needs_cached_reply() && rig.reply_to(&record) != reply {
            faults.push("another reply to the same call".to_owned());
        }
        // The last call to the host makes a change durable that is done already.
        let may_be_done = call.needs_cached_reply() && (status == NFS3_OK || self.at.start + 1 >= host_calls);
        let again = status_of(&rig.call(call.procedure, &call.arguments));
        if again != NFS3_OK && !(may_be_done && [NFS3ERR_EXIST, NFS3ERR_NOENT].contains(&again)) {
            faults.push(format!("then {again}"));
        }
        if rig.holds() != (0, 0) {
            faults.push(format!("holds {:?}", rig.holds()));
        }
        let what = format!("{}, {:?} known, {:?} at {:?}: {status}", call.name, self.known, self.error, self.at);
        (status, faults.into_iter().map(|fault| format!("{what}: {fault}")).collect())
    }
}

fn none(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

// rule: each error of each call to the host is reported to an NFS client by a status that the procedure may return
// kept in: `product/nfs/src/v3/permitted.rs`
#[test]
fn each_error_of_each_call_to_the_host_is_told_by_a_status_that_the_procedure_may_return() {
    let (mut faults, calls) = (Vec::new(), names());
    for (number, (name, procedure)) in calls.into_iter().enumerate() {
        let before = attributes_now(number);
        for known in [Known::Nothing, Known::Objects] {
            let host_calls = host_calls(number, known);
            for (error, own) in errors::table() {
                let mut told = Vec::new();
                for at in 0..host_calls {
                    let case = Case { number, known, at: at..at + 1, error: &error, before: &before };
                    let (status, of_this) = case.run();
                    told.push(status);
                    faults.extend(of_this);
                }
                let is_told = told.is_empty() || told.contains(&own) || !is_permitted(procedure, own);
                if !is_told && !goes_on(name, &error) {
                    faults.push(format!("{name}, {known:?} known, {error:?}: {own} is told by no call, but {told:?}"));
                }
            }
        }
    }
    none(&faults);
}

/// Whether a call goes on after an error of the host.
fn goes_on(name: &str, error: &VolumeError) -> bool {
    match error {
        // The volume asks again until the lease ends.
        VolumeError::Leased => ["READ", "WRITE", "WRITE that is stable", "FSINFO"].contains(&name),
        // A name that was taken meanwhile is looked up. It is gone again.
        VolumeError::Exists if name.starts_with("CREATE") => true,
        // These answer without attributes if the host does not tell any.
        _ => ["FSINFO", "COMMIT"].contains(&name),
    }
}

#[test]
fn a_host_that_fails_from_some_call_on_leaves_no_call_without_a_right_answer() {
    let mut faults = Vec::new();
    for number in 0..names().len() {
        let before = attributes_now(number);
        for known in [Known::Nothing, Known::Objects] {
            for at in 0..host_calls(number, known) {
                for error in [VolumeError::Io { errno: 5 }, VolumeError::Stale, VolumeError::NotFound] {
                    let case = Case { number, known, at: at..u64::MAX, error: &error, before: &before };
                    faults.extend(case.run().1);
                }
            }
        }
    }
    none(&faults);
}

/// An error of a device, and the status that says it best.
fn device_errors() -> [(DeviceError, nfsstat3); 10] {
    [
        (DeviceError::Io { errno: 5 }, NFS3ERR_IO),
        (DeviceError::NoSpace, NFS3ERR_NOSPC),
        (DeviceError::Quota, NFS3ERR_DQUOT),
        (DeviceError::TooLarge, NFS3ERR_FBIG),
        (DeviceError::ReadOnly, NFS3ERR_ROFS),
        (DeviceError::Denied, NFS3ERR_ACCES),
        (DeviceError::Stale, NFS3ERR_STALE),
        (DeviceError::Unsupported, NFS3ERR_NOTSUPP),
        (DeviceError::Hung, NFS3ERR_IO),
        (DeviceError::Lost, NFS3ERR_IO),
    ]
}

#[test]
fn the_table_has_each_error_of_a_device() {
    let rows = device_errors().map(|(error, _)| error);
    afflux_scratch::assert_each_variant(rows, include_str!("../../../device/src/error.rs"), "DeviceError");
}

#[test]
fn each_error_of_a_disk_is_told_by_reads_stable_writes_and_commits() {
    for (error, own) in device_errors() {
        for (name, target) in
            [("READ", FaultTarget::Read), ("WRITE that is stable", FaultTarget::Any), ("COMMIT", FaultTarget::Any)]
        {
            let number = names().iter().position(|(of_call, _)| *of_call == name).unwrap();
            let (mut rig, call) = rig_for(number, Known::Objects);
            if name == "COMMIT" {
                let (file, data) = (&call.changes[0], [7; 4096]);
                assert_eq!(status_of(&rig.call(7, &calls::written(file, stable_how::UNSTABLE, &data))), NFS3_OK);
            }
            let what = format!("{name}, {error:?}");
            let objects: Vec<_> = call.attributes.iter().chain(&call.changes).collect();
            let before: Vec<fattr3> = objects.into_iter().map(|object| rig.attributes(object)).collect();
            rig.disk.add_fault(Fault::always(target, FaultWhat::Error(error)));
            let answered = rig.call(call.procedure, &call.arguments);
            let status = status_of(&answered);
            rig.disk.clear_faults();
            let is_own = is_permitted(call.procedure, own);
            assert!(if is_own { status == own } else { is_permitted(call.procedure, status) }, "{what}: {status}");
            assert_ne!(status, NFS3_OK, "{what}");
            none(&faults_of_body(&mut rig, &call, &answered, &before, true));
            assert_eq!(status_of(&rig.call(call.procedure, &call.arguments)), NFS3_OK, "{what}, then");
            assert_eq!(rig.holds(), (0, 0), "{what}");
        }
    }
}

#[test]
fn each_error_is_told_to_a_mount_by_a_status_that_mount_has() {
    // RFC 1813, section 5.1.5.
    const OF_MOUNT: [u32; 10] = [0, 1, 2, 5, 13, 20, 22, 63, 10004, 10006];
    for (error, _) in errors::table() {
        for at in 0..3 {
            let (mut rig, _) = rig_for(0, Known::Nothing);
            rig.tree.refuse(at..at + 1, error.clone());
            let answered = rig.mount(b"/directory");
            let host_calls = rig.tree.refuse_nothing();
            let status = u32::from_be_bytes(*answered.first_chunk().unwrap());
            assert!(OF_MOUNT.contains(&status) && (status != 0 || host_calls <= at), "{error:?}: {status}");
            assert_eq!(rig.holds(), (0, 0), "{error:?}");
            assert_eq!(rig.mount(b"/directory")[..4], [0; 4], "{error:?}");
        }
    }
}
