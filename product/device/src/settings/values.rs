//! The registry: the tables of all owners, and the values in force for the engine and, where set, for one device.
//!
//! Owns: the list of tables, the position of each knob's value, the range check of every change, the comparison of the
//! background threshold with the dirty limit.
//! Does not own: tables, the effect of a change (`Engine::set_knob`), the use of a value by a policy.
//! Invariants: a value is inside its row's range. Values that would let writers wait before the flusher starts are
//! refused. Tables are added before an engine is made from it, never later, so that positions do not change.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::settings::error::{KnobError, Threshold};
use crate::settings::table::{KnobInfo, KnobTable, Scope, TableKnob};
use crate::settings::{KNOBS, Knob, PAGE_KNOBS, PageKnob};

/// Stands for an unset device value; no row allows this number.
const UNSET: u64 = u64::MAX;

/// The prefix of knob names in the kernel's tools.
const SYSCTL_PREFIX: &str = "vm.";

/// A knob's position in a registry: looked up once, then an index. Meaningless in another registry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnobId(usize);

/// Identifies a knob: by its owner's name for it, or by its position.
pub trait WhichKnob: Copy {
    /// The knob's position.
    ///
    /// # Panics
    /// If the owner's table is not in the registry.
    fn id(self, settings: &Settings) -> KnobId;
}

impl WhichKnob for KnobId {
    fn id(self, _: &Settings) -> KnobId {
        self
    }
}

impl<K: TableKnob> WhichKnob for K {
    #[inline]
    fn id(self, settings: &Settings) -> KnobId {
        let table = K::TABLE;
        let first = settings.first(table);
        KnobId(first.unwrap_or_else(|| panic!("the knobs of {} were not added", table.owner)) + self.row())
    }
}

/// The registry with the values in force.
pub struct Settings {
    knobs: Vec<KnobSlot>,
}

struct KnobSlot {
    table: &'static KnobTable,
    info: &'static KnobInfo,
    value: AtomicU64,
}

impl Default for Settings {
    fn default() -> Self {
        Self::with([])
    }
}

impl Settings {
    /// The engine's own two tables, at their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The engine's own two tables and those of others, at their defaults.
    pub fn with(tables: impl IntoIterator<Item = &'static KnobTable>) -> Self {
        let mut settings = Self { knobs: Vec::new() };
        settings.add(&KNOBS);
        settings.add(&PAGE_KNOBS);
        tables.into_iter().for_each(|table| settings.add(table));
        settings
    }

    /// Adds an owner's knobs at their defaults, unless they are there.
    ///
    /// # Panics
    /// If another table has a knob of the same name.
    pub fn add(&mut self, table: &'static KnobTable) {
        if self.knobs.iter().any(|held| ptr::eq(held.table, table)) {
            return;
        }
        for info in table.rows {
            assert!(self.find(info.name).is_none(), "{} and another have a knob {}", table.owner, info.name);
            self.knobs.push(KnobSlot { table, info, value: AtomicU64::new(info.default) });
        }
    }

    /// The position of a table's first knob.
    #[inline]
    fn first(&self, table: &'static KnobTable) -> Option<usize> {
        if ptr::eq(table, &raw const KNOBS) {
            return Some(0);
        }
        if ptr::eq(table, &raw const PAGE_KNOBS) {
            return Some(KNOBS.rows.len());
        }
        self.knobs.iter().position(|held| ptr::eq(held.table, table))
    }

    /// All knobs, in the order of the tables.
    pub fn all(&self) -> impl Iterator<Item = (KnobId, &'static KnobInfo)> {
        self.knobs.iter().enumerate().map(|(at, held)| (KnobId(at), held.info))
    }

    /// The knobs of a table, in its order; empty if the table was not added.
    pub fn of(&self, table: &'static KnobTable) -> Vec<KnobId> {
        let of = |(at, held): (usize, &KnobSlot)| ptr::eq(held.table, table).then_some(KnobId(at));
        self.knobs.iter().enumerate().filter_map(of).collect()
    }

    /// The table with the knob's row.
    pub fn table(&self, knob: impl WhichKnob) -> &'static KnobTable {
        self.knobs[knob.id(self).0].table
    }

    /// The knob's row.
    pub fn info(&self, knob: impl WhichKnob) -> &'static KnobInfo {
        self.knobs[knob.id(self).0].info
    }

    /// The value in force.
    #[inline]
    pub fn get(&self, knob: impl WhichKnob) -> u64 {
        self.knobs[knob.id(self).0].value.load(Ordering::Relaxed)
    }

    /// The value in force of a knob that is a time, in nanoseconds.
    ///
    /// # Panics
    /// As [`KnobInfo::ns`].
    pub fn ns(&self, knob: impl WhichKnob) -> u64 {
        let knob = knob.id(self);
        self.info(knob).ns(self.get(knob))
    }

    /// Sets a knob before an engine is made; a running engine has `Engine::set_knob`. Rejects a value outside the range
    /// and leaves the old one in force.
    pub fn set(&mut self, knob: impl WhichKnob, value: u64) -> Result<(), KnobError> {
        self.change(knob, value)
    }

    /// Sets a knob while others read it.
    pub fn change(&self, knob: impl WhichKnob, value: u64) -> Result<(), KnobError> {
        let knob = knob.id(self);
        checked(self.info(knob), value, self.get(knob))?;
        self.knobs[knob.0].value.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// Parses `KNOB=VALUE` without setting the knob; the error names the value in force.
    pub fn parse(&self, text: &str) -> Result<(KnobId, u64), KnobError> {
        let (name, value) = text.split_once('=').ok_or_else(|| KnobError::Form { text: text.to_owned() })?;
        let knob = self.named(name.trim())?;
        let (info, value) = (self.info(knob), value.trim());
        if info.is_ambiguous(value) {
            return Err(KnobError::Ambiguous { knob: info, value: value.to_owned() });
        }
        let not_a_number = || KnobError::NotANumber { knob: info, value: value.to_owned(), now: self.get(knob) };
        Ok((knob, info.read(value).ok_or_else(not_a_number)?))
    }

    /// The knob called `name`, or known to the kernel by another name, or to sysctl with a prefix (`vm.dirty_ratio`).
    pub fn named(&self, name: &str) -> Result<KnobId, KnobError> {
        let name = name.strip_prefix(SYSCTL_PREFIX).unwrap_or(name);
        self.find(name).ok_or_else(|| {
            let known: Vec<_> = self.all().map(|(_, info)| info.name).collect();
            KnobError::Unknown { name: name.to_owned(), known }
        })
    }

    fn find(&self, name: &str) -> Option<KnobId> {
        self.all().find(|(_, info)| info.is_called(name)).map(|(knob, _)| knob)
    }
}

/// One device's own values, if it has any.
pub struct DeviceSettings {
    values: Box<[AtomicU64]>,
}

impl DeviceSettings {
    /// No own values, for a device of the engine with these settings.
    pub fn new(engine: &Settings) -> Self {
        Self { values: engine.all().map(|_| AtomicU64::new(UNSET)).collect() }
    }

    /// The device's value, or the engine's if it has none of its own.
    pub fn get(&self, engine: &Settings, knob: impl WhichKnob) -> u64 {
        let knob = knob.id(engine);
        match self.values[knob.0].load(Ordering::Relaxed) {
            UNSET => engine.get(knob),
            own => own,
        }
    }

    /// The knobs with an own value, by name.
    pub fn own(&self, engine: &Settings) -> Vec<(&'static str, u64)> {
        let values = engine.all().map(|(knob, info)| (info.name, self.values[knob.0].load(Ordering::Relaxed)));
        values.filter(|(_, value)| *value != UNSET).collect()
    }

    /// Sets a knob for this device alone.
    pub fn set(&self, engine: &Settings, knob: impl WhichKnob, value: u64) -> Result<(), KnobError> {
        let knob = knob.id(engine);
        let info = engine.info(knob);
        if info.scope != Scope::Device {
            return Err(KnobError::NotPerDevice { name: info.name });
        }
        checked(info, value, self.get(engine, knob))?;
        self.values[knob.0].store(value, Ordering::Relaxed);
        Ok(())
    }
}

/// Refuses a value that the row does not allow.
pub(super) fn checked(knob: &'static KnobInfo, value: u64, now: u64) -> Result<(), KnobError> {
    if knob.is_allowed(value) { Ok(()) } else { Err(KnobError::OutOfRange { knob, value, now }) }
}

/// The bases of ratios.
#[derive(Clone, Copy, Debug)]
pub struct RatioBases {
    /// All memory for pages.
    pub memory_bytes: u64,
    /// The base of the background ratio.
    pub background: BackgroundBase,
}

/// The base of `dirty_background_ratio`, as the policy in force declares it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackgroundBase {
    /// The dirty limit: the threshold is then always below it.
    OfLimit,
    /// Memory, as for `dirty_ratio`.
    OfMemory,
}

impl Settings {
    /// Refuses settings whose background threshold is not below the limit, before an engine is made.
    pub fn background_is_below_limit(&self, shares: RatioBases) -> Result<(), KnobError> {
        below_limit(self, Some(shares), &|knob| self.get(knob))
    }

    /// Applies `KNOB=VALUE`, as [`Settings::set`], unless the background threshold in bytes would not be below the
    /// limit in bytes. Values in bytes (`64MiB`, `1GB`) and times (`500ms`, `30s`) may have a unit.
    pub fn set_text(&mut self, text: &str) -> Result<KnobId, KnobError> {
        let (knob, value) = self.parse(text)?;
        would_fit(self, &[(knob, value)], None, &|knob| self.get(knob))?;
        self.set(knob, value)?;
        Ok(knob)
    }
}

/// Refuses a value out of range, or a background threshold that is not below the limit, with these knobs at their new
/// values and the others from `get`. The last value of a knob counts.
pub fn would_fit(
    settings: &Settings,
    changes: &[(KnobId, u64)],
    shares: Option<RatioBases>,
    get: &dyn Fn(KnobId) -> u64,
) -> Result<(), KnobError> {
    for (knob, value) in changes {
        checked(settings.info(*knob), *value, get(*knob))?;
    }
    let compared = [Knob::BackgroundBytes, Knob::DirtyBytes, Knob::DirtyRatio].map(|knob| knob.id(settings));
    let is_compared = |knob: &KnobId| compared.contains(knob) || *knob == PageKnob::BackgroundRatio.id(settings);
    if !changes.iter().any(|(knob, _)| is_compared(knob)) {
        return Ok(());
    }
    let changed = |knob: KnobId| changes.iter().rev().find(|change| change.0 == knob).map(|change| change.1);
    below_limit(settings, shares, &|other| changed(other).unwrap_or_else(|| get(other)))
}

/// The thresholds in force, compared as far as possible: in bytes, or, if the memory is not known, only if both are set
/// in bytes. A background ratio beside a limit in bytes is accepted: a user who sets one need not know of the other.
/// Laws start at half the limit then, as the kernel does.
fn below_limit(settings: &Settings, shares: Option<RatioBases>, get: &dyn Fn(KnobId) -> u64) -> Result<(), KnobError> {
    let threshold = |in_bytes: Knob, ratio: KnobId| match get(in_bytes.id(settings)) {
        0 => {
            let value = get(ratio);
            // In 128 bits every percentage fits.
            let part = |all: RatioBases| (u128::from(all.memory_bytes) * u128::from(value) / 100) as u64;
            Threshold { knob: settings.info(ratio), value, bytes: shares.map(part) }
        }
        value => Threshold { knob: in_bytes.info(), value, bytes: Some(value) },
    };
    let background = threshold(Knob::BackgroundBytes, PageKnob::BackgroundRatio.id(settings));
    let limit = threshold(Knob::DirtyBytes, Knob::DirtyRatio.id(settings));
    let are_ratios = [&background, &limit].map(|threshold| threshold.knob.unit != "bytes");
    let compared = match are_ratios {
        [false, _] => true,
        [true, true] => shares.is_some_and(|shares| shares.background == BackgroundBase::OfMemory),
        [true, false] => false,
    };
    let below = background.bytes.zip(limit.bytes).is_none_or(|(background, limit)| background < limit);
    if !compared || below { Ok(()) } else { Err(KnobError::BackgroundAboveLimit { background, limit }) }
}
