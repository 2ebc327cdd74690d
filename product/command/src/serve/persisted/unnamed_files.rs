//! Open files without a name of a mount, over a kill of the server.
//!
//! Owns: the choice whether the service manager stores them, the lines about files that the manager does not store.
//! Does not own: their descriptors (`afflux_linux_server`), the mount (`persisted_mount`, `front`).
//! Invariants: a start that fails does not change them. They leave the store with the mount.

use std::io;

use afflux_linux_server::{DescriptorStore, HostTree, UNNAMED_FILES_MAX};
use afflux_report::failure::{OrFailed, Outcome};
use tracing::warn;

use crate::serve::front::WantedFront;
use crate::serve::persisted::arena::MEMORY_IN_STORE;
use crate::serve::start::source::Source;

/// Has the service manager store such files of a mount that outlives its server.
pub(crate) fn keep(source: Option<&Source>, store: &mut DescriptorStore, front: &WantedFront) -> Outcome {
    let tree = source.and_then(Source::host).filter(|_| front.is_persistent() && front.point().is_some());
    let Some(tree) = tree else {
        let files = HostTree::drop_unnamed_stored(store).or_failed("cannot tell systemd")?;
        if files > 0 {
            warn!(
                "{files} open files without a name of an earlier server are dropped: these settings have no such mount"
            );
        }
        return Ok(());
    };
    let most = store.capacity_beside(MEMORY_IN_STORE + front.in_store(), UNNAMED_FILES_MAX);
    let files = tree.keep_unnamed_files(store, most, |why| warn!("{why}"));
    if files > 0 {
        warn!("{files} descriptors in systemd's store are not of the files in their names, and are dropped");
    }
    Ok(())
}

/// Drops the files of an earlier server that no program has open. The mount has its open files already.
pub(crate) fn drop_inherited(source: &Source) {
    say(source.host().map(HostTree::drop_unnamed_inherited));
}

/// Drops all such files: the mount has ended.
pub(crate) fn end(source: &Source) {
    say(source.host().map(HostTree::end_unnamed));
}

fn say(told: Option<io::Result<()>>) {
    if let Some(Err(error)) = told {
        warn!("systemd keeps open files without a name: {error}");
    }
}
