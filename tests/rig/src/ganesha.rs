//! nfs-ganesha, with which races compare our server.
//!
//! Owns: its configuration, its arguments, its port mapper.
//! Does not own: the network namespace, the processes' end.
//! Invariants: it serves one directory.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::Ending;

/// The ports of NFS and of MOUNT in a separate network.
pub const PORTS: [u16; 2] = [2049, 20048];
/// Its program.
pub const PROGRAM: &str = "ganesha.nfsd";
/// The program of its port mapper.
pub const PORT_MAPPER: &str = "rpcbind";
/// Clients of version 4 may open files at once, and the host knows the names of users.
pub const VERSION_4: &str = "NFSv4 { Graceless = true; UseGetpwnam = true; Minor_Versions = 1, 2; }\n";
/// The name of its export in version 4.
pub const EXPORT: &str = "exp";

/// Starts the port mapper by a command of its program. Ganesha tells it the ports of version 3.
///
/// # Errors
/// When there is none.
pub fn port_mapper(command: &mut Command, directory: &Path) -> io::Result<Ending> {
    let log = File::create(directory.join("rpcbind.log"))?;
    let child = command.arg("-f").stderr(log).spawn()?;
    sleep(Duration::from_secs(1));
    Ok(Ending(child))
}

/// Gives a command of its program the arguments to serve a directory over these versions at this address and these
/// ports, with `more` configuration. Its files are in `home`.
///
/// # Errors
/// When its configuration cannot be written.
pub fn serve(
    command: &mut Command,
    home: &Path,
    export: &Path,
    address: Ipv4Addr,
    [nfs, mount]: [u16; 2],
    protocols: &str,
    more: &str,
) -> io::Result<()> {
    let path = home.join("ganesha.conf");
    let configuration = format!(
        "NFS_CORE_PARAM {{ Protocols = {protocols}; NFS_Port = {nfs}; MNT_Port = {mount}; Enable_NLM = false;
  Enable_RQUOTA = false; Bind_addr = {address}; mount_path_pseudo = false; }}
NFS_KRB5 {{ Active_krb5 = false; }}
EXPORT {{ Export_Id = 77; Path = {}; Pseudo = /{EXPORT}; Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
  Protocols = {protocols}; PrivilegedPort = false; FSAL {{ Name = VFS; }} }}
LOG {{ Default_Log_Level = EVENT; }}
{more}",
        export.display()
    );
    fs::write(&path, configuration)?;
    command.arg("-F").arg("-f").arg(path).arg("-L").arg(home.join("ganesha.log"));
    command.arg("-p").arg(home.join("ganesha.pid"));
    Ok(())
}
