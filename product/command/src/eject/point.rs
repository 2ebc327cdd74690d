//! `afflux umount`: the end of one mount, with the progress of its writes. The helper of umount(8) calls it.
//!
//! Owns: the order of writing, unmounting and waiting.
//! Does not own: the search for the server (`servers`), the display (`progress`).
//! Invariants: success means that the mount is gone, and that the server has written everything unless it could not be
//! asked. A server of the mount alone has ended by then.

use std::path::PathBuf;

use afflux_govern::Host;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::output;

use super::own_mounts::KIND;
use super::{servers, try_umount};
use crate::args;

pub(crate) fn run(args: &args::Umount) -> Outcome {
    let place: PathBuf = std::path::absolute(&args.point).map_err(Failure::failed)?.components().collect();
    let shown = output::shown(place.display());
    let mounts = Host::new("/".as_ref()).mounts();
    if !mounts.iter().any(|mount| mount.kind == KIND && mount.place == place) {
        return Err(Failure::failed(format!("{shown} is no mount of `afflux mount`")));
    }
    let server = servers::of_mount(&place);
    if let Some(server) = &server {
        servers::drained(&server.process, false)?;
    }
    // Without a further helper: this is the helper.
    let flags = if args.lazy { &["-i", "-l"][..] } else { &["-i"] };
    try_umount(&place, flags).map_err(|why| Failure::failed(output::shown(why)))?;
    match server.filter(|server| server.ends_with_mount && !args.lazy) {
        Some(server) => servers::ended(&server.process),
        None => Ok(()),
    }
}
