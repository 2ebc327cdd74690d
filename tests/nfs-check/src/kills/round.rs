//! One round: new files, a load, a kill, and the comparison after it.
//!
//! Owns: the steps, the waits for the successor.
//! Does not own: the load (`load`), the acknowledged bytes (`acknowledged`), the kill (`killed`).
//! Invariants: the client asks again a millisecond after each failure, so its wait is the server's.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use afflux_nfs_client::{Client, Error, Handle, stable_how};

use super::acknowledged::{File, Lost};
use super::figures::Figures;
use super::killed::{Kill, Server};
use super::load;
use crate::failure::{Failure, call};

const CLIENTS: usize = 2;
const READ_BYTES: usize = 64 << 10;
/// A server may boot, or be in its grace period, for this long.
const PATIENCE: Duration = Duration::from_secs(900);
/// A call without an answer for this long goes over a new connection.
const CALL: Duration = Duration::from_secs(1);
const PROBE: &[u8] = b"its bytes are durable before the load begins";

pub(super) fn names() -> Vec<String> {
    (0..CLIENTS * load::FILES).map(|number| format!("file-{number}")).collect()
}

pub(super) fn round(server: &Server, seed: u64, kill: &mut Kill<'_>) -> Result<Figures, Failure> {
    let (root, _) = until("MNT", server.mount, Instant::now(), |client| client.mount(&server.path))?;
    let (probe, _) = until("a new file", server.nfs, Instant::now(), |client| new_probe(client, &root))?;
    let mut client = Client::connect(server.nfs).map_err(call("a connection"))?;
    let files: Result<Vec<File>, Error> = names().iter().map(|name| File::create(&mut client, &root, name)).collect();
    let mut files = files.map_err(call("new files"))?;
    let killed = load::until_killed(server.nfs, &mut files, seed, kill)?;
    let down = |what, call: &mut dyn FnMut(&mut Client) -> Result<(), Error>| {
        Ok::<_, Failure>(until(what, server.nfs, killed.at, call)?.1.saturating_sub(killed.aside))
    };
    let null = down("NULL", &mut |client| client.null())?;
    let read = down("READ", &mut |client| client.read(&probe, 0, 100).map(drop))?;
    let write = down("WRITE", &mut |client| client.write(&probe, 0, PROBE, stable_how::UNSTABLE).map(drop))?;
    let mut figures = Figures {
        unstable: files.iter().map(File::unstable).sum(),
        committed: files.iter().map(File::committed).sum(),
        lost: Lost::default(),
        off_disk: None,
        verifier_changed: false,
        null,
        read,
        write,
    };
    let mut client = Client::connect(server.nfs).map_err(call("a connection"))?;
    for (number, file) in files.iter().enumerate() {
        let found = client.read_all(file.handle(), 0, file.len(), READ_BYTES, 4).map_err(call("a comparison"))?;
        figures.lost += file.lost(&found);
        if let Some(on_disk) = &killed.on_disk {
            *figures.off_disk.get_or_insert_default() += file.lost(&on_disk[number]);
        }
        let verifier = client.commit(file.handle(), 0, 0).map_err(call("COMMIT"))?.verf.0;
        figures.verifier_changed |= file.verifier().is_some_and(|before| before != verifier);
    }
    Ok(figures)
}

fn new_probe(client: &mut Client, root: &[u8]) -> Result<Handle, Error> {
    let probe = client.create_empty(root, b"probe")?;
    client.write(&probe, 0, PROBE, stable_how::FILE_SYNC)?;
    Ok(probe)
}

/// Calls over new connections until one succeeds. Returns its result, and the time since `began`.
fn until<T>(
    what: &str,
    address: SocketAddr,
    began: Instant,
    mut made: impl FnMut(&mut Client) -> Result<T, Error>,
) -> Result<(T, Duration), Failure> {
    loop {
        let answer = Client::connect(address).and_then(|mut client| {
            client.set_timeout(Some(CALL))?;
            made(&mut client)
        });
        match answer {
            Ok(value) => return Ok((value, began.elapsed())),
            Err(error) if began.elapsed() > PATIENCE => return Err(call(what)(error)),
            // A client that asks without a pause takes the processor that the successor needs.
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}
