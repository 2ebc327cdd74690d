//! Checks of the attributes that a server returns.
//!
//! Owns: sizes, blocks, times, modes, and the attributes before and after a change.
//! Does not own: writes (`writes`), names (`names`).
//! Invariants: two clients take turns only by their calls; timing affects only how often a server that breaks a rule is
//! caught.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use nfs3_types::nfs3::{nfstime3, stable_how};

use super::definition::{Check, checks};
use super::failure::{Failure, demand, status_of};
use super::work_directory::{PIECE_BYTES, WorkDirectory};
use crate::procedures::{Change, TimeChange};
use crate::results::{Consistency, option};

checks! {
    used_covers_the_data: "a file's blocks are never fewer than its data needs, before and after a COMMIT: tar -S and others take \
           what has no blocks for a hole";
    used_after_a_truncation: "a file that was cut does not keep its blocks";
    consistency_of_a_write: "before and after in a WRITE's reply span this WRITE alone: a client whose cached size and times match \
           'before' keeps its pages";
    consistency_of_a_setattr: "before and after in a SETATTR's reply span this SETATTR alone";
    times_stay_over_a_commit: "a COMMIT does not take back the mtime and ctime that a WRITE told";
    special_bits_are_cleared: "a write takes setuid and setgid from a file, for all who look from then on";
    nanoseconds_out_of_range: "a time with a billion nanoseconds or more is never told back, and the connection stays";
}

fn used_covers_the_data(place: &mut WorkDirectory) -> Result<(), Failure> {
    const BYTES: usize = 1 << 20;
    for round in 0..3 {
        let file = place.file(&format!("data-{round}"))?;
        place.fill(&file, BYTES)?;
        let written = place.attributes(&file)?.used;
        demand(written >= BYTES as u64, || format!("{written} bytes used after {BYTES} were written"))?;
        let told = option(place.client.commit(&file, 0, 0)?.file_wcc.after).map(|after| after.used);
        let used = place.attributes(&file)?.used;
        let least = told.unwrap_or(used).min(used);
        demand(least >= BYTES as u64, || format!("{least} bytes used after a COMMIT of {BYTES}"))?;
    }
    Ok(())
}

fn used_after_a_truncation(place: &mut WorkDirectory) -> Result<(), Failure> {
    const LEFT: u64 = 1000;
    for committed in [false, true] {
        let file = place.file("cut")?;
        place.fill(&file, 4 << 20)?;
        if committed {
            place.client.commit(&file, 0, 0)?;
        }
        place.client.setattr(&file, Change { size: Some(LEFT), ..Change::default() }, None)?;
        let found = place.attributes(&file)?;
        demand(found.size == LEFT, || format!("size {} after a cut to {LEFT}", found.size))?;
        demand(found.used <= PIECE_BYTES as u64, || format!("{} bytes used by a file of {LEFT}", found.used))?;
    }
    Ok(())
}

fn consistency_of_a_write(place: &mut WorkDirectory) -> Result<(), Failure> {
    spans_no_other(
        place,
        &[Own::Write(stable_how::FILE_SYNC), Own::Write(stable_how::DATA_SYNC), Own::Write(stable_how::UNSTABLE)],
    )
}

fn consistency_of_a_setattr(place: &mut WorkDirectory) -> Result<(), Failure> {
    spans_no_other(place, &[Own::Mode])
}

/// The calls of one client, none of which changes a size.
#[derive(Clone, Copy, Debug)]
enum Own {
    Write(stable_how),
    Mode,
}

/// One client extends the file all the time; the other makes calls that leave the size alone. If a reply to the latter
/// has different sizes before and after, it spans another client's write.
fn spans_no_other(place: &mut WorkDirectory, all: &[Own]) -> Result<(), Failure> {
    const ROUNDS: u32 = 150;
    for own in all {
        let file = place.file("shared")?;
        place.fill(&file, 4096)?;
        let mut other = place.another()?;
        let done = AtomicBool::new(false);
        let (mut spanned, mut told) = (0, 0);
        std::thread::scope(|scope| -> Result<(), Failure> {
            let grow = scope.spawn(|| -> Result<(), Failure> {
                let mut end = 4096;
                while !done.load(Ordering::Relaxed) {
                    other.write(&file, end, &[1; 64], stable_how::UNSTABLE)?;
                    end += 64;
                }
                Ok(())
            });
            let run = (0..ROUNDS).try_for_each(|round| -> Result<(), Failure> {
                let consistency = place.change(*own, &file, round)?;
                if let (Some(before), Some(after)) = (consistency.before, consistency.after) {
                    told += 1;
                    spanned += u32::from(before.size != after.size);
                }
                Ok(())
            });
            done.store(true, Ordering::Relaxed);
            run.and(grow.join().unwrap_or(Ok(())))
        })?;
        demand(spanned == 0, || format!("{own:?}: {spanned} of {told} replies span another client's write"))?;
    }
    Ok(())
}

impl WorkDirectory {
    fn change(&mut self, own: Own, file: &crate::Handle, round: u32) -> Result<Consistency, Failure> {
        Ok(match own {
            Own::Write(stability) => self.client.write(file, 0, &[round as u8; 512], stability)?.file_wcc.into(),
            Own::Mode => {
                let mode = if round.is_multiple_of(2) { 0o644 } else { 0o666 };
                self.client.setattr(file, Change { mode: Some(mode), ..Change::default() }, None)?
            }
        })
    }
}

fn times_stay_over_a_commit(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("times")?;
    for round in 0..20 {
        place.client.write(&file, round * 4096, &[7; 4096], stable_how::UNSTABLE)?;
        let before = place.attributes(&file)?;
        place.client.commit(&file, 0, 0)?;
        let after = place.attributes(&file)?;
        let at = |time: nfstime3| SystemTime::from(time);
        let kept = at(after.mtime) >= at(before.mtime) && at(after.ctime) >= at(before.ctime);
        demand(kept, || {
            format!(
                "round {round}: mtime {:?}, ctime {:?} became {:?}, {:?}",
                before.mtime, before.ctime, after.mtime, after.ctime
            )
        })?;
    }
    Ok(())
}

fn special_bits_are_cleared(place: &mut WorkDirectory) -> Result<(), Failure> {
    for (at, stability) in [stable_how::UNSTABLE, stable_how::FILE_SYNC].into_iter().enumerate() {
        let file = place.file(&format!("program-{at}"))?;
        place.client.setattr(&file, Change { mode: Some(0o6777), ..Change::default() }, None)?;
        place.client.set_user(Some(crate::User { uid: 65_533, gid: 65_533 }));
        let written = place.client.write(&file, 0, b"#!", stability);
        place.client.set_user(Some(crate::USER_ROOT));
        written?;
        let mode = place.attributes(&file)?.mode & 0o7777;
        demand(mode == 0o777, || format!("mode {mode:o} after a write ({stability:?}) to a file of mode 6777"))?;
        place.client.commit(&file, 0, 0)?;
        let mode = place.attributes(&file)?.mode & 0o7777;
        demand(mode == 0o777, || format!("mode {mode:o} after a COMMIT ({stability:?})"))?;
    }
    Ok(())
}

fn nanoseconds_out_of_range(place: &mut WorkDirectory) -> Result<(), Failure> {
    let file = place.file("time")?;
    let time = nfstime3 { seconds: 1_000, nseconds: 1_000_000_000 };
    status_of(place.client.setattr(&file, Change { mtime: TimeChange::To(time), ..Change::default() }, None))?;
    let mtime = place.attributes(&file)?.mtime;
    demand(mtime.nseconds < 1_000_000_000, || format!("mtime has {} nanoseconds", mtime.nseconds))
}
