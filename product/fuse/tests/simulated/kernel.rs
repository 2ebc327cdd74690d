//! A kernel: it writes messages and reads replies, with layouts of its own.

use std::cell::Cell;
use std::sync::{Arc, Mutex};

use std::task::{Context, Poll, Waker};

use afflux_engine::Recovered;
use afflux_frontend::{MessageMachine, MessageReply, Segment, Tried};
use afflux_fuse::{Mount, MountOptions, MountState, MountStateError, Requesters, SyncedChanges, ThreadRights};
use afflux_simulator::{
    Disk, DiskOptions, Memory, MemoryTree, Random, Setup, SimMachine, SimPlatform, TreeOptions, World, WorldOptions,
};

pub(crate) const ROOT: u64 = 1;
/// The bit of a request's number that the kernel sends again.
pub(crate) const RESENT: u64 = 1 << 63;

/// Threads of a process have its hundred. The thread [`KILLED`] is being killed.
#[derive(Clone, Default)]
struct Hundreds {
    /// The mount's flags.
    synced: Arc<Mutex<SyncedChanges>>,
}

pub(crate) const KILLED: u32 = 99;

impl Requesters for Hundreds {
    fn synced_changes(&self) -> SyncedChanges {
        *self.synced.lock().unwrap()
    }

    fn process(&self, thread: u32) -> Option<u32> {
        Some(thread / 100)
    }

    fn is_killed(&self, thread: u32) -> bool {
        thread == KILLED
    }

    fn rights(&self, _: u32, _: u32) -> Option<ThreadRights> {
        None
    }

    fn is_over(&self, _: u32, _: u32, _: u32) -> bool {
        false
    }
}

/// A mount in a world of its own.
pub(crate) struct Kernel {
    pub(crate) world: World,
    pub(crate) disk: Arc<Disk>,
    pub(crate) tree: Arc<MemoryTree>,
    pub(crate) mount: Arc<Mount<SimPlatform>>,
    pub(crate) volume: Arc<afflux_volume::Volume<SimPlatform>>,
    requesters: Hundreds,
    unique: Cell<u64>,
    /// The last call waited.
    pub(crate) waited: Cell<bool>,
}

/// An entry in an answer.
pub(crate) struct Entry {
    pub(crate) node: u64,
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) size: u64,
    /// The bytes behind the entry.
    pub(crate) more: Vec<u8>,
}

/// A message of this thread.
pub(crate) fn by(thread: u32, mut message: Vec<u8>) -> Vec<u8> {
    message[32..36].copy_from_slice(&thread.to_ne_bytes());
    message
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(*bytes[at..].first_chunk().unwrap())
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(*bytes[at..].first_chunk().unwrap())
}

pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

pub(crate) fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_ne_bytes()).collect()
}

pub(crate) fn name(name: &str) -> Vec<u8> {
    [name.as_bytes(), b"\0"].concat()
}

/// A message of this user.
pub(crate) fn of_user(user: u32, mut message: Vec<u8>) -> Vec<u8> {
    message[24..28].copy_from_slice(&user.to_ne_bytes());
    message
}

fn entry_of(bytes: Vec<u8>) -> Entry {
    Entry {
        node: u64_at(&bytes, 0),
        size: u64_at(&bytes, 48),
        mode: u32_at(&bytes, 100),
        links: u32_at(&bytes, 104),
        more: bytes[128..].to_vec(),
    }
}

impl Kernel {
    pub(crate) fn new() -> Self {
        Self::with(MountOptions::default())
    }

    pub(crate) fn with(options: MountOptions) -> Self {
        Self::of(options, DiskOptions::default(), Memory::Whole(4 << 20), Setup::default())
    }

    /// With memory that outlives the server.
    pub(crate) fn keeping(options: MountOptions, kept: MountState) -> Self {
        Self::over(
            options,
            DiskOptions::default(),
            TreeOptions::default(),
            Memory::Whole(4 << 20),
            Setup::default(),
            Some(kept),
        )
    }

    /// The server is gone, and another one goes on with its memory.
    pub(crate) fn resume(&mut self, kept: MountState) -> Result<(), MountStateError> {
        self.resume_at("", kept)
    }

    /// The same, for a directory with another path.
    pub(crate) fn resume_at(&mut self, path: &str, kept: MountState) -> Result<(), MountStateError> {
        let volume = Arc::clone(&self.volume);
        let root = self.world.run(volume.mount(format!("/{path}").as_bytes())).unwrap().unwrap();
        let resumed =
            Mount::resumed(volume, &root, MountOptions::default(), self.requesters.clone(), Arc::default(), kept);
        let (mount, lost) = self.world.run(resumed).unwrap()?;
        assert_eq!(lost, 0);
        self.mount = mount;
        Ok(())
    }

    /// Keeps the host's files, and starts a server over the memory of an earlier one.
    pub(crate) fn after_kill(self, recovered: Recovered, kept: MountState) -> Self {
        let world = World::new(WorldOptions::seed(2));
        let disk = Disk::new(&world, 0, DiskOptions::default());
        disk.restore(self.disk.files_after_kill(&mut Random::new(1)));
        let tree = self.tree.after_kill(&world, &disk, TreeOptions::default());
        let volume = SimMachine::recover(&world, recovered, 1, Setup::default()).add_tree("disk", &tree).unwrap();
        assert_eq!(volume.found_elsewhere(), 0);
        let root = world.run(volume.mount(b"/")).unwrap().unwrap();
        let own = Arc::clone(&volume);
        let resumed =
            Mount::resumed(own, &root, MountOptions::default(), self.requesters.clone(), Arc::default(), kept);
        let (mount, lost) = world.run(resumed).unwrap().unwrap();
        assert_eq!(lost, 0);
        Self { world, disk, tree, mount, volume, ..self }
    }

    pub(crate) fn of(options: MountOptions, disk: DiskOptions, memory: Memory, setup: Setup) -> Self {
        Self::over(options, disk, TreeOptions::default(), memory, setup, None)
    }

    /// Over a host that gives the server few descriptors.
    pub(crate) fn with_few_descriptors(descriptors_max: usize, options: MountOptions) -> Self {
        let tree = TreeOptions { descriptors_max, ..TreeOptions::default() };
        Self::over(options, DiskOptions::default(), tree, Memory::Whole(4 << 20), Setup::default(), None)
    }

    fn over(
        options: MountOptions,
        disk: DiskOptions,
        tree: TreeOptions,
        memory: Memory,
        setup: Setup,
        kept: Option<MountState>,
    ) -> Self {
        let world = World::new(WorldOptions::seed(1));
        let disk = Disk::new(&world, 0, disk);
        let tree = MemoryTree::new(&world, &disk, tree);
        let volume = SimMachine::new(&world, memory, setup).unwrap().add_tree("disk", &tree).unwrap();
        volume.set_names_durable(false);
        let root = world.run(volume.mount(b"/")).unwrap().unwrap();
        let requesters = Hundreds::default();
        let mount = Mount::new(Arc::clone(&volume), &root, options, requesters.clone(), Arc::default(), kept);
        volume.listen(Some(Arc::clone(&mount) as _));
        Self { world, disk, tree, mount, volume, requesters, unique: Cell::new(0), waited: Cell::new(false) }
    }

    /// The mount gets flags that make these changes synchronous.
    pub(crate) fn remount(&self, synced: SyncedChanges) {
        *self.requesters.synced.lock().unwrap() = synced;
    }

    pub(crate) fn message(&self, opcode: u32, node: u64, body: &[u8]) -> Vec<u8> {
        self.unique.set(self.unique.get() + 2);
        let mut message = words(&[40 + body.len() as u32, opcode]);
        message.extend(longs(&[self.unique.get(), node]));
        message.extend(words(&[0, 0, 100, 0]));
        message.extend_from_slice(body);
        message
    }

    /// The number of the last message.
    pub(crate) fn last(&self) -> u64 {
        self.unique.get()
    }

    pub(crate) fn send(&self, message: Vec<u8>) -> Option<MessageReply> {
        self.waited.set(false);
        match self.mount.try_answer(&message) {
            Tried::Nothing => None,
            Tried::Reply(reply) => Some(reply),
            Tried::Waits => {
                self.waited.set(true);
                let answering = Arc::clone(&self.mount).answer(Box::new(message));
                self.world.run(answering).unwrap_or_else(|error| panic!("it hangs: {error}"))
            }
        }
    }

    /// A call's answer, or its error number.
    pub(crate) fn call(&self, opcode: u32, node: u64, body: &[u8]) -> Result<Vec<u8>, i32> {
        let reply = self.send(self.message(opcode, node, body)).unwrap();
        content(reply, self.last())
    }

    pub(crate) fn entry(&self, opcode: u32, node: u64, body: &[u8]) -> Result<Entry, i32> {
        self.call(opcode, node, body).map(entry_of)
    }

    pub(crate) fn look_up(&self, node: u64, of: &str) -> Result<Entry, i32> {
        self.entry(1, node, &name(of))
    }

    pub(crate) fn make_directory(&self, node: u64, of: &str) -> Entry {
        self.entry(9, node, &[words(&[0o755, 0]), name(of)].concat()).unwrap()
    }

    /// Makes and opens a file: its node and its number.
    pub(crate) fn create(&self, node: u64, of: &str) -> (u64, u64) {
        let made = self.entry(35, node, &[words(&[0o102, 0o100_644, 0, 0]), name(of)].concat()).unwrap();
        (made.node, u64_at(&made.more, 0))
    }

    pub(crate) fn write(&self, fh: u64, offset: u64, data: &[u8]) -> Result<u32, i32> {
        let head = [longs(&[fh, offset]), words(&[data.len() as u32, 0, 0, 0, 0, 0])].concat();
        self.call(16, 0, &[&head, data].concat()).map(|answer| u32_at(&answer, 0))
    }

    pub(crate) fn read(&self, fh: u64, offset: u64, size: u32) -> Result<Vec<u8>, i32> {
        self.call(15, 0, &[longs(&[fh, offset]), words(&[size, 0, 0, 0, 0, 0])].concat())
    }

    pub(crate) fn sync(&self, fh: u64) -> Result<Vec<u8>, i32> {
        self.call(20, 0, &[longs(&[fh]), words(&[0, 0])].concat())
    }

    pub(crate) fn flush(&self, fh: u64) -> Result<Vec<u8>, i32> {
        self.call(25, 0, &longs(&[fh, 0, 0]))
    }

    pub(crate) fn open(&self, node: u64, flags: u32) -> Result<u64, i32> {
        self.call(14, node, &words(&[flags, 0])).map(|answer| u64_at(&answer, 0))
    }

    /// Size and mode.
    pub(crate) fn attributes(&self, node: u64) -> Result<(u64, u32), i32> {
        let answer = self.call(3, node, &[0; 16])?;
        Ok((u64_at(&answer, 24), u32_at(&answer, 76)))
    }

    /// SETATTR of one field at its place.
    pub(crate) fn set(&self, node: u64, valid: u32, at: usize, value: &[u8]) -> Result<Vec<u8>, i32> {
        let mut body = vec![0; 88];
        body[..4].copy_from_slice(&valid.to_ne_bytes());
        body[at..at + value.len()].copy_from_slice(value);
        self.call(4, node, &body)
    }

    /// Names and nodes of a directory, piece by piece.
    pub(crate) fn list(&self, node: u64, size: u32, with_attributes: bool) -> Vec<(String, u64)> {
        let fh = u64_at(&self.call(27, node, &words(&[0, 0])).unwrap(), 0);
        let (opcode, skip) = if with_attributes { (44, 128) } else { (28, 0) };
        let (mut cookie, mut listed) = (0, Vec::new());
        loop {
            let body = [longs(&[fh, cookie]), words(&[size, 0, 0, 0, 0, 0])].concat();
            let piece = self.call(opcode, node, &body).unwrap();
            assert!(piece.len() <= size as usize, "{} bytes for {size}", piece.len());
            if piece.is_empty() {
                self.call(29, node, &[longs(&[fh]), words(&[0, 0]), longs(&[0])].concat()).unwrap();
                return listed;
            }
            let mut at = 0;
            while at < piece.len() {
                let found = if with_attributes { u64_at(&piece, at) } else { 0 };
                let entry = &piece[at + skip..];
                let len = u32_at(entry, 16) as usize;
                listed.push((String::from_utf8(entry[24..24 + len].to_vec()).unwrap(), found));
                cookie = u64_at(entry, 8);
                at += skip + (24 + len).next_multiple_of(8);
            }
        }
    }

    /// The notices that wait: the code, the node, and the rest of each.
    pub(crate) fn notices(&self) -> Vec<Notified> {
        let mut context = Context::from_waker(Waker::noop());
        let mut notices = Vec::new();
        while let Poll::Ready(Some(notice)) = self.mount.poll_notice(&mut context) {
            self.mount.notice_taken(notice.disk);
            notices.push(notified(&notice.message));
        }
        notices
    }

    /// Drops the cache's clean pages.
    pub(crate) fn drop_pages(&self) {
        self.volume.engine().drop_clean_pages();
    }
}

fn bytes_of(reply: &MessageReply) -> Vec<u8> {
    let mut bytes = reply.head().to_vec();
    match reply.data() {
        Some(Segment::Pages(pages)) => pages.slices().for_each(|slice| bytes.extend_from_slice(slice)),
        Some(Segment::Bytes(data)) => bytes.extend_from_slice(data),
        _ => {}
    }
    bytes
}

/// The content of a notice: the code, the node, and the rest.
pub(crate) type Notified = (u32, u64, Vec<u8>);

pub(crate) fn notified(notice: &MessageReply) -> Notified {
    let bytes = bytes_of(notice);
    assert_eq!((u32_at(&bytes, 0) as usize, u64_at(&bytes, 8)), (bytes.len(), 0));
    (u32_at(&bytes, 4), u64_at(&bytes, 16), bytes[24..].to_vec())
}

/// The bytes of a reply behind its header, or its error number.
pub(crate) fn content(reply: MessageReply, unique: u64) -> Result<Vec<u8>, i32> {
    let bytes = bytes_of(&reply);
    assert_eq!((u32_at(&bytes, 0) as usize, u64_at(&bytes, 8)), (bytes.len(), unique));
    match u32_at(&bytes, 4) as i32 {
        0 => Ok(bytes[16..].to_vec()),
        error => Err(-error),
    }
}
