//! A stream of a real file, larger than the cache, by a task that finds nearly all of it read ahead. Such a reader
//! never yields its thread, on which background reclaim would run.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Arc, mpsc};

use afflux_engine::counters::Counter;
use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Engine, Platform};
use afflux_frames::Frames;
use afflux_linux_device::{Caching, HostDevice, HostFile, IoChoice, Reactors};
use afflux_scratch::Scratch;

const PAGE: u64 = 4096;
const CALL: usize = 128 << 10;
const FILE_BYTES: u64 = 96 << 20;
const CACHE_BYTES: u64 = 16 << 20;

#[test]
fn a_stream_is_read_ahead_of_once_the_cache_is_full_too() {
    let scratch = Scratch::new(&std::env::temp_dir(), "stream").unwrap();
    let path = scratch.path().join("file");
    let mut host = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    let block: Vec<u8> = (0..1 << 20).map(|at| (at * 7 % 251) as u8).collect();
    (0..FILE_BYTES >> 20).for_each(|_| host.write_all(&block).unwrap());
    host.sync_all().unwrap();
    let reactors = Reactors::start(1, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let directory = std::fs::File::open(scratch.path()).unwrap().into();
    let device = HostDevice::new(&platform, directory, Caching::Auto).unwrap();
    drop(scratch);
    let engine = Engine::new(Arc::new(platform.clone()), Settings::new(), Frames::new(CACHE_BYTES).unwrap());
    let id = engine.add_device("disk", device);
    let file = engine.open(id, Backing::new(Arc::new(HostFile::new(host.into()))), FILE_BYTES);
    let (ended, has_ended) = mpsc::channel();
    platform.spawn("reader", {
        let engine = Arc::clone(&engine);
        async move {
            let mut into = vec![0; CALL];
            for offset in (0..FILE_BYTES).step_by(CALL) {
                assert_eq!(engine.read(&file, offset, &mut into).await, Ok(CALL));
                assert_eq!(into[..251], block[offset as usize % block.len()..][..251]);
            }
            ended.send(()).unwrap();
        }
    });
    has_ended.recv().unwrap();
    let count = |counter| platform.counters().get(counter);
    let (requests, pages) = (count(Counter::ReadRequests), count(Counter::PageIn) / PAGE);
    let call_pages = CALL as u64 / PAGE;
    assert!(pages / requests >= 2 * call_pages, "{requests} requests for {pages} pages: it reads as it is called");
}
