//! The servers' files of data.
//!
//! Owns: their names, their creation through a server.
//! Does not own: the files that are there before any server starts (`host`).

use afflux_nfs_client::{Change, Client, Handle, Kind, Load, stable_how};

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
    format!("{name}-{}", which.word())
}

/// The file of random calls, filled.
pub(super) fn data_file(servers: &mut Servers, which: Running, scale: &Scale) -> Called<(Client, Handle)> {
    let block = 64 << 10;
    let (mut client, file) = own_file(servers, which, "data")?;
    if client.getattr(&file)?.size < scale.file_bytes {
        let kind = Kind::Write(block, stable_how::UNSTABLE);
        let fill = Load { window: 8, sequential: true, ..Load::of(kind, scale.file_bytes) };
        client.load_at_most(&file, &fill, scale.file_bytes / u64::from(block))?;
        client.commit(&file, 0, 0)?;
    }
    Ok((client, file))
}
