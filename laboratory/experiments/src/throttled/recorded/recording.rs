//! A recorded run of a real Linux 6.1: the table that `cargo xtask guest-law` prints.
//!
//! Owns: the kept tables, their reading, the figures for the simulated machine.
//! Does not own: the guest (`tests/guest/law`).
//! Invariants: these figures describe the machine and not the law: the disk's rate by its own counter, memory's limits, the
//! time of a call without a wait.

use super::second::Second;

/// The recorded runs, by name.
pub(super) const ALL: [(&str, &str); 2] =
    [("bytes", include_str!("bytes.txt")), ("default", include_str!("default.txt"))];

/// Seconds until the disk is certainly busy.
const BUSY_S: usize = 5;

#[derive(Clone, Debug, Default)]
pub(super) struct Recording {
    pub(super) seconds: u64,
    pub(super) hz: u64,
    /// Means over the writer's time.
    pub(super) limit_pages: u64,
    pub(super) background_pages: u64,
    pub(super) disk_pages_per_s: f64,
    pub(super) call_ns: u64,
    pub(super) sync_s: f64,
    pub(super) rows: Vec<Second>,
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
        let busy = seconds as usize - BUSY_S;
        let all = column("dirty")?.into_iter().zip(column("accepted")?).zip(disk.iter().zip(&pauses));
        let rows = all.map(|((dirty, accepted), (written, pauses))| Second {
            dirty,
            accepted,
            written: *written,
            pauses: *pauses,
        });
        Some(Self {
            seconds,
            hz: number("hz")? as u64,
            limit_pages: during(&column("limit")?) as u64,
            background_pages: during(&column("background")?) as u64,
            disk_pages_per_s: (disk.get(seconds as usize)? - disk.get(BUSY_S)?) / busy as f64,
            call_ns: number("call_us")? as u64 * 1000,
            sync_s: number("sync_ms")? / 1e3,
            rows: rows.collect(),
        })
    }
}
