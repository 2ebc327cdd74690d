//! The flush budget: each device owes at most a stated amount of its own time.
//!
//! Dirty data is counted in the **device time that it will take to write it**. That is a price for each run (a seek, a
//! flash block, a call) and a price for its bytes, both learned from completions. Ten thousand scattered pages then
//! weigh more than one extent of the same size. A limit of one second means a second on a USB stick and on an NVMe
//! drive. Pausing the writers that add to the backlog `D` steers it into a band:
//!
//! ```text
//! pause per ns of new cost, for one writer
//!    ^                                           |
//! 16 +                                         __|  nobody enters at D >= T, except light payers below 9T/8
//!    |                                        /  |  and a trickle: 1/16 of the completed time
//!    |                                      _/   |
//!  4 +                                   __/     |
//!    |                                 _/        |
//!  1 +                           ____x/          |  x: the middle of the band; each of N waiting payers gets
//!    |__________________________/    .           |     exactly 1/N of the device
//!    +-------------------------+-----+-----------+--------> D
//!    0                         F = 3T/4  7T/8   T
//! ```
//!
//! F is as near to T as smooth pauses allow. In a narrow band each completed request changes the pauses more. For
//! writes to a device of 25 MB/s the simulated 99.9th percentile is 3.5 ms with F = T/4, 3.9 with T/2, 4.7 with 5T/8,
//! and 6.7 with 3T/4.
//!
//! A set of pages that writers overwrite all the time stays in memory while its debt is below F. Its files are *hot*:
//! the flusher passes them over until they expire, a caller syncs them, or D reaches F. Then it writes them after all
//! other files, except files that have been dirty for 2T.
//!
//! A sync of everything that a device owes goes first, to its end. If it shared the device with pages dirtied
//! meanwhile, it would take longer than the debt at its start.
//!
//! Properties, each a test here or of the engine that runs the law:
//!
//! 1. *Ends.* `D <= F`: no pause. `D >= T`: nobody enters, except under 8 and 9. In the middle of the band with N
//!    payers each gets 1/N of the device.
//! 2. *Monotonic* in the backlog, in the debt and in N.
//! 3. *Smooth.* One request that completes moves a pause by 15 % at most in the middle of the band.
//! 4. *One pause* is 100 ms at most, then a fresh decision; under 1 ms the debt is carried instead.
//! 5. *Backlog* stays below T, plus an allowance for each payer, plus T/8 for light payers.
//! 6. *Isolation.* A decision reads its own device, and the memory guard's limit for it.
//! 7. *Fair by cost*: equal payers get equal bytes for any size of their writes. Waiting clients get equal parts,
//!    however many files each writes.
//! 8. *Light payers* do not wait below 9T/8: an unused part becomes credit, `T/8N` at most.
//! 9. *No starvation.* At `D >= T` waiting payers are admitted in order, by 1/16 of each completion's time.
//! 10. *Recovery.* One stalled window moves a price by 5 % at most; a real change of speed is followed in a second.
//!     Beside flushes of a volatile cache a window lasts a second, so prices follow in some seconds there.
//! 11. *Unknown device*: the first backlog is bounded, however slow the device turns out to be.
//! 12. *Burst.* 3T/4 of device time enters unpaused.
//! 13. *Hang.* A device counts as hung if it completes nothing for eight times the cost of the requests in flight, 2 s
//!     at least and 30 s at most. Only its own payers wait; a knob may refuse them after a time.
//! 14. *Readers* beside a writer move the prices of writes by 10 % at most, and the reverse.
//! 15. *The promise is in wall time*: beside readers the cost of dirty data grows as much as the time of writes.
//! 16. *A late reaper* does not make a device look slow.
//! 17. *An idle device never waits* for a token, a timer or a batch.
//! 18. *Hot sets.* Writers overwrite a set of pages that owes less than F at the speed of memory, also beside other
//!     programs on the disk. The flusher writes a page of the set at most once in T, except for syncs and age.
//! 19. *Other programs.* Two seconds after another program has stopped using the disk, writers have nine tenths of
//!     their earlier rate.
//!
//! Where runs are dear and many payers wait, T alone would have to be stretched far for runs of a good length. There
//! payers have *portions*. A payer dirties a whole long run at once, which counts as backlog as soon as it is granted,
//! and then waits for its cost. A payer that has paid and finds the limit reached queues in order; the queue admits one
//! payer at a time (9).
//!
//! Sources: OpenZFS's curve d/(max-d), scaled to 1 in the middle; iocost's occupancy as currency and debt; BBR's
//! discount of work-limited samples. CoDel gave time instead of bytes, and FQ-CoDel the light flows that never wait.
//!
//! While the device would idle, a file that has been left alone for 200 ms is written behind, one small request at a
//! time. A file that is rewritten over and over has to be left alone for longer, up to its expiry.
//!
//! A device that takes requests of 8 MiB is like an object store: its calls overlap, and small ones share one. There a
//! run costs nothing, a request is worth an eighth of T, of 1 MiB at least, and nothing is written behind. A store
//! whose speed is unknown gets its first writes at 1 MiB of dirty data. Syncs may have twice the requests in flight. A
//! refusal for too many requests counts as a slow round, and bounds all requests by the learned number for 10 s.
//!
//! Each of N payers waits as if it had 1/N of the device. With several clients, N is the number of clients with waiting
//! payers, times the number of this client's waiting payers. A file is a payer once it has dirtied a MiB. All younger
//! files of a client are one payer together: otherwise a client that makes a new file for each write would have a new
//! allowance each time.
//!
//! Owns: the law's arithmetic (prices and their learning, the curve, debts, the amount in flight, sizes of requests);
//! its knobs; the policy that applies it (`policy`).
//! Does not own: clocks, lists, tasks, pages; carrying any answer out.
//! Invariants: integers only, in ns; divisions truncate toward zero. Pure: the same calls give the same answers.

#![forbid(unsafe_code)]

mod estimator;
mod knobs;
mod parallel;
mod payer;
mod policy;
mod prices;

pub use estimator::{Estimator, EstimatorSnapshot, KnownPrices, RememberedPrices};
pub use knobs::{BudgetKnob, KNOBS, Knobs};
pub use parallel::Parallelism;
pub use payer::{AdmissionRule, Band, PayerDebt, Verdict, guarded_backlog_ns, snapshot_debt_ns};
pub use policy::{Budget, DeviceMemory, FIGURES, OWN_POLICY, PayerMemory};
pub use prices::{Cost, DirectionPrices, in_flight_ns, request_bytes};

/// Bytes of a MiB, the unit of the price of bytes.
pub(crate) const MIB: u64 = 1 << 20;

/// One, in the ratios of this law.
pub const ONE: u64 = 1024;

pub(crate) const MILLISECOND: u64 = 1_000_000;
