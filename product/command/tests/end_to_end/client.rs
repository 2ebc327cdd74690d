//! A client that panics with the reason where a test expects success.

use std::time::Duration;

use afflux_nfs_client::{Change, User, fattr3, stable_how};

use crate::server::Server;

const BLOCK: usize = 65_536;
const IN_FLIGHT: usize = 8;

/// A guard against hangs.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) type Handle = Vec<u8>;

/// A connection to the server.
pub(crate) fn connected(server: &Server) -> afflux_nfs_client::Client {
    let mut client = afflux_nfs_client::Client::connect(("127.0.0.1", server.port())).unwrap();
    client.set_timeout(Some(PATIENCE)).unwrap();
    client
}

pub(crate) struct Client {
    inner: afflux_nfs_client::Client,
    root: Handle,
    verifier: [u8; 8],
}

impl Client {
    /// Mounts the first export.
    pub(crate) fn mount(server: &Server) -> Self {
        Self::mount_export(server, server.ready["serving"][0]["export"].as_str().unwrap())
    }

    /// Mounts the export of that name.
    pub(crate) fn mount_export(server: &Server, export: &str) -> Self {
        let mut inner = connected(server);
        let root = inner.mount(export).unwrap().to_vec();
        Self { inner, root, verifier: [0; 8] }
    }

    pub(crate) fn root(&self) -> Handle {
        self.root.clone()
    }

    /// Makes further calls come from a user.
    pub(crate) fn act_as(&mut self, uid: u32) {
        self.inner.set_user(Some(User { uid, gid: 0 }));
    }

    /// The verifier of the last WRITE or COMMIT.
    pub(crate) fn verifier(&self) -> [u8; 8] {
        self.verifier
    }

    pub(crate) fn make_directory(&mut self, parent: &Handle, name: &str) -> Handle {
        let change = Change { mode: Some(0o755), ..Change::default() };
        let made = self.inner.mkdir(parent, name.as_bytes(), change).unwrap();
        made.handle.unwrap().to_vec()
    }

    pub(crate) fn create(&mut self, parent: &Handle, name: &str) -> Handle {
        self.inner.create_empty(parent, name.as_bytes()).unwrap().to_vec()
    }

    /// Makes a file with these bytes, committed.
    pub(crate) fn write_file(&mut self, parent: &Handle, name: &str, bytes: &[u8]) -> Handle {
        let file = self.create(parent, name);
        match bytes.len() {
            0 => self.commit(&file),
            _ => self.write_at(&file, 0, bytes),
        }
        file
    }

    /// Makes a file with these bytes, by UNSTABLE writes alone.
    pub(crate) fn write_file_uncommitted(&mut self, parent: &Handle, name: &str, bytes: &[u8]) -> Handle {
        let file = self.create(parent, name);
        for (at, piece) in bytes.chunks(BLOCK).enumerate() {
            self.try_write_at(&file, (at * BLOCK) as u64, piece).unwrap();
        }
        file
    }

    /// Makes a file by FILE_SYNC writes. Returns whether the server answered with FILE_SYNC.
    pub(crate) fn write_file_stable(&mut self, parent: &Handle, name: &str, bytes: &[u8]) -> bool {
        let file = self.create(parent, name);
        let written = self.inner.write(&file, 0, bytes, stable_how::FILE_SYNC).unwrap();
        written.count as usize == bytes.len() && written.committed == stable_how::FILE_SYNC
    }

    /// Writes with many calls in flight, and commits.
    pub(crate) fn write_at(&mut self, file: &Handle, offset: u64, bytes: &[u8]) {
        self.inner.write_all(file, offset, bytes, BLOCK, IN_FLIGHT).unwrap();
    }

    /// Writes by one UNSTABLE call at a time. Returns the status if one failed.
    pub(crate) fn try_write_at(&mut self, file: &Handle, offset: u64, bytes: &[u8]) -> Result<(), u32> {
        for (at, piece) in bytes.chunks(BLOCK).enumerate() {
            let offset = offset + (at * BLOCK) as u64;
            let written = self.inner.write(file, offset, piece, stable_how::UNSTABLE);
            let written = written.map_err(|error| error.status().expect("a status"))?;
            assert_eq!(written.count as usize, piece.len());
            self.verifier = written.verf.0;
        }
        Ok(())
    }

    pub(crate) fn commit(&mut self, file: &Handle) {
        self.try_commit(file).unwrap();
    }

    pub(crate) fn try_commit(&mut self, file: &Handle) -> Result<(), u32> {
        let committed = self.inner.commit(file, 0, 0).map_err(|error| error.status().expect("a status"))?;
        self.verifier = committed.verf.0;
        Ok(())
    }

    pub(crate) fn lookup(&mut self, parent: &Handle, name: &str) -> Handle {
        self.inner.lookup(parent, name.as_bytes()).unwrap().0.to_vec()
    }

    pub(crate) fn read(&mut self, file: &Handle, len: usize) -> Vec<u8> {
        self.read_at(file, 0, len)
    }

    pub(crate) fn read_at(&mut self, file: &Handle, offset: u64, len: usize) -> Vec<u8> {
        self.inner.read_all(file, offset, len, BLOCK, IN_FLIGHT).unwrap()
    }

    /// Reads by one call. Returns the status if it failed.
    #[cfg(feature = "object")]
    pub(crate) fn try_read_at(&mut self, file: &Handle, offset: u64, len: u32) -> Result<Vec<u8>, u32> {
        let read = self.inner.read(file, offset, len);
        read.map(|read| read.data).map_err(|error| error.status().expect("a status"))
    }

    /// A whole file by name.
    pub(crate) fn read_file(&mut self, parent: &Handle, name: &str) -> Vec<u8> {
        let file = self.lookup(parent, name);
        let size = self.inner.getattr(&file).unwrap().size;
        let found = self.read_at(&file, 0, usize::try_from(size).unwrap());
        assert_eq!(found.len() as u64, size);
        found
    }

    pub(crate) fn attributes(&mut self, object: &Handle) -> fattr3 {
        self.inner.getattr(object).unwrap()
    }

    pub(crate) fn list(&mut self, directory: &Handle) -> Vec<String> {
        let entries = self.inner.entries(directory).unwrap();
        entries.into_iter().map(|entry| String::from_utf8(entry.name.to_vec()).unwrap()).collect()
    }

    /// Names and sizes, by READDIRPLUS.
    pub(crate) fn listed_sizes(&mut self, directory: &Handle) -> Vec<(String, u64)> {
        let entries = self.inner.entries(directory).unwrap().into_iter();
        entries.map(|entry| (String::from_utf8(entry.name).unwrap(), entry.attributes.unwrap().size)).collect()
    }

    pub(crate) fn rename(&mut self, from: &Handle, name: &str, to: &Handle, new: &str) {
        self.inner.rename((from, name.as_bytes()), (to, new.as_bytes())).unwrap();
    }

    pub(crate) fn remove(&mut self, parent: &Handle, name: &str) {
        self.inner.remove(parent, name.as_bytes()).unwrap();
    }
}
