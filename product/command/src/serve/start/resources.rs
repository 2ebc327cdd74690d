//! The resources that a server takes on its host before it serves: the state directory, addresses, the control socket.
//!
//! Owns: taking all of it, in one order, for a start and for its rehearsal; the words about the number of files that
//! may be open at a time.
//! Does not own: the single resources; directories (`source`); memory (`arena`); the mount (`front`); the bound on open
//! files (the volume, `afflux_linux_server`).
//! Invariants: a rehearsal (`--check`) makes the calls of a start, so that it refuses what the start would refuse. It
//! gives everything back, and makes no directory. A limit on open files that few clients reach is reported before the
//! first of them does.

use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afflux_linux_device::LinuxPlatform;
use afflux_linux_server::{DescriptorStore, Listener};
use afflux_metrics::MetricsListener as FigureListener;
use afflux_report::failure::Outcome;
use afflux_report::units;
use afflux_volume::Volume;
use rustix::process::{Resource, getrlimit};
use tracing::debug;

use crate::control::socket_paths::{self, RemovedAtEnd};
use crate::private_directory::Missing;
use crate::serve::front::WantedFront;
use crate::serve::front::tls::Tls;
use crate::serve::persisted::{StateDirectory, unnamed_files};
use crate::serve::start::source::Source;
use crate::settings::{ServeSettings, TlsSettings};
use crate::{metrics, processes};

/// Its process, which may have the socket in its store.
const SERVICE_MANAGER: u32 = 1;

/// The purpose of taking the resources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taking {
    Start,
    /// For `--check`.
    Rehearsal {
        /// The server that has the same configuration and runs: the check before its reload. Its resources are no
        /// obstacle.
        running: Option<u32>,
    },
}

impl Taking {
    /// Whether an address is in use by the server that is to be reloaded.
    fn is_own(self, address: SocketAddr) -> bool {
        let Self::Rehearsal { running: Some(process) } = self else { return false };
        processes::of(address).is_some_and(|holder| holder.process == process || holder.process == SERVICE_MANAGER)
    }

    /// What becomes of directories that are not there.
    pub(crate) fn missing(self) -> Missing {
        match self {
            Self::Start => Missing::Make,
            Self::Rehearsal { .. } => Missing::Leave,
        }
    }

    fn running(self) -> Option<u32> {
        match self {
            Self::Start => None,
            Self::Rehearsal { running } => running,
        }
    }
}

/// The settings of which a server takes resources.
pub(crate) struct WantedResources<'a> {
    listen: SocketAddr,
    tls: &'a TlsSettings,
    state: Option<&'a Path>,
    control: Option<&'a Path>,
    figures: Option<SocketAddr>,
}

impl<'a> WantedResources<'a> {
    pub(crate) fn of(settings: &'a ServeSettings) -> Self {
        Self {
            listen: settings.listen,
            tls: &settings.tls,
            state: settings.state.as_deref(),
            control: settings.control.as_deref(),
            figures: settings.metrics,
        }
    }
}

pub(crate) struct StartResources {
    pub(crate) state: StateDirectory,
    pub(crate) tls: Option<Tls>,
    pub(crate) listening: Option<Listener>,
    /// The address where clients will come.
    pub(crate) listen: SocketAddr,
    pub(crate) figures: Option<FigureListener>,
    /// `None` if the running server has it, or a start would make its directory.
    pub(crate) control: Option<(RemovedAtEnd, UnixListener)>,
}

impl StartResources {
    /// The paths of state, control socket, configuration and certificates. The server opens them while it runs.
    pub(crate) fn needed(&self, resources: &WantedResources<'_>, configured: Option<&Path>) -> Vec<PathBuf> {
        let control = self.control.as_ref().map(|(control, _)| control.0.path.as_path()).or(resources.control);
        let own = [self.state.path(), control, configured].into_iter().flatten();
        own.chain(resources.tls.files()).map(Path::to_path_buf).collect()
    }

    /// Takes the resources beside the directories, which are open unless `source` is a store.
    pub(crate) fn take(
        resources: &WantedResources<'_>,
        source: Option<&Source>,
        front: &WantedFront,
        store: &mut DescriptorStore,
        taking: Taking,
    ) -> Outcome<Self> {
        let state = StateDirectory::at(resources.state, taking.missing())?;
        let mut own_paths = vec![("the state directory", state.path()), ("the control socket", resources.control)];
        own_paths.extend(resources.tls.files().map(|path| ("the file of --tls", Some(path))));
        front.refuse_below(&own_paths)?;
        let state = match source.and_then(Source::host) {
            // A server of a store has its state in the store.
            None => state,
            // The server that is to be reloaded has its own directory.
            Some(_) if taking.running().is_some() => state,
            Some(tree) => state.for_server(resources.state.is_some(), tree.directories(), taking.missing())?,
        };
        let tls = Tls::prepared(resources.tls)?;
        // The socket of the figures listens at once, so the kernel refuses the address to the next socket.
        let figures = metrics::bind(resources.figures.filter(|address| !taking.is_own(*address)))?;
        let listening = match taking.is_own(resources.listen) {
            true => None,
            false => front.listening(resources.listen, store)?,
        };
        if taking == Taking::Start {
            unnamed_files::keep(source, store, front)?;
        }
        let listen = listening.as_ref().and_then(Listener::internet_address).unwrap_or(resources.listen);
        let name = front.socket_name(listen);
        let has_control = taking.running().is_some_and(|it| socket_paths::is_of(resources.control, &name, it));
        let is_rehearsed =
            has_control || taking != Taking::Start && resources.control.is_some_and(|it| state.will_hold(it));
        let control = (!is_rehearsed).then(|| socket_paths::bind(resources.control, &name)).transpose()?;
        let control = control.map(|(bound, listener)| (RemovedAtEnd(Arc::new(bound)), listener));
        if let Some((RemovedAtEnd(bound), _)) = &control {
            front.refuse_below(&[("the control socket", Some(&bound.path))])?;
        }
        Ok(Self { state, tls, listening, listen, figures, control })
    }
}

/// With so many there is nothing to report: the tables of front ends have no more entries.
const ALL: usize = 65_536;
/// Fewer than these are a note.
const MANY: usize = 4_096;

/// The note for a start under a low limit. Under another one the log has it.
pub(crate) fn note(volume: &Volume<LinuxPlatform>) -> Option<String> {
    let limit = getrlimit(Resource::Nofile).current?;
    told(volume.open_files_max(), limit)
}

fn told(most: usize, limit: u64) -> Option<String> {
    if most >= ALL {
        return None;
    }
    let (files, descriptors) = (units::count(most as u64), units::count(limit));
    let words = format!(
        "the limit of {descriptors} descriptors allows {files} files open at a time, half of them for one user or \
         machine"
    );
    if most >= MANY {
        debug!("{words}");
        return None;
    }
    Some(format!("{words}; a higher hard limit allows more (LimitNOFILE= of a unit, `ulimit -Hn` of a shell)"))
}

#[cfg(test)]
mod tests;
