//! Clients of a volume in virtual time, over any tree: each checks the volume against its own knowledge. The tests of
//! `product/object` include this file, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use afflux_simulator::{Random, SimPlatform};
use afflux_volume::{
    AttributeChange, Caller, Consistency, CreateHow, Inode, Kind, ReadBytes, SetTime, Timestamp, Volume, VolumeError,
};
use bytes::Bytes;

pub(crate) type Files = Volume<SimPlatform>;
pub(crate) type Object = Arc<Inode<SimPlatform>>;

pub(crate) const OPERATIONS: u64 = 60;

/// A client's knowledge of one of its files.
#[derive(Clone)]
pub(crate) struct KnownFile {
    handle: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) mtime: Option<Timestamp>,
}

/// A client in its own directory, which no other client changes.
pub(crate) struct Client {
    pub(crate) volume: Arc<Files>,
    home: Vec<u8>,
    pub(crate) files: BTreeMap<String, KnownFile>,
    random: Random,
    /// Handles of files that the client removed.
    pub(crate) gone: Vec<Vec<u8>>,
}

pub(crate) fn bytes_of(bytes: &ReadBytes) -> Vec<u8> {
    match bytes {
        ReadBytes::Pages(pages) => pages.slices().flatten().copied().collect(),
        ReadBytes::Copied(bytes) => bytes.to_vec(),
    }
}

/// Bytes of the pages that are not all zeros, which is the space that the data needs on a disk.
fn needed(bytes: &[u8]) -> u64 {
    let pages = bytes.chunks(4096).filter(|page| page.iter().any(|byte| *byte != 0));
    pages.count() as u64 * 4096
}

fn whole_pages(bytes: &[u8]) -> u64 {
    (bytes.len() as u64).next_multiple_of(4096)
}

pub(crate) fn moves_forward(consistency: &Consistency) {
    let (before, after) = (consistency.before.unwrap(), consistency.after.unwrap());
    assert!(before.mtime < after.mtime && before.ctime < after.ctime, "{before:?} {after:?}");
}

impl Client {
    /// A client at home in the directory with this handle.
    pub(crate) fn new(volume: Arc<Files>, home: Vec<u8>, random: Random) -> Self {
        Self { volume, home, files: BTreeMap::new(), random, gone: Vec::new() }
    }

    pub(crate) async fn home(&self) -> Object {
        self.volume.resolve(&self.home).await.unwrap()
    }

    fn any(&mut self) -> Option<String> {
        let names: Vec<_> = self.files.keys().cloned().collect();
        let count = names.len() as u64;
        (count > 0).then(|| names[self.random.below(count) as usize].clone())
    }

    pub(crate) async fn step(&mut self) {
        let name = format!("f{}", self.random.below(24));
        match self.random.below(14) {
            0..=2 => self.create(name).await,
            3..=5 => self.write().await,
            6 => self.read().await,
            7 => self.set().await,
            8 => self.rename(name).await,
            9 => self.remove().await,
            10 => self.list().await,
            11 => self.sync().await,
            _ => self.look_up(name).await,
        }
    }

    async fn create(&mut self, name: String) {
        let home = self.home().await;
        let how = CreateHow::Unchecked(AttributeChange { size: Some(0), ..AttributeChange::default() });
        let made = self.volume.create(&home, name.as_bytes(), how).await;
        let (inode, attributes) = made.result.unwrap();
        assert_eq!(attributes.size, 0);
        let handle = self.volume.handle(&inode).as_bytes().to_vec();
        if let Some(known) = self.files.get(&name) {
            assert_eq!(known.handle, handle, "{name} is the same file");
        } else {
            moves_forward(&made.consistency);
        }
        self.files.insert(name, KnownFile { handle, bytes: Vec::new(), mtime: None });
    }

    async fn write(&mut self) {
        let Some(name) = self.any() else { return };
        let known = self.files.get_mut(&name).unwrap();
        let inode = self.volume.resolve(&known.handle).await.unwrap();
        let offset = self.random.below(20_000) as usize;
        let len = self.random.between(1, 9_000) as usize;
        let data: Vec<u8> = (0..len).map(|_| self.random.bits() as u8).collect();
        let consistency = match self.volume.try_write(&Caller::SERVER, &inode, offset as u64, &data) {
            Some(consistency) => consistency,
            None => {
                let outcome = self.volume.write(&inode, offset as u64, Bytes::from(data.clone())).await;
                outcome.result.unwrap();
                outcome.consistency
            }
        };
        let end = known.bytes.len().max(offset + len);
        known.bytes.resize(end, 0);
        known.bytes[offset..offset + len].copy_from_slice(&data);
        known.mtime = consistency.after.map(|after| after.mtime);
        moves_forward(&consistency);
        let after = consistency.after.unwrap();
        assert_eq!(after.size, end as u64);
        assert!((needed(&known.bytes)..=whole_pages(&known.bytes)).contains(&after.used), "{after:?}");
    }

    pub(crate) async fn check(&self, name: &str, known: &KnownFile) {
        let inode = self.volume.resolve(&known.handle).await.unwrap();
        let result = match self.volume.try_read(&inode, 0, 1 << 20) {
            Some(result) => result,
            None => self.volume.read(&inode, 0, 1 << 20).await.unwrap(),
        };
        assert!(result.end_of_file);
        assert!(bytes_of(&result.bytes) == known.bytes, "{name} has other bytes");
        let attributes = self.volume.attributes(&inode).await.unwrap();
        assert_eq!(attributes.size, known.bytes.len() as u64, "{name}");
        assert_eq!(attributes.links, 1);
        assert!((needed(&known.bytes)..=whole_pages(&known.bytes)).contains(&attributes.used), "{attributes:?}");
        if let Some(mtime) = known.mtime {
            assert_eq!(attributes.mtime, mtime, "{name}");
        }
    }

    async fn read(&mut self) {
        let Some(name) = self.any() else { return };
        self.check(&name, &self.files[&name].clone()).await;
    }

    /// Any name, present or not, is found as it is, with or without asking the host.
    async fn look_up(&mut self, name: String) {
        let home = self.home().await;
        for _ in 0..2 {
            let quickly = self.volume.try_lookup(&home, name.as_bytes());
            let found = match quickly {
                Some(found) => Ok(found),
                None => self.volume.lookup(&home, name.as_bytes()).await,
            };
            match (found, self.files.get(&name)) {
                (Ok((inode, attributes)), Some(known)) => {
                    assert_eq!(self.volume.handle(&inode).as_bytes(), known.handle, "{name}");
                    assert_eq!(attributes.size, known.bytes.len() as u64, "{name}");
                }
                (Err(VolumeError::NotFound), None) => {}
                (found, _) => panic!("{name}: {:?}", found.map(|found| found.1)),
            }
        }
    }

    async fn set(&mut self) {
        let Some(name) = self.any() else { return };
        let known = self.files.get_mut(&name).unwrap();
        let inode = self.volume.resolve(&known.handle).await.unwrap();
        if self.random.chance(500) {
            let size = self.random.below(30_000);
            let change = AttributeChange { size: Some(size), ..AttributeChange::default() };
            let outcome = self.volume.set_attributes(&inode, change, None).await;
            outcome.result.unwrap();
            known.bytes.resize(size as usize, 0);
            assert!(outcome.consistency.after.unwrap().used <= whole_pages(&known.bytes), "{:?}", outcome.consistency);
            known.mtime = outcome.consistency.after.map(|after| after.mtime);
        } else {
            let time = Timestamp { seconds: self.random.below(1 << 31) as i64, nanos: 5 };
            let change = AttributeChange { mtime: SetTime::To(time), ..AttributeChange::default() };
            self.volume.set_attributes(&inode, change, None).await.result.unwrap();
            known.mtime = Some(time);
        }
    }

    async fn rename(&mut self, to: String) {
        let Some(from) = self.any() else { return };
        let home = self.home().await;
        let renamed = self.volume.rename(&home, from.as_bytes(), &home, to.as_bytes()).await;
        renamed.0.result.unwrap();
        if from != to {
            let moved = self.files.remove(&from).unwrap();
            self.gone.extend(self.files.insert(to, moved).map(|known| known.handle));
        }
    }

    async fn remove(&mut self) {
        let Some(name) = self.any() else { return };
        let home = self.home().await;
        let removed = self.volume.remove(&home, name.as_bytes()).await;
        removed.result.unwrap();
        moves_forward(&removed.consistency);
        self.gone.push(self.files.remove(&name).unwrap().handle);
        let handle = self.random.pick(&(0..self.gone.len()).collect::<Vec<_>>());
        assert_eq!(self.volume.resolve(&self.gone[handle]).await.err(), Some(VolumeError::Stale));
    }

    pub(crate) async fn list(&mut self) {
        let home = self.home().await;
        let (mut cookie, mut names) = (0, BTreeSet::new());
        loop {
            let piece = self.random.between(1, 9) as usize;
            let attributes = self.random.chance(500);
            let listing = self.volume.list(&home, cookie, piece, attributes).await.unwrap();
            for entry in &listing.entries {
                let name = String::from_utf8(entry.name.to_vec()).unwrap();
                if let Some((handle, seen)) = entry.object.as_ref().filter(|_| !name.starts_with('.')) {
                    assert_eq!(handle.as_bytes(), self.files[&name].handle);
                    assert_eq!(seen.size, self.files[&name].bytes.len() as u64);
                }
                assert!(names.insert(name), "listed twice");
                cookie = entry.cookie;
            }
            if listing.end {
                break;
            }
        }
        let wanted = self.files.keys().cloned().chain([".".to_owned(), "..".to_owned()]);
        assert_eq!(names, wanted.collect());
    }

    async fn sync(&mut self) {
        let Some(name) = self.any() else { return };
        let inode = self.volume.resolve(&self.files[&name].handle).await.unwrap();
        self.volume.sync(&inode, 0, 0).await.result.unwrap();
    }
}

/// Uses random names in a directory that all clients share. Only unexpected errors count.
pub(crate) async fn disturb(volume: Arc<Files>, mut random: Random) {
    let root = volume.mount(b"/").await.unwrap();
    let how = CreateHow::Unchecked(AttributeChange::default());
    for _ in 0..OPERATIONS {
        let mut directory = Arc::clone(&root);
        for _ in 0..random.below(3) {
            let name = format!("s{}", random.below(3));
            directory = match volume.lookup(&directory, name.as_bytes()).await {
                Ok((found, _)) if found.kind() == Kind::Directory => found,
                _ => break,
            };
        }
        let names = [format!("s{}", random.below(3)), format!("s{}", random.below(3))];
        let name = names[0].as_bytes();
        let result = match random.below(9) {
            0 | 1 => volume.make_directory(&directory, name, AttributeChange::default()).await.result.map(drop),
            2 => volume.create(&directory, name, how).await.result.map(drop),
            3 => volume.remove(&directory, name).await.result,
            4 => volume.remove_directory(&directory, name).await.result,
            5 | 6 => volume.rename(&directory, name, &root, names[1].as_bytes()).await.0.result,
            7 => match volume.lookup(&root, name).await {
                Ok((found, _)) => volume.link(&found, &directory, names[1].as_bytes()).await.result.map(drop),
                Err(error) => Err(error),
            },
            _ => volume.lookup(&directory, b"..").await.map(drop),
        };
        if let Err(VolumeError::Io { .. } | VolumeError::BadHandle | VolumeError::NoMemory) = result {
            panic!("{result:?}");
        }
    }
}
