//! The knobs of what the command puts together.
//!
//! Owns: whose tables a server has, and whose a simulation; the list of knobs for people.
//! Does not own: any knob; what policies bring (`Needs::knobs`), which the engine adds by itself.
//! Invariants: a knob that can be set is one that somebody here obeys.

use afflux_engine::settings::{KnobError, KnobTable, Scope, Settings};
use afflux_simulator::POLICY_KNOBS;

use crate::units;

/// Above the engine: what serves its files.
const ABOVE: [&KnobTable; 2] = [&afflux_volume::KNOBS, &afflux_nfs::KNOBS];

/// The knobs of `serve`, at their defaults: with those of our own policy, whether or not it is in force.
pub(crate) fn of_server() -> Settings {
    Settings::with(ABOVE.into_iter().chain([&afflux_budget::KNOBS]))
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

/// Widest line of the list.
const WIDTH: usize = 100;

/// Every knob with its range, and below it what it does.
pub(crate) fn list(settings: &Settings) -> String {
    let lines = settings.all().map(|(_, info)| {
        let default = units::count(info.default);
        let also = info.aliases.iter().map(|alias| format!("; also {alias}")).collect::<String>();
        let each = if info.scope == Scope::Device { "; each device can have its own" } else { "" };
        let head = format!("  {}  {}, default {default}{each}{also}", info.name, info.range_with(units::count));
        format!("{head}\n{}", wrapped(first_sentence(info.doc), "      "))
    });
    format!("Knobs:\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// What a knob does, in a sentence; the rest stands in docs/knobs.md.
fn first_sentence(doc: &str) -> &str {
    doc.split_once(". ").map_or(doc, |(first, _)| first).trim_end_matches('.')
}

/// Broken between words, each line with something before it.
fn wrapped(text: &str, before: &str) -> String {
    let mut lines = vec![before.to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, |line| line.chars().count());
        match lines.last_mut() {
            Some(last) if line == before.len() => last.push_str(word),
            Some(last) if line + 1 + word.chars().count() <= WIDTH => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(format!("{before}{word}")),
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
