//! A bad end of a run in words: a cut, a loss, or bytes that could not be written.
//!
//! Owns: the words.
//! Does not own: their position in a report (`text`, `comparison`, `html`, `answer`).

use std::fmt::Write as _;
use std::time::Duration;

use afflux_report::units;
use afflux_workloads::simulation::{LossCause, Outcome as Figures};

/// Most files that a loss names.
const LOST_FILES_MAX: usize = 10;

/// A bad end of the run: a loss, or bytes that could not be written.
pub(super) fn ending(figures: &Figures) -> String {
    let mut text = String::new();
    if figures.cut {
        let at = units::time(Duration::from_nanos(figures.virtual_ns));
        let _ = writeln!(text, "Cut at {at}: figures are up to there, and data still in memory was not written");
    }
    for left in &figures.unwritten {
        let dirty = units::data(left.dirty_bytes);
        let _ = writeln!(text, "Never written: {}: {} ({dirty} left in memory)", left.what, left.why);
    }
    let Some(loss) = &figures.loss else { return text };
    let what = match loss.cause {
        LossCause::PowerLoss => "Power lost",
        LossCause::Kill => "Process killed",
    };
    let at = units::time(Duration::from_nanos(loss.at_ns));
    let _ = write!(text, "{what} at {at}: of {} accepted ", units::data(loss.accepted_bytes));
    match loss.lost_bytes {
        Some(0) => text.push_str("nothing is lost; checked on the disks\n"),
        Some(lost) => {
            let _ = writeln!(text, "{} are lost, none of them synced; checked on the disks", units::data(lost));
        }
        None => text.push_str("an unknown part is lost; contents are not checked\n"),
    }
    for (path, bytes) in loss.files.iter().take(LOST_FILES_MAX) {
        let _ = writeln!(text, "  {path}: {}", units::data(*bytes));
    }
    if let Some(more) = loss.files.len().checked_sub(LOST_FILES_MAX).filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {} more files", units::count(more as u64));
    }
    text
}
