//! The knobs of what the command puts together.
//!
//! Owns: whose tables a server has, and whose a simulation; the list of knobs for people.
//! Does not own: any knob; what policies bring (`Needs::knobs`), which the engine adds by itself.
//! Invariants: a knob that can be set is one that somebody here obeys.

use afflux_engine::settings::{KnobError, KnobTable, Settings};
use afflux_report::{listing, units};

/// Above the engine: what serves its files.
const ABOVE: [&KnobTable; 2] = [&afflux_volume::KNOBS, &afflux_nfs::KNOBS];

/// The knobs of `serve`, at their defaults: with those of our own policy, whether or not it is in force.
pub(crate) fn of_server() -> Settings {
    Settings::with(ABOVE.into_iter().chain([&afflux_budget::KNOBS]))
}

/// The knob of `serve` that somebody means, by the name that it has in its table.
pub(crate) fn name_of(name: &str) -> Result<&'static str, KnobError> {
    let settings = of_server();
    settings.named(name).map(|knob| settings.info(knob).name)
}

/// Every knob of `serve` with its range, and below it what it does.
pub(crate) fn list() -> String {
    listing("Knobs", of_server().all().map(|(_, info)| info.help_with(units::count)))
}

#[cfg(test)]
mod tests;
