//! The knobs of a simulation.

use afflux_engine::settings::Settings;
use afflux_simulator::POLICY_KNOBS;

/// The knobs at their defaults, those of every policy among them.
pub(crate) fn of_simulation() -> Settings {
    let above_the_engine = [&afflux_volume::KNOBS, &afflux_nfs::KNOBS];
    Settings::with(above_the_engine.into_iter().chain(POLICY_KNOBS.iter().copied()))
}
