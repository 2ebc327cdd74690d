//! The protocol machine fed with mutated messages, cut at every byte.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stderr, unreachable_pub, reason = "tests")]

#[path = "../../../tests/fuzz/fuse_harness.rs"]
mod harness;

use std::fs;

use afflux_scratch::Scratch;
use afflux_simulator::Random;
use harness::FuzzedMount;

/// Inputs fed to a mount before it is replaced.
const FEEDINGS_MAX: u64 = 500;

fn below(random: &mut Random, bound: usize) -> usize {
    random.below(bound.max(1) as u64) as usize
}

/// Changes a stream in a few places; afterwards its first length mostly fits again.
fn mutate(stream: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    const WORDS: [u32; 9] = [0, 1, 2, 16, 40, 4096, 0x7fff_ffff, u32::MAX - 3, u32::MAX];
    for _ in 0..1 + below(random, 4) {
        let at = below(random, stream.len());
        match below(random, 7) {
            0 if !stream.is_empty() => stream[at] = random.below(256) as u8,
            1 if !stream.is_empty() => stream[at] ^= 1 << below(random, 8),
            2 if stream.len() >= 4 => {
                let at = below(random, stream.len() / 4) * 4;
                stream[at..at + 4].copy_from_slice(&WORDS[below(random, WORDS.len())].to_ne_bytes());
            }
            3 => stream.truncate(at),
            4 if stream.len() < 1 << 16 => stream.extend_from_within(at..),
            5 => {
                let other = &seeds[below(random, seeds.len())];
                let from = below(random, other.len());
                stream.truncate(at);
                stream.extend_from_slice(&other[from..]);
            }
            6 if stream.len() < 1 << 16 => stream.extend_from_slice(&seeds[below(random, seeds.len())]),
            _ => {}
        }
    }
    if stream.len() > 4 && below(random, 4) > 0 {
        // Without this most inputs would be no message at all.
        let len = stream.len() as u32;
        stream[..4].copy_from_slice(&len.to_ne_bytes());
    }
}

fn fuzz(seed: u64, executions: u64) {
    let mut random = Random::new(seed);
    let mut bench = FuzzedMount::new();
    let seeds = bench.seeds();
    for at in 0..executions {
        if at % FEEDINGS_MAX == FEEDINGS_MAX - 1 {
            bench = FuzzedMount::new();
            bench.seeds();
        }
        let mut input = seeds[below(&mut random, seeds.len())].clone();
        mutate(&mut input, &seeds, &mut random);
        input.insert(0, random.below(256) as u8);
        let fed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bench.run(&input)));
        if fed.is_err() {
            let path = Scratch::new(&std::env::temp_dir(), "fuzzed").unwrap().keep().join(format!("{seed}-{at}"));
            fs::write(&path, &input).unwrap();
            panic!("seed {seed}, execution {at}: the input is {}", path.display());
        }
    }
}

#[test]
fn messages_of_all_operations_are_answered_once_however_they_are_cut() {
    for how in [0, 1, 3, 4, 40, 64, 255] {
        let bench = FuzzedMount::new();
        for stream in bench.seeds() {
            bench.run(&[&[how], &stream[..]].concat());
        }
    }
}

#[test]
fn changed_messages_are_answered_once_however_they_are_cut() {
    fuzz(1, 3_000);
}

#[test]
#[ignore = "hours: AFFLUX_FUZZ_EXECUTIONS says how many"]
fn many_changed_messages_are_answered_once_however_they_are_cut() {
    let number =
        |name: &str, otherwise| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    fuzz(number("AFFLUX_FUZZ_SEED", 2), number("AFFLUX_FUZZ_EXECUTIONS", 1_000_000));
}
