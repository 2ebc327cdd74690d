//! The servers' files of data.
//!
//! Owns: their names, their creation through a server.
//! Does not own: the files that are there before any server starts (`host`).

use std::time::Duration;

use afflux_nfs_client::{Change, Client, Handle, Kind, Load, Sending, Stability};

use super::scale::Scale;
use super::servers::{Called, Running, Servers};

/// Each server has its own file: otherwise it would have to detect the other's writes.
pub(super) fn own_file(servers: &mut Servers, which: Running, name: &str) -> Called<(Client, Handle)> {
    let (mut client, root) = servers.connect(which)?;
    let name = data_name(name, which);
    let change = Change { mode: Some(0o644), ..Change::default() };
    client.create(&root, name.as_bytes(), afflux_nfs_client::Creation::Unchecked(change))?;
    let (file, _) = client.lookup(&root, name.as_bytes())?;
    Ok((client, file))
}

pub(super) fn data_name(name: &str, which: Running) -> String {
    format!("{name}-{}", which.name())
}

/// The file of random calls, filled.
pub(super) fn data_file(servers: &mut Servers, which: Running, scale: &Scale) -> Called<(Client, Handle)> {
    let block = 64 << 10;
    let (mut client, file) = own_file(servers, which, "data")?;
    if client.getattr(&file)?.size < scale.file_bytes {
        let fill = Load {
            kind: Kind::Write(block, Stability::Unstable),
            window: 8,
            sending: Sending::Plain,
            file_bytes: scale.file_bytes,
            sequential: true,
            duration: Duration::MAX,
            seed: 7,
        };
        client.load_at_most(&file, &fill, scale.file_bytes / u64::from(block))?;
        client.commit(&file, 0, 0)?;
    }
    Ok((client, file))
}
