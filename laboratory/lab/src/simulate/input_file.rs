//! The text of a file that the user names.
//!
//! Owns: the bound of its size, the errors of reading it.
//! Does not own: its syntax.

use std::path::Path;

use afflux_report::bounded_file;
use afflux_report::failure::{Failure, Outcome};

/// Largest job file that is read; fio's own examples have a few kB.
const JOB_FILE_BYTES_MAX: u64 = 16 << 20;

/// The text of a small file.
pub(super) fn text_of(path: &Path) -> Outcome<String> {
    let wrong = |why: String| Failure::failed(format!("{} cannot be read: {why}", path.display()));
    let bytes = bounded_file::read(path, JOB_FILE_BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| {
        let line =
            1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        wrong(format!("it is not UTF-8 text, in line {line}"))
    })
}
