mod in_order;
mod sums;

use super::*;

const PRICES: Prices = Prices { page: Cost(1), run: Cost(100) };
const SLOT: u32 = 7;

fn set(device: &InFlight, flight: Flight) {
    device.set(Terms { flight, prices: PRICES });
}

fn idle() -> InFlight {
    InFlight::new(8, false)
}

/// A write of the file in the slot begins; returns its number.
fn begin(device: &InFlight, slot: u32, pages: u64, runs: u64, for_sync: bool) -> u64 {
    device.begin(slot, Load { kind: TransferKind::Write, first: 0, pages, bytes: pages, runs, for_sync }, Nanos(0))
}

fn end(device: &InFlight, number: u64) {
    device.end(number, true, Nanos(0));
}

#[test]
fn so_many_requests_follow_whatever_they_cost_and_more_while_they_are_cheap() {
    let flight = Flight { requests: 4, cost_max: Cost(1000), ..Flight::BY_KNOBS };
    // Pages and runs in flight, the most requests at any moment, and at this one.
    let table = [
        (0, 0, 32, 32),
        (999, 0, 32, 32),
        (1000, 0, 32, 4),
        (1000, 0, 3, 3),
        (399, 6, 32, 32),
        (400, 6, 32, 4),
        (1 << 60, 1 << 60, 4, 4),
    ];
    for (pages, runs, most, now) in table {
        let device = idle();
        assert_eq!(device.requests_now(&device.terms(), most, pages), most, "the knobs look at no cost");
        set(&device, flight);
        begin(&device, SLOT, pages, runs, false);
        assert_eq!(device.requests_now(&device.terms(), most, pages), now, "{pages} pages in {runs} runs, of {most}");
        set(&device, Flight { requests: 0, ..flight });
        assert!(device.requests_now(&device.terms(), most, pages) >= 1, "an idle device is given something");
    }
}

// rule: while names are made durable, little data is in flight to their device
// kept in: `product/engine/src/devices/in_flight.rs`
#[test]
fn while_names_are_made_durable_an_eighth_may_be_in_flight() {
    let device = idle();
    begin(&device, SLOT, 125, 0, false);
    device.names_begin();
    assert_eq!(device.requests_now(&device.terms(), 32, 125), 32, "the knobs look at no cost");
    set(&device, Flight { requests: 4, cost_max: Cost(1000), ..Flight::BY_KNOBS });
    assert_eq!(device.requests_now(&device.terms(), 32, 124), 32);
    assert_eq!(device.requests_now(&device.terms(), 32, 125), 1);
    device.names_begin();
    assert!(!device.remove_name());
    assert_eq!(device.requests_now(&device.terms(), 32, 125), 1, "one is left");
    assert!(device.remove_name(), "the last: who waits looks again");
    assert_eq!(device.requests_now(&device.terms(), 32, 125), 32);
}

#[test]
fn a_request_set_aside_costs_nothing_and_no_sync_waits_for_it_ahead_of_others() {
    let device = idle();
    set(&device, Flight { requests: 4, cost_max: Cost(1000), sync_lead: Cost(9999), ..Flight::BY_KNOBS });
    let number = begin(&device, SLOT, 1000, 1, true);
    assert_eq!(device.requests_now(&device.terms(), 32, 1000), 4);
    device.try_set_aside(number, Nanos(0)).unwrap();
    assert_eq!(device.requests_now(&device.terms(), 32, 1000), 32);
    let after = begin(&device, SLOT + 1, 1, 0, false);
    end(&device, after);
    assert!(!device.was_sync_passed());
    end(&device, number);
    assert_eq!(device.requests_now(&device.terms(), 32, 1000), 4, "its pages count again until they are clean");
}

#[test]
fn a_sync_goes_first_until_it_has_used_its_lead_and_then_by_turns() {
    let device = idle();
    begin(&device, SLOT, 1 << 40, 1, true);
    assert!(!device.is_sync_ahead(), "syncs first always");
    set(&device, Flight { sync_lead: Cost(1000), ..Flight::BY_KNOBS });
    // A seek there and back: 201 each.
    for number in 0..5 {
        assert!(!device.is_sync_ahead(), "sync {number}");
        begin(&device, SLOT, 1, 1, true);
    }
    assert!(device.is_sync_ahead());
    begin(&device, SLOT, 5, 0, false);
    assert!(device.is_sync_ahead(), "exactly the lead");
    begin(&device, SLOT, 1, 0, false);
    assert!(!device.is_sync_ahead());
    begin(&device, SLOT, 1 << 30, 1, false);
    begin(&device, SLOT, 999, 0, true);
    assert!(!device.is_sync_ahead(), "what the rest used before is no credit of syncs");
    begin(&device, SLOT, 9999, 0, true);
    device.nothing_but_syncs();
    begin(&device, SLOT, 1, 0, false);
    assert!(!device.is_sync_ahead(), "nobody was kept from what it used");
}

#[test]
fn a_sync_that_was_passed_keeps_others_back_until_it_ends() {
    let device = idle();
    let flight = Flight { sync_lead: Cost(1000), ..Flight::BY_KNOBS };
    let (early, _) = (begin(&device, SLOT, 1, 1, true), begin(&device, SLOT, 1, 1, false));
    end(&device, early);
    assert!(!device.was_sync_passed(), "the knobs know no passing");
    set(&device, flight);
    let [stream, sync, other, last] = [false, true, false, true].map(|for_sync| begin(&device, SLOT, 1, 1, for_sync));
    end(&device, stream);
    assert!(!device.was_sync_passed(), "it was submitted before");
    end(&device, other);
    assert!(device.was_sync_passed());
    end(&device, sync);
    assert!(!device.was_sync_passed(), "the last was passed by nobody");
    end(&device, last);
    assert!(!device.was_sync_passed());
    assert_eq!(device.counted().runs, 1);
}

#[test]
fn what_was_in_flight_to_a_file_before_its_sync_is_not_passed_for_ever_either() {
    let device = idle();
    set(&device, Flight { sync_lead: Cost(1000), ..Flight::BY_KNOBS });
    let [before, other, last] = [SLOT, SLOT + 1, SLOT + 1].map(|slot| begin(&device, slot, 1, 1, false));
    end(&device, other);
    assert!(!device.was_sync_passed(), "nobody waits for it");
    let waits = device.sync_waits(SLOT);
    assert!(device.was_sync_passed());
    end(&device, before);
    assert!(!device.was_sync_passed());
    let [during, beside] = [SLOT, SLOT + 1].map(|slot| begin(&device, slot, 1, 1, false));
    end(&device, beside);
    assert!(device.was_sync_passed(), "claimed before the round marked it, submitted after it began");
    end(&device, during);
    drop(waits);
    let [after, beside] = [SLOT, SLOT + 1].map(|slot| begin(&device, slot, 1, 1, false));
    end(&device, beside);
    assert!(!device.was_sync_passed(), "the sync is over");
    end(&device, after);
    end(&device, last);
}
