//! A recorded run of a real Linux 6.1: the table that `cargo xtask guest-law` prints.
//!
//! Owns: the stored tables, their reading, the figures for the simulated machine.
//! Does not own: the guest (`tests/guest/law`), what a load does (`load`).
//! Invariants: these figures describe the machine and not the law: the disk's rate by its own counter, memory's limits,
//! the processor's time of a call without a wait and of a written page, the positions of files.

use super::load::Load;
use super::second::{Second, Side};

/// The recorded runs, by name.
pub(super) const ALL: [(&str, &str); 5] = [
    ("bytes", include_str!("bytes.txt")),
    ("default", include_str!("default.txt")),
    ("at-rate", include_str!("at_rate.txt")),
    ("small-sync", include_str!("small_sync.txt")),
    ("burst", include_str!("burst.txt")),
];

/// A piece of a file on the disk, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) page: u64,
    pub(super) position: u64,
    pub(super) pages: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Recording {
    pub(super) load: Load,
    pub(super) seconds: u64,
    pub(super) hz: u64,
    /// Means over the writer's time.
    pub(super) limit_pages: u64,
    pub(super) background_pages: u64,
    pub(super) disk_pages_per_s: f64,
    /// Time of the disk's timer for a request.
    pub(super) request_ns: u64,
    /// A call that does not wait; with bursts, the mean processor time of a call in them.
    pub(super) call_ns: u64,
    /// Processor time of the kernel's workers for a written page: of its flushers, and of the ends of its writes.
    pub(super) worker_ns_per_page: u64,
    /// The pieces of the files on the slow disk, in the order of their names; none if they were not recorded.
    pub(super) positions: Vec<Vec<Piece>>,
    /// Inodes in use on the machine.
    pub(super) inodes: u64,
    /// The kernel's count of ticks at the begin.
    pub(super) ticks_at_begin: u64,
    pub(super) side: Side,
}

impl Recording {
    /// Reads a table. `None` if it is none.
    pub(super) fn read(text: &str) -> Option<Self> {
        let head =
            |name: &str| text.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(name)?.strip_prefix(": "));
        let number = |name: &str| head(name)?.parse::<f64>().ok();
        let names: Vec<&str> = text.lines().find(|line| line.starts_with("second "))?.split(' ').collect();
        let lines: Vec<Vec<f64>> = text
            .lines()
            .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
            .map(|line| line.split(' ').map(str::parse).collect::<Result<_, _>>().ok())
            .collect::<Option<_>>()?;
        let column = |name: &str| {
            let at = names.iter().position(|known| *known == name)?;
            lines.iter().map(|line| line.get(at).copied()).collect::<Option<Vec<f64>>>()
        };
        let seconds = number("seconds")? as u64;
        let during = |values: &[f64]| values.iter().take(seconds as usize).sum::<f64>() / seconds as f64;
        let (disk, pauses) = (column("disk")?, column("pauses")?);
        let seconds_of = |name: &str| {
            let each = head(name).unwrap_or_default().split_whitespace();
            each.map(|ms| Some(ms.parse::<f64>().ok()? / 1e3)).collect::<Option<Vec<f64>>>()
        };
        let all = column("dirty")?.into_iter().zip(column("accepted")?).zip(disk.iter().zip(&pauses));
        let rows = all.map(|((dirty, accepted), (written, pauses))| Second {
            dirty,
            accepted,
            written: *written,
            pauses: *pauses,
        });
        // The disk is busy from the begin of the last fsync until the second before its end.
        let (from, until) = (seconds as usize, disk.len() - 2);
        Some(Self {
            load: Load::named(head("load")?, number("rate")? as u64)?,
            seconds,
            hz: number("hz")? as u64,
            limit_pages: during(&column("limit")?) as u64,
            background_pages: during(&column("background")?) as u64,
            disk_pages_per_s: (disk.get(until)? - disk.get(from)?) / until.checked_sub(from)? as f64,
            request_ns: number("request_ns")? as u64,
            call_ns: number("burst_call_us").or_else(|| number("call_us"))? as u64 * 1000,
            worker_ns_per_page: number("worker_ns_per_page")? as u64,
            positions: ["small_syncs", "stream"]
                .into_iter()
                .filter_map(|file| head(&format!("places_of_{file}")))
                .map(pieces)
                .collect::<Option<_>>()?,
            inodes: number("inodes")? as u64,
            ticks_at_begin: number("ticks_at_begin")? as u64,
            side: Side {
                rows: rows.collect(),
                sync_s: number("sync_ms")? / 1e3,
                small_syncs_s: seconds_of("small_syncs_ms")?,
                bursts_s: seconds_of("bursts_and_syncs_ms")?,
            },
        })
    }
}

/// `PAGE PLACE PAGES, PAGE PLACE PAGES`
fn pieces(text: &str) -> Option<Vec<Piece>> {
    let piece = |text: &str| {
        let numbers: Vec<u64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let [page, position, pages] = numbers.try_into().ok()?;
        Some(Piece { page, position, pages })
    };
    text.split(',').map(piece).collect()
}
