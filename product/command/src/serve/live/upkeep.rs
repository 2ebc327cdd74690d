//! A server's upkeep: it saves the disks' prices, checks for renewed certificates, gives TLS handshakes their time of
//! each second, checks for an rpcbind, and reports devices that hang, stores that are away, many small files.
//!
//! Owns: the threads, when they work; the test for clients that create many small files, for which `--async-metadata`
//! helps.
//! Does not own: the saved state (`persisted_prices`), the certificates (`tls`), when a device counts as hung (the
//! policy).
//! Invariants: only the server's end waits for the threads, for one check and one save at most. A failure to save is
//! reported once, and so are small files. A state directory on a hung disk delays no report: another thread saves. The
//! memory is bounded, however often the threads check.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use afflux_engine::counters::Counter;
use afflux_engine::{DeviceId, DeviceStatus, Platform};
use afflux_report::{output, units};
use tracing::{info, warn};

use crate::serve::front::rpcbind::Naming;
use crate::serve::live::Running;
use crate::serve::persisted::arena::forget_recoveries;
use crate::serve::persisted::persisted_prices::{Learned, PersistedPrices};

/// Between two checks of the devices.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A server that has checked so often is in no series of crashes. While a machine stands still, time passes without a
/// check.
const QUIET_AFTER_LOOKS: u32 = 60;

/// Between two saves of prices; a killed server loses at most this much.
const KEEP_EVERY: Duration = Duration::from_secs(60);

#[must_use = "the end saves the prices"]
pub(crate) struct Upkeep {
    stops: Vec<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Upkeep {
    pub(crate) fn start(
        running: &Arc<Running>,
        prices: Arc<PersistedPrices>,
        naming: Option<Arc<Naming>>,
    ) -> io::Result<Self> {
        let mut looks = UpkeepState {
            running: Arc::clone(running),
            naming,
            told: BTreeMap::new(),
            small_files: SmallFiles::default(),
            looks: 0,
        };
        let mut prices = SavedPrices { running: Arc::clone(running), prices, said: false };
        let looking = move |stopped: Receiver<()>| {
            while may_go_on_after(&stopped, LOOK_EVERY) {
                looks.look();
            }
        };
        let saving = move |stopped: Receiver<()>| {
            while may_go_on_after(&stopped, KEEP_EVERY) {
                prices.keep();
            }
            prices.keep();
        };
        let tls = running.front.nfs.as_ref().and_then(|nfs| nfs.tls.clone());
        let mut upkeep = Self { stops: Vec::new(), threads: Vec::new() };
        upkeep.add("upkeep", looking)?;
        upkeep.add("prices", saving)?;
        if let Some(tls) = tls {
            tls.look();
            upkeep.add("certificates", move |stopped| {
                while may_go_on_after(&stopped, LOOK_EVERY) {
                    tls.look();
                }
            })?;
        }
        Ok(upkeep)
    }

    fn add(&mut self, name: &str, body: impl FnOnce(Receiver<()>) + Send + 'static) -> io::Result<()> {
        let (stop, stopped) = mpsc::channel();
        self.threads.push(thread::Builder::new().name(name.to_owned()).spawn(move || body(stopped))?);
        self.stops.push(stop);
        Ok(())
    }

    /// Saves the prices, and waits for the threads to end.
    pub(crate) fn end(self) {
        drop(self.stops);
        // A panic of a thread was already reported.
        self.threads.into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// Waits so long; false as soon as the end is asked for.
fn may_go_on_after(stopped: &Receiver<()>, time: Duration) -> bool {
    stopped.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}

struct SavedPrices {
    running: Arc<Running>,
    prices: Arc<PersistedPrices>,
    /// Whether a failure to save was reported.
    said: bool,
}

impl SavedPrices {
    fn keep(&mut self) {
        let devices = self.running.engine.status().devices;
        let learned = devices.into_iter().filter_map(|DeviceStatus { id, name, .. }| {
            let identity = self.running.devices.identity(&name)?;
            Some(Learned { identity, name, prices: self.running.engine.remembered(id) })
        });
        if let (Err(error), false) = (self.prices.keep(learned.collect()), self.said) {
            warn!("the disks' measured speeds could not be kept: {error}");
            self.said = true;
        }
    }
}

/// Why calls for a device wait long.
#[derive(Clone, Copy, Default)]
struct DeviceTroubles {
    /// It completes nothing; whether its writers are refused.
    hangs: Option<bool>,
    hangs_for_names: bool,
    /// Its store does not answer.
    is_away: bool,
}

struct UpkeepState {
    running: Arc<Running>,
    naming: Option<Arc<Naming>>,
    /// The troubles of devices at the last check; the log has them.
    told: BTreeMap<DeviceId, DeviceTroubles>,
    small_files: SmallFiles,
    looks: u32,
}

impl UpkeepState {
    fn look(&mut self) {
        self.running.front.nfs.iter().flat_map(|nfs| &nfs.tls).for_each(|tls| tls.server.refill());
        self.naming.iter().for_each(|naming| naming.look());
        self.report_troubles();
        self.say_many_small_files();
        self.looks = self.looks.saturating_add(1);
        if self.looks == QUIET_AFTER_LOOKS {
            forget_recoveries(&self.running.engine);
        }
    }

    /// Reports once that `--async-metadata` would help.
    fn say_many_small_files(&mut self) {
        if !self.running.volume.are_names_durable() {
            return;
        }
        let now = ServerCounts {
            at: self.running.since.elapsed(),
            created: self.running.engine.platform().counters().get(Counter::FilesMade),
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

    /// Reports each trouble of a device once, and its end.
    fn report_troubles(&mut self) {
        for device in self.running.engine.status().devices {
            let now = DeviceTroubles {
                hangs: device.stalled_ns.map(|_| device.refuses),
                hangs_for_names: device.names_stalled_ns.is_some(),
                is_away: device.away_ns.is_some(),
            };
            let before = self.told.insert(device.id, now).unwrap_or_default();
            let name = output::shown(&device.name);
            match device.stalled_ns.map(units::latency) {
                Some(age) if before.hangs != now.hangs => {
                    let what = if device.refuses {
                        "its writers and syncs are refused (hang_error_ms) until it does; no written data is lost"
                    } else {
                        "its writers wait; no written data is lost"
                    };
                    warn!("{name} has completed nothing for {age}: {what}");
                }
                None if before.hangs.is_some() => info!("{name} goes on"),
                _ => {}
            }
            match device.names_stalled_ns.map(units::latency) {
                Some(age) if !before.hangs_for_names => {
                    warn!("{name} has not ended a call for names or attributes for {age}: its clients wait");
                }
                None if before.hangs_for_names => info!("{name} ends calls for names again"),
                _ => {}
            }
            match device.away_ns.map(units::latency) {
                Some(age) if !before.is_away => {
                    let why = output::bracketed(self.running.store.as_ref().and_then(|store| store().trouble));
                    warn!(
                        "{name} has been away for {age}{why}: writers and syncs wait until it answers; no written data is \
                         lost, and no restart is needed"
                    );
                }
                None if before.is_away => info!("{name} answers again"),
                _ => {}
            }
        }
    }
}

/// So many new files ...
pub(crate) const FILES_MIN: u64 = 200;

/// ... within this time ...
pub(crate) const WITHIN: Duration = Duration::from_secs(10);

/// ... are many small ones if fewer bytes than this became dirty for each.
const FILE_BYTES: u64 = 64 << 10;

/// A server's counts so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerCounts {
    /// Since any moment.
    pub(crate) at: Duration,
    /// Files that clients created.
    pub(crate) created: u64,
    pub(crate) dirtied_bytes: u64,
}

/// The counts of the last seconds.
#[derive(Debug, Default)]
pub(crate) struct SmallFiles {
    seen: VecDeque<ServerCounts>,
    found: bool,
}

impl SmallFiles {
    /// Takes the counts of this moment, about once a second. The number of small files that were created lately, if
    /// there are many for the first time.
    pub(crate) fn look(&mut self, now: ServerCounts) -> Option<u64> {
        if self.found {
            return None;
        }
        while self.seen.front().is_some_and(|oldest| now.at.saturating_sub(oldest.at) > WITHIN) {
            self.seen.pop_front();
        }
        self.seen.push_back(now);
        let oldest = self.seen.front()?;
        let created = now.created.saturating_sub(oldest.created);
        let dirtied_bytes = now.dirtied_bytes.saturating_sub(oldest.dirtied_bytes);
        self.found = created >= FILES_MIN && dirtied_bytes < created * FILE_BYTES;
        self.found.then_some(created)
    }
}

#[cfg(test)]
mod tests;
