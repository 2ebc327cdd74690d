//! The host's clocks and randomness.
//!
//! Owns: one generator a thread.
//! Does not own: timers.
//! Invariants: no call here blocks; the generator's start comes from the host's own source.

use std::cell::Cell;

use afflux_engine::{Nanos, WallNanos};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::time::{ClockId, Timespec, clock_gettime};

fn nanos(time: Timespec) -> i128 {
    i128::from(time.tv_sec) * i128::from(Nanos::SECOND) + i128::from(time.tv_nsec)
}

/// The monotonic clock.
pub fn monotonic() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos((time.tv_sec as u64).wrapping_mul(Nanos::SECOND).wrapping_add(time.tv_nsec as u64))
}

/// The time of day as of the last tick. The host's file systems take times from the same clock, so a time reported to a
/// client is not later than the one that a file has after its write.
pub fn wall() -> WallNanos {
    WallNanos(nanos(clock_gettime(ClockId::RealtimeCoarse)))
}

thread_local! {
    static RANDOM: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Sixty-four random bits: SplitMix64 (Steele, Lea, Flood 2014) from a random start in each thread.
/// For spreading and for identifiers, not for secrets.
pub fn random() -> u64 {
    RANDOM.with(|random| {
        let state = random.get().unwrap_or_else(seed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        random.set(Some(state));
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

fn seed() -> u64 {
    let mut bytes = [0; 8];
    match getrandom(&mut bytes, GetRandomFlags::NONBLOCK) {
        Ok(8) => u64::from_ne_bytes(bytes),
        // A host too young to have randomness: clocks and the address of this thread's stack differ.
        _ => monotonic().0.rotate_left(32) ^ wall().0 as u64 ^ (&raw const bytes as u64),
    }
}
