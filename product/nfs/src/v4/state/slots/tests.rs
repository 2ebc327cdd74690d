use super::*;

fn call(slot: u32, sequenceid: u32, call_hash: u64) -> SlotCall {
    SlotCall { slotid: slot, sequenceid, highest_slotid: slot, call_hash }
}

fn cache(reply: &'static [u8]) -> Option<impl FnOnce(&mut Vec<u8>)> {
    Some(move |into: &mut Vec<u8>| into.extend_from_slice(reply))
}

#[test]
fn a_call_runs_once_and_its_repetition_gets_the_first_reply() {
    let mut slots = Slots::new(2);
    assert_eq!(slots.begin(&call(0, 1, 77)), Ok(Begun::New));
    assert_eq!(slots.begin(&call(0, 1, 77)), Err(NfsStatus::Delay), "it still runs");
    assert_eq!(slots.begin(&call(0, 2, 78)), Err(NfsStatus::Delay), "the one before still runs");
    slots.end(0, cache(b"first"));
    assert_eq!(slots.begin(&call(0, 1, 77)), Ok(Begun::Again(b"first".to_vec())));
    assert_eq!(slots.begin(&call(0, 1, 99)), Err(NfsStatus::SeqFalseRetry), "another call with its number");
    assert_eq!(slots.begin(&call(0, 2, 0)), Ok(Begun::New));
    slots.end(0, None::<fn(&mut Vec<u8>)>);
    assert_eq!(slots.begin(&call(0, 2, 0)), Err(NfsStatus::RetryUncachedRep));
}

#[test]
fn a_slot_of_an_earlier_server_takes_any_number_once() {
    let mut slots = Slots::inherited(1);
    assert_eq!(slots.begin(&call(0, 41, 7)), Ok(Begun::Inherited));
    slots.end(0, cache(b"reply"));
    assert_eq!(slots.begin(&call(0, 41, 7)), Ok(Begun::Again(b"reply".to_vec())));
    assert_eq!(slots.begin(&call(0, 44, 7)), Err(NfsStatus::SeqMisordered));
    assert_eq!(slots.begin(&call(0, 42, 7)), Ok(Begun::New));
}

#[test]
fn a_call_that_was_dropped_runs_when_it_comes_again_and_so_does_the_next() {
    let mut slots = Slots::new(2);
    for slot in 0..2 {
        assert_eq!(slots.begin(&call(slot, 1, 7)), Ok(Begun::New));
        slots.drop_call(slot);
        assert_eq!(slots.begin(&call(slot, 0, 7)), Err(NfsStatus::SeqMisordered));
        assert_eq!(slots.begin(&call(slot, 1 + slot, 7)), Ok(Begun::New));
        slots.end(slot, cache(b"reply"));
        assert_eq!(slots.begin(&call(slot, 1 + slot, 7)), Ok(Begun::Again(b"reply".to_vec())));
    }
    let mut slots = Slots::inherited(1);
    assert_eq!(slots.begin(&call(0, 41, 7)), Ok(Begun::Inherited));
    slots.drop_call(0);
    assert_eq!(slots.begin(&call(0, 41, 7)), Ok(Begun::Inherited), "an earlier server may have carried it out");
}

#[test]
fn numbers_out_of_order_and_slots_that_are_not_there_are_refused() {
    let mut slots = Slots::new(2);
    assert_eq!(slots.begin(&call(0, 0, 1)), Err(NfsStatus::SeqMisordered));
    assert_eq!(slots.begin(&call(0, 2, 1)), Err(NfsStatus::SeqMisordered));
    assert_eq!(slots.begin(&call(2, 1, 1)), Err(NfsStatus::Badslot));
    assert_eq!(slots.begin(&SlotCall { highest_slotid: 2, ..call(1, 1, 1) }), Err(NfsStatus::BadHighSlot));
    assert_eq!(slots.begin(&call(1, 1, 1)), Ok(Begun::New), "a refused call has taken nothing");
}

#[test]
fn an_ended_session_takes_no_call_and_one_in_progress_ends_without_a_trace() {
    let mut slots = Slots::new(2);
    assert_eq!(slots.begin(&call(0, 1, 7)), Ok(Begun::New));
    slots.end_all();
    assert_eq!(slots.begin(&call(1, 1, 7)), Err(NfsStatus::Badsession));
    slots.end(0, cache(b"late"));
    assert_eq!(slots.begin(&call(0, 1, 7)), Err(NfsStatus::Badsession));
}

/// Random calls against a model: the last number and the reply to it.
#[test]
fn any_calls_run_as_the_model_says() {
    let mut slots = Slots::new(1);
    let (mut last, mut reply, mut runs, mut random) = (0_u32, None::<u8>, false, 1_u64);
    for step in 0..20_000_u32 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let choice = (random >> 33) as u32;
        if runs && choice.is_multiple_of(3) {
            reply = choice.is_multiple_of(2).then_some(step as u8);
            slots.end(0, reply.map(|byte| move |into: &mut Vec<u8>| into.push(byte)));
            runs = false;
            continue;
        }
        let sequenceid = last.wrapping_add(choice % 4).wrapping_sub(1);
        let expected = match sequenceid.wrapping_sub(last) {
            1 if runs => Err(NfsStatus::Delay),
            1 => Ok(Begun::New),
            0 if runs => Err(NfsStatus::Delay),
            0 => match reply {
                Some(byte) => Ok(Begun::Again(vec![byte])),
                None if last == 0 => Err(NfsStatus::SeqMisordered),
                None => Err(NfsStatus::RetryUncachedRep),
            },
            _ => Err(NfsStatus::SeqMisordered),
        };
        assert_eq!(slots.begin(&call(0, sequenceid, 5)), expected, "step {step}");
        if expected == Ok(Begun::New) {
            (last, runs, reply) = (sequenceid, true, None);
        }
    }
}
