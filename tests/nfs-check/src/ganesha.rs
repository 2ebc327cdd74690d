//! nfs-ganesha, with which races compare our server.
//!
//! Owns: its configuration, its arguments, its port mapper.
//! Does not own: the network namespace, the processes' end.
//! Invariants: it serves one directory.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use afflux_rig::Ending;

use crate::failure::{Failure, host};

/// The ports of its NFS and of its MOUNT.
pub(crate) const PORTS: [u16; 2] = [2049, 20048];
/// Its program.
pub(crate) const PROGRAM: &str = "ganesha.nfsd";

/// Starts the port mapper. ganesha tells it its ports.
pub(crate) fn port_mapper(directory: &Path) -> Result<Ending, Failure> {
    let log = fs::File::create(directory.join("rpcbind.log")).map_err(host("rpcbind.log"))?;
    let child = Command::new("rpcbind").arg("-f").stderr(log).spawn().map_err(host("rpcbind"))?;
    sleep(Duration::from_secs(1));
    Ok(Ending(child))
}

/// Gives a command of its program the arguments to serve a directory over these versions, with `more` configuration.
/// Its files are in `home`.
pub(crate) fn serve(
    command: &mut Command,
    home: &Path,
    export: &Path,
    (protocols, more): (&str, &str),
) -> Result<(), Failure> {
    let path = home.join("ganesha.conf");
    let configuration = format!(
        "NFS_CORE_PARAM {{ Protocols = {protocols}; NFS_Port = 2049; MNT_Port = 20048; Enable_NLM = false; Enable_RQUOTA = false;
  Bind_addr = 127.0.0.1; mount_path_pseudo = false; }}
NFS_KRB5 {{ Active_krb5 = false; }}
EXPORT {{ Export_Id = 77; Path = {}; Pseudo = /exp; Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
  Protocols = {protocols}; PrivilegedPort = false; FSAL {{ Name = VFS; }} }}
LOG {{ Default_Log_Level = EVENT; }}
{more}",
        export.display()
    );
    fs::write(&path, configuration).map_err(host("ganesha.conf"))?;
    command.arg("-F").arg("-f").arg(path).arg("-L").arg(home.join("ganesha.log"));
    command.arg("-p").arg(home.join("ganesha.pid"));
    Ok(())
}
