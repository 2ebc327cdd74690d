//! Random work with faults, outages and kills, against the reference model.
//!
//! rule: 2: after a kill the store has each write that a sync covered, through faults and outages

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use afflux_engine::File;
use afflux_object::{Compression, PlatformClock, check};
use afflux_reference::{Ending, FileModel};
use afflux_simulator::{ObjectContents, Random, StoreFaults, StoreOptions};

use crate::fixture::{Inside, MIB, MILLISECOND, Machine, MachineOptions, SECOND, bytes};

const SEEDS: u64 = 40;
const FILES: u64 = 3;
const FILE_BYTES: u64 = 3 << 20;
const CLIENTS: u64 = 3;
const LIVES: u64 = 4;

/// A file under test. Each life of a machine has files of its own.
struct ModelledFile {
    file: File,
    model: Mutex<FileModel>,
}

struct Work {
    here: Arc<Inside>,
    files: Vec<ModelledFile>,
    random: Mutex<Random>,
    syncs: Mutex<u64>,
}

impl Work {
    fn below(&self, end: u64) -> u64 {
        self.random.lock().unwrap().below(end)
    }

    async fn client(self: Arc<Self>) {
        loop {
            let chosen = &self.files[self.below(FILES) as usize];
            self.operation(chosen).await;
            self.here.sleep(self.below(100 * MILLISECOND)).await;
        }
    }

    async fn operation(&self, chosen: &ModelledFile) {
        let ModelledFile { file, model } = chosen;
        let engine = &self.here.engine;
        let (offset, length) = (self.below(FILE_BYTES), 1 + self.below(1 << self.below(19)));
        match self.below(20) {
            0..10 => {
                let version = 1 + (self.random.lock().unwrap().bits() >> 40);
                let change = model.lock().unwrap().begin_write(offset, length, version);
                let written = engine.write(file, offset, &bytes(version, offset, length as usize)).await;
                assert_eq!(written, Ok(()));
                model.lock().unwrap().end(change, Ending::Done);
            }
            10 => {
                let change = model.lock().unwrap().begin_set_size(offset);
                assert_eq!(engine.set_size(file, offset).await, Ok(()));
                model.lock().unwrap().end(change, Ending::Done);
            }
            11 => {
                let change = model.lock().unwrap().begin_punch(offset, length);
                assert_eq!(engine.punch(file, offset..offset + length).await, Ok(()));
                model.lock().unwrap().end(change, Ending::Done);
            }
            12..16 => {
                let (since, mut into) = (model.lock().unwrap().look(), vec![0; length as usize]);
                let count = engine.read(file, offset, &mut into).await.unwrap();
                let checked = model.lock().unwrap().check_read(since, offset, length, &into[..count]);
                checked.unwrap_or_else(|wrong| panic!("{}", wrong.what));
            }
            16..19 => {
                let since = model.lock().unwrap().look();
                assert_eq!(engine.sync(file, 0..u64::MAX).await, Ok(()));
                model.lock().unwrap().note_synced(since, 0, u64::MAX);
                *self.syncs.lock().unwrap() += 1;
            }
            _ => drop(engine.drop_clean_pages()),
        }
    }

    /// Makes trouble, up to the kill.
    async fn life(&self) {
        let end_ns = self.here.now_ns() + SECOND + self.below(60 * SECOND);
        while self.here.now_ns() < end_ns {
            self.here.sleep(self.below(20 * SECOND)).await;
            match self.below(3) {
                0 => self.here.store.be_away(self.below(90 * SECOND)),
                1 => drop(self.here.engine.drop_clean_pages()),
                _ => (),
            }
        }
    }
}

/// The whole file as the store has it.
async fn stored(here: &Inside, ino: u64) -> Vec<u8> {
    let size = here.volume.body(ino).await.unwrap().size;
    let (file, mut all) = (here.open(ino, size), vec![0; size as usize]);
    assert_eq!(here.engine.read(&file, 0, &mut all).await, Ok(size as usize));
    all
}

fn store_of(random: &mut Random) -> StoreOptions {
    let faults = StoreFaults { busy: random.below(60), lost: random.below(20), unanswered: random.below(30), late: 10 };
    StoreOptions {
        round_trip_ns: MILLISECOND + random.below(150 * MILLISECOND),
        spread_per_mille: 300,
        call_bytes_per_second: 1_000_000 + random.below(100_000_000),
        bytes_per_second: 2_000_000 + random.below(500_000_000),
        faults,
        ..StoreOptions::default()
    }
}

/// Each life stores its bytes in its own form, and reads those of the lives before.
const COMPRESSIONS: [Compression; 3] = [Compression::Zstd(1), Compression::None, Compression::Lz4];

/// Runs lives of machines over one store. Returns the number of syncs.
fn run(seed: u64) -> u64 {
    let (contents, mut random, mut syncs) = (ObjectContents::default(), Random::new(seed), 0);
    let mut kept: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for life in 0..LIVES {
        let (machine_seed, store) = (random.bits(), store_of(&mut random));
        let compression = COMPRESSIONS[(seed + life) as usize % COMPRESSIONS.len()];
        let options = MachineOptions {
            seed: machine_seed,
            memory: 16 * MIB,
            store,
            dead_ns: 2 * SECOND,
            collects: true,
            compression,
        };
        let machine = Machine::new(&contents, options);
        let here = Arc::clone(&machine.here);
        for (ino, bytes) in &kept {
            assert!(machine.run(stored(&here, *ino)) == *bytes, "seed {seed}, life {life}: file {ino} changed");
        }
        let inos = (1..=FILES).map(|number| life * 10 + number);
        let files =
            inos.clone().map(|ino| ModelledFile { file: here.open(ino, 0), model: Mutex::new(FileModel::new(0, 1)) });
        let work = Arc::new(Work {
            here: Arc::clone(&here),
            files: files.collect(),
            random: Mutex::new(random.fork(life)),
            syncs: Mutex::default(),
        });
        (0..CLIENTS).for_each(|_| machine.world.spawn("client", Arc::clone(&work).client()));
        machine.run(work.life());
        drop((machine, here));
        let quiet = StoreOptions { round_trip_ns: MILLISECOND, ..StoreOptions::default() };
        let after = Machine::new(&contents, MachineOptions { seed, store: quiet, ..MachineOptions::default() });
        let here = Arc::clone(&after.here);
        for (ino, ModelledFile { model, .. }) in inos.zip(&work.files) {
            let (bytes, model) = (after.run(stored(&here, ino)), model.lock().unwrap());
            let checked = model.check_crashed_size(bytes.len() as u64).and_then(|()| model.check_crashed(0, &bytes));
            checked.unwrap_or_else(|wrong| panic!("seed {seed}, life {life}, file {ino}: {}", wrong.what));
            kept.insert(ino, bytes);
        }
        let clock = PlatformClock(Arc::clone(&here.platform));
        let report = after.run(check(&here.store, here.volume.records(), &clock)).unwrap();
        assert!(report.is_sound(), "seed {seed}, life {life}: {report:?}");
        syncs += *work.syncs.lock().unwrap();
    }
    syncs
}

#[test]
fn committed_data_survives_kills_and_no_byte_is_wrong() {
    survives(0..SEEDS);
}

#[test]
#[ignore = "minutes"]
fn committed_data_survives_kills_with_other_seeds() {
    survives(SEEDS..20 * SEEDS);
}

fn survives(seeds: Range<u64>) {
    let count = seeds.end - seeds.start;
    let syncs: u64 = seeds.map(run).sum();
    println!("{count} seeds: {syncs} syncs answered");
    assert!(syncs > 20 * count, "too little happened: {syncs} syncs");
}

#[test]
fn a_seed_gives_the_same_lives_twice() {
    assert_eq!(run(1000), run(1000));
}
