//! A running governor's figures.
//!
//! Owns: what the governor's loop tells, which family that goes into.
//! Does not own: the governor, which has a thread of its own and waits for nobody here.
//! Invariants: the lock is held to copy a few rows, by either side.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afflux_govern::{Host, Row};
use afflux_metrics::{Exposition, Value};

use super::names::{GOVERN_BUDGET, GOVERN_DIRTY, GOVERN_DRAIN, GOVERN_EVENTS, GOVERN_LIMIT, GOVERN_SPEED};
use super::process::Process;

/// What the loop tells.
#[derive(Debug, Default)]
struct Told {
    rows: Vec<Row>,
    events: BTreeMap<&'static str, u64>,
}

/// Where it is told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telling(Arc<Mutex<Told>>);

impl Telling {
    /// How the disks stand now.
    pub(crate) fn rows(&self, rows: Vec<Row>) {
        self.lock().rows = rows;
    }

    /// Something of this kind has happened to a disk.
    pub(crate) fn happened(&self, what: &'static str) {
        *self.lock().events.entry(what).or_default() += 1;
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What gives the text.
    pub(crate) fn source(&self, root: &Path) -> impl Fn() -> String + Send + 'static {
        let (told, host, process) = (self.clone(), Host::new(root), Process::begins());
        move || {
            let mut all = Exposition::default();
            process.add_to(&mut all);
            let (rows, events) = {
                let told = told.lock();
                (told.rows.clone(), told.events.clone())
            };
            rows.iter().for_each(|row| disk(row, host.dirty_bytes(&row.bdi), &mut all));
            for (what, count) in events {
                all.add(&GOVERN_EVENTS, &[("event", what)], Value::Count(count));
            }
            all.text()
        }
    }
}

fn disk(row: &Row, dirty_bytes: Option<u64>, all: &mut Exposition) {
    let model = row.disk.model.as_deref().unwrap_or_default();
    let labels = [("device", row.disk.name.as_str()), ("model", model)];
    all.add(&GOVERN_BUDGET, &labels, Value::Number(row.budget_ns as f64 / 1e9));
    if let Some(speed) = row.bytes_per_second {
        all.add(&GOVERN_SPEED, &labels, Value::Count(speed));
    }
    if let Some(limit) = row.limit_bytes {
        all.add(&GOVERN_LIMIT, &labels, Value::Count(limit));
    }
    if let Some(dirty) = dirty_bytes {
        all.add(&GOVERN_DIRTY, &labels, Value::Count(dirty));
    }
    if let (Some(dirty), Some(speed)) = (dirty_bytes, row.bytes_per_second.filter(|speed| *speed > 0)) {
        all.add(&GOVERN_DRAIN, &labels, Value::Number(dirty as f64 / speed as f64));
    }
}
