//! A stream into a new file, through the engine and on to a real disk: bytes a second until all of it is durable.
//!
//! Prints the rate of each round, and the number of requests that carried the bytes. Run it by turns with a program
//! that writes the same disk past the host's page cache (fio). Options: the directory; `--mib N` a round; `--rounds N`;
//! `--call KIB` of one write; and knobs of the engine, as `writeback_depth=32`.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use afflux_engine::counters::Counter;
use afflux_engine::settings::Settings;
use afflux_engine::{Backing, Engine, Platform};
use afflux_frames::Frames;
use afflux_linux_device::{Caching, HostDevice, HostFile, IoChoice, Reactors};
use afflux_scratch::Scratch;

struct Options {
    directory: String,
    mib: u64,
    rounds: u32,
    call_kib: usize,
    knobs: Vec<String>,
}

impl Options {
    fn read() -> Self {
        let mut options = Self { directory: String::new(), mib: 512, rounds: 5, call_kib: 1024, knobs: Vec::new() };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut number = || words.next().unwrap().parse::<u64>().unwrap();
            match word.as_str() {
                "--mib" => options.mib = number(),
                "--rounds" => options.rounds = number() as u32,
                "--call" => options.call_kib = number() as usize,
                // Cargo says so.
                "--bench" => {}
                _ if word.contains('=') => options.knobs.push(word),
                _ => options.directory = word,
            }
        }
        if options.directory.is_empty() {
            options.directory = std::env::temp_dir().to_str().unwrap().to_owned();
        }
        options
    }
}

fn main() {
    let options = Options::read();
    let reactors = Reactors::start(2, IoChoice::Auto).unwrap();
    let platform = reactors.platform();
    let mut settings = Settings::new();
    for knob in &options.knobs {
        settings.set_text(knob).unwrap();
    }
    let engine = Engine::new(Arc::new(platform.clone()), settings, Frames::new(1 << 30).unwrap());
    let directory = std::fs::File::open(&options.directory).unwrap();
    let device = HostDevice::new(&platform, directory.into(), Caching::Auto).unwrap();
    println!("{}, {}", options.directory, device.describe());
    let device = engine.add_device("disk", device);
    let piece = vec![7; options.call_kib << 10];
    let files = Scratch::new(Path::new(&options.directory), "stream").unwrap();
    let path = files.path().join("stream");
    for round in 0..options.rounds {
        let made = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        let file = engine.open(device, Backing::new(Arc::new(HostFile::new(made.into()))), 0);
        let counted = |counter| platform.counters().get(counter);
        let (requests, bytes) = (counted(Counter::WriteRequests), counted(Counter::PageOut));
        let began = Instant::now();
        platform.block_on(async {
            for at in (0..options.mib << 20).step_by(piece.len()) {
                engine.write(&file, at, &piece).await.unwrap();
            }
            engine.sync(&file, 0..u64::MAX).await.unwrap();
        });
        let took = began.elapsed().as_secs_f64();
        let (requests, bytes) = (counted(Counter::WriteRequests) - requests, counted(Counter::PageOut) - bytes);
        let rate = (options.mib << 20) as f64 / 1e6 / took;
        println!("round {round}: {rate:>8.1} MB/s, {requests} requests of {} KiB", (bytes / requests.max(1)) >> 10);
        engine.discard(&file);
        drop(file);
        std::fs::remove_file(&path).unwrap();
    }
}
