//! A number of hits and nothing else, to be counted by callgrind: `hit_instructions KIND COUNT`.
//!
//! KIND is `none`, `read`, `overwrite` or `pinned`. Each hit moves 64 bytes of a 256-page file, so that the count
//! covers the way to the bytes and not the copy. A pinned hit looks at the first of the bytes, and lets go. To leave
//! start and end out, count two runs and divide the difference by the difference of COUNT.
#![allow(clippy::unwrap_used, missing_docs, reason = "a measured program")]

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Engine};
use afflux_frames::Frames;
use afflux_linux_device::{Caching, HostDevice, HostFile, IoChoice, Reactors};

const PAGES: u64 = 256;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, kind, count] = &arguments[..] else { panic!("hit_instructions none|read|overwrite|pinned COUNT") };
    let count: u64 = count.parse().unwrap();
    let directory = std::env::temp_dir();
    let path = directory.join(format!("afflux-hits-{}", std::process::id()));
    let host = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    // System calls instead of a ring: valgrind knows them all.
    let reactors = Reactors::start(1, IoChoice::Syscalls).unwrap();
    let platform = reactors.platform();
    let directory: OwnedFd = File::open(directory).unwrap().into();
    let device = HostDevice::new(&platform, directory, Caching::Auto).unwrap();
    let mut settings = Settings::new();
    for knob in ["dirty_background_ratio=100", "dirty_expire_centisecs=360000"] {
        settings.set_text(knob).unwrap();
    }
    let engine = Engine::new(Arc::new(platform.clone()), settings, Frames::new(16 << 20).unwrap());
    let id = engine.add_device("hits", device);
    let file = engine.open(id, Backing::new(Arc::new(HostFile::new(host.into()))), 0);
    let mut bytes = [1_u8; 64];
    for page in 0..PAGES {
        platform.block_on(engine.write(&file, page * 4096, &[7; 4096])).unwrap();
    }
    for at in 0..count {
        let offset = (at * 37 % PAGES) * 4096 + at % 61;
        match kind.as_str() {
            "read" => assert_eq!(engine.try_read(&file, offset, &mut bytes), Some(64)),
            "overwrite" => assert_eq!(engine.try_write(&file, offset, &bytes), Some(())),
            "pinned" => {
                let shown = engine.try_read_pinned(&file, offset, 64).unwrap();
                assert!(shown.as_slice().unwrap()[0] < 8);
            }
            _ => drop(std::hint::black_box(offset)),
        }
    }
    engine.discard(&file);
}
