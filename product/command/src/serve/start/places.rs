//! The places that a server takes on its host before it serves: directories, the state directory, addresses, the
//! control socket.
//!
//! Owns: taking all of it, in one order, for a start and for its rehearsal.
//! Does not own: the single places; memory (`arena`); the mount (`front`).
//! Invariants: a rehearsal (`--check`) makes the calls of a start, so that it refuses what the start would refuse. It
//! gives everything back, and makes no directory.

use std::net::SocketAddr;
use std::os::unix::net::UnixListener;

use afflux_linux_server::{DescriptorStore, Listener};
use afflux_metrics::MetricsListener as FigureListener;
use afflux_nfs::Rules;
use afflux_report::failure::Outcome;

use crate::control::socket_paths::{self, BoundSocket};
use crate::private_directory::Missing;
use crate::serve::front::WantedFront;
use crate::serve::front::admission;
use crate::serve::front::tls::Tls;
use crate::serve::kept::state::StateDirectory;
use crate::serve::kept::unnamed_files;
use crate::serve::start::exports::ServedExport;
use crate::serve::start::source::Source;
use crate::settings::{NfsVersion, ServeSettings};
use crate::{metrics, port_holder};

/// The note at the start of a server with `--async-metadata`.
const ASYNC_METADATA_NOTE: &str = "changes of names and attributes are answered before they are durable \
    (--async-metadata): a crash of this host may undo the last ones, which clients take for done";

/// The note at the start of a server with version 4.
const VERSION_4_NOTE: &str = "locks hold among clients of NFS 4.1 and 4.2, and with programs on --mount; clients of \
    version 3 and programs of this host do not see them";

/// The same with `--posix-locks`.
const POSIX_LOCKS_NOTE: &str = "locks hold among clients of NFS 4.1 and 4.2, with programs on --mount, and with those of \
    this host that lock by fcntl; clients of version 3 do not see them";

/// Its process, which may have the socket in its store.
const SERVICE_MANAGER: u32 = 1;

/// The purpose of taking the places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taking {
    Start,
    /// For `--check`.
    Rehearsal {
        /// The server that has the same configuration and runs: the check before its reload. Its places are no
        /// obstacle.
        running: Option<u32>,
    },
}

impl Taking {
    /// Whether an address is in use by the server that is to be reloaded.
    fn is_own(self, address: SocketAddr) -> bool {
        let Self::Rehearsal { running: Some(process) } = self else { return false };
        port_holder::of(address).is_some_and(|holder| holder.process == process || holder.process == SERVICE_MANAGER)
    }

    fn running(self) -> Option<u32> {
        match self {
            Self::Start => None,
            Self::Rehearsal { running } => running,
        }
    }
}

/// The places of a server.
pub(crate) struct Places {
    /// The open directories; `None` if a store is served.
    pub(crate) opened: Option<(Source, Vec<ServedExport>)>,
    /// Remarks about this host for the user.
    pub(crate) notes: Vec<String>,
    pub(crate) rules: Rules,
    pub(crate) state: StateDirectory,
    pub(crate) tls: Option<Tls>,
    pub(crate) listening: Option<Listener>,
    /// The address where clients will come.
    pub(crate) listen: SocketAddr,
    /// For Prometheus.
    pub(crate) figures: Option<FigureListener>,
    /// `None` if the running server has it.
    pub(crate) control: Option<(BoundSocket, UnixListener)>,
}

impl Places {
    pub(crate) fn take(
        settings: &ServeSettings,
        (wanted, store): (&WantedFront, &mut DescriptorStore),
        taking: Taking,
    ) -> Outcome<Self> {
        let opened = Source::open(settings, settings.shared || taking.running().is_some())?;
        let mut notes = opened.as_ref().map(|(source, _)| source.notes().to_vec()).unwrap_or_default();
        if wanted.has_clients() {
            admission::note_unknown_peers(&mut notes);
        }
        let rules = admission::rules(&settings.at_once, &mut notes);
        if settings.at_once.async_metadata {
            notes.push(ASYNC_METADATA_NOTE.to_owned());
        }
        if wanted.has_clients() && settings.nfs == NfsVersion::V4 {
            notes.push(if settings.posix_locks { POSIX_LOCKS_NOTE } else { VERSION_4_NOTE }.to_owned());
        }
        let missing = if taking == Taking::Start { Missing::Make } else { Missing::Leave };
        let state = StateDirectory::at(settings.state.as_deref(), missing)?;
        let mut own_paths =
            vec![("the state directory", state.path()), ("the control socket", settings.control.as_deref())];
        own_paths.extend(settings.tls.files().map(|path| ("the file of --tls", Some(path))));
        wanted.refuse_below(&own_paths)?;
        let tls = Tls::prepared(&settings.tls)?;
        let listening = match taking.is_own(settings.listen) {
            true => None,
            false => wanted.listening(settings.listen, store)?,
        };
        if taking == Taking::Start {
            unnamed_files::keep(opened.as_ref().map(|(source, _)| source), store, wanted)?;
        }
        let listen = listening.as_ref().and_then(Listener::internet_address).unwrap_or(settings.listen);
        let figures = metrics::bind(settings.metrics.filter(|address| !taking.is_own(*address)))?;
        let name = wanted.socket_name(listen);
        let has_control =
            taking.running().is_some_and(|it| socket_paths::is_of(settings.control.as_deref(), &name, it));
        let control = (!has_control).then(|| socket_paths::bind(settings.control.as_deref(), &name)).transpose()?;
        Ok(Self { opened, notes, rules, state, tls, listening, listen, figures, control })
    }
}
