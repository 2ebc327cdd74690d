//! The flusher's runs of Linux 6.1: when it wakes, and how much periodic writeback writes.
//!
//! A flusher wakes 5 s after its device got dirty pages, 5 s after its last run, and at once for a writer above the
//! background threshold. A run begins with old data, if 5 s have passed since it last did. That part writes at most as
//! many pages as the machine has dirty ones, and one more for each inode in use. It writes files that have expired. It
//! also goes on with a file whose last slice was used up, *however young its data are*. Then the run writes for the
//! background threshold.
//!
//! Linux 6.1, `fs/fs-writeback.c`: `wb_workfn`, `wb_check_old_data_flush`, `get_nr_dirty_pages`; `queue_io` takes all
//! of `b_more_io`, and compares the age of the files in `b_dirty` alone; `requeue_inode` puts a file with a used-up
//! slice into `b_more_io`.
//!
//! Not modelled: which of several files used its slice up. The device's next file in turn goes on.
//!
//! Owns: the state of the runs. Does not own: the background threshold, the size of a slice (`control`).
//! Invariants: a run ends before the flusher sleeps. Without periodic writeback only writers wake it.

use afflux_engine::Nanos;

use crate::jiffies::TickRate;

/// `dirty_writeback_centisecs` of a kernel that was left alone.
const INTERVAL_S: u64 = 5;

/// The part of a run that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Asleep,
    /// Old data, with the pages that it may still write.
    Old {
        left: u64,
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
    /// Whether the last slice was used up.
    goes_on: bool,
    /// A turn was given whose slice is not known yet.
    begins: bool,
}

/// The facts that a step of a run depends on.
pub(crate) struct Seen {
    pub(crate) now: Nanos,
    pub(crate) ticks: TickRate,
    /// When the device's oldest dirty file became dirty.
    pub(crate) dirty_since: Option<Nanos>,
    /// The age of old data; [`u64::MAX`] without periodic writeback.
    pub(crate) expire_ns: u64,
    /// The machine's dirty pages and inodes in use.
    pub(crate) pages_and_inodes: u64,
    /// Whether a writer wakes the flusher.
    pub(crate) woken: bool,
}

/// The next step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A slice of the next file in turn, of any age.
    GoOn,
    /// A slice of a file that has expired.
    Expired,
    /// For the background threshold, if the device is above it.
    Background,
    /// Nothing before then.
    SleepUntil(Nanos),
}

fn wake_up(ticks: TickRate, from: Nanos) -> Nanos {
    ticks.fires(from, INTERVAL_S * ticks.a_second())
}

impl Periodic {
    pub(crate) fn step(&mut self, seen: &Seen) -> Step {
        let Some(since) = seen.dirty_since else {
            *self = Self { looked_at: self.looked_at, ..Self::default() };
            return Step::SleepUntil(Nanos::NEVER);
        };
        let is_on = seen.expire_ns != u64::MAX;
        if self.part == Part::Asleep {
            let due = match self.wakes_at {
                _ if !is_on => Nanos::NEVER,
                0 => wake_up(seen.ticks, since),
                at => Nanos(at),
            };
            if seen.now < due && !seen.woken {
                return Step::SleepUntil(due);
            }
            self.part = Part::Background;
            if is_on && seen.now.0 >= self.looked_at + INTERVAL_S * Nanos::SECOND {
                self.looked_at = seen.now.0;
                self.part = Part::Old { left: seen.pages_and_inodes };
            }
        }
        if let Part::Old { left: 1.. } = self.part {
            self.begins = true;
            if self.goes_on {
                return Step::GoOn;
            }
            if since.after(seen.expire_ns) <= seen.now {
                return Step::Expired;
            }
        }
        (self.part, self.begins) = (Part::Background, true);
        Step::Background
    }

    /// The device is not above its background threshold: the run ends.
    pub(crate) fn ends(&mut self, ticks: TickRate, now: Nanos) -> Nanos {
        (self.part, self.begins) = (Part::Asleep, false);
        self.wakes_at = wake_up(ticks, now).0;
        Nanos(self.wakes_at)
    }

    /// The pages that the turn asks for. A slice of old data has at most the pages that the run may still write.
    pub(crate) fn asked(&self) -> u64 {
        match self.part {
            Part::Old { left } if self.begins => left,
            _ => u64::MAX,
        }
    }

    /// The turn that was given has a slice of `pages`, and the device as many dirty ones.
    pub(crate) fn slice(&mut self, pages: u64, dirty: u64) {
        if !std::mem::take(&mut self.begins) {
            return;
        }
        self.goes_on = dirty > pages;
        if let Part::Old { left } = &mut self.part {
            *left = left.saturating_sub(pages);
        }
    }
}

#[cfg(test)]
mod tests;
