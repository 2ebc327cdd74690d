//! The number of memory pieces in a device's requests: each costs the kernel a vector and the pinning of its pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Device, Engine, Limits, Request};
use afflux_frames::Frames;
use afflux_linux_device::{IoChoice, Reactors};

const MIB: usize = 1 << 20;

/// Completes every request at once; counts pages and pieces of requests with memory.
#[derive(Default)]
struct Counts {
    limits: Limits,
    pages: AtomicUsize,
    pieces: AtomicUsize,
}

impl Device for Counts {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn submit(&self, request: Request) {
        let mut end = std::ptr::null_mut();
        for (start, len) in request.segments() {
            self.pieces.fetch_add(usize::from(start != end), Ordering::Relaxed);
            self.pages.fetch_add(len / 4096, Ordering::Relaxed);
            end = start.wrapping_add(len);
        }
        request.complete(Ok(()));
    }

    fn free_bytes_hint(&self) -> u64 {
        u64::MAX
    }
}

impl Counts {
    fn take(&self) -> (usize, usize) {
        (self.pages.swap(0, Ordering::Relaxed), self.pieces.swap(0, Ordering::Relaxed))
    }
}

#[test]
fn neighbours_in_a_file_are_neighbours_in_memory_where_the_arena_has_them() {
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let engine = Engine::new(Arc::new(platform.clone()), Settings::new(), Frames::new(64 << 20).unwrap());
    let device =
        Arc::new(Counts { limits: Limits { request_bytes_max: MIB as u32, ..Limits::default() }, ..Counts::default() });
    let id = engine.add_device("counts", Arc::clone(&device) as Arc<dyn Device>);
    // The thread may move to another CPU with other free frames, which makes a few pieces more.
    let is_together = |(pages, pieces): (usize, usize)| pages >= 4 * MIB / 4096 && pieces <= pages / 8;

    let written = engine.open(id, Backing::new(Arc::new(())), 0);
    platform.block_on(async {
        for at in 0..4 {
            engine.write(&written, at * MIB as u64, &vec![7; MIB]).await.unwrap();
        }
        engine.sync(&written, 0..u64::MAX).await.unwrap();
    });
    let counted = device.take();
    assert!(is_together(counted), "written: pages and pieces {counted:?}");

    let read = engine.open(id, Backing::new(Arc::new(())), 4 * MIB as u64);
    platform.block_on(async {
        let mut buffer = vec![0; 4 * MIB];
        engine.read(&read, 0, &mut buffer).await.unwrap();
    });
    let counted = device.take();
    assert!(is_together(counted), "read: pages and pieces {counted:?}");
}
