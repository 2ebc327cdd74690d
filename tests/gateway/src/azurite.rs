//! An Azurite, which is a small Azure Blob Storage in Node.
//!
//! Owns: its process, its directory, its container.
//! Does not own: the program (npm's azurite).
//! Invariants: it is killed when the value is dropped. It can be ended and started again on the same port and
//! directory. It writes its index now and then, so a kill would lose the objects of the last seconds.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use afflux_scratch::{Scratch, within};
use rustix::process::{Pid, Signal, kill_process};

const PROGRAM: &str = "azurite-blob";
/// A guard against hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The account that each Azurite has.
pub const AZURITE_ACCOUNT: &str = "devstoreaccount1";
/// Its key, which is published.
pub const AZURITE_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Makes a container: a signed PUT. Node is there where Azurite is.
const MAKE_CONTAINER: &str = "
const [endpoint, account, key, container] = process.argv.slice(1);
const date = new Date().toUTCString(), version = '2021-08-06';
const headers = { 'x-ms-date': date, 'x-ms-version': version };
const path = `/${account}/${container}`;
const text = 'PUT' + '\\n'.repeat(12) + `x-ms-date:${date}\\nx-ms-version:${version}\\n/${account}${path}\\nrestype:container`;
const hash = require('crypto').createHmac('sha256', Buffer.from(key, 'base64')).update(text, 'utf8').digest('base64');
headers.Authorization = `SharedKey ${account}:${hash}`;
const address = new URL(endpoint);
const options = { host: address.hostname, port: address.port, path: path + '?restype=container', method: 'PUT', headers };
require('http').request(options, (answer) => {
    answer.resume();
    if (answer.statusCode !== 201) { console.error(answer.statusCode); process.exitCode = 1; }
}).end();
";

/// A running Azurite.
#[derive(Debug)]
pub struct Azurite {
    child: Child,
    address: SocketAddr,
    directory: Scratch,
}

impl Azurite {
    /// The reason why none can run here, if there is one.
    pub fn obstacle() -> Option<String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there = std::env::split_paths(&path).any(|folder| folder.join(PROGRAM).exists());
        (!is_there).then(|| format!("{PROGRAM} is not on the path (npm install -g azurite)"))
    }

    /// Starts one.
    pub fn start() -> io::Result<Self> {
        let directory = Scratch::guarded(&std::env::temp_dir(), "azurite")?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let child = run(&directory, address)?;
        Ok(Self { child, address, directory })
    }

    /// Ends it, and starts it again.
    pub fn restart(&mut self) -> io::Result<()> {
        let id = Pid::from_raw(self.child.id().cast_signed()).ok_or_else(|| io::Error::other("no process"))?;
        kill_process(id, Signal::TERM)?;
        self.child.wait()?;
        self.child = run(&self.directory, self.address)?;
        Ok(())
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of its account.
    pub fn endpoint(&self) -> String {
        format!("http://{}/{AZURITE_ACCOUNT}", self.address)
    }

    /// Makes a container.
    pub fn make_container(&self, name: &str) -> io::Result<()> {
        let mut command = Command::new("node");
        command.args(["-e", MAKE_CONTAINER, "--", &self.endpoint(), AZURITE_ACCOUNT, AZURITE_KEY, name]);
        let output = command.stdin(Stdio::null()).output()?;
        let said = || io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned());
        if output.status.success() { Ok(()) } else { Err(said()) }
    }
}

fn run(directory: &Scratch, address: SocketAddr) -> io::Result<Child> {
    let mut command = Command::new(PROGRAM);
    command.args(["--blobHost", "127.0.0.1", "--blobPort", &address.port().to_string(), "--location"]);
    command.arg(directory.path()).args(["--silent", "--disableTelemetry", "--skipApiVersionCheck"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    if within(PATIENCE, || TcpStream::connect(address).is_ok()) {
        return Ok(child);
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(io::Error::other("azurite does not listen"))
}

impl Drop for Azurite {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
