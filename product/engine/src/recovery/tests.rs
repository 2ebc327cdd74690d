use std::sync::atomic::{AtomicU64, Ordering};

use afflux_frames::{FrameTable, Layout, Part};
use afflux_pages::page::{DETACHED, DIRTY, GUARD, PIN, PRESENT, PageIdentity, READING, UPTODATE, WRITEBACK, WRITER};

use super::*;
use crate::recovery::Recovered;

const SECTORS: Sectors = Sectors(0b1100);

/// Memory of 64 frames and 16 file slots, of which the first two have files.
struct Arena {
    memory: Arc<Memory>,
    pages: PageTable,
    slots: FrameTable<[AtomicU64; 16]>,
    records: FrameTable<[AtomicU64; 4]>,
    marks: FrameTable<[AtomicU64; 1]>,
}

impl Arena {
    fn new() -> Self {
        let memory = Memory::anonymous(Layout::new(64 * 4096, 16).unwrap()).unwrap();
        let slots = FileSlots::of(&memory, Arc::default());
        for slot in 0..2 {
            slots.keep(slot, &key(slot), 1 << 20).unwrap();
        }
        Self {
            pages: PageTable::of(&memory),
            slots: memory.table(Part::Files),
            records: memory.table(Part::Records),
            marks: memory.table(Part::Marks),
            memory,
        }
    }

    /// A page as a writer leaves it.
    fn page(&self, frame: u32, file: u32, index: u64, flags: u64, dirty: Sectors) {
        let frame = FrameId::new(frame);
        self.pages.set_dirty(frame, dirty);
        self.pages.set_sectors(frame, dirty);
        self.pages.occupy(frame, PageIdentity { file, index }, PRESENT);
        if flags & PRESENT == 0 {
            self.pages.detach(frame);
        }
        self.pages.set_word(frame, flags);
        self.pages.set_dirty(frame, dirty);
    }

    fn look(&self) -> Seen {
        look(&self.memory)
    }

    /// The words of each entry of the three tables.
    fn entries(&self) -> [Vec<&[AtomicU64]>; 3] {
        [
            self.slots.iter().map(|slot| &slot[..]).collect(),
            self.records.iter().map(|record| &record[..]).collect(),
            self.marks.iter().map(|mark| &mark[..]).collect(),
        ]
    }

    fn words(&self) -> Vec<u64> {
        self.entries().iter().flatten().copied().flatten().map(|word| word.load(Ordering::Relaxed)).collect()
    }

    fn fill(entries: &[impl AsRef<[AtomicU64]>], next: &mut impl FnMut() -> u64) {
        entries.iter().flat_map(AsRef::as_ref).for_each(|word| word.store(next(), Ordering::Relaxed));
    }
}

fn key(number: u32) -> FileKey {
    FileKey::new(&number.to_le_bytes()).unwrap()
}

/// A splitmix64 sequence.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

fn pages_of(seen: &Seen, file: u32) -> Vec<(u64, u32)> {
    seen.files
        .get(&key(file))
        .map_or_else(Vec::new, |file| file.pages.iter().map(|page| (page.page, page.frame.raw())).collect())
}

#[test]
fn each_state_that_a_kill_leaves_is_taken_as_the_table_says() {
    for (flags, dirty, is_dirty) in [
        (0, SECTORS, false),
        (DETACHED, SECTORS, false),
        (DETACHED | WRITEBACK, SECTORS, false),
        (PRESENT | UPTODATE, Sectors::NONE, false),
        (PRESENT | READING, Sectors::NONE, false),
        (PRESENT | UPTODATE | WRITER, Sectors::NONE, false),
        (PRESENT | UPTODATE | WRITEBACK, Sectors::NONE, false),
        (PRESENT | UPTODATE | DIRTY, SECTORS, true),
        (PRESENT | DIRTY, SECTORS, true),
        (PRESENT | UPTODATE, SECTORS, true),
        (PRESENT | UPTODATE | WRITEBACK, SECTORS, true),
        (PRESENT | DIRTY | READING, SECTORS, true),
        (PRESENT | UPTODATE | DIRTY | WRITER, SECTORS, true),
        (PRESENT | UPTODATE | DIRTY | (3 * GUARD) | (2 * PIN), SECTORS, true),
    ] {
        let arena = Arena::new();
        arena.page(9, 1, 5, flags, dirty);
        let seen = arena.look();
        let found = seen.files.get(&key(1)).map(|file| &file.pages[0]).map(|page| (page.page, page.dirty));
        assert_eq!(found, is_dirty.then_some((5, dirty)), "{flags:#x}");
        assert_eq!(seen.quarantined, Quarantined::default(), "{flags:#x}");
    }
}

#[test]
fn of_two_frames_of_a_page_the_one_with_more_dirty_sectors_counts() {
    let arena = Arena::new();
    let (less, more) = (Sectors(1), Sectors(3));
    arena.page(4, 0, 7, PRESENT | DIRTY, more);
    arena.page(5, 0, 7, PRESENT | WRITEBACK, less);
    arena.page(6, 1, 7, PRESENT | WRITEBACK, less);
    arena.page(7, 1, 7, PRESENT | DIRTY, more);
    let seen = arena.look();
    assert_eq!((pages_of(&seen, 0), pages_of(&seen, 1)), (vec![(7, 4)], vec![(7, 7)]));
    assert_eq!(seen.quarantined, Quarantined::default());
}

#[test]
fn what_no_kill_leaves_is_quarantined() {
    for (frames, what) in [
        (vec![(0, 3, 1_u8), (0, 3, 2)], "two frames, neither with more"),
        (vec![(0, 3, 1), (0, 3, 3), (0, 3, 7)], "three frames"),
        (vec![(2, 3, 1)], "a file in no slot"),
        (vec![(99, 3, 1)], "a slot that the arena does not have"),
        (vec![(0, 1 << 51, 1)], "past the largest file"),
    ] {
        let arena = Arena::new();
        for (frame, (file, index, dirty)) in (10..).zip(&frames) {
            arena.page(frame, *file, *index, PRESENT | DIRTY, Sectors(*dirty));
        }
        let seen = arena.look();
        assert_eq!(seen.quarantined.pages, frames.len() as u64, "{what}");
        assert!(seen.files.values().all(|file| file.pages.is_empty()), "{what}");
    }
}

#[test]
fn a_file_that_was_opened_again_counts_in_its_newer_slot() {
    let arena = Arena::new();
    let slots = FileSlots::of(&arena.memory, Arc::default());
    slots.keep(5, &key(0), 77).unwrap();
    arena.page(9, 5, 0, PRESENT | DIRTY, SECTORS);
    let seen = arena.look();
    assert_eq!((seen.files[&key(0)].slot, seen.files[&key(0)].size), (5, 77));
    arena.page(8, 0, 1, PRESENT | DIRTY, SECTORS);
    let seen = arena.look();
    assert!(!seen.files.contains_key(&key(0)), "dirty in both: one of them is damaged");
    assert_eq!(seen.quarantined, Quarantined { files: 2, pages: 2 });
}

/// Earlier writes to the device that no flush followed are in no record any more.
#[test]
fn a_clean_file_is_found_only_if_it_needs_a_flush() {
    let arena = Arena::new();
    let slots = FileSlots::of(&arena.memory, Arc::default());
    assert!(arena.look().files.is_empty());
    slots.persisted(1).owe_flush();
    assert_eq!(arena.look().files.keys().collect::<Vec<_>>(), [&key(1)]);
    slots.persisted(1).store_flushed();
    assert!(arena.look().files.is_empty());
    // Closed with a flush owed, and opened again in another slot.
    slots.persisted(0).owe_flush();
    slots.keep(5, &key(0), 77).unwrap();
    assert!(!arena.look().files[&key(0)].is_flushed);
    Recovered::look(Arc::clone(&arena.memory)).settle(1);
    assert!(!arena.look().files[&key(0)].is_flushed, "also after a kill before the file is adopted");
}

#[test]
fn a_look_changes_nothing_and_a_settled_arena_is_found_again() {
    let arena = Arena::new();
    arena.page(9, 1, 5, PRESENT | UPTODATE | DIRTY | WRITER, SECTORS);
    arena.page(10, 1, 6, PRESENT | UPTODATE | DIRTY, SECTORS);
    arena.page(11, 0, 6, PRESENT | UPTODATE, Sectors::NONE);
    arena.page(12, 7, 6, PRESENT | UPTODATE | DIRTY, SECTORS);
    arena.memory.header().set_verifier(4);
    let before = arena.words();
    let first = arena.look();
    assert_eq!(arena.words(), before);
    let recovered = Recovered::look(Arc::clone(&arena.memory));
    assert!(recovered.needs_new_verifier());
    let (frames, files) = recovered.settle(5);
    assert_eq!((frames.free_count(), files.clone()), (62, first.files));
    assert_eq!(arena.memory.header().verifier(), 5);
    let again = Recovered::look(Arc::clone(&arena.memory));
    assert!(!again.needs_new_verifier(), "what was quarantined is gone, and said");
    assert_eq!(again.settle(6).1, files);
    assert_eq!(arena.memory.header().verifier(), 5);
}

/// No bytes in slots, records and marks make a scan panic. Without a right checksum no file is found, and without a
/// file no page.
#[test]
fn random_bytes_yield_no_page_to_write_home() {
    let mut illegal = 0;
    for seed in 0..300 {
        let (arena, mut next) = (Arena::new(), random(seed));
        let [slots, records, marks] = arena.entries();
        Arena::fill(&slots, &mut next);
        Arena::fill(&records, &mut next);
        if seed % 2 == 0 {
            Arena::fill(&marks, &mut next);
        }
        let recovered = Recovered::look(Arc::clone(&arena.memory));
        assert_eq!(recovered.files().count(), 0, "seed {seed}");
        illegal += recovered.quarantined().pages;
        let (frames, _) = recovered.settle(1);
        assert_eq!(frames.free_count(), 64, "seed {seed}");
        assert_eq!(arena.look().quarantined.pages, 0, "seed {seed}: the damage is gone");
    }
    assert!(illegal > 300, "the records are looked at: {illegal}");
}

/// Random records name files that exist. Each page that the scan finds obeys the rules.
#[test]
fn random_records_of_live_files_are_taken_only_if_they_keep_the_rules() {
    let taken: usize = (0..2_000).map(random_records).sum();
    assert!(taken > 1_000, "some records keep the rules by chance: {taken}");
}

/// Returns how many pages are taken.
fn random_records(seed: u64) -> usize {
    let (arena, mut next) = (Arena::new(), random(seed));
    Arena::fill(&arena.entries()[1], &mut next);
    for (frame, record) in arena.records.iter().enumerate() {
        // Few files, few pages, and flags as a thread might leave them.
        record[1].store(next() % 8, Ordering::Relaxed);
        record[2].fetch_and(!0xffff_fffe, Ordering::Relaxed);
        record[0].fetch_and(!(1 << 52 | DETACHED), Ordering::Relaxed);
        if next().is_multiple_of(4) {
            arena.pages.believe(FrameId::new(frame as u32));
        }
    }
    let seen = arena.look();
    let pages = |files: &BTreeMap<FileKey, FoundFile>| files.values().map(|file| file.pages.len()).sum::<usize>();
    for file in seen.files.values() {
        for found in &file.pages {
            let record = arena.records[found.frame.index()].each_ref().map(|word| word.load(Ordering::Relaxed));
            assert_eq!((record[1] & 7, record[2] as u32), (found.page, file.slot), "seed {seed}");
            assert_eq!((record[2] >> 40) as u8, found.dirty.0, "seed {seed}");
            assert!(!found.dirty.is_empty(), "seed {seed}");
        }
        assert!(file.pages.windows(2).all(|two| two[0].page < two[1].page), "seed {seed}: a page twice");
    }
    let (frames, files) = Recovered::look(Arc::clone(&arena.memory)).settle(1);
    assert_eq!(files, seen.files, "seed {seed}");
    assert_eq!(arena.look().files, files, "seed {seed}: a kill later");
    assert_eq!(frames.free_count() as usize, 64 - pages(&files), "seed {seed}");
    pages(&files)
}

/// A bit that was flipped in a record, or in the parts of a slot that have a checksum, moves no page to another file.
#[test]
fn a_flipped_bit_moves_no_page_to_a_file_that_did_not_have_it_but_by_its_own_name() {
    let arena = Arena::new();
    arena.page(9, 0, 5, PRESENT | UPTODATE | DIRTY, SECTORS);
    for bit in 0..64 * 16 {
        let word = &arena.slots[0][bit / 64];
        word.fetch_xor(1 << (bit % 64), Ordering::Relaxed);
        let seen = arena.look();
        let keys: Vec<_> = seen.files.iter().filter(|(_, file)| !file.pages.is_empty()).map(|(key, _)| *key).collect();
        assert!(keys.is_empty() || keys == [key(0)], "bit {bit}: {keys:?}");
        assert_eq!(keys.is_empty(), seen.quarantined.pages > 0, "bit {bit}");
        word.fetch_xor(1 << (bit % 64), Ordering::Relaxed);
    }
}

/// What a scan would write home, and where.
#[derive(PartialEq, Debug)]
struct Home {
    pages: Vec<(FileKey, FoundPage)>,
    files: Vec<(FileKey, u64, Option<Intent>)>,
}

impl Home {
    fn of(seen: &Seen) -> Self {
        let files = seen.files.iter();
        Self {
            pages: files.clone().flat_map(|(key, file)| file.pages.iter().map(|page| (*key, *page))).collect(),
            files: files.map(|(key, file)| (*key, file.size, file.intent.clone())).collect(),
        }
    }

    /// Checks that a scan of damaged memory found nothing else, and reported what it did not find. Returns how much
    /// that was.
    fn is_found_or_told(&self, arena: &Arena, damage: &dyn std::fmt::Debug) -> usize {
        let seen = arena.look();
        let found = Self::of(&seen);
        assert!(found.pages.iter().all(|page| self.pages.contains(page)), "{damage:?}: {found:?}");
        assert!(found.files.iter().all(|file| self.files.contains(file)), "{damage:?}: {found:?}");
        let missing = self.pages.len() - found.pages.len();
        assert!(seen.quarantined.pages >= missing as u64, "{damage:?}: {:?} of {found:?}", seen.quarantined);
        missing
    }
}

/// Three files with dirty pages, one of them with a change of shape, and frames that are free, clean, left, and written
/// in part.
fn damaged_arena() -> Arena {
    let arena = Arena::new();
    let slots = FileSlots::of(&arena.memory, Arc::default());
    let shaped = slots.keep(3, &key(3), 3 << 20).unwrap();
    shaped.store_size(5 << 20);
    shaped.begin(&Intent::Hole(4096..3 * 4096));
    for (frame, (file, index), dirty) in [(7, (0, 5), 0xff), (8, (0, 6), 1), (20, (1, 5), 0xff), (21, (3, 900), 6)] {
        arena.page(frame, file, index, PRESENT | UPTODATE | DIRTY, Sectors(dirty));
    }
    arena.page(30, 1, 77, PRESENT | UPTODATE, Sectors::NONE);
    arena.page(31, 1, 78, PRESENT | UPTODATE | DIRTY, Sectors(1));
    arena.pages.detach(FrameId::new(31));
    assert!(arena.pages.try_release(FrameId::new(31)));
    arena
}

/// Each bit of all slots, records and marks: each dirty page is found with its position and its dirty sectors, or its
/// loss is reported.
#[test]
fn no_flipped_bit_moves_a_page_or_its_sectors_or_loses_one_untold() {
    let arena = damaged_arena();
    let right = Home::of(&arena.look());
    assert_eq!(right.pages.len(), 4);
    let mut lost = 0;
    for (table, entries) in arena.entries().into_iter().enumerate() {
        for (number, words) in entries.into_iter().enumerate() {
            for bit in 0..64 * words.len() {
                let word = &words[bit / 64];
                word.fetch_xor(1 << (bit % 64), Ordering::Relaxed);
                lost += right.is_found_or_told(&arena, &(table, number, bit));
                word.fetch_xor(1 << (bit % 64), Ordering::Relaxed);
            }
        }
    }
    assert!(lost > 1_000, "damage is found: {lost}");
    assert_eq!(Home::of(&arena.look()), right);
}

/// A mark decides alone: no flag, and no set of sectors in a record, can lose a page or change its sectors.
#[test]
fn flags_and_sectors_of_a_record_may_have_any_value_beside_a_mark() {
    let arena = damaged_arena();
    let right = Home::of(&arena.look());
    let mut next = random(1);
    for _ in 0..1_000 {
        for frame in [7, 8, 20, 21] {
            let record = &arena.records[frame];
            record[0].store(next(), Ordering::Relaxed);
            record[2].store(record[2].load(Ordering::Relaxed) as u32 as u64 | next() << 32, Ordering::Relaxed);
            record[3].store(next(), Ordering::Relaxed);
        }
        assert_eq!(Home::of(&arena.look()), right);
    }
}

/// Each word that is in use, and each whole entry, is put over each other one of its table, or swapped with it.
#[test]
fn no_damage_of_one_word_moves_a_page_to_another_place() {
    let arena = damaged_arena();
    let right = Home::of(&arena.look());
    let [slots, records, marks] = arena.entries();
    let slots = [0, 1, 2, 3].map(|at| slots[at]).to_vec();
    let [records, marks] = [records, marks].map(|table| [7, 8, 20, 21, 30, 31, 32].map(|at| table[at]).to_vec());
    let mut tries = 0;
    for entries in [&slots, &records, &marks] {
        let words: Vec<&[AtomicU64]> = entries.iter().flat_map(|entry| entry.chunks(1)).collect();
        for things in [&words, entries] {
            for (from, to) in things.iter().flat_map(|from| things.iter().map(move |to| (*from, *to))) {
                for swaps in [false, true] {
                    let load = |of: &[AtomicU64]| of.iter().map(|word| word.load(Ordering::Relaxed)).collect();
                    let store = |to: &[AtomicU64], words: &Vec<u64>| {
                        to.iter().zip(words).for_each(|(to, word)| to.store(*word, Ordering::Relaxed));
                    };
                    let before: [Vec<u64>; 2] = [load(from), load(to)];
                    store(to, &before[0]);
                    if swaps {
                        store(from, &before[1]);
                    }
                    right.is_found_or_told(&arena, &(&before, swaps));
                    store(from, &before[0]);
                    store(to, &before[1]);
                    tries += 1;
                }
            }
        }
    }
    assert!(tries > 8_000, "{tries}");
    assert_eq!(Home::of(&arena.look()), right);
}

/// Marks that are gone as a whole.
#[test]
fn pages_whose_marks_are_zeroed_are_told() {
    let arena = damaged_arena();
    let right = Home::of(&arena.look());
    Arena::fill(&arena.entries()[2], &mut || 0);
    assert_eq!(right.is_found_or_told(&arena, &"zeros"), 4);
}

/// A kill between the stores of a new size leaves the size before or the new one.
#[test]
fn a_size_has_a_check_between_its_stores() {
    let arena = Arena::new();
    let slots = FileSlots::of(&arena.memory, Arc::default());
    let persisted = slots.keep(4, &key(4), 1000).unwrap();
    persisted.owe_flush();
    for (before, size) in [(1000, 2000), (2000, 0), (0, FILE_BYTES_MAX), (FILE_BYTES_MAX, 1)] {
        persisted.store_size(size);
        let words = &arena.slots;
        assert_eq!(arena.look().files[&key(4)].size, size);
        words[4][1].store(before, Ordering::Relaxed);
        assert_eq!(arena.look().files[&key(4)].size, before);
        words[4][1].store(before ^ 512, Ordering::Relaxed);
        assert_eq!(arena.look().quarantined.files, 1);
        words[4][1].store(size, Ordering::Relaxed);
    }
}
