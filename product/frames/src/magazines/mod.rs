//! Afflux's own allocator: hands, magazines, and a bitmap behind them.
//!
//! Owns: the way of a frame between a thread's hand, its slot's magazines and the backing; the shorter way when frames
//! are few; the search in others' magazines.
//! Does not own: the choice of a thread's slot (`cpu`), the memory (the arena).
//! Invariants: a frame is handed out, or in one hand, or in one magazine, or in the backing. A slot's lock is taken
//! before the backing's, and of one slot at a time. `short` is set whenever the backing has less than the mark `min`,
//! so a frame in a hand or a magazine is above that mark.
//!
//! An allocation and a free on one thread cost one locked instruction. By it the free claims the frame's state, so that
//! every double free is found. Only its thread touches a hand. The magazine behind it is locked once in eight frames,
//! the backing once in 128. Frames that another thread allocated go the same way back and reach the backing in batches.
//!
//! When frames are few, or an allocation found none, nothing is kept aside. Frees go to the backing, and each thread
//! empties its hand and magazines at its next call. A thread that still lacks frames empties the other slots'
//! magazines. Only the hands of other live threads stay out of reach, 15 frames each, until those threads next allocate
//! or free. Arenas below 64 MiB have no hands.

mod backing;
mod hand;
mod index_set;
#[cfg(all(test, loom))]
mod loom_models;
mod slot;
mod states;
#[cfg(all(test, not(loom)))]
mod tests;
mod zones;

use crate::allocator::Allocator;
use crate::bad_free::BadFree;
use crate::cpu::{self, Place};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{SpinGuard, SpinLock};
use crate::watermarks::Watermarks;
use crate::{Effort, Mobility, Order};
use hand::{HAND_BATCH, HAND_FRAMES, Hands};
use slot::{BATCH_MAX, HUGE_BLOCKS, MAGAZINE_FRAMES, Slot};
use states::States;
use zones::Zones;

/// The smallest arena with hands: the hands of all slots are then at most 3 % of it.
const FRAMES_WITH_HANDS: u32 = 1 << 14;

/// The sizes of the lists, by the arena's size.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    hands: bool,
    magazine: usize,
    batch: usize,
    huge: usize,
}

impl Sizes {
    /// A magazine has at most a 128th of the arena, the 2 MiB blocks of a slot a quarter.
    fn of(frames: u32) -> Self {
        let magazine = (frames as usize / 128).clamp(1, MAGAZINE_FRAMES);
        let huge = ((frames / Order::PAGEBLOCK.frames()) as usize / 4).min(HUGE_BLOCKS);
        Self { hands: frames >= FRAMES_WITH_HANDS, magazine, batch: magazine.div_ceil(2), huge }
    }
}

/// The default allocator.
pub struct Magazines {
    /// Whether nothing may be kept aside.
    short: AtomicBool,
    sizes: Sizes,
    marks: Watermarks,
    states: States,
    hands: Box<[Hands]>,
    slots: Box<[SpinLock<Slot>]>,
    backing: Zones,
}

impl Magazines {
    fn with_slots(frames: u32, slots: usize, sizes: Sizes) -> Self {
        Self {
            short: AtomicBool::new(false),
            sizes,
            marks: Watermarks::afflux(frames),
            states: States::new(frames),
            hands: (0..if sizes.hands { slots } else { 0 }).map(|_| Hands::new()).collect(),
            slots: (0..slots).map(|_| SpinLock::new(Slot::new(sizes.magazine, sizes.huge))).collect(),
            backing: Zones::new(frames, slots),
        }
    }

    #[inline]
    fn allocate_at(&self, place: Place, order: Order, class: Mobility, effort: Effort) -> Option<u32> {
        if order == Order::SINGLE
            && self.plenty(effort)
            && let Some(frame) = self.own_hands(place).and_then(|hands| hands.of(class).pop())
        {
            self.states.hand_out(frame, order, class, place.slot());
            return Some(frame);
        }
        self.allocate_further(place, order, class, effort)
    }

    #[inline]
    fn free_at(&self, place: Place, first: u32, order: Order) -> Result<(), BadFree> {
        let class = self.states.take_back(first, order, place.slot())?;
        let in_hand = order == Order::SINGLE
            && !self.short.load(Ordering::Relaxed)
            && self.own_hands(place).is_some_and(|hands| hands.of(class).push(first));
        if !in_hand {
            self.free_further(place, first, order, class);
        }
        Ok(())
    }

    /// Whether this effort may take frames that are kept aside without counting them: the backing alone has the frames
    /// that the effort must leave.
    #[inline]
    fn plenty(&self, effort: Effort) -> bool {
        let enough = || self.backing.free_frames() >= self.marks.low;
        !self.short.load(Ordering::Relaxed) && (effort != Effort::NoRetry || enough())
    }

    #[inline(never)]
    fn allocate_further(&self, place: Place, order: Order, class: Mobility, effort: Effort) -> Option<u32> {
        let first = match order {
            Order::SINGLE => {
                let mut frame = [0];
                (self.gather(place, class, effort, &mut frame) == 1).then_some(frame[0])?
            }
            Order::PAGEBLOCK if self.plenty(effort) => self.take_huge(place, class, effort)?,
            _ => self.take_block(place, order, class, effort)?,
        };
        self.states.hand_out(first, order, class, place.slot());
        Some(first)
    }

    /// Takes up to `out.len()` single frames, at most [`BATCH_MAX`].
    fn gather(&self, place: Place, class: Mobility, effort: Effort, out: &mut [u32]) -> usize {
        let mut taken = 0;
        if self.plenty(effort) {
            let floor = self.marks.floor(effort);
            let mut slot = self.slot(place);
            taken = slot.singles[class.index()].pop_into(out);
            if taken < out.len() {
                // The missing frames and a batch for this magazine, in one go.
                let mut brought = [0; BATCH_MAX * 2];
                let want = (out.len() - taken + self.sizes.batch).min(brought.len());
                let count = self.take_from_backing(place, floor, class, &mut brought[..want]);
                // Lowest first, so that the last in are the first out.
                brought[..count].reverse();
                let rest = count - count.min(out.len() - taken);
                for frame in brought[rest..count].iter().rev() {
                    out[taken] = *frame;
                    taken += 1;
                }
                slot.singles[class.index()].extend(&brought[..rest]);
            }
            if let Some(hand) = self.own_hands(place).map(|hands| hands.of(class)).filter(|hand| hand.len() == 0) {
                let mut batch = [0; HAND_BATCH];
                let count = slot.singles[class.index()].pop_into(&mut batch);
                for frame in &batch[..count] {
                    hand.push(*frame);
                }
            }
        }
        if taken < out.len() { taken + self.gather_rest(place, class, effort, &mut out[taken..]) } else { taken }
    }

    /// Takes single frames when they are few: keeps nothing aside, and empties others' magazines.
    #[cold]
    fn gather_rest(&self, place: Place, class: Mobility, effort: Effort, out: &mut [u32]) -> usize {
        let floor = self.marks.floor(effort);
        self.empty_own(place);
        let mut taken = self.take_from_backing(place, floor, class, out);
        if taken < out.len() && effort != Effort::NoRetry {
            self.short.store(true, Ordering::Relaxed);
            self.empty_others(place);
            taken += self.take_from_backing(place, floor, class, &mut out[taken..]);
        }
        taken
    }

    fn take_huge(&self, place: Place, class: Mobility, effort: Effort) -> Option<u32> {
        let mut slot = self.slot(place);
        if let Some(first) = slot.huge.pop() {
            return Some(first);
        }
        let floor = self.marks.floor(effort);
        let mut blocks = [0; HUGE_BLOCKS];
        let want = 1 + self.sizes.huge / 2;
        let count = self.backing.take_huge(floor, &mut blocks[..want]);
        self.note();
        // Lowest first, so that the last in are the first out.
        let found = blocks[..count].first().copied();
        blocks[..count].iter().skip(1).rev().for_each(|first| slot.huge.push(*first));
        drop(slot);
        found.or_else(|| self.take_block(place, Order::PAGEBLOCK, class, effort))
    }

    /// Takes a block from the backing. If the backing has none, the frames kept aside go to the backing first, one slot
    /// after the other.
    fn take_block(&self, place: Place, order: Order, class: Mobility, effort: Effort) -> Option<u32> {
        let floor = self.marks.floor(effort);
        let take = || self.take_block_from_backing(place, floor, order, class);
        take()
            .or_else(|| {
                self.empty_own(place);
                take()
            })
            .or_else(|| {
                if effort == Effort::NoRetry {
                    return None;
                }
                self.empty_others(place);
                take()
            })
    }

    #[inline(never)]
    fn free_further(&self, place: Place, first: u32, order: Order, class: Mobility) {
        if self.short.load(Ordering::Relaxed) || (order != Order::SINGLE && order != Order::PAGEBLOCK) {
            self.give_to_backing(first, order);
            if self.short.load(Ordering::Relaxed) {
                self.empty_own(place);
            }
            return;
        }
        let mut slot = self.slot(place);
        if order == Order::PAGEBLOCK {
            if slot.huge.len() >= slot.huge.capacity() {
                let half = slot.huge.len().div_ceil(2);
                slot.huge.take_oldest(half, |blocks| self.backing.give_huge(blocks));
                self.note();
                if slot.huge.len() < slot.huge.capacity() {
                    slot.huge.push(first);
                } else {
                    self.give_to_backing(first, order);
                }
            } else {
                slot.huge.push(first);
            }
            return;
        }
        if let Some(hands) = self.own_hands(place) {
            let hand = hands.of(class);
            if !hand.push(first) {
                let oldest = hand.take_oldest();
                hand.push(first);
                self.put(&mut slot, class, &oldest);
            }
        } else {
            self.put(&mut slot, class, &[first]);
        }
    }

    /// Puts frames in a magazine; the frames that have been there longest make room.
    fn put(&self, slot: &mut Slot, class: Mobility, frames: &[u32]) {
        let magazine = &mut slot.singles[class.index()];
        if magazine.len() + frames.len() > magazine.capacity() {
            let leaving = self.sizes.batch.min(magazine.len());
            magazine.take_oldest(leaving, |leaving| self.give_singles_to_backing(leaving));
        }
        magazine.extend(frames);
    }

    /// The hands of the caller's slot, if there are any and only the caller uses them.
    #[inline]
    fn own_hands(&self, place: Place) -> Option<&Hands> {
        self.hands.get(place.slot()).filter(|_| place.is_exclusive())
    }

    fn slot(&self, place: Place) -> SpinGuard<'_, Slot> {
        self.slots[place.slot()].lock()
    }

    fn take_from_backing(&self, place: Place, floor: u32, class: Mobility, out: &mut [u32]) -> usize {
        let taken = self.backing.take(place.slot(), floor, class, out);
        self.note();
        taken
    }

    fn take_block_from_backing(&self, place: Place, floor: u32, order: Order, class: Mobility) -> Option<u32> {
        let first = self.backing.take_block(place.slot(), floor, order, class);
        self.note();
        first
    }

    fn give_to_backing(&self, first: u32, order: Order) {
        if order == Order::SINGLE {
            self.backing.give(&[first]);
        } else {
            self.backing.give_block(first, order);
        }
        self.note();
    }

    fn give_singles_to_backing(&self, frames: &[u32]) {
        self.backing.give(frames);
        self.note();
    }

    /// Sets `short` below the mark, and clears it once a magazine's worth is free above it.
    fn note(&self) {
        let frames = self.backing.free_frames();
        let enough = self.marks.min + self.sizes.magazine as u32;
        let short = self.short.load(Ordering::Relaxed);
        if !short && frames < self.marks.min {
            self.short.store(true, Ordering::Relaxed);
        } else if short && frames >= enough {
            self.short.store(false, Ordering::Relaxed);
        }
    }

    /// Gives all frames that the caller's slot keeps aside to the backing.
    fn empty_own(&self, place: Place) {
        if place.is_exclusive() {
            self.empty_hands(place.slot());
        }
        self.empty_slot(place.slot());
    }

    /// Empties all other slots, one after the other.
    #[cold]
    fn empty_others(&self, place: Place) {
        for slot in 0..self.slots.len() {
            if slot != place.slot() || !place.is_exclusive() {
                if self.hands.get(slot).is_some_and(|hands| hands.len() > 0) {
                    cpu::while_unowned(slot, || self.empty_hands(slot));
                }
                self.empty_slot(slot);
            }
        }
    }

    fn empty_slot(&self, slot: usize) {
        let mut slot = self.slots[slot].lock();
        if slot.frames() == 0 {
            return;
        }
        for singles in &mut slot.singles {
            let all = singles.len();
            singles.take_oldest(all, |frames| self.give_singles_to_backing(frames));
        }
        while let Some(first) = slot.huge.pop() {
            self.give_to_backing(first, Order::PAGEBLOCK);
        }
    }

    /// Empties a slot's hands, as its owner.
    fn empty_hands(&self, slot: usize) {
        let Some(hands) = self.hands.get(slot).filter(|hands| hands.len() > 0) else { return };
        for class in Mobility::ALL {
            let hand = hands.of(class);
            let mut frames = [0; HAND_FRAMES];
            let mut count = 0;
            while let Some(frame) = hand.pop() {
                frames[count] = frame;
                count += 1;
            }
            self.give_singles_to_backing(&frames[..count]);
        }
    }
}

impl Allocator for Magazines {
    const NAME: &'static str = "Magazines";
    const FRAMES_MIN: u32 = 64;
    /// Frame numbers are 32 bits wide and the last is reserved.
    const FRAMES_MAX: u32 = u32::MAX - 1;

    fn new(frames: u32) -> Self {
        Self::with_slots(frames, cpu::SLOTS, Sizes::of(frames))
    }

    #[inline]
    fn allocate(&self, order: Order, mobility: Mobility, effort: Effort) -> Option<u32> {
        self.allocate_at(cpu::place(), order, mobility, effort)
    }

    fn allocate_bulk(&self, count: u32, mobility: Mobility, effort: Effort, mut take: impl FnMut(u32)) -> u32 {
        let place = cpu::place();
        let mut frames = [0; BATCH_MAX];
        let mut taken = 0;
        while taken < count {
            let want = frames.len().min((count - taken) as usize);
            let got = self.gather(place, mobility, effort, &mut frames[..want]);
            for frame in &frames[..got] {
                self.states.hand_out(*frame, Order::SINGLE, mobility, place.slot());
                take(*frame);
            }
            taken += got as u32;
            if got < want {
                break;
            }
        }
        taken
    }

    #[inline]
    fn free(&self, first: u32, order: Order) -> Result<(), BadFree> {
        self.free_at(cpu::place(), first, order)
    }

    fn free_count(&self) -> u32 {
        let slots: u32 = self.slots.iter().map(|slot| slot.lock().frames()).sum();
        let hands: usize = self.hands.iter().map(Hands::len).sum();
        slots + hands as u32 + self.backing.free_frames()
    }

    #[inline]
    fn shared_free_count(&self) -> u32 {
        self.backing.free_frames()
    }

    fn watermarks(&self) -> Watermarks {
        self.marks
    }
}
