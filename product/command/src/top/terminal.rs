//! The terminal while the screen is shown.
//!
//! Owns: taking the terminal and giving it back, signals, the loop of keys, sizes and samples.
//! Does not own: the picture and the effect of keys (`screen`).
//! Invariants: every end but by SIGKILL, a panic included, restores the terminal. A server that does not answer delays
//! no key.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, process, thread};

use afflux_engine::lock;
use crossterm::event::{self, Event};
use ratatui::DefaultTerminal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::follow::Following;
use super::model::Model;
use super::screen;
use crate::top::screen::Choices;
use afflux_report::failure::{Failure, OrFailed, Outcome};

/// Longest wait of a key.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Crossterm's wait for a key that is there. With its feature `use-dev-tty` it asks the terminal each time, unless no
/// time remains. Without the feature a key that comes together with a change of size waits for the next key.
const TAKE_WITHIN: Duration = Duration::from_micros(20);

pub(super) fn run(following: &Following) -> Outcome {
    let drawing = Arc::new(Mutex::new(()));
    end_on_signals(&drawing).or_failed("signals")?;
    let mut terminal = ratatui::try_init().map_err(|error| failed(&error))?;
    let shown = show(&mut terminal, following, &drawing);
    let restored = ratatui::try_restore().map_err(|error| failed(&error));
    shown.and(restored)
}

/// A separate thread ends the process, since a read of keys from a terminal that is gone may never return.
fn end_on_signals(drawing: &Arc<Mutex<()>>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT])?;
    let drawing = Arc::clone(drawing);
    let body = move || {
        if signals.forever().next().is_some() {
            // With this lock held, nothing is drawn any more.
            let _last = lock(&drawing);
            let _ = ratatui::try_restore();
            process::exit(0);
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(body).map(drop)
}

/// Waits a little for keys, or a change of size.
///
/// # Errors
/// Once the terminal is gone: a read of keys would then never end.
fn wait_for_keys() -> io::Result<()> {
    let stdin = io::stdin();
    let mut all = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut all, Some(&LOOK_EVERY)) {
        // A signal reports a change of size.
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    if all[0].revents().intersects(gone) { Err(Errno::IO.into()) } else { Ok(()) }
}

fn failed(error: &io::Error) -> Failure {
    Failure::failed(format!("the terminal: {error}; --once and a pipe work without one"))
}

fn show(terminal: &mut DefaultTerminal, following: &Following, drawing: &Mutex<()>) -> Outcome {
    let (mut model, mut choices) = (Model::default(), Choices::default());
    let mut changed = true;
    while !choices.ends {
        if changed {
            let _drawing = lock(drawing);
            let mut rows = model.rows();
            rows.keep(&choices.letters);
            rows.sort(choices.order);
            terminal.draw(|frame| screen::draw(frame, &rows, &choices)).map_err(|error| failed(&error))?;
        }
        changed = false;
        wait_for_keys().map_err(|error| failed(&error))?;
        // Keys that arrive together are handled together. The next picture fits the terminal's size at that time.
        while !choices.ends && event::poll(TAKE_WITHIN).map_err(|error| failed(&error))? {
            if let Event::Key(key) = event::read().map_err(|error| failed(&error))? {
                choices.key(key);
            }
            changed = true;
        }
        if let Some(sample) = following.next_within(Duration::ZERO)?
            && !choices.held
        {
            model.take(sample);
            changed = true;
        }
    }
    Ok(())
}
