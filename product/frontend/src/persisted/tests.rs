use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::*;

/// Words that are copied before each use while a log is wanted: each store is a use of its own.
struct Logged {
    words: Vec<AtomicU64>,
    log: Mutex<Option<Vec<Vec<u64>>>>,
}

impl AsRef<[AtomicU64]> for Logged {
    fn as_ref(&self) -> &[AtomicU64] {
        if let Some(log) = &mut *self.log.lock().unwrap() {
            let copy: Vec<u64> = self.words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
            if log.last() != Some(&copy) {
                log.push(copy);
            }
        }
        &self.words
    }
}

fn memory(words: impl IntoIterator<Item = u64>) -> Arc<Logged> {
    Arc::new(Logged { words: words.into_iter().map(AtomicU64::new).collect(), log: Mutex::default() })
}

/// The memory that a kill at each point of `run` leaves.
fn kills(memory: &Logged, run: impl FnOnce()) -> Vec<Vec<u64>> {
    *memory.log.lock().unwrap() = Some(Vec::new());
    run();
    memory.as_ref();
    memory.log.lock().unwrap().take().unwrap()
}

type Contents = BTreeMap<(u8, u32), Vec<u8>>;

/// Without the zeros behind an item's bytes, of which the tests' have none.
fn contents(found: &[FoundItem]) -> Contents {
    let trimmed = |bytes: &[u8]| bytes[..bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1)].to_vec();
    found.iter().map(|it| ((it.kind, it.id), trimmed(&it.bytes))).collect()
}

fn found(words: &[u64]) -> Option<Contents> {
    PersistedItems::new(memory(words.iter().copied()), 8).1.map(|found| contents(&found))
}

const WORDS: usize = 8 + HEADER_WORDS + 64 * PIECE_WORDS;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

// rule: a kill between any two stores leaves each item of the persistent memory as it was or as it was to be
// kept in: `product/frontend/src/persisted.rs`
#[test]
fn a_kill_between_any_two_stores_leaves_each_item_as_it_was_or_as_it_was_to_be() {
    let (words, mut random) = (memory((0..WORDS).map(|_| 0)), Random(1));
    let (mut items, none) = PersistedItems::new(words.clone(), 8);
    assert!(none.is_none());
    let mut model = Contents::new();
    let mut slots: BTreeMap<(u8, u32), PersistedItem> = BTreeMap::new();
    let mut kills_made = 0;
    for step in 0..600 {
        let key = (random.below(3) as u8, random.below(4) as u32);
        let before = model.clone();
        let slot = slots.entry(key).or_default();
        let left = if random.below(4) == 0 {
            model.remove(&key);
            kills(&words, || items.remove(slot))
        } else {
            let bytes = vec![1 + step as u8 % 250; random.below(500) as usize];
            let mut is_put = false;
            let left = kills(&words, || is_put = items.try_put(key.0, key.1, slot, &bytes));
            if is_put {
                model.insert(key, bytes);
            }
            left
        };
        for (at, killed) in left.iter().enumerate() {
            let found = found(killed).expect("a kill damages nothing");
            assert!(found == before || found == model, "step {step}, store {at}");
            kills_made += 1;
        }
        if random.below(20) == 0 {
            let now: Vec<u64> = words.words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
            assert_eq!(found(&now), Some(model.clone()));
            let (next, found) = PersistedItems::new(words.clone(), 8);
            items = next;
            slots = found.unwrap().into_iter().map(|it| ((it.kind, it.id), it.item)).collect();
        }
    }
    assert!(kills_made > 10_000, "{kills_made}");
}

#[test]
fn a_changed_bit_is_known_wherever_it_is_and_nothing_is_found_then() {
    let words = memory((0..WORDS).map(|_| 0));
    let (items, _) = PersistedItems::new(words.clone(), 8);
    let (mut one, mut two, mut gone) = (PersistedItem::default(), PersistedItem::default(), PersistedItem::default());
    assert!(items.try_put(1, 1, &mut one, &[7; 300]) && items.try_put(1, 3, &mut gone, &[5; 9]));
    assert!(items.try_put(2, 2, &mut two, &[9; 10]));
    items.remove(&mut gone);
    let right: Vec<u64> = words.words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
    assert_eq!(found(&right).map(|it| it.len()), Some(2));
    let end = 8 + HEADER_WORDS + 5 * PIECE_WORDS;
    for at in 8..end {
        for bit in 0..64 {
            let mut damaged = right.clone();
            damaged[at] ^= 1 << bit;
            let left = found(&damaged);
            // The pieces of a removed item count no more.
            assert!(left.is_none() || left == found(&right), "word {at}, bit {bit}");
        }
        let zeroed = right.iter().enumerate().map(|(word, value)| if word == at { 0 } else { *value });
        let left = found(&zeroed.collect::<Vec<_>>());
        assert!(left.is_none() || left == found(&right), "word {at} lost");
    }
    assert_eq!(found(&vec![u64::MAX; WORDS]), None);
    // Zeros in a piece's slot are damage, too: the piece does not go silently.
    let mut lost = right.clone();
    lost[8 + HEADER_WORDS..8 + HEADER_WORDS + PIECE_WORDS].fill(0);
    assert_eq!(found(&lost), None);
}

#[test]
fn full_memory_refuses_more_and_lets_items_change_all_the_same() {
    let (items, _) = PersistedItems::new(memory((0..WORDS).map(|_| 0)), 8);
    let mut kept: Vec<PersistedItem> = Vec::new();
    loop {
        let mut item = PersistedItem::default();
        if !items.try_put(1, kept.len() as u32, &mut item, &[1; PERSISTED_PIECE_BYTES]) {
            break;
        }
        kept.push(item);
    }
    assert_eq!(kept.len(), items.capacity() * 7 / 8);
    for _ in 0..3 {
        for (id, item) in kept.iter_mut().enumerate() {
            assert!(items.try_put(1, id as u32, item, &[2; PERSISTED_PIECE_BYTES]));
        }
    }
    items.remove(&mut kept[0]);
    assert!(items.try_put(1, 900, &mut PersistedItem::default(), &[3; 8]));
    assert!(!PersistedItems::new(memory([]), 0).0.try_put(1, 1, &mut PersistedItem::default(), &[1]));
}
