//! Handles of removed files, on trees that cannot open identities: the cost of the search, counted in directory entries
//! read, while other names are renamed. The counting tree serves other tests, too.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Waker};

use afflux_engine::settings::Settings;
use afflux_engine::{Engine, Nanos, Platform};
use afflux_frames::Frames;
use afflux_simulator::{Disk, DiskOptions, MemoryTree, SimPlatform, TreeOptions, World, WorldOptions};
use afflux_volume::{
    AttributeChange, ChangedAttributes, CreateHow, Created, DeviceKey, Directory, Export, Found, HandleKey, Identified,
    Identity, Inode, Linked, LocationStore, MakeDevice, Named, New, NewDevice, Node, OpenedData, PathLimits, Removed,
    RenameHow, Renamed, Space, Stat, TreeResult, Volume, VolumeError, Window,
};
use bytes::Bytes;

pub(crate) type Files = Volume<SimPlatform>;
type Object = Arc<Inode<SimPlatform>>;

const DIRECTORIES: u64 = 20;
const FILES: u64 = 15;
/// All entries: the directories, the renamed one, and the one file in each directory that stays.
const ENTRIES: u64 = DIRECTORIES + 1 + DIRECTORIES;
/// One walk, and another for callers that come during the first.
const ENTRIES_MAX: u64 = 2 * ENTRIES;
pub(crate) const BY_NAME: TreeOptions = TreeOptions {
    by_identity: false,
    descriptors_max: 100_000,
    clock_tick_ns: 1,
    keeps_unnamed: false,
    time_unit_ns: 1,
    tells_time_unit: true,
    folds_names: false,
};

/// A directory with this entry can hang, and all below it.
const HANGS: &[u8] = b"hangs";
/// The time that a slow tree takes for a directory.
const SLOW_NS: u64 = 10 * Nanos::MILLISECOND;

/// An object of this name has a device of its own.
pub(crate) const BELOW: &[u8] = b"below";
pub(crate) const DEVICE_BELOW: DeviceKey = DeviceKey(77);

/// A tree that counts the entries read by walks.
pub(crate) struct Counting {
    pub(crate) tree: Arc<MemoryTree>,
    pub(crate) entries: Arc<AtomicU64>,
    pub(crate) lists: Arc<Lists>,
}

/// Counts listings of directories, and can hold them and the making of devices.
#[derive(Default)]
pub(crate) struct Lists {
    pub(crate) count: AtomicU64,
    held: AtomicBool,
    waiting: Mutex<Vec<Waker>>,
    /// Changes of attributes that have begun. The first one can be held, or all.
    pub(crate) sets: AtomicU64,
    pub(crate) holds_all_sets: AtomicBool,
    /// Looks at several objects that have begun. The first one can be held.
    pub(crate) looks: AtomicU64,
    /// The exports, if they are not the tree's.
    exports: OnceLock<Vec<Export>>,
    /// Set where each directory takes some time.
    slow: OnceLock<Arc<SimPlatform>>,
    /// The look at a directory, counted from now, that will fail, and its error.
    fault: Mutex<Option<(u64, VolumeError)>>,
}

impl Lists {
    pub(crate) fn hold(&self, held: bool) {
        self.held.store(held, Ordering::Relaxed);
        self.waiting.lock().unwrap().drain(..).for_each(Waker::wake);
    }

    /// How many tasks wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.lock().unwrap().len()
    }

    /// Has the look after `before` others fail.
    pub(crate) fn fail_after(&self, before: u64, error: VolumeError) {
        *self.fault.lock().unwrap() = Some((before, error));
    }

    /// Whether the look that was to fail has not come.
    pub(crate) fn has_fault_left(&self) -> bool {
        self.fault.lock().unwrap().is_some()
    }

    fn look(&self) -> Result<(), VolumeError> {
        let mut fault = self.fault.lock().unwrap();
        match fault.take() {
            Some((0, error)) => return Err(error),
            other => *fault = other.map(|(before, error)| (before - 1, error)),
        }
        Ok(())
    }

    fn poll_go(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.held.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.lock().unwrap();
        if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Directory for Counting {
    fn identities(&self, directory: &Node) -> TreeResult<'_, Vec<Identified>> {
        let read = self.tree.identities(directory);
        TreeResult::by(async move {
            self.lists.look()?;
            let read = read.await?;
            if let Some(platform) = self.lists.slow.get() {
                platform.sleep_until(platform.now().after(SLOW_NS)).await;
            }
            if read.iter().any(|entry| entry.name == HANGS) {
                std::future::poll_fn(|cx| self.lists.poll_go(cx)).await;
            }
            self.entries.fetch_add(read.len() as u64, Ordering::Relaxed);
            Ok(read)
        })
    }

    fn exports(&self) -> &[Export] {
        self.lists.exports.get().map_or(self.tree.exports(), Vec::as_slice)
    }
    fn descriptors_max(&self) -> usize {
        self.tree.descriptors_max()
    }
    fn may_open(&self, identity: &Identity) -> bool {
        self.tree.may_open(identity)
    }
    fn open_identity(&self, identity: Identity) -> TreeResult<'_, Found> {
        self.tree.open_identity(identity)
    }
    fn lookup(&self, directory: &Node, name: Bytes) -> TreeResult<'_, Found> {
        let below = name == BELOW;
        let found = self.tree.lookup(directory, name);
        TreeResult::by(async move {
            self.lists.look()?;
            let mut found = found.await?;
            if below {
                found.stat.device = DEVICE_BELOW;
            }
            Ok(found)
        })
    }
    fn name_all(&self, directory: &Node, names: Vec<Bytes>) -> TreeResult<'_, Vec<Option<Named>>> {
        self.tree.name_all(directory, names)
    }
    fn parent(&self, directory: &Node) -> TreeResult<'_, Found> {
        self.tree.parent(directory)
    }
    fn list(&self, directory: &Node, window: Window) -> TreeResult<'_, (Window, Stat)> {
        self.lists.count.fetch_add(1, Ordering::Relaxed);
        let listed = self.tree.list(directory, window);
        let lists = Arc::clone(&self.lists);
        TreeResult::by(async move {
            std::future::poll_fn(|cx| lists.poll_go(cx)).await;
            listed.await
        })
    }
    fn stat(&self, node: &Node) -> TreeResult<'_, Stat> {
        self.tree.stat(node)
    }
    fn stat_all(&self, nodes: Vec<Node>) -> TreeResult<'_, Vec<Option<Stat>>> {
        let stats = self.tree.stat_all(nodes);
        let (lists, is_first) = (Arc::clone(&self.lists), self.lists.looks.fetch_add(1, Ordering::Relaxed) == 0);
        TreeResult::by(async move {
            if is_first {
                std::future::poll_fn(|cx| lists.poll_go(cx)).await;
            }
            stats.await
        })
    }
    fn set(&self, node: &Node, change: AttributeChange, durable: bool) -> TreeResult<'_, ChangedAttributes> {
        let set = self.tree.set(node, change, durable);
        let (lists, is_first) = (Arc::clone(&self.lists), self.lists.sets.fetch_add(1, Ordering::Relaxed) == 0);
        let may_be_held = is_first || lists.holds_all_sets.load(Ordering::Relaxed);
        TreeResult::by(async move {
            if may_be_held {
                std::future::poll_fn(|cx| lists.poll_go(cx)).await;
            }
            set.await
        })
    }
    fn access(&self, node: &Node) -> TreeResult<'_, u8> {
        self.tree.access(node)
    }
    fn read_link(&self, node: &Node) -> TreeResult<'_, Bytes> {
        self.tree.read_link(node)
    }
    fn open_data(&self, node: &Node, must_write: bool) -> TreeResult<'_, OpenedData> {
        self.tree.open_data(node, must_write)
    }
    fn create(
        &self,
        directory: &Node,
        name: Bytes,
        new: New,
        attributes: AttributeChange,
        durable: bool,
    ) -> TreeResult<'_, Created> {
        self.tree.create(directory, name, new, attributes, durable)
    }
    fn remove(&self, directory: &Node, name: Bytes, directory_wanted: bool, durable: bool) -> TreeResult<'_, Removed> {
        self.tree.remove(directory, name, directory_wanted, durable)
    }
    fn rename(
        &self,
        from: (&Node, Bytes),
        to: (&Node, Bytes),
        how: RenameHow,
        durable: bool,
    ) -> TreeResult<'_, Renamed> {
        self.tree.rename(from, to, how, durable)
    }
    fn link(&self, node: &Node, directory: &Node, name: Bytes, durable: bool) -> TreeResult<'_, Linked> {
        self.tree.link(node, directory, name, durable)
    }
    fn sync(&self, node: &Node) -> TreeResult<'_, ()> {
        self.tree.sync(node)
    }
    fn sync_everything(&self) -> TreeResult<'_, ()> {
        self.tree.sync_everything()
    }
    fn make_device(&self, _node: &Node, make: MakeDevice) -> TreeResult<'static, NewDevice> {
        let lists = Arc::clone(&self.lists);
        TreeResult::by(async move {
            std::future::poll_fn(|cx| lists.poll_go(cx)).await;
            make()
        })
    }
    fn space(&self, node: &Node) -> TreeResult<'_, Space> {
        self.tree.space(node)
    }
    fn path_limits(&self, node: &Node) -> TreeResult<'_, PathLimits> {
        self.tree.path_limits(node)
    }
}

struct HandlesFixture {
    world: World,
    volume: Arc<Files>,
    /// Entries read for walks by `volume`.
    entries: Arc<AtomicU64>,
    lists: Arc<Lists>,
    /// Handles of files removed by the earlier server.
    stale: Vec<Vec<u8>>,
    stop: Arc<AtomicBool>,
    /// The longest time of a rename.
    longest_ns: Arc<AtomicU64>,
}

pub(crate) fn serve(world: &World, tree: Arc<dyn Directory>, of: &MemoryTree) -> Arc<Files> {
    let frames = Frames::new(256 * 4096).unwrap();
    let engine = Engine::new(Arc::clone(world.platform()), Settings::with([&afflux_volume::KNOBS]), frames);
    let disk = Arc::clone(of.disk());
    let factory = Box::new(move |_, _: &_| Ok(NewDevice::unknown("disk".to_owned(), Arc::clone(&disk) as _)));
    Volume::new(engine, tree, HandleKey::new([7; 16]), factory).unwrap()
}

impl HandlesFixture {
    /// A server that knows nothing yet of a tree from which an earlier server has removed most files.
    fn new() -> Self {
        let world = World::new(WorldOptions::seed(1));
        let disk = Disk::new(&world, 0, DiskOptions::default());
        let tree = MemoryTree::new(&world, &disk, BY_NAME);
        let earlier = serve(&world, Arc::clone(&tree) as _, &tree);
        let run = |future| world.run(future).unwrap_or_else(|error| panic!("{error}"));
        let stale = run(Box::pin(remove_most(&earlier)));
        let (entries, lists) = (Arc::new(AtomicU64::new(0)), Arc::new(Lists::default()));
        let counting =
            Counting { tree: tree.reopened(BY_NAME), entries: Arc::clone(&entries), lists: Arc::clone(&lists) };
        let volume = serve(&world, Arc::new(counting), &tree);
        Self { world, volume, entries, lists, stale, stop: Arc::default(), longest_ns: Arc::default() }
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.world.run(future).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Renames a directory to and fro until told to stop.
    fn rename_for_ever(&self) {
        let (volume, stop) = (Arc::clone(&self.volume), Arc::clone(&self.stop));
        let longest_ns = Arc::clone(&self.longest_ns);
        self.world.spawn("mover", async move {
            let root = volume.mount(b"/").await.unwrap();
            let platform = Arc::clone(volume.engine().platform());
            for round in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let (from, to): (&[u8], &[u8]) = if round % 2 == 0 { (b"here", b"there") } else { (b"there", b"here") };
                let began = platform.now();
                volume.rename(&root, from, &root, to).await.0.result.unwrap();
                longest_ns.fetch_max(platform.now().since(began), Ordering::Relaxed);
                platform.sleep_until(platform.now().after(10_000)).await;
            }
        });
    }

    fn entries_read(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }
}

pub(crate) async fn make_directory(volume: &Files, at: &Object, name: &str) -> Object {
    volume.make_directory(at, name.as_bytes(), AttributeChange::default()).await.result.unwrap().0
}

pub(crate) async fn create(volume: &Files, at: &Object, name: &str) -> Vec<u8> {
    let how = CreateHow::Guarded(AttributeChange::default());
    let (file, _) = volume.create(at, name.as_bytes(), how).await.result.unwrap();
    volume.handle(&file).as_bytes().to_vec()
}

/// Creates everything, removes all files but one in each directory, and returns the handles of the removed files.
async fn remove_most(volume: &Files) -> Vec<Vec<u8>> {
    let root = volume.mount(b"/").await.unwrap();
    make_directory(volume, &root, "here").await;
    let mut removed = Vec::new();
    for directory in 0..DIRECTORIES {
        let directory = make_directory(volume, &root, &format!("d{directory}")).await;
        create(volume, &directory, "stays").await;
        for file in 0..FILES {
            removed.push(create(volume, &directory, &format!("f{file}")).await);
            volume.remove(&directory, format!("f{file}").as_bytes()).await.result.unwrap();
        }
    }
    removed
}

#[test]
fn what_was_removed_here_is_stale_without_a_look_at_anything() {
    let lab = HandlesFixture::new();
    lab.rename_for_ever();
    for handle in lab.stale.clone() {
        let volume = Arc::clone(&lab.volume);
        lab.world
            .spawn("stale", async move { assert_eq!(volume.resolve(&handle).await.err(), Some(VolumeError::Stale)) });
    }
    let removed = lab.run(async {
        let root = lab.volume.mount(b"/").await.unwrap();
        let handle = create(&lab.volume, &root, "file").await;
        lab.volume.remove(&root, b"file").await.result.unwrap();
        handle
    });
    // The answer comes at once, without a step of another task.
    let mut resolving = std::pin::pin!(lab.volume.resolve(&removed));
    match resolving.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(resolved) => assert_eq!(resolved.err(), Some(VolumeError::Stale)),
        Poll::Pending => panic!("a removed object is looked for"),
    }
    lab.stop.store(true, Ordering::Relaxed);
}

#[test]
fn one_walk_serves_all_who_look_for_what_is_gone_while_directories_are_renamed() {
    let lab = HandlesFixture::new();
    assert_eq!(lab.stale.len(), 300);
    lab.rename_for_ever();
    let left = Arc::new(AtomicU64::new(lab.stale.len() as u64));
    for handle in lab.stale.clone() {
        let (volume, left) = (Arc::clone(&lab.volume), Arc::clone(&left));
        lab.world.spawn("stale", async move {
            assert_eq!(volume.resolve(&handle).await.err(), Some(VolumeError::Stale));
            left.fetch_sub(1, Ordering::Relaxed);
        });
    }
    let platform = lab.world.platform();
    lab.run(async {
        while left.load(Ordering::Relaxed) > 0 && lab.entries_read() <= ENTRIES_MAX {
            platform.sleep_until(platform.now().after(Nanos::MILLISECOND)).await;
        }
    });
    let entries = lab.entries_read();
    assert!(entries <= ENTRIES_MAX, "{entries} entries were read of {ENTRIES}");
    lab.stop.store(true, Ordering::Relaxed);
}

#[test]
fn who_asks_for_one_after_the_other_costs_a_walk_in_a_pause() {
    let lab = HandlesFixture::new();
    lab.rename_for_ever();
    let platform = lab.world.platform();
    let began = platform.now();
    for handle in &lab.stale {
        assert_eq!(lab.run(lab.volume.resolve(handle)).err(), Some(VolumeError::Stale));
        let walks = 1 + platform.now().since(began) / (5 * Nanos::SECOND);
        let entries = lab.entries_read();
        assert!(walks < 3 && entries <= walks * ENTRIES, "{entries} entries were read of {ENTRIES}, in {walks} walks");
    }
    lab.stop.store(true, Ordering::Relaxed);
}

#[test]
fn a_rename_does_not_wait_for_a_walk() {
    let lab = HandlesFixture::new();
    assert!(lab.lists.slow.set(Arc::clone(lab.world.platform())).is_ok());
    lab.rename_for_ever();
    assert_eq!(lab.run(lab.volume.resolve(&lab.stale[0])).err(), Some(VolumeError::Stale));
    let platform = lab.world.platform();
    // A rename that waits ends.
    lab.run(platform.sleep_until(platform.now().after(Nanos::MILLISECOND)));
    let (longest_ns, entries) = (lab.longest_ns.load(Ordering::Relaxed), lab.entries_read());
    assert!(entries >= ENTRIES && longest_ns < SLOW_NS, "a rename took {longest_ns} ns; {entries} entries were read");
    lab.stop.store(true, Ordering::Relaxed);
}

fn run<F: Future>(world: &World, future: F) -> F::Output {
    world.run(future).unwrap_or_else(|error| panic!("{error}"))
}

/// A file below a directory that was carried past the walk, to a directory that it had read already, is found.
#[test]
fn what_a_rename_carries_past_a_walk_is_found() {
    let world = World::new(WorldOptions::seed(1));
    let disk = Disk::new(&world, 0, DiskOptions::default());
    let tree = MemoryTree::new(&world, &disk, BY_NAME);
    let earlier = serve(&world, Arc::clone(&tree) as _, &tree);
    let handle = run(&world, async move {
        let root = earlier.mount(b"/").await.unwrap();
        // A walk reads the last names first.
        make_directory(&earlier, &root, "z read first").await;
        let hangs = make_directory(&earlier, &root, "m").await;
        create(&earlier, &hangs, "hangs").await;
        let last = make_directory(&earlier, &root, "a read last").await;
        let carried = make_directory(&earlier, &last, "carried").await;
        let below = make_directory(&earlier, &carried, "below").await;
        create(&earlier, &below, "file").await
    });
    let lists = Arc::new(Lists::default());
    let counting = Counting { tree: tree.reopened(BY_NAME), entries: Arc::default(), lists: Arc::clone(&lists) };
    let volume = serve(&world, Arc::new(counting), &tree);
    lists.hold(true);
    let (searching, wanted, ended) = (Arc::clone(&volume), handle.clone(), Arc::new(AtomicBool::new(false)));
    let end = Arc::clone(&ended);
    world.spawn("search", async move {
        let found = searching.resolve(&wanted).await.unwrap();
        assert_eq!(searching.handle(&found).as_bytes(), wanted);
        end.store(true, Ordering::Relaxed);
    });
    let platform = world.platform();
    let pass = async || platform.sleep_until(platform.now().after(Nanos::MILLISECOND)).await;
    run(&world, async {
        while lists.waiting() == 0 {
            pass().await;
        }
        let root = volume.mount(b"/").await.unwrap();
        let (from, _) = volume.lookup(&root, b"a read last").await.unwrap();
        let (to, _) = volume.lookup(&root, b"z read first").await.unwrap();
        volume.rename(&from, b"carried", &to, b"carried").await.0.result.unwrap();
        lists.hold(false);
        let began = platform.now();
        while !ended.load(Ordering::Relaxed) {
            pass().await;
        }
        assert!(platform.now().since(began) < Nanos::SECOND, "one walk is enough");
    });
}

/// Two exports, of which one hangs: its searches wait, and the other's go on.
#[test]
fn an_export_that_hangs_stops_no_search_in_another() {
    let world = World::new(WorldOptions::seed(1));
    let disk = Disk::new(&world, 0, DiskOptions::default());
    let tree = MemoryTree::new(&world, &disk, BY_NAME);
    let earlier = serve(&world, Arc::clone(&tree) as _, &tree);
    run(&world, async move {
        let root = earlier.mount(b"/").await.unwrap();
        for name in ["bad", "good"] {
            let export = make_directory(&earlier, &root, name).await;
            make_directory(&earlier, &export, "directory").await;
        }
    });
    let lists = Arc::new(Lists::default());
    let host = &tree;
    let exports = ["/bad", "/good"].map(|path| async move {
        let name = Bytes::copy_from_slice(&path.as_bytes()[1..]);
        let root = host.lookup(&host.exports()[0].root.node, name).await.unwrap();
        Export { path: path.to_owned(), root }
    });
    let exports = run(&world, futures_util::future::join_all(exports));
    assert!(lists.exports.set(exports).is_ok());
    let server = || {
        let lists = Arc::clone(&lists);
        serve(&world, Arc::new(Counting { tree: tree.reopened(BY_NAME), entries: Arc::default(), lists }), &tree)
    };
    let mut handles = Vec::new();
    for name in ["/bad", "/good"] {
        let volume = server();
        handles.push(run(&world, async move {
            let root = volume.mount(name.as_bytes()).await.unwrap();
            let (directory, _) = volume.lookup(&root, b"directory").await.unwrap();
            let handle = create(&volume, &directory, "file").await;
            if name == "/bad" {
                create(&volume, &root, "hangs").await;
            }
            handle
        }));
    }
    let volume = server();
    lists.hold(true);
    let (bad, searching) = (handles.swap_remove(0), Arc::clone(&volume));
    let is_found = Arc::new(AtomicBool::new(false));
    let found = Arc::clone(&is_found);
    world.spawn("search below the export that hangs", async move {
        searching.resolve(&bad).await.unwrap();
        found.store(true, Ordering::Relaxed);
    });
    let platform = world.platform();
    let pass = async || platform.sleep_until(platform.now().after(Nanos::MILLISECOND)).await;
    run(&world, async {
        while lists.waiting() == 0 {
            pass().await;
        }
        let good = volume.resolve(&handles[0]).await.unwrap();
        assert_eq!(volume.handle(&good).as_bytes(), handles[0]);
        let root = volume.mount(b"/good").await.unwrap();
        volume.rename(&root, b"directory", &root, b"elsewhere").await.0.result.unwrap();
        assert!(!is_found.load(Ordering::Relaxed));
        lists.hold(false);
        while !is_found.load(Ordering::Relaxed) {
            pass().await;
        }
    });
}

/// A record of places, in memory.
#[derive(Clone, Default)]
struct Record(Arc<Mutex<Vec<u8>>>);

impl Record {
    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl LocationStore for Record {
    fn append(&self, bytes: Bytes) -> TreeResult<'_, ()> {
        self.0.lock().unwrap().extend(&bytes);
        TreeResult::now(Ok(()))
    }

    fn replace(&self, bytes: Bytes) -> TreeResult<'_, ()> {
        *self.0.lock().unwrap() = bytes.to_vec();
        TreeResult::now(Ok(()))
    }
}

/// Files some directories deep, of which one was renamed and one removed, and the record of their locations.
struct Kept {
    world: World,
    tree: Arc<MemoryTree>,
    handles: Vec<Vec<u8>>,
    removed: Vec<u8>,
    record: Record,
}

impl Kept {
    fn new() -> Self {
        let world = World::new(WorldOptions::seed(1));
        let disk = Disk::new(&world, 0, DiskOptions::default());
        let tree = MemoryTree::new(&world, &disk, BY_NAME);
        let volume = serve(&world, Arc::clone(&tree) as _, &tree);
        let record = Record::default();
        assert!(volume.keep_locations(&[], Arc::new(record.clone())), "there was nothing");
        let platform = world.platform();
        let made = world.run(async {
            let root = volume.mount(b"/").await.unwrap();
            let deep = make_directory(&volume, &make_directory(&volume, &root, "one").await, "two").await;
            let mut handles = vec![volume.handle(&deep).as_bytes().to_vec()];
            for number in 0..10 {
                handles.push(create(&volume, &deep, &format!("file {number}")).await);
            }
            let removed = create(&volume, &deep, "removed").await;
            volume.remove(&deep, b"removed").await.result.unwrap();
            volume.rename(&deep, b"file 3", &root, b"moved").await.0.result.unwrap();
            volume.rename(&root, b"one", &root, b"uno").await.0.result.unwrap();
            // The server writes new locations twice a second; then it is killed.
            platform.sleep_until(platform.now().after(Nanos::SECOND)).await;
            (handles, removed)
        });
        let (handles, removed) = made.unwrap_or_else(|error| panic!("{error}"));
        drop(volume);
        Self { world, tree, handles, removed, record }
    }

    /// A server that begins with `record` finds everything; returns the entries that its walks read.
    fn found_again(&self, record: &[u8], whole: Option<bool>) -> u64 {
        let entries = Arc::new(AtomicU64::new(0));
        let counting =
            Counting { tree: self.tree.reopened(BY_NAME), entries: Arc::clone(&entries), lists: Arc::default() };
        let volume = serve(&self.world, Arc::new(counting), &self.tree);
        let read = volume.keep_locations(record, Arc::new(Record::default()));
        assert_eq!(read, whole.unwrap_or(read));
        for handle in &self.handles {
            let found = self.world.run(volume.resolve(handle)).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(volume.handle(&found.unwrap()).as_bytes(), handle);
        }
        let gone = self.world.run(volume.resolve(&self.removed)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(gone.err(), Some(VolumeError::Stale));
        entries.load(Ordering::Relaxed)
    }
}

#[test]
fn what_was_recorded_is_found_by_the_next_server_without_a_walk() {
    let kept = Kept::new();
    assert_eq!(kept.found_again(&kept.record.bytes(), Some(true)), 0, "entries were read");
    assert!(kept.found_again(&[], Some(true)) > 0, "without a record it takes a walk");
}

#[test]
fn a_record_that_a_crash_cut_anywhere_or_a_disk_spoilt_is_used_as_far_as_it_is_good() {
    let kept = Kept::new();
    let record = kept.record.bytes();
    for len in (0..record.len()).step_by(7) {
        // After a cut between two entries nothing is missing.
        kept.found_again(&record[..len], None);
    }
    let mut spoilt = record.clone();
    spoilt[record.len() / 2] ^= 4;
    kept.found_again(&spoilt, Some(false));
    kept.found_again(b"something else altogether", Some(false));
}

#[test]
fn a_record_does_not_grow_with_the_number_of_changes() {
    let world = World::new(WorldOptions::seed(1));
    let disk = Disk::new(&world, 0, DiskOptions::default());
    let tree = MemoryTree::new(&world, &disk, BY_NAME);
    let volume = serve(&world, Arc::clone(&tree) as _, &tree);
    let record = Record::default();
    volume.keep_locations(&[], Arc::new(record.clone()));
    let platform = world.platform();
    let longest = world.run(async {
        let root = volume.mount(b"/").await.unwrap();
        create(&volume, &root, "here").await;
        let mut longest = 0;
        for round in 0..20_000 {
            let (from, to): (&[u8], &[u8]) = if round % 2 == 0 { (b"here", b"there") } else { (b"there", b"here") };
            volume.rename(&root, from, &root, to).await.0.result.unwrap();
            if round % 1_000 == 0 {
                platform.sleep_until(platform.now().after(Nanos::SECOND)).await;
                longest = longest.max(record.bytes().len());
            }
        }
        longest
    });
    // Some 50 bytes for each of 4,096 entries, and the additions of half a second.
    let longest = longest.unwrap();
    assert!(longest < 500_000, "{longest:?}");
}
