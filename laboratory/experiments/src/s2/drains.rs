//! The drain vectors: drains of lists with given contents, and the counts of examined list heads.
//!
//! Owns: the contents with the counts from kernels' sources, reading other contents, a row for each drain.
//! Does not own: the drains (`afflux_kernels::zone`). Invariants: every count comes from a real drain.

use afflux_kernels::zone::{
    BatchedDrain, Counters, EmptyFirstDrain, Form, ListPerClass, Mobility, ShortcutDrain, SingleList, Temperature,
    Zone, ZoneTunables, drained,
};
use afflux_report::{Fields, Row};

use crate::experiment::Watch;
use crate::machine::row;

/// Most frames of a class, and most frames in a drain.
pub(super) const FRAMES_MAX: u32 = 1 << 16;
/// 512 MiB: batches of 31 frames.
const FRAMES: u32 = 1 << 17;

/// Frames in the lists: unmovable, reclaimable, movable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Contents([u32; Mobility::COUNT]);

impl Contents {
    /// Reads `U/R/M`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is not U/R/M, three numbers of frames from 0 to {FRAMES_MAX}, such as 10/0/21");
        let parts: Vec<u32> =
            text.split('/').map(|part| part.trim().parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
        let parts: [u32; Mobility::COUNT] = parts.try_into().map_err(|_| wrong())?;
        if parts.iter().any(|frames| *frames > FRAMES_MAX) || parts.iter().sum::<u32>() == 0 {
            return Err(format!("{}; at least one above 0", wrong()));
        }
        Ok(Self(parts))
    }

    fn text(self) -> String {
        self.0.map(|frames| frames.to_string()).join("/")
    }

    /// The class that Linux 6.1 begins with, which is the class of the last free: here the first class with frames.
    fn last(self) -> Mobility {
        Mobility::ALL.into_iter().find(|class| self.0[class.index()] > 0).unwrap_or(Mobility::Unmovable)
    }
}

/// Counts, and the classes in the order in which frames left.
type Drained = (Counters, Vec<Mobility>);

type Drains = fn(Contents, u32) -> Drained;

fn drain<F: Form>(contents: Contents, count: u32) -> Drained {
    drained::<F>(contents.0, count, contents.last())
}

/// The forms of the series, and of later kernels.
const FORMS: [(&str, Drains); 6] = [
    (SingleList::NAME, drain::<SingleList>),
    (ListPerClass::NAME, drain::<ListPerClass>),
    (BatchedDrain::NAME, drain::<BatchedDrain>),
    (ZoneTunables::NAME, drain::<ZoneTunables>),
    (ShortcutDrain::NAME, drain::<ShortcutDrain>),
    (EmptyFirstDrain::NAME, drain::<EmptyFirstDrain>),
];

/// A vector read off the kernels' sources: contents, and list heads examined in a drain of 31 frames.
struct Vector {
    contents: [u32; Mobility::COUNT],
    /// Patch 1.
    list_per_class: u64,
    /// Patch 2, and looks at the list being drained.
    batched: (u64, Option<u64>),
    /// Linux 2.6.39.
    shortcut: Option<(u64, u64)>,
    /// Linux 6.1.
    empty_first: Option<u64>,
}

const COUNT: u32 = 31;
const VECTORS: [Vector; 8] = [
    vector([0, 0, 31], 92, (32, Some(20)), Some((5, 29)), Some(1)),
    vector([31, 0, 0], 93, (33, Some(20)), Some((3, 30)), Some(1)),
    vector([0, 31, 0], 91, (31, Some(20)), Some((4, 29)), Some(1)),
    vector([10, 0, 21], 62, (32, Some(10)), Some((32, 10)), Some(2)),
    vector([10, 10, 11], 32, (32, Some(0)), Some((32, 0)), Some(3)),
    vector([1, 0, 30], 89, (32, Some(19)), Some((8, 27)), Some(2)),
    vector([0, 15, 16], 47, (32, Some(12)), Some((26, 14)), None),
    vector([0, 0, 186], 92, (32, Some(20)), Some((5, 29)), Some(1)),
];

const fn vector(
    contents: [u32; Mobility::COUNT],
    list_per_class: u64,
    batched: (u64, Option<u64>),
    shortcut: Option<(u64, u64)>,
    empty_first: Option<u64>,
) -> Vector {
    Vector { contents, list_per_class, batched, shortcut, empty_first }
}

/// How often a CPU takes the zone's lock to give back frames that are freed in a row.
fn in_a_row<F: Form>() -> Row {
    const FREED: u32 = 1000;
    let zone = Zone::<F>::new(FRAMES, 1);
    let frames: Vec<u32> = (0..FREED).filter_map(|_| zone.take(0, 0, Mobility::Movable, 0, Temperature::Hot)).collect();
    frames.into_iter().for_each(|frame| zone.free(0, frame, 0, Temperature::Hot));
    let metrics = Fields::new().with("drains_in_a_row", zone.counted(|counters| counters.drains));
    row("s2", F::NAME, Fields::new().with("part", "frees in a row").with("freed", FREED), metrics, Fields::new())
}

/// Drains lists of these contents, or of the known ones, by every form.
pub(super) fn run(given: Option<&[Contents]>, counts: &[u32], watch: &mut dyn Watch) {
    if given.is_none() {
        [in_a_row::<BatchedDrain>(), in_a_row::<ShortcutDrain>(), in_a_row::<EmptyFirstDrain>()]
            .iter()
            .for_each(|row| watch.row(row));
    }
    let known: Vec<Contents> = VECTORS.iter().map(|vector| Contents(vector.contents)).collect();
    for contents in given.unwrap_or(&known) {
        for count in counts {
            for (variant, drain) in FORMS {
                let (heads, inner) = by_sources(*contents, *count, variant);
                let drained = drain(*contents, *count);
                watch.row(&drain_row(*contents, *count, variant, &drained, heads, inner));
            }
        }
    }
}

fn drain_row(
    contents: Contents,
    count: u32,
    variant: &str,
    drained: &Drained,
    heads: Option<u64>,
    inner: Option<u64>,
) -> Row {
    let last = ["U", "R", "M"][contents.last().index()];
    let params = Fields::new().with("part", "drain").with("contents", contents.text()).with("drain", count);
    let metrics = Fields::new()
        .with("lists_examined", drained.0.lists_examined)
        .with("inner_checks", drained.0.inner_checks)
        .with("order", order(drained))
        .with("kernel_source_lists_examined", heads)
        .with("kernel_source_inner_checks", inner);
    row("s2", variant, params.with("last_freed", last), metrics, Fields::new())
}

/// The classes in the order in which frames left, one letter each.
fn order(drained: &Drained) -> String {
    drained.1.iter().map(|class| ["U", "R", "M"][class.index()]).collect()
}

/// The list heads and inner looks of this drain by the kernels' sources, counted by hand: no published source has them.
/// The drain of `ZoneTunables` is that of `BatchedDrain`, so it counts once.
fn by_sources(contents: Contents, count: u32, variant: &str) -> (Option<u64>, Option<u64>) {
    let vector = VECTORS.iter().find(|vector| vector.contents == contents.0 && count == COUNT);
    let Some(vector) = vector else { return (None, None) };
    let (heads, inner) = match variant {
        "ListPerClass" => (Some(vector.list_per_class), None),
        "BatchedDrain" => (Some(vector.batched.0), vector.batched.1),
        "ShortcutDrain" => (vector.shortcut.map(|it| it.0), vector.shortcut.map(|it| it.1)),
        "EmptyFirstDrain" => (vector.empty_first, None),
        _ => (None, None),
    };
    (heads, inner)
}
