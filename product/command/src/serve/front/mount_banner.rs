//! The text that `mount` prints once the mount is served.
//!
//! Owns: the words.
//! Does not own: the facts; the banner of NFS (`banner`).
//! Invariants: each command in it can be used as it stands.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::json;

use crate::serve::front::MountFront;
use crate::serve::live::running::Running;
use afflux_report::{output, units};

/// Prints it, for people or as one JSON object.
pub(crate) fn print(
    running: &Running,
    mount: &MountFront,
    (control, figures): (&Path, Option<SocketAddr>),
    notes: &[String],
    json: bool,
) {
    let cache_bytes = running.engine.status().cache_bytes;
    let source = running.exports.first().map(|export| export.directory.clone()).unwrap_or_default();
    if json {
        let ready = json!({
            "is": "ready",
            "mounted": mount.point,
            "directory": source,
            "control": control,
            "metrics": figures.map(|address| address.to_string()),
            "cache_bytes": cache_bytes,
            "notes": notes,
        });
        return output::say(ready);
    }
    let (source, point) = (output::shown(source.display()), output::shown(mount.point.display()));
    let mut text = format!("Mounted {source} on {point} (FUSE)\n  cache   {}\n", units::memory(cache_bytes));
    for (name, description) in running.devices.described() {
        text.push_str(&format!("  disk    {}, {}\n", output::shown(name), output::shown(description)));
    }
    text.push_str("  stop    Ctrl-C or umount (both write everything first)\n");
    notes.iter().for_each(|note| text.push_str(&format!("  note    {}\n", output::shown(note))));
    output::say(text.trim_end());
}
