//! `afflux mount`: a directory, or a volume in a store, as a mount of this host.
//!
//! Owns: its two paths, the refusal of `serve`'s own settings.
//! Does not own: everything behind them, which is `serve`'s.
//! Invariants: a setting that a mount does not obey is refused, not ignored.

use afflux_report::failure::{Failure, Outcome};

use crate::settings::OF_SERVE;
use crate::{args, serve};

pub(crate) fn run(args: &args::Serve) -> Outcome {
    if let Some((_, given)) = args.settings.given().find(|(name, _)| OF_SERVE.contains(&name.as_str())) {
        return Err(Failure::wrong_use(format!("{} is a setting of `afflux serve` alone", given.origin)));
    }
    serve::run_with(args, |settings| {
        let paths = &mut settings.directories;
        let point = paths.pop().filter(|_| paths.len() == 1);
        let point = point.ok_or_else(|| Failure::wrong_use("two paths are needed: afflux mount DIR MOUNTPOINT"))?;
        settings.mount.point = Some(point);
        Ok(None)
    })
}
