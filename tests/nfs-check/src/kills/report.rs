//! The figures of kills as a table and as JSON.
//!
//! Owns: sums, the rows.
//! Does not own: the figures; medians and the form of a table (`afflux_rig`).
//! Invariants: lost bytes are summed and never averaged.

use std::time::Duration;

use afflux_rig::{Raced, Table, median_and_range};

use super::figures::Figures;
use super::processes::Which;

type Row = (&'static str, fn(&[Figures]) -> String);

const ROWS: [Row; 10] = [
    ("kills", |all| all.len().to_string()),
    ("acknowledged without COMMIT, MiB", |all| mib(all, |it| it.unstable)),
    ("of these not in the host's files at the kill, MiB", |all| {
        mib(all, |it| it.off_disk.map_or(0, |off| off.unstable))
    }),
    ("of these missing or wrong after the restart, bytes", |all| sum(all, |it| it.lost.unstable)),
    ("COMMITted bytes lost", |all| sum(all, |it| it.lost.committed.max(it.off_disk.map_or(0, |off| off.committed)))),
    ("write verifier changed", |all| sum(all, |it| it.verifier_changed.into())),
    ("to send again, MiB", |all| mib(all, Figures::again)),
    ("first reply, ms", |all| ms(all, |it| it.null)),
    ("first READ by an old handle, ms", |all| ms(all, |it| it.read)),
    ("first WRITE by an old handle, ms", |all| ms(all, |it| it.write)),
];

fn sum(all: &[Figures], of: fn(&Figures) -> u64) -> String {
    all.iter().map(of).sum::<u64>().to_string()
}

fn spread(values: Vec<f64>, digits: usize) -> String {
    let Some([middle, least, most]) = median_and_range(values) else { return "–".to_owned() };
    format!("{middle:.digits$} ({least:.digits$}–{most:.digits$})")
}

fn mib(all: &[Figures], of: fn(&Figures) -> u64) -> String {
    spread(all.iter().map(|it| of(it) as f64 / f64::from(1 << 20)).collect(), 1)
}

fn ms(all: &[Figures], of: fn(&Figures) -> Duration) -> String {
    spread(all.iter().map(|it| of(it).as_secs_f64() * 1e3).collect(), 0)
}

/// A column for each server.
pub(super) fn table<E>(kills: &Raced<Which, Figures, E>) -> String {
    let mut table = Table::new([""].into_iter().chain(kills.contenders().map(Which::word)));
    for (name, value) in ROWS {
        table.row([name.to_owned()].into_iter().chain(kills.contenders().map(|which| value(kills.of(which)))));
    }
    table.to_string()
}

/// One kill, without blanks outside the server's name.
pub(super) fn json(server: &str, figures: &Figures) -> String {
    let Figures { unstable, committed, lost, verifier_changed, .. } = figures;
    let off_disk = figures.off_disk.map_or("null".to_owned(), |off| off.unstable.to_string());
    let committed_off_disk = figures.off_disk.map_or("null".to_owned(), |off| off.committed.to_string());
    let again = figures.again();
    let [null, read, write] = [figures.null, figures.read, figures.write].map(|time| time.as_secs_f64() * 1e3);
    format!(
        "{{\"server\":\"{server}\",\"unstable\":{unstable},\"committed\":{committed},\"unstable_off_disk\":{off_disk},\
         \"committed_off_disk\":{committed_off_disk},\"unstable_lost\":{},\"committed_lost\":{},\
         \"verifier_changed\":{verifier_changed},\"again\":{again},\"null_ms\":{null:.1},\"read_ms\":{read:.1},\
         \"write_ms\":{write:.1}}}",
        lost.unstable, lost.committed
    )
}

/// All kills, a line for each.
pub(super) fn lines<E>(kills: &Raced<Which, Figures, E>) -> String {
    let of = |which: Which| kills.of(which).iter().map(move |figures| json(which.word(), figures) + "\n");
    kills.contenders().flat_map(of).collect()
}
