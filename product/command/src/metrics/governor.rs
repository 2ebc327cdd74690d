//! A running governor's figures.
//!
//! Owns: the rows that the governor's loop publishes.
//! Does not own: the governor, which has its own thread and never waits for a scraper.
//! Invariants: both sides hold the lock only to copy a few rows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use afflux_engine::lock;
use afflux_govern::{GovernorRow, Host};
use afflux_metrics::{Exposition, Value};

use super::names::{GOVERN_EVENTS, GOVERNED, add};
use super::process::ProcessFigures;

/// The state that the loop publishes.
#[derive(Debug, Default)]
struct Published {
    rows: Vec<GovernorRow>,
    events: BTreeMap<&'static str, u64>,
}

/// The handle through which the loop publishes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Publisher(Arc<Mutex<Published>>);

impl Publisher {
    pub(crate) fn rows(&self, rows: Vec<GovernorRow>) {
        lock(&self.0).rows = rows;
    }

    /// Counts an event of this kind.
    pub(crate) fn happened(&self, what: &'static str) {
        *lock(&self.0).events.entry(what).or_default() += 1;
    }

    /// Returns the function that makes the text.
    pub(crate) fn source(&self, root: &Path) -> impl Fn() -> String + Send + 'static {
        let (told, host, process) = (self.clone(), Host::new(root), ProcessFigures::begins());
        move || {
            let mut all = Exposition::default();
            process.add_to(&mut all);
            let (rows, events) = {
                let told = lock(&told.0);
                (told.rows.clone(), told.events.clone())
            };
            for row in rows {
                let disk = (row.clone(), host.dirty_bytes(&row.bdi));
                let model = row.disk.model.as_deref().unwrap_or_default();
                add(&mut all, GOVERNED, &disk, &[("device", &row.disk.name), ("model", model)]);
            }
            for (what, count) in events {
                all.add(&GOVERN_EVENTS, &[("event", what)], Value::Count(count));
            }
            all.text()
        }
    }
}
