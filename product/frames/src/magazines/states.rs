//! The state of each frame, and its last events: two bytes a frame.
//!
//! Owns: the packing, the one step in which a block stops being handed out.
//! Does not own: the place of free frames.
//! Invariants: only a block's first frame is marked as handed out, with order and class. When several threads free one
//! block, exactly one free succeeds.

use crate::bad_free::{BadFree, Event, Fault};
use crate::sync::atomic::{AtomicU16, Ordering};
use crate::sync::zeros;
use crate::{Mobility, Order};

const HANDED_OUT: u16 = 1;
const ORDER_AT: u32 = 1;
const CLASS_AT: u32 = 5;
const ALLOCATED_BY_AT: u32 = 7;
const FREED_BY_AT: u32 = 11;
/// Set once the frame was freed, so that the slot of the free is meaningful.
const WAS_FREED: u16 = 1 << 15;

/// Only these bits of the slot's number are kept.
const SLOT_BITS: u16 = 15;

pub(super) struct States(Box<[AtomicU16]>);

impl States {
    pub(super) fn new(frames: u32) -> Self {
        Self(zeros(frames as usize))
    }

    pub(super) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Records that a block is handed out. Until then its frames are free, and only the caller has them.
    #[inline]
    pub(super) fn hand_out(&self, first: u32, order: Order, class: Mobility, slot: usize) {
        let state = &self.0[first as usize];
        let old = state.load(Ordering::Relaxed);
        debug_assert!(old & HANDED_OUT == 0, "frame {first} is handed out twice");
        let freed = old & (WAS_FREED | SLOT_BITS << FREED_BY_AT);
        let block = u16::from(order.get()) << ORDER_AT | (class as u16) << CLASS_AT;
        let by = (slot as u16 & SLOT_BITS) << ALLOCATED_BY_AT;
        state.store(freed | by | block | HANDED_OUT, Ordering::Relaxed);
    }

    /// Records that a block is free and returns its class, or the reason why it cannot be freed. Only the caller then
    /// has the block, and puts it where other threads find it.
    #[inline]
    pub(super) fn take_back(&self, first: u32, order: Order, slot: usize) -> Result<Mobility, BadFree> {
        let Some(state) = self.0.get(first as usize) else { return Err(self.foreign(first, order)) };
        // Relaxed: the lists carry the holder's accesses to the frame along with the frame.
        let freed = WAS_FREED | (slot as u16 & SLOT_BITS) << FREED_BY_AT;
        let old = state.swap(freed, Ordering::Relaxed);
        let wanted = HANDED_OUT | u16::from(order.get()) << ORDER_AT;
        if old & (HANDED_OUT | 15 << ORDER_AT) != wanted {
            return Err(self.bad(first, order, old));
        }
        let kept = old & !(HANDED_OUT | SLOT_BITS << FREED_BY_AT);
        state.store(kept | freed, Ordering::Relaxed);
        Ok(Mobility::from_bits((old >> CLASS_AT & 3) as u8))
    }

    #[cold]
    fn foreign(&self, first: u32, order: Order) -> BadFree {
        let fault = Fault::Foreign { total: self.len() };
        BadFree { frame: first, order: order.get(), fault, events: [None, None] }
    }

    #[cold]
    fn bad(&self, first: u32, order: Order, old: u16) -> BadFree {
        if old & HANDED_OUT != 0 {
            self.0[first as usize].store(old, Ordering::Relaxed);
        }
        if first.checked_add(order.frames()).is_none_or(|end| end > self.len()) {
            return self.foreign(first, order);
        }
        let slot = |at: u32| Some((old >> at & SLOT_BITS) as u8);
        let allocated_order = (old >> ORDER_AT & 15) as u8;
        let allocated = Some(Event::Allocated { order: allocated_order, slot: slot(ALLOCATED_BY_AT) });
        let freed = (old & WAS_FREED != 0).then_some(Event::Freed { slot: slot(FREED_BY_AT) });
        let (fault, events) = if old & HANDED_OUT != 0 {
            (Fault::OtherOrder { allocated: allocated_order }, [allocated, freed])
        } else {
            (Fault::NotAllocated, if freed.is_some() { [freed, allocated] } else { [None, None] })
        };
        BadFree { frame: first, order: order.get(), fault, events }
    }
}
