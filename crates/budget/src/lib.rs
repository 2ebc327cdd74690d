//! The flush budget: each device owes at most a stated amount of its own time.
//!
//! What is dirty is counted in the **device time that it will take to write it**: a price for each run (a seek, a
//! flash block, a call) and a price for its bytes, both learned from completions. Ten thousand scattered pages then
//! weigh more than one extent of the same size, and a limit of one second means a second on a USB stick and on an
//! NVMe drive. The backlog `D` is steered into a band by pausing those who add to it:
//!
//! ```text
//! pause per ns of new cost, for one writer
//!    ^                                           |
//! 16 +                                         __|  nobody enters at D >= T, but light payers below 9T/8
//!    |                                        /  |  and a trickle: 1/16 of what completes
//!    |                                      _/   |
//!  4 +                                   __/     |
//!    |                                 _/        |
//!  1 +                           ____x/          |  x: the middle of the band; each of N payers who wait gets
//!    |__________________________/    .           |     exactly 1/N of the device
//!    +-------------------------+-----+-----------+--------> D
//!    0                         F = 3T/4  7T/8   T
//! ```
//!
//! F is as near to T as smooth pauses let it be. Pauses change the more with each request that completes, the narrower the
//! band is: of writes to a device of 25 MB/s, simulated, one in a thousand takes 3.5 ms with F = T/4, 3.9 with T/2, 4.7
//! with 5T/8, and 6.7 with 3T/4.
//!
//! A set of pages that is overwritten all the time, and whose debt is below F, stays in memory. Its files are *hot*: the
//! flusher passes them over until they expire, somebody syncs them, or D comes to F. Then it writes them after all others,
//! and each that has been dirty for 2T before the others.
//!
//! A sync of all that a device owes goes before everything else to its end. Where it shared the device with what is
//! dirtied meanwhile, it would take longer than what was owed when it came.
//!
//! Properties, each a test here or of the engine that runs the law:
//!
//! 1. *Ends.* `D <= F`: no pause. `D >= T`: nobody enters but by 8 and 9. In the middle of the band with N payers each
//!    gets 1/N of the device.
//! 2. *Monotonic* in the backlog, in the debt and in N.
//! 3. *Smooth.* One request that completes moves a pause by 15 % at most in the middle of the band.
//! 4. *One pause* is 100 ms at most, then a fresh decision; under 1 ms the debt is carried instead.
//! 5. *Backlog* stays below T and an allowance a payer and T/8 for light payers.
//! 6. *Isolation.* A decision reads its own device and the total of dirty bytes.
//! 7. *Fair by cost*: equal payers get equal bytes whatever the size of their writes; and clients that wait get equal
//!    parts, however many files each writes.
//! 8. *Light payers* do not wait below 9T/8: unused share becomes credit, `T/8N` at most.
//! 9. *No starvation.* At `D >= T` those who wait are admitted in their order by 1/16 of each completion's time.
//! 10. *Recovery.* One stalled window moves a price by 5 % at most; a real change of speed is followed in a second.
//! 11. *Unknown device*: the first backlog is bounded, whatever the device turns out to be.
//! 12. *Burst.* 3T/4 of device time enters unpaused.
//! 13. *Hang.* A device that completes nothing for eight times the cost of what is in flight, 2 s at least and 30 s at
//!     most, is told as hung. Only its own payers wait, or are refused if a knob says after how long.
//! 14. *Readers* beside a writer move the prices of writes by 10 % at most, and the reverse.
//! 15. *The promise is in wall time*: beside readers what is dirty counts for as many times more as writes take longer.
//! 16. *A late reaper* does not make a device look slow.
//! 17. *An idle device never waits* for a token, a timer or a batch.
//! 18. *Hot sets.* Writers overwrite a set of pages that owes less than F at the speed of memory, beside other programs on
//!     the disk, too. The flusher writes no page of it more than once in T, but for syncs and age.
//! 19. *Other programs.* Two seconds after another program has left the disk, writers have nine tenths of what they had
//!     before it came.
//!
//! Where runs are dear and many wait, T alone would have to be stretched far for runs of a good length. There payers have
//! *portions*: one dirties a whole long run at once, which counts as backlog from when it is given, and then waits for
//! what it cost. Who has paid and finds no room queues in order; one at a time is let in from the queue (9).
//!
//! From OpenZFS's curve d/(max-d), scaled to 1 in the middle; iocost's occupancy as currency and debt; BBR's discount
//! of work-limited samples; CoDel's time instead of bytes; FQ-CoDel's light flows that never wait.
//!
//! While the device would idle, a file that has been left alone for 200 ms is written behind, a small request at a
//! time; one that is rewritten over and over has to be left alone for longer, up to its expiry.
//!
//! Where a run costs more than twice what the clean bytes before it would, and these are in the cache, they are written
//! too, and both are one run; where others may write to the files nothing is written that was not written to.
//!
//! Of N payers each waits as if it had 1/N of the device. With several clients N is the number of clients of whom payers
//! wait, times the payers of this one's that do. A file is a payer once it has dirtied a MiB; what is younger is one
//! payer together, its client: else whoever makes a new file for each write would have a new allowance each time.
//!
//! Owns: the law's arithmetic: prices and how they are learned, the curve, debts, what may be in flight, the sizes of
//! requests; its knobs; the policy that answers by it (`policy`).
//! Does not own: clocks, lists, tasks, pages; carrying any answer out.
//! Invariants: integers only, in ns; divisions truncate toward zero. Pure: the same calls give the same answers.

#![forbid(unsafe_code)]

mod curve;
mod estimator;
mod flight;
mod knobs;
mod parallel;
mod payer;
mod policy;
mod prices;
mod wide;

pub use curve::{Band, Entry, guarded_backlog_ns, snapshot_debt_ns};
pub use estimator::{Completion, Estimator, Facts, KnownPrices, RememberedPrices, Side, Snapshot};
pub use flight::{in_flight_ns, request_bytes};
pub use knobs::{BudgetKnob, KNOBS, Knobs};
pub use parallel::{Ended, Parallelism};
pub use payer::{Payer, Verdict};
pub use policy::{Budget, DeviceMemory, FIGURES, PayerMemory};
pub use prices::{Cost, Prices};

/// Bytes of a MiB: prices of bytes are for so many.
pub(crate) const MIB: u64 = 1 << 20;

/// One, in the ratios of this law.
pub const ONE: u64 = 1024;

/// A millisecond in ns.
pub(crate) const MILLISECOND: u64 = 1_000_000;
