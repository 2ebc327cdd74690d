//! Models of the index for loom. A node has two slots there, so that little trees grow and reuse nodes.
//!
//! Owns: the models. Does not own: the index.
//! Invariants: one thread makes the changes, as under the file's lock.

use std::sync::Arc;

use loom::thread;

use super::*;
use crate::page::{DETACHED, PIN, PRESENT, PageIdentity, PageTable, UPTODATE};
use crate::sync;

struct World {
    pages: PageTable,
    nodes: Nodes,
    files: [Index; 2],
}

impl World {
    fn new() -> Self {
        Self { pages: PageTable::new(4), nodes: Nodes::on_heap(8), files: [Index::new(), Index::new()] }
    }

    /// Puts a page in a fresh frame, and the frame in its file's index.
    fn insert(&self, file: u32, page: u64, frame: u32) {
        let frame = FrameId::new(frame);
        self.pages.occupy(frame, PageIdentity { file, index: page }, PRESENT | UPTODATE);
        let index = &self.files[file as usize];
        let reserved = index.reserve_nodes(&self.nodes, page, || None).unwrap();
        index.insert(&self.nodes, page, frame, reserved);
    }

    fn remove(&self, file: u32, page: u64, frame: u32) {
        let frame = FrameId::new(frame);
        self.files[file as usize].remove(&self.nodes, page);
        let _ = self.pages.detach(frame);
        self.pages.try_release(frame);
    }

    /// The frame that a hit would read, if any.
    fn find(&self, file: u32, page: u64) -> Option<u32> {
        let frame = self.files[file as usize].lookup(&self.nodes, page)?;
        if !self.pages.contains(frame) {
            return None;
        }
        let found = self.pages.try_enter_reader(frame, PageIdentity { file, index: page });
        if self.pages.unhold(frame, PIN).has(DETACHED) {
            self.pages.try_release(frame);
        }
        found.then(|| frame.raw())
    }
}

#[test]
fn loom_a_lookup_through_a_reused_node_is_recognised() {
    sync::model(|| {
        let world = Arc::new(World::new());
        // Three levels, with the file's own nodes below the root.
        world.insert(0, 4, 3);
        let reader = Arc::clone(&world);
        let reader = thread::spawn(move || {
            let found = reader.find(0, 4);
            assert!(found.is_none_or(|frame| frame == 3), "{found:?}");
        });
        world.remove(0, 4, 3);
        // Reuses the nodes just freed, at other levels, with a frame whose number is a node's.
        world.insert(1, 2, 0);
        reader.join().unwrap();
        assert_eq!((world.find(0, 4), world.find(1, 2)), (None, Some(0)));
    });
}

#[test]
fn loom_a_lookup_through_a_frame_that_went_back_is_recognised() {
    sync::model(|| {
        let world = Arc::new(World::new());
        world.insert(0, 4, 3);
        let reader = Arc::clone(&world);
        let reader = thread::spawn(move || {
            let found = reader.find(0, 4);
            assert!(found.is_none_or(|frame| frame == 3), "{found:?}");
        });
        world.remove(0, 4, 3);
        // The nodes' frame went back to the arena with them. The frame holds a page's bytes: numbers of frames, of
        // nodes, and of neither. One of the frames holds the same page of another file.
        world.insert(1, 4, 1);
        for node in [1, 2] {
            world.nodes.scribble(node, |at| [2, 1 << 20][at]);
        }
        reader.join().unwrap();
        assert_eq!(world.find(0, 4), None);
    });
}

#[test]
fn loom_a_page_that_stays_is_found_while_the_tree_changes_around_it() {
    sync::model(|| {
        let world = Arc::new(World::new());
        world.insert(0, 0, 2);
        let reader = Arc::clone(&world);
        let reader = thread::spawn(move || assert_eq!(reader.find(0, 0), Some(2)));
        world.insert(0, 3, 1);
        world.remove(0, 3, 1);
        reader.join().unwrap();
    });
}

#[test]
fn loom_what_is_found_was_put_there_whole() {
    sync::model(|| {
        let world = Arc::new(World::new());
        world.insert(0, 0, 3);
        let reader = Arc::clone(&world);
        let reader = thread::spawn(move || {
            // Before the entry, in the middle of it or after it, a lookup finds the page or nothing. It never finds the
            // frame's earlier bytes.
            let frame = reader.files[0].lookup(&reader.nodes, 1);
            if let Some(frame) = frame {
                assert_eq!(reader.pages.identity(frame), PageIdentity { file: 0, index: 1 });
                assert!(reader.pages.word(frame).has(PRESENT | UPTODATE));
            }
        });
        world.insert(0, 1, 2);
        reader.join().unwrap();
    });
}
