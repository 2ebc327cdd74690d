//! Listing large directories: the cost of finding a cookie, counted in reads of the directory, and the waits.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use afflux_simulator::{Disk, DiskOptions, MemoryTree, SimPlatform, TreeOptions, World, WorldOptions};
use afflux_volume::{AttributeChange, CreateHow, Directory, Inode, Listing, New, Volume, VolumeError};
use bytes::Bytes;
use futures_util::future::join_all;

use crate::stale_handles::{Counting, Lists, serve};

/// More names than a window has at first.
const NAMES: u64 = 70_000;

struct ListingFixture {
    world: World,
    volume: Arc<Volume<SimPlatform>>,
    lists: Arc<Lists>,
}

impl ListingFixture {
    fn new(names: u64) -> Self {
        let world = World::new(WorldOptions::seed(7));
        let disk = Disk::new(&world, 0, DiskOptions::default());
        let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
        let filled = world.run(async {
            let root = &tree.exports()[0].root.node;
            for number in 0..names {
                let name = Bytes::from(format!("name {number}"));
                tree.create(root, name, New::Regular, AttributeChange::default(), false).await.unwrap();
            }
        });
        filled.unwrap();
        let lists = Arc::new(Lists::default());
        let counting =
            Counting { tree: Arc::clone(&tree), entries: Arc::new(AtomicU64::new(0)), lists: Arc::clone(&lists) };
        let volume = serve(&world, Arc::new(counting), &tree);
        volume.set_names_durable(false);
        Self { world, volume, lists }
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.world.run(future).unwrap_or_else(|error| panic!("{error}"))
    }

    fn root(&self) -> Arc<Inode<SimPlatform>> {
        self.run(self.volume.mount(b"/")).unwrap()
    }

    async fn create(&self, directory: &Arc<Inode<SimPlatform>>, name: &str) {
        let how = CreateHow::Guarded(AttributeChange::default());
        self.volume.create(directory, name.as_bytes(), how).await.result.unwrap();
    }
}

#[test]
fn any_cookie_of_a_large_directory_is_found_without_reading_it_again() {
    let lab = ListingFixture::new(NAMES);
    let root = lab.root();
    let all = lab.run(async {
        let (mut cookie, mut all) = (0, BTreeSet::new());
        loop {
            let listing = lab.volume.list(&root, cookie, 1_000, false).await.unwrap();
            all.extend(listing.entries.iter().map(|entry| (entry.cookie, entry.name.clone())));
            cookie = listing.entries.last().map_or(cookie, |last| last.cookie);
            if listing.end {
                return all;
            }
        }
    });
    assert_eq!(all.len() as u64, NAMES + 2, "every name once, and the two dots");
    lab.lists.count.store(0, Ordering::Relaxed);
    let cookies: Vec<_> = all.iter().map(|(cookie, _)| *cookie).collect();
    lab.run(async {
        // At scattered places, out of order.
        for step in 0..200 {
            let at = 2 + (step * 7_919) % (cookies.len() - 3);
            let listing = lab.volume.list(&root, cookies[at], 1, false).await.unwrap();
            assert!(listing.entries[0].cookie > cookies[at] && listing.entries[0].cookie <= cookies[at + 1]);
            lab.create(&root, &format!("new {step}")).await;
        }
    });
    let lists = lab.lists.count.load(Ordering::Relaxed);
    assert!(lists <= 2, "read {lists} times for 200 cookies");
}

#[test]
fn names_are_made_and_taken_while_the_directory_is_read() {
    let lab = ListingFixture::new(100);
    let root = lab.root();
    // The volume learns that another server filled the directory.
    lab.run(lab.create(&root, "first"));
    lab.lists.hold(true);
    let mut listing = Box::pin(lab.volume.list(&root, 0, 10, false));
    lab.run(async {
        // The listing has begun and is held.
        let begun = std::future::poll_fn(|cx| std::task::Poll::Ready(listing.as_mut().poll(cx).is_pending()));
        assert!(begun.await);
        while lab.lists.count.load(Ordering::Relaxed) == 0 {
            std::future::poll_fn(|cx| {
                assert!(listing.as_mut().poll(cx).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
        }
        lab.create(&root, "made meanwhile").await;
        lab.volume.remove(&root, b"name 5").await.result.unwrap();
    });
    lab.lists.hold(false);
    let mut cookie = lab.run(listing).unwrap().entries.last().unwrap().cookie;
    // The rest of the listing comes from memory, with the changes.
    let lists = lab.lists.count.load(Ordering::Relaxed);
    let mut names = BTreeSet::new();
    lab.run(async {
        loop {
            let listing = lab.volume.list(&root, cookie, 10, false).await.unwrap();
            names.extend(listing.entries.iter().map(|entry| entry.name.clone()));
            cookie = listing.entries.last().map_or(cookie, |last| last.cookie);
            if listing.end {
                return;
            }
        }
    });
    assert_eq!(lab.lists.count.load(Ordering::Relaxed), lists, "it was not read again");
    assert!(!names.contains(&b"name 5"[..]), "it was taken");
}

type Listed<'a> = Pin<Box<dyn Future<Output = Result<Listing, VolumeError>> + 'a>>;

impl ListingFixture {
    /// A listing that begins anew.
    fn begin<'a>(&'a self, root: &'a Arc<Inode<SimPlatform>>) -> Listed<'a> {
        Box::pin(self.volume.list(root, 0, 10, false))
    }

    /// Polls a listing until as many reads have begun.
    fn poll(&self, listing: &mut Listed<'_>, reads: u64) {
        self.run(async {
            while self.reads() < reads {
                pend(listing).await;
            }
        });
    }

    fn reads(&self) -> u64 {
        self.lists.count.load(Ordering::Relaxed)
    }
}

/// Polls a listing once. It is not done.
async fn pend(listing: &mut Listed<'_>) {
    let begun = poll_fn(|cx| Poll::Ready(listing.as_mut().poll(cx).is_pending()));
    assert!(begun.await, "it is done");
}

#[test]
fn listings_that_begin_at_once_share_a_read_of_a_large_directory() {
    let lab = ListingFixture::new(NAMES);
    let root = lab.root();
    lab.run(lab.begin(&root)).unwrap();
    assert_eq!(lab.reads(), 2, "the first window was too small");
    lab.lists.hold(true);
    let mut first = lab.begin(&root);
    lab.poll(&mut first, 3);
    let mut others: Vec<_> = (0..20).map(|_| lab.begin(&root)).collect();
    lab.run(join_all(others.iter_mut().map(pend)));
    lab.lists.hold(false);
    lab.run(first).unwrap();
    for listing in lab.run(join_all(others)) {
        assert_eq!(listing.unwrap().entries.len(), 10);
    }
    assert_eq!(lab.reads(), 4, "20 listings that began during a read");
}

#[test]
fn a_listing_that_waits_is_not_overtaken_by_a_later_one() {
    let lab = ListingFixture::new(NAMES);
    let root = lab.root();
    lab.run(lab.begin(&root)).unwrap();
    lab.lists.hold(true);
    let (mut first, mut second) = (lab.begin(&root), lab.begin(&root));
    lab.poll(&mut first, 3);
    lab.run(pend(&mut second));
    lab.lists.hold(false);
    lab.run(first).unwrap();
    lab.lists.hold(true);
    let mut late = lab.begin(&root);
    for _ in 0..10 {
        lab.run(pend(&mut late));
    }
    assert_eq!(lab.reads(), 3, "the late one reads before the one that waits");
    lab.poll(&mut second, 4);
    lab.lists.hold(false);
    lab.run(second).unwrap();
    lab.run(late).unwrap();
    assert_eq!(lab.reads(), 4, "the late one began before this read, and shares it");
}
