//! `afflux mount`: a directory, or a volume in a store, as a mount of this host.
//!
//! Owns: its two paths, the refusal of `serve`'s own settings.
//! Does not own: everything behind them, which is `serve`'s.
//! Invariants: a setting that a mount does not obey is refused, not ignored.

use std::path::PathBuf;

use afflux_linux_device::HostMemory;
use afflux_linux_server::{CallsFor, MountTarget};
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;

use crate::serve::front::WantedFront;
use crate::serve::kept::kept_mount::LeftDescriptors;
use crate::settings::OF_SERVE;
use crate::{args, configuration, serve};

pub(crate) fn run(args: &args::Serve) -> Outcome {
    if let Some((_, given)) = args.settings.given().find(|(name, _)| OF_SERVE.contains(&name.as_str())) {
        return Err(Failure::wrong_use(format!("{} is a setting of `afflux serve` alone", given.origin)));
    }
    serve::require_calls(CallsFor::Serving)?;
    let mut left = LeftDescriptors::take()?;
    let host = HostMemory::measured();
    let mut configuration = configuration::load(args, host)?;
    let paths = &mut configuration.settings.directories;
    let point = paths.pop().filter(|_| paths.len() == 1);
    let point = point.ok_or_else(|| Failure::wrong_use("two paths are needed: afflux mount DIR MOUNTPOINT"))?;
    if !args.check {
        left.clear(&point, configuration.settings.is_kept_by_systemd());
    }
    let point = MountTarget::at(&point).map_err(|error| Failure::failed(output::shown(error)))?;
    let settings = &configuration.settings;
    let place = settings.directories.first().map(PathBuf::as_path);
    let wanted = WantedFront::mount(point, &settings.mount, place, settings.is_kept_by_systemd())?;
    serve::run_behind(&wanted, args, configuration, host, left)
}
