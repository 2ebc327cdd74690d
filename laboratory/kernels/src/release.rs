//! The kernels by name.
//!
//! Owns: the names, and the parts of each kernel. Does not own: these parts.
//! Invariants: the error of [`release`] lists every name.

use crate::balance::{Balance, Form, Part};

const RELEASES: [(&str, Form); 8] = [
    ("linux-2.6.31-rc1", Form::Rc1),
    ("linux-2.6.31", Form::Final),
    ("s0-july", Form::July),
    ("s0-seed", Form::Seed),
    ("s0-august", Form::August),
    ("s0-september", Form::September),
    ("s0-merged", Form::Merged),
    ("linux-2.6.32", Form::V2_6_32),
];

/// The threads that write in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// A pool for all devices (`mm/pdflush.c`).
    Pdflush,
    /// One for each device (`bdi_writeback_task`).
    Flushers,
}

/// A kernel.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// Its name.
    pub name: &'static str,
    pub(crate) law: Balance,
    pub(crate) threads: Threads,
    /// Whether a wait for congestion ends when a queue clears, instead of after its whole time.
    pub(crate) woken_on_clear: bool,
}

/// The error for an unknown name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} '{name}'; there are: {known}")]
pub struct UnknownName {
    pub(crate) what: &'static str,
    pub(crate) name: String,
    pub(crate) known: String,
}

impl Release {
    /// The kernel with these parts of its law added or removed.
    #[must_use]
    pub fn changed(self, parts: &[(Part, bool)]) -> Self {
        Self { law: self.law.changed(parts), ..self }
    }

    /// The kernel with waits for congestion that always take their 100 ms.
    #[must_use]
    pub fn with_plain_waits(self) -> Self {
        Self { woken_on_clear: false, ..self }
    }
}

/// The kernel of that name.
///
/// # Errors
/// If there is none; the error lists the names.
pub fn release(name: &str) -> Result<Release, UnknownName> {
    let known = || RELEASES.map(|(name, _)| name).join(", ");
    let unknown = || UnknownName { what: "kernel", name: name.to_owned(), known: known() };
    let (name, form) = RELEASES.into_iter().find(|(known, _)| *known == name).ok_or_else(unknown)?;
    let threads = if form == Form::V2_6_32 { Threads::Flushers } else { Threads::Pdflush };
    Ok(Release { name, law: Balance::new(form), threads, woken_on_clear: true })
}
