//! The protocol machine fed with mutated calls, cut at every byte; and the corpus of `tests/fuzz/` again.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stderr, unreachable_pub, reason = "tests")]

#[path = "../../fuzz/harness.rs"]
mod harness;

use std::fs;
use std::path::Path;

use afflux_scratch::Scratch;
use harness::FuzzedServer;

/// Inputs fed to a server before it is replaced.
const FEEDINGS_MAX: u64 = 500;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Changes a stream in a few places; afterwards its first record mark mostly fits again.
fn mutate(stream: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    const WORDS: [u32; 10] = [0, 1, 2, 3, 64, 65, 0x7fff_ffff, 0x8000_0000, u32::MAX - 3, u32::MAX];
    for _ in 0..1 + random.below(4) {
        let at = random.below(stream.len());
        match random.below(7) {
            0 if !stream.is_empty() => stream[at] = random.next() as u8,
            1 if !stream.is_empty() => stream[at] ^= 1 << random.below(8),
            2 if stream.len() >= 4 => {
                let at = random.below(stream.len() / 4) * 4;
                stream[at..at + 4].copy_from_slice(&WORDS[random.below(WORDS.len())].to_be_bytes());
            }
            3 => stream.truncate(at),
            4 if stream.len() < 1 << 16 => stream.extend_from_within(at..),
            5 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len());
                stream.truncate(at);
                stream.extend_from_slice(&other[from..]);
            }
            6 if stream.len() < 1 << 16 => stream.extend_from_slice(&seeds[random.below(seeds.len())]),
            _ => {}
        }
    }
    if stream.len() > 4 && random.below(4) > 0 {
        // Without this most inputs would be no record at all. Some come in two fragments.
        let body = (stream.len() - 4) as u32;
        stream[..4].copy_from_slice(&(body | 1 << 31).to_be_bytes());
        if random.below(4) == 0 && body > 8 {
            let first = random.below(body as usize) as u32;
            stream[..4].copy_from_slice(&first.to_be_bytes());
            let rest = ((body - first) | (1 << 31)).to_be_bytes();
            stream.splice(4 + first as usize..4 + first as usize, rest);
        }
    }
}

/// The streams of both versions.
fn all_seeds(bench: &FuzzedServer) -> Vec<Vec<u8>> {
    [bench.seeds(), bench.seeds_of_sessions()].concat()
}

fn fuzz(seed: u64, executions: u64) {
    let mut random = Random(seed);
    let mut bench = FuzzedServer::new();
    let seeds = all_seeds(&bench);
    for at in 0..executions {
        if at % FEEDINGS_MAX == FEEDINGS_MAX - 1 {
            bench = FuzzedServer::new();
            all_seeds(&bench);
        }
        let mut input = seeds[random.below(seeds.len())].clone();
        mutate(&mut input, &seeds, &mut random);
        input.insert(0, random.next() as u8);
        let fed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bench.run(&input)));
        if fed.is_err() {
            let path = Scratch::new(&std::env::temp_dir(), "fuzzed").unwrap().keep().join(format!("{seed}-{at}"));
            fs::write(&path, &input).unwrap();
            panic!("seed {seed}, execution {at}: the input is {}", path.display());
        }
    }
}

#[test]
fn streams_of_all_procedures_are_answered_alike_however_they_are_cut() {
    let bench = FuzzedServer::new();
    for stream in all_seeds(&bench) {
        for how in [0, 1, 3, 4, 7, 64, 255] {
            bench.run(&[&[how], &stream[..]].concat());
        }
    }
}

#[test]
fn the_corpus_is_answered_alike_however_it_is_cut() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/protocol");
    let mut files: Vec<_> = fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    let bench = FuzzedServer::new();
    bench.seeds();
    for file in files {
        let input = fs::read(&file).unwrap();
        for how in [0, 1, 5, 255] {
            bench.run(&[&[how], &input[1..]].concat());
        }
    }
}

#[test]
fn changed_streams_are_answered_alike_however_they_are_cut() {
    fuzz(1, 3_000);
}

#[test]
#[ignore = "hours: AFFLUX_FUZZ_EXECUTIONS says how many"]
fn many_changed_streams_are_answered_alike_however_they_are_cut() {
    let number =
        |name: &str, otherwise| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    fuzz(number("AFFLUX_FUZZ_SEED", 2), number("AFFLUX_FUZZ_EXECUTIONS", 1_000_000));
}

/// The replies to a corpus of all procedures are those from before version 4. Their order does not count: the server
/// may answer a call that takes no waiting before an earlier one.
#[test]
fn replies_of_version_3_are_the_recorded_ones() {
    const RECORDED: (usize, u64) = (58, 15_317_488_977_882_370_211);
    let replies = FuzzedServer::new().replies();
    let (mut rest, mut records) = (&replies[..], Vec::new());
    while let Some((mark, behind)) = rest.split_first_chunk() {
        let (record, next) = behind.split_at((u32::from_be_bytes(*mark) & 0x7fff_ffff) as usize);
        records.push(record);
        rest = next;
    }
    records.sort_unstable();
    // FNV-1a: the sum of a long text, for a constant.
    let sum = records
        .concat()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    assert_eq!((records.len(), sum), RECORDED);
}
