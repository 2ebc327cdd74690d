//! Writing home what killed servers left, before an engine works with it again.
//!
//! Owns: when that is needed, which files it goes to, the words about it.
//! Does not own: the bytes (the engine's `Recovered`), the files (`afflux_linux_server`).
//! Invariants: the memory changes only after every file is home. A file that is gone takes its bytes along.

use afflux_engine::Recovered;
use afflux_linux_device::LinuxPlatform;
use afflux_linux_server::HostTree;
use afflux_report::failure::{Failure, Outcome};
use afflux_report::units;
use afflux_volume::{HandleKey, found_identities};
use tracing::{info, warn};

/// After so many recoveries, each within a minute of the one before, the found data itself may be the cause.
pub(crate) const RECOVERIES_MAX: u64 = 3;

/// The refusal of files that this server does not serve.
pub(crate) fn files_elsewhere(files: usize) -> Failure {
    Failure::failed(format!(
        "an earlier server left {files} files that are below none of these directories; serve the same directories with the \
         same --state and --arena, and stop that server in order; without its memory (`rm`, or a stop of the unit) they are \
         lost"
    ))
}

/// Most files that are named for people.
const NAMED_MAX: usize = 4;

/// The paths of some found files, for people, and the number of files that this server does not serve.
pub(crate) fn named(
    platform: &LinuxPlatform,
    tree: &HostTree,
    key: &HandleKey,
    recovered: &Recovered,
) -> (Vec<String>, usize) {
    let keys = recovered.files().map(|(key, _)| *key).collect();
    let (files, elsewhere) = found_identities(tree, key, keys);
    let path = |identity| platform.block_on(tree.path_of(identity)).map(|path| path.display().to_string());
    let mut names: Vec<String> = files.iter().take(NAMED_MAX).filter_map(|(_, identity)| path(*identity)).collect();
    if files.len() > NAMED_MAX {
        names.push("others".to_owned());
    }
    (names, elsewhere)
}

/// Writes all found files home and makes them durable.
pub(crate) fn write_home(platform: &LinuxPlatform, tree: &HostTree, key: &HandleKey, recovered: &Recovered) -> Outcome {
    let keys = recovered.files().map(|(key, _)| *key).collect();
    let (files, elsewhere) = found_identities(tree, key, keys);
    if elsewhere > 0 {
        return Err(files_elsewhere(elsewhere));
    }
    let (mut written_bytes, mut gone) = (0, 0);
    for (key, identity) in files {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::failed(format!("the file {identity:?} of an earlier server cannot be written: {error}"))
        };
        match platform.block_on(tree.open_to_rescue(identity)) {
            Ok(Some(mut file)) => {
                written_bytes += recovered.write_home(&key, &mut file).map_err(|error| failed(&error))?;
            }
            Ok(None) => gone += 1,
            // It is clean, and its next opening flushes at the first sync.
            Err(_) if !recovered.is_owed(&key) => {}
            Err(error) => return Err(failed(&error)),
        }
    }
    info!("{} were written home", units::data(written_bytes));
    if gone > 0 {
        warn!("{gone} files that an earlier server had open are gone");
    }
    Ok(())
}
