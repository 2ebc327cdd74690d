//! Sequences of page touches, without time, for studies of caches.
//!
//! Owns: the generators by name. Does not own: a touch (`touch`), the cache, the cost of a touch.
//! Invariants: a sequence depends only on its generator, its sizes and its seed. Pages are numbered from 0 without
//! large gaps, so that a table over them is small.

mod inter_reference;
mod mixes;
mod nearly_fits;
mod streams;
mod touch;

use afflux_engine::settings::did_you_mean;
use afflux_simulator::Random;

use crate::zipf::Zipf;
use inter_reference::{INDEPENDENT, Recency};
use touch::read_or_write;
pub use touch::{Sequence, Sizes, Touch};

/// A generator of sequences.
#[derive(Clone, Copy)]
pub struct Generator {
    /// Its name.
    pub name: &'static str,
    /// A description in a line.
    pub about: &'static str,
    /// Most of its touches are of pages used only once, from which a policy should protect the others.
    pub scans: bool,
    make: fn(Sizes, &mut Random) -> Sequence,
}

impl Generator {
    /// The sequence for a seed.
    pub fn sequence(&self, sizes: Sizes, seed: u64) -> Sequence {
        (self.make)(sizes, &mut Random::new(seed).fork(0x70c4))
    }
}

const fn generator(name: &'static str, about: &'static str, make: fn(Sizes, &mut Random) -> Sequence) -> Generator {
    Generator { name, about, scans: false, make }
}

const fn scanning(name: &'static str, about: &'static str, make: fn(Sizes, &mut Random) -> Sequence) -> Generator {
    Generator { name, about, scans: true, make }
}

/// All generators.
pub const GENERATORS: &[Generator] = &[
    generator("zipf-0.8", "Zipf of theta 0.8; 30 % write", |sizes, random| zipf(sizes, random, 0.8)),
    // The draw does not support a theta of 1.
    generator("zipf-1.0", "Zipf of theta 1; 30 % write", |sizes, random| zipf(sizes, random, 0.999_99)),
    generator("zipf-1.2", "Zipf of theta 1.2; 30 % write", |sizes, random| zipf(sizes, random, 1.2)),
    generator("loop", "a loop over 1.1 times the cache", round_and_round),
    scanning(
        "scan-hot",
        "two of three touches scan all pages, the third is of a hot eighth; 30 % of these write",
        mixes::scan_and_hot,
    ),
    generator("oltp-like", "tables (Zipf 0.9, 30 % write), an index (Zipf 1.2), short range scans, a log", mixes::oltp),
    generator(
        "shifting",
        "a working set of 3/64 of the pages, half of it new ten times in three rounds; 30 % write",
        mixes::shifting,
    ),
    scanning(
        "streams",
        "a stream for each 1,024 pages, 4 pages ahead; every other touch of a hot quarter, Zipf 1",
        |sizes, random| streams::streams(sizes, random, 1024),
    ),
    scanning("many-streams", "the same with a stream for each 262 pages", |sizes, random| {
        streams::streams(sizes, random, 262)
    }),
    scanning(
        "small-reads",
        "a scan of all pages by four reads a page; every other page is of a hot eighth, Zipf 0.9",
        mixes::small_reads,
    ),
    generator(
        "recency",
        "by a histogram of times between two touches of a page: cliffs and plateaus",
        |sizes, random| Recency::of(sizes, random).touches(sizes, random, 0),
    ),
    generator("independent", "each touch drawn by itself: 60 % of 2 % of the pages, 30 % of 10 %", |sizes, random| {
        sizes.times(|_| Touch::read(INDEPENDENT.draw(sizes.pages, random)))
    }),
    generator("recency+independent", "40 % drawn by themselves, the others by the histogram", |sizes, random| {
        Recency::of(sizes, random).touches(sizes, random, 40)
    }),
    generator("whole-loop", "a loop over all pages", nearly_fits::whole_loop),
    generator(
        "two-phases",
        "Zipf 0.8 of the first two thirds, then of the last, round and round",
        nearly_fits::two_phases,
    ),
    scanning("zipf+scan", "Zipf 0.6; every eighth touch is of a page used only once", nearly_fits::zipf_and_scan),
    scanning(
        "loop+scan",
        "a loop over nine tenths; every eighth touch is of a page used only once",
        nearly_fits::loop_and_scan,
    ),
];

/// The generator of this name.
///
/// # Errors
/// When it does not exist; the error lists the names.
pub fn generator_named(name: &str) -> Result<&'static Generator, String> {
    let unknown = || {
        let names: Vec<&str> = GENERATORS.iter().map(|generator| generator.name).collect();
        let near = did_you_mean(name, names.iter().copied());
        format!("there is no generator '{name}'{near}; there are {}", names.join(", "))
    };
    GENERATORS.iter().find(|generator| generator.name == name).ok_or_else(unknown)
}

fn zipf(sizes: Sizes, random: &mut Random, theta: f64) -> Sequence {
    let ranks = Zipf::new(sizes.pages, theta);
    sizes.times(|_| read_or_write(ranks.draw(random), random))
}

fn round_and_round(sizes: Sizes, _: &mut Random) -> Sequence {
    let round = sizes.frames + sizes.frames / 10;
    sizes.times(|at| Touch::read(at % round))
}

#[cfg(test)]
mod tests;
