//! The bytes of a disk, and their survival of a power cut.
//!
//! Owns: the medium (a sparse file), the volatile cache before it, bad sectors, the power switch.
//! Does not own: the time of requests (`timing`).
//! Invariants: a read gives the bytes of the last write. A flush moves the whole cache to the medium. A power cut drops
//! sectors of the cache by its seed, and moves the others to the medium, as a disk may that writes in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use crate::{DiskOptions, SECTOR_BYTES};

const SECTOR: usize = SECTOR_BYTES as usize;

/// Why a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Failed;

pub(crate) struct Medium {
    durable: File,
    /// Sectors written since the last flush.
    cache: BTreeMap<u64, [u8; SECTOR]>,
    cached_sectors_max: usize,
    bad: BTreeSet<u64>,
    flushes: bool,
    powered: bool,
}

impl Medium {
    /// A disk of zeros, as long as the file.
    pub(crate) fn new(durable: File, options: &DiskOptions) -> Self {
        let cached_sectors_max = (options.cache_bytes / SECTOR_BYTES) as usize;
        let flushes = options.flushes;
        Self { durable, cache: BTreeMap::new(), cached_sectors_max, bad: BTreeSet::new(), flushes, powered: true }
    }

    /// Fills `bytes` from the whole sectors at `offset`.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), Failed> {
        let sectors = self.usable(offset, bytes.len())?;
        self.durable.read_exact_at(bytes, offset).map_err(|_| Failed)?;
        for (sector, cached) in self.cache.range(sectors.clone()) {
            let at = (sector - sectors.start) as usize * SECTOR;
            bytes[at..at + SECTOR].copy_from_slice(cached);
        }
        Ok(())
    }

    /// Takes whole sectors into the cache.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Failed> {
        let sectors = self.usable(offset, bytes.len())?;
        if self.cached_sectors_max == 0 {
            return self.durable.write_all_at(bytes, offset).map_err(|_| Failed);
        }
        let contents = bytes.chunks_exact(SECTOR).filter_map(|sector| sector.try_into().ok());
        self.cache.extend(sectors.zip(contents));
        if self.cache.len() > self.cached_sectors_max { self.write_out() } else { Ok(()) }
    }

    /// Moves the cache to the medium.
    pub(crate) fn flush(&mut self) -> Result<(), Failed> {
        if !self.powered {
            return Err(Failed);
        }
        if !self.flushes {
            return Ok(());
        }
        self.write_out()
    }

    fn write_out(&mut self) -> Result<(), Failed> {
        std::mem::take(&mut self.cache)
            .iter()
            .try_for_each(|(sector, bytes)| self.store(*sector, bytes))
            .map_err(|_| Failed)
    }

    /// Every request that touches one of these sectors fails from now on.
    pub(crate) fn damage(&mut self, sectors: Range<u64>) {
        self.bad.extend(sectors);
    }

    /// Turns the power off. Of the cache, about half of the sectors are lost.
    pub(crate) fn cut(&mut self, seed: u64) -> io::Result<()> {
        self.powered = false;
        let cache = std::mem::take(&mut self.cache);
        let survives = |sector: u64| mixed(seed ^ sector) & 1 == 1;
        let mut surviving = cache.iter().filter(|(sector, _)| survives(**sector));
        surviving.try_for_each(|(sector, bytes)| self.store(*sector, bytes))
    }

    pub(crate) fn power_on(&mut self) {
        self.powered = true;
    }

    fn store(&self, sector: u64, bytes: &[u8; SECTOR]) -> io::Result<()> {
        self.durable.write_all_at(bytes, sector * SECTOR_BYTES)
    }

    /// The sectors of a request, if the disk can carry it out.
    fn usable(&self, offset: u64, len: usize) -> Result<Range<u64>, Failed> {
        let is_whole = offset.is_multiple_of(SECTOR_BYTES) && len.is_multiple_of(SECTOR);
        let sectors = offset / SECTOR_BYTES..offset / SECTOR_BYTES + (len / SECTOR) as u64;
        let is_good = self.bad.range(sectors.clone()).next().is_none();
        if self.powered && is_whole && is_good { Ok(sectors) } else { Err(Failed) }
    }
}

/// A number in which each bit of the seed counts: the finalizer of SplitMix64.
fn mixed(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
