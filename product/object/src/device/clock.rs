//! The world's clock as the volume's.
//!
//! Owns: the translation.
//! Does not own: time.
//! Invariants: none beyond the world's.

use std::sync::Arc;

use afflux_engine::{Nanos, Platform};

use crate::seams::Clock;

/// The clock of a world.
#[derive(Debug)]
pub struct PlatformClock<P>(pub Arc<P>);

impl<P> Clone for PlatformClock<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P: Platform> Clock for PlatformClock<P> {
    fn now_ns(&self) -> u64 {
        self.0.now().0
    }

    fn wall_ns(&self) -> u64 {
        u64::try_from(self.0.wall_clock().0).unwrap_or(0)
    }

    fn sleep_until_ns(&self, at_ns: u64) -> impl Future<Output = ()> + Send {
        self.0.sleep_until(Nanos(at_ns))
    }
}
