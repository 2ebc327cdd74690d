//! Traces in files, for the code that shows or replays them.
//!
//! Owns: the bound on a file's size, the errors of a file that cannot be read.
//! Does not own: the two formats (`afflux_frontend::trace`), writing (`trace`).
//! Invariants: every error has the file's name.

use std::path::Path;

use afflux_frontend::trace::{FILE_BYTES_MAX, Trace};

use afflux_report::bounded_file;
use afflux_report::failure::{Failure, Outcome};

/// Reads a trace in either of the two formats.
pub(crate) fn read(path: &Path) -> Outcome<Trace> {
    let name = path.display();
    let cannot = |error: std::io::Error| Failure::failed(format!("{name} cannot be read: {error}"));
    let bytes = bounded_file::read(path, FILE_BYTES_MAX).map_err(cannot)?;
    Trace::read(&bytes).map_err(|error| Failure::wrong_use(format!("{name}: {error}")))
}
