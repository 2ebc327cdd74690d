//! The stages of a server: it takes what needs rights, gives the rights up, and runs.
//!
//! Owns: the order in which the parts start and stop, the wiring between them.
//! Does not own: any part: the engine, the volume, the front end and the world are crates.
//! Invariants: each stage consumes the one before it. So the first thread starts without the rights that a server does
//! not need, and everything that takes such rights is there by then. All checks come before the first answer to a
//! client. The exit code is 0 only if everything acknowledged is durable.

use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::{io, process};

use afflux_frames::Frames;
use afflux_linux_device::Reactors;
use afflux_linux_server::{DescriptorStore, give_up_privileges, refuse_foreign_calls};
use afflux_metrics::MetricsListener;
use afflux_nfs::Rules;
use afflux_report::failure::{Failure, OrFailed, Outcome};
use afflux_report::{output, units};
use rustix::fs::Mode;
use rustix::process::umask;

use crate::configuration::Configuration;
use crate::control::messages::{ControlReply, Progress};
use crate::control::socket_paths::{BoundSocket, RemovedAtEnd};
use crate::progress::{self, DrainDisplay};
use crate::serve::front::rpcbind::Naming;
use crate::serve::front::{NfsFront, PreparedFront, WantedFront, admission, banner};
use crate::serve::live::reload::Reload;
use crate::serve::live::upkeep::Upkeep;
use crate::serve::live::{self, Running, figures};
use crate::serve::persisted::arena::{self, CacheMemory};
use crate::serve::persisted::last_run::StartRecord;
use crate::serve::persisted::persisted_mount::Taken;
use crate::serve::persisted::{StateDirectory, unnamed_files};
use crate::serve::start::engine::{PreparedParts, persisted_prices, start, start_reactors};
use crate::serve::start::exports::ServedExport;
use crate::serve::start::memory::{self, Prefault};
use crate::serve::start::resources::{self, StartResources, Taking, WantedResources};
use crate::serve::start::source::Source;
use crate::serve::start::wanted_volume::WantedVolume;
#[cfg(feature = "object")]
use crate::serve::stores::store_end;
use crate::service::{self, Hangup, SignalRequest};
use crate::{control, metrics, watch};

/// What a server takes of its host with all rights of the process, which has one thread.
pub(crate) struct Privileged {
    memory: CacheMemory,
    rules: Rules,
    /// None if a store is served.
    opened: Option<(Source, Vec<ServedExport>)>,
    state: StateDirectory,
    control: (RemovedAtEnd, UnixListener),
    figures: Option<MetricsListener>,
    starts: StartRecord,
    /// Whether memory can be locked, if this host uses the server.
    prepared: Option<io::Result<()>>,
    front: PreparedFront,
    notes: Vec<String>,
}

impl Privileged {
    /// Takes everything but the cache's memory and the mount of an earlier server, which are there already.
    /// `configured` is the file of the configuration.
    pub(crate) fn take(
        memory: CacheMemory,
        mut store: DescriptorStore,
        taken: Taken,
        wanted: &WantedFront,
        configuration: &Configuration,
        configured: Option<&Path>,
    ) -> Outcome<Self> {
        let settings = &configuration.settings;
        let separated = wanted.separated(taken)?;
        let opened = Source::open(&settings.directories, settings.subtree_check, settings.shared, &separated)?;
        let source = opened.as_ref().map(|(source, _)| source);
        let mut notes = source.map(|source| source.notes().to_vec()).unwrap_or_default();
        if wanted.has_clients() {
            admission::note_limits(settings.nfs, settings.posix_locks, &mut notes);
        }
        let rules = admission::rules(&settings.at_once, &mut notes);
        let wanted_places = WantedResources::of(settings);
        let places = StartResources::take(&wanted_places, source, wanted, &mut store, Taking::Start)?;
        let own_places = places.needed(&wanted_places, configured);
        let StartResources { state, tls, listening, listen, figures, control } = places;
        let starts = wanted.start_record(source.and_then(Source::host), &state, Taking::Start.missing());
        let control = control.unwrap_or_else(|| unreachable!("a start takes its control socket"));
        drop(store);
        let own_clients = wanted.has_own_clients(listen, settings.lock_memory);
        let prepared = own_clients.then(memory::prepare);
        let listening = listening.map(|listener| (listener, listen));
        let mut front = wanted.prepared(listening, settings.directories.first(), separated, &own_places)?;
        front.tls = tls;
        Ok(Self { memory, rules, opened, state, control, figures, starts, prepared, front, notes })
    }

    /// Gives up the rights that the server does not need.
    pub(crate) fn confine(mut self) -> Confined {
        // Clients choose modes, and default access control lists bound them. The server's own files have explicit
        // modes.
        umask(Mode::empty());
        if let Err(error) = give_up_privileges() {
            let error = io::Error::from(error);
            self.notes.push(format!("the server could not give up privileges that it does not need: {error}"));
        }
        if let Err(error) = refuse_foreign_calls() {
            self.notes.push(format!("the kernel does not take a filter of system calls: {error}"));
        }
        Confined(self)
    }
}

/// The same, after the process has given up what the server does not need.
pub(crate) struct Confined(Privileged);

impl Confined {
    /// Starts the threads and all that runs on them. Clients are answered from here on.
    pub(crate) fn start(self, configuration: &Configuration, json: bool) -> Outcome<Serving> {
        let settings = &configuration.settings;
        let Privileged { memory, rules, opened, state, control, figures, starts, prepared, front, mut notes } = self.0;
        let (control, control_listener) = control;
        let reactors = start_reactors(settings.io)?;
        let is_store = opened.is_none();
        let volume = WantedVolume::of(settings, &state);
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
        let running = start(&reactors.platform(), configuration, rules.clone(), parts, locks)?;
        let running = Arc::new(running);
        let naming = settings.rpcbind.then(|| naming(&running)).flatten();
        let upkeep = Upkeep::start(&running, prices, naming.clone()).or_failed("cannot start a thread for upkeep")?;
        let prefault = settings.prefault.then(|| Prefault::start(&running.engine)).flatten();
        let signalled = watch_signals(&running, Arc::clone(&control.0), json).or_failed("cannot wait for the end")?;
        let answering = control::start(control_listener, Arc::clone(&running) as _);
        answering.or_failed("cannot answer on the control socket")?;
        let figures = figures.map(|figures| metrics::start(figures, figures::source(&running))).transpose()?;
        notes.extend(resources::note(&running.volume));
        notes.extend(live::of_configuration(running.served(), &configuration.knobs));
        notes.extend(naming.iter().filter_map(|naming| naming.begin()));
        Ok(Serving {
            state,
            control,
            reactors,
            source,
            running,
            naming,
            upkeep,
            prefault,
            signalled,
            rules,
            figures,
            notes,
        })
    }
}

/// A server that answers clients.
pub(crate) struct Serving {
    state: StateDirectory,
    control: RemovedAtEnd,
    reactors: Reactors,
    source: Source,
    running: Arc<Running>,
    naming: Option<Arc<Naming>>,
    upkeep: Upkeep,
    prefault: Option<Prefault>,
    signalled: Receiver<SignalRequest>,
    rules: Rules,
    /// The address of the figures for Prometheus.
    figures: Option<SocketAddr>,
    /// For the user.
    notes: Vec<String>,
}

impl Serving {
    /// Serves until the end that a signal asks for. Returns the outcome of that end.
    pub(crate) fn run(self, mut loaded: Reload<'_>) -> Outcome {
        let json = loaded.args.json;
        self.print_ready(&loaded);
        service::notify_ready(&format!("Serving on {}", self.running.front.address()));
        // An error means that the signal thread is gone: then there is nothing to wait for.
        while self.signalled.recv() == Ok(SignalRequest::Reload) {
            loaded.again(&self.running);
        }
        self.end(json)
    }

    /// Stops all parts after everything was written.
    fn end(mut self, json: bool) -> Outcome {
        self.prefault = None;
        self.naming.iter().for_each(|naming| naming.end());
        #[cfg(feature = "object")]
        if let Some(left) = self.source.unstored_view() {
            store_end::watch(left, &self.running, &self.control.0, json);
        }
        // The locals end in the reverse order: the socket and the state directory after the threads.
        let Self { state, control: _control, reactors: _reactors, source, running, upkeep, .. } = self;
        let stopped = stop_serving(&running, &source, json);
        unnamed_files::end(&source);
        let ended = stopped.and_then(|()| source.end(&running.volume, &state));
        if ended.is_ok() {
            running.front.nfs.iter().for_each(NfsFront::keep_clients);
            running.arena.iter().for_each(|file| arena::end(file, &running.engine));
        }
        upkeep.end();
        ended
    }

    fn print_ready(&self, loaded: &Reload<'_>) {
        let Reload { args, host, in_force } = loaded;
        let (running, figures, notes, control) = (&*self.running, self.figures, &self.notes, &self.control.0.path);
        let (nfs, mount) = (running.front.nfs.as_ref(), running.front.mount.as_ref());
        let Some(nfs) = nfs else {
            return mount.into_iter().for_each(|mount| {
                banner::print_mount(running, mount, control, figures, notes, args.json);
            });
        };
        let served = banner::Served {
            exports: &running.exports,
            listen: nfs.listen,
            has_version_4: nfs.server.held_by_version_4().is_some(),
            tls: nfs.tls.as_deref().map(banner::ServedTls::of),
            rules: &self.rules,
            control,
            program: banner::called(),
            control_is_named: in_force.settings.control.is_some(),
            figures,
            devices: running.devices.described(),
            cache_bytes: running.engine.status().cache_bytes,
            memory_bytes: host.total_bytes,
            notes,
            mounted: mount.map(|mount| mount.point.as_path()),
            towards_clients: banner::towards_clients(nfs.listen, &self.rules),
        };
        if args.json {
            output::say(served.json());
        } else {
            output::say(served.text().trim_end());
        }
    }
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
