//! The terminal while the screen is shown.
//!
//! Owns: taking the terminal and giving it back, the loop of keys, sizes and samples.
//! Does not own: the picture (`screen`), what keys do (`keys`).
//! Invariants: however it ends but by SIGKILL, a panic included, the terminal is as it was. A server that does not answer
//! holds up no key.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::follow::Following;
use super::keys::Choices;
use super::model::Model;
use super::screen;
use crate::failure::{Failure, Outcome};

/// How long a key waits at most.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Looks for a sample to one for a key.
const NO_TIME: Duration = Duration::ZERO;

pub(super) fn run(following: &Following) -> Outcome {
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP, SIGINT] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&ends));
        registered.map_err(|error| Failure::failed(format!("signals: {error}")))?;
    }
    let mut terminal = ratatui::try_init().map_err(|error| failed(&error))?;
    let shown = show(&mut terminal, following, &ends);
    let restored = ratatui::try_restore().map_err(|error| failed(&error));
    shown.and(restored)
}

fn failed(error: &std::io::Error) -> Failure {
    Failure::failed(format!("the terminal: {error}; --once and a pipe do without"))
}

fn show(terminal: &mut DefaultTerminal, following: &Following, ends: &AtomicBool) -> Outcome {
    let (mut model, mut choices) = (Model::default(), Choices::default());
    let mut changed = true;
    while !choices.ends && !ends.load(Ordering::Relaxed) {
        if changed {
            let mut rows = model.rows();
            rows.keep(&choices.letters);
            rows.sort(choices.order);
            terminal.draw(|frame| screen::draw(frame, &rows, &choices)).map_err(|error| failed(&error))?;
        }
        changed = false;
        // Keys that come together are taken together.
        let mut wait = LOOK_EVERY;
        while event::poll(wait).map_err(|error| failed(&error))? {
            match event::read().map_err(|error| failed(&error))? {
                Event::Key(key) => choices.key(key),
                // The next picture is as large as the terminal then is.
                _ => {}
            }
            (changed, wait) = (true, NO_TIME);
            if choices.ends {
                return Ok(());
            }
        }
        if let Some(sample) = following.next_within(NO_TIME)?
            && !choices.held
        {
            model.take(sample);
            changed = true;
        }
    }
    Ok(())
}
