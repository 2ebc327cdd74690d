//! The engine and all that runs on it, up to the first accepted connection.
//!
//! Owns: the reactors, the policies and knobs of a configuration, the engine, the volume and its devices.
//! Does not own: the order of a start and its end (`serve`), the front (`front`), the memory (`prices::arena`).
//! Invariants: no client is answered before everything else is there.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use afflux_budget::Budget;
use afflux_engine::settings::Settings as Knobs;
use afflux_engine::{Nanos, Policies, Recovered};
use afflux_frames::Frames;
use afflux_linux_device::{Caching, IoChoice, LinuxPlatform, REACTORS_MAX, Reactors};
use afflux_linux_server::{ArenaFile, host_device, open_location_file};
use afflux_nfs::Rules;
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::output;
use afflux_volume::{DeviceFactory, DeviceKey, NewDevice, Node, Volume};
use tracing::{debug, info, warn};

use crate::configuration::Configuration;
use crate::knobs;
use crate::serve::front::{OfTree, PreparedFront};
use crate::serve::live::{Running, ServedDevices, device_identity};
use crate::serve::persisted::arena::{self, CacheMemory};
use crate::serve::persisted::last_run::{LastRun, ServerRun, StartRecord};
use crate::serve::persisted::persisted_prices::PersistedPrices;
use crate::serve::persisted::{LOCATIONS, PRICES, StateDirectory, WRITE_VERIFIER, client_state, unnamed_files};
use crate::serve::start::exports::ServedExport;
use crate::serve::start::source::Source;

/// Interval of the upkeep of unused files. The upkeep frees the space of files that other programs have deleted. It
/// also closes written programs, so that the host can run them.
const TEND_NS: u64 = 10 * Nanos::SECOND;

/// The disks' prices from earlier runs. A failure to persist them is only reported.
pub(crate) fn persisted_prices(state: &StateDirectory) -> Arc<PersistedPrices> {
    let (prices, warnings) = PersistedPrices::read(state.shared_file(PRICES));
    for warning in warnings {
        warn!("{warning}");
    }
    if let Some(warning) = prices_unkept(state) {
        warn!("{warning}");
    }
    Arc::new(prices)
}

/// The warning about a state directory that cannot be written.
pub(crate) fn prices_unkept(state: &StateDirectory) -> Option<String> {
    let why = output::shown(state.unwritable()?).to_string();
    Some(format!("the disks' measured speeds are not kept until the next start ({why}); --state names another place"))
}

pub(crate) fn start_reactors(io: IoChoice) -> Outcome<Reactors> {
    let cores = thread::available_parallelism().map_or(1, usize::from).min(REACTORS_MAX);
    Reactors::start(cores, io).map_err(|error| {
        let hint = if io == IoChoice::Uring { "; `--io auto` does without where it must" } else { "" };
        Failure::failed(format!("{error}{hint}"))
    })
}

/// The knobs of the configuration, and the policies that obey them. Fails for a knob that changes nothing.
pub(crate) fn knobs_and_policies(configuration: &Configuration) -> Outcome<(Knobs, Policies)> {
    let (mut settings, policies) = (knobs::of_server(), Policies { policy: Arc::new(Budget), ..Policies::default() });
    for knob in &configuration.knobs {
        let knob = settings.set_text(knob).map_err(Failure::wrong_use)?;
        policies.refuse_ignored(&settings, knob).map_err(Failure::wrong_use)?;
    }
    Ok((settings, policies))
}

/// What a start has opened or prepared before the engine.
pub(crate) struct PreparedParts<'a> {
    pub(crate) state: &'a StateDirectory,
    pub(crate) starts: &'a StartRecord,
    pub(crate) prices: &'a Arc<PersistedPrices>,
    pub(crate) source: &'a Source,
    pub(crate) exports: Vec<ServedExport>,
    pub(crate) memory: CacheMemory,
    pub(crate) front: PreparedFront,
}

/// Starts everything from the engine up to the first accepted connection. `locks` the cache's memory before that.
pub(crate) fn start(
    platform: &LinuxPlatform,
    configuration: &Configuration,
    rules: Rules,
    parts: PreparedParts<'_>,
    locks: impl FnOnce(&Frames) -> Outcome,
) -> Outcome<Running> {
    let PreparedParts { state, starts, prices, source, exports, memory, front } = parts;
    let (settings, policies) = knobs_and_policies(configuration)?;
    let (is_persistent, key, tree) = (memory.is_persistent(), source.key(state), source.tree());
    let last = ServerRun::last(state);
    let memory = memory.unless_passed_over(&last, starts, |recovered| source.named(platform, &key, recovered))?;
    let last = last.unwrap_or_else(|error| {
        warn!("how the last server ended is unknown: {WRITE_VERIFIER} in the state directory: {error}");
        LastRun::Unknown
    });
    let is_next = memory.is_inherited() || last.is_last_in(starts);
    let write_home = |recovered: &Recovered| source.write_home(platform, &key, recovered);
    let (engine, mut arena) = memory.engine(platform, settings, policies, write_home)?;
    locks(engine.frames())?;
    // A killed server's verifier is in the memory.
    let is_recovered = engine.write_verifier() != 0;
    let devices = Arc::new(ServedDevices::default());
    let factory = device_factory(source, platform, &devices, prices);
    let by_handle = arena::needs_handles(is_persistent, &*tree)?;
    let volume = Volume::new(Arc::clone(&engine), tree, key, factory).or_failed("cannot serve")?;
    if !by_handle {
        save_locations(&volume, state);
    }
    arena::refuse_files_elsewhere(&volume)?;
    source.continue_verifier(&volume, last, is_recovered || !is_next);
    volume.upkeep_every(TEND_NS);
    if configuration.settings.posix_locks {
        volume.locks().show_on_host();
    }
    // A mount's names are as durable as the host's own: at fsync. NFS demands it at return.
    let at_return = front.has_nfs() && !configuration.settings.at_once.async_metadata;
    volume.set_names_durable(at_return);
    let run = ServerRun::begin(&engine, state, starts, is_persistent, last, is_next)?;
    arena.iter().try_for_each(ArenaFile::offer).or_failed("cannot tell systemd")?;
    if !(front.has_version_4() && source.is_of_host()) {
        client_state::forget(state);
    }
    let of_tree = OfTree { checks_rights: source.is_checking_rights(), is_sole: source.is_sole() };
    let front = front.start(platform, &engine, &volume, rules, of_tree, || source.persisted_clients(state, run))?;
    arena.iter_mut().for_each(ArenaFile::keep);
    unnamed_files::drop_inherited(source);
    arena::adopt_files(&engine, &volume);
    let store = source.store_figures();
    Ok(Running { engine, volume, devices, exports, since: Instant::now(), front, store, arena })
}

/// Has the volume save the locations of objects for the next start. Without them, clients' handles take a walk then.
fn save_locations(volume: &Volume<LinuxPlatform>, state: &StateDirectory) {
    let Some(path) = state.own_file(LOCATIONS) else { return };
    match open_location_file(&path) {
        Ok((record, store)) => {
            if !volume.keep_locations(&record, store) {
                info!(
                    "a part of {} cannot be read, as after a crash; the server searches for missing objects when clients use them",
                    output::shown(path.display())
                );
            }
        }
        Err(reason) => info!(
            "after a restart, handles that clients hold are found by a walk of the directory: where files are is not \
             kept ({})",
            output::shown(reason)
        ),
    }
}

fn device_factory(
    source: &Source,
    platform: &LinuxPlatform,
    devices: &Arc<ServedDevices>,
    prices: &Arc<PersistedPrices>,
) -> DeviceFactory {
    match source {
        Source::Host(_) => host_devices(platform.clone(), Arc::clone(devices), Arc::clone(prices)),
        #[cfg(feature = "object")]
        Source::Store(volume) => volume.device_factory(Arc::clone(devices), prices),
    }
}

fn host_devices(platform: LinuxPlatform, devices: Arc<ServedDevices>, prices: Arc<PersistedPrices>) -> DeviceFactory {
    Box::new(move |key: DeviceKey, node: &Node| {
        let device = host_device(&platform, node, Caching::Auto)?;
        let label = device_identity::label_of(key.0);
        let identity = device_identity::identity_of(key.0, device.file_system_id());
        let remembered = identity.as_ref().map(|identity| prices.of(identity)).unwrap_or_default();
        let described = device.describe();
        let described = label.attached_by.map_or_else(|| described.to_string(), |by| format!("{by}, {described}"));
        let name = devices.add(&label.name, described, identity);
        debug!("{} is a device now, {}", output::shown(&name), output::shown(device.describe()));
        Ok(NewDevice { name, device, remembered })
    })
}
