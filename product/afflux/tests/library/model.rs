//! Long random runs through every call, against a model of the file and against the host's file at the end, as fsx
//! does.
//!
//! A run is its seed. `AFFLUX_MODEL_RUNS` sets the number of runs; 250 are 100,000 operations.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};

use afflux::{Advice, Cache, File, OpenOptions};

const FILE_BYTES_MAX: u64 = 700_000;
const OPERATION_BYTES_MAX: u64 = 90_000;
const STEPS: u32 = 400;

struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }

    /// Mostly small, often on a page's edge or beside it.
    fn offset(&mut self, below: u64) -> u64 {
        let offset = self.next(below.max(1));
        match self.next(4) {
            0 => offset / 4096 * 4096,
            1 => (offset / 4096 * 4096 + 1).min(below),
            2 => (offset / 512 * 512).saturating_sub(1),
            _ => offset,
        }
    }
}

/// The expected contents of the file.
#[derive(Default)]
struct Model(Vec<u8>);

impl Model {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.0.resize(self.0.len().max(at + bytes.len()), 0);
            self.0[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn read(&self, at: usize, len: usize) -> &[u8] {
        let end = (at + len).min(self.0.len());
        &self.0[at.min(end)..end]
    }
}

struct Run {
    numbers: Numbers,
    model: Model,
    offset: tempfile::TempDir,
    memory: u64,
    cache: Option<Cache>,
    files: Vec<File>,
    mark: u8,
    seed: u64,
    step: u32,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let memory = [1 << 20, 1 << 20, 2 << 20, 16 << 20][numbers.next(4) as usize];
        let offset = tempfile::tempdir().unwrap();
        let mut run = Self {
            numbers,
            model: Model::default(),
            offset,
            memory,
            cache: None,
            files: Vec::new(),
            mark: 0,
            seed,
            step: 0,
        };
        run.open_cache();
        run
    }

    fn open_cache(&mut self) {
        let cache = Cache::builder().memory(self.memory).reactors(1 + self.numbers.next(2) as usize).build().unwrap();
        self.cache = Some(cache);
        self.open();
    }

    fn open(&mut self) {
        let options = OpenOptions::new().read(true).write(true).create(true);
        let cache = self.cache.as_ref().unwrap();
        self.files.push(cache.open(self.offset.path().join("file"), options).unwrap());
    }

    fn file(&mut self) -> File {
        let at = self.numbers.next(self.files.len() as u64) as usize;
        self.files[at].clone()
    }

    fn check(&self, what: &str, at: usize, got: &[u8], len: usize) {
        let want = self.model.read(at, len);
        let differs = got.iter().zip(want).position(|(got, want)| got != want);
        let (seed, step) = (self.seed, self.step);
        assert!(
            differs.is_none() && got.len() == want.len(),
            "seed {seed}, step {step}: {what} of {len} bytes at {at} got {} of {}, the first that differs: {differs:?}, \
             {:?} for {:?}, {} in all",
            got.len(),
            want.len(),
            differs.map(|at| got[at]),
            differs.map(|at| want[at]),
            got.iter().zip(want).filter(|(got, want)| got != want).count()
        );
    }

    fn step(&mut self) {
        let (file, kind) = (self.file(), self.numbers.next(100));
        let at = self.numbers.offset(FILE_BYTES_MAX - OPERATION_BYTES_MAX);
        let len = self.numbers.offset(OPERATION_BYTES_MAX) as usize;
        self.mark = self.mark % 250 + 1;
        match kind {
            0..25 => self.read(&file, at, len),
            25..60 => self.write(&file, at, len),
            60..66 => self.reshape(&file, at, len as u64),
            66..76 => self.sync(&file, at, len as u64),
            76..80 => {
                let advice = [Advice::Normal, Advice::Sequential, Advice::Random, Advice::DontNeed, Advice::WillNeed];
                let advice = advice[self.numbers.next(5) as usize];
                file.advise(at..at + len as u64, advice).unwrap();
            }
            80..84 => drop(self.cache.as_ref().unwrap().drop_clean_pages()),
            84..88 => self.open(),
            88..93 if self.files.len() > 1 => drop(self.files.swap_remove(0)),
            93..95 => {
                self.files.clear();
                self.open();
            }
            95 => {
                drop(file);
                self.end();
            }
            _ => assert_eq!(file.metadata().unwrap().len(), self.model.0.len() as u64),
        }
        assert_eq!(self.files[0].len(), self.model.0.len() as u64, "seed {}, step {}", self.seed, self.step);
    }

    fn read(&mut self, file: &File, at: u64, len: usize) {
        let mut into = vec![0xee; len];
        let form = self.numbers.next(7);
        let count = match form {
            0 | 1 => file.read_at(&mut into, at).unwrap(),
            2 => smol::block_on(file.read_at_async(&mut into, at)).unwrap(),
            3 => match file.try_read_at(&mut into, at) {
                Ok(count) => count,
                Err(error) => return assert_eq!(error.kind(), ErrorKind::WouldBlock),
            },
            4 => {
                let (one, two) = into.split_at_mut(len / 3);
                file.read_vectored_at(&mut [IoSliceMut::new(one), IoSliceMut::new(two)], at).unwrap()
            }
            5 => {
                let pages = file.read_pinned(at..at + len as u64).unwrap();
                return self.check("read_pinned", at as usize, &pages.to_vec(), len);
            }
            _ => {
                let mut stream = file.stream();
                stream.seek(SeekFrom::Start(at)).unwrap();
                into.clear();
                stream.take(len as u64).read_to_end(&mut into).unwrap()
            }
        };
        self.check("a read", at as usize, &into[..count], len);
    }

    fn write(&mut self, file: &File, at: u64, len: usize) {
        let from: Vec<u8> = (0..len).map(|byte| self.mark.wrapping_add((byte / 512) as u8)).collect();
        let end = self.model.0.len() as u64;
        let at = match self.numbers.next(8) {
            0 | 1 => file.write_at(&from, at).map(|()| at).unwrap(),
            2 => smol::block_on(file.write_at_async(&from, at)).map(|()| at).unwrap(),
            3 => match file.try_write_at(&from, at) {
                Ok(()) => at,
                // Some of them may have been written: writing all of them again completes it.
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    file.write_at(&from, at).map(|()| at).unwrap()
                }
            },
            4 => {
                let (one, two) = from.split_at(len / 3);
                file.write_vectored_at(&[IoSlice::new(one), IoSlice::new(two)], at).map(|()| at).unwrap()
            }
            5 if end + (len as u64) < FILE_BYTES_MAX => file.append(&from).unwrap(),
            6 if end + (len as u64) < FILE_BYTES_MAX => smol::block_on(file.append_async(&from)).unwrap(),
            _ => {
                let mut stream = file.stream();
                stream.seek(SeekFrom::Start(at)).unwrap();
                stream.write_all(&from).map(|()| at).unwrap()
            }
        };
        self.model.write(at as usize, &from);
    }

    fn reshape(&mut self, file: &File, at: u64, len: u64) {
        if self.numbers.next(2) == 0 {
            if self.numbers.next(2) == 0 {
                file.set_len(at).unwrap();
            } else {
                smol::block_on(file.set_len_async(at)).unwrap();
            }
            self.model.0.resize(at as usize, 0);
        } else {
            file.punch_hole(at..at + len).unwrap();
            let end = self.model.0.len();
            self.model.0[end.min(at as usize)..end.min((at + len) as usize)].fill(0);
        }
    }

    fn sync(&mut self, file: &File, at: u64, len: u64) {
        match self.numbers.next(5) {
            0 => file.sync_data().unwrap(),
            1 => file.sync_all().unwrap(),
            2 => self.cache.as_ref().unwrap().drain().unwrap(),
            3 => smol::block_on(file.sync_data_async()).unwrap(),
            _ => return file.sync_range(at..at + len).unwrap(),
        }
        let host = std::fs::read(self.offset.path().join("file")).unwrap();
        self.check("the host's file after a sync", 0, &host, host.len().max(self.model.0.len()));
    }

    /// The cache ends, by a close or by drops, and another begins.
    fn end(&mut self) {
        let cache = self.cache.take().unwrap();
        if self.numbers.next(2) == 0 {
            cache.close().unwrap();
            self.files.clear();
        } else {
            self.files.clear();
            drop(cache);
        }
        let host = std::fs::read(self.offset.path().join("file")).unwrap();
        self.check("the host's file after the end", 0, &host, host.len().max(self.model.0.len()));
        self.open_cache();
    }
}

#[test]
fn every_call_does_what_the_model_does() {
    let runs = std::env::var("AFFLUX_MODEL_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(8);
    let first = std::env::var("AFFLUX_MODEL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in first..first + runs {
        let mut run = Run::new(seed);
        for step in 0..STEPS {
            run.step = step;
            run.step();
        }
        run.end();
    }
}
