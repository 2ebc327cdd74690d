//! The sizes of a clone's files, and the job's part of each.
//!
//! Owns: fio's rules for `size`, `filesize`, `offset` and related options.
//! Does not own: the calls inside that part (`offsets`).
//! Invariants: a share lies inside its file.

use crate::job::{Amount, Job};
use afflux_simulator::Random;

/// A file's size, and the part of it that belongs to the job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileShare {
    pub(crate) file_bytes: u64,
    pub(crate) job_bytes: u64,
    /// The start of the job's part.
    pub(crate) start: u64,
}

/// The smallest block of a job, to which sizes are rounded.
fn block_min(job: &Job) -> u64 {
    job.block_bytes[0].min.min(job.block_bytes[1].min)
}

/// The start of clone `clone` in a file of `whole` bytes.
fn start_of(job: &Job, clone: u64, whole: u64) -> u64 {
    let increment = job.more.offset_increment.of(whole).saturating_mul(clone);
    let at = job.more.offset.of(whole).saturating_add(increment);
    match (job.more.offset, job.more.offset_align) {
        (_, align @ 1..) => at / align * align,
        (Amount::Percent(_), 0) => at / block_min(job) * block_min(job),
        _ => at,
    }
}

/// The sizes of a clone's files. `size` is divided among them; the remainder makes the first files larger by a block.
/// With `filesize` each file has that size, or one drawn from the range. `there` has the sizes of the files that are
/// devices, which do not change.
pub(crate) fn shares(job: &Job, clone: u64, there: &[Option<u64>], random: &mut Random) -> Vec<FileShare> {
    let block = block_min(job);
    let each = job.size / job.files;
    let larger = (job.size - each * job.files) / block;
    let share = |at: u64| {
        let device = there.get(at as usize).copied().flatten();
        let drawn = match (job.file_bytes, device) {
            (None, None) => each + if at < larger { block } else { 0 },
            (None, Some(bytes)) if each == 0 => bytes,
            (None, Some(_)) => each,
            (Some((low, high)), _) if low == high => low,
            (Some((low, high)), _) => random.between(low, high).next_multiple_of(block).min(high),
        };
        let start = start_of(job, clone, device.unwrap_or(drawn));
        // `filesize` gives the file's end, `size` the length of the job's part.
        let ends = job.file_bytes.is_some() || device.is_some() && each == 0;
        let mut job_bytes = if ends { drawn.saturating_sub(start) } else { drawn };
        if job.size_percent != 100 {
            let part = u128::from(drawn) * u128::from(job.size_percent) / 100;
            job_bytes = job_bytes.min(part as u64 / block * block);
        }
        let file_bytes = device.unwrap_or(if ends { drawn } else { start.saturating_add(drawn) });
        FileShare { file_bytes, job_bytes: job_bytes.min(file_bytes.saturating_sub(start)), start }
    };
    (0..job.files).map(share).collect()
}

#[cfg(test)]
mod tests;
