//! Servers of a volume in a store that is part of the test.

use std::path::Path;
use std::process::{Command, Output};

use crate::client::{Client, Handle};
use crate::fake_store::FakeStore;
use crate::scratch::Scratch;
use crate::server::{Server, afflux};

pub(crate) const ADDRESS: &str = "s3://bucket/home";

/// The command with keys for a store.
pub(crate) fn with_keys(home: &Path) -> Command {
    let mut command = afflux(home);
    command.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "secret");
    command
}

/// Runs a command about a store to its end.
pub(crate) fn run(store: &FakeStore, home: &Path, arguments: &[&str]) -> Output {
    with_keys(home).args(arguments).args(["--endpoint", &store.endpoint]).output().unwrap()
}

/// Serves the volume in a store. `name` tells servers of one home apart.
pub(crate) fn serve(store: &FakeStore, home: &Path, name: &str, arguments: &[&str]) -> Server {
    let (mut command, control) = (with_keys(home), home.join(format!("{name}.sock")));
    command.args(["serve", ADDRESS, "--listen", "127.0.0.1:0", "--json", "--cache", "16MiB"]);
    command.args(["--endpoint", &store.endpoint]).arg("--control").arg(&control).args(arguments);
    Server::spawn(command, control, home)
}

/// A server of a new volume, and a client of it.
pub(crate) struct Served {
    pub(crate) store: FakeStore,
    pub(crate) scratch: Scratch,
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) root: Handle,
}

impl Served {
    pub(crate) fn begin(name: &str) -> Self {
        let (store, scratch) = (FakeStore::start(), Scratch::new());
        let server = serve(&store, scratch.path(), name, &[]);
        let client = Client::mount(&server);
        let root = client.root();
        Self { store, scratch, server, client, root }
    }
}
