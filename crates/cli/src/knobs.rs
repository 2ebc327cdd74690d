//! The knobs of servers and of simulations.
//!
//! Owns: the tables of knobs for each; the list of knobs for people.
//! Does not own: any knob; a policy's own knobs (`Needs::knobs`), which the engine adds by itself.
//! Invariants: every knob that can be set has an effect here.

use engine::settings::{KnobError, KnobTable, Scope, Settings};
use simulator::POLICY_KNOBS;

use crate::units;

/// The tables of the layers above the engine.
const ABOVE: [&KnobTable; 2] = [&volume::KNOBS, &frontend_nfs::KNOBS];

/// The knobs of `serve`, at their defaults. Those of our own policy are included, whether or not it is in force.
pub(crate) fn of_server() -> Settings {
    Settings::with(ABOVE.into_iter().chain([&budget::KNOBS]))
}

/// The knobs of `simulate`, for every policy.
pub(crate) fn of_simulation() -> Settings {
    Settings::with(ABOVE.into_iter().chain(POLICY_KNOBS.iter().copied()))
}

/// The knob of `serve` with this name, spelled as in its table.
pub(crate) fn name_of(name: &str) -> Result<&'static str, KnobError> {
    let settings = of_server();
    settings.named(name).map(|knob| settings.info(knob).name)
}

/// Widest line of the list.
const WIDTH: usize = 100;

/// Every knob with its range, and below it its description.
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

/// The first sentence of a knob's description; the rest is in docs/knobs.md.
fn first_sentence(doc: &str) -> &str {
    doc.split_once(". ").map_or(doc, |(first, _)| first).trim_end_matches('.')
}

/// Breaks text between words; each line begins with `before`.
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
