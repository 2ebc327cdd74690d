//! The tree that is served: directories of the host, or a volume in an object store.
//!
//! Owns: the kind of the tree, its opening, its parts for the server, its end.
//! Does not own: the two kinds (`exports`, `store_volume`), the server.
//! Invariants: an address of a store is no path. A volume in a store is served alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use afflux_engine::Recovered;
use afflux_linux_device::LinuxPlatform;
use afflux_linux_server::{HostTree, KeyOrigin, handle_key};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;
use afflux_volume::{Directory, HandleKey, Volume};
use tracing::info;

use crate::serve::front::Separated;
use crate::serve::live::StoreFigures;
use crate::serve::persisted::client_state::{self, PersistedClients};
use crate::serve::persisted::last_run::{self, LastRun, ServerRun};
use crate::serve::persisted::{HANDLE_KEY, StateDirectory, WRITE_VERIFIER, arena};
use crate::serve::start::exports::{self, ServedExport};
use crate::serve::start::wanted_volume::WantedVolume;
#[cfg(feature = "object")]
use crate::serve::stores::store_end::UnstoredView;
#[cfg(feature = "object")]
use crate::serve::stores::store_volume::StoreVolume;
use crate::settings::is_store;

pub(crate) enum Source {
    Host(Arc<HostTree>),
    /// A volume in an object store.
    #[cfg(feature = "object")]
    Store(Box<StoreVolume>),
}

impl Source {
    /// Fails if a store's address makes no sense, or if it stands beside other directories.
    pub(crate) fn check(places: &[PathBuf]) -> Outcome {
        match places.iter().find(|place| is_store(place)) {
            Some(store) => served_alone(store, places.len()),
            None => Ok(()),
        }
    }

    /// Opens directories; a store needs threads that start later ([`Source::open_store`]). Other servers may serve
    /// them, too, if they are `shared`. Files that are opened before the mounts are separated stay in the common view.
    pub(crate) fn open(
        places: &[PathBuf],
        subtree_check: bool,
        shared: bool,
        _: &Separated,
    ) -> Outcome<Option<(Self, Vec<ServedExport>)>> {
        if places.iter().any(|place| is_store(place)) {
            return Self::check(places).map(|()| None);
        }
        let (tree, exports) = exports::open(places, subtree_check, shared)?;
        Ok(Some((Self::Host(tree), exports)))
    }

    /// Opens the volume in a store.
    #[cfg(feature = "object")]
    pub(crate) fn open_store(
        platform: &LinuxPlatform,
        place: &Path,
        wanted: &WantedVolume<'_>,
    ) -> Outcome<(Self, Vec<ServedExport>)> {
        let volume = StoreVolume::open(platform, &place.to_string_lossy(), wanted)?;
        let export = ServedExport { given: place.to_owned(), directory: place.to_owned(), path: "/".to_owned() };
        Ok((Self::Store(Box::new(volume)), vec![export]))
    }

    /// This build opens no store.
    #[cfg(not(feature = "object"))]
    pub(crate) fn open_store(
        _: &LinuxPlatform,
        place: &Path,
        _: &WantedVolume<'_>,
    ) -> Outcome<(Self, Vec<ServedExport>)> {
        Err(no_stores(place))
    }

    /// What the host lacks for its directories, or why a store is only read, for the user.
    pub(crate) fn notes(&self) -> &[String] {
        match self {
            Self::Host(tree) => tree.notes(),
            #[cfg(feature = "object")]
            Self::Store(volume) => volume.notes(),
        }
    }

    /// The clients of NFS version 4 that an earlier server had, and the list for the next one.
    pub(crate) fn persisted_clients(&self, state: &StateDirectory, run: ServerRun) -> Outcome<PersistedClients> {
        match self {
            Self::Host(_) => Ok(client_state::on_host(state, run)),
            #[cfg(feature = "object")]
            Self::Store(volume) => volume.persisted_clients(),
        }
    }

    pub(crate) fn store_figures(&self) -> Option<StoreFigures> {
        match self {
            Self::Host(_) => None,
            #[cfg(feature = "object")]
            Self::Store(volume) => Some(volume.figures()),
        }
    }

    /// The directories of the host, unless a store is served.
    pub(crate) fn host(&self) -> Option<&HostTree> {
        match self {
            Self::Host(tree) => Some(tree),
            #[cfg(feature = "object")]
            Self::Store(_) => None,
        }
    }

    pub(crate) fn tree(&self) -> Arc<dyn Directory> {
        match self {
            Self::Host(tree) => Arc::clone(tree) as _,
            #[cfg(feature = "object")]
            Self::Store(volume) => Arc::clone(&volume.parts.tree),
        }
    }

    /// Whether the tree checks each user's rights by itself. The server's own rights do not matter then.
    pub(crate) fn is_checking_rights(&self) -> bool {
        !matches!(self, Self::Host(_))
    }

    /// Whether it is directories of this host.
    pub(crate) fn is_of_host(&self) -> bool {
        match self {
            Self::Host(_) => true,
            #[cfg(feature = "object")]
            Self::Store(_) => false,
        }
    }

    /// Whether nobody changes the tree except through this server.
    pub(crate) fn is_sole(&self) -> bool {
        match self {
            Self::Host(_) => false,
            #[cfg(feature = "object")]
            Self::Store(volume) => volume.is_written(),
        }
    }

    /// The key of clients' handles.
    pub(crate) fn key(&self, state: &StateDirectory) -> HandleKey {
        #[cfg(feature = "object")]
        if let Self::Store(volume) = self {
            return volume.parts.key.clone();
        }
        let (key, origin) = handle_key(state.shared_file(HANDLE_KEY).as_deref());
        if let KeyOrigin::Unkept { reason } = origin {
            info!("clients have to mount again after a restart: the key of handles is not kept ({reason})");
        }
        key
    }

    /// The key of clients' handles, as far as an earlier server has left one.
    pub(crate) fn known_key(state: &StateDirectory) -> HandleKey {
        let path = state.shared_file(HANDLE_KEY).filter(|path| path.exists());
        handle_key(path.as_deref()).0
    }

    /// Has the server go on with the verifier of one that had written everything, unless that verifier is `outdated`.
    /// The memory of a killed server has a later one, or another server may have been killed since.
    pub(crate) fn continue_verifier(&self, volume: &Volume<LinuxPlatform>, last: LastRun, outdated: bool) {
        let kept = match (self, last) {
            (Self::Host(_), LastRun::Ended { verifier, .. }) => Some(verifier),
            (Self::Host(_), LastRun::Begun { .. } | LastRun::Unknown) => None,
            #[cfg(feature = "object")]
            (Self::Store(store), _) => Some(store.parts.verifier),
        };
        kept.into_iter().filter(|_| !outdated).for_each(|kept| volume.keep_write_verifier(kept));
    }

    /// Writes home the unwritten bytes of earlier servers. Only a server of directories has such memory.
    pub(crate) fn write_home(&self, platform: &LinuxPlatform, key: &HandleKey, recovered: &Recovered) -> Outcome {
        match self {
            Self::Host(tree) => arena::write_home(platform, tree, key, recovered),
            #[cfg(feature = "object")]
            Self::Store(_) => Ok(()),
        }
    }

    /// The paths of some inherited files, and the number of those that are not served here.
    pub(crate) fn named(
        &self,
        platform: &LinuxPlatform,
        key: &HandleKey,
        recovered: &Recovered,
    ) -> (Vec<String>, usize) {
        match self {
            Self::Host(tree) => arena::named(platform, tree, key, recovered),
            #[cfg(feature = "object")]
            Self::Store(_) => Default::default(),
        }
    }

    /// The volume in a store that this server writes, as its end needs it.
    #[cfg(feature = "object")]
    pub(crate) fn unstored_view(&self) -> Option<UnstoredView> {
        match self {
            Self::Host(_) => None,
            Self::Store(volume) => volume.unstored_view(),
        }
    }

    /// Closes a volume in a store. Everything is written then.
    pub(crate) fn close_store(&self) -> Outcome {
        match self {
            Self::Host(_) => Ok(()),
            #[cfg(feature = "object")]
            Self::Store(store) => store.close(),
        }
    }

    /// The end of a server that has written everything.
    pub(crate) fn end(&self, volume: &Volume<LinuxPlatform>, state: &StateDirectory) -> Outcome {
        if self.host().is_none() {
            return Ok(());
        }
        let number = volume.engine().frames().memory().header().number();
        if let (Some(path), Some(number)) = (state.own_file(WRITE_VERIFIER), number)
            && let Err(error) = last_run::end(&path, number, volume.write_verifier())
        {
            info!(
                "clients will send uncommitted writes again, although they are durable: {}: {error}",
                output::shown(path.display())
            );
        }
        Ok(())
    }
}

/// Fails if this build serves no store, if the store is one of several served directories, or if its address makes no
/// sense.
fn served_alone(store: &Path, places: usize) -> Outcome {
    if cfg!(not(feature = "object")) {
        return Err(no_stores(store));
    }
    if places > 1 {
        let shown = output::shown(store.display());
        return Err(Failure::wrong_use(format!("{shown} is a store, which is served alone: start a server for each")));
    }
    #[cfg(feature = "object")]
    afflux_object_store::check_address(&store.to_string_lossy())
        .map_err(|error| Failure::wrong_use(output::shown(error)))?;
    Ok(())
}

fn no_stores(store: &Path) -> Failure {
    Failure::wrong_use(format!(
        "{} is a store, and this build serves directories only: install the package, or build with --features object",
        output::shown(store.display())
    ))
}
