//! `afflux serve` and `afflux mount`: directories through the engine, over NFS or as a mount of this host.
//!
//! Owns: the order in which the parts start and stop, the wiring between them.
//! Does not own: any part: the engine, the volume, the front end and the world are crates.
//! Invariants: all checks come before the first answer to a client. The exit code is 0 only if everything acknowledged
//! is durable.

pub(crate) mod front;
pub(crate) mod live;
pub(crate) mod persisted;
pub(crate) mod start;
#[cfg(feature = "object")]
mod stores;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::{io, process};

use afflux_frames::Frames;
use afflux_linux_device::HostMemory;
use afflux_linux_server::{CallsFor, DescriptorStore, check_needed_calls, give_up_privileges, refuse_foreign_calls};
use afflux_nfs::Rules;
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::{output, units};
use rustix::fs::Mode;
use rustix::process::umask;
use tracing::warn;

use self::front::rpcbind::Naming;
use self::front::{NfsFront, WantedFront, admission, banner};
use self::live::figures;
use self::live::reload::Reload;
use self::live::upkeep::Upkeep;
use self::persisted::arena::{self, CacheMemory, WantedMemory};
use self::persisted::persisted_mount::{InheritedDescriptors, Taken};
use self::persisted::unnamed_files;
use self::start::engine::{PreparedParts, persisted_prices, start, start_reactors};
use self::start::memory::{self, Prefault};
use self::start::resources::{StartResources, Taking, WantedResources};
use self::start::source::Source;
#[cfg(feature = "object")]
use self::stores::store_end;
use crate::configuration::{self, Configuration};
use crate::control::messages::{ControlReply, Progress};
use crate::control::socket_paths::BoundSocket;
use crate::progress::{self, DrainDisplay};
use crate::serve::live::Running;
use crate::serve::start::resources;
use crate::serve::start::wanted_volume::WantedVolume;
use crate::service::{self, Hangup, SignalRequest};
use crate::settings::{ArenaLocation, NfsVersion, OF_SERVE, ServeSettings};
use crate::{args, control, log, metrics, watch};

pub(crate) fn run(args: &args::Serve) -> Outcome {
    run_with(args, |settings| Ok(Some(settings.nfs)))
}

/// A mount alone. A setting that it does not obey is refused, not ignored.
pub(crate) fn run_mount(args: &args::Serve) -> Outcome {
    if let Some((_, given)) = args.settings.given().find(|(name, _)| OF_SERVE.contains(&name.as_str())) {
        return Err(Failure::wrong_use(format!("{} is a setting of `afflux serve` alone", given.origin)));
    }
    run_with(args, |settings| {
        let paths = &mut settings.directories;
        let point = paths.pop().filter(|_| paths.len() == 1);
        let point = point.ok_or_else(|| Failure::wrong_use("two paths are needed: afflux mount DIR MOUNTPOINT"))?;
        settings.mount.point = Some(point);
        Ok(None)
    })
}

/// Runs a server until its end. `nfs` tells the newest version of NFS that clients get, and completes the settings of a
/// server without NFS.
fn run_with(args: &args::Serve, nfs: impl FnOnce(&mut ServeSettings) -> Outcome<Option<NfsVersion>>) -> Outcome {
    require_calls(CallsFor::Serving)?;
    let mut left = InheritedDescriptors::take()?;
    let host = HostMemory::measured();
    let mut configuration = configuration::load(args, host)?;
    let nfs = nfs(&mut configuration.settings)?;
    let settings = &configuration.settings;
    #[cfg(feature = "object")]
    settings.check_store()?;
    let is_persistent = settings.is_stored_by_systemd();
    if let Some(point) = settings.mount.point.as_ref().filter(|_| !args.check) {
        left.clear(point, is_persistent);
    }
    let arena = settings.arena.as_ref().and_then(ArenaLocation::path);
    let own_paths = [("--arena", arena), ("--control", settings.control.as_deref())];
    persisted::refuse_one_path(settings.state.as_deref(), &own_paths)?;
    let wanted = &WantedFront::of(nfs, settings, is_persistent)?;
    if wanted.point().is_some() {
        require_calls(CallsFor::Mounting)?;
    }
    if args.check {
        return start::run(wanted, &configuration, configuration::path(args).as_deref());
    }
    wanted.refuse_mounted()?;
    log::start(settings.log);
    for warning in &configuration.warnings {
        warn!("{warning}");
    }
    let (mut store, taken) = left.for_point(wanted.point(), wanted.is_persistent())?;
    let memory = CacheMemory::open(&WantedMemory::of(&configuration), &mut store, wanted)?;
    let is_inherited = memory.is_inherited_in_store();
    let taken = taken.with_cache(is_inherited)?;
    match run_over(memory, store, taken, wanted, args, configuration, host) {
        Ok(ended) => ended,
        Err(failure) => {
            if is_inherited && matches!(failure, Failure::Failed(_)) {
                arena::pause_before_next_start();
            }
            Err(failure)
        }
    }
}

/// Refuses a start without the calls that it needs. The first of them would fail later, and its error does not name it.
fn require_calls(purpose: CallsFor) -> Outcome {
    check_needed_calls(purpose).map_err(Failure::failed)
}

/// Runs a server with this memory for its cache. Returns the outcome of its end, or fails if it does not start.
fn run_over(
    memory: CacheMemory,
    mut store: DescriptorStore,
    taken: Taken,
    wanted: &WantedFront,
    args: &args::Serve,
    configuration: Configuration,
    host: HostMemory,
) -> Outcome<Outcome> {
    let settings = configuration.settings.clone();
    let separated = wanted.separated(taken)?;
    let opened = Source::open(&settings.directories, settings.subtree_check, settings.shared)?;
    let source = opened.as_ref().map(|(source, _)| source);
    let mut notes = source.map(|source| source.notes().to_vec()).unwrap_or_default();
    if wanted.has_clients() {
        admission::note_limits(settings.nfs, settings.posix_locks, &mut notes);
    }
    let rules = admission::rules(&settings.at_once, &mut notes);
    let wanted_places = WantedResources::of(&settings);
    let places = StartResources::take(&wanted_places, source, wanted, &mut store, Taking::Start)?;
    let own_places = places.needed(&wanted_places, configuration::path(args).as_deref());
    let StartResources { state, tls, listening, listen, figures, control } = places;
    let starts = wanted.start_record(source.and_then(Source::host), &state, Taking::Start.missing());
    let (control, control_listener) = control.unwrap_or_else(|| unreachable!("a start takes its control socket"));
    drop(store);
    let own_clients = wanted.has_own_clients(listen, settings.lock_memory);
    let prepared = own_clients.then(memory::prepare);
    let listening = listening.map(|listener| (listener, listen));
    let mut front = wanted.prepared(listening, settings.directories.first(), separated, &own_places)?;
    front.tls = tls;
    // Clients choose modes, and default access control lists bound them. The server's own files have explicit modes.
    umask(Mode::empty());
    // This comes before the first thread, and after binding the addresses that take a privilege.
    if let Err(error) = give_up_privileges() {
        notes
            .push(format!("the server could not give up privileges that it does not need: {}", io::Error::from(error)));
    }
    if let Err(error) = refuse_foreign_calls() {
        notes.push(format!("the kernel does not take a filter of system calls: {error}"));
    }

    let reactors = start_reactors(settings.io)?;
    let is_store = opened.is_none();
    let volume = WantedVolume::of(&settings, &state);
    let place = settings.directories.first().map(PathBuf::as_path).unwrap_or(Path::new(""));
    let (source, exports) = opened.map_or_else(|| Source::open_store(&reactors.platform(), place, &volume), Ok)?;
    if is_store {
        notes.extend_from_slice(source.notes());
    }
    let prices = persisted_prices(&state);
    let locks = |frames: &Frames| match prepared {
        Some(prepared) => {
            let locked = prepared.and_then(|()| frames.arena().lock());
            memory::note_locked(locked, settings.lock_memory, &mut notes)
        }
        None => Ok(()),
    };
    let parts =
        PreparedParts { state: &state, starts: &starts, prices: &prices, source: &source, exports, memory, front };
    let running = start(&reactors.platform(), &configuration, rules.clone(), parts, locks)?;
    let running = Arc::new(running);
    let naming = settings.rpcbind.then(|| naming(&running)).flatten();
    let upkeep = Upkeep::start(&running, prices, naming.clone()).or_failed("cannot start a thread for upkeep")?;
    let prefault = settings.prefault.then(|| Prefault::start(&running.engine)).flatten();
    let signalled = watch_signals(&running, Arc::clone(&control.0), args.json).or_failed("cannot wait for the end")?;
    let answering = control::start(control_listener, Arc::clone(&running) as _);
    answering.or_failed("cannot answer on the control socket")?;
    let figures = figures.map(|figures| metrics::start(figures, figures::source(&running))).transpose()?;

    let ways = Endpoints { control: &control.0.path, control_is_named: settings.control.is_some(), figures };
    notes.extend(resources::note(&running.volume));
    notes.extend(live::of_configuration(running.served(), &configuration.knobs));
    notes.extend(naming.iter().filter_map(|naming| naming.begin()));
    print_ready(&running, &rules, &ways, host, &notes, args.json);
    service::notify_ready(&format!("Serving on {}", running.front.address()));
    let mut loaded = Reload { args, host, in_force: configuration };
    // An error means that the signal thread is gone: then there is nothing to wait for.
    while signalled.recv() == Ok(SignalRequest::Reload) {
        loaded.again(&running);
    }
    drop(prefault);
    naming.iter().for_each(|naming| naming.end());
    #[cfg(feature = "object")]
    if let Some(left) = source.unstored_view() {
        store_end::watch(left, &running, &control.0, args.json);
    }
    let stopped = stop_serving(&running, &source, args.json);
    unnamed_files::end(&source);
    let ended = stopped.and_then(|()| source.end(&running.volume, &state));
    if ended.is_ok() {
        running.front.nfs.iter().for_each(NfsFront::keep_clients);
        running.arena.iter().for_each(|file| arena::end(file, &running.engine));
    }
    upkeep.end();
    Ok(ended)
}

/// The server's entry in the list of the host's rpcbind.
fn naming(running: &Running) -> Option<Arc<Naming>> {
    let nfs = running.front.nfs.as_ref()?;
    Some(Arc::new(Naming::new(nfs.listen, nfs.server.held_by_version_4().is_some())))
}

fn watch_signals(running: &Arc<Running>, control: Arc<BoundSocket>, json: bool) -> io::Result<Receiver<SignalRequest>> {
    let served = Arc::clone(running);
    let hangup = if service::is_there() { Hangup::Reloads } else { Hangup::Ends };
    let (told, signalled) = service::watch(hangup, move || {
        let unwritten = served.unwritten();
        control.remove();
        if json {
            watch::say_json(&ControlReply::Abandoned { unwritten: unwritten.clone() });
        }
        let first = arena::stopped_at_once(unwritten.is_empty(), served.arena.as_ref());
        output::remark(progress::unwritten(&first, &unwritten));
        process::exit(1);
    })?;
    running.front.stop_with_mount(told)?;
    Ok(signalled)
}

/// The addresses of a server beside its port.
struct Endpoints<'a> {
    control: &'a Path,
    control_is_named: bool,
    /// The address of the figures for Prometheus.
    figures: Option<SocketAddr>,
}

fn print_ready(running: &Running, rules: &Rules, ways: &Endpoints<'_>, host: HostMemory, notes: &[String], json: bool) {
    let (nfs, mount) = (running.front.nfs.as_ref(), running.front.mount.as_ref());
    let Some(nfs) = nfs else {
        return mount.into_iter().for_each(|mount| {
            banner::print_mount(running, mount, ways.control, ways.figures, notes, json);
        });
    };
    let served = banner::Served {
        exports: &running.exports,
        listen: nfs.listen,
        has_version_4: nfs.server.held_by_version_4().is_some(),
        tls: nfs.tls.as_deref().map(banner::ServedTls::of),
        rules,
        control: ways.control,
        program: banner::called(),
        control_is_named: ways.control_is_named,
        figures: ways.figures,
        devices: running.devices.described(),
        cache_bytes: running.engine.status().cache_bytes,
        memory_bytes: host.total_bytes,
        notes,
        mounted: mount.map(|mount| mount.point.as_path()),
        towards_clients: banner::towards_clients(nfs.listen, rules),
    };
    if json {
        output::say(served.json());
    } else {
        output::say(served.text().trim_end());
    }
}

/// Takes no more calls, writes everything, and reports the outcome.
fn stop_serving(running: &Running, source: &Source, json: bool) -> Outcome {
    output::remark("Stopping: writing all dirty pages (a second signal gives up).");
    service::notify_stopping();
    let finished = running.front.finish(running.engine.platform());
    let mut display = DrainDisplay::new(!json, "(Ctrl-C again to abandon it)");
    let mut told = service::Stopping::default();
    let mut show = |progress: Progress| {
        told.show(progress);
        display.show(progress);
    };
    let first = running.drain(&mut show);
    // Writes the pages that the last calls have dirtied since; mostly none.
    let _ = finished.recv();
    let adopted = arena::adopt_rest(&running.engine, &running.volume);
    let mut drained = running.drain(&mut show);
    display.finish();
    drained.written_bytes += first.written_bytes;
    drained.elapsed_ns += first.elapsed_ns;
    if drained.failed.is_empty() {
        source.close_store()?;
    }
    if json {
        watch::say_json(&ControlReply::Drained(drained.clone()));
    } else if drained.failed.is_empty() {
        let counts = running.front.nfs.as_ref().map(|nfs| nfs.handle.counts());
        let served = counts.map(|counts| units::data(counts.bytes_in.saturating_add(counts.bytes_out)));
        let served = served.map(|served| format!(" {served} served.")).unwrap_or_default();
        output::say(format_args!("{}{served}", progress::done(&drained)));
    }
    if drained.failed.is_empty() {
        return adopted;
    }
    Err(Failure::failed(progress::unwritten("not everything could be written:", &drained.failed)))
}
