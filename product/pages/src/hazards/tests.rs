use super::*;

#[test]
fn a_thread_announces_as_many_frames_as_it_has_slots() {
    let hazards = Hazards::new();
    assert!(hazards.are_fresh() && hazards.announce(7, FrameId::new(0)).is_none(), "they serve no cache yet");
    hazards.serve(7);
    let slots: Vec<_> =
        (0..SLOTS as u32).map(|frame| hazards.announce(7, FrameId::new(frame)).expect("room")).collect();
    assert!(hazards.announce(7, FrameId::new(99)).is_none() && hazards.announce(8, FrameId::new(99)).is_none());
    assert_eq!(hazards.frames().map(FrameId::index).sum::<usize>(), (0..SLOTS).sum());
    slots[3].leave();
    assert_eq!(hazards.frames().count(), SLOTS - 1);
    assert!(hazards.announce(7, FrameId::new(99)).is_none(), "its holder still uses the cache");
    slots[3].empty();
    assert!(hazards.announce(7, FrameId::new(99)).is_some_and(|slot| std::ptr::eq(slot, slots[3])));
    slots.iter().for_each(|slot| slot.empty());
    hazards.retire();
    assert!(hazards.are_empty() && !hazards.are_fresh() && hazards.announce(7, FrameId::new(1)).is_none());
}
