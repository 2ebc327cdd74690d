//! A server's upkeep: it saves the disks' prices, and reports devices that hang, stores that are away, many small files.
//!
//! Owns: the thread, when it looks.
//! Does not own: the saved state (`kept_prices`), when a device counts as hung (the policy), the test for many small
//! files (`small_files`).
//! Invariants: only the server's end waits for it, for one look at most. A failure to save is reported once.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use afflux_engine::{DeviceId, DeviceStatus};
use tracing::{info, warn};

use super::arena::{QUIET_AFTER, forget_recoveries};
use super::kept_prices::{KeptPrices, Learned};
use super::lock;
use super::running::Running;
use super::small_files::{Counts, SmallFiles, WITHIN};
use afflux_report::{output, units};

/// Between two looks at the devices.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Between two saves of prices; a killed server loses at most this much.
const KEEP_EVERY: Duration = Duration::from_secs(60);

/// The thread. When dropped, it saves the prices and ends.
pub(super) struct Upkeep {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    pub(super) fn start(running: &Arc<Running>, kept: Arc<Mutex<KeptPrices>>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let small_files = SmallFiles::default();
        let mut looks = UpkeepState {
            running: Arc::clone(running),
            kept,
            said: false,
            hung: BTreeMap::new(),
            hung_for_names: BTreeSet::new(),
            away: BTreeSet::new(),
            small_files,
        };
        let body = move || {
            let mut kept_at = Instant::now();
            let mut is_quiet = false;
            while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                looks.report_hung_disks();
                looks.report_hung_names();
                looks.report_stores_away();
                looks.say_many_small_files();
                if !is_quiet && looks.running.since.elapsed() >= QUIET_AFTER {
                    forget_recoveries(&looks.running.engine);
                    is_quiet = true;
                }
                if kept_at.elapsed() >= KEEP_EVERY {
                    looks.keep();
                    kept_at = Instant::now();
                }
            }
            looks.keep();
        };
        let thread = thread::Builder::new().name("upkeep".to_owned()).spawn(body)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A panic of the thread was already reported.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct UpkeepState {
    running: Arc<Running>,
    kept: Arc<Mutex<KeptPrices>>,
    /// Whether a failure to save was reported.
    said: bool,
    /// Devices that were reported as hung, and whether their writers are refused.
    hung: BTreeMap<DeviceId, bool>,
    /// Devices that were reported to hang for names.
    hung_for_names: BTreeSet<DeviceId>,
    /// Devices whose stores were reported as away.
    away: BTreeSet<DeviceId>,
    small_files: SmallFiles,
}

impl UpkeepState {
    fn keep(&mut self) {
        let devices = self.running.engine.status().devices;
        let learned = devices.into_iter().filter_map(|DeviceStatus { id, name, .. }| {
            let identity = self.running.devices.identity(&name)?;
            Some(Learned { identity, name, prices: self.running.engine.remembered(id) })
        });
        let learned = learned.collect();
        if let (Err(error), false) = (lock(&self.kept).keep(learned), self.said) {
            warn!("the disks' measured speeds could not be kept: {error}");
            self.said = true;
        }
    }

    /// Says once that `--async-metadata` would help.
    fn say_many_small_files(&mut self) {
        if !self.running.volume.names_durable() {
            return;
        }
        let calls = self.running.front.calls();
        let now = Counts {
            at: self.running.since.elapsed(),
            created: calls.iter().filter(|(name, _)| *name == "nfs_create").map(|(_, count)| count).sum(),
            dirtied_bytes: self.running.engine.status().devices.iter().map(|device| device.dirtied_bytes).sum(),
        };
        if let Some(created) = self.small_files.look(now) {
            let (created, seconds) = (units::count(created), WITHIN.as_secs());
            info!(
                "clients created {created} small files within {seconds} s, and each waited for its disk; \
                 --async-metadata answers earlier, and a crash of this host may then undo the last changes"
            );
        }
    }

    fn report_stores_away(&mut self) {
        for device in self.running.engine.status().devices {
            let name = output::shown(&device.name);
            match device.away_ns {
                Some(ns) if self.away.insert(device.id) => {
                    let trouble = self.running.store.as_ref().and_then(|store| store().trouble);
                    let why = trouble.map(|why| format!(" ({})", output::shown(why))).unwrap_or_default();
                    warn!(
                        "{name} has been away for {}{why}: writers and syncs wait until it answers; no written data is \
                         lost, and no restart is needed",
                        units::latency(ns)
                    );
                }
                None if self.away.remove(&device.id) => info!("{name} answers again"),
                _ => {}
            }
        }
    }

    fn report_hung_names(&mut self) {
        for device in self.running.engine.status().devices {
            let name = output::shown(&device.name);
            match device.names_stalled_ns {
                Some(ns) if self.hung_for_names.insert(device.id) => {
                    let age = units::latency(ns);
                    warn!("{name} has not ended a call for names or attributes for {age}: its clients wait");
                }
                None if self.hung_for_names.remove(&device.id) => info!("{name} ends calls for names again"),
                _ => {}
            }
        }
    }

    fn report_hung_disks(&mut self) {
        for device in self.running.engine.status().devices {
            let name = output::shown(&device.name);
            match (device.stalled_ns, self.hung.get(&device.id)) {
                (Some(ns), before) if before != Some(&device.refuses) => {
                    let age = units::latency(ns);
                    let what = if device.refuses {
                        "its writers and syncs are refused (hang_error_ms) until it does; no written data is lost"
                    } else {
                        "its writers wait; no written data is lost"
                    };
                    warn!("{name} has completed nothing for {age}: {what}");
                    self.hung.insert(device.id, device.refuses);
                }
                (None, Some(_)) => {
                    info!("{name} goes on");
                    self.hung.remove(&device.id);
                }
                _ => {}
            }
        }
    }
}
