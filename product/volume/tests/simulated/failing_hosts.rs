//! A host that fails for a moment while an object is looked for: the object lives, and no call says otherwise.

use std::sync::Arc;

use afflux_engine::{Nanos, Platform};
use afflux_simulator::{Disk, DiskOptions, MemoryTree, World, WorldOptions};
use afflux_volume::VolumeError;

use crate::stale_handles::{BY_NAME, Counting, Files, Lists, create, make_directory, serve};

/// EMFILE, EIO and EACCES.
const ERRORS: [VolumeError; 3] = [VolumeError::NoMemory, VolumeError::Io { errno: 5 }, VolumeError::Denied];

struct Lab {
    world: World,
    tree: Arc<MemoryTree>,
    handles: Vec<Vec<u8>>,
}

impl Lab {
    fn new() -> Self {
        let world = World::new(WorldOptions::seed(1));
        let disk = Disk::new(&world, 0, DiskOptions::default());
        let tree = MemoryTree::new(&world, &disk, BY_NAME);
        let volume = serve(&world, Arc::clone(&tree) as _, &tree);
        let made = world.run(async {
            let root = volume.mount(b"/").await.unwrap();
            let mut handles = Vec::new();
            for name in ["one", "two"] {
                let directory = make_directory(&volume, &root, name).await;
                let deep = make_directory(&volume, &directory, "deep").await;
                handles.push(create(&volume, &directory, "file").await);
                handles.push(create(&volume, &deep, "file").await);
            }
            handles
        });
        let handles = made.unwrap_or_else(|error| panic!("{error}"));
        drop(volume);
        Self { world, tree, handles }
    }

    /// A server that knows no location yet.
    fn restarted(&self) -> (Arc<Files>, Arc<Lists>) {
        let lists = Arc::new(Lists::default());
        let counting =
            Counting { tree: self.tree.reopened(BY_NAME), entries: Arc::default(), lists: Arc::clone(&lists) };
        (serve(&self.world, Arc::new(counting), &self.tree), lists)
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.world.run(future).unwrap_or_else(|error| panic!("{error}"))
    }
}

// rule: an error of the host is not the absence of an object: a handle is stale only if the object is gone
#[test]
fn an_object_outlives_the_failure_of_any_look_at_its_directories() {
    let lab = Lab::new();
    let mut failed = 0;
    // Without known locations, and with those that an earlier search has left.
    for searched_before in [false, true] {
        for error in ERRORS {
            for handle in &lab.handles {
                for before in 0.. {
                    let (volume, lists) = lab.restarted();
                    if searched_before {
                        // The search for one object records the locations of all that it sees on the way.
                        let first = if *handle == lab.handles[0] { 1 } else { 0 };
                        lab.run(volume.resolve(&lab.handles[first])).unwrap();
                    }
                    lists.fail_after(before, error.clone());
                    let first = lab.run(volume.resolve(handle));
                    if lists.has_fault_left() {
                        first.unwrap();
                        break;
                    }
                    failed += 1;
                    if let Err(told) = first {
                        assert_eq!(told, error);
                    }
                    let again = lab.run(volume.resolve(handle)).unwrap();
                    assert_eq!(volume.handle(&again).as_bytes(), handle);
                }
            }
        }
    }
    assert!(failed > 50, "{failed} looks failed");
}

#[test]
fn an_object_that_is_gone_is_stale_once_everything_was_seen() {
    let lab = Lab::new();
    let (volume, _) = lab.restarted();
    let gone = lab.run(async {
        let root = volume.mount(b"/").await.unwrap();
        let gone = create(&volume, &root, "gone").await;
        volume.remove(&root, b"gone").await.result.unwrap();
        gone
    });
    let (volume, lists) = lab.restarted();
    lists.fail_after(1, VolumeError::NoMemory);
    assert_eq!(lab.run(volume.resolve(&gone)).err(), Some(VolumeError::NoMemory));
    assert_eq!(lab.run(volume.resolve(&gone)).err(), Some(VolumeError::Stale));
    let platform = lab.world.platform();
    lab.run(platform.sleep_until(platform.now().after(60 * Nanos::SECOND)));
    assert_eq!(lab.run(volume.resolve(&gone)).err(), Some(VolumeError::Stale));
}
