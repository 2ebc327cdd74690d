//! Why dirty pages of a file are not written now.
//!
//! Owns: the one answer for people. Several may hold: the first of [`WriteObstacle`] does not end by itself.
//! Does not own: the states behind it (their modules), or their effects on writers and syncs.
//! Invariants: a file without an obstacle waits for its turn alone (`each_obstacle_of_a_file_is_named`).

use std::fmt::{self, Display, Formatter};

use afflux_device::error::DeviceError;
use afflux_pages::wait::lock;

use super::FileInner;

/// Why dirty pages of a file are not written now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteObstacle {
    /// The last write or flush failed. It is tried again.
    Failed(DeviceError),
    /// The device completes nothing.
    Hung,
    /// A write of the file has not ended for long. The file gets no other until it ends.
    Aside,
    /// Some of the bytes have no place on the device: its space, or the owner's quota, is used up.
    Unplaced,
    /// A change of its size or of its holes is under way.
    Held,
    /// Some wait until other bytes are durable, or until their holder lets them go.
    Withheld,
}

impl FileInner {
    /// Why its dirty pages are not written now. `None`: they wait for their turn, or are being written.
    pub(crate) fn write_obstacle(&self) -> Option<WriteObstacle> {
        let state = lock(&self.state);
        let failed = state.failures.error().map(WriteObstacle::Failed);
        let others = [
            (self.device.hang().is_stalled(), WriteObstacle::Hung),
            (state.failures.is_aside(), WriteObstacle::Aside),
            (state.unplaced_from.is_some(), WriteObstacle::Unplaced),
            (state.is_held(), WriteObstacle::Held),
            (state.withheld.pages() > 0, WriteObstacle::Withheld),
        ];
        failed.or_else(|| others.into_iter().find_map(|(holds, obstacle)| holds.then_some(obstacle)))
    }
}

impl Display for WriteObstacle {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(out),
            Self::Hung => out.write_str("the device completes nothing"),
            Self::Aside => out.write_str("a write of it has not ended for long"),
            Self::Unplaced => out.write_str("the device's space or the owner's quota is used up"),
            Self::Held => out.write_str("its size or its holes change"),
            Self::Withheld => out.write_str("bytes wait until others are durable"),
        }
    }
}
