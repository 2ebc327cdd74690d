//! The knobs of what the command puts together.
//!
//! Owns: whose tables a server has, and whose a simulation; the list of knobs for people.
//! Does not own: any knob; what policies bring (`Needs::knobs`), which the engine adds by itself.
//! Invariants: a knob that can be set is one that somebody here obeys.

use engine::settings::{KnobError, KnobTable, Scope, Settings};
use simulator::POLICY_KNOBS;

use crate::units;

/// Above the engine: what serves its files.
const ABOVE: [&KnobTable; 2] = [&volume::KNOBS, &frontend_nfs::KNOBS];

/// The knobs of `serve`, at their defaults: with those of our own policy, whether or not it is in force.
pub(crate) fn of_server() -> Settings {
    Settings::with(ABOVE.into_iter().chain([&budget::KNOBS]))
}

/// The knobs of `simulate`, whatever the policy.
pub(crate) fn of_simulation() -> Settings {
    Settings::with(ABOVE.into_iter().chain(POLICY_KNOBS.iter().copied()))
}

/// The knob of `serve` that somebody means, by the name that it has in its table.
pub(crate) fn name_of(name: &str) -> Result<&'static str, KnobError> {
    let settings = of_server();
    settings.named(name).map(|knob| settings.info(knob).name)
}

/// Every knob with its range, a line each.
pub(crate) fn list(settings: &Settings) -> String {
    let width = settings.all().map(|(_, info)| info.name.len()).max().unwrap_or(0);
    let lines = settings.all().map(|(_, info)| {
        let default = units::count(info.default);
        let also = info.aliases.iter().map(|alias| format!("; also {alias}")).collect::<String>();
        let each = if info.scope == Scope::Device { "; each device can have its own" } else { "" };
        format!("  {:width$}  {}, default {default}{each}{also}", info.name, info.range_with(units::count))
    });
    format!("Knobs:\n{}", lines.collect::<Vec<_>>().join("\n"))
}
