//! `afflux serve` and `afflux mount`: directories through the engine, over NFS or as a mount of this host.
//!
//! Owns: what comes before a server's first stage: its settings, the descriptors of an earlier server, the cache's
//! memory; the pause after a start that failed.
//! Does not own: the stages (`stages`).
//! Invariants: an earlier server's mount is hidden before any path is accessed. `--check` begins no stage.

pub(crate) mod front;
pub(crate) mod live;
pub(crate) mod persisted;
mod stages;
pub(crate) mod start;
#[cfg(feature = "object")]
mod stores;

use afflux_linux_device::HostMemory;
use afflux_linux_server::{CallsFor, check_needed_calls};
use afflux_report::failure::{Failure, Outcome};
use tracing::warn;

use self::front::WantedFront;
use self::live::reload::Reload;
use self::persisted::arena::{self, CacheMemory, WantedMemory};
use self::persisted::persisted_mount::InheritedDescriptors;
use self::stages::Privileged;
use crate::settings::{ArenaLocation, NfsVersion, OF_SERVE, ServeSettings};
use crate::{args, configuration, log};

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
    let taken = Privileged::take(memory, store, taken, wanted, &configuration, configuration::path(args).as_deref());
    match taken.map(Privileged::confine).and_then(|confined| confined.start(&configuration, args.json)) {
        Ok(serving) => serving.run(Reload { args, host, in_force: configuration }),
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
