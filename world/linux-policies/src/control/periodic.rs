//! The flusher's runs of Linux 3.6 and 6.1: when it wakes, and how much periodic writeback writes.
//!
//! A flusher wakes an interval (`dirty_writeback_centisecs`) after its device got dirty pages, an interval after its
//! last run, and at once for a writer above the background threshold. A change of the interval wakes it, too. A run
//! begins with old data, if an interval has passed since it last did. That part writes as many pages as the machine had
//! dirty ones when it began, and one more for each inode in use. Pages *written* count against that, not the slices
//! that files are given. So one run writes any number of small files. It ends early once nothing old is left. Then the
//! run writes for the background threshold.
//!
//! Old data are the files of the present round. A new round has the files whose slice was used up, *however young their
//! data are*, and of the others those that have expired.
//!
//! Linux 6.1, `fs/fs-writeback.c`: `wb_workfn`, `wb_check_old_data_flush`, `get_nr_dirty_pages`, `wb_writeback`;
//! `queue_io` takes all of `b_more_io`, and compares the age of the files in `b_dirty` alone; `requeue_inode` puts a
//! file with a used-up slice into `b_more_io`. 3.6 has the same steps in `bdi_writeback_thread` and `wb_do_writeback`.
//! Its timers fire at the tick, without the slack that a timer of a sleeping flusher has in 6.1.
//!
//! Not modelled: 6.1 writes all dirty pages once if the interval changes. 3.6 finds a changed interval only when its
//! flusher wakes for another reason (`dirty_writeback_centisecs_handler` wakes nobody before 4.15). Its first timer is
//! late by up to 1/256 (`apply_slack`). Pages that a sync writes during a run count against the run here.
//!
//! Owns: the state of the runs. Does not own: the order of files (the engine's lists), the background threshold, the
//! size of a slice (`control`).
//! Invariants: a run ends before the flusher sleeps. Without periodic writeback only writers wake it. A slice takes its
//! file off the lists if it writes nothing, so a run ends.

use afflux_engine::Nanos;

use crate::jiffies::TickRate;

/// The part of a run that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Asleep,
    /// Old data, with the pages that it may still write.
    Old {
        left: u64,
        /// Pages that the device had been given when the last slice began.
        submitted: u64,
    },
    Background,
}

/// The runs of a device's flusher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Periodic {
    part: Part,
    /// When the next run is due; 0 while it depends on when the device became dirty.
    wakes_at: u64,
    /// The instant at which old data was last looked for.
    looked_at: u64,
    /// The interval at the last step, once there was one.
    interval_ns: Option<u64>,
    /// A file was chosen whose slice is not known yet.
    begins: bool,
}

/// The facts that a step of a run depends on.
pub(crate) struct Seen {
    pub(crate) now: Nanos,
    pub(crate) ticks: TickRate,
    /// When the device's oldest dirty file became dirty.
    pub(crate) dirty_since: Option<Nanos>,
    /// Whether there are files of a round.
    pub(crate) has_round: bool,
    /// The age of old data.
    pub(crate) expire_ns: u64,
    /// The time between two runs; 0 without periodic writeback.
    pub(crate) interval_ns: u64,
    /// Whether timers round up as since Linux 4.8.
    pub(crate) coarse_timers: bool,
    /// Pages that the device has been given so far.
    pub(crate) submitted: u64,
    /// The machine's dirty pages and inodes in use.
    pub(crate) pages_and_inodes: u64,
    /// Whether a writer wakes the flusher.
    pub(crate) woken: bool,
}

/// The next step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A slice of the round's next file. A new round has what became dirty up to then.
    Old { before: Nanos },
    /// For the background threshold, if the device is above it.
    Background,
    /// Nothing before then.
    SleepUntil(Nanos),
}

impl Seen {
    /// When the timer of the next run fires that is set at `from`.
    fn wake_up(&self, from: Nanos) -> Nanos {
        let interval = (u128::from(self.interval_ns) * u128::from(self.ticks.a_second()))
            .div_ceil(u128::from(Nanos::SECOND)) as u64;
        match self.coarse_timers {
            true => self.ticks.fires(from, interval),
            false => Nanos(self.ticks.until(Nanos(0), self.ticks.at(from) + interval)),
        }
    }

    /// The latest instant at which expired data became dirty, if there has been time for any to expire.
    fn expired(&self) -> Option<Nanos> {
        self.now.0.checked_sub(self.expire_ns).map(Nanos)
    }
}

impl Periodic {
    pub(crate) fn step(&mut self, seen: &Seen) -> Step {
        let is_changed = self.interval_ns.replace(seen.interval_ns).is_some_and(|before| before != seen.interval_ns);
        let Some(since) = seen.dirty_since else {
            *self = Self { looked_at: self.looked_at, interval_ns: self.interval_ns, ..Self::default() };
            return Step::SleepUntil(Nanos::NEVER);
        };
        let is_on = seen.interval_ns > 0;
        match &mut self.part {
            Part::Asleep => {
                let due = match self.wakes_at {
                    _ if !is_on => Nanos::NEVER,
                    _ if is_changed => seen.now,
                    0 => seen.wake_up(since),
                    at => Nanos(at),
                };
                if seen.now < due && !seen.woken {
                    return Step::SleepUntil(due);
                }
                self.part = Part::Background;
                if is_on && seen.now.0 >= self.looked_at + seen.interval_ns {
                    self.looked_at = seen.now.0;
                    self.part = Part::Old { left: seen.pages_and_inodes, submitted: seen.submitted };
                }
            }
            Part::Old { left, submitted } => {
                *left = left.saturating_sub(seen.submitted.saturating_sub(*submitted));
                *submitted = seen.submitted;
            }
            Part::Background => {}
        }
        if let Part::Old { left: 1.., .. } = self.part {
            let before = seen.expired();
            if seen.has_round || before.is_some_and(|before| since <= before) {
                self.begins = true;
                return Step::Old { before: before.unwrap_or(Nanos(0)) };
            }
        }
        (self.part, self.begins) = (Part::Background, true);
        Step::Background
    }

    /// The device is not above its background threshold: the run ends.
    pub(crate) fn ends(&mut self, seen: &Seen) -> Nanos {
        (self.part, self.begins) = (Part::Asleep, false);
        let wakes_at = if seen.interval_ns == 0 { Nanos::NEVER } else { seen.wake_up(seen.now) };
        self.wakes_at = wakes_at.0;
        wakes_at
    }

    /// The pages that the run asks for. A slice of old data has at most the pages that the run may still write.
    pub(crate) fn asked(&self) -> u64 {
        match self.part {
            Part::Old { left, .. } if self.begins => left,
            _ => u64::MAX,
        }
    }

    /// The file that was chosen has its slice.
    pub(crate) fn slice_begins(&mut self) {
        self.begins = false;
    }
}

#[cfg(test)]
mod tests;
