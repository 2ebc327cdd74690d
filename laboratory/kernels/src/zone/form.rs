//! The forms of the per-CPU lists in seed S2's series and in later kernels, as types.
//!
//! Owns: the differences of the forms. Does not own: the lists.
//! Invariants: everything else is one source for all forms.

/// The order in which frames are taken from per-CPU lists to be given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drain {
    /// One list, from its tail.
    OneList,
    /// For each frame the next list that is not empty (patch 1).
    RoundRobin,
    /// From each list as many frames as lists were examined to find it (patch 2).
    Batched,
    /// The same, but all from the only list with frames, if there is only one (Linux 2.6.39).
    BatchedShortcut,
    /// Each list is emptied before the next is examined (Linux 6.1).
    EmptyFirst,
}

/// One form of the series.
pub trait Form: Send + Sync + 'static {
    /// Its name in tables.
    const NAME: &'static str;
    /// Whether each mobility class has a list of its own; otherwise one list is searched.
    const LIST_PER_CLASS: bool;
    /// How the lists are drained.
    const DRAIN: Drain;
    /// Whether `high` and `batch` are in the zone; otherwise each CPU has a copy beside its lists.
    const TUNABLES_IN_ZONE: bool;
    /// Whether each drain without an allocation in between gives back twice as many frames (`nr_pcp_free`, since 5.13).
    const DOUBLES: bool;
}

macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident: $lists:literal, $drain:ident, $zone:literal, $doubles:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Form for $name {
            const NAME: &'static str = stringify!($name);
            const LIST_PER_CLASS: bool = $lists;
            const DRAIN: Drain = Drain::$drain;
            const TUNABLES_IN_ZONE: bool = $zone;
            const DOUBLES: bool = $doubles;
        }
    )*};
}

forms! {
    /// Before the series: one list, searched for the wanted class.
    SingleList: false, OneList, false, false;
    /// Patch 1: a list a class.
    ListPerClass: true, RoundRobin, false, false;
    /// Patches 1 and 2: a drain that does not examine empty lists again and again.
    BatchedDrain: true, Batched, false, false;
    /// The whole series: `high` and `batch` in the zone.
    ZoneTunables: true, Batched, true, false;
    /// As in Linux 2.6.39: if only one list has frames, all are taken from it.
    ShortcutDrain: true, BatchedShortcut, false, false;
    /// As in Linux 6.1, for single frames: the list that got the last free is emptied first, and drains in a row grow.
    EmptyFirstDrain: true, EmptyFirst, true, true;
}
