//! The pace of a job's calls: the time of the next call, and checks of minimum rates.
//!
//! Owns: `rate`, `rate_iops`, `rate_process`, `rate_min` and `rate_iops_min`, by fio's rules.
//! Does not own: waiting (`runner`).
//! Invariants: without a rate nothing waits.

use afflux_engine::Nanos;

use crate::job::Job;
use crate::offsets::DIRECTIONS;
use crate::sequence::Direction;
use crate::zipf::by_chance_ns;
use afflux_simulator::Random;

/// Minimum rates are not checked for this long after the start.
const SETTLES_NS: u64 = 2_000_000_000;

pub(crate) struct Pace {
    start_ns: u64,
    /// Bytes read, written and trimmed, for rates.
    bytes: [u64; DIRECTIONS],
    calls: [u64; DIRECTIONS],
    /// Bytes per second of each; 0: no limit.
    rates: [u64; DIRECTIONS],
    block_bytes: [u64; DIRECTIONS],
    /// The time of the next call, if it is drawn.
    drawn_ns: Option<([u64; DIRECTIONS], Random)>,
    /// The time of the last check, and the bytes and calls moved by then.
    looked: (u64, [u64; DIRECTIONS], [u64; DIRECTIONS]),
}

impl Pace {
    pub(crate) fn of(job: &Job, now_ns: u64, random: Random) -> Self {
        let sizes = job.block_bytes;
        // A number of calls per second is a rate in the smallest blocks, as in fio.
        let rate = |at: usize| job.rate_bytes[at].max(job.rate_calls[at].saturating_mul(sizes[at].min));
        Self {
            start_ns: now_ns,
            bytes: [0; DIRECTIONS],
            calls: [0; DIRECTIONS],
            rates: [rate(0), rate(1), rate(1)],
            block_bytes: [sizes[0].min, sizes[1].min, sizes[1].min],
            drawn_ns: job.more.poisson.then_some(([0; DIRECTIONS], random)),
            looked: (now_ns, [0; DIRECTIONS], [0; DIRECTIONS]),
        }
    }

    /// Whether there is a rate limit.
    pub(crate) fn has_rates(&self) -> bool {
        self.rates != [0; DIRECTIONS]
    }

    /// Whether there is a minimum rate.
    pub(crate) fn has_least(&self, job: &Job) -> bool {
        job.more.rate_min != [0; 2] || job.more.rate_min_calls != [0; 2]
    }

    pub(crate) fn begins(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
        self.looked.0 = now_ns;
    }

    /// A call is submitted, while others are in flight.
    pub(crate) fn issued(&mut self, direction: Direction, bytes: u64) {
        self.bytes[direction as usize] += bytes;
        self.draw(direction as usize);
    }

    /// A call has ended; `counted` if it was counted at its submission.
    pub(crate) fn moved(&mut self, direction: Direction, bytes: u64, counted: bool) {
        self.calls[direction as usize] += 1;
        if !counted {
            self.issued(direction, bytes);
        }
    }

    fn draw(&mut self, at: usize) {
        if let (Some((next_ns, random)), rate @ 1..) = (&mut self.drawn_ns, self.rates[at]) {
            let mean_ns = u128::from(self.block_bytes[at]) * u128::from(Nanos::SECOND) / u128::from(rate);
            next_ns[at] = next_ns[at].saturating_add(by_chance_ns(mean_ns as u64, random));
        }
    }

    fn due_ns(&self, at: usize) -> u64 {
        match (self.rates[at], &self.drawn_ns) {
            (0, _) => self.start_ns,
            (_, Some((next_ns, _))) => self.start_ns.saturating_add(next_ns[at]),
            (rate, None) => {
                let ns = u128::from(self.bytes[at]) * u128::from(Nanos::SECOND) / u128::from(rate);
                self.start_ns.saturating_add(ns.min(u128::from(u64::MAX)) as u64)
            }
        }
    }

    /// The direction and the time of the next call, unless the wanted one can be made now.
    pub(crate) fn next(&self, wanted: Direction, mixed: bool, now_ns: u64) -> Option<(Direction, u64)> {
        if !self.has_rates() {
            return None;
        }
        let other = if wanted == Direction::Read { Direction::Write } else { Direction::Read };
        let (own_ns, other_ns) = (self.due_ns(wanted as usize), self.due_ns(other as usize));
        if own_ns <= now_ns {
            return None;
        }
        if mixed && other_ns < own_ns { Some((other, other_ns)) } else { Some((wanted, own_ns)) }
    }

    /// The direction that is too slow, if any; checked once a cycle.
    pub(crate) fn falls_behind(&mut self, job: &Job, now_ns: u64) -> Option<String> {
        let more = &job.more;
        if !self.has_least(job) || now_ns < self.start_ns + SETTLES_NS {
            return None;
        }
        let (since_ns, bytes, calls) = self.looked;
        let spent_ns = now_ns.saturating_sub(since_ns);
        if spent_ns < more.rate_cycle_ns.max(1) {
            return None;
        }
        self.looked = (now_ns, self.bytes, self.calls);
        let each = |moved: u64| (u128::from(moved) * u128::from(Nanos::SECOND) / u128::from(spent_ns)) as u64;
        let name = ["read", "write"];
        (0..2).find_map(|at| {
            let (rate, least) = (each(self.bytes[at] - bytes[at]), more.rate_min[at]);
            let (often, fewest) = (each(self.calls[at] - calls[at]), more.rate_min_calls[at]);
            let used = if at == 0 { job.pattern.reads } else { job.pattern.writes };
            match () {
                () if !used => None,
                () if rate < least => Some(format!("{}: {rate} bytes/s, less than rate_min={least}", name[at])),
                () if often < fewest => {
                    Some(format!("{}: {often} calls/s, less than rate_iops_min={fewest}", name[at]))
                }
                () => None,
            }
        })
    }
}
