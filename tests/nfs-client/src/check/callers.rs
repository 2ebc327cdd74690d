//! Checks of the permissions of callers other than root, on a server that executes calls as their callers.
//!
//! Owns: ACCES and PERM, and the owner's rights under NFS that the host would refuse.
//! Does not own: trust in callers' identities and squashing, which are settings of the server.
//! Invariants: those of its parent. The connection's caller is root again after each check.

use nfs3_types::nfs3::{nfstime3, stable_how};

use super::definition::{Check, checks};
use super::failure::{Failure, Faults};
use super::work_directory::WorkDirectory;
use crate::connection::{USER_ROOT, User};
use crate::procedures::{Change, Creation, Node, TimeChange};
use crate::status::{ACCES, INVAL, PERM};

const OWNER: User = User { uid: 65_531, gid: 65_531 };
const OTHER: User = User { uid: 65_533, gid: 65_533 };

/// Runs calls as another user.
fn as_user(
    place: &mut WorkDirectory,
    user: User,
    run: impl FnOnce(&mut WorkDirectory) -> Result<(), Failure>,
) -> Result<(), Failure> {
    place.client.set_user(Some(user));
    let result = run(place);
    place.client.set_user(Some(USER_ROOT));
    result
}

fn denied(place: &mut WorkDirectory) -> Result<(), Failure> {
    let closed = place.subdirectory("closed")?;
    let listed = place.subdirectory("listed")?;
    let file = place.client.create_empty(&closed, b"file")?;
    let inside = place.client.mkdir(&closed, b"inside", Change::default())?;
    drop(inside);
    let mode = |mode| Change { mode: Some(mode), ..Change::default() };
    place.client.setattr(&file, mode(0o600), None)?;
    place.client.setattr(&listed, mode(0o755), None)?;
    place.client.create_empty(&listed, b"file")?;
    place.client.setattr(&closed, mode(0o700), None)?;
    let acces = &[ACCES];
    let mut faults = Faults::default();
    as_user(place, OTHER, |place| {
        let client = &mut place.client;
        faults.expect("LOOKUP", client.lookup(&closed, b"file"), acces)?;
        faults.expect("READ", client.read(&file, 0, 100), acces)?;
        faults.expect("WRITE", client.write(&file, 0, b"x", stable_how::UNSTABLE), acces)?;
        faults.expect("READDIR", client.readdir(&closed, 0, [0; 8], 4096), acces)?;
        faults.expect("READDIRPLUS", client.readdirplus(&closed, 0, [0; 8], 4096, 4096), acces)?;
        for (what, directory) in [("closed", &closed), ("not writable", &listed)] {
            let text = |name: &str| format!("{name}, {what}");
            let made = client.create(directory, b"new", Creation::Guarded(Change::default()));
            faults.expect(&text("CREATE"), made, acces)?;
            faults.expect(&text("MKDIR"), client.mkdir(directory, b"new", Change::default()), acces)?;
            faults.expect(&text("SYMLINK"), client.symlink(directory, b"new", b"x", Change::default()), acces)?;
            faults.expect(&text("MKNOD"), client.mknod(directory, b"new", Node::Fifo(Change::default())), acces)?;
            faults.expect(&text("REMOVE"), client.remove(directory, b"file"), acces)?;
            let renamed = client.rename((directory, b"file"), (directory, b"new"));
            faults.expect(&text("RENAME"), renamed, acces)?;
        }
        faults.expect("RMDIR", client.rmdir(&closed, b"inside"), acces)?;
        let size = Change { size: Some(0), ..Change::default() };
        faults.expect("SETATTR of a size", client.setattr(&file, size, None), acces)?;
        let granted = client.access(&file, 0x3f)?.access;
        faults.demand(granted == 0, || format!("ACCESS grants {granted:#x} of a file of mode 600"));
        faults.expect("GETATTR", client.getattr(&file), &[0])
    })?;
    faults.end()
}

checks! {
    denied: "a call that mode bits forbid is ACCES, for each procedure";
    not_the_owner: "only its owner changes a file's mode or times to any, and only root gives it away";
    owner_writes_anyway: "an owner who made a file read-only writes on to it: a client that opened it for writing may have changed the mode since";
}

fn not_the_owner(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("owned")?;
    let give = |user: User| Change { uid: Some(user.uid), gid: Some(user.gid), ..Change::default() };
    place.client.setattr(&file, give(OWNER), None)?;
    let mut faults = Faults::default();
    let refused = &[PERM, ACCES];
    let time = TimeChange::To(nfstime3 { seconds: 1, nseconds: 0 });
    as_user(place, OTHER, |place| {
        let client = &mut place.client;
        let mode = Change { mode: Some(0o777), ..Change::default() };
        faults.expect("another's mode", client.setattr(&file, mode, None), refused)?;
        let times = Change { mtime: time, ..Change::default() };
        faults.expect("another's times", client.setattr(&file, times, None), refused)?;
        // Any caller that may write may set the times to now.
        let now = Change { mtime: TimeChange::Now, atime: TimeChange::Now, ..Change::default() };
        faults.expect("now, of a file of mode 666", client.setattr(&file, now, None), &[0])?;
        faults.expect("taking it", client.setattr(&file, give(OTHER), None), refused)
    })?;
    as_user(place, OWNER, |place| {
        let client = &mut place.client;
        faults.expect("giving it away", client.setattr(&file, give(OTHER), None), &[PERM, ACCES, INVAL])?;
        let mode = Change { mode: Some(0o640), mtime: time, ..Change::default() };
        faults.expect("its owner", client.setattr(&file, mode, None), &[0])
    })?;
    faults.end()
}

fn owner_writes_anyway(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("mine")?;
    place.client.setattr(
        &file,
        Change { uid: Some(OWNER.uid), gid: Some(OWNER.gid), mode: Some(0o444), ..Change::default() },
        None,
    )?;
    let mut faults = Faults::default();
    as_user(place, OWNER, |place| {
        let client = &mut place.client;
        faults.expect("WRITE", client.write(&file, 0, b"still", stable_how::UNSTABLE), &[0])?;
        faults.expect("COMMIT", client.commit(&file, 0, 0), &[0])?;
        faults.expect("mode", client.setattr(&file, Change { mode: Some(0), ..Change::default() }, None), &[0])?;
        faults.expect("READ at mode 0", client.read(&file, 0, 5), &[0])
    })?;
    as_user(place, OTHER, |place| {
        faults.expect("another's WRITE", place.client.write(&file, 0, b"x", stable_how::UNSTABLE), &[ACCES])
    })?;
    faults.end()
}
