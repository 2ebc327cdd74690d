//! A running server, as the control socket sees it: the figures that watchers read, and the changes that commands make.
//!
//! Owns: the report, setting knobs, knobs that do not act with the value that they were given, draining, following
//! events; below it the figures, reload and upkeep.
//! Does not own: starting and stopping (`serve`), the socket (`control`), the form of single figures (`gauges`), the
//! knobs of the engine and of its policy (`Engine::knobs_in_force`).
//! Invariants: only a drain waits for a device, and it reports progress. `afflux set`, `afflux stat`, the start and a
//! reload have the same words for a knob.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use afflux_engine::counters::COUNTERS;
use afflux_engine::settings::{KnobError, KnobId, KnobTable, TableKnob, did_you_mean};
use afflux_engine::trace::Traced;
use afflux_engine::{AccountOwner, DeviceId, DeviceStatus, Engine, File, Platform, lock};
use afflux_frontend::AnsweredSum;
use afflux_linux_device::LinuxPlatform;
use afflux_linux_server::ArenaFile;
use afflux_nfs::NfsKnob;
use afflux_report::output::shown;
use afflux_report::units;
use afflux_volume::Volume;
use tracing::info;

use crate::control::Responder;
use crate::control::messages::{
    CacheGauges, ControlReply, ControlRequest, DIRTY_FILES_MAX, DeviceDelayGauges, DeviceGauges, DirtyFileReport,
    Drained, KnobGauge, NfsGauges, Progress, Report, ServedDirectory, StoreGauges, UnwrittenFiles,
};
use crate::knobs;
use crate::serve::front::tls::Tls;
use crate::serve::front::{Front, NfsFront};
use crate::serve::start::exports::ServedExport;

pub(crate) mod clients;
pub(crate) mod device_identity;
pub(crate) mod figures;
pub(crate) mod gauges;
pub(crate) mod reload;
pub(crate) mod upkeep;

/// Between two reports of a drain's progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Most clients of a device in a report.
pub(crate) const CLIENTS_IN_REPORT: usize = 64;

/// Most clients in one reply about delays.
const DELAYS_A_LINE: usize = 1024;

/// The volume's devices: their labels and identities. Each is added when the volume first uses it.
#[derive(Default)]
pub(crate) struct ServedDevices(Mutex<Vec<ServedDevice>>);

struct ServedDevice {
    name: String,
    described: String,
    identity: Option<String>,
}

impl ServedDevices {
    /// Adds a device with its description and its identity. Returns its name: the label, or another if that is in use.
    pub(crate) fn add(&self, label: &str, described: String, identity: Option<String>) -> String {
        let mut devices = lock(&self.0);
        let used: Vec<_> = devices.iter().map(|met| met.name.clone()).collect();
        let name = device_identity::unused(label, &used);
        devices.push(ServedDevice { name: name.clone(), described, identity });
        name
    }

    /// Name and description of each.
    pub(crate) fn described(&self) -> Vec<(String, String)> {
        lock(&self.0).iter().map(|met| (met.name.clone(), met.described.clone())).collect()
    }

    /// The identity of the device of that name.
    pub(crate) fn identity(&self, name: &str) -> Option<String> {
        lock(&self.0).iter().find(|met| met.name == name)?.identity.clone()
    }

    fn description(&self, name: &str) -> Option<String> {
        Some(lock(&self.0).iter().find(|met| met.name == name)?.described.clone())
    }
}

pub(crate) struct Running {
    pub(crate) engine: Arc<Engine<LinuxPlatform>>,
    pub(crate) volume: Arc<Volume<LinuxPlatform>>,
    pub(crate) devices: Arc<ServedDevices>,
    pub(crate) exports: Vec<ServedExport>,
    pub(crate) since: Instant,
    /// The figures of the object store that is served.
    pub(crate) store: Option<StoreFigures>,
    /// How programs reach it.
    pub(crate) front: Front,
    /// The file with the cache's memory.
    pub(crate) arena: Option<ArenaFile>,
}

/// Reads the figures of an object store.
pub(crate) type StoreFigures = Box<dyn Fn() -> StoreGauges + Send + Sync>;

impl Running {
    fn report(&self) -> Report {
        let mut status = self.engine.status();
        let store = self.store.as_ref().map(|store| store());
        // Bytes are clean once they are durable.
        let unsynced_bytes = store.as_ref().map_or(0, |store| store.unsynced_bytes);
        status.dirty_bytes += unsynced_bytes;
        status.devices.iter_mut().for_each(|device| device.dirty_bytes += unsynced_bytes);
        let sums = self.engine.platform().counters().sum();
        let counters = COUNTERS.iter().zip(sums).map(|(info, value)| (info.name.to_owned(), value));
        let settings = self.engine.settings();
        let knobs = settings.all().map(|(knob, info)| (info.name.to_owned(), settings.get(knob)));
        // Zero if the kernel does not report it.
        let resident = self.engine.frames().arena().resident().unwrap_or_default();
        let served = |export: &ServedExport| ServedDirectory {
            directory: export.directory.display().to_string(),
            export: export.path.clone(),
        };
        let arena =
            |file: &ArenaFile| file.path().map_or_else(|| "systemd".to_owned(), |path| path.display().to_string());
        Report {
            listen: self.front.address(),
            mount: self.front.mount.as_ref().map(|mount| mount.point.display().to_string()),
            serving: self.exports.iter().map(served).collect(),
            uptime_ns: nanos(self.since.elapsed()),
            policy: status.policy.to_owned(),
            eviction: status.eviction.to_owned(),
            devices: status.devices.iter().map(|device| self.device_gauges(device, store.clone())).collect(),
            cache: CacheGauges {
                resident_huge_bytes: resident.huge_bytes,
                resident_base_bytes: resident.base_bytes,
                longest_poll_ns: self.engine.platform().longest_poll_ns(),
                arena: self.arena.as_ref().map(arena),
                status,
            },
            names_durable: self.volume.are_names_durable(),
            nfs: self.nfs_gauges(),
            mount_answered: AnsweredSum::of(&self.front.calls_of_mount()).into(),
            counters: counters.collect(),
            knobs: knobs.collect::<BTreeMap<_, _>>(),
        }
    }

    /// The parts that knobs act on.
    pub(crate) fn served(&self) -> Served<'_> {
        (&self.engine, self.front.nfs.as_ref())
    }

    /// The figures of the front; those of connections are zero without NFS.
    pub(crate) fn nfs_gauges(&self) -> NfsGauges {
        let of_nfs = self.front.calls_of_nfs();
        let rows = of_nfs.iter().copied().chain(self.front.calls_of_mount());
        let calls = rows.map(|row| (row.name.to_owned(), row.count)).collect();
        let Some(nfs) = &self.front.nfs else { return NfsGauges { calls, ..NfsGauges::default() } };
        let counts = nfs.handle.counts();
        let (known_clients, sessions, open_files) = nfs.server.held_by_version_4().unwrap_or_default();
        let lockers = self.lockers();
        let delegations = self.volume.delegations().counts();
        NfsGauges {
            connections: counts.connections as u64,
            connections_max: nfs.connections_max as u64,
            closed_silent: counts.closed_silent,
            closed_for_room: counts.closed_for_room,
            refused: counts.refused,
            request_bytes: counts.request_bytes,
            connections_at_work: counts.connections_at_work as u64,
            waiting_for_room: counts.waiting_for_room as u64,
            closed_stalled: counts.closed_stalled,
            closed_unread: counts.closed_unread,
            accepted: counts.accepted,
            calls_in_progress: counts.calls_in_progress as u64,
            received_bytes: counts.bytes_in,
            sent_bytes: counts.bytes_out,
            answered: AnsweredSum::of(&of_nfs).into(),
            calls,
            clients: gauges::peers(nfs.handle.peers(), nfs.tls.iter().flat_map(|tls| tls.server.secured())),
            tls_certificate_ns: tls_certificate_ns(nfs.tls.as_deref()),
            known_clients: known_clients as u64,
            sessions: sessions as u64,
            open_files: open_files as u64,
            delegations: delegations.held,
            delegations_recalled: delegations.recalled,
            delegations_revoked: delegations.revoked,
            locked_ranges: lockers.iter().map(|it| it.ranges).sum(),
            lock_waiters: lockers.iter().map(|it| it.waiting).sum(),
            lockers,
        }
    }

    fn device_gauges(&self, status: &DeviceStatus, store: Option<StoreGauges>) -> DeviceGauges {
        let waits = self.engine.waits(status.id).unwrap_or_default();
        let listed = self.engine.listed_files(status.id).unwrap_or_default();
        let clients = waits.delays.accounts.iter().filter(|one| matches!(one.whose, AccountOwner::Client(_)));
        DeviceGauges {
            status: status.clone(),
            described: self.devices.description(&status.name).unwrap_or_default(),
            b_dirty: listed.dirty,
            b_io: listed.round,
            b_more_io: listed.more,
            last_error: status.last_error.map(|error| error.to_string()),
            knobs: self.own_knobs(status.id),
            knobs_in_force: of_device(&self.engine, status.id),
            store,
            in_force: status.figures.iter().map(gauges::figure).collect(),
            pauses: status.pauses.iter().map(gauges::pause).collect(),
            waits: waits.times,
            waiting: waits.waiting.iter().map(gauges::waiter).collect(),
            waiting_more: waits.waiting_more,
            clients: clients.take(CLIENTS_IN_REPORT).map(gauges::delayed).collect(),
        }
    }

    fn own_knobs(&self, device: DeviceId) -> BTreeMap<String, u64> {
        let own = self.engine.device_knobs(device).into_iter();
        own.map(|(knob, value)| (knob.to_owned(), value)).collect()
    }

    /// Sets all these knobs or none. Returns a reply for each.
    fn set(&self, assignments: &[String], device: Option<&str>) -> Result<Vec<ControlReply>, String> {
        let (settings, mut changes) = (self.engine.settings(), Vec::new());
        let found = device.map(|name| self.device_named(name)).transpose()?;
        let say = |error: KnobError| error.to_string();
        for assignment in assignments {
            let (knob, value) = settings.parse(assignment).map_err(say)?;
            if changes.iter().any(|(other, _)| *other == knob) {
                return Err(format!("{} has two values; name it once", settings.info(knob).name));
            }
            self.engine.refuse_ignored(knob).map_err(say)?;
            changes.push((knob, value));
        }
        self.engine.set_knobs(found, &changes).map_err(say)?;
        let reply = |(knob, value): (KnobId, u64)| {
            let info = settings.info(knob);
            info!("{}", knobs::in_force_words(info, value, device));
            let in_force = of_knob(self.served(), knob, found);
            in_force.iter().for_each(|gauge| info!("{}", shown(words(gauge))));
            let device = device.map(str::to_owned);
            ControlReply::Set { knob: info.name.into(), unit: info.unit.into(), value, device, in_force }
        };
        Ok(changes.into_iter().map(reply).collect())
    }

    fn device_named(&self, name: &str) -> Result<DeviceId, String> {
        let devices = self.engine.status().devices;
        devices.iter().find(|device| device.name == name).map(|device| device.id).ok_or_else(|| {
            let names: Vec<_> = devices.iter().map(|device| device.name.as_str()).collect();
            let near = did_you_mean(name, names.iter().copied());
            format!("there is no device '{name}'{near}; there are: {}", names.join(", "))
        })
    }

    /// Reports each client's waits for each device.
    fn delays(&self, send: &mut dyn FnMut(ControlReply) -> io::Result<()>) -> io::Result<()> {
        for status in self.engine.status().devices {
            let delays = self.engine.waits(status.id).unwrap_or_default().delays;
            let (mut others, mut others_count) = (delays.others, delays.others_count);
            let clients: Vec<_> = delays.accounts.iter().map(gauges::delayed).collect();
            let parts = clients.chunks(DELAYS_A_LINE).map(<[_]>::to_vec);
            let empty = clients.is_empty().then(Vec::new);
            for clients in parts.chain(empty) {
                // The first reply alone has the sums of the others.
                let (others, others_count) = (std::mem::take(&mut others), std::mem::take(&mut others_count));
                let name = status.name.clone();
                send(ControlReply::Delays(DeviceDelayGauges { name, clients, others, others_count }))?;
            }
        }
        send(ControlReply::DelaysEnded { uptime_ns: nanos(self.since.elapsed()) })
    }

    /// Reports clients' calls until the listener is gone or the time is over.
    fn record(&self, lasting_ns: Option<u64>, send: &mut dyn FnMut(ControlReply) -> io::Result<()>) -> io::Result<()> {
        let Some(mut reader) = self.front.recording().and_then(|recording| recording.read()) else {
            return send(ControlReply::Refused { reason: "another recording is running".to_owned(), wrong_use: false });
        };
        let (now, ready) = (|| self.engine.platform().now().0, self.ready_ns());
        let mut tell = |recorded: Vec<(u64, _)>, lost| {
            let calls = recorded.iter().map(|(at_ns, call)| gauges::call(at_ns.saturating_sub(ready), call)).collect();
            send(ControlReply::Calls { calls, lost })
        };
        gauges::stream_events(&now, lasting_ns, &mut |most| reader.take(most), &|(at_ns, _)| *at_ns, &mut tell)?;
        send(ControlReply::TraceEnded)
    }

    /// Reports events until the listener is gone or the time is over.
    fn trace(
        &self,
        device: Option<&str>,
        lasting_ns: Option<u64>,
        kinds: &[String],
        send: &mut dyn FnMut(ControlReply) -> io::Result<()>,
    ) -> io::Result<()> {
        let only = match device.map(|name| self.device_named(name)).transpose() {
            Ok(only) => only,
            Err(reason) => return send(ControlReply::Refused { reason, wrong_use: true }),
        };
        let mut follower = self.engine.follow();
        let (now, ready) = (|| self.engine.platform().now().0, self.ready_ns());
        let mut names = Vec::new();
        let is_wanted = |traced: &&Traced| {
            (only.is_none() || traced.device.is_none() || traced.device == only) && gauges::is_one_of(traced, kinds)
        };
        let mut tell = |traced: Vec<Traced>, lost| {
            if traced.iter().filter_map(|traced| traced.device).any(|device| device.0 as usize >= names.len()) {
                names = self.engine.status().devices.into_iter().map(|device| device.name).collect();
            }
            let wanted = traced.iter().filter(is_wanted);
            send(ControlReply::Events {
                events: wanted.map(|traced| gauges::event(traced, &names, ready)).collect(),
                lost,
            })
        };
        gauges::stream_events(&now, lasting_ns, &mut |most| follower.take(most), &|traced| traced.at.0, &mut tell)?;
        send(ControlReply::TraceEnded)
    }

    /// The instant from which `uptime_ns` is counted, by the engine's clock.
    fn ready_ns(&self) -> u64 {
        self.engine.platform().now().0.saturating_sub(nanos(self.since.elapsed()))
    }

    /// Writes all pages that are dirty now. Calls `progress` every tenth of a second. The drain goes on even if the
    /// listener is gone.
    pub(crate) fn drain(&self, progress: &mut dyn FnMut(Progress)) -> Drained {
        let began = Instant::now();
        let written_before = self.written_bytes();
        let (told, ended) = mpsc::channel();
        let mut left = 0;
        for device in self.engine.status().devices {
            left += 1;
            let (engine, told) = (Arc::clone(&self.engine), told.clone());
            self.engine.platform().spawn("drain", async move {
                let failed = engine.drain(device.id).await;
                // There is no receiver once the process is ending.
                let _ = told.send(failed);
            });
        }
        drop(told);
        let mut failed = Vec::new();
        while left > 0 {
            match ended.recv_timeout(PROGRESS_EVERY) {
                Ok(more) => {
                    failed.extend(more);
                    left -= 1;
                }
                Err(RecvTimeoutError::Timeout) => progress(Progress {
                    left_bytes: self.engine.status().dirty_bytes,
                    written_bytes: self.written_bytes().saturating_sub(written_before),
                    elapsed_ns: nanos(began.elapsed()),
                }),
                // A drain was dropped without an answer: the platform is stopping.
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let names = self.engine.platform().block_on(async {
            self.volume.settle_all().await;
            self.volume.sync_names().await
        });
        let unwritten = failed.iter().map(|(file, error)| DirtyFileReport {
            file: name(file),
            bytes: file.dirty_bytes(),
            reason: Some(error.to_string()),
        });
        let names = names.err().map(|error| DirtyFileReport {
            file: "names and attributes".to_owned(),
            bytes: 0,
            reason: Some(error.to_string()),
        });
        let held = self.front.nfs.as_ref().and_then(|nfs| nfs.server.held_by_version_4());
        Drained {
            written_bytes: self.written_bytes().saturating_sub(written_before),
            elapsed_ns: nanos(began.elapsed()),
            failed: unwritten.chain(names).collect(),
            open_files: held.map_or(0, |(_, _, files)| files as u64),
        }
    }

    fn written_bytes(&self) -> u64 {
        self.engine.status().devices.iter().map(|device| device.written_bytes).sum()
    }

    /// The files with unwritten bytes. Asks no device.
    fn dirty_files(&self) -> UnwrittenFiles {
        let mut files = self.unwritten();
        let store = self.store.as_ref().map(|store| store());
        files.extend(store.map(|store| DirtyFileReport {
            file: "sent to the store, and not yet named by its records".to_owned(),
            bytes: store.unsynced_bytes,
            reason: None,
        }));
        files.retain(|file| file.bytes > 0);
        files.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.file.cmp(&other.file)));
        let others = files.split_off(files.len().min(DIRTY_FILES_MAX));
        UnwrittenFiles { files, others: others.len() as u64, others_bytes: others.iter().map(|file| file.bytes).sum() }
    }

    /// Every file with bytes that are not on its device. Asks no device.
    pub(crate) fn unwritten(&self) -> Vec<DirtyFileReport> {
        let devices = self.engine.status().devices;
        let files = devices.iter().flat_map(|device| self.engine.dirty_files(device.id));
        files
            .map(|(file, bytes)| DirtyFileReport {
                file: name(&file),
                bytes,
                reason: file.write_obstacle().map(|obstacle| obstacle.to_string()),
            })
            .collect()
    }
}

fn name(file: &File) -> String {
    gauges::name(file.backing())
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Responder for Running {
    fn respond(&self, request: ControlRequest, send: &mut dyn FnMut(ControlReply) -> io::Result<()>) -> io::Result<()> {
        match request {
            ControlRequest::Stat => send(ControlReply::Report(Box::new(self.report()))),
            ControlRequest::Delays => self.delays(send),
            ControlRequest::Files => send(ControlReply::Files(self.dirty_files())),
            ControlRequest::Set { assignments, device } => match self.set(&assignments, device.as_deref()) {
                Ok(replies) => replies.into_iter().try_for_each(send),
                Err(reason) => send(ControlReply::Refused { reason, wrong_use: true }),
            },
            ControlRequest::Drain => {
                info!("writing everything, as requested on the control socket");
                let mut heard = Ok(());
                let drained = self.drain(&mut |progress| {
                    if heard.is_ok() {
                        heard = send(ControlReply::Progress(progress));
                    }
                });
                heard?;
                send(ControlReply::Drained(drained))
            }
            ControlRequest::Clients { client } => self.tell_clients(client.as_deref(), send),
            ControlRequest::Unlock { client } => match self.unlock(&client) {
                Ok(clients) => send(ControlReply::Unlocked { clients }),
                Err(reason) => send(ControlReply::Refused { reason, wrong_use: true }),
            },
            ControlRequest::Record { lasting_ns } => self.record(lasting_ns, send),
            ControlRequest::Trace { device, lasting_ns, only } => {
                self.trace(device.as_deref(), lasting_ns, &only, send)
            }
        }
    }
}

/// The time for which the certificate is valid still.
fn tls_certificate_ns(tls: Option<&Tls>) -> Option<u64> {
    Some(u64::try_from(tls?.valid_for()?.as_nanos()).unwrap_or(u64::MAX))
}

/// The engine of a server, and its front for NFS if it has one.
pub(crate) type Served<'a> = (&'a Engine<LinuxPlatform>, Option<&'a NfsFront>);

/// The devices on which the knob acts with another value: all devices, or this one. One gauge without a device if it
/// does so on the whole server.
pub(crate) fn of_knob((engine, nfs): Served<'_>, knob: KnobId, device: Option<DeviceId>) -> Vec<KnobGauge> {
    let info = engine.settings().info(knob);
    if let Some(gauge) = of_nfs((engine, nfs), info.name) {
        return vec![gauge];
    }
    let devices = engine.status().devices.into_iter().filter(|it| device.is_none_or(|id| id == it.id));
    let found = devices.flat_map(|it| {
        let knobs = engine.knobs_in_force(it.id).into_iter().filter(|other| other.name == info.name);
        knobs.map(move |knob| KnobGauge::of(knob, Some(it.name.clone())))
    });
    found.collect()
}

/// Notes of the start about knobs of the configuration, each `KNOB=VALUE`.
pub(crate) fn of_configuration(served: Served<'_>, assignments: &[String]) -> Vec<String> {
    let settings = served.0.settings();
    let knobs = assignments.iter().filter_map(|assignment| Some(settings.parse(assignment).ok()?.0));
    let found: Vec<KnobGauge> = knobs.flat_map(|knob| of_knob(served, knob, None)).collect();
    found.iter().map(words).collect()
}

/// The knobs that do not have their defaults, and act on the device with another value.
pub(crate) fn of_device(engine: &Engine<LinuxPlatform>, device: DeviceId) -> Vec<KnobGauge> {
    let settings = engine.settings();
    let own = engine.device_knobs(device);
    let is_set = |name: &str| {
        own.iter().any(|(knob, _)| *knob == name)
            || settings.named(name).is_ok_and(|knob| settings.get(knob) != settings.info(knob).default)
    };
    let found = engine.knobs_in_force(device).into_iter().filter(|knob| is_set(knob.name));
    found.map(|knob| KnobGauge::of(knob, None)).collect()
}

fn of_nfs((engine, nfs): Served<'_>, name: &str) -> Option<KnobGauge> {
    let table: &KnobTable = &afflux_nfs::KNOBS;
    let info = table.rows.iter().find(|row| row.name == name)?;
    let gauge = |value, because: &str| KnobGauge {
        knob: name.to_owned(),
        device: None,
        value,
        unit: info.unit.to_owned(),
        because: because.to_owned(),
    };
    let Some(nfs) = nfs else { return Some(gauge(None, "this server has no NFS")) };
    let asked = engine.settings().get(NfsKnob::PeerConnections);
    let most = nfs.connections_max as u64;
    (name == NfsKnob::PeerConnections.info().name && asked > most)
        .then(|| gauge(Some(most), "the process may have no more connections (its limit of open files)"))
}

/// The line of the log about a knob that acts with another value.
pub(crate) fn words(gauge: &KnobGauge) -> String {
    let whom = gauge.device.as_deref().map(|name| format!(" on {name}")).unwrap_or_default();
    format!("{}{whom}: {}", gauge.knob, gauge.told_with(units::count))
}
