//! The knobs of the crates that the command puts together.
//!
//! Owns: the choice of the tables for a server, the list of knobs for people.
//! Does not own: the knobs; the tables that policies bring (`Needs::knobs`), which the engine adds by itself.
//! Invariants: a part of the server obeys each knob that a user can set. The others are known, so that their refusal
//! names the knob to set instead.

use std::ffi::OsStr;

use afflux_budget::Budget;
use afflux_engine::policy::DevicePolicy;
use afflux_engine::settings::{KnobError, KnobInfo, KnobTable, Settings};
use afflux_report::{listing, output, units};
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};

/// The tables of the layers above the engine.
const ABOVE: [&KnobTable; 2] = [&afflux_volume::KNOBS, &afflux_nfs::KNOBS];

/// The knobs of `serve`, at their defaults, with those that the flush budget ignores.
pub(crate) fn of_server() -> Settings {
    Settings::with(ABOVE.into_iter().chain([&afflux_budget::KNOBS]))
}

/// Reads KNOB=VALUE with a known knob, whose value the server checks. Completions offer the knobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assignment;

impl TypedValueParser for Assignment {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().try_map(known).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let settings = of_server();
        let names: Vec<_> = obeyed(&settings).map(|info| PossibleValue::new(info.name)).collect();
        Some(Box::new(names.into_iter()))
    }
}

/// Refuses what is not KNOB=VALUE, and a knob that there is not.
fn known(text: String) -> Result<String, KnobError> {
    let (name, _) = text.split_once('=').ok_or_else(|| KnobError::Form { text: text.clone() })?;
    name_of(name.trim())?;
    Ok(text)
}

/// Finds the knob of `serve` that the user named, and returns the table's name for the knob.
pub(crate) fn name_of(name: &str) -> Result<&'static str, KnobError> {
    let settings = of_server();
    settings.named(name).map(|knob| settings.info(knob).name)
}

/// A knob and its value, in words: for whom it is in force, unless it is of the protocol.
pub(crate) fn in_force_words(knob: &KnobInfo, value: u64, device: Option<&str>) -> String {
    let whom = match device {
        Some(device) => format!(" for {}", output::shown(device)),
        None if afflux_nfs::KNOBS.rows.contains(knob) => String::new(),
        None => " for all devices".to_owned(),
    };
    format!("{} is now {}{whom}", knob.name, knob.told(value, units::count))
}

/// The knobs among `settings` that the flush budget and the server obey.
pub(crate) fn obeyed(settings: &Settings) -> impl Iterator<Item = &'static KnobInfo> {
    let ignored = DevicePolicy::needs(&Budget).ignores;
    settings.all().map(|(_, info)| info).filter(|info| ignored.iter().all(|knob| knob.name != info.name))
}

/// Every knob of `serve` with its range and its effect.
pub(crate) fn list() -> String {
    let settings = of_server();
    listing("Knobs", obeyed(&settings).map(|knob| knob.help_with(units::count)))
}

#[cfg(test)]
mod tests;
