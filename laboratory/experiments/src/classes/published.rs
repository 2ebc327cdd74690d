//! Published figures of the four loads: the posts about RWF_DONTCACHE's change of May 2026. Since the change the writer
//! no longer submits its own pages, but has the flusher write as much of the oldest.
//!
//! Owns: the figures, and the versions of the kernel with each form.
//! Does not own: our figures.
//! Invariants: the figures are of DONTCACHE on another machine, before and after the change.

use afflux_report::{Align, Table};

/// Load, figure, before, after.
const FIGURES: [(&str, &str, &str, &str); 8] = [
    ("one writer", "MB/s", "298", "897"),
    ("", "p99.9 of a write", "8.9 s", "28 ms"),
    ("four writers", "MB/s", "2,529", "4,532"),
    ("", "p99.9 of a write", "109 ms", "1.06 ms"),
    ("32 files", "peak of dirty MB", "1,837", "213"),
    ("", "of the speed of buffered", "35 %", "81 %"),
    ("two classes", "MB/s of the buffered one beside DONTCACHE", "868", "433"),
    ("", "MB/s of both", "1,284", "866"),
];
/// The versions of the kernel that introduced DONTCACHE, and its new form.
const SINCE: (u32, u32) = (6, 14);
const NEW_SINCE: (u32, u32) = (7, 2);

/// Which form of DONTCACHE a kernel has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    None,
    /// The writer submits the pages that it wrote.
    Old,
    New,
}

impl Form {
    /// What it means for a run.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::None => "This kernel is older than RWF_DONTCACHE (6.14).",
            Self::Old => {
                "This kernel has the old form of DONTCACHE, in which the writer itself submits the pages that it wrote. The published \
                 change (7.2) removed this, so the figures here do not apply to a kernel with the change."
            }
            Self::New => {
                "This kernel has the form of DONTCACHE in which the flusher is woken for as many bytes as were written."
            }
        }
    }

    /// By the name of the release, as `6.18.44`; `None` if the name has no version.
    pub(super) fn of(release: &str) -> Option<Self> {
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
        let version = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(match version {
            version if version < SINCE => Self::None,
            version if version < NEW_SINCE => Self::Old,
            _ => Self::New,
        })
    }
}

pub(super) fn table() -> Table {
    let right = Align::Right;
    let columns =
        [("load", Align::Left), ("figure", Align::Left), ("the writer flushes", right), ("the flusher does", right)];
    let mut table = Table::new("Published, DONTCACHE on another machine", &columns).named_by(2);
    for (load, figure, before, after) in FIGURES {
        table.row([load, figure, before, after]);
    }
    table
}
